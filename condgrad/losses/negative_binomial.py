"""The loss of negative binomial counts with a log link."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp
from condgrad.losses._protocol import check_size, check_some_positive, loss

FAR = 30.0  # prediction beyond which exp(-p) takes the place of exp(p)


@loss
class NegativeBinomial(NamedTuple):
    """Negative binomial loss for counts y >= 0 that vary more than Poisson's: the mean is m = exp(p).

    Their variance is m + dispersion m^2, and f(p, y) = (y + 1/dispersion) log(1 + dispersion exp(p)) - y p is the
    negative log-likelihood without terms that do not depend on p. With the share s = dispersion m / (1 + dispersion m),
    f' = (y + 1/dispersion) s - y and f'' = (y + 1/dispersion) s (1 - s): the loss is convex, and linear far out. There
    is no constant L, because f'' has the size of y: ``smoothness()`` and ``smoothness_on(p_max)`` are inf. As the
    dispersion tends to 0 the loss becomes :class:`Poisson`.

    Parameters
    ----------
    dispersion : float
        How much the variance exceeds that of Poisson: alpha of statsmodels, theta of glum.

    Examples
    --------
    >>> float(NegativeBinomial(dispersion=1.0).derivative(0.0, 3.0))
    -1.0
    """

    dispersion: float = 1.0

    link = "log"

    def value(self, p, y):
        """Return (y + 1/dispersion) log(1 + dispersion exp(p)) - y p; beyond 30 y p cancels by formula."""
        m, rest = exp(where(p > FAR, FAR, p)), exp(where(p > FAR, -p, 0.0))
        near = (y + 1.0 / self.dispersion) * np.log1p(self.dispersion * m) - y * p
        far = p / self.dispersion + (y + 1.0 / self.dispersion) * np.log(self.dispersion + rest)
        return where(p > FAR, far, near)

    def derivative(self, p, y):
        """Return (exp(p) - y) / (1 + dispersion exp(p)), beyond 30 with exp(-p)."""
        m, rest = exp(where(p > FAR, FAR, p)), exp(where(p > FAR, -p, 0.0))
        return where(p > FAR, (1.0 - y * rest) / (self.dispersion + rest), (m - y) / (1.0 + self.dispersion * m))

    def second_derivative(self, p, y):
        """Return (1 + dispersion y) exp(p) / (1 + dispersion exp(p))^2, beyond 30 with exp(-p)."""
        m, rest = exp(where(p > FAR, FAR, p)), exp(where(p > FAR, -p, 0.0))
        size = where(p > FAR, self.dispersion + rest, 1.0 + self.dispersion * m)
        return (1.0 + self.dispersion * y) * where(p > FAR, rest, m) / size / size

    def smoothness(self):
        """Return inf: f'' has the size of y."""
        return math.inf

    def least_value(self, y):
        """Return the value at p = log y, and 0 for y = 0, less what rounding may have added."""
        best = np.log(np.where(y > 0.0, y, 1.0))
        parts = (y + 1.0 / self.dispersion) * np.log1p(self.dispersion * y) + y * np.abs(best)
        return np.where(y > 0.0, self.value(best, y) - 1e-13 * (parts + 1.0), 0.0)

    def check(self):
        """Raise unless the dispersion is positive, and neither huge nor tiny."""
        check_size("NegativeBinomial", "dispersion", self.dispersion)

    def check_targets(self, y):
        """Raise unless every target is finite and non-negative."""
        wrong = y[~((y >= 0.0) & (y < math.inf))]
        if wrong.size:
            raise ValueError(f"y must be finite and non-negative for NegativeBinomial; got the value {wrong[0]:g}.")

    def check_intercept(self, y):
        """Raise if all targets are 0: then the best mean is 0, and its logarithm -inf."""
        check_some_positive(y, "NegativeBinomial")
