"""Sets cut by linear inequalities and equations."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.constraints._rounding import shortfall
from condgrad.constraints._rows import Bounds, as_bounds, as_rows, dimension
from condgrad.constraints.balls.box import Box
from condgrad.constraints.balls.linf_ball import LinfBall
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.constraints.polytopes.hypersimplex import Hypersimplex
from condgrad.constraints.polytopes.polytope import Polytope
from condgrad.constraints.polytopes.simplex import Simplex
from condgrad.constraints.sparse.k_sparse_polytope import KSparsePolytope
from condgrad.constraints.sparse.l1_ball import L1Ball
from condgrad.constraints.sparse.nonnegative_l1_ball import NonnegativeL1Ball
from condgrad.constraints.sparse.weighted_l1_ball import WeightedL1Ball
from condgrad.constraints.vertices import DenseVertex, SparseVertex, Vertex
from condgrad.linalg.convert import Data
from condgrad.linalg.vectors import DenseVector, Vector


class LinearlyConstrained(ConstraintSet):
    """The set {w in constraint : A_ub w <= b_ub, A_eq w = b_eq, low <= w <= high}: a Lasso with linear constraints.

    The oracle is one linear program, solved by the dual simplex method of HiGHS through scipy; absolute values become
    differences of two non-negative vectors. Over the balls and simplices below its vertices are sparse: with m rows,
    at most about m + 1 entries are not zero. It is not compiled. The constructor checks that the set is not empty.

    Parameters
    ----------
    constraint : a constraint set
        An L1Ball, WeightedL1Ball, KSparsePolytope, NonnegativeL1Ball, Simplex, Hypersimplex, Box, LinfBall or Polytope.
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
        self.A_ub, self.b_ub = as_rows(owner, "A_ub", A_ub, "b_ub", b_ub)
        self.A_eq, self.b_eq = as_rows(owner, "A_eq", A_eq, "b_eq", b_eq)
        self.n_features: int = dimension(owner, self.A_ub, self.A_eq, bounds, self.constraint.n_features)
        self.constraint.check_features(self.n_features)
        self.bounds = as_bounds(owner, bounds, self.n_features)
        form = _linear_form(self.constraint, self.n_features)
        self.vertex = SparseVertex if form.is_sparse else DenseVertex
        self._is_split = form.is_split
        self._program = self._program_of(form)

    def __repr__(self) -> str:
        n_ub, n_eq = (0 if A is None else A.shape[0] for A in (self.A_ub, self.A_eq))
        return f"LinearlyConstrained({self.constraint!r}, <{n_ub} inequalities, {n_eq} equations>)"

    def lmo(self, r: Vector) -> Vertex:
        """Return the vertex that the simplex method finds."""
        cost = as_array(r)
        x = self._program.lmo(DenseVector(self._cost_of(cost))).values
        w = x[: cost.size] - x[cost.size :] if self._is_split else x
        if self.vertex is DenseVertex:
            return DenseVertex(w)
        indices = np.flatnonzero(w)
        indices = indices if indices.size else np.zeros(1, dtype=np.int64)
        return SparseVertex(indices, w[indices])

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus a bound by the multipliers of the linear program, rounded up."""
        return shortfall(lambda x: -self._program.least(self._cost_of(x.astype(np.float64))), r, s)

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

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the diameter of the set before it is cut: a bound."""
        return float(self.constraint.diameter(order, self.n_features))

    def _cost_of(self, r: np.ndarray) -> np.ndarray:
        """Return the costs of the linear program."""
        return np.concatenate([r, -r]) if self._is_split else r

    def _program_of(self, form: _LinearForm) -> Polytope:
        """Return the linear program for x = w, or for x = (u, v) with w = u - v and u, v >= 0."""
        low, high = np.maximum(form.low, self.bounds[:, 0]), np.minimum(form.high, self.bounds[:, 1])
        if (low > high).any():
            j = int((low > high).argmax())
            raise ValueError(
                f"LinearlyConstrained is empty: feature {j} would have to lie between {low[j]:g} and {high[j]:g}. "
                "Relax its bounds."
            )
        own = [(form.A_ub, form.b_ub), (form.A_eq, form.b_eq)]
        added = [(self.A_ub, self.b_ub), (self.A_eq, self.b_eq)]
        if self._is_split:  # the form's own rows are about |w| = u + v, the added ones about w = u - v
            own = [(_beside(A, 1.0), b) for A, b in own]
            added = [(_beside(A, -1.0), b) for A, b in added]
            # Where an entry may have one sign only, u or v is 0.
            low, high = (np.append(np.maximum(low, 0.0), np.maximum(-high, 0.0)),
                         np.append(np.maximum(high, 0.0), np.maximum(-low, 0.0)))  # fmt: skip
        return _Cut(*_stacked(own[0], added[0]), *_stacked(own[1], added[1]), np.column_stack([low, high]))


class _Cut(Polytope):
    _empty = "LinearlyConstrained"


class _LinearForm(NamedTuple):
    """A set as {w : A_ub x <= b_ub, A_eq x = b_eq, low <= w <= high}, where x is |w| if ``is_split``, else w."""

    low: np.ndarray
    high: np.ndarray
    A_ub: Any = None
    b_ub: ArrayLike | None = None
    A_eq: Any = None
    b_eq: ArrayLike | None = None
    is_split: bool = False
    is_sparse: bool = True


@functools.singledispatch
def _linear_form(constraint: object, d: int) -> _LinearForm:
    raise TypeError(
        "constraint of LinearlyConstrained must be an L1Ball, WeightedL1Ball, KSparsePolytope, NonnegativeL1Ball, "
        f"Simplex, Hypersimplex, Box, LinfBall or Polytope; got {type(constraint).__qualname__}."
    )


@_linear_form.register(L1Ball)
def _(ball: L1Ball, d: int) -> _LinearForm:
    size = np.full(d, ball.radius)
    return _LinearForm(-size, size, np.ones((1, d)), [ball.radius], is_split=True)


@_linear_form.register(WeightedL1Ball)
def _(ball: WeightedL1Ball, d: int) -> _LinearForm:
    weights = np.asarray(ball.weights)
    size = ball.radius / weights
    return _LinearForm(-size, size, weights[None, :], [ball.radius], is_split=True)


@_linear_form.register(KSparsePolytope)
def _(polytope: KSparsePolytope, d: int) -> _LinearForm:
    size = np.full(d, polytope.radius)
    return _LinearForm(-size, size, np.ones((1, d)), [polytope.k * polytope.radius], is_split=True)


@_linear_form.register(NonnegativeL1Ball)
def _(ball: NonnegativeL1Ball, d: int) -> _LinearForm:
    return _LinearForm(np.zeros(d), np.full(d, ball.radius), np.ones((1, d)), [ball.radius])


@_linear_form.register(Simplex)
def _(simplex: Simplex, d: int) -> _LinearForm:
    size = np.full(d, simplex.radius)
    return _LinearForm(np.zeros(d), size, A_eq=np.ones((1, d)), b_eq=[simplex.radius])


@_linear_form.register(Hypersimplex)
def _(polytope: Hypersimplex, d: int) -> _LinearForm:
    size = np.full(d, polytope.radius)
    return _LinearForm(np.zeros(d), size, A_eq=np.ones((1, d)), b_eq=[polytope.k * polytope.radius])


@_linear_form.register(Box)
def _(box: Box, d: int) -> _LinearForm:
    return _LinearForm(np.broadcast_to(box.lower, d), np.broadcast_to(box.upper, d), is_sparse=False)


@_linear_form.register(LinfBall)
def _(ball: LinfBall, d: int) -> _LinearForm:
    return _LinearForm(np.full(d, -ball.radius), np.full(d, ball.radius), is_sparse=False)


@_linear_form.register(Polytope)
def _(polytope: Polytope, d: int) -> _LinearForm:
    low, high = polytope.bounds.T
    return _LinearForm(low, high, polytope.A_ub, polytope.b_ub, polytope.A_eq, polytope.b_eq, is_sparse=False)


def _beside(A: Any, factor: float) -> Any:
    """Return the matrix [A, factor A]."""
    if A is None:
        return None
    return scipy.sparse.hstack([A, factor * A], "csr") if scipy.sparse.issparse(A) else np.hstack([A, factor * A])


def _stacked(*systems: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the systems of rows as one, or None twice."""
    given = [(A, b) for A, b in systems if A is not None]
    if not given:
        return None, None
    rows = [A for A, _ in given]
    is_sparse = any(scipy.sparse.issparse(A) for A in rows)
    return scipy.sparse.vstack(rows, "csr") if is_sparse else np.vstack(rows), np.concatenate([b for _, b in given])
