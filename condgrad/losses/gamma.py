"""The loss of Gamma distributions with a log link."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp
from condgrad.losses._protocol import check_positive_targets, loss

P_EXACT = -30.0  # least prediction for which the loss is exact


@loss
class Gamma(NamedTuple):
    """Gamma loss f(p, y) = y exp(-p) + p for y > 0: the mean of y is exp(p), its standard deviation in proportion.

    It is half the deviance of the Gamma distribution, up to 1 + log y, which do not depend on p: for amounts such as
    costs of claims. f' = 1 - y exp(-p) and f'' = y exp(-p), so the loss is convex.

    Below p = -30, a mean of 1e-13, the exponential continues as its Taylor polynomial of order two, as in
    :class:`Poisson` beyond 30. There is no constant L, because f'' has the size of y: ``smoothness()`` and
    ``smoothness_on(p_max)`` are inf.

    Examples
    --------
    >>> float(Gamma().derivative(0.0, 3.0))
    -2.0
    """

    link = "log"

    def value(self, p, y):
        """Return y exp(-p) + p, with the exponential continued below -30."""
        beyond = where(p < P_EXACT, P_EXACT - p, 0.0)
        return y * exp(-where(p < P_EXACT, P_EXACT, p)) * (1.0 + beyond * (1.0 + 0.5 * beyond)) + p

    def derivative(self, p, y):
        """Return 1 - y exp(-p), with the exponential continued below -30."""
        beyond = where(p < P_EXACT, P_EXACT - p, 0.0)
        return 1.0 - y * exp(-where(p < P_EXACT, P_EXACT, p)) * (1.0 + beyond)

    def second_derivative(self, p, y):
        """Return y exp(-max(p, -30))."""
        return y * exp(-where(p < P_EXACT, P_EXACT, p))

    def smoothness(self):
        """Return inf: f'' has the size of y."""
        return math.inf

    def least_value(self, y):
        """Return 1 + log y, or the minimum of the continuation, less what rounding may have added."""
        beyond = np.maximum(math.exp(P_EXACT) / y - 1.0, 0.0)
        best = np.where(beyond > 0.0, P_EXACT - beyond, np.log(y))
        return self.value(best, y) - 1e-14 * (1.0 + np.abs(best))

    def check_targets(self, y):
        """Raise unless every target is finite and positive."""
        check_positive_targets(y, "Gamma")
