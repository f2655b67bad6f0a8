"""The Fantope: the hull of projections onto k dimensions."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._capped import project_capped
from condgrad.constraints._matrices import SymmetricSet
from condgrad.constraints._parameters import as_positive_integer
from condgrad.constraints._rounding import of_decomposition
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.vectors import Vector


class Fantope(SymmetricSet):
    """Symmetric matrices with eigenvalues in [0, 1] that sum to k: the hull of projections onto k-dimensional spaces.

    The minimum of <r, .> over it is the sum of the k smallest eigenvalues of r (Ky Fan). It serves for principal
    components, sparse or robust.

    Parameters
    ----------
    size : int
        The number of rows.
    k : int
        The dimension of the spaces.

    Examples
    --------
    >>> Fantope(3, k=2).lmo(np.diag([2.0, -1.0, 1.0]).ravel()).to_dense(9).reshape(3, 3).diagonal()
    array([0., 1., 1.])
    """

    has_projection = True

    def __init__(self, size: int, k: int = 1) -> None:
        super().__init__(size)
        self.k = as_positive_integer("Fantope", "k", k)
        if self.k > self.size:
            raise ValueError(f"k of Fantope must be at most the size {self.size}; got {self.k}.")

    def lmo(self, r: Vector | np.ndarray) -> DenseVertex:
        """Return the projection onto the eigenvectors of the k smallest eigenvalues of r."""
        best = self.spectrum(r)[1][:, : self.k]
        return DenseVertex((best @ best.T).ravel())

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return k times the error of an eigenvalue, relative to the Frobenius norm of r."""
        return of_decomposition(self.k, self.as_matrix(r))

    def excess(self, w: np.ndarray) -> float:
        """Return the largest of |sum of eigenvalues - k|, how far they leave [0, 1], and the asymmetry."""
        values = self.spectrum(w)[0]
        return max(abs(float(values.sum()) - self.k), -float(values[0]), float(values[-1]) - 1.0, self.asymmetry(w))

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return sqrt(2 min(k, size - k)) in l2, at most 1 in l-infinity, and a bound by the size in l1."""
        if self.k == self.size:
            return 0.0
        if order == np.inf:
            return 1.0
        width = np.sqrt(2.0 * min(self.k, self.size - self.k))
        return float(width * self.size ** max(0.0, 2.0 * (1.0 / order - 0.5)))

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest matrix: the eigenvalues are projected onto the capped simplex."""
        values, vectors = self.spectrum(w)
        return ((vectors * project_capped(values, 1.0, float(self.k))) @ vectors.T).ravel()
