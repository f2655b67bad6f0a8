"""Vectors of bounded total variation and size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints._protocol import constraint_set, known_features
from condgrad.constraints._rounding import WIDE_EPS, shortfall
from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.settings import check_positive
from condgrad.linalg.vectors import inner


@constraint_set
class TotalVariationBall(NamedTuple):
    """The set {w : sum_j |w_(j+1) - w_j| <= radius, max_j |w_j| <= bound}: piecewise constant, at any level.

    The bound makes the set compact. At a price per jump, the best vector of entries +-bound comes from a recursion over
    the chain; the oracle finds the price at which the total variation reaches the radius, and returns the point between
    the two vectors that tie at this price. Each price costs O(d), and there are few of them; the result is exact.

    Parameters
    ----------
    radius : float
        The largest total variation.
    bound : float
        The largest absolute value of an entry.

    Examples
    --------
    >>> ball = TotalVariationBall(radius=1.0, bound=5.0)
    >>> ball.contains([4.0, 4.0, 5.0, 5.0]), ball.contains([4.0, 5.0, 4.0, 4.0])
    (True, False)
    """

    radius: float
    bound: float

    is_symmetric = True
    vertex = DenseVertex
    is_polytope = True
    has_absolute_values = True

    def check(self):
        """Raise unless the radius and the bound are positive and finite."""
        check_positive("TotalVariationBall", "radius", self.radius)
        check_positive("TotalVariationBall", "bound", self.bound)

    def lmo(self, r):
        """Return the point between two vectors of entries +-bound whose total variation is the radius."""
        largest = abs(r.at(r.argmax_abs()))
        entries = np.empty(r.size())
        for j in range(r.size()):
            entries[j] = r.at(j) / largest if largest > 0.0 else 0.0
        values, _ = cheapest_within(entries, self.radius / (2.0 * self.bound))
        for j in range(r.size()):
            values[j] *= self.bound
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return bound ||r - D'z||_1 + price radius + <r, s> for differences D and |z_j| <= price, rounded up.

        This is a bound for every such z. The best z comes from the recursion of the oracle: running sums of r, clipped
        to [-price, price].
        """

        def top(x):
            entries = x.astype(np.float64)
            price = 0.5 * cheapest_within(entries, self.radius / (2.0 * self.bound))[1]
            rests = x - np.diff(clipped_sums(entries, price).astype(np.longdouble))
            rounding = 8 * (x.size + 8) * WIDE_EPS * (np.abs(x).sum() + price * x.size)
            return self.bound * (np.abs(rests).sum() + rounding) + np.longdouble(price) * self.radius

        return shortfall(top, r, s)

    def violation(self, w):
        """Return the larger of the total variation minus the radius and max_j |w_j| - bound."""
        return float(np.maximum(np.abs(np.diff(w)).sum() - self.radius, np.abs(w).max() - self.bound))

    def diameter(self, order=2, n_features=None):
        """Return the distance of the two constant vectors +-bound: exact."""
        if order == np.inf:
            return 2.0 * self.bound
        return 2.0 * self.bound * known_features(self, n_features) ** (1.0 / order)


@kernel
def clipped_sums(entries, price):
    """Return 0, the running sums of all entries but the last, each clipped to [-price, price], and 0."""
    sums = np.zeros(entries.shape[0] + 1)
    for j in range(entries.shape[0] - 1):
        sums[j + 1] = min(max(sums[j] + entries[j], -price), price)
    return sums


@kernel
def cheapest_within(entries, max_jumps):
    """Return the x in [-1, 1]^d with sum_j |x_(j+1) - x_j| <= 2 max_jumps and the smallest <entries, x>, and the price.

    Vectors of signs give points (number of jumps, <entries, x>); the point of x lies on their lower hull, on the edge
    above max_jumps. For two points of the hull, the vector that is cheapest at the price of their slope is a corner
    between them, or proves that the two are neighbours.
    """
    low = cheapest_signs(entries, np.inf)
    high = cheapest_signs(entries, 0.0)
    n_low, n_high = 0, count_jumps(high)
    if n_high <= max_jumps:
        return high, 0.0
    at_low, at_high = inner(entries, low), inner(entries, high)
    while True:
        price = (at_low - at_high) / (n_high - n_low)
        middle = cheapest_signs(entries, price)
        n_middle, at_middle = count_jumps(middle), inner(entries, middle)
        if not (n_low < n_middle < n_high and at_middle + price * (n_middle - n_low) < at_low):
            break
        if n_middle <= max_jumps:
            low, n_low, at_low = middle, n_middle, at_middle
        else:
            high, n_high, at_high = middle, n_middle, at_middle
    share = (max_jumps - n_low) / (n_high - n_low)
    for j in range(entries.shape[0]):
        low[j] = (1.0 - share) * low[j] + share * high[j]
    return low, price


@kernel
def cheapest_signs(entries, price):
    """Return the vector of signs x with the smallest <entries, x> + price * jumps; among ties, with few jumps."""
    d = entries.shape[0]
    has_risen = np.empty(d, np.bool_)  # whether the best path to +1 at j comes from -1
    has_fallen = np.empty(d, np.bool_)
    up, down = entries[0], -entries[0]
    for j in range(1, d):
        has_risen[j] = down + price < up
        has_fallen[j] = up + price < down
        up_next = (down + price if has_risen[j] else up) + entries[j]
        down = (up + price if has_fallen[j] else down) - entries[j]
        up = up_next
    signs = np.empty(d)
    is_up = up < down
    for j in range(d - 1, -1, -1):
        signs[j] = 1.0 if is_up else -1.0
        if j > 0 and (has_risen[j] if is_up else has_fallen[j]):
            is_up = not is_up
    return signs


@kernel
def count_jumps(signs):
    """Return how often neighbours differ."""
    count = 0
    for j in range(1, signs.shape[0]):
        count += 1 if signs[j] != signs[j - 1] else 0
    return count
