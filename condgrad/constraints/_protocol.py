"""The methods of every constraint set, and the decorator that makes a NamedTuple class a constraint set."""

from __future__ import annotations

import abc
import functools
from typing import cast

import numpy as np

from condgrad.compiled import compiled, fill_in, is_compiled, kernel
from condgrad.constraints._blocks import Blocks
from condgrad.constraints._linear_program import multipliers_at
from condgrad.constraints._nearest import distance_to, is_combination
from condgrad.constraints._rounding import inner_with_error, rounded_up, trusted
from condgrad.constraints.linear_rows import LinearRows, Multipliers
from condgrad.constraints.vertices import Atom, DenseVertex, SparseVertex, Vertex
from condgrad.linalg.max_tree import Score
from condgrad.linalg.rounding import UNIT
from condgrad.linalg.vectors import DenseVector, Vector

_N_SIGNS = 112  # random vectors of signs in ``total_width``
_N_STEPS = 10  # steps of the search for the origin
_SMALL = 100_000  # number of features up to which the direction of ``far_vertices`` is kept


class ConstraintSet(abc.ABC):  # noqa: B024 (the decorator copies the defaults: nothing inherits)
    """A compact convex set C of R^d, known through its linear minimisation oracle."""

    vertex: type[Vertex] = DenseVertex  # the kind of vertex that lmo returns
    is_symmetric = False  # whether the set contains -w for every w in it
    is_polytope = False  # whether there are finitely many vertices: away and pairwise steps then converge linearly
    has_absolute_values = False  # whether the set contains |s| for every vertex s
    has_projection = False  # whether ``project`` is defined, at about the cost of a few calls of the oracle
    n_features: int | None = None  # the dimension, if the set itself fixes one (as a field or a property)

    def lmo(self, r: Vector) -> Vertex:
        """Return a vertex s that minimises <r, s> over the set, for a vector ``r``."""
        raise NotImplementedError

    def violation(self, w: np.ndarray) -> float:
        """Return by how much ``w`` breaks the constraint, in the set's own units (at most 0: it does not).

        By default it is the distance to the set, as far as a search by the oracle alone can prove it.
        """
        w = np.asarray(w, dtype=np.float64)
        return distance_to(lambda r: best_vertex(self, r).to_dense(w.size), w)

    @property
    def is_violation_searched(self) -> bool:
        """Whether ``violation`` is a search that may take longer than many calls of the oracle."""
        return type(self).violation is ConstraintSet.violation

    def contains(self, w: np.ndarray, tol: float = 1e-9) -> bool:
        """Return whether ``w`` lies in the set, up to ``tol``."""
        return bool(self.violation(np.asarray(w, dtype=np.float64)) <= tol)

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the largest distance of two points of the set in the l_order norm, or an upper bound of it.

        Pass ``n_features`` if the set does not fix its dimension: some diameters depend on it. By default it is the
        length of the diagonal of the smallest box around the set: a bound, exact for ``order=inf``.
        """
        return float(np.linalg.norm(box_widths(self, known_features(self, n_features)), order))

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return a bound of <r, s> - min over the set of <r, .> for s = lmo(r), as floating point computed it.

        Both inner products are meant without rounding. The default trusts the oracle: its vertex is the best one, up to
        d + 8 roundings of each entry.
        """
        return trusted(r, s, r.size + 8)

    def reach(self, c: np.ndarray) -> float:
        """Return a bound of the largest sum_j c_j |w_j - v_j| over points w and v of the set, for c >= 0.

        If the set contains the absolute values of its vertices, it is 2 max <c, w>: one call of the oracle, and exact
        for symmetric sets. Else it comes from the diameters, or from the widths of the set.
        """
        if self.has_absolute_values:
            return 2.0 * highest(self, c)
        if type(self).diameter is ConstraintSet.diameter:
            return total_width(self, c)
        largest = float(c.max())
        if largest == 0.0:
            return 0.0
        sizes = {1: c.max(), 2: largest * np.linalg.norm(c / largest), np.inf: c.sum()}
        return rounded_up(min(size * self.diameter(order, c.size) for order, size in sizes.items()), c.size)

    @property
    def has_fast_reach(self) -> bool:
        """Whether ``reach`` is a formula, or takes a call of the oracle; by default, unless it needs many calls."""
        cls = type(self)
        is_formula = cls.reach is not ConstraintSet.reach or cls.diameter is not ConstraintSet.diameter
        return is_formula or bool(self.has_absolute_values)

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the point of the set nearest to ``w``; sets without a cheap projection do not offer it."""
        raise NotImplementedError(f"{type(self).__name__} has no projection.")

    def start(self, n_features: int) -> Vertex:
        """Return the vertex that solvers start from."""
        return best_vertex(self, np.zeros(n_features))

    def far_vertices(self, n_features: int) -> tuple[Vertex, Vertex]:
        """Return the two ends of the set along a generic direction: its largest vertices, up to a moderate factor."""
        r = (_kept_direction if n_features <= _SMALL else _direction)(n_features)
        return best_vertex(self, r.copy()), best_vertex(self, -r)  # a copy: an oracle may write into what it is given

    def best_vertices(self, r: np.ndarray, count: int) -> list[Vertex]:
        """Return up to ``count`` vertices with small <r, s>, the best one first; by default only that one."""
        return [best_vertex(self, r)]

    def best_atoms(self, r: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return up to ``count`` vertices with small <r, s> as features and values, for sets of atoms.

        By default it is only the best one, which the oracle returns.
        """
        s = cast("Atom", best_vertex(self, r))
        return np.array([s.index]), np.array([s.value])

    def atom_sizes(self, n_features: int) -> np.ndarray:
        """Return the largest absolute value of each entry of w, for symmetric sets of atoms."""
        sizes = np.zeros(n_features)
        features, values = self.best_atoms(np.ones(n_features), n_features)
        sizes[features] = np.abs(values)
        return sizes

    def score(self) -> Score | None:
        """Return the score under which a tree over r finds the best vertex, or None where no tree can.

        With one, a stochastic step costs O(nnz of the batch * log d) instead of O(d).
        """
        return None

    def restricted(self, features: np.ndarray) -> ConstraintSet | None:
        """Return the set of vectors on the chosen features only, or None where it is not known.

        It contains the chosen entries of every point of the set. If the vertices are sparse, ``corrective`` then works
        on some features at a time, and adds those of the best vertices. ``features`` contains everything that
        ``related`` adds to its members, and the features of at least one vertex.
        """
        return None

    def best_features(self, r: np.ndarray, count: int, most: float) -> np.ndarray:
        """Return about ``count`` features of vertices with <r, s> <= most, for a set that can be ``restricted``.

        The features of the best vertex are always among them. By default there are no others.
        """
        return cast("SparseVertex", best_vertex(self, r)).indices

    def related(self, features: np.ndarray, is_chosen: np.ndarray) -> np.ndarray:
        """Return which of the ``features`` must stay together with the chosen ones; by default only these."""
        return is_chosen

    def linear_rows(self, n_features: int) -> LinearRows | None:
        """Return the set as linear inequalities, equations and bounds, or None where it is not known so.

        There should be few of them: ``corrective`` then minimises its models by quadratic programs, and
        ``LinearlyConstrained`` can cut the set.
        """
        return None

    def multipliers(self, r: np.ndarray) -> Multipliers | None:
        """Return the multipliers of the rows and bounds for the gradient ``r``, or None for sets without linear rows.

        They are a solution of the dual of the oracle's linear program, so that a gap of 0 at w makes them multipliers
        of the problem at w.
        """
        rows = self.linear_rows(r.size)
        if rows is None or rows.is_split:
            return None
        return multipliers_at(rows, r)

    def blocks(self, n_features: int) -> Blocks | None:
        """Return blocks of features such that every vertex is nonzero on one block only, or None without such blocks.

        With blocks, the oracle can be called for a sample of them: ``lmo`` then gets a vector that has the entries of
        these only. So it may call ``argmax_abs``, ``argmin``, ``argmax_weighted``, ``best_group``, and ``at`` where
        these point, but not loop over all entries.
        """
        return None

    def check_features(self, n_features: int) -> None:
        """Raise ValueError where the set does not fit data with ``n_features`` columns."""
        if self.n_features is not None and self.n_features != n_features:
            name = type(self).__name__
            raise ValueError(
                f"{name} is a set of vectors of length {self.n_features}, but the data have {n_features} features."
            )

    def decompose(self, w: np.ndarray) -> list[tuple[float, Vertex]]:
        """Return (weight, vertex) pairs that sum to the point ``w`` of the set, the weights to one.

        By default ``w`` itself is the only "vertex": solvers with an active set drop it during their steps.
        """
        return [(1.0, DenseVertex(np.array(w, dtype=np.float64)))]


def _direction(n_features: int) -> np.ndarray:
    """Return a generic direction."""
    return np.random.default_rng(0).standard_normal(n_features)


_kept_direction = functools.lru_cache(maxsize=4)(_direction)  # to draw it takes longer than the oracle


def constraint_set(cls: type) -> type:
    """Make a NamedTuple class a constraint set; what it leaves out comes from :class:`ConstraintSet`."""
    cls = compiled(fill_in(cls, ConstraintSet))
    ConstraintSet.register(cls)
    return cls


def best_vertex(constraint: ConstraintSet, r: np.ndarray) -> Vertex:
    """Return ``constraint.lmo`` at the array ``r``, compiled where the set can be."""
    if not is_compiled(constraint):
        return constraint.lmo(DenseVector(r))
    if constraint.vertex is Atom:
        return Atom(*_best_atom(constraint, r))
    return _lmo(constraint, DenseVector(r))


def has_origin(constraint: ConstraintSet, n_features: int) -> bool:
    """Return whether the set is known to contain the origin.

    Where ``violation`` is a search, a short one must find it: a solver that does not use the origin loses little.
    """
    if constraint.is_symmetric:
        return True
    origin = np.zeros(n_features)
    if not constraint.is_violation_searched:
        return bool(constraint.violation(origin) <= 0.0)
    return is_combination(lambda r: best_vertex(constraint, r).to_dense(n_features), origin, _N_STEPS)


def box_widths(constraint: ConstraintSet, n_features: int) -> np.ndarray:
    """Return the widths of the smallest box around the set: 2 d calls of the oracle."""
    widths = np.empty(n_features)
    r = np.zeros(n_features)
    for j in range(n_features):
        r[j] = 1.0
        low = best_vertex(constraint, r).to_dense(n_features)[j]
        r[j] = -1.0
        widths[j] = best_vertex(constraint, r).to_dense(n_features)[j] - low
        r[j] = 0.0
    return widths


def highest(constraint: ConstraintSet, c: np.ndarray) -> float:
    """Return an upper bound of the largest <c, w> over the set."""
    s = best_vertex(constraint, -c)
    indices, values = s.support()
    parts = (c if indices is None else c[indices]) * values
    size = rounded_up(np.abs(parts).sum(), c.size)
    return max(float(parts.sum()) + (c.size + 2) * UNIT * size, 0.0) + constraint.oracle_rounding(-c, s)


def lowest(constraint: ConstraintSet, x: np.ndarray) -> np.floating:
    """Return a lower bound of the smallest <x, w> over the set, for floats in a wide array."""
    r = x.astype(np.float64)
    s = best_vertex(constraint, r)
    value, error = inner_with_error(x, s)
    return value - 2.0 * error - constraint.oracle_rounding(r, s)  # twice the error, as callers add such values


def total_width(constraint: ConstraintSet, c: np.ndarray) -> float:
    """Return a bound of the largest sum_j c_j |w_j - v_j| by the oracle alone.

    It comes from the smallest box around the set or, in many dimensions, from the widths of the set along random signs
    times c: for the farthest w and v, such a width is at least ||c (w - v)||_2 / 2 with probability 3/16 (Paley and
    Zygmund), so 112 of them all fail with probability 1e-10.
    """
    if c.size <= _N_SIGNS:
        return rounded_up(c @ box_widths(constraint, c.size), c.size)
    rng = np.random.default_rng(0)
    widest = 0.0
    for _ in range(_N_SIGNS):
        signed = c * rng.choice([-1.0, 1.0], c.size)
        ends = [best_vertex(constraint, direction).to_dense(c.size) for direction in (signed, -signed)]
        widest = max(widest, float(signed @ (ends[1] - ends[0])))
    return rounded_up(2.0 * np.sqrt(c.size) * widest, c.size)


def known_features(constraint: ConstraintSet, n_features: int | None) -> int:
    """Return the dimension: ``n_features``, or else that of the set."""
    known = constraint.n_features if n_features is None else n_features
    if known is None:
        raise ValueError(f"this diameter of {type(constraint).__name__} depends on the dimension: pass n_features.")
    return int(known)


def as_array(r: Vector) -> np.ndarray:
    """Return the entries of the vector ``r``, for oracles that are not compiled."""
    return r.values if isinstance(r, DenseVector) else np.array([r.at(j) for j in range(r.size())])


@kernel
def _lmo(constraint, r):
    return constraint.lmo(r)


@kernel
def _best_atom(constraint, r):
    """Return the oracle's atom as two numbers: a class takes microseconds to come out of a kernel, and to go in."""
    s = constraint.lmo(DenseVector(r))
    return s.index, s.value
