"""Decimal text to the nearest double, in kernels: the same bits as Python's ``float``.

A number is w 10^q with a whole w. If w < 2^53 and |q| <= 22, both w and 10^|q| are doubles, and one product or quotient
is rounded once [1]_. Else, 64 bits of w times 128 bits of 5^q give the 54 leading bits of the number, unless it lies
too close to the middle of two doubles for 128 bits to tell [2]_: such numbers are left to Python, like subnormal ones.

References
----------
.. [1] W. D. Clinger, How to read floating point numbers accurately, PLDI 1990.
.. [2] D. Lemire, Number parsing at a gigabyte per second, Software: Practice and Experience 51(8), 2021, Algorithm 1.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from condgrad.compiled import float_of, kernel

PLUS, MINUS, POINT, ZERO, UPPER_E, LOWER_E = b"+-.0Ee"
_MOST_DIGITS = 19  # of which every whole number fits into 64 bits
_EXACT = np.uint64(2**53)  # whole numbers up to here are doubles
_FARTHEST = 100_000  # exponents are cut off here: far outside the range of doubles
_LEAST, _MOST = -342, 308  # exponents q outside give 0 or infinity for every w
_LEAST_EXACT, _MOST_EXACT = -27, 55  # between them the table's 128 bits tell all
_N0, _N1, _N3, _N9, _N10, _N32, _N63 = (np.uint64(n) for n in (0, 1, 3, 9, 10, 32, 63))
_LOW_HALF, _ALL, _LAST_NINE = np.uint64(2**32 - 1), np.uint64(2**64 - 1), np.uint64(2**9 - 1)
_FRACTION = np.uint64(2**52 - 1)  # the bits of a double that are its fraction
_TOP = np.uint64(2**53)


class Powers(NamedTuple):
    """Powers of ten that are doubles, and the leading 128 bits of powers of five, in two halves."""

    of_ten: np.ndarray
    high: np.ndarray
    low: np.ndarray


@functools.cache
def powers() -> Powers:
    """Return the tables; row q + 342 is for 5^q, exact from 0 to 55, rounded up from -27 to -1, down otherwise.

    5^27 is less than 2^64. So for these q a product with 5^q can be a whole number, and must not come out below it.

    >>> tables = powers()
    >>> hex(tables.high[342]), tables.of_ten[2]
    ('0x8000000000000000', np.float64(100.0))
    """
    high, low = np.empty(_MOST - _LEAST + 1, np.uint64), np.empty(_MOST - _LEAST + 1, np.uint64)
    for k, q in enumerate(range(_LEAST, _MOST + 1)):
        if q >= 0:
            excess = (5**q).bit_length() - 128
            bits = 5**q >> excess if excess > 0 else 5**q << -excess
        else:
            bits = 2 ** ((5**-q).bit_length() + 127) // 5**-q + (1 if q >= _LEAST_EXACT else 0)
        high[k], low[k] = bits >> 64, bits & (2**64 - 1)
    return Powers(10.0 ** np.arange(23), high, low)


@kernel
def read_number(text, i, powers):
    """Return the number that begins at i and where it ends; (0.0, 0) if it is not plain, or is left to Python.

    There must be a character after the number, such as a line end.
    """
    c = text[np.uintp(i)]
    sign = 1.0 - 2.0 * (c == MINUS)
    i += np.int64((c == MINUS) | (c == PLUS))  # no branch: signs are hard to predict
    begin, w = i, _N0
    digit = np.uint64(text[np.uintp(i)]) - np.uint64(ZERO)
    while digit <= _N9:
        w = _N10 * w + digit
        i += 1
        digit = np.uint64(text[np.uintp(i)]) - np.uint64(ZERO)
    n_digits, q = i - begin, 0
    if text[np.uintp(i)] == POINT:
        i += 1
        after = i
        digit = np.uint64(text[np.uintp(i)]) - np.uint64(ZERO)
        while digit <= _N9:
            w = _N10 * w + digit
            i += 1
            digit = np.uint64(text[np.uintp(i)]) - np.uint64(ZERO)
        q = after - i
        n_digits -= q
    if n_digits == 0:
        return 0.0, 0
    is_cut = False
    if n_digits > _MOST_DIGITS:
        w, q, is_cut = _leading_digits(text, begin)
    c = text[np.uintp(i)]
    if c in (LOWER_E, UPPER_E):
        exponent, i = _exponent(text, i + 1)
        if i == 0:
            return 0.0, 0
        q += exponent
    if w <= _EXACT and -22 <= q <= 22 and not is_cut:
        value = float(w)
        value = value / powers.of_ten[np.uintp(-q)] if q < 0 else value * powers.of_ten[np.uintp(q)]
        return sign * value, i
    value, is_sure = _nearest(w, q, powers)
    if is_cut and is_sure:  # the number lies between w 10^q and (w + 1) 10^q
        above, is_sure = _nearest(w + _N1, q, powers)
        is_sure = is_sure and above == value
    if not is_sure:
        return 0.0, 0
    return sign * value, i


@kernel
def _leading_digits(text, i):
    """Return the first 19 digits that count, their exponent, and whether digits other than 0 follow."""
    w, q, n_digits, is_fraction, is_cut = _N0, 0, 0, False, False
    while True:
        digit = np.uint64(text[np.uintp(i)]) - np.uint64(ZERO)
        if digit <= _N9:
            if n_digits < _MOST_DIGITS:
                w = _N10 * w + digit
                n_digits += 1 if w > _N0 else 0
                q -= 1 if is_fraction else 0
            else:
                is_cut = is_cut or digit > _N0
                q += 0 if is_fraction else 1
        elif text[np.uintp(i)] == POINT and not is_fraction:
            is_fraction = True
        else:
            return w, q, is_cut
        i += 1


@kernel
def _exponent(text, i):
    """Return the exponent that begins at i, and where it ends; (0, 0) if it is not plain."""
    c = text[np.uintp(i)]
    is_negative = c == MINUS
    if is_negative or c == PLUS:
        i += 1
    begin, value = i, 0
    c = np.int64(text[np.uintp(i)]) - ZERO
    while 0 <= c <= 9:
        value = min(_FARTHEST, 10 * value + c)
        i += 1
        c = np.int64(text[np.uintp(i)]) - ZERO
    if i == begin:
        return 0, 0
    return -value if is_negative else value, i


@kernel
def _nearest(w, q, powers):
    """Return the double next to w 10^q, and whether it is known to be that."""
    if w == _N0:
        return 0.0, True
    if q < _LEAST or q > _MOST:
        return 0.0, False
    shift = _leading_zeros(w)
    w = w << np.uint64(shift)
    row = np.uintp(q - _LEAST)
    high, low = _product(w, powers.high[row])
    if high & _LAST_NINE == _LAST_NINE:  # the bits of the product that the lower half may change reach up to here
        more, _ = _product(w, powers.low[row])
        low += more
        if low < more:
            high += _N1
    if low == _ALL and not _LEAST_EXACT <= q <= _MOST_EXACT:  # the rest of 5^q, which was cut off, may count
        return 0.0, False
    top = high >> _N63
    drop = top + _N9
    bits = high >> drop
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(top) - shift  # 217706 / 2^16 is log2(10); 1086 = 1023 + 63
    if not 0 < exponent < 2047:
        return 0.0, False
    # In the middle of two doubles, which such q alone can give, the even one is the nearest.
    if low <= _N1 and -4 <= q <= 23 and bits & _N3 == _N1 and bits << drop == high:
        bits -= _N1
    bits = (bits + (bits & _N1)) >> _N1
    if bits == _TOP:
        bits, exponent = bits >> _N1, exponent + 1
        if exponent == 2047:
            return 0.0, False
    return float_of(np.int64((np.uint64(exponent) << np.uint64(52)) | (bits & _FRACTION))), True


@kernel
def _leading_zeros(w):
    """Return the number of zero bits above the first one; w is not zero."""
    count, step = 0, 32
    while step > 0:
        if w >> np.uint64(64 - step) == _N0:
            w = w << np.uint64(step)
            count += step
        step >>= 1
    return count


@kernel
def _product(a, b):
    """Return the upper and the lower 64 bits of a product."""
    a1, a0, b1, b0 = a >> _N32, a & _LOW_HALF, b >> _N32, b & _LOW_HALF
    low, middle, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> _N32) + (middle & _LOW_HALF) + (other & _LOW_HALF)
    return a1 * b1 + (middle >> _N32) + (other >> _N32) + (carry >> _N32), a * b
