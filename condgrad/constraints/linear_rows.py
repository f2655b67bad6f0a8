"""Sets of linear inequalities, equations and bounds, for linear and quadratic programs; their Lagrange multipliers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.linalg.polyhedron import Polyhedron
from condgrad.linalg.quadratic_program import QuadraticProgram, face_at


class LinearRows(NamedTuple):
    """The set {x : A_ub x <= b_ub, A_eq x = b_eq, low <= x <= high}, where x stands for w.

    If ``is_split``, x = (u, v) with w = u - v and u, v >= 0, so that u + v can stand for |w|. The matrices are None
    without rows; they may be sparse.

    Examples
    --------
    >>> from condgrad.constraints import Knapsack
    >>> rows = Knapsack(prices=[1.0, 2.0], budget=3.0, upper=2.0).linear_rows(2)
    >>> rows.A_ub, rows.b_ub, rows.high
    (array([[1., 2.]]), array([3.]), array([2., 2.]))
    """

    low: np.ndarray
    high: np.ndarray
    A_ub: Any = None
    b_ub: np.ndarray | None = None
    A_eq: Any = None
    b_eq: np.ndarray | None = None
    is_split: bool = False

    @property
    def n_rows(self) -> int:
        """The number of inequalities and equations."""
        return sum(0 if b is None else b.size for b in (self.b_ub, self.b_eq))

    def lifted(self, w: np.ndarray) -> np.ndarray:
        """Return the x that stands for w."""
        return np.concatenate([np.maximum(w, 0.0), np.maximum(-w, 0.0)]) if self.is_split else w

    def cost(self, r: np.ndarray) -> np.ndarray:
        """Return the costs c of x for which <c, x> = <r, w>."""
        return np.concatenate([r, -r]) if self.is_split else r

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """Return the w that x stands for."""
        if not self.is_split:
            return x
        d = x.size // 2
        return x[:d] - x[d:]

    def nearest(self, w: np.ndarray, slack: float | None = None) -> np.ndarray | None:
        """Return the point of the set nearest to w (in x), by a quadratic program; None where it does not end.

        For a w that is outside by rounding, what is tight there up to ``slack`` is tight at the point, exactly.
        """
        x, polyhedron = self.lifted(w), self.polyhedron()
        program = QuadraticProgram(np.zeros(x.size), np.eye(x.size), x, polyhedron)
        found = program.minimise(None if slack is None else face_at(polyhedron, x, slack))
        return None if found is None else self.coefficients(found.x)

    def scaled(self, factor: float) -> LinearRows:
        """Return the rows of the set {factor x}."""
        b_ub, b_eq = (None if b is None else factor * b for b in (self.b_ub, self.b_eq))
        return self._replace(low=factor * self.low, high=factor * self.high, b_ub=b_ub, b_eq=b_eq)

    def polyhedron(self) -> Polyhedron:
        """Return the same set with all rows in one matrix, inequalities first."""
        A, _ = stacked((self.A_ub, self.b_ub), (self.A_eq, self.b_eq))
        b_ub, b_eq = (np.empty(0) if b is None else b for b in (self.b_ub, self.b_eq))
        below = np.full(b_ub.size, -np.inf)
        A = np.zeros((0, self.low.size)) if A is None else A
        return Polyhedron(self.low, self.high, A, np.append(below, b_eq), np.append(b_ub, b_eq))


class Multipliers(NamedTuple):
    """Lagrange multipliers at w: grad F(w) + A_ub' ub + A_eq' eq - lower + upper + normal = 0.

    All but ``eq`` and ``normal`` are at least 0. They prove the gap: multiplied by the slacks of their rows and bounds
    at w (and with what ``normal`` adds, see there) they sum to the Frank-Wolfe gap. So the closer w is to the optimum,
    the closer the multipliers of rows that are not tight are to 0. Where the gap is 0, ub is the rate at which F*
    decreases if b_ub grows; for eq and b_eq likewise. With linearly dependent tight rows they are not unique.

    Attributes
    ----------
    ub, eq : arrays
        One entry per row of A_ub and of A_eq, in the units in which the rows were given; empty without rows. For an
        IsotonicBox the rows are w_j - w_(j+1) <= 0; for a Knapsack the row is its budget.
    lower, upper : arrays of shape (n_features,)
        One entry per bound; 0 where there is none.
    normal : array of shape (n_features,)
        For LinearlyConstrained over a ball or a simplex, the part of the set before it is cut: a normal vector of that
        set at w, up to the gap, such as lambda sign(w) for an L1Ball. It is 0 for sets of rows and bounds alone.

    Examples
    --------
    >>> import condgrad as cg
    >>> share = cg.constraints.Polytope(A_eq=[[1.0, 1.0]], b_eq=[1.0], bounds=(0.0, None))
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 3.0], cg.losses.Squared(), share)
    >>> multipliers = cg.minimize(problem).multipliers
    >>> print(multipliers.eq.round(6), multipliers.lower.round(6))
    [1.] [0.5 0. ]
    """

    ub: np.ndarray
    eq: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    normal: np.ndarray


def split_rows(weights: np.ndarray, limit: float, above: np.ndarray, below: np.ndarray | None = None) -> LinearRows:
    """Return the rows of {w : sum_j weights_j |w_j| <= limit, -below_j <= w_j <= above_j}; by default below = above."""
    high = np.append(above, above if below is None else below)
    return LinearRows(np.zeros(high.size), high, np.tile(weights, 2)[None, :], np.array([limit]), is_split=True)


def stacked(*systems: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the systems of rows (A, b) as one, or None twice."""
    given = [(A, b) for A, b in systems if A is not None]
    if not given:
        return None, None
    rows = [A for A, _ in given]
    is_sparse = any(scipy.sparse.issparse(A) for A in rows)
    return scipy.sparse.vstack(rows, "csr") if is_sparse else np.vstack(rows), np.concatenate([b for _, b in given])


def with_opposite(A: Any) -> Any:
    """Return the matrix [A, -A], by which rows of w become those of u and v; None for None."""
    if A is None:
        return None
    return scipy.sparse.hstack([A, -A], "csr") if scipy.sparse.issparse(A) else np.hstack([A, -A])
