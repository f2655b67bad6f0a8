"""Positive semidefinite matrices of bounded trace."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._capped import project_capped
from condgrad.constraints._matrices import SymmetricSet
from condgrad.constraints._rounding import of_decomposition
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.settings import check_positive
from condgrad.linalg.vectors import Vector


class PSDTraceBall(SymmetricSet):
    """Symmetric positive semidefinite matrices with a trace of at most ``trace``: kernels, covariances, metrics.

    Parameters
    ----------
    size : int
        The number of rows.
    trace : float

    Examples
    --------
    >>> PSDTraceBall(2).lmo(np.array([2.0, 0.0, 0.0, 1.0])).to_dense(4)
    array([0., 0., 0., 0.])
    """

    has_absolute_values = True

    has_projection = True

    def __init__(self, size: int, trace: float = 1.0) -> None:
        super().__init__(size)
        check_positive("PSDTraceBall", "trace", trace)
        self.trace = float(trace)

    def lmo(self, r: Vector | np.ndarray) -> DenseVertex:
        """Return trace v v' for the smallest eigenvalue of r where that is negative, else 0."""
        values, vectors = self.spectrum(r)
        v = vectors[:, 0] if values[0] < 0.0 else np.zeros(self.size)
        return DenseVertex((self.trace * np.outer(v, v)).ravel())

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return trace times the error of an eigenvalue, relative to the Frobenius norm of r."""
        return of_decomposition(self.trace, self.as_matrix(r))

    def excess(self, w: np.ndarray) -> float:
        """Return the largest of the excess of the trace, minus the smallest eigenvalue, and the asymmetry."""
        values = self.spectrum(w)[0]
        return max(float(values.sum()) - self.trace, -float(values[0]), self.asymmetry(w))

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return sqrt(2) trace in l2 (trace for size 1), trace in l-infinity, and a bound by the size in l1."""
        if order == np.inf or self.size == 1:
            return self.trace
        return float(np.sqrt(2.0) * self.trace * self.size ** max(0.0, 2.0 * (1.0 / order - 0.5)))

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest matrix: the eigenvalues are projected."""
        values, vectors = self.spectrum(w)
        kept = np.maximum(values, 0.0)
        if kept.sum() > self.trace:
            kept = project_capped(values, self.trace, self.trace)
        return ((vectors * kept) @ vectors.T).ravel()
