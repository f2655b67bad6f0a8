"""The ball of the ordered weighted l1 norm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import kernel
from condgrad.constraints._parameters import as_reals, shown
from condgrad.constraints._protocol import best_vertex, constraint_set
from condgrad.constraints._rounding import shortfall
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.roots import Bracket
from condgrad.linalg.selection import smallest, sorted_places
from condgrad.linalg.settings import check_positive


@constraint_set
class OrderedWeightedL1Ball(NamedTuple):
    """The SLOPE or OWL ball {w : sum_i weights_i a_i <= radius}: sparse, and correlated features share a value.

    Here a_1 >= a_2 >= ... are the sorted absolute values of w. A vertex has k nonzeros +-radius / (weights_1 + ... +
    weights_k), for some k; the oracle sorts |r| and compares the best vertex of each k, in O(d log d). Linearly
    decreasing weights make it the ball of OSCAR, equal ones the l1 ball, (1, 0, ..., 0) the l-infinity ball.

    Parameters
    ----------
    radius : float
        The budget.
    weights : array of shape (n_features,)
        The prices of the largest absolute value, of the second largest and so on: none negative, the first positive,
        none larger than the one before.

    References
    ----------
    Bogdan, van den Berg, Sabatti, Su, Candes (2015). SLOPE: adaptive variable selection via convex optimization.
    Zeng, Figueiredo (2014). The ordered weighted l1 norm: atomic formulation, projections, and algorithms.

    Examples
    --------
    >>> ball = OrderedWeightedL1Ball(radius=3.0, weights=[2.0, 1.0])
    >>> ball.contains([1.0, -1.0]), ball.contains([0.5, 1.5])
    (True, False)
    """

    radius: float
    weights: ArrayLike

    is_symmetric = True
    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def __repr__(self):
        return f"OrderedWeightedL1Ball(radius={self.radius!r}, weights={shown(self.weights)})"

    @property
    def n_features(self):
        """The length of ``weights``."""
        return self.weights.size

    def prepare(self):
        """Return the fields with ``weights`` as an array of floats."""
        return self.radius, as_reals("OrderedWeightedL1Ball", "weights", self.weights)

    def check(self):
        """Raise unless the radius is positive and finite and the weights decrease to no less than zero."""
        check_positive("OrderedWeightedL1Ball", "radius", self.radius)
        rises = np.flatnonzero(np.diff(self.weights) > 0.0)
        if rises.size:
            i = rises[0]
            raise ValueError(
                f"weights of OrderedWeightedL1Ball must not increase; got {self.weights[i]:g} and then "
                f"{self.weights[i + 1]:g}. Sort them, the largest first."
            )
        if self.weights[-1] < 0.0 or self.weights[0] == 0.0:
            raise ValueError(
                "weights of OrderedWeightedL1Ball must not be negative, and the first must be positive; "
                f"got {shown(self.weights)}."
            )
        if self.radius / float(self.weights[0]) == np.inf:
            raise ValueError(
                f"radius / weights of OrderedWeightedL1Ball must be finite; got the weight {float(self.weights[0])!r}."
            )

    def lmo(self, r):
        """Return the best of the vertices on the k largest entries of |r|, over all k."""
        d = r.size()
        largest = abs(r.at(r.argmax_abs()))
        scale = largest if largest > 0.0 else 1.0
        keys = np.empty(d)
        for j in range(d):
            keys[j] = -abs(r.at(j)) / scale
        order = sorted_places(keys)
        total, price = 0.0, 0.0
        best, k, best_price = -1.0, 1, 1.0
        for q in range(d):
            total -= keys[order[q]]
            price += self.weights[q]
            # If all weights so far are equal, k nonzeros are a mean of points with fewer; if the next is 0, with more.
            is_vertex = (q == 0 or self.weights[q] < self.weights[0]) and (q == d - 1 or self.weights[q + 1] > 0.0)
            if is_vertex and total / price > best:
                best, k, best_price = total / price, q + 1, price
        indices = np.empty(k, np.int64)
        values = np.empty(k)
        for q in range(k):
            indices[q] = order[q]
            values[q] = -self.radius / best_price if r.at(order[q]) > 0.0 else self.radius / best_price
        return SparseVertex(indices, values)

    def restricted(self, features):
        """Return the ball of the chosen features alone: they have the largest weights, as the others are zero."""
        return OrderedWeightedL1Ball(self.radius, self.weights[: len(features)])

    def best_features(self, r, count, most):
        """Return the features with the largest |r_j|, at least those of the best vertex."""
        return smallest(-np.abs(r), max(count, best_vertex(self, r).indices.size))

    def oracle_rounding(self, r, s):
        """Return radius times the largest quotient of the sums of k entries and k weights, plus <r, s>, rounded up."""

        def top(x):
            prices = np.cumsum(np.asarray(self.weights, dtype=np.longdouble))
            return self.radius * (np.cumsum(np.sort(np.abs(x))[::-1]) / prices).max()

        return shortfall(top, r, s)

    def violation(self, w):
        """Return sum_i weights_i a_i - radius."""
        return float(self.weights @ -np.sort(-np.abs(w)) - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return twice the largest norm of a vertex: exact."""
        counts = np.arange(1.0, self.weights.size + 1.0)
        return float(2.0 * self.radius * (counts ** (1.0 / order) / np.cumsum(self.weights)).max())

    def decompose(self, w):
        """Return one vertex per different |w_j|, on all entries of at least that; the remaining weight is halved."""
        order = np.argsort(-np.abs(w), kind="stable")
        drops = -np.diff(np.append(np.abs(w)[order], 0.0))
        prices = np.cumsum(self.weights)
        parts = []
        for q in np.flatnonzero(drops):
            values = np.copysign(self.radius / prices[q], w[order[: q + 1]])
            parts.append((float(drops[q] * prices[q] / self.radius), SparseVertex(order[: q + 1], values)))
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            s = self.start(w.size)
            parts += [(rest / 2, s), (rest / 2, s.scaled(-1.0))]
        return parts

    def project(self, w):
        """Return the point of the ball nearest to ``w``: sorted sizes shrink by a multiple of the weights, and pool."""
        if self.violation(w) <= 0.0:
            return np.array(w)
        order = np.argsort(-np.abs(w), kind="stable")
        point = np.empty(w.size)
        point[order] = shrunk(np.abs(w)[order], self.weights, self.radius)
        return np.copysign(point, w)


@kernel
def shrunk(sizes, weights, radius):
    """Return the decreasing x >= 0 nearest to ``sizes``, which decrease, with sum_i weights_i x_i = radius.

    For a multiplier theta it is the nearest decreasing vector to sizes - theta weights, cut at 0: neighbours that break
    the order are pooled, and all entries of a pool have their mean. The sum of weights_i x_i decreases with theta, and
    is linear as long as the pools are the same, so that Newton steps in a bracket reach the right theta soon.
    """
    d = sizes.shape[0]
    tops, costs, counts = np.empty(d), np.empty(d), np.empty(d)  # of the pools: sums of sizes and weights, and numbers
    bracket, theta = Bracket(0.0, np.inf), 0.0
    for _ in range(200):
        n_pools, total, slope = 0, 0.0, 0.0
        for j in range(d):
            top, cost, count = sizes[j], weights[j], 1.0
            while (
                n_pools > 0
                and (tops[n_pools - 1] - theta * costs[n_pools - 1]) * count
                <= (top - theta * cost) * counts[n_pools - 1]
            ):
                n_pools -= 1
                top, cost, count = top + tops[n_pools], cost + costs[n_pools], count + counts[n_pools]
            tops[n_pools], costs[n_pools], counts[n_pools] = top, cost, count
            n_pools += 1
        for q in range(n_pools):
            mean = (tops[q] - theta * costs[q]) / counts[q]
            if mean > 0.0:
                total += costs[q] * mean
                slope += costs[q] * costs[q] / counts[q]
        last = theta
        bracket, theta = bracket.after(theta, radius - total, slope, 0.0, np.inf)
        if abs(radius - total) <= 1e-15 * radius or theta == last:
            break
    factor = radius / total if total > radius else 1.0
    x = np.empty(d)
    j = 0
    for q in range(n_pools):
        mean = max((tops[q] - last * costs[q]) / counts[q], 0.0)
        for _ in range(int(counts[q])):
            x[j] = factor * mean
            j += 1
    return x
