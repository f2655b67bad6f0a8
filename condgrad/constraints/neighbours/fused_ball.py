"""The ball of the fused lasso."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints._protocol import constraint_set, known_features
from condgrad.constraints._rounding import WIDE_EPS, inner_with_error, shortfall
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.settings import check_positive


@constraint_set
class FusedBall(NamedTuple):
    """The fused lasso ball {w : l1_weight ||w||_1 + sum_j |w_(j+1) - w_j| <= radius}: few pieces, mostly zero.

    A vertex is constant on one interval of features and zero elsewhere: an interval of m features costs l1_weight m,
    plus 1 for each of its ends that is not an end of the whole chain. The oracle finds the interval with the largest
    |sum of r| / cost by Dinkelbach's method: a few passes of O(d), exact.

    Parameters
    ----------
    radius : float
        The budget.
    l1_weight : float
        The weight of the l1 norm relative to the total variation. With 0 the set would be unbounded: see
        TotalVariationBall.

    References
    ----------
    Tibshirani, Saunders, Rosset, Zhu, Knight (2005). Sparsity and smoothness via the fused lasso.

    Examples
    --------
    >>> ball = FusedBall(radius=4.0, l1_weight=1.0)
    >>> ball.contains([0.0, 1.0, 1.0, 0.0]), ball.contains([0.0, 2.0, 0.0, 0.0])
    (True, False)
    """

    radius: float
    l1_weight: float = 1.0

    is_symmetric = True
    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True

    def check(self):
        """Raise unless the radius and the weight are positive and finite."""
        check_positive("FusedBall", "radius", self.radius)
        check_positive("FusedBall", "l1_weight", self.l1_weight)

    def lmo(self, r):
        """Return -+radius / cost on the interval with the largest |sum of r| / cost."""
        d = r.size()
        j = r.argmax_abs()
        largest = abs(r.at(j))
        entries = np.empty(d)
        for k in range(d):
            entries[k] = r.at(k) / largest if largest > 0.0 else 0.0
        first, last = best_interval(entries, j, self.l1_weight)
        total = 0.0
        for k in range(first, last + 1):
            total += entries[k]
        height = self.radius / cost_of(first, last, d, self.l1_weight)
        indices = np.empty(last + 1 - first, np.int64)
        values = np.empty(last + 1 - first)
        for k in range(last + 1 - first):
            indices[k] = first + k
            values[k] = -height if total > 0.0 else height
        return SparseVertex(indices, values)

    def oracle_rounding(self, r, s):
        """Return radius times a bound of |sum of r| / cost over intervals, plus <r, s>, rounded up.

        At the price -<r, s> / radius the profit |sum of r| - price cost of an interval would be at most 0 without
        rounding; the largest profit divided by the smallest cost bounds how much larger the ratio may be.
        """

        def top(x):
            d = x.size
            price = -inner_with_error(x, s)[0] / self.radius
            places = np.arange(d + 1)
            paid = price * self.l1_weight * places
            profit = 0.0
            for sums in (np.cumsum(np.append(0.0, x)), np.cumsum(np.append(0.0, -x))):
                ends = (sums - paid)[1:] - price * (places[1:] < d)
                begins = (sums - paid)[:-1] + price * (places[:-1] > 0)
                profit = max(profit, (ends - np.minimum.accumulate(begins)).max())
            rounding = 8 * (d + 8) * WIDE_EPS * (np.abs(x).sum() + abs(price) * (self.l1_weight * d + 2.0))
            return self.radius * (price + (profit + rounding) / min(self.l1_weight + 1.0, self.l1_weight * d))

        return shortfall(top, r, s)

    def violation(self, w):
        """Return l1_weight ||w||_1 + sum_j |w_(j+1) - w_j| - radius."""
        return float(self.l1_weight * np.abs(w).sum() + np.abs(np.diff(w)).sum() - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return the distance of the longest vertex, which begins at an end of the chain, to its opposite: exact."""
        sizes = np.arange(1.0, known_features(self, n_features) + 1.0)
        costs = self.l1_weight * sizes + (sizes < sizes[-1])
        return float(2.0 * self.radius * (sizes ** (1.0 / order) / costs).max())

    def decompose(self, w):
        """Return one vertex per interval on which w, or -w, is above one of its own values; the rest is halved.

        Both norms of w are integrals of the norms of its level sets (the coarea formula), so the weights add up.
        """
        parts = []
        for sign in (1.0, -1.0):
            heights = np.maximum(sign * w, 0.0)
            for low, high in itertools.pairwise(np.unique(np.append(heights, 0.0))):
                is_above = np.concatenate([[False], heights >= high, [False]])
                ends = np.flatnonzero(np.diff(is_above))
                for first, end in zip(ends[::2], ends[1::2]):
                    height = self.radius / cost_of(int(first), int(end) - 1, w.size, self.l1_weight)
                    s = SparseVertex(np.arange(first, end), np.full(end - first, sign * height))
                    parts.append((float((high - low) / height), s))
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            s = self.start(w.size)
            parts += [(rest / 2, s), (rest / 2, s.scaled(-1.0))]
        return parts


@kernel
def cost_of(first, last, d, l1_weight):
    """Return the norm of the vector with ones from ``first`` to ``last``."""
    return l1_weight * (last + 1 - first) + (1.0 if first > 0 else 0.0) + (1.0 if last < d - 1 else 0.0)


@kernel
def best_interval(entries, start, l1_weight):
    """Return the first and last place of the interval with the largest |sum of entries| / cost.

    Dinkelbach: at a price per cost, find the interval with the largest profit |sum| - price cost; its ratio is the
    next price, which grows until there is no profit. The first guess is the interval of the one place ``start``.
    """
    d = entries.shape[0]
    first, last = start, start
    price = abs(entries[start]) / cost_of(first, last, d, l1_weight)
    while True:
        best, next_first, next_last = 0.0, first, last
        for sign in (1.0, -1.0):
            profit, begin = 0.0, 0  # of the best interval that ends here, before the cost of its right end
            for k in range(d):
                opening = -price if k > 0 else 0.0
                if k == 0 or profit < opening:
                    profit, begin = opening, k
                profit = profit + sign * entries[k] - price * l1_weight
                closed = profit - price if k < d - 1 else profit
                if closed > best:
                    best, next_first, next_last = closed, begin, k
        total = 0.0
        for k in range(next_first, next_last + 1):
            total += entries[k]
        ratio = abs(total) / cost_of(next_first, next_last, d, l1_weight)
        if not ratio > price:
            return first, last
        price, first, last = ratio, next_first, next_last
