"""Sets cut by linear inequalities and equations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._linear_program import generic
from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.constraints._rounding import shortfall
from condgrad.constraints._rows import Bounds, as_bounds, as_rows, dimension
from condgrad.constraints.linear_rows import LinearRows, Multipliers, stacked, with_opposite
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.constraints.polytopes.polytope import Polytope
from condgrad.constraints.vertices import DenseVertex, SparseVertex, Vertex
from condgrad.linalg.convert import Data
from condgrad.linalg.vectors import DenseVector, Vector


class LinearlyConstrained(ConstraintSet):
    """The set {w in constraint : A_ub w <= b_ub, A_eq w = b_eq, low <= w <= high}: a Lasso with linear constraints.

    The oracle is one linear program, solved by the dual simplex method of HiGHS, or directly for an l1 ball with one
    row; absolute values become differences of two non-negative vectors. Over the balls and simplices below its
    vertices are sparse: with m rows, at most about m + 1 entries are not zero. It is not compiled. The constructor
    checks that the set is not empty.

    Parameters
    ----------
    constraint : a constraint set
        An L1Ball, WeightedL1Ball, LimitedL1Ball, KSparsePolytope, NonnegativeL1Ball, Simplex, Hypersimplex, Knapsack,
        Box, LinfBall, IsotonicBox or Polytope, or a set of your own with ``linear_rows``.
    A_ub, b_ub : arrays of shapes (m, n_features) and (m,), optional
        The inequalities; A_ub may be sparse.
    A_eq, b_eq : arrays of shapes (m, n_features) and (m,), optional
        The equations; A_eq may be sparse.
    bounds : pair (low, high) or array of shape (n_features, 2), optional
        Bounds of the entries, for all or for each; None stands for no bound.

    Examples
    --------
    >>> from condgrad.constraints import L1Ball
    >>> balanced = LinearlyConstrained(L1Ball(2.0), A_eq=[[1.0, 1.0, 1.0]], b_eq=[0.0])
    >>> balanced.contains([1.0, -0.5, -0.5]), balanced.contains([1.0, 0.0, 0.0])
    (True, False)
    """

    is_polytope = True

    def __init__(
        self,
        constraint: object,
        A_ub: Data | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: Data | None = None,
        b_eq: ArrayLike | None = None,
        bounds: Bounds = None,
    ) -> None:
        owner = "LinearlyConstrained"
        self.constraint = as_constraint_set(constraint)
        self.A_ub, self.b_ub, self._norms_ub = as_rows(owner, "A_ub", A_ub, "b_ub", b_ub)
        self.A_eq, self.b_eq, self._norms_eq = as_rows(owner, "A_eq", A_eq, "b_eq", b_eq)
        self.n_features: int = dimension(owner, self.A_ub, self.A_eq, bounds, self.constraint.n_features)
        self.constraint.check_features(self.n_features)
        self.bounds = as_bounds(owner, bounds, self.n_features)
        own = self.constraint.linear_rows(self.n_features)
        if own is None:
            raise TypeError(
                "constraint of LinearlyConstrained must be an L1Ball, WeightedL1Ball, LimitedL1Ball, "
                "KSparsePolytope, NonnegativeL1Ball, Simplex, Hypersimplex, Knapsack, Box, LinfBall, IsotonicBox or "
                f"Polytope; got {type(self.constraint).__qualname__}."
            )
        self.vertex = DenseVertex if self.constraint.vertex is DenseVertex else SparseVertex
        self._rows = self._cut(own)
        self._program: Polytope = _Cut(self._rows)

    def __repr__(self) -> str:
        n_ub, n_eq = (0 if A is None else A.shape[0] for A in (self.A_ub, self.A_eq))
        return f"LinearlyConstrained({self.constraint!r}, <{n_ub} inequalities, {n_eq} equations>)"

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the set for a checkpoint: its settings, without the model of its linear program."""
        return self.constraint, self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds

    def lmo(self, r: Vector) -> Vertex:
        """Return the vertex that the simplex method finds."""
        cost = as_array(r)
        w = self._rows.coefficients(self._program.lmo(DenseVector(self._rows.cost(cost))).values)
        if self.vertex is DenseVertex:
            return DenseVertex(w)
        indices = np.flatnonzero(w)
        indices = indices if indices.size else np.zeros(1, dtype=np.int64)
        return SparseVertex(indices, w[indices])

    def far_vertices(self, n_features: int) -> tuple[Vertex, Vertex]:
        """Return those of the linear program."""
        first, second = (end.to_dense(self._rows.low.size) for end in self._program.far_vertices(self._rows.low.size))
        return DenseVertex(self._rows.coefficients(first)), DenseVertex(self._rows.coefficients(second))

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus a bound by the multipliers of the linear program, rounded up."""
        return shortfall(lambda x: -self._program.least(self._rows.cost(x.astype(np.float64))), r, s)

    def reach(self, c: np.ndarray) -> float:
        """Return the reach of the set before it is cut: a bound."""
        return float(self.constraint.reach(c))

    def violation(self, w: np.ndarray) -> float:
        """Return the largest of the set's own violation and the distances to the half-spaces and hyperplanes."""
        excess = [[self.constraint.violation(w)], self.bounds[:, 0] - w, w - self.bounds[:, 1]]
        if self.A_ub is not None:
            excess.append(self.A_ub @ w - self.b_ub)
        if self.A_eq is not None:
            excess.append(np.abs(self.A_eq @ w - self.b_eq))
        return float(np.concatenate(excess).max())

    @property
    def is_violation_searched(self) -> bool:
        """Whether that of the set before it is cut is a search."""
        return bool(self.constraint.is_violation_searched)

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the diameter of the set before it is cut: a bound."""
        return float(self.constraint.diameter(order, self.n_features))

    def linear_rows(self, n_features: int) -> LinearRows:
        """Return the rows and bounds of the linear program, those of the set that is cut first."""
        return self._rows

    def multipliers(self, r: np.ndarray) -> Multipliers:
        """Return the multipliers of rows and ``bounds`` for the gradient ``r``, and the normal of ``constraint``."""
        found = self._program.multipliers(self._rows.cost(r))
        ub = found.ub[found.ub.size - self._norms_ub.size :]
        eq = found.eq[found.eq.size - self._norms_eq.size :]
        lower, upper = self._multipliers_of_bounds(found)
        rest = r - lower + upper
        for A, y in ((self.A_ub, ub), (self.A_eq, eq)):
            rest = rest if A is None else rest + A.T @ y
        return Multipliers(ub / self._norms_ub, eq / self._norms_eq, lower, upper, -rest)

    def _multipliers_of_bounds(self, found: Multipliers) -> tuple[np.ndarray, np.ndarray]:
        """Return the multipliers of the bounds where they are at least as tight as those of ``constraint``."""
        d, (low, high) = self.n_features, self.bounds.T
        lower, upper = found.lower[:d], found.upper[:d]
        if self._rows.is_split:  # w >= low says v <= -low where low is negative; w <= high says v >= -high likewise
            lower = np.where(low < 0.0, found.upper[d:], lower)
            upper = np.where(high < 0.0, found.lower[d:], upper)
        own_low, own_high = self._own_bounds
        return np.where(low >= own_low, lower, 0.0), np.where(high <= own_high, upper, 0.0)

    def _cut(self, own: LinearRows) -> LinearRows:
        """Return the rows of the set that is cut, and those that cut it."""
        d, (low, high) = self.n_features, self.bounds.T
        self._own_bounds = (own.low[:d] - own.high[d:], own.high[:d] - own.low[d:]) if own.is_split else own[:2]
        self._check_bounds(np.maximum(low, self._own_bounds[0]), np.minimum(high, self._own_bounds[1]))
        A_ub, A_eq = self.A_ub, self.A_eq
        if own.is_split:
            A_ub, A_eq = with_opposite(A_ub), with_opposite(A_eq)
            # Where an entry may have one sign only, u or v is 0.
            low, high = (np.append(np.maximum(low, 0.0), np.maximum(-high, 0.0)),
                         np.append(np.maximum(high, 0.0), np.maximum(-low, 0.0)))  # fmt: skip
        ub, eq = stacked((own.A_ub, own.b_ub), (A_ub, self.b_ub)), stacked((own.A_eq, own.b_eq), (A_eq, self.b_eq))
        return LinearRows(np.maximum(low, own.low), np.minimum(high, own.high), *ub, *eq, own.is_split)

    def _check_bounds(self, low: np.ndarray, high: np.ndarray) -> None:
        if (low > high).any():
            j = int((low > high).argmax())
            raise ValueError(
                f"LinearlyConstrained is empty: feature {j} would have to lie between {low[j]:g} and {high[j]:g}. "
                "Relax its bounds."
            )


class _Cut(Polytope):
    """The linear program: the set of all x that stand for points of the set."""

    _empty = "LinearlyConstrained"

    def __init__(self, rows: LinearRows) -> None:
        self._rows = rows
        low, high, A_ub, b_ub, A_eq, b_eq, _ = rows
        super().__init__(A_ub, b_ub, A_eq, b_eq, np.column_stack([low, high]))

    def _generic(self) -> np.ndarray:
        """Return costs of w, so that the ends do not have both u and v of an entry."""
        n_features = self.n_features // 2 if self._rows.is_split else self.n_features
        return self._rows.cost(generic(n_features))
