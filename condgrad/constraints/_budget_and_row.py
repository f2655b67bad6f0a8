"""Linear programs over a budget and one more row, by a line that is turned: contrasts in an l1 ball, target returns.

With a budget <c, x> <= R of positive prices c and x >= 0, the points are the means of 0 and of the ends (R / c_j) e_j.
End j costs cost_j R / c_j, and adds a_j R / c_j to the other row. In the plane of these two numbers the least cost at a
given side of that row lies on the lower hull of the ends. So two ends are enough, one on each side, and the slope
between them is the multiplier of the row: as long as an end lies below the line through both, it replaces that on its
own side. It takes less time than the simplex method, and no model has to be made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from condgrad.constraints.linear_rows import LinearRows
from condgrad.linalg.rounding import UNIT

_MOST_TURNS = 200  # of the line; each of them leads below the last, and ten are usual
_NEARLY = 1.0 - 1e-9  # share of the budget that an upper bound of an entry must allow, if it is not to count


class BudgetAndRow(NamedTuple):
    """Minimise <cost, x> over x >= 0, a budget and one row, for many costs.

    Examples
    --------
    >>> ones, returns = np.ones(3), np.array([1.0, 2.0, 3.0])
    >>> rows = LinearRows(np.zeros(3), np.ones(3), A_eq=np.array([ones, returns]), b_eq=np.array([1.0, 2.5]))
    >>> x, y = BudgetAndRow.of(rows).minimise(np.array([1.0, 5.0, 2.0]))
    >>> print(x, y)
    [0.25 0.   0.75] [0.5 0.5]
    """

    sizes: np.ndarray  # R / c_j, and 0 for the end 0 where less than the budget may be used
    terms: np.ndarray  # what the ends add to the row
    budget: float
    low_side: float
    high_side: float
    high: np.ndarray
    place: int  # which of the two rows is the budget

    @classmethod
    def of(cls, rows: LinearRows) -> BudgetAndRow | None:
        """Return the program; None where it is another one."""
        if rows.n_rows != 2 or rows.low.any():
            return None
        _, high, A, low_sides, high_sides = rows.polyhedron()
        A = A.toarray() if scipy.sparse.issparse(A) else A
        for place, (prices, low_side, budget) in enumerate(zip(A, low_sides, high_sides, strict=True)):
            is_budget = prices.min(initial=np.inf) > 0.0 and 0.0 < budget < np.inf and low_side in (-np.inf, budget)
            if is_budget and (prices * high >= _NEARLY * budget).all():
                other = 1 - place
                with np.errstate(over="ignore", invalid="ignore"):  # prices next to 0 are left to the simplex method
                    sizes = budget / prices
                    terms = sizes * A[other]
                if not (np.isfinite(sizes) & np.isfinite(terms)).all():
                    continue
                if low_side != budget:
                    sizes, terms = np.append(sizes, 0.0), np.append(terms, 0.0)
                return cls(sizes, terms, budget, low_sides[other], high_sides[other], high, place)
        return None

    def minimise(self, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the best vertex and the multipliers of the rows; None where there is none."""
        costs = np.zeros(self.sizes.size)
        np.multiply(self.sizes[: cost.size], cost, out=costs[: cost.size])
        best = int(costs.argmin())
        term = float(self.terms[best])
        if self.low_side <= term <= self.high_side:
            return self._mean(best, best, 0.0, float(costs[best]), 0.0)
        is_left = term < self.low_side
        side = self.low_side if is_left else self.high_side
        others = np.flatnonzero(self.terms >= side if is_left else self.terms <= side)
        if others.size == 0:  # no mean of the ends reaches the side
            return None
        other = int(others[costs[others].argmin()])
        return self._between(best, other, side, costs) if is_left else self._between(other, best, side, costs)

    def _between(self, left: int, right: int, side: float, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the best mean of two ends that reaches the side, from any ends on its left and on its right."""
        terms = self.terms
        for _ in range(_MOST_TURNS):
            slope = (costs[right] - costs[left]) / (terms[right] - terms[left])
            heights = costs - slope * terms
            k, level = int(heights.argmin()), float(max(heights[left], heights[right]))
            if heights[k] >= level - 8.0 * UNIT * (abs(costs[k]) + abs(slope * terms[k]) + abs(level)):
                share = float((side - terms[left]) / (terms[right] - terms[left]))
                return self._mean(left, right, share, level, float(slope))
            if terms[k] < side or (terms[k] == side and terms[right] > side):  # the two ends stay apart
                left = k
            else:
                right = k
        return None

    def _mean(
        self, left: int, right: int, share: float, level: float, slope: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the mean of two ends, with this share of the right one, and the multipliers."""
        x, y = np.zeros(self.high.size + 1), np.empty(2)
        x[left if left < self.high.size else -1] += (1.0 - share) * self.sizes[left]
        x[right if right < self.high.size else -1] += share * self.sizes[right]
        y[self.place], y[1 - self.place] = level / self.budget, slope
        return np.minimum(x[:-1], self.high), y
