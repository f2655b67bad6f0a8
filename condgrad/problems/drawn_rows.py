"""Rows that are drawn by their curvature, to estimate a sum over all of them."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel

_HIGHEST = float(np.finfo(np.float64).max)  # rate: an infinite one times zero is not a number


def sample_by_curvature(d: np.ndarray, count: float) -> tuple[np.ndarray, np.ndarray]:
    """Return about ``count`` rows i with weights c_i such that sum_i c_i x_i x_i' approximates sum_i d_i x_i x_i'.

    Row i is included with probability min(1, rate d_i), and its weight is d_i divided by this probability. The sampling
    is systematic (one row every 1 / rate of the running sum of d), not random: the rows are spread evenly, and equal
    calls give equal rows. There are fewer rows if all d are so close to zero that the rate would be infinite.
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
    size, walked = 0, 0.5
    for i in range(d.shape[0]):
        walked = walked + min(1.0, rate * d[i])
        if walked >= 1.0:
            walked = walked - 1.0
            rows[size] = i
            c[size] = max(d[i], 1.0 / rate)
            size += 1
    return size
