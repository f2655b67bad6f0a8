"""The hinge loss with its corner rounded by a parabola."""

from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.losses._protocol import check_size, loss


@loss
class SmoothedHinge(NamedTuple):
    """Hinge loss max(0, 1 - y p) for y in {-1, 1}, its corner rounded by a parabola of the given width.

    With z = 1 - y p, f(p, y) = 0 where z <= 0, z^2 / (2 width) where 0 <= z <= width, and z - width / 2 beyond: the
    Moreau envelope of the hinge, at most width / 2 below it. L = 1 / width; L-hat = inf, because the second
    derivative jumps at both ends of the parabola.

    Parameters
    ----------
    width : float
        Length of the parabola; a smaller one is closer to the hinge and harder to minimise.

    Examples
    --------
    >>> float(SmoothedHinge(width=1.0).value(-1.0, 1.0))
    1.5
    """

    width: float = 1.0

    rounds_relatively = True
    classes = (-1.0, 1.0)

    def value(self, p, y):
        """Return c (z - c / 2) / width, where z = max(0, 1 - y p) and c = min(z, width)."""
        z = 1.0 - y * p
        z = where(z < 0.0, 0.0, z)
        c = where(z > self.width, self.width, z)
        return c / self.width * (z - 0.5 * c)

    def derivative(self, p, y):
        """Return -y c / width, where c is 1 - y p clipped to [0, width]."""
        z = 1.0 - y * p
        return -y * where(z > self.width, self.width, where(z < 0.0, 0.0, z)) / self.width

    def second_derivative(self, p, y):
        """Return 1 / width on the parabola, 0 elsewhere."""
        z = 1.0 - y * p
        return where(z > self.width, 0.0, where(z < 0.0, 0.0, 1.0)) / self.width

    def lipschitz(self):
        """Return G = 1."""
        return 1.0

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1 / width."""
        return 1.0 / self.width

    def check(self):
        """Raise unless width is positive and finite."""
        check_size("SmoothedHinge", "width", self.width)
