"""The Huber loss."""

from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.losses._protocol import check_size, loss


@loss
class Huber(NamedTuple):
    """Huber loss, for regression with outliers: quadratic up to an error of delta, linear beyond.

    With the error e = p - y, f(p, y) = e^2 / 2 where abs(e) <= delta, and delta (abs(e) - delta / 2) beyond.
    L = 1; L-hat = inf, because the second derivative jumps from 1 to 0 at abs(e) = delta.

    Parameters
    ----------
    delta : float
        Error up to which a sample counts as in the squared loss, in the units of y.

    Examples
    --------
    >>> float(Huber(delta=1.0).value(3.0, 0.0))
    2.5
    """

    delta: float = 1.0

    rounds_relatively = True

    def value(self, p, y):
        """Return c (e - c / 2), where c is e = p - y clipped to [-delta, delta]."""
        e = p - y
        c = where(e > self.delta, self.delta, where(e < -self.delta, -self.delta, e))
        return c * (e - 0.5 * c)

    def derivative(self, p, y):
        """Return p - y clipped to [-delta, delta]."""
        e = p - y
        return 1.0 * where(e > self.delta, self.delta, where(e < -self.delta, -self.delta, e))

    def second_derivative(self, p, y):
        """Return 1 up to an error of delta, 0 beyond."""
        return 1.0 * where(abs(p - y) > self.delta, 0.0, 1.0)

    def lipschitz(self):
        """Return G = delta."""
        return self.delta

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1."""
        return 1.0

    def check(self):
        """Raise unless delta is positive and finite."""
        check_size("Huber", "delta", self.delta)
