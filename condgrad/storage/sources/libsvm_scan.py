"""LIBSVM text in a kernel: a line that is not plain is left to the strict parser, which reads or refuses it."""

from __future__ import annotations

import mmap
from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.storage.sources.decimals import powers as powers_of_ten
from condgrad.storage.sources.decimals import read_number
from condgrad.storage.sources.libsvm_lines import Samples, parse_line

_NEWLINE, _SPACE, _HASH, _ZERO, _COLON, _TAB, _RETURN = b"\n #0:\t\r"
_MOST_DIGITS = 10  # of an index that the kernel reads
_OWN_PAGES = 2**20  # bytes from which on an array gets memory of its own


def scan_lines(text: bytes, name: str, line: int, n_features: int) -> Samples:
    """Return the samples of a text in LIBSVM format, with its numbers as ``float`` reads them.

    Errors call the text ``name`` and its first line ``line``.
    """
    text = text if text.endswith(b"\n") else text + b"\n"
    characters = np.frombuffer(text, np.uint8)
    n_lines, n_entries = _count(characters)
    found = _Arrays(
        new_array(n_entries, np.float64),
        new_array(n_entries, np.int32 if n_features < 2**31 else np.int64),
        new_array(n_lines, np.int64),
        new_array(n_lines, np.float64),
    )
    powers, at, n, k = powers_of_ten(), 0, 0, 0
    while True:
        at, n, k = _scan(characters, at, n, k, n_features, powers, found)
        if at == len(text):
            return Samples(found.values[:k], found.indices[:k], found.ends[:n], found.targets[:n])
        end = text.index(b"\n", at)
        target, indices, values = parse_line(text[at:end], name, line + text.count(b"\n", 0, at), n_features)
        found.indices[k : k + len(indices)], found.values[k : k + len(values)] = indices, values
        k += len(values)
        found.targets[n], found.ends[n] = target, k
        at, n = end + 1, n + 1


class _Arrays(NamedTuple):
    """What the kernel fills: entries, where those of each sample end, and targets."""

    values: np.ndarray
    indices: np.ndarray
    ends: np.ndarray
    targets: np.ndarray


def new_array(size: int, dtype: type) -> np.ndarray:
    """Return an array, not filled; a large one goes back to the system as soon as it is dropped.

    (What ``malloc`` frees between other arrays stays with the process.)
    """
    n_bytes = size * np.dtype(dtype).itemsize
    return np.empty(size, dtype) if n_bytes < _OWN_PAGES else np.frombuffer(mmap.mmap(-1, n_bytes), dtype)


@kernel
def _count(text):
    """Return the numbers of lines and of colons."""
    n_lines, n_colons = 0, 0
    for c in text:
        n_lines += c == _NEWLINE
        n_colons += c == _COLON
    return n_lines, n_colons


@kernel
def _scan(text, i, n, k, n_features, powers, found):
    """Fill the arrays from position i, sample n and entry k on; return where the end, or a line not plain, begins."""
    end = text.shape[0]
    while i < end:
        start, first = i, k
        i = _after_spaces(text, i)
        c = text[np.uintp(i)]
        if c not in (_NEWLINE, _HASH):
            target, i = read_number(text, i, powers)
            if i == 0:
                return start, n, first
            i, k = _entries(text, i, k, n_features, powers, found)
            if i == 0:
                return start, n, first
            found.targets[np.uintp(n)], found.ends[np.uintp(n)] = target, k
            n += 1
        while text[np.uintp(i)] != _NEWLINE:  # a comment
            i += 1
        i += 1
    return i, n, k


@kernel
def _entries(text, i, k, n_features, powers, found):
    """Read the entries of a line; return where they end, 0 if they are not plain, and how many entries there are."""
    previous = 0
    while True:
        c = text[np.uintp(i)]
        if c in (_NEWLINE, _HASH):
            return i, k
        begin = i
        i = _after_spaces(text, i)
        c = text[np.uintp(i)]
        if c in (_NEWLINE, _HASH):
            return i, k
        if i == begin:
            return 0, k
        place, begin = 0, i
        digit = np.int64(c) - _ZERO
        while 0 <= digit <= 9:
            place = 10 * place + digit
            i += 1
            digit = np.int64(text[np.uintp(i)]) - _ZERO
        if not previous < place <= n_features or i - begin > _MOST_DIGITS or text[np.uintp(i)] != _COLON:
            return 0, k
        value, i = read_number(text, i + 1, powers)
        if i == 0:
            return 0, k
        found.values[np.uintp(k)], found.indices[np.uintp(k)] = value, place - 1
        previous = place
        k += 1


@kernel
def _after_spaces(text, i):
    """Return the first position from i on that is no space within a line."""
    c = text[np.uintp(i)]
    while c == _SPACE or (_TAB <= c <= _RETURN and c != _NEWLINE):
        i += 1
        c = text[np.uintp(i)]
    return i
