"""Polytopes given by linear inequalities and equations."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._protocol import ConstraintSet, as_array, total_width
from condgrad.constraints._rounding import WIDE_EPS, normalised, rounded_up, shortfall, times_power
from condgrad.constraints._rows import Bounds, as_bounds, as_rows, dimension
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.convert import Data
from condgrad.linalg.rounding import UNIT
from condgrad.linalg.vectors import DenseVector, Vector

# The tightest tolerances that HiGHS accepts: rows are scaled to norm 1 and the set to a size of about 1, so a vertex is
# outside of a half-space by at most 1e-10 times the size of the set.
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_INFEASIBLE = 2  # a status of scipy.optimize.linprog
_MODERATE = 16.0  # size of the scaled set: between this and its inverse it needs no other scale
_MAX_SCALES = 8  # scales that are tried


class Polytope(ConstraintSet):
    """The polytope {w : A_ub w <= b_ub, A_eq w = b_eq, low <= w <= high}.

    The oracle is a linear program, solved by the dual simplex method of HiGHS through scipy. It is not compiled.
    The tolerances of HiGHS are absolute, so it gets the set scaled to a size of about 1. The constructor checks by a
    few linear programs that the set is neither empty nor unbounded.

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
        self.A_ub, self.b_ub = as_rows("Polytope", "A_ub", A_ub, "b_ub", b_ub)
        self.A_eq, self.b_eq = as_rows("Polytope", "A_eq", A_eq, "b_eq", b_eq)
        self.n_features: int = dimension("Polytope", self.A_ub, self.A_eq, bounds)
        self.bounds = as_bounds("Polytope", bounds, self.n_features)
        self._latest: Any = None  # the costs of the last linear program, and its multipliers
        sides = np.concatenate([b for b in (self.b_ub, self.b_eq, self.bounds.ravel()) if b is not None])
        sides = np.abs(sides[np.isfinite(sides) & (sides != 0.0)])
        self._scale = _power_of_two(sides.max(initial=0.0))
        self._check_not_empty()
        self._check_bounded()
        self._fit_scale(_power_of_two(sides.min(initial=1.0)))

    def __repr__(self) -> str:
        n_ub, n_eq = (0 if A is None else A.shape[0] for A in (self.A_ub, self.A_eq))
        return f"Polytope(<{n_ub} inequalities, {n_eq} equations, {self.n_features} features>)"

    def lmo(self, r: Vector) -> DenseVertex:
        """Return the vertex that the simplex method finds."""
        cost = normalised(as_array(r))[0].astype(np.float64)
        solution = self._solve(cost, self.bounds)
        if solution.status != 0:
            raise RuntimeError(f"HiGHS could not minimise over {self!r}: {solution.message}")
        self._latest = cost, np.minimum(solution.ineqlin.marginals, 0.0), solution.eqlin.marginals
        has_free_entries = np.isinf(self.bounds).all(axis=1).any()
        z = self._moved_to_vertex(solution.x) if has_free_entries else solution.x
        return DenseVertex(self._scale * np.ascontiguousarray(z))

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
        if self._latest is None or not np.array_equal(self._latest[0], cost):
            self.lmo(DenseVector(cost))
        rest, sizes, n_terms = cost, np.abs(cost), 1
        total = np.longdouble(0.0)
        for A, b, y in zip((self.A_ub, self.A_eq), (self.b_ub, self.b_eq), self._latest[1:]):
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
        most = -self.least(-signed.astype(np.float64)) + _sum_above(-signed * self._anchors)
        return times_power(most, exponent)

    @functools.cached_property
    def _limits(self) -> np.ndarray:
        """A box around the set: the bounds, made finite and narrower by linear programs if they are wide."""
        low, high = self.bounds.T
        if (high - low).max() <= 100.0 * self._scale:
            return self.bounds
        if np.isfinite(self._anchors).all():
            solution = self._solve(np.where(np.isfinite(low), -1.0, 1.0), self.bounds)
            found = self._scale * solution.x
            # Twice the distance: the solution is not exact, but its error is smaller than that.
            radius = 2.0 * np.abs(found - self._anchors).sum() + self._scale
            center = self._anchors
        else:
            center = self.start(low.size).to_dense(low.size)
            radius = 2.0 * total_width(self, np.ones(low.size)) + self._scale
        return np.column_stack([np.maximum(low, center - radius), np.minimum(high, center + radius)])

    def _solve(self, cost: np.ndarray, bounds: np.ndarray, homogeneous: bool = False) -> Any:
        from scipy.optimize import linprog  # here, because the import is slow

        if homogeneous:
            b_ub, b_eq = (None if b is None else 0.0 * b for b in (self.b_ub, self.b_eq))
        else:
            b_ub, b_eq = (None if b is None else b / self._scale for b in (self.b_ub, self.b_eq))
            bounds = bounds / self._scale
        return linprog(cost, self.A_ub, b_ub, self.A_eq, b_eq, bounds, method="highs-ds", options=_OPTIONS)

    def _check_not_empty(self, cost: ArrayLike = 0.0) -> Any:
        solution = self._solve(np.broadcast_to(cost, self.n_features), self.bounds)
        if solution.status == _INFEASIBLE:
            raise ValueError(f"{self._empty} is empty: no w satisfies all of its constraints. Relax one of them.")
        return solution

    def _fit_scale(self, smallest: float) -> None:
        """Set the scale to the size of the set, estimated from its two ends along a generic direction."""
        cost = _generic(self.n_features)
        for _ in range(_MAX_SCALES):
            ends = [self._check_not_empty(sign * cost).x for sign in (1.0, -1.0)]
            size = max((np.abs(z).max() for z in ends if z is not None), default=1.0)
            if 1.0 / _MODERATE <= size <= _MODERATE or (size == 0.0 and self._scale <= smallest):
                return
            # A set that cannot be distinguished from {0} may be as small as the smallest of its sides.
            self._scale = smallest if size == 0.0 else self._scale * _power_of_two(size)

    def _check_bounded(self) -> None:
        if np.isfinite(self.bounds).all():
            return
        # The cone of the directions that never leave the set: {0} if the set is bounded. Along any other direction of
        # the cone, a generic cost decreases or increases.
        cone = np.where(np.isfinite(self.bounds), 0.0, [-1.0, 1.0])
        cost = _generic(self.n_features)
        for sign in (1.0, -1.0):
            solution = self._solve(sign * cost, cone, homogeneous=True)
            if solution.status == 0 and solution.fun < -1e-7:
                j = int(np.abs(solution.x).argmax())
                raise ValueError(
                    f"the Polytope is unbounded: entry {j} of w can go to {'' if solution.x[j] > 0 else 'minus '}"
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


def _generic(n_features: int) -> np.ndarray:
    """Return costs that no direction of a set is likely to be orthogonal to."""
    sizes = np.random.default_rng(0).uniform(1.0, 2.0, n_features)
    return sizes * np.random.default_rng(1).choice([-1.0, 1.0], n_features)


def _sum_below(terms: np.ndarray) -> np.floating:
    """Return a lower bound of the sum of wide terms that are the result of a few operations each."""
    return terms.sum() - 2 * (terms.size + 4) * WIDE_EPS * np.abs(terms).sum()


def _sum_above(terms: np.ndarray) -> np.floating:
    return -_sum_below(-terms)
