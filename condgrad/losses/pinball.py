"""The quantile loss with its corner rounded by a parabola."""

from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.losses._protocol import check_size, loss


@loss
class Pinball(NamedTuple):
    """Pinball loss, for the q-th quantile of y, its corner rounded by a parabola of the given width.

    With e = y - p, the pinball loss is max(q e, (q - 1) e). This is its Moreau envelope: e^2 / (2 width) where
    (q - 1) width <= e <= q width, q e - q^2 width / 2 above, and (q - 1) e - (q - 1)^2 width / 2 below. It is zero
    at e = 0 and nowhere else, and at most max(q, 1 - q)^2 width / 2 below the pinball loss. L = 1 / width;
    L-hat = inf, because the second derivative jumps at both ends of the parabola.

    Parameters
    ----------
    q : float
        Quantile to predict, strictly between 0 and 1; 0.5 is the median.
    width : float
        Length of the parabola, in the units of y; a smaller one is closer to the quantile.

    Examples
    --------
    >>> float(Pinball(q=0.9, width=1.0).derivative(0.0, 5.0))
    -0.9
    """

    q: float = 0.5
    width: float = 1.0

    def value(self, p, y):
        """Return c (e - c / 2) / width, where c is e = y - p clipped to [(q - 1) width, q width]."""
        e = y - p
        low, high = (self.q - 1.0) * self.width, self.q * self.width
        c = where(e > high, high, where(e < low, low, e))
        return c / self.width * (e - 0.5 * c)

    def derivative(self, p, y):
        """Return -c / width, where c is y - p clipped to [(q - 1) width, q width]."""
        e = y - p
        low, high = (self.q - 1.0) * self.width, self.q * self.width
        return -where(e > high, high, where(e < low, low, e)) / self.width

    def second_derivative(self, p, y):
        """Return 1 / width on the parabola, 0 elsewhere."""
        e = y - p
        low, high = (self.q - 1.0) * self.width, self.q * self.width
        return where(e > high, 0.0, where(e < low, 0.0, 1.0)) / self.width

    def lipschitz(self):
        """Return G = max(q, 1 - q)."""
        return max(self.q, 1.0 - self.q)

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1 / width."""
        return 1.0 / self.width

    def check(self):
        """Raise unless q is between 0 and 1, and width is positive and finite."""
        if not 0.0 < self.q < 1.0:
            raise ValueError(f"q of Pinball must be between 0 and 1, both excluded; got {self.q!r}. Use q=0.5.")
        check_size("Pinball", "width", self.width)
