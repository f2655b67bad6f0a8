"""Polytopes given by linear inequalities and equations."""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._linear_program import LinearProgram, Optimum, Outcome, generic, multipliers_of
from condgrad.constraints._protocol import ConstraintSet, as_array, total_width
from condgrad.constraints._rounding import WIDE_EPS, normalised, rounded_up, shortfall, times_power
from condgrad.constraints._rows import Bounds, as_bounds, as_rows, dimension, tightened
from condgrad.constraints.linear_rows import LinearRows, Multipliers
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.convert import Data
from condgrad.linalg.rounding import UNIT
from condgrad.linalg.vectors import Vector

_MODERATE = 16.0  # size of the scaled set: between this and its inverse it needs no other scale
_MAX_SCALES = 8  # scales that are tried
_MANY_ENTRIES = 1_000_000  # entries of all rows, from which on bounds are not searched in single rows


class Polytope(ConstraintSet):
    """The polytope {w : A_ub w <= b_ub, A_eq w = b_eq, low <= w <= high}.

    The oracle is a linear program, solved directly if there is a single row, or a budget and one more row, else by the
    dual simplex method of HiGHS, which is part of scipy. It is not compiled. The tolerances of HiGHS are absolute, so
    it gets rows of norm 1 and the set scaled to a size of about 1: a vertex is outside of a half-space by at most 1e-10
    times the size of the set. The constructor checks by a few linear programs that the set is neither empty nor
    unbounded. With few features and rows, solver="auto" and "corrective" minimise models of F over the set by quadratic
    programs, and need about ten passes over the data.

    Parameters
    ----------
    A_ub, b_ub : arrays of shapes (m, n_features) and (m,), optional
        The inequalities; A_ub may be sparse.
    A_eq, b_eq : arrays of shapes (m, n_features) and (m,), optional
        The equations; A_eq may be sparse.
    bounds : pair (low, high) or array of shape (n_features, 2), optional
        Bounds of the entries, for all or for each; None stands for no bound. Without it entries are free (unlike in
        scipy.optimize.linprog, where they would be non-negative).

    Examples
    --------
    >>> triangle = Polytope(A_ub=[[1.0, 1.0]], b_ub=[1.0], bounds=(0.0, None))
    >>> triangle.contains([0.5, 0.5]), triangle.contains([0.6, 0.6])
    (True, False)
    """

    vertex = DenseVertex
    is_polytope = True
    _empty = "the Polytope"  # name of the set in the error that it is empty

    def __init__(
        self,
        A_ub: Data | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: Data | None = None,
        b_eq: ArrayLike | None = None,
        bounds: Bounds = None,
    ) -> None:
        self.A_ub, self.b_ub, self._norms_ub = as_rows("Polytope", "A_ub", A_ub, "b_ub", b_ub)
        self.A_eq, self.b_eq, self._norms_eq = as_rows("Polytope", "A_eq", A_eq, "b_eq", b_eq)
        self.n_features: int = dimension("Polytope", self.A_ub, self.A_eq, bounds)
        self.bounds = as_bounds("Polytope", bounds, self.n_features)
        self._latest: tuple[np.ndarray, Optimum] | None = None  # the costs of the last linear program, and its solution
        sides = np.concatenate([b for b in (self.b_ub, self.b_eq, self.bounds.ravel()) if b is not None])
        sides = np.abs(sides[np.isfinite(sides) & (sides != 0.0)])
        self._set_scale(_power_of_two(sides.max(initial=0.0)))
        if not np.isfinite(self._box).all():
            self._check_not_empty(np.zeros(self.n_features))
            self._check_bounded()
        self._fit_scale(_power_of_two(sides.min(initial=1.0)))

    def __repr__(self) -> str:
        n_ub, n_eq = (0 if A is None else A.shape[0] for A in (self.A_ub, self.A_eq))
        return f"Polytope(<{n_ub} inequalities, {n_eq} equations, {self.n_features} features>)"

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the set for a checkpoint: its settings, without the model of its linear program."""
        return self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds

    def lmo(self, r: Vector) -> DenseVertex:
        """Return the vertex that the simplex method finds."""
        x = self._optimum(normalised(as_array(r))[0].astype(np.float64)).x
        has_free_entries = np.isinf(self.bounds).all(axis=1).any()
        z = self._moved_to_vertex(x) if has_free_entries else x
        return DenseVertex(self._scale * np.ascontiguousarray(z))

    def far_vertices(self, n_features: int) -> tuple[Vertex, Vertex]:
        """Return the two ends from which the scale of the set was found."""
        if any(end.size == 0 for end in self._ends):  # HiGHS did not find them
            return super().far_vertices(n_features)
        return DenseVertex(self._ends[0]), DenseVertex(self._ends[1])

    def _optimum(self, cost: np.ndarray) -> Optimum:
        """Return the solution of the linear program over the scaled set; that of the last costs is kept."""
        latest = self._latest
        if latest is not None and np.array_equal(latest[0], cost):
            return latest[1]
        optimum = self._solved(self._program.minimise(cost))
        self._latest = cost, optimum
        return optimum

    def _solved(self, optimum: Optimum) -> Optimum:
        if optimum.outcome is not Outcome.OPTIMAL:
            raise RuntimeError(f"HiGHS could not minimise over {self!r}: {optimum.message}")
        return optimum

    def linear_rows(self, n_features: int) -> LinearRows:
        """Return the rows and bounds, the rows scaled to norm 1."""
        low, high = self.bounds.T
        return LinearRows(low, high, self.A_ub, self.b_ub, self.A_eq, self.b_eq)

    def multipliers(self, r: np.ndarray) -> Multipliers:
        """Return the multipliers of the rows and bounds for the gradient ``r``."""
        x, exponent = normalised(r)
        cost = x.astype(np.float64)
        found = multipliers_of(self.linear_rows(r.size), cost, self._optimum(cost))
        in_units = [2.0**exponent * part for part in found]
        return Multipliers(in_units[0] / self._norms_ub, in_units[1] / self._norms_eq, *in_units[2:])

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus a bound by the multipliers that the simplex method found, rounded up."""
        return shortfall(lambda x: -self.least(x.astype(np.float64)), r, s)

    def least(self, cost: np.ndarray) -> np.floating:
        """Return a lower bound of the smallest <cost, w> over the set, whatever HiGHS' tolerances.

        The largest |cost_j| lies between 1/2 and 1, as in the linear programs. For any multipliers y of the rows, at
        most 0 for inequalities, <b, y> plus the smallest <cost - A'y, w> over a box around the set is a bound.

        References
        ----------
        Neumaier, Shcherbina (2004). Safe bounds in linear and mixed-integer linear programming. Its section 2.
        """
        return self._bound(cost, self._optimum(cost))

    def _bound(self, cost: np.ndarray, optimum: Optimum) -> np.floating:
        """Return the bound that the multipliers of an optimum prove."""
        rest, sizes, n_terms = cost, np.abs(cost), 1
        total = np.longdouble(0.0)
        for A, b, y in zip((self.A_ub, self.A_eq), (self.b_ub, self.b_eq), (optimum.ub, optimum.eq)):
            if A is not None:
                rest, sizes, n_terms = rest - A.T @ y, sizes + abs(A).T @ np.abs(y), n_terms + y.size
                total += _sum_below(np.asarray(b, dtype=np.longdouble) * y)
        low, high = self._limits.astype(np.longdouble).T
        missed = 2.0 * (n_terms + 4) * UNIT * sizes * np.maximum(np.abs(low), np.abs(high))
        return total + _sum_below(np.minimum(rest * low, rest * high) - missed)

    def reach(self, c: np.ndarray) -> float:
        """Return a bound from the bounds of the entries and one linear program, or from many if an entry is free."""
        if not np.isfinite(self._anchors).all():
            return (1.0 + 1e-6) * total_width(self, c)  # 1e-6 is far more than the tolerances of HiGHS
        counts = c > 0.0  # the bounds of other entries may be infinite
        by_bounds = c[counts] @ (self.bounds[counts, 1] - self.bounds[counts, 0])
        return rounded_up(min(by_bounds, 2.0 * self._farthest(c)), c.size)

    def violation(self, w: np.ndarray) -> float:
        """Return the largest distance from ``w`` to a half-space or hyperplane of the description."""
        excess = [self.bounds[:, 0] - w, w - self.bounds[:, 1]]
        if self.A_ub is not None:
            excess.append(self.A_ub @ w - self.b_ub)
        if self.A_eq is not None:
            excess.append(np.abs(self.A_eq @ w - self.b_eq))
        return float(np.concatenate(excess).max())

    @functools.cached_property
    def _anchors(self) -> np.ndarray:
        """A bound of each entry, infinite where there is none."""
        return np.where(np.isfinite(self.bounds[:, 0]), self.bounds[:, 0], self.bounds[:, 1])

    def _farthest(self, c: np.ndarray) -> float:
        """Return a bound of the largest sum_j c_j |w_j - anchor_j|, which is linear as anchors are bounds."""
        if not c.any():
            return 0.0
        x, exponent = normalised(c)
        signed = np.where(np.isfinite(self.bounds[:, 0]), x, -x)
        cost = -signed.astype(np.float64)
        optimum = self._solved(self._program.minimise(cost))  # not among the kept ones: that of the oracle stays
        return times_power(-self._bound(cost, optimum) + _sum_above(-signed * self._anchors), exponent)

    @functools.cached_property
    def _box(self) -> np.ndarray:
        """A box around the set: the bounds, and those that follow from single rows; the others are infinite."""
        if np.isfinite(self.bounds).all():
            return self.bounds
        rows = [(A, b) for A, b in ((self.A_ub, self.b_ub), (self.A_eq, self.b_eq)) if A is not None]
        if sum(A.shape[0] for A, _ in rows) * self.n_features > _MANY_ENTRIES:
            return self.bounds
        systems = [(A.toarray() if scipy.sparse.issparse(A) else A, b) for A, b in rows]
        opposite = [] if self.A_eq is None else [(-systems[-1][0], -self.b_eq)]
        return tightened(self.bounds, systems + opposite)

    @functools.cached_property
    def _limits(self) -> np.ndarray:
        """A box around the set, made finite and narrower by linear programs if it is wide."""
        low, high = self._box.T
        if (high - low).max() <= 100.0 * self._scale:
            return self._box
        if np.isfinite(self._anchors).all():
            found = self._scale * self._program.minimise(np.where(np.isfinite(self.bounds[:, 0]), -1.0, 1.0)).x
            # Twice the distance: the solution is not exact, but its error is smaller than that.
            radius = 2.0 * np.abs(found - self._anchors).sum() + self._scale
            center = self._anchors
        else:
            center = self.start(low.size).to_dense(low.size)
            radius = 2.0 * total_width(self, np.ones(low.size)) + self._scale
        return np.column_stack([np.maximum(low, center - radius), np.minimum(high, center + radius)])

    def _set_scale(self, scale: float) -> None:
        """Scale the set by 1 / ``scale`` in the linear programs."""
        self._scale = scale
        self._program = LinearProgram(self.linear_rows(self.n_features).scaled(1.0 / scale), self._generic())

    def _generic(self) -> np.ndarray:
        """Return the costs at whose two ends the size of the set is seen."""
        return generic(self.n_features)

    def _check_not_empty(self, cost: np.ndarray) -> Optimum:
        optimum = self._program.minimise(cost)
        if optimum.outcome is Outcome.INFEASIBLE:
            raise ValueError(f"{self._empty} is empty: no w satisfies all of its constraints. Relax one of them.")
        return optimum

    def _fit_scale(self, smallest: float) -> None:
        """Set the scale to the size of the set, estimated from its two ends along a generic direction."""
        for _ in range(_MAX_SCALES):
            found = [self._check_not_empty(sign * self._generic()).x for sign in (1.0, -1.0)]
            self._ends = [self._scale * x for x in found]
            size = max((np.abs(x).max() for x in found if x.size), default=1.0)
            if 1.0 / _MODERATE <= size <= _MODERATE or (size == 0.0 and self._scale <= smallest):
                return
            # A set that cannot be distinguished from {0} may be as small as the smallest of its sides.
            self._set_scale(smallest if size == 0.0 else self._scale * _power_of_two(size))

    def _check_bounded(self) -> None:
        # The cone of the directions that never leave the set: {0} if the set is bounded. Along any other direction of
        # the cone, a generic cost decreases or increases.
        low, high = np.where(np.isfinite(self.bounds), 0.0, [-1.0, 1.0]).T
        b_ub, b_eq = (None if b is None else np.zeros(b.size) for b in (self.b_ub, self.b_eq))
        cone = LinearProgram(LinearRows(low, high, self.A_ub, b_ub, self.A_eq, b_eq))
        cost = generic(self.n_features)
        for sign in (1.0, -1.0):
            optimum = cone.minimise(sign * cost)
            if optimum.outcome is Outcome.OPTIMAL and sign * cost @ optimum.x < -1e-7:
                j = int(np.abs(optimum.x).argmax())
                raise ValueError(
                    f"the Polytope is unbounded: entry {j} of w can go to {'' if optimum.x[j] > 0 else 'minus '}"
                    "infinity. Add bounds."
                )

    def _moved_to_vertex(self, w: np.ndarray) -> np.ndarray:
        """Return a vertex as good as the scaled solution ``w``, which may not be one if entries without bounds tie.

        While the tight constraints leave a direction free, move along it to the next constraint. The objective does not
        change: at a solution the costs are a combination of the tight rows.
        """
        from scipy.linalg import null_space  # here, because the import is slow

        rows = [A.toarray() if scipy.sparse.issparse(A) else A for A in (self.A_ub, self.A_eq) if A is not None]
        A = np.vstack([*rows, np.eye(w.size), -np.eye(w.size)])
        sides = [b for b in (self.b_ub, self.b_eq) if b is not None]
        b = np.concatenate([*sides, self.bounds[:, 1], -self.bounds[:, 0]]) / self._scale
        for _ in range(w.size):
            slack = b - A @ w
            tight = np.abs(slack) <= 1e-9 * (1.0 + np.abs(w).max())
            free = null_space(A[tight]) if tight.any() else np.eye(w.size)
            if free.shape[1] == 0:
                break
            speed = A @ free[:, 0]
            ahead = ~tight & (speed > 1e-9)
            w = w + (slack[ahead] / speed[ahead]).min() * free[:, 0]
        return w


def _power_of_two(x: float) -> float:
    """Return a power of two between x and 2 x, 1 for 0: products with it do not round."""
    return math.ldexp(1.0, math.frexp(x)[1]) if x > 0.0 else 1.0


def _sum_below(terms: np.ndarray) -> np.floating:
    """Return a lower bound of the sum of wide terms that are the result of a few operations each."""
    return terms.sum() - 2 * (terms.size + 4) * WIDE_EPS * np.abs(terms).sum()


def _sum_above(terms: np.ndarray) -> np.floating:
    return -_sum_below(-terms)
