"""Linear programs over bounds and a single row, by sorting: shares that sum to one, contrasts in a box, a budget.

As the multiplier y of the row grows past cost_j / a_j, entry j goes from the bound where a_j x_j is least to the one
where it is largest. So only the entry at which <a, x> reaches the side of the row lies between its bounds. It takes
less time than the simplex method, and no model has to be made.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from condgrad.constraints.linear_rows import LinearRows

_MISSED = 1e-10  # amount by which the row may be missed, as by the simplex method


class SingleRow:
    """Minimise <cost, x> over bounds and one row, for many costs.

    Examples
    --------
    >>> shares = LinearRows(np.zeros(3), np.full(3, np.inf), A_eq=np.ones((1, 3)), b_eq=np.ones(1))
    >>> x, y = SingleRow(shares).minimise(np.array([2.0, 1.0, 3.0]))
    >>> print(x, y)
    [0. 1. 0.] [1.]
    """

    def __init__(self, rows: LinearRows) -> None:
        self.low, self.high, A, (self.low_side,), (self.high_side,) = rows.polyhedron()
        a = np.asarray(A.toarray() if scipy.sparse.issparse(A) else A)[0]
        self.places = np.flatnonzero(a)
        self.a = a[self.places]
        ends = self.a * self.low[self.places], self.a * self.high[self.places]
        self.least, self.most = np.minimum(*ends), np.maximum(*ends)  # of the terms of the row

    def minimise(self, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the best vertex and the multiplier of the row, in an array; None where sorting does not find them."""
        x = np.where((cost > 0.0) | ((cost == 0.0) & np.isfinite(self.low)), self.low, self.high)
        with np.errstate(invalid="ignore"):  # the sum of two infinite terms
            row = float((self.a * x[self.places]).sum())
        if self.low_side <= row <= self.high_side:
            return (x, np.zeros(1)) if np.isfinite(x).all() else None
        return None if np.isnan(row) else self._at(self.low_side if row < self.low_side else self.high_side, cost, x)

    def _at(self, side: float, cost: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the best vertex with <a, x> = side, for the best x without the row, which is changed."""
        prices = cost[self.places] / self.a
        order = np.argsort(prices, kind="stable")
        least, most = self.least[order], self.most[order]
        first = np.flatnonzero(np.isinf(least)).max(initial=0)  # before it, all terms are at their largest
        last = np.flatnonzero(np.isinf(most)).min(initial=order.size - 1)  # after it, all are at their least
        if first > last:
            return None
        below = np.append(0.0, np.cumsum(most[:last]))  # sums of the terms before each place
        above = np.append(np.cumsum(least[:first:-1])[::-1], 0.0)  # and after it
        k = first + int(np.searchsorted((below[first:] + most[first : last + 1]) + above[: last - first + 1], side))
        k = min(k, last)
        term = side - below[k] - above[k - first]
        if not least[k] - _MISSED <= term <= most[k] + _MISSED:
            return None
        at, a = self.places[order], self.a[order]
        x[at] = np.where((np.arange(order.size) < k) == (a > 0.0), self.high[at], self.low[at])
        x[at[k]] = min(max(term / a[k], self.low[at[k]]), self.high[at[k]])
        return (x, prices[order[k : k + 1]]) if np.isfinite(x).all() else None
