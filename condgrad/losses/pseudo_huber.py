"""The pseudo-Huber loss."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.losses._protocol import check_size, loss


@loss
class PseudoHuber(NamedTuple):
    """Pseudo-Huber loss, a Huber loss with smooth second derivatives, for regression with outliers.

    With the error e = p - y, f(p, y) = delta^2 (sqrt(1 + (e / delta)^2) - 1): about e^2 / 2 for small errors, and
    delta abs(e) for large ones.

    The constants are exact. With u = e / delta, f'' = (1 + u^2)^(-3/2) is largest at u = 0, so L = 1. The third
    derivative is -3 u (1 + u^2)^(-5/2) / delta, whose own derivative vanishes where 1 + u^2 = 5 u^2; at u = 1/2 it
    gives L-hat = (3/2) (4/5)^(5/2) / delta = 48 / (25 sqrt(5) delta).

    Parameters
    ----------
    delta : float
        Error at which the loss turns from quadratic to linear, in the units of y.

    Examples
    --------
    >>> float(PseudoHuber(delta=3.0).value(4.0, 0.0))
    6.0
    """

    delta: float = 1.0

    rounds_relatively = True

    def value(self, p, y):
        """Return delta e^2 / (delta + sqrt(delta^2 + e^2)): the formula of the class without its cancellation."""
        e = p - y
        return self.delta * e * e / (self.delta + np.sqrt(self.delta * self.delta + e * e))

    def derivative(self, p, y):
        """Return delta e / sqrt(delta^2 + e^2)."""
        e = p - y
        return self.delta * e / np.sqrt(self.delta * self.delta + e * e)

    def second_derivative(self, p, y):
        """Return (delta / sqrt(delta^2 + e^2))^3."""
        e = p - y
        ratio = self.delta / np.sqrt(self.delta * self.delta + e * e)
        return ratio * ratio * ratio

    def lipschitz(self):
        """Return G = delta."""
        return self.delta

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1."""
        return 1.0

    def curvature_smoothness(self):
        """Return L-hat = 48 / (25 sqrt(5) delta)."""
        return 48.0 / (25.0 * math.sqrt(5.0) * self.delta)

    def check(self):
        """Raise unless delta is positive and finite."""
        check_size("PseudoHuber", "delta", self.delta)
