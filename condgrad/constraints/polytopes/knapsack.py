"""The knapsack polytope."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._budget import decompose_within_budget, most_within_budget, project_within_budget
from condgrad.constraints._parameters import as_reals, shown
from condgrad.constraints._protocol import best_vertex, constraint_set
from condgrad.constraints._rounding import shortfall
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import SparseVertex, nonzeros
from condgrad.linalg.selection import largest
from condgrad.linalg.settings import check_positive


@constraint_set
class Knapsack(NamedTuple):
    """The knapsack polytope {w : 0 <= w_j <= upper_j, sum_j prices_j w_j <= budget}: what one can buy for a budget.

    At a vertex all entries but one are 0 or upper_j. The oracle spends the budget where a unit of money lowers <r, w>
    most, on the smallest r_j / prices_j first, as long as they are negative: O(d log d).

    Parameters
    ----------
    prices : array of shape (n_features,)
        The positive price of a unit of each feature.
    budget : float
        The largest total cost.
    upper : float or array of shape (n_features,)
        The largest amount of each feature, positive; by default only the budget limits it.

    Examples
    --------
    >>> sack = Knapsack(prices=[1.0, 2.0, 4.0], budget=4.0, upper=1.5)
    >>> sack.contains([1.5, 1.0, 0.0]), sack.contains([2.0, 0.0, 0.0]), sack.contains([1.0, 1.5, 1.0])
    (True, False, False)
    """

    prices: ArrayLike
    budget: float
    upper: ArrayLike = np.inf

    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def __repr__(self):
        return f"Knapsack(prices={shown(self.prices)}, budget={self.budget!r}, upper={shown(self.upper)})"

    @property
    def n_features(self):
        """The length of ``prices``."""
        return self.prices.size

    def prepare(self):
        """Return the fields with ``prices`` and ``upper`` as arrays of floats of one length."""
        prices = as_reals("Knapsack", "prices", self.prices)
        upper = [self.upper] * prices.size if np.ndim(self.upper) == 0 else self.upper
        upper = as_reals("Knapsack", "upper", upper, is_finite=False)
        if upper.size != prices.size:
            raise ValueError(f"upper of Knapsack must have one entry per price, {prices.size}; got {upper.size}.")
        return prices, self.budget, upper

    def check(self):
        """Raise unless budget, prices and upper bounds are positive, and budget / prices is finite."""
        check_positive("Knapsack", "budget", self.budget)
        for name, values in (("prices", self.prices), ("upper", self.upper)):
            if not values.min() > 0.0:  # a nan is no bound either
                raise ValueError(f"{name} of Knapsack must be positive; got {float(values.min())!r}.")
        if self.budget / float(self.prices.min()) == np.inf:
            raise ValueError(f"budget / prices of Knapsack must be finite; got the price {float(self.prices.min())!r}.")

    def lmo(self, r):
        """Return the point that lowers <r, w> most: features in the order of r_j / prices_j, while it is negative."""
        steepest = abs(r.at(r.argmax_abs()))
        scale = 1.0 if steepest == 0.0 else steepest
        ratios = np.empty(r.size())
        for j in range(r.size()):
            ratios[j] = r.at(j) / scale / self.prices[j]
        values = np.zeros(r.size())
        left = self.budget
        for j in np.argsort(ratios):
            if ratios[j] >= 0.0 or left == 0.0:
                break
            values[j] = min(self.upper[j], left / self.prices[j])
            left = max(0.0, left - self.prices[j] * values[j])  # rounding must not make it negative
        return nonzeros(values)

    def restricted(self, features):
        """Return the polytope on the chosen features alone."""
        return Knapsack(self.prices[features], self.budget, self.upper[features])

    def best_features(self, r, count, most):
        """Return the features of the best vertex, and others with a small r_j / prices_j."""
        others = largest(-r / self.prices, min(count, int(np.count_nonzero(r < 0.0))))
        return np.unique(np.concatenate([best_vertex(self, r).indices, others]))

    def oracle_rounding(self, r, s):
        """Return the most that the budget can gain along -r, plus <r, s>, rounded up."""

        def top(x):
            prices = np.asarray(self.prices, dtype=np.longdouble)
            limits = np.minimum(self.upper, self.budget / prices)
            return most_within_budget(np.maximum(-x, 0.0), prices, limits, self.budget)

        return shortfall(top, r, s)

    def linear_rows(self, n_features):
        """Return the row of the budget, with 0 <= w_j <= upper_j."""
        return LinearRows(np.zeros(n_features), self.upper, self.prices[None, :], np.array([self.budget]))

    def violation(self, w):
        """Return the largest of sum_j prices_j w_j - budget, -w_j and w_j - upper_j."""
        return float(np.max([self.prices @ w - self.budget, -w.min(), (w - self.upper).max()]))

    def decompose(self, w):
        """Return one vertex more than ``w`` has entries that are neither 0 nor at a limit, or two."""
        features = np.flatnonzero(w)
        if features.size == 0:
            return [(1.0, SparseVertex(np.zeros(1, np.int64), np.zeros(1)))]
        prices = self.prices[features]
        limits = np.minimum(self.upper[features], self.budget / prices)
        parts = decompose_within_budget(np.clip(w[features], 0.0, limits), prices, limits, self.budget)
        return [(weight, SparseVertex(features, u)) for weight, u in parts]

    def project(self, w):
        """Return the point of the polytope nearest to ``w``: w - theta prices, clipped, for the smallest theta >= 0."""
        return project_within_budget(w, self.prices, self.upper, self.budget)
