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
# Polynomials that agree with (exp(r) - 1 - r - r^2 / 2) / r^3 and with (2 artanh(s) - 2 s) / (s z), z = s^2, at the
# points of Chebyshev: for the same accuracy they need two and four terms less than those of Taylor.
_E2, _E3, _E4, _E5, _E6 = 0.5, 0.16666666666666666, 0.04166666666665136, 0.008333333333332155, 0.0013888888905881542
_E7, _E8, _E9 = 0.0001984126985433861, 2.4801536388690766e-05, 2.755728006701698e-06
_E10, _E11 = 2.761380686153829e-07, 2.509555467711111e-08
_L0, _L1, _L2, _L3 = 0.666666666666667, 0.39999999999899444, 0.2857142862600327, 0.22222211130259878
_L4, _L5, _L6 = 0.18182889455674947, 0.15331710618210773, 0.14616585424888623
_ROUND = 1.5 * 2.0**52  # added to a float, it leaves the nearest whole number in the last bits


def exp(x: T) -> T:
    """Return exp(x); inside kernels, results below 1e-307 are 0.

    >>> exp(np.array([0.0, 1.0])).round(6)
    array([1.      , 2.718282])
    """
    return np.exp(x)


@scalar_form(exp)
def _exp(x):
    """2^k exp(r) with |r| <= log(2)/2, and exp(r) by a polynomial of degree 11, wrong by less than 4e-17 of it."""
    inside = -708.0 if x < -708.0 else x  # a nan stays
    shifted = inside * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (inside - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + (_E2 + _E3 * r) * r2 + ((_E4 + _E5 * r) + (_E6 + _E7 * r) * r2) * r4
    high = (_E8 + _E9 * r) + (_E10 + _E11 * r) * r2
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
    series = (_L0 + _L1 * z) + (_L2 + _L3 * z) * z2 + ((_L4 + _L5 * z) + _L6 * z2) * z4
    log = 2.0 * s + s * z * series
    return log + _LOG_2 if is_halved else log
