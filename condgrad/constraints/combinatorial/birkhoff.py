"""The Birkhoff polytope."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._parameters import as_positive_integer
from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.constraints._rounding import WIDE_EPS, shortfall
from condgrad.constraints.vertices import SparseVertex, Vertex
from condgrad.linalg.rounding import UNIT
from condgrad.linalg.vectors import Vector

_NOTHING = 1e-13  # weight up to which what is left is rounding


class Birkhoff(ConstraintSet):
    """The Birkhoff polytope of doubly stochastic n x n matrices, for matchings: w is the matrix, row after row.

    Its vertices are the permutation matrices; the oracle is an assignment problem, solved by scipy in O(n^3). It is not
    compiled.

    Parameters
    ----------
    n : int
        The number of rows; there are n^2 features.

    Examples
    --------
    >>> Birkhoff(2).contains([0.3, 0.7, 0.7, 0.3]), Birkhoff(2).contains([0.3, 0.7, 0.3, 0.7])
    (True, False)
    """

    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True

    def __init__(self, n: int) -> None:
        self.n = as_positive_integer("Birkhoff", "n", n)
        self.n_features: int = self.n**2

    def __repr__(self) -> str:
        return f"Birkhoff(n={self.n})"

    def lmo(self, r: Vector) -> SparseVertex:
        """Return the permutation with the smallest sum of entries of r."""
        cost = as_array(r)
        largest = np.abs(cost).max()
        return self._permutation(cost / largest if largest > 0.0 else cost)

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus the value of a feasible point of the dual linear program, rounded up.

        With prices v_j of columns, sum_i min_j (r_ij - v_j) + sum_j v_j is a bound for any v; the best prices are
        shortest distances between columns, where a step moves one row from its column to another one.
        """

        def top(x: np.ndarray) -> np.floating:
            costs = x.reshape(self.n, self.n)
            taken = s.to_dense(self.n_features).reshape(self.n, self.n).argmax(axis=1)
            steps = (costs - costs[np.arange(self.n), taken][:, None]).astype(np.float64)
            v = np.zeros(self.n)
            for _ in range(self.n):
                shorter = np.minimum(v, (v[taken][:, None] + steps).min(axis=0))
                if (v - shorter).max() <= UNIT * np.abs(v).max():
                    break
                v = shorter
            rounding = 8 * (self.n + 8) * WIDE_EPS * self.n * (1.0 + np.abs(v).max())
            return rounding - (costs - v).min(axis=1).sum() - v.sum(dtype=np.longdouble)

        return shortfall(top, r, s)

    def violation(self, w: np.ndarray) -> float:
        """Return the largest of -w_ij and the differences of the sums of rows and columns to 1."""
        table = w.reshape(self.n, self.n)
        sums = np.concatenate([table.sum(axis=0), table.sum(axis=1)])
        return float(np.maximum(-w.min(), np.abs(sums - 1.0).max()))

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return (2n)^(1/order), the distance of permutations that have no place in common: exact."""
        return (2.0 * self.n) ** (1.0 / order) if self.n > 1 else 0.0

    def decompose(self, w: np.ndarray) -> list[tuple[float, Vertex]]:
        """Return at most n^2 permutations, by Birkhoff's proof.

        It repeatedly subtracts a permutation within the support, with the largest possible weight.
        """
        rest = np.array(w, dtype=np.float64)
        parts: list[tuple[float, Vertex]] = []
        for _ in range(self.n_features):
            if rest.sum() <= _NOTHING * self.n:
                break
            # Logarithms, so that a permutation with an entry that is zero or rounding is worse than any other.
            s = self._permutation(-np.log(np.maximum(rest, 1e-300)))
            weight = float(rest[s.indices].min())
            if weight <= _NOTHING:
                break
            rest[s.indices] -= weight
            parts.append((weight, s))
        total = sum(weight for weight, _ in parts)
        return [(weight / total, s) for weight, s in parts]

    def _permutation(self, cost: np.ndarray) -> SparseVertex:
        from scipy.optimize import linear_sum_assignment  # here, because the import is slow

        rows, columns = linear_sum_assignment(cost.reshape(self.n, self.n))
        return SparseVertex(rows * self.n + columns, np.ones(self.n))
