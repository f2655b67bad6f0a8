"""The Welsch loss, a bounded non-convex loss for regression."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled.elementary import exp
from condgrad.losses._protocol import check_size, loss, refuse_intercept


@loss
class Welsch(NamedTuple):
    """Welsch loss f(p, y) = (scale^2 / 2) (1 - exp(-(p - y)^2 / scale^2)), bounded; not convex.

    About (p - y)^2 / 2 for small errors, and constant for errors far beyond scale: gross outliers are ignored.

    The constants are exact. With u = (p - y) / scale, f'' = (1 - 2 u^2) exp(-u^2) is 1 at u = 0 and at least
    -2 exp(-3/2) = -0.45, so L = 1. The third derivative is (4 u^3 - 6 u) exp(-u^2) / scale, extreme where
    4 u^4 - 12 u^2 + 3 = 0; at u^2 = (3 - sqrt(6)) / 2 it gives
    L-hat = sqrt(12 (3 - sqrt(6))) exp((sqrt(6) - 3) / 2) / scale = 1.9518 / scale, and at the other root less.

    Parameters
    ----------
    scale : float
        Error beyond which a sample loses its influence, in the units of y.

    Examples
    --------
    >>> float(Welsch(scale=2.0).value(1e8, 0.0))
    2.0
    """

    scale: float = 1.0

    is_convex = False

    def value(self, p, y):
        """Return (scale^2 / 2) (1 - exp(-u^2))."""
        u = (p - y) / self.scale
        return -0.5 * self.scale * self.scale * np.expm1(-u * u)

    def derivative(self, p, y):
        """Return (p - y) exp(-u^2)."""
        u = (p - y) / self.scale
        return (p - y) * exp(-u * u)

    def second_derivative(self, p, y):
        """Return (1 - 2 u^2) exp(-u^2)."""
        u = (p - y) / self.scale
        return (1.0 - 2.0 * u * u) * exp(-u * u)

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1."""
        return 1.0

    def curvature_smoothness(self):
        """Return L-hat = sqrt(12 (3 - sqrt(6))) exp((sqrt(6) - 3) / 2) / scale."""
        return math.sqrt(12.0 * (3.0 - math.sqrt(6.0))) * math.exp(0.5 * (math.sqrt(6.0) - 3.0)) / self.scale

    def check(self):
        """Raise unless scale is positive and finite."""
        check_size("Welsch", "scale", self.scale)

    def check_intercept(self, y):
        """Raise: the loss is not convex."""
        refuse_intercept("Welsch")
