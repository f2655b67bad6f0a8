"""Biases with shrinkage: least squares of a mean, of rows and of columns, drawn towards zero by so many entries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, cg

_ACCURACY = 1e-10


class Baselines(NamedTuple):
    """The prediction mean + rows[i] + columns[j], fixed before a matrix is fitted to what it leaves."""

    mean: float
    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(
        cls, i: np.ndarray, j: np.ndarray, y: np.ndarray, weight: np.ndarray, shape: tuple[int, int], shrinkage: float
    ) -> Baselines:
        r"""Return the weighted mean, and the biases of the deviations d from it.

        They minimise sum_t weight_t (d_t - a_i - b_j)^2 + shrinkage (||a||^2 + ||b||^2), so that a row of n entries
        with the mean deviation d has the bias n d / (n + shrinkage), were it alone (Koren 2008, equation 3).
        """
        m, mean = shape[0], float(np.average(y, weights=weight))
        S = scipy.sparse.coo_array((weight, (i, j)), shape=shape).tocsr()
        right = np.concatenate([np.bincount(i, weight * (y - mean), m), np.bincount(j, weight * (y - mean), shape[1])])
        diagonal = np.concatenate([S.sum(axis=1), S.sum(axis=0)]) + shrinkage

        def apply(x: np.ndarray) -> np.ndarray:
            return diagonal * x + np.concatenate([S @ x[m:], S.T @ x[:m]])

        size = right.size
        system = LinearOperator((size, size), matvec=apply, dtype=np.float64)
        scaled = LinearOperator((size, size), matvec=lambda x: x / diagonal, dtype=np.float64)
        x, _ = cg(system, right, rtol=_ACCURACY, maxiter=10 * size, M=scaled)
        return cls(mean, x[:m], x[m:])

    def at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the predictions at entries."""
        return self.mean + self.rows[i] + self.columns[j]
