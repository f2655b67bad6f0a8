"""The capped simplex {x in [0, cap]^d : sum x = total}: projection and decomposition shared by several sets."""

from __future__ import annotations

import numpy as np


def project_capped(v: np.ndarray, cap: float, total: float) -> np.ndarray:
    """Return the point of the capped simplex nearest to ``v``: clip(v - theta, 0, cap) for the right theta.

    The sum is a decreasing function of theta, linear between the places v_j and v_j - cap: bisection over these places
    finds the interval, and a linear equation gives theta. Cost O(d log d).
    """
    # With m = ceil(total / cap) and the m-th largest entry subtracted from all entries, theta lies in [-cap, 0].
    m = min(int(np.ceil(total / cap)), v.size)
    v = v - np.partition(v, -m)[-m]

    def reach(theta):
        return np.clip(v - theta, 0.0, cap).sum()

    places = np.unique(np.concatenate([np.clip(v - cap, -cap, 0.0), np.clip(v, -cap, 0.0), [-cap, 0.0]]))
    low, high = 0, places.size - 1  # reach(places[low]) >= total >= reach(places[high])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reach(places[middle]) >= total else (low, middle)
    at_low, at_high = reach(places[low]), reach(places[high])
    share = (at_low - total) / (at_low - at_high) if at_low > at_high else 0.0
    return np.clip(v - (places[low] + share * (places[high] - places[low])), 0.0, cap)


def systematic_sample(t: np.ndarray, k: int) -> list[tuple[float, np.ndarray]]:
    """Return 0/1 vectors with k ones whose mean is t, in [0, 1]^m with sum k: (weight, places of the ones) pairs.

    Lay intervals of the lengths t_j one after another on [0, k): for u in [0, 1), the points u, u + 1, ..., u + k - 1
    lie in k different intervals, and one of them in interval j for a fraction t_j of all u. There are at most m + 1
    vectors.
    """
    ends = np.cumsum(np.clip(t, 0.0, 1.0))
    ends *= k / ends[-1]
    # Merge ends that differ by rounding only.
    cuts = np.unique(np.concatenate([[0.0, 1.0], np.round(ends % 1.0, 12)]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    return [
        (float(weight), np.searchsorted(ends, u + np.arange(k), side="right"))
        for weight, u in zip(np.diff(cuts), middles)
    ]
