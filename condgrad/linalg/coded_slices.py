"""CodedRows and CodedColumns: rows and columns of a table of numbers and codes, as slices; the ones are not stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from condgrad.compiled import compiled, kernel
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.one_hot_slices import ROWS, OneHotSlices
from condgrad.linalg.slices import slices_one_by_one


@compiled
class CodedRows(NamedTuple):
    """Rows of numbers, whose features are ``places``, and of the codes in ``fields``; numbers lie by columns."""

    numbers: np.ndarray
    places: np.ndarray
    fields: OneHotSlices

    def dot_slice(self, k, v):
        """Return ``<row k, v>`` for an array ``v``, accumulated in float64."""
        total = self.fields.dot_slice(k, v)
        for c in range(self.places.shape[0]):
            total += self.numbers[c, k] * v[self.places[c]]
        return total

    def add_slice(self, k, c, out):
        """Add ``c`` times row ``k`` to the vector ``out``."""
        self.fields.add_slice(k, c, out)
        for m in range(self.places.shape[0]):
            out.add_at(self.places[m], c * self.numbers[m, k])

    # Products go through some rows column by column, as those of OneHotSlices do. Codes are added row by row: the
    # features of a row differ, so that no sum waits for the one before, even where a category is frequent.

    def dot_slices(self, first, v, out):
        """Set ``out`` to the products of ``v`` with the rows ``first``, ``first`` + 1, ...."""
        start = np.uint64(first)
        for top in range(0, out.shape[0], ROWS):
            end = min(top + ROWS, out.shape[0])
            for k in range(np.uint64(top), np.uint64(end)):
                out[k] = 0.0
            for m in range(np.uint64(self.places.shape[0])):
                factor = v[self.places[m]]
                for k in range(np.uint64(top), np.uint64(end)):
                    out[k] += factor * self.numbers[m, start + k]
            self.fields.gather(first, v, out, top, end)

    def add_slices(self, first, c, out):
        """Add the rows from ``first`` on, each times its entry of ``c``, to the vector ``out``."""
        start = np.uint64(first)
        for top in range(0, c.shape[0], ROWS):
            end = min(top + ROWS, c.shape[0])
            for m in range(np.uint64(self.places.shape[0])):
                out.add_at(self.places[m], _inner(self.numbers[m], start + np.uint64(top), c[top:end]))
            for k in range(np.uint64(top), np.uint64(end)):
                if c[k] != 0.0:
                    self.fields.add_slice(start + k, c[k], out)

    def add_outer(self, k, c, H):
        """Add ``c`` times the outer product of row ``k`` with itself to the array ``H``."""
        n_fields = self.fields.n_fields()
        features = np.empty(n_fields + self.places.shape[0], np.uint64)
        entries = np.ones(features.shape[0])
        self.fields.features_of(k, features)
        for m in range(self.places.shape[0]):
            features[n_fields + m] = self.places[m]
            entries[n_fields + m] = self.numbers[m, k]
        for a in range(features.shape[0]):
            for b in range(features.shape[0]):
                H[features[a], features[b]] += c * entries[a] * entries[b]

    def add_squares(self, k, c, out):
        """Add ``c`` times the squares of the entries of row ``k`` to the vector ``out``; ones are their squares."""
        self.fields.add_slice(k, c, out)
        for m in range(self.places.shape[0]):
            out.add_at(self.places[m], c * self.numbers[m, k] * self.numbers[m, k])

    def sum_squares(self, k, weights):
        """Return the sum of ``weights_j`` times the square of entry j of row ``k``."""
        total = self.fields.dot_slice(k, weights)
        for m in range(self.places.shape[0]):
            total += weights[self.places[m]] * self.numbers[m, k] * self.numbers[m, k]
        return total

    def entry(self, k, j):
        """Return entry ``j`` of row ``k``."""
        for m in range(np.uint64(self.places.shape[0])):
            if self.places[m] == np.uint64(j):
                return float(self.numbers[m, k])
        return 1.0 if self.fields.has(k, j) else 0.0

    def n_stored(self, k):
        """Return how many entries row ``k`` has: one for each column of the table."""
        return self.fields.n_fields() + self.places.shape[0]

    def add_weighted(self, k, weights, c, other, out):
        """Add ``c * sum_i weights_i x_i y_i`` to ``out``: x is row ``k``, y_i are the slices of ``other``."""
        self.fields.add_weighted(k, weights, c, other, out)
        for m in range(self.places.shape[0]):
            j = self.places[m]
            other.add_slice(j, c * weights[j] * self.numbers[m, k], out)


@kernel
def _inner(numbers, start, c):
    """Return the inner product of c with the numbers from ``start`` on: four sums, none of which waits for another."""
    a, b, e, f = 0.0, 0.0, 0.0, 0.0
    size = np.uint64(c.shape[0])
    whole = size - size % np.uint64(4)
    for k in range(np.uint64(0), whole, np.uint64(4)):
        a += c[k] * numbers[start + k]
        b += c[k + np.uint64(1)] * numbers[start + k + np.uint64(1)]
        e += c[k + np.uint64(2)] * numbers[start + k + np.uint64(2)]
        f += c[k + np.uint64(3)] * numbers[start + k + np.uint64(3)]
    for k in range(whole, size):
        a += c[k] * numbers[start + k]
    return (a + b) + (e + f)


@slices_one_by_one
class CodedColumns(NamedTuple):
    """Columns of numbers, and columns of ones in the rows of a category: a counting sort has put these together.

    Column k is ``numbers[begin[k]]`` where ``is_number[k]``, else it has ones in the rows ``order[begin[k]:]``, sorted,
    as many as ``indptr`` says, which counts the entries of all columns.
    """

    numbers: np.ndarray
    order: np.ndarray
    begin: np.ndarray
    is_number: np.ndarray
    indptr: np.ndarray

    def n_stored(self, k):
        """Return how many entries column ``k`` has."""
        return self.indptr[k + 1] - self.indptr[k]

    def dot_slice(self, k, v):
        """Return ``<column k, v>`` for an array ``v``, accumulated in float64."""
        total = 0.0
        if self.is_number[k]:
            for i in range(self.numbers.shape[1]):
                total += self.numbers[self.begin[k], i] * v[i]
        else:
            for m in range(self.begin[k], self.begin[k] + self.n_stored(k)):
                total += v[self.order[m]]
        return total

    def add_slice(self, k, c, out):
        """Add ``c`` times column ``k`` to the vector ``out``."""
        if self.is_number[k]:
            for i in range(self.numbers.shape[1]):
                out.add_at(i, c * self.numbers[self.begin[k], i])
        else:
            for m in range(self.begin[k], self.begin[k] + self.n_stored(k)):
                out.add_at(self.order[m], c)

    def add_outer(self, k, c, H):
        """Add ``c`` times the outer product of column ``k`` with itself to the array ``H``."""
        for a in range(H.shape[0]):
            scaled = c * self.entry(k, a)
            if scaled != 0.0:
                for b in range(H.shape[0]):
                    H[a, b] += scaled * self.entry(k, b)

    def add_squares(self, k, c, out):
        """Add ``c`` times the squares of the entries of column ``k`` to the vector ``out``; ones are their squares."""
        if self.is_number[k]:
            for i in range(self.numbers.shape[1]):
                out.add_at(i, c * self.numbers[self.begin[k], i] * self.numbers[self.begin[k], i])
        else:
            self.add_slice(k, c, out)

    def sum_squares(self, k, weights):
        """Return the sum of ``weights_j`` times the square of entry j of column ``k``."""
        if not self.is_number[k]:
            return self.dot_slice(k, weights)
        total = 0.0
        for i in range(self.numbers.shape[1]):
            total += weights[i] * self.numbers[self.begin[k], i] * self.numbers[self.begin[k], i]
        return total

    def moments(self, k, weights):
        """Return mean, root mean square and standard deviation of column ``k`` under ``weights`` that sum to one."""
        mean = self.dot_slice(k, weights)
        square = self.sum_squares(k, weights)
        if self.is_number[k]:
            spread = 0.0
            for i in range(self.numbers.shape[1]):
                spread += weights[i] * (self.numbers[self.begin[k], i] - mean) ** 2
        else:
            others = max(0.0, 1.0 - mean)
            spread = mean * others * others + others * mean * mean
        return mean, np.sqrt(square), np.sqrt(spread)

    def entry(self, k, j):
        """Return entry ``j`` of column ``k``: a number, or one if bisection finds the row."""
        if self.is_number[k]:
            return float(self.numbers[self.begin[k], j])
        low = np.int64(self.begin[k])
        high = low + np.int64(self.n_stored(k))
        end = high
        while low < high:
            middle = (low + high) // 2
            if self.order[middle] < j:
                low = middle + 1
            else:
                high = middle
        if low < end and self.order[low] == j:
            return 1.0
        return 0.0

    def add_weighted(self, k, weights, c, other, out):
        """Add ``c * sum_i weights_i x_i y_i`` to ``out``: x is column ``k``, y_i are the slices of ``other``."""
        if self.is_number[k]:
            for i in range(self.numbers.shape[1]):
                other.add_slice(i, c * weights[i] * self.numbers[self.begin[k], i], out)
        else:
            for m in range(self.begin[k], self.begin[k] + self.n_stored(k)):
                i = self.order[m]
                other.add_slice(i, c * weights[i], out)


def rows_of(X: CodedData) -> CodedRows:
    """Return the rows of X."""
    return CodedRows(X.numbers, X.places, OneHotSlices(*X.codes, *X.firsts))


def columns_of(X: CodedData) -> CodedColumns:
    """Return the columns of X: four bytes more for every code."""
    (n, d), places = X.shape, X.places.astype(np.int64)
    is_number = np.zeros(d, np.bool_)
    is_number[places] = True
    counts = np.zeros(d, np.int64)
    for part, firsts in zip(X.codes, X.firsts, strict=True):
        for q, first in enumerate(firsts.tolist()):
            found = np.bincount(part[:, q])
            counts[first : first + found.size] += found
    begin = np.cumsum(counts) - counts  # numbers have none of them
    order = np.empty(n * X.n_fields, np.uint32)
    _sort(rows_of(X), begin.copy(), order)
    begin[places] = np.arange(places.size)
    counts[places] = n
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return CodedColumns(X.numbers, order, begin.view(np.uint64), is_number, indptr.view(np.uint64))


def sparse_columns(columns: CodedColumns, features: np.ndarray) -> scipy.sparse.csc_array:
    """Return some columns, with few entries, as a sparse matrix."""
    n = columns.numbers.shape[1]
    rows, entries, ends = [], [], [0]
    for j in features.tolist():
        begin, size = int(columns.begin[j]), int(columns.n_stored(j))
        is_number = bool(columns.is_number[j])
        rows.append(np.arange(n, dtype=np.uint32) if is_number else columns.order[begin : begin + size])
        entries.append(columns.numbers[begin] if is_number else np.ones(size, columns.numbers.dtype))
        ends.append(ends[-1] + size)
    parts = np.concatenate(entries), np.concatenate(rows).view(np.int32), np.array(ends, np.int32)
    return scipy.sparse.csc_array(parts, shape=(n, features.size))


@kernel
def _sort(rows, at, order):
    """Put the number of each row at the next places of its features."""
    n_fields = rows.fields.n_fields()
    features = np.empty(n_fields, np.uint64)
    for i in range(order.shape[0] // max(1, n_fields)):
        rows.fields.features_of(i, features)
        for q in range(n_fields):
            order[at[features[q]]] = i
            at[features[q]] += 1
