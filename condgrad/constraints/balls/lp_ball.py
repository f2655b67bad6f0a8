"""The lp ball."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._protocol import constraint_set, known_features
from condgrad.constraints._rounding import shortfall
from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.settings import check_positive
from condgrad.linalg.vectors import inner


@constraint_set
class LpBall(NamedTuple):
    """The lp ball {w : ||w||_p <= radius} for 1 < p < inf: between sparse and even.

    Every boundary point is extreme. With q = p / (p - 1), the oracle returns the vector with the entries
    -radius sign(r_j) (|r_j| / ||r||_q)^(q - 1), for which Hoelder's inequality is an equality.

    Parameters
    ----------
    p : float
        The order of the norm, between 1 and infinity; for these two there are L1Ball and LinfBall.
    radius : float
        The largest lp norm a model may have.

    Examples
    --------
    >>> LpBall(p=3.0, radius=1.0).contains([0.7, 0.7])
    True
    """

    p: float
    radius: float

    is_symmetric = True
    has_absolute_values = True
    vertex = DenseVertex

    def check(self):
        """Raise unless 1 < p < inf and the radius is positive and finite."""
        if not 1.0 < self.p < np.inf:
            raise ValueError(
                f"p of LpBall must lie between 1 and infinity; got {self.p!r}. "
                "Use L1Ball for p = 1 and LinfBall for infinity."
            )
        check_positive("LpBall", "radius", self.radius)

    def lmo(self, r):
        """Return -radius sign(r_j) (|r_j| / ||r||_q)^(q - 1) in each entry, or radius e_0 for r = 0."""
        largest = abs(r.at(r.argmax_abs()))
        values = np.zeros(r.size())
        if largest == 0.0:
            values[0] = self.radius
            return DenseVertex(values)
        sizes = np.empty(r.size())
        for j in range(r.size()):
            sizes[j] = abs(r.at(j)) / largest
            values[j] = sizes[j] ** (1.0 / (self.p - 1.0))
        length = self.radius / inner(sizes, values) ** (1.0 / self.p)
        for j in range(r.size()):
            values[j] *= -length if r.at(j) > 0.0 else length
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return radius ||r||_q + <r, s> for q = p / (p - 1), rounded up."""
        q = self.p / (np.longdouble(self.p) - 1.0)

        def top(x):
            largest = np.abs(x).max()
            return self.radius * largest * ((np.abs(x) / largest) ** q).sum() ** (1.0 / q)

        return shortfall(top, r, s)

    def violation(self, w):
        """Return ||w||_p - radius."""
        largest = np.abs(w).max()
        if largest == 0.0:
            return -self.radius
        return float(largest * ((np.abs(w) / largest) ** self.p).sum() ** (1.0 / self.p) - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return 2 radius for order >= p and 2 radius d^(1/order - 1/p) below: exact."""
        if order >= self.p:
            return 2.0 * self.radius
        return 2.0 * self.radius * known_features(self, n_features) ** (1.0 / order - 1.0 / self.p)
