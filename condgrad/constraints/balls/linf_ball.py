"""The l-infinity ball."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._protocol import constraint_set, known_features
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.settings import check_positive


@constraint_set
class LinfBall(NamedTuple):
    """The l-infinity ball {w : max_j |w_j| <= radius}: no coefficient may be large.

    Its vertices are the 2^d points with entries +-radius, and the oracle takes the signs of -r.

    Parameters
    ----------
    radius : float
        The largest absolute value an entry may have.

    Examples
    --------
    >>> LinfBall(radius=1.0).contains([1.0, -1.0, 0.5])
    True
    """

    radius: float

    is_symmetric = True
    vertex = DenseVertex
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("LinfBall", "radius", self.radius)

    def lmo(self, r):
        """Return -radius where r_j is positive and radius elsewhere."""
        values = np.empty(r.size())
        for j in range(r.size()):
            values[j] = -self.radius if r.at(j) > 0.0 else self.radius
        return DenseVertex(values)

    def restricted(self, features):
        """Return the ball of the chosen features alone."""
        return self

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies +-radius."""
        return 0.0

    def linear_rows(self, n_features):
        """Return the bounds."""
        return LinearRows(np.full(n_features, -self.radius), np.full(n_features, self.radius))

    def violation(self, w):
        """Return max_j |w_j| - radius."""
        return float(np.abs(w).max() - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return 2 radius d^(1/order), the distance of opposite vertices."""
        if order == np.inf:
            return 2.0 * self.radius
        return 2.0 * self.radius * known_features(self, n_features) ** (1.0 / order)

    def project(self, w):
        """Return the point of the ball nearest to ``w``."""
        return np.clip(w, -self.radius, self.radius)
