"""The Poisson loss with a log link."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp
from condgrad.losses._protocol import check_some_positive, loss

P_EXACT = 30.0  # largest prediction for which the loss is exact


@loss
class Poisson(NamedTuple):
    """Poisson loss f(p, y) = exp(p) - y p for y >= 0: the mean of y is exp(p).

    It is the negative log-likelihood without its term log(y!), which does not depend on p.

    Beyond p = 30, a mean of 1e13, the exponential continues as its Taylor polynomial of order two. The loss stays
    convex, its second derivative continuous, and a vertex with p = 1e8 gives numbers (about 5e28) whose squares and
    sums are finite, where exp(p) would be inf. Being convex, it has the same minimisers as the exact loss whenever
    one of its own minimisers predicts less than 30 everywhere. A linear continuation would make the curvature
    jump to 0 and hide it from second-order models; a higher threshold would only serve means that no count reaches.

    The derivative is exp(30)-Lipschitz, which is of no use as a constant: ``smoothness()`` and
    ``curvature_smoothness()`` are inf, and ``smoothness_on(p_max)`` gives exp(p_max).

    Examples
    --------
    >>> float(Poisson().derivative(0.0, 3.0))
    -2.0
    """

    link = "log"

    def value(self, p, y):
        """Return exp(p) - y p, with the exponential continued beyond 30."""
        beyond = where(p > P_EXACT, p - P_EXACT, 0.0)
        return exp(where(p > P_EXACT, P_EXACT, p)) * (1.0 + beyond * (1.0 + 0.5 * beyond)) - y * p

    def derivative(self, p, y):
        """Return exp(p) - y, with the exponential continued beyond 30."""
        beyond = where(p > P_EXACT, p - P_EXACT, 0.0)
        return exp(where(p > P_EXACT, P_EXACT, p)) * (1.0 + beyond) - y

    def second_derivative(self, p, y):
        """Return exp(min(p, 30))."""
        return exp(where(p > P_EXACT, P_EXACT, p))

    def smoothness(self):
        """Return inf: use ``smoothness_on``."""
        return math.inf

    def smoothness_on(self, p_max):
        """Return exp(min(p_max, 30)), the largest second derivative over abs(p) <= p_max."""
        return math.exp(min(p_max, P_EXACT))

    def least_value(self, y):
        """Return y - y log y, or the minimum of the continuation, less what rounding may have added."""
        beyond = np.maximum(y / math.exp(P_EXACT) - 1.0, 0.0)
        best = np.where(beyond > 0.0, P_EXACT + beyond, np.log(np.maximum(y, 1e-300)))
        return np.where(y > 0.0, self.value(best, y), 0.0) - 1e-14 * y * (1.0 + np.abs(best))

    def check_targets(self, y):
        """Raise unless every target is finite and non-negative."""
        wrong = y[~((y >= 0.0) & (y < math.inf))]
        if wrong.size:
            raise ValueError(
                f"y must be finite and non-negative for Poisson; got the value {wrong[0]:g}. Use counts or rates."
            )

    def check_intercept(self, y):
        """Raise if all targets are 0: then the best mean is 0, and its logarithm -inf."""
        check_some_positive(y, "Poisson")
