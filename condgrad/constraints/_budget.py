"""The amounts {u : 0 <= u_j <= limits_j, sum_j prices_j u_j <= budget}; shared by several sets. Prices may be 0."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._rounding import WIDE_EPS

_SAME = 1e-14  # difference of two amounts, relative to their limit or the largest one, that is rounding


def most_within_budget(gains: np.ndarray, prices: np.ndarray, limits: np.ndarray, budget: float) -> np.floating:
    """Return an upper bound of the largest <gains, u>, for gains >= 0.

    It is price budget + sum_j limits_j (gains_j - price prices_j)_+, which in exact arithmetic is a bound for any price
    >= 0 of money; the best price is the one at which the budget is spent. All arrays are wide: NumPy 1 rounds the
    product of a wide number and a plain array to plain floats.
    """
    ratios = np.full(gains.size, np.inf, dtype=np.longdouble)
    np.divide(gains, prices, out=ratios, where=prices > 0.0)
    order = np.argsort(-ratios)
    is_spent = np.cumsum((limits * prices)[order]) >= budget
    price = ratios[order[is_spent.argmax()]] if is_spent.any() else np.longdouble(0.0)
    profits = np.maximum(gains - price * prices, 0.0)
    rounding = (4 * gains.size + 64) * WIDE_EPS * (limits * gains)[profits > 0.0].sum()
    return price * budget + (limits * profits).sum() + rounding


def project_within_budget(v: np.ndarray, prices: np.ndarray, limits: np.ndarray, budget: float) -> np.ndarray:
    """Return the amounts nearest to ``v``: v - theta prices, clipped, for the smallest theta >= 0.

    The cost of the amounts decreases with theta, linearly between the places where an entry leaves a bound: bisection
    over these places finds the interval, and a linear equation gives theta.
    """

    def clipped(theta):
        return np.clip(v - theta * prices, 0.0, limits)

    if prices @ clipped(0.0) <= budget:
        return clipped(0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = np.concatenate([(v - limits) / prices, v / prices])
    places = np.unique(np.concatenate([[0.0], places[np.isfinite(places) & (places > 0.0)]]))
    low, high = 0, places.size - 1  # the cost is above the budget at places[low], and not at places[high]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if prices @ clipped(places[middle]) > budget else (low, middle)
    at_low, at_high = (prices @ clipped(places[k]) for k in (low, high))
    share = (at_low - budget) / (at_low - at_high)
    return clipped(places[low] + share * (places[high] - places[low]))


def decompose_within_budget(
    u: np.ndarray, prices: np.ndarray, limits: np.ndarray, budget: float
) -> list[tuple[float, np.ndarray]]:
    """Return at most d + 2 pairs (weight, amounts) that sum to u, the weights to one; all limits are finite.

    The amounts v of a pair are a vertex of the smallest face that contains u. The line from v through u leaves the face
    where one more amount becomes 0 or full, or the budget is spent: the rest of u is the point there.
    """
    parts: list[tuple[float, np.ndarray]] = []
    u, left, is_spent = np.clip(u, 0.0, limits), 1.0, False
    is_between = (u > 0.0) & (u < limits)
    same = _SAME * np.minimum(limits, u.max(initial=0.0))
    while True:
        v = _vertex_of_face(u, is_between, prices, limits, budget if is_spent else 0.0)
        direction = u - v
        # Each step from v through u has made the rounding errors of the rest larger, as it has made its weight smaller.
        if (left * np.abs(direction) <= same).all():
            return [*parts, (left, _within(v, prices, budget))]
        step, blocker = _longest_step(u, direction, limits)
        room, rise = max(0.0, budget - float(prices @ u)), float(prices @ direction)
        if not is_spent and step * rise > room:
            step, blocker, is_spent = room / rise, -1, True
        if step > 0.0:
            parts.append((left * step / (1.0 + step), _within(v, prices, budget)))
            left /= 1.0 + step
        u = np.clip(u + step * direction, 0.0, limits)
        if blocker >= 0:
            u[blocker] = limits[blocker] if direction[blocker] > 0.0 else 0.0
            is_between[blocker] = False


def _vertex_of_face(
    u: np.ndarray, is_between: np.ndarray, prices: np.ndarray, limits: np.ndarray, budget: float
) -> np.ndarray:
    """Return a vertex that has the amounts of u which are 0 or full, and spends the ``budget`` on the others."""
    v = np.where(is_between, 0.0, u)
    rest = budget - float(prices @ v)
    for j in np.flatnonzero(is_between & (prices > 0.0)):
        if rest <= 0.0:
            break
        v[j] = min(limits[j], rest / prices[j])
        rest -= prices[j] * v[j]
    return v


def _within(v: np.ndarray, prices: np.ndarray, budget: float) -> np.ndarray:
    """Return amounts that cost no more than the budget: steps may give them any weight, so rounding may not."""
    cost = float(prices @ v)
    return v if cost <= budget else np.where(prices > 0.0, v * (budget / cost), v)


def _longest_step(u: np.ndarray, direction: np.ndarray, limits: np.ndarray) -> tuple[float, int]:
    """Return the longest step that keeps 0 <= u <= limits, and the entry that stops it."""
    room = np.where(direction > 0.0, limits - u, u)
    steps = np.full(u.size, np.inf)
    np.divide(room, np.abs(direction), out=steps, where=direction != 0.0)
    blocker = int(steps.argmin())
    return float(steps[blocker]), blocker
