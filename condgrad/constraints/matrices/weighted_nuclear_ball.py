"""The nuclear-norm ball with weights of rows and columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_real, as_reals
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints._rounding import of_decomposition
from condgrad.constraints.matrices.nuclear_ball import NuclearBall
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.factored import Factored, Iterate
from condgrad.linalg.vectors import Vector


class WeightedNuclearBall(NuclearBall):
    """Matrices W with ||diag(row_weight)^(1/2) W diag(column_weight)^(1/2)||_* <= radius.

    If the weight of a row or column is its number of observations, this is the weighted trace norm of Srebro &
    Salakhutdinov (2010): where users and items are observed very unevenly, as in ratings, it predicts better than the
    plain norm. :meth:`of_entries` makes it, smoothed as Foygel, Salakhutdinov, Shamir & Srebro (2011) advise. A row or
    column of weight 0 must be zero.

    Parameters
    ----------
    radius : float
    row_weight, column_weight : arrays, at least 0

    Examples
    --------
    >>> ball = WeightedNuclearBall(1.0, [0.25, 1.0], [1.0, 1.0])
    >>> round(ball.norm(np.array([1.0, 0.0, 0.0, 0.0])), 6)
    0.5
    """

    has_projection = False

    def __init__(self, radius: float, row_weight: ArrayLike, column_weight: ArrayLike) -> None:
        self.row_weight = _as_weights("row_weight", row_weight)
        self.column_weight = _as_weights("column_weight", column_weight)
        super().__init__(radius, (self.row_weight.size, self.column_weight.size))

    def __repr__(self) -> str:
        m, n = self.row_weight.size, self.column_weight.size
        return f"WeightedNuclearBall(radius={self.radius!r}, weights of {m} rows and {n} columns)"

    @classmethod
    def of_entries(
        cls,
        radius: float,
        rows: np.ndarray,
        columns: np.ndarray,
        shape: tuple[int, int],
        *,
        smoothing: float = 0.5,
        sample_weight: np.ndarray | None = None,
    ) -> WeightedNuclearBall:
        """Return the ball whose weights grow with the numbers of the given entries in rows and columns.

        A row with the mean number of entries has the weight 1, so that for even entries this is the plain ball. Other
        weights are smoothing + (1 - smoothing) times the number of entries over its mean. With ``sample_weight`` an
        entry counts as much as its weight.
        """
        smoothing = as_real("WeightedNuclearBall", "smoothing", smoothing)
        if not 0.0 <= smoothing <= 1.0:
            raise ValueError(f"smoothing of WeightedNuclearBall must be a number from 0 to 1; got {smoothing:g}.")
        weights = []
        for places, size in zip((rows, columns), shape, strict=True):
            counts = np.bincount(places, sample_weight, minlength=size)
            weights.append(smoothing + (1.0 - smoothing) * counts / counts.mean())
        return cls(radius, *weights)

    def scales(self, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return a and b where W = diag(a) Z diag(b) for a Z in the plain ball."""
        return _inverse_root(self.row_weight), _inverse_root(self.column_weight)

    def norm(self, W: Iterate) -> float:
        """Return the weighted nuclear norm of a matrix, Factored or flat."""
        a, b = np.sqrt(self.row_weight), np.sqrt(self.column_weight)
        if isinstance(W, Factored):
            return W.scaled(a, b).nuclear_norm()
        return super().norm((a[:, None] * self.as_matrix(W) * b).ravel())

    def excess(self, w: Iterate) -> float:
        """Return the norm minus the radius, or the largest entry in a row or column of weight 0 if that is larger."""
        excess = self.norm(w) - self.radius
        if isinstance(w, Factored) or (self.row_weight.all() and self.column_weight.all()):
            return excess
        held = (self.row_weight == 0.0)[:, None] | (self.column_weight == 0.0)
        return max(excess, float(np.abs(self.as_matrix(w)[held]).max()))

    def lmo(self, r: Vector | np.ndarray) -> DenseVertex:
        """Return the vertex of the plain ball for r in its coordinates, transformed back."""
        a, b = self.scales(self.as_matrix(r).shape)
        z = super().lmo((a[:, None] * self.as_matrix(r) * b).ravel()).values
        return DenseVertex((a[:, None] * self.as_matrix(z) * b).ravel())

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return radius times the error of a singular value of r in the coordinates of the plain ball."""
        a, b = self.scales(self.as_matrix(r).shape)
        return of_decomposition(self.radius, a[:, None] * self.as_matrix(r) * b)

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the diameter of the plain ball times the largest stretch of an entry, an upper bound."""
        a, b = self.scales((0, 0))
        return super().diameter(order, n_features) * float(a.max() * b.max())

    def project(self, w: np.ndarray) -> np.ndarray:
        """Raise: the nearest point has no closed form here."""
        return ConstraintSet.project(self, w)


def _as_weights(name: str, value: ArrayLike) -> np.ndarray:
    weights = as_reals("WeightedNuclearBall", name, value)
    if weights.min() < 0.0 or not weights.any():
        raise ValueError(
            f"{name} of WeightedNuclearBall must not be negative, and not all 0; got {weights.min():g} as the smallest."
        )
    return weights


def _inverse_root(weights: np.ndarray) -> np.ndarray:
    return np.divide(1.0, np.sqrt(weights), out=np.zeros_like(weights), where=weights > 0.0)
