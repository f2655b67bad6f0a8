"""From how many rows of dense data an exact model takes its curvature: as many as make the passes that follow cheapest.

With the curvature of k features from m rows that are drawn, the error of the minimiser of a model is about sqrt(k / m)
of the error before: a pass shrinks the gap to 1.6 sqrt(k / m) of it or less, as measured. So fewer rows cost passes,
and more rows cost time in their product. With all rows, a smooth loss is left with what changes in its curvature along
the step, and a quadratic one with the digits of single precision.
"""

from __future__ import annotations

import math

_FIXED = 8e6  # cost of a pass besides the data, its certificate and the next model, in multiply-adds of a pass
_MODEL = 0.1  # cost of the next model, times k^3
_SPEED, _FEW = 20.0, 100.0  # multiply-adds of a product of many columns in single precision in the time of one of a
# pass, and the number of columns at which they are half as many, measured
_DOUBLE = 1.8  # cost of double precision
_WORST = 1.6  # factor of sqrt(k / m)
_SMOOTH = 0.1  # what a pass leaves of the gap of a smooth loss with the curvature of all rows
_SINGLE = 2e-5  # the same for a quadratic loss, in single precision
_PRODUCTS = 2.0  # how often the curvature of a smooth loss is computed


def cheapest_count(n: int, k: int, fewest: float, reduction: float, is_quadratic: bool) -> float:
    """Return the number of rows, n for all of them, or inf for all in double precision.

    Parameters
    ----------
    n, k : int
        Numbers of samples and features.
    fewest : float
        The least number of rows.
    reduction : float
        The share of the gap that may be left.
    is_quadratic : bool
        Whether the curvature is the same everywhere, so that it is computed once.
    """
    a_pass = 2.0 * n * k + _FIXED + _MODEL * k**3
    # In double precision a product takes longer, but leaves nothing of the gap of a quadratic loss.
    best, least = math.inf, a_pass + _DOUBLE * _product(n, k) if is_quadratic else math.inf
    count = float(n)
    while count == n or count >= fewest:
        left = max(_WORST * math.sqrt(k / count) if count < n else 0.0, _SINGLE if is_quadratic else _SMOOTH)
        n_passes = _passes(reduction, left)
        n_products = 1.0 if is_quadratic else min(n_passes, _PRODUCTS)
        cost = n_passes * a_pass + n_products * _product(count, k)
        if cost < least:
            best, least = count, cost
        count = count / 2.0
    return best


def _product(count: float, k: int) -> float:
    """Return the cost of the product of so many rows with k features, in multiply-adds of a pass."""
    return count * k * (k + _FEW) / _SPEED


def _passes(reduction: float, left: float) -> float:
    """Return after how many passes the gap is small enough, if each leaves this share of it."""
    if left >= 0.9:
        return math.inf
    return max(1.0, math.ceil(math.log(max(reduction, 1e-16)) / math.log(left) - 1e-9))
