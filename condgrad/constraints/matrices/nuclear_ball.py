"""The nuclear-norm ball: matrices of low rank."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._capped import project_capped
from condgrad.constraints._matrices import MatrixSet
from condgrad.constraints._protocol import known_features
from condgrad.constraints._rounding import of_decomposition
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.factored import Factored, Iterate
from condgrad.linalg.settings import check_positive
from condgrad.linalg.vectors import Vector


class NuclearBall(MatrixSet):
    """Matrices whose singular values sum to at most ``radius`` (also called the trace-norm ball).

    Its vertices have rank one, so a solution under a small radius has a low rank. In a
    :class:`~condgrad.CompletionProblem` the matrix is stored as factors and never formed; elsewhere w
    is the matrix row by row, and the oracle computes a singular value decomposition of r.

    Parameters
    ----------
    radius : float
    shape : (int, int), optional
        The shape of the matrix; a CompletionProblem does not need it.

    Examples
    --------
    >>> ball = NuclearBall(2.0, shape=(2, 2))
    >>> ball.lmo(np.array([3.0, 0.0, 0.0, 1.0])).to_dense(4) + 0.0
    array([-2.,  0.,  0.,  0.])
    """

    is_symmetric = True
    has_absolute_values = True
    has_projection = True

    def __init__(self, radius: float, shape: tuple[int, int] | None = None) -> None:
        super().__init__(shape)
        check_positive("NuclearBall", "radius", radius)
        self.radius = float(radius)

    def lmo(self, r: Vector | np.ndarray) -> DenseVertex:
        """Return -radius u v' for the largest singular value of r, with its vectors u and v."""
        U, _, Vt = np.linalg.svd(self.as_matrix(r), full_matrices=False)
        return DenseVertex((-self.radius * np.outer(U[:, 0], Vt[0])).ravel())

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return radius times the error of a singular value, relative to the Frobenius norm of r."""
        return of_decomposition(self.radius, self.as_matrix(r))

    def norm(self, W: Iterate) -> float:
        """Return the nuclear norm of a matrix, Factored or flat."""
        return W.nuclear_norm() if isinstance(W, Factored) else float(np.linalg.norm(self.as_matrix(W), "nuc"))

    def scales(self, shape: tuple[int, int]) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return a and b where W = diag(a) Z diag(b) for a Z in the plain ball; None stands for ones."""
        return None, None

    def excess(self, w: Iterate) -> float:
        """Return the nuclear norm minus the radius."""
        return self.norm(w) - self.radius

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return 2 radius for the l2 and larger norms; in l1, the bound by sqrt(n_features)."""
        d = known_features(self, n_features) if order < 2 else 1
        return 2.0 * self.radius * d ** max(0.0, 1.0 / order - 0.5)

    def nearest_values(self, s: np.ndarray) -> np.ndarray:
        """Return the singular values of the projection of a matrix with the values s: all shrink by one threshold."""
        return project_capped(s, self.radius, self.radius) if s.sum() > self.radius else s

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the nearest matrix: the singular values are projected."""
        U, s, Vt = np.linalg.svd(self.as_matrix(w), full_matrices=False)
        return ((U * self.nearest_values(s)) @ Vt).ravel()
