"""OneHotSlices: rows that are the codes of categories, one for each field, in one, two or four bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel

WIDTHS = (1, 2, 4)  # bytes of a code
ROWS = 1024  # rows that a pass goes through field by field: so few that their codes stay in the nearest cache


@compiled
class OneHotSlices(NamedTuple):
    """The rows of a one-hot matrix: codes of one, two and four bytes, and the first feature of each field."""

    codes1: np.ndarray
    codes2: np.ndarray
    codes4: np.ndarray
    first1: np.ndarray
    first2: np.ndarray
    first4: np.ndarray

    def n_fields(self):
        """Return the number of fields."""
        return self.codes1.shape[1] + self.codes2.shape[1] + self.codes4.shape[1]

    def features_of(self, k, out):
        """Set ``out`` to the features of row ``k``, one for each field."""
        n1, n2 = np.uint64(self.codes1.shape[1]), np.uint64(self.codes2.shape[1])
        for q in range(n1):
            out[q] = self.first1[q] + np.uint64(self.codes1[k, q])
        for q in range(n2):
            out[n1 + q] = self.first2[q] + np.uint64(self.codes2[k, q])
        for q in range(np.uint64(self.codes4.shape[1])):
            out[n1 + n2 + q] = self.first4[q] + np.uint64(self.codes4[k, q])

    def has(self, k, j):
        """Return whether row ``k`` has the feature ``j``."""
        wanted = np.uint64(j)
        for q in range(np.uint64(self.codes1.shape[1])):
            if self.first1[q] + np.uint64(self.codes1[k, q]) == wanted:
                return True
        for q in range(np.uint64(self.codes2.shape[1])):
            if self.first2[q] + np.uint64(self.codes2[k, q]) == wanted:
                return True
        for q in range(np.uint64(self.codes4.shape[1])):
            if self.first4[q] + np.uint64(self.codes4[k, q]) == wanted:
                return True
        return False

    # One row, for steps over single samples.

    def dot_slice(self, k, v):
        """Return ``<row k, v>`` for an array ``v``, accumulated in float64."""
        total = 0.0
        for q in range(self.codes1.shape[1]):
            total += v[self.first1[q] + np.uint64(self.codes1[k, q])]
        for q in range(self.codes2.shape[1]):
            total += v[self.first2[q] + np.uint64(self.codes2[k, q])]
        for q in range(self.codes4.shape[1]):
            total += v[self.first4[q] + np.uint64(self.codes4[k, q])]
        return total

    def add_slice(self, k, c, out):
        """Add ``c`` times row ``k`` to the vector ``out``."""
        for q in range(self.codes1.shape[1]):
            out.add_at(self.first1[q] + np.uint64(self.codes1[k, q]), c)
        for q in range(self.codes2.shape[1]):
            out.add_at(self.first2[q] + np.uint64(self.codes2[k, q]), c)
        for q in range(self.codes4.shape[1]):
            out.add_at(self.first4[q] + np.uint64(self.codes4[k, q]), c)

    def add_weighted(self, k, weights, c, other, out):
        """Add ``c * sum_i weights_i x_i y_i`` to ``out``: x is row ``k``, y_i are the slices of ``other``."""
        for q in range(np.uint64(self.codes1.shape[1])):
            j = self.first1[q] + np.uint64(self.codes1[k, q])
            other.add_slice(j, c * weights[j], out)
        for q in range(np.uint64(self.codes2.shape[1])):
            j = self.first2[q] + np.uint64(self.codes2[k, q])
            other.add_slice(j, c * weights[j], out)
        for q in range(np.uint64(self.codes4.shape[1])):
            j = self.first4[q] + np.uint64(self.codes4[k, q])
            other.add_slice(j, c * weights[j], out)

    # A pass goes through some rows field by field. The frequent categories of one field stay in the nearest cache, and
    # consecutive sums are those of different rows (of different features, for categories that differ), so that none
    # waits for the one before. For each row and for each feature the order of the terms is that of row after row.

    def dot_slices(self, first, v, out):
        """Set ``out`` to the products of ``v`` with the rows ``first``, ``first`` + 1, ...."""
        for top in range(0, out.shape[0], ROWS):
            end = min(top + ROWS, out.shape[0])
            for k in range(np.uint64(top), np.uint64(end)):
                out[k] = 0.0
            self.gather(first, v, out, top, end)

    def add_slices(self, first, c, out):
        """Add the rows from ``first`` on, each times its entry of ``c``, to the vector ``out``."""
        for top in range(0, c.shape[0], ROWS):
            end = min(top + ROWS, c.shape[0])
            self.scatter(first, c, out, top, end)

    def gather(self, first, v, out, top, end):
        """Add to out[k], for top <= k < end, the product of ``v`` with row first + k."""
        _gather(self.codes1, self.first1, first, v, out, top, end)
        _gather(self.codes2, self.first2, first, v, out, top, end)
        _gather(self.codes4, self.first4, first, v, out, top, end)

    def scatter(self, first, c, out, top, end):
        """Add c[k] times row first + k to the vector ``out``, for top <= k < end."""
        _scatter(self.codes1, self.first1, first, c, out, top, end)
        _scatter(self.codes2, self.first2, first, c, out, top, end)
        _scatter(self.codes4, self.first4, first, c, out, top, end)


@kernel
def _gather(codes, firsts, first, v, out, top, end):
    """Add to out[k], for top <= k < end, the entries of v at the features of row first + k."""
    start = np.uint64(first)
    for q in range(np.uint64(codes.shape[1])):
        zero = firsts[q]
        for k in range(np.uint64(top), np.uint64(end)):
            out[k] += v[zero + np.uint64(codes[start + k, q])]


@kernel
def _scatter(codes, firsts, first, c, out, top, end):
    """Add c[k], for top <= k < end, to the entries of ``out`` at the features of row first + k."""
    start = np.uint64(first)
    for q in range(np.uint64(codes.shape[1])):
        zero = firsts[q]
        for k in range(np.uint64(top), np.uint64(end)):
            out.add_at(zero + np.uint64(codes[start + k, q]), c[k])


def empty_codes(n_rows: int, width: int) -> np.ndarray:
    """Return the codes of no field, for a width that no field has."""
    return np.empty((n_rows, 0), np.dtype(f"u{width}"))
