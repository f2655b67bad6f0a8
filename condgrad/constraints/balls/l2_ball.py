"""The Euclidean ball."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._protocol import constraint_set, known_features
from condgrad.constraints._rounding import norm, shortfall
from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.settings import check_positive
from condgrad.linalg.vectors import inner


@constraint_set
class L2Ball(NamedTuple):
    """The Euclidean ball {w : ||w||_2 <= radius}: the constrained form of ridge regression.

    Every boundary point is extreme, and the oracle returns -radius r / ||r||_2.

    Parameters
    ----------
    radius : float
        The largest Euclidean norm a model may have.

    Examples
    --------
    >>> L2Ball(radius=5.0).contains([3.0, 4.0])
    True
    """

    radius: float

    is_symmetric = True
    vertex = DenseVertex
    has_absolute_values = True
    has_projection = True

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("L2Ball", "radius", self.radius)

    def lmo(self, r):
        """Return -radius r / ||r||_2, or radius e_0 for r = 0."""
        largest = abs(r.at(r.argmax_abs()))
        values = np.zeros(r.size())
        if largest == 0.0:
            values[0] = self.radius
            return DenseVertex(values)
        for j in range(r.size()):
            values[j] = r.at(j) / largest  # its square cannot overflow
        factor = -self.radius / np.sqrt(inner(values, values))
        for j in range(r.size()):
            values[j] *= factor
        return DenseVertex(values)

    def restricted(self, features):
        """Return the ball of the chosen features alone."""
        return self

    def oracle_rounding(self, r, s):
        """Return radius ||r||_2 + <r, s>, rounded up."""
        return shortfall(lambda x: self.radius * norm(x), r, s)

    def violation(self, w):
        """Return ||w||_2 - radius."""
        return float(np.linalg.norm(w) - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return 2 radius for order >= 2 and 2 radius d^(1/order - 1/2) below: exact."""
        if order >= 2:
            return 2.0 * self.radius
        return 2.0 * self.radius * known_features(self, n_features) ** (1.0 / order - 0.5)

    def project(self, w):
        """Return the point of the ball nearest to ``w``."""
        return np.array(w) * min(1.0, self.radius / max(np.linalg.norm(w), self.radius))
