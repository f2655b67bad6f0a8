"""The loss of binomial proportions with a logit link."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp, log1p_of_fraction
from condgrad.losses._protocol import LEAVE_OUT, loss, sigmoid


@loss
class Binomial(NamedTuple):
    """Binomial loss f(p, y) = log(1 + exp(p)) - y p for shares y between 0 and 1: the mean is 1 / (1 + exp(-p)).

    For counts of successes in trials, y is the share of successes and the number of trials is the weight of the sample:
    the weighted mean is then the negative log-likelihood per trial, without terms that do not depend on p. With
    targets 0 and 1 it is :class:`Logistic`. L = 1/4 and L-hat = 1 / (6 sqrt(3)).

    Examples
    --------
    >>> float(Binomial().derivative(0.0, 0.75))
    -0.25
    """

    link = "logit"

    def value(self, p, y):
        """Return log(1 + exp(-abs(p))) + (1 - y) p, or - y p for p < 0: no term is negative."""
        return where(p > 0.0, (1.0 - y) * p, -y * p) + log1p_of_fraction(exp(-abs(p)))

    def derivative(self, p, y):
        """Return 1 / (1 + exp(-p)) - y, as (1 - y) less the rest for p > 0: then nothing cancels."""
        small = exp(-abs(p))
        rest = small / (1.0 + small)
        return where(p > 0.0, (1.0 - y) - rest, rest - y)

    def second_derivative(self, p, y):
        """Return the product of the mean and its complement."""
        small = exp(-abs(p))
        return small / (1.0 + small) / (1.0 + small)

    def lipschitz(self):
        """Return G = 1."""
        return 1.0

    def smoothness(self):
        """Return L = 1/4."""
        return 0.25

    def curvature_smoothness(self):
        """Return L-hat = 1 / (6 sqrt(3))."""
        return 1.0 / (6.0 * math.sqrt(3.0))

    def mean(self, p):
        """Return the mean of y that p stands for."""
        return sigmoid(p)

    def least_value(self, y):
        """Return the entropy of y, less what rounding may have added."""
        inside = (y > 0.0) & (y < 1.0)
        share = np.where(inside, y, 0.5)
        entropy = -share * np.log(share) - (1.0 - share) * np.log1p(-share)
        return np.where(inside, entropy * (1.0 - 1e-13), 0.0)

    def check_targets(self, y):
        """Raise unless every target is between 0 and 1."""
        wrong = y[~((y >= 0.0) & (y <= 1.0))]
        if wrong.size:
            raise ValueError(
                f"y must be a share between 0 and 1 for Binomial; got the value {wrong[0]:g}. Divide successes by "
                "trials, and give the trials as sample_weight."
            )

    def check_intercept(self, y):
        """Raise if all targets are 0, or all are 1: then no finite intercept is best."""
        if not np.any(y) or np.all(y == 1.0):
            raise ValueError(f"an intercept for Binomial needs shares other than {y[0]:g} alone. {LEAVE_OUT}.")
