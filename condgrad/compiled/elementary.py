"""Elementary functions as kernels need them: without a call or a branch, so that loops over samples vectorise.

Outside kernels they are NumPy's. The C library's functions cost 5 to 10 ns each, one number at a time; these cost about
1 ns in a vectorised loop and are wrong by at most 2 units in the last place.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from condgrad.compiled import bits_of, float_of, scalar_form

T = TypeVar("T", float, np.ndarray)  # the same formula for one number and for many

_LOG2_E = 1.4426950408889634
_LOG_2 = 0.6931471805599453
_LOG_2_HIGH, _LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the product of the first with k is exact
_ROUND = 1.5 * 2.0**52  # added to a float, it leaves the nearest whole number in the last bits


def exp(x: T) -> T:
    """Return exp(x); inside kernels, results below 1e-307 are 0.

    >>> exp(np.array([0.0, 1.0])).round(6)
    array([1.      , 2.718282])
    """
    return np.exp(x)


@scalar_form(exp)
def _exp(x):
    """2^k exp(r) with |r| <= log(2)/2, and exp(r) by its Taylor polynomial of degree 13."""
    inside = -708.0 if x < -708.0 else x  # a nan stays
    shifted = inside * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (inside - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + (1 / 2 + 1 / 6 * r) * r2 + ((1 / 24 + 1 / 120 * r) + (1 / 720 + 1 / 5040 * r) * r2) * r4
    high = (1 / 40320 + 1 / 362880 * r) + (1 / 3628800 + 1 / 39916800 * r) * r2
    high += (1 / 479001600 + 1 / 6227020800 * r) * r4
    power = float_of(bits_of(low + high * r4 * r4) + (bits_of(shifted) << 52))  # k is added to the exponent
    return 0.0 if x < -708.0 else np.inf if x > 709.0 else power


def log1p_of_fraction(x: T) -> T:
    """Return log(1 + x) for 0 <= x <= 1.

    >>> float(log1p_of_fraction(1.0))
    0.6931471805599453
    """
    return np.log1p(x)


@scalar_form(log1p_of_fraction)
def _log1p_of_fraction(x):
    """2 artanh(s) with s = f / (2 + f) for 1 + f = 1 + x or its half, whichever is nearer to 1: then |s| <= 0.172."""
    is_halved = x > 0.41421356237309503
    f = 0.5 * (x - 1.0) if is_halved else x
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    series = (2 / 3 + 2 / 5 * z) + (2 / 7 + 2 / 9 * z) * z2 + ((2 / 11 + 2 / 13 * z) + (2 / 15 + 2 / 17 * z) * z2) * z4
    series += ((2 / 19 + 2 / 21 * z) + 2 / 23 * z2) * z4 * z4
    log = 2.0 * s + s * z * series
    return log + _LOG_2 if is_halved else log
