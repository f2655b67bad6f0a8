"""The squared loss."""

from typing import NamedTuple

import numpy as np

from condgrad.losses._protocol import loss


@loss
class Squared(NamedTuple):
    """Squared loss f(p, y) = (p - y)^2 / 2, for regression.

    Smoothness L = 1, second-order smoothness 0: Taylor models are exact.

    Examples
    --------
    >>> Squared().value(3.0, 1.0)
    2.0
    """

    is_quadratic = True
    rounds_relatively = True

    def value(self, p, y):
        """Return (p - y)^2 / 2."""
        return 0.5 * (p - y) * (p - y)

    def derivative(self, p, y):
        """Return p - y."""
        return p - y

    def second_derivative(self, p, y):
        """Return 1."""
        return 0.0 * p + 1.0

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1."""
        return 1.0

    def curvature_smoothness(self):
        """Return L-hat = 0."""
        return 0.0
