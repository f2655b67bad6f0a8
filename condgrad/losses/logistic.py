"""The logistic loss."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp, log1p_of_fraction
from condgrad.losses._protocol import loss


@loss
class Logistic(NamedTuple):
    """Logistic loss f(p, y) = log(1 + exp(-y p)) for y in {-1, 1}.

    L = 1/4 (at y p = 0) and L-hat = 1/(6 sqrt 3), as in section 1.1 of Xiong & Freund.

    Examples
    --------
    >>> round(float(Logistic().value(0.0, 1.0)), 6)
    0.693147
    """

    rounds_relatively = True
    classes = (-1.0, 1.0)
    link = "logit"

    def value(self, p, y):
        """Return log(1 + exp(-y p)), without overflow."""
        m = y * p
        return log1p_of_fraction(exp(-abs(m))) + where(m < 0.0, -m, 0.0)

    def derivative(self, p, y):
        """Return -y / (1 + exp(y p))."""
        m = y * p
        e = exp(-abs(m))
        return -y * where(m < 0.0, 1.0, e) / (1.0 + e)

    def second_derivative(self, p, y):
        """Return exp(y p) / (1 + exp(y p))^2."""
        e = exp(-abs(y * p))
        return e / ((1.0 + e) * (1.0 + e))

    def lipschitz(self):
        """Return G = 1."""
        return 1.0

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = 1/4."""
        return 0.25

    def curvature_smoothness(self):
        """Return L-hat = 1 / (6 sqrt 3)."""
        return 1.0 / (6.0 * math.sqrt(3.0))
