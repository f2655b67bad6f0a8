"""Rows that are drawn by their curvature, to estimate a sum over all of them."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.spread import GOLDEN

_HIGHEST = float(np.finfo(np.float64).max)  # rate: an infinite one times zero is not a number


def sample_by_curvature(d: np.ndarray, count: float) -> tuple[np.ndarray, np.ndarray]:
    """Return about ``count`` rows i with weights c_i such that sum_i c_i x_i x_i' approximates sum_i d_i x_i x_i'.

    A row with rate d_i >= 1 is taken as it is. The running sum of the others, times the rate, is cut into ranges of
    length one, and the row at one place of each is taken. The golden ratio gives these places, not chance: the rows are
    spread evenly, no period of the data can meet them, and equal calls give equal rows. There are fewer rows if all d
    are so close to zero that the rate would be infinite.
    """
    total = float(d.sum())
    return sample_at_rate(d, min(count / total, _HIGHEST) if total > 0.0 else 0.0)


def sample_at_rate(d: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and weights as :func:`sample_by_curvature` does, for a given rate."""
    rows, c = np.empty(d.size, dtype=np.int64), np.empty(d.size)
    size = _sample_by_curvature(d, rate, rows, c) if rate > 0.0 else 0
    return rows[:size], c[:size]


@kernel
def _sample_by_curvature(d, rate, rows, c):
    size, walked, place = 0, 0.0, 0.5  # where this range has been walked to, and its place; 2: it lies behind
    turn = place
    for i in range(d.shape[0]):
        share = rate * d[i]
        if share >= 1.0:
            rows[size] = i
            c[size] = d[i]
            size += 1
            continue
        walked, count = walked + share, 0
        if walked >= place:
            place, count = 2.0, 1
        if walked >= 1.0:  # the next range
            walked = walked - 1.0
            turn = turn + GOLDEN if turn + GOLDEN < 1.0 else turn + GOLDEN - 1.0
            place = turn
            if walked >= place:
                place, count = 2.0, count + 1
        if count > 0:
            rows[size] = i
            c[size] = count / rate
            size += 1
    return size
