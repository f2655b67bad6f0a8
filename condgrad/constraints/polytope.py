"""Polytopes given by linear inequalities and equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.constraints._rows import as_bounds, as_rows, dimension
from condgrad.constraints.vertices import DenseVertex

# The tightest that HiGHS accepts: rows are scaled to norm 1, so a vertex lies within 1e-10 of every half-space.
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_INFEASIBLE = 2  # a status of scipy.optimize.linprog


class Polytope(ConstraintSet):
    """The polytope {w : A_ub w <= b_ub, A_eq w = b_eq, low <= w <= high}.

    The oracle is a linear program, solved by the dual simplex method of HiGHS through scipy. It is not compiled.
    That the set is neither empty nor unbounded is checked when it is made, by up to three linear programs.

    Parameters
    ----------
    A_ub, b_ub : arrays of shapes (m, n_features) and (m,), optional
        The inequalities; A_ub may be sparse.
    A_eq, b_eq : arrays of shapes (m, n_features) and (m,), optional
        The equations; A_eq may be sparse.
    bounds : pair (low, high) or array of shape (n_features, 2), optional
        Bounds of the entries, for all or for each; None stands for no bound. Without it entries are free (other than
        in scipy.optimize.linprog, where they would be non-negative).

    Examples
    --------
    >>> triangle = Polytope(A_ub=[[1.0, 1.0]], b_ub=[1.0], bounds=(0.0, None))
    >>> triangle.contains([0.5, 0.5]), triangle.contains([0.6, 0.6])
    (True, False)
    """

    vertex = DenseVertex
    is_polytope = True
    _empty = "the Polytope"  # who is to blame where there is no point

    def __init__(
        self, A_ub: Any = None, b_ub: Any = None, A_eq: Any = None, b_eq: Any = None, bounds: Any = None
    ) -> None:
        self.A_ub, self.b_ub = as_rows("Polytope", "A_ub", A_ub, "b_ub", b_ub)
        self.A_eq, self.b_eq = as_rows("Polytope", "A_eq", A_eq, "b_eq", b_eq)
        self.n_features: int = dimension("Polytope", self.A_ub, self.A_eq, bounds)
        self.bounds = as_bounds("Polytope", bounds, self.n_features)
        self._check_not_empty()
        self._check_bounded()

    def __repr__(self) -> str:
        n_ub, n_eq = (0 if A is None else A.shape[0] for A in (self.A_ub, self.A_eq))
        return f"Polytope(<{n_ub} inequalities, {n_eq} equations, {self.n_features} features>)"

    def lmo(self, r: Any) -> DenseVertex:
        """Return the vertex that the simplex method finds."""
        cost = as_array(r)
        largest = np.abs(cost).max()
        solution = self._solve(cost / largest if largest > 0.0 else cost, self.bounds)
        if solution.status != 0:
            raise RuntimeError(f"HiGHS could not minimise over {self!r}: {solution.message}")
        has_free_entries = np.isinf(self.bounds).all(axis=1).any()
        w = self._moved_to_vertex(solution.x) if has_free_entries else solution.x
        return DenseVertex(np.ascontiguousarray(w))

    def violation(self, w: np.ndarray) -> float:
        """Return the largest distance from ``w`` to a half-space or hyperplane of the description."""
        excess = [self.bounds[:, 0] - w, w - self.bounds[:, 1]]
        if self.A_ub is not None:
            excess.append(self.A_ub @ w - self.b_ub)
        if self.A_eq is not None:
            excess.append(np.abs(self.A_eq @ w - self.b_eq))
        return float(np.concatenate(excess).max())

    def _solve(self, cost: np.ndarray, bounds: np.ndarray, homogeneous: bool = False) -> Any:
        from scipy.optimize import linprog  # here, as it takes long to import

        b_ub, b_eq = ((None if b is None else 0.0 * b) if homogeneous else b for b in (self.b_ub, self.b_eq))
        return linprog(cost, self.A_ub, b_ub, self.A_eq, b_eq, bounds, method="highs-ds", options=_OPTIONS)

    def _check_not_empty(self) -> None:
        if self._solve(np.zeros(self.n_features), self.bounds).status == _INFEASIBLE:
            raise ValueError(f"{self._empty} is empty: no w satisfies all of its constraints. Relax one of them.")

    def _check_bounded(self) -> None:
        if np.isfinite(self.bounds).all():
            return
        # The directions that never leave the set: none but 0 where it is bounded. Along any other one, a generic
        # cost goes down or up.
        cone = np.where(np.isfinite(self.bounds), 0.0, [-1.0, 1.0])
        cost = np.random.default_rng(0).uniform(1.0, 2.0, self.n_features)
        cost *= np.random.default_rng(1).choice([-1.0, 1.0], self.n_features)
        for sign in (1.0, -1.0):
            solution = self._solve(sign * cost, cone, homogeneous=True)
            if solution.status == 0 and solution.fun < -1e-7:
                j = int(np.abs(solution.x).argmax())
                raise ValueError(
                    f"the Polytope is unbounded: entry {j} of w can go to {'' if solution.x[j] > 0 else 'minus '}"
                    "infinity. Add bounds."
                )

    def _moved_to_vertex(self, w: np.ndarray) -> np.ndarray:
        """Return a vertex that is as good as the solution ``w``, which may be none where entries without bounds tie.

        While the tight constraints leave a direction free, follow it to the next constraint. Costs do not change on
        the way: at a solution they are a combination of the tight rows.
        """
        from scipy.linalg import null_space  # here, as it takes long to import

        rows = [A.toarray() if scipy.sparse.issparse(A) else A for A in (self.A_ub, self.A_eq) if A is not None]
        A = np.vstack([*rows, np.eye(w.size), -np.eye(w.size)])
        sides = [b for b in (self.b_ub, self.b_eq) if b is not None]
        b = np.concatenate([*sides, self.bounds[:, 1], -self.bounds[:, 0]])
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
