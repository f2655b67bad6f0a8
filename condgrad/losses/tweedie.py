"""The loss of Tweedie distributions with a log link."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp
from condgrad.losses._protocol import check_some_positive, loss

EXACT = 30.0  # largest argument of an exponential for which the loss is exact


@loss
class Tweedie(NamedTuple):
    """Tweedie loss for y >= 0 with many zeros: the mean of y is exp(p), its variance in proportion to mean^power.

    With a = 2 - power and b = power - 1, f(p, y) = exp(a p) / a + y exp(-b p) / b. It is half the deviance, up to what
    does not depend on p, for 1 < power < 2: sums of a Poisson number of Gamma amounts, such as the claims of a policy.
    f' = exp(a p) - y exp(-b p) and f'' = a exp(a p) + b y exp(-b p), so the loss is convex. (For power = 1 it is
    :class:`Poisson`, for 2 :class:`Gamma`; for more it is not convex with a log link.)

    Where an argument of an exponential is above 30, the exponential continues as its Taylor polynomial of order two, as
    in :class:`Poisson`. There is no constant L: ``smoothness()`` and ``smoothness_on(p_max)`` are inf, because f''
    has the size of y.

    Parameters
    ----------
    power : float
        The exponent of the variance, strictly between 1 and 2.

    Examples
    --------
    >>> float(Tweedie(power=1.5).derivative(0.0, 3.0))
    -2.0
    """

    power: float = 1.5

    link = "log"

    def value(self, p, y):
        """Return exp(a p) / a + y exp(-b p) / b, with exponentials continued beyond 30."""
        up, down = (2.0 - self.power) * p, (1.0 - self.power) * p
        above, below = where(up > EXACT, up - EXACT, 0.0), where(down > EXACT, down - EXACT, 0.0)
        rise = exp(where(up > EXACT, EXACT, up)) * (1.0 + above * (1.0 + 0.5 * above))
        fall = exp(where(down > EXACT, EXACT, down)) * (1.0 + below * (1.0 + 0.5 * below))
        return rise / (2.0 - self.power) + y * fall / (self.power - 1.0)

    def derivative(self, p, y):
        """Return exp(a p) - y exp(-b p), with exponentials continued beyond 30."""
        up, down = (2.0 - self.power) * p, (1.0 - self.power) * p
        above, below = where(up > EXACT, up - EXACT, 0.0), where(down > EXACT, down - EXACT, 0.0)
        rise = exp(where(up > EXACT, EXACT, up)) * (1.0 + above)
        return rise - y * exp(where(down > EXACT, EXACT, down)) * (1.0 + below)

    def second_derivative(self, p, y):
        """Return a exp(min(a p, 30)) + b y exp(min(-b p, 30))."""
        up, down = (2.0 - self.power) * p, (1.0 - self.power) * p
        rise = (2.0 - self.power) * exp(where(up > EXACT, EXACT, up))
        return rise + (self.power - 1.0) * y * exp(where(down > EXACT, EXACT, down))

    def smoothness(self):
        """Return inf: f'' has the size of y."""
        return math.inf

    def least_value(self, y):
        """Return y^a / (a b) less what rounding may have added; where an exponential is continued, the bound 0."""
        mean = np.where(y > 0.0, y, 1.0)
        is_exact = np.maximum((2.0 - self.power) * np.log(mean), (1.0 - self.power) * np.log(mean)) <= EXACT
        value = self.value(np.log(mean), mean)
        return np.where((y > 0.0) & is_exact, value * (1.0 - 1e-13), 0.0)

    def check(self):
        """Raise unless power is between 1 and 2."""
        if not 1.0 < self.power < 2.0:
            raise ValueError(
                f"power of Tweedie must lie between 1 and 2, both excluded; got {self.power!r}. Use Poisson() for 1 "
                "and Gamma() for 2; with more the loss is not convex."
            )

    def check_targets(self, y):
        """Raise unless every target is finite and non-negative."""
        wrong = y[~((y >= 0.0) & (y < math.inf))]
        if wrong.size:
            raise ValueError(f"y must be finite and non-negative for Tweedie; got the value {wrong[0]:g}.")

    def check_intercept(self, y):
        """Raise if all targets are 0: then the best mean is 0, and its logarithm -inf."""
        check_some_positive(y, "Tweedie")
