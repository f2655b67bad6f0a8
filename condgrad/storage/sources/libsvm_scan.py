"""A fast parser of plain LIBSVM text; anything unusual is left to the strict one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from condgrad.compiled import kernel

_TAB, _NEWLINE, _RETURN, _SPACE, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _COLON, _UPPER_E, _LOWER_E = b"\t\n\r +-.09:Ee"
_POWERS = 10.0 ** np.arange(23)  # these are exact, so one product or quotient with an exact integer is rounded once
_EXACT = 2**53  # integers up to here are exact
_MANY = 10**17  # mantissas from here on have digits that are not counted any more


def scan_libsvm(text: bytes, n_features: int) -> tuple[Any, np.ndarray] | None:
    """Return the CSR matrix and the targets of a text, with its numbers as float() reads them; None if it is not plain.

    Not plain are comments, and errors of any kind, such as 1e999.
    """
    n_lines, n_entries = text.count(b"\n") + 1, text.count(b":")
    values = np.empty(n_entries + n_lines)  # the entries, then the targets
    indices, indptr = np.empty(n_entries, np.int64), np.zeros(n_lines + 1, np.int64)
    long = np.empty((values.size, 3), np.int64)  # numbers of many digits: their places in values, begins and ends
    n, n_long = _scan(np.frombuffer(text, np.uint8), n_features, _POWERS, values, indices, indptr, long)
    if n < 0:
        return None
    for place, begin, end in long[:n_long].tolist():
        values[place] = float(text[begin:end])
    n_stored = indptr[n]
    if not (np.isfinite(values[:n_stored]).all() and np.isfinite(values[n_entries : n_entries + n]).all()):
        return None
    parts = (values[:n_stored], indices[:n_stored], indptr[: n + 1])
    return scipy.sparse.csr_matrix(parts, shape=(n, n_features)), values[n_entries : n_entries + n]


@kernel
def _scan(text, n_features, powers, values, indices, indptr, long):
    """Fill the arrays; return the numbers of samples and of long numbers, or -1 and 0 if the text is not plain."""
    n, k, i, end, n_long = 0, 0, 0, text.shape[0], 0
    while True:
        while i < end and (_is_space(text[i]) or text[i] == _NEWLINE):
            i += 1
        if i == end:
            return n, n_long
        i, n_long = _store(text, i, powers, values, indices.shape[0] + n, long, n_long)
        previous = 0
        while 0 <= i < end and text[i] != _NEWLINE:
            if not _is_space(text[i]):
                return -1, 0
            while i < end and _is_space(text[i]):
                i += 1
            if i == end or text[i] == _NEWLINE:
                break
            place, i = _place(text, i, n_features)
            if place <= previous:
                return -1, 0
            indices[k], previous = place - 1, place
            i, n_long = _store(text, i, powers, values, k, long, n_long)
            k += 1
        if i < 0:
            return -1, 0
        n += 1
        indptr[n] = k


@kernel
def _store(text, i, powers, values, place, long, n_long):
    """Store the number that begins at i; return where it ends (-1 if it is not plain), and how many were long."""
    values[place], end, is_exact = _number(text, i, powers)
    if end >= 0 and not is_exact:
        long[n_long, 0], long[n_long, 1], long[n_long, 2] = place, i, end
        n_long += 1
    return end, n_long


@kernel
def _place(text, i, n_features):
    """Return the index that begins at i, and where its value begins; (-1, -1) if it is not plain."""
    place = 0
    while i < text.shape[0] and _ZERO <= text[i] <= _NINE and place <= n_features:
        place = 10 * place + (np.int64(text[i]) - _ZERO)
        i += 1
    if place > n_features or i == text.shape[0] or text[i] != _COLON:
        return -1, -1
    return place, i + 1


@kernel
def _number(text, i, powers):
    """Return the number that begins at i, where it ends (-1 if it is not plain), and whether the number is exact."""
    end = text.shape[0]
    sign = 1.0
    if i < end and (text[i] == _MINUS or text[i] == _PLUS):
        sign = -1.0 if text[i] == _MINUS else 1.0
        i += 1
    mantissa, scale, n_digits, is_fraction = 0, 0, 0, False
    while i < end:
        if _ZERO <= text[i] <= _NINE:
            if mantissa < _MANY:
                mantissa = 10 * mantissa + (np.int64(text[i]) - _ZERO)
            scale -= 1 if is_fraction else 0
            n_digits += 1
        elif text[i] == _POINT and not is_fraction:
            is_fraction = True
        else:
            break
        i += 1
    if n_digits == 0:
        return 0.0, -1, False
    if i < end and (text[i] == _LOWER_E or text[i] == _UPPER_E):
        exponent, i = _exponent(text, i + 1)
        scale += exponent
    if i < 0 or mantissa > _EXACT or abs(scale) >= powers.shape[0]:
        return 0.0, i, False
    if scale < 0:
        return sign * (mantissa / powers[-scale]), i, True
    return sign * (mantissa * powers[scale]), i, True


@kernel
def _exponent(text, i):
    """Return the exponent that begins at i, and where it ends; (0, -1) if it is not plain."""
    end = text.shape[0]
    sign = 1
    if i < end and (text[i] == _MINUS or text[i] == _PLUS):
        sign = -1 if text[i] == _MINUS else 1
        i += 1
    start, value = i, 0
    while i < end and _ZERO <= text[i] <= _NINE:
        value = min(1000, 10 * value + (np.int64(text[i]) - _ZERO))
        i += 1
    if i == start:
        return 0, -1
    return sign * value, i


@kernel
def _is_space(character):
    """Return whether a character separates the entries of a line."""
    return character in (_SPACE, _TAB, _RETURN)
