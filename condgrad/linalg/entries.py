"""Entries: some entries of a matrix, by rows and by columns, and operations on them, on all cores."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse

from condgrad.compiled import compiled, kernel
from condgrad.linalg import threads

T = TypeVar("T")


@compiled
class Side(NamedTuple):
    """The entries of each row (or of each column): entry k of slice i lies in column ``others[k]`` (or row).

    The entries of slice i are those from ``indptr[i]`` to ``indptr[i + 1]``; ``order[k]`` is the place of entry k in
    row order, the order of values and predictions.
    """

    indptr: np.ndarray
    others: np.ndarray
    order: np.ndarray


class Entries:
    """The places (rows[t], columns[t]) of an m x n matrix, sorted by rows.

    Parameters
    ----------
    rows, columns : integer arrays of one length, without repeated places
    shape : (m, n)

    Attributes
    ----------
    by_row, by_column : Side
    sorting : array
        The place of entry t in the arrays ``rows`` and ``columns`` as given.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.size = rows.size
        # scipy's conversion sorts in linear time; the data are the numbers of the entries.
        number = np.arange(self.size, dtype=np.int32 if self.size < 2**31 else np.int64)
        csr = scipy.sparse.csr_matrix((number, (rows, columns)), shape=shape)  # the caller has refused duplicates
        csr.sort_indices()
        self.sorting = csr.data
        csr.data = number
        csc = csr.tocsc()
        self.by_row = Side(csr.indptr, csr.indices, number)
        self.by_column = Side(csc.indptr, csc.indices, csc.data)

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry."""
        lengths = np.diff(self.by_row.indptr)
        return np.repeat(np.arange(self.shape[0], dtype=self.columns.dtype), lengths)

    @property
    def columns(self) -> np.ndarray:
        """The column of each entry."""
        return self.by_row.others

    @functools.cached_property
    def longest_chain(self) -> int:
        """A bound of the number of entries on the shortest path from a start row to a line, for the farthest line.

        Lines are rows and columns, and an entry joins its row and its column. Each connected component has one start
        row: its row with the most entries.
        """
        values = np.ones(self.size)
        left_rows, left_columns = self.row_sums(values) > 0, self.column_sums(values) > 0
        longest = 0
        while left_rows.any():
            degrees = np.where(left_rows, self.row_sums(values), -1.0)
            rows = np.zeros(self.shape[0])
            rows[int(degrees.argmax())] = 1.0
            count = 0
            while True:
                new_columns = (self.transpose_dot(values, rows) > 0) & left_columns
                left_rows[rows > 0] = False
                left_columns[new_columns] = False
                new_rows = (self.dot(values, new_columns.astype(np.float64)) > 0) & left_rows
                count += 2
                if not new_rows.any():
                    break
                rows = new_rows.astype(np.float64)
            longest = max(longest, count)
        return longest

    def values_of(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return the entries of A B'."""
        out = np.empty(self.size)
        task = functools.partial(_inner_products, self.by_row, np.ascontiguousarray(A), np.ascontiguousarray(B), out)
        self._over_rows(task, A.shape[1])
        return out

    def sums_of(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a_i + b_j at the entries."""
        out = np.empty(self.size)
        self._over_rows(functools.partial(_sums, self.by_row, a, b, out), 1)
        return out

    def dot(self, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return G x for the sparse matrix G with these values."""
        out = np.empty(self.shape[0])
        self._over_rows(functools.partial(_dot, self.by_row, values, x, out), 1)
        return out

    def transpose_dot(self, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return G'x for the sparse matrix G with these values."""

        def add(start: int, stop: int) -> np.ndarray:
            out = np.zeros(self.shape[1])
            _add(self.by_row, values, x, out, start, stop)
            return out

        return functools.reduce(np.add, self._over_rows(add, 1))

    def dot_each(self, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return G X for the sparse matrix G with these values and a matrix X; each entry is read once."""
        return self._times(self.by_row, self.shape[0], values, X)

    def transpose_dot_each(self, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return G'X, as :meth:`dot_each` returns G X."""
        return self._times(self.by_column, self.shape[1], values, X)

    def row_sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the values of each row."""
        return self.dot(values, np.ones(self.shape[1]))

    def column_sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the values of each column."""
        return self.transpose_dot(values, np.ones(self.shape[0]))

    def _times(self, side: Side, count: int, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        out = np.zeros((count, X.shape[1]))
        task = functools.partial(_add_rows, side, values, np.ascontiguousarray(X), out)
        threads.run(task, threads.cut(count, float(X.shape[1]) * self.size, side.indptr))
        return out

    def _over_rows(self, task: Callable[[int, int], T], work_per_entry: int) -> list[T]:
        borders = threads.cut(self.shape[0], float(work_per_entry) * self.size, self.by_row.indptr)
        return threads.run(task, borders)


# Indices are unsigned: a signed one costs a check whether it counts from the end, more than the product itself.


@kernel
def _inner_products(side, A, B, out, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            j = np.uint64(side.others[t])
            total = 0.0
            for k in range(np.uint64(A.shape[1])):
                total += A[i, k] * B[j, k]
            out[t] = total


@kernel
def _sums(side, a, b, out, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            out[t] = a[i] + b[np.uint64(side.others[t])]


@kernel
def _dot(side, values, x, out, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        total = 0.0
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            total += values[t] * x[np.uint64(side.others[t])]
        out[i] = total


@kernel
def _add(side, values, x, out, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        c = x[i]
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            out[np.uint64(side.others[t])] += c * values[t]


@kernel
def _add_rows(side, values, X, out, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            c, j = values[np.uint64(side.order[t])], np.uint64(side.others[t])
            for k in range(np.uint64(X.shape[1])):
                out[i, k] += c * X[j, k]
