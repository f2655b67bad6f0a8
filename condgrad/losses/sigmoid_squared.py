"""The squared error of a sigmoid, a non-convex loss for classification."""

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp
from condgrad.losses._protocol import loss, refuse_intercept


@loss
class SigmoidSquared(NamedTuple):
    """Squared error of a sigmoid, f(p, y) = (y - 1 / (1 + exp(-p)))^2 for y in {0, 1}; not convex.

    Its derivatives vanish far on either side, so samples that are badly misclassified have little influence. This
    is equation (1.6) of Xiong & Freund.

    The constants are exact. With s = abs(y - sigmoid(p)), ds = s (1 - s) dz for z = p where y = 0 and z = -p where
    y = 1, so that f = s^2 and

        f'' = 2 s^2 (1 - s) (2 - 3 s),    abs(f''') = abs(2 s^2 (1 - s) (4 - 15 s + 12 s^2)).

    f'' is extreme where f''' = 0: L = (39 + 55 sqrt(33)) / 2304 = 0.15406 at s = (15 - sqrt(33)) / 24; the other
    root gives -0.12. f''' is extreme where 60 s^3 - 108 s^2 + 57 s - 8 = 0; of its three real roots the middle one,
    s = 3/5 + (sqrt(39) / 15) sin(arcsin(21 / (13 sqrt(39))) / 3) = 0.6363, gives L-hat = 0.20202; the others give
    0.097 and 0.053.

    The paper prints L = 1/8 + 1/(3 sqrt(3)) = 0.3175 and L-hat = 1/(4 sqrt(3)) + 1/12 = 0.2277. Both are valid upper
    bounds. But the second was found from abs(sigmoid''') <= 1/24, which is wrong (it is 1/8 at 0, and the same
    argument then gives 0.3943 only): it holds because the exact constant is smaller.

    Examples
    --------
    >>> float(SigmoidSquared().value(0.0, 1.0))
    0.25
    """

    is_convex = False
    classes = (0.0, 1.0)
    link = "logit"

    def value(self, p, y):
        """Return s^2, where s = abs(y - sigmoid(p)) = sigmoid(z) for z = (1 - 2 y) p."""
        z = (1.0 - 2.0 * y) * p
        e = exp(-abs(z))
        s = where(z < 0.0, e, 1.0) / (1.0 + e)
        return s * s

    def derivative(self, p, y):
        """Return (1 - 2 y) 2 s^2 (1 - s), where s (1 - s) = e / (1 + e)^2 loses no digits."""
        z = (1.0 - 2.0 * y) * p
        e = exp(-abs(z))
        s = where(z < 0.0, e, 1.0) / (1.0 + e)
        return (1.0 - 2.0 * y) * 2.0 * s * e / ((1.0 + e) * (1.0 + e))

    def second_derivative(self, p, y):
        """Return 2 s^2 (1 - s) (2 - 3 s)."""
        z = (1.0 - 2.0 * y) * p
        e = exp(-abs(z))
        s = where(z < 0.0, e, 1.0) / (1.0 + e)
        return 2.0 * s * (2.0 - 3.0 * s) * e / ((1.0 + e) * (1.0 + e))

    def least_value(self, y):
        """Return 0."""
        return np.zeros(y.shape)

    def smoothness(self):
        """Return L = (39 + 55 sqrt(33)) / 2304, about 0.15406."""
        return (39.0 + 55.0 * math.sqrt(33.0)) / 2304.0

    def curvature_smoothness(self):
        """Return L-hat, about 0.20202."""
        s = 0.6 + math.sqrt(39.0) / 15.0 * math.sin(math.asin(21.0 / (13.0 * math.sqrt(39.0))) / 3.0)
        return 2.0 * s * s * (1.0 - s) * (15.0 * s - 12.0 * s * s - 4.0)

    def check_intercept(self, y):
        """Raise: the loss is not convex."""
        refuse_intercept("SigmoidSquared")
