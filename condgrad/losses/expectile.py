"""The expectile loss."""

from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.losses._protocol import loss


@loss
class Expectile(NamedTuple):
    """Expectile loss, asymmetric least squares: errors below the prediction count less, or more, than those above.

    With e = y - p, f(p, y) = q e^2 where e >= 0 and (1 - q) e^2 below; q = 1/2 is the squared loss. Its minimiser over
    constants is the q-th expectile of y, as sensitive to outliers as the mean; that of the pinball loss is the q-th
    quantile. L = 2 max(q, 1 - q); L-hat = inf, because the second derivative jumps at e = 0 unless q = 1/2.

    Parameters
    ----------
    q : float
        Expectile to predict, strictly between 0 and 1; 0.5 is the mean.

    References
    ----------
    Newey & Powell (1987), "Asymmetric least squares estimation and testing".

    Examples
    --------
    >>> float(Expectile(q=0.9).value(0.0, 2.0)), round(float(Expectile(q=0.9).value(2.0, 0.0)), 6)
    (3.6, 0.4)
    """

    q: float = 0.5

    rounds_relatively = True

    def value(self, p, y):
        """Return q e^2 or (1 - q) e^2, where e = y - p."""
        e = y - p
        return where(e < 0.0, 1.0 - self.q, self.q) * e * e

    def derivative(self, p, y):
        """Return -2 q e or -2 (1 - q) e."""
        e = y - p
        return -2.0 * where(e < 0.0, 1.0 - self.q, self.q) * e

    def second_derivative(self, p, y):
        """Return 2 q where y >= p, 2 (1 - q) elsewhere."""
        return 2.0 * where(y - p < 0.0, 1.0 - self.q, self.q)

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 2 max(q, 1 - q)."""
        return 2.0 * max(self.q, 1.0 - self.q)

    def check(self):
        """Raise unless q is between 0 and 1."""
        if not 0.0 < self.q < 1.0:
            raise ValueError(f"q of Expectile must be between 0 and 1, both excluded; got {self.q!r}. Use q=0.5.")
