"""The squared hinge loss."""

from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.losses._protocol import loss


@loss
class SquaredHinge(NamedTuple):
    """Squared hinge loss f(p, y) = max(0, 1 - y p)^2 / 2 for y in {-1, 1}.

    The factor 1/2 is that of :class:`Squared`; some libraries leave it out. L = 1; L-hat = inf, because the second
    derivative jumps from 1 to 0 at y p = 1.

    Examples
    --------
    >>> float(SquaredHinge().value(-1.0, 1.0))
    2.0
    """

    rounds_relatively = True
    classes = (-1.0, 1.0)

    def value(self, p, y):
        """Return max(0, 1 - y p)^2 / 2."""
        short = 1.0 - y * p
        short = where(short < 0.0, 0.0, short)
        return 0.5 * short * short

    def derivative(self, p, y):
        """Return -y max(0, 1 - y p)."""
        short = 1.0 - y * p
        return -y * where(short < 0.0, 0.0, short)

    def second_derivative(self, p, y):
        """Return 1 where y p <= 1, 0 beyond."""
        return 1.0 * where(y * p > 1.0, 0.0, 1.0)

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1."""
        return 1.0
