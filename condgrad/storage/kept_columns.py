"""KeptColumns: columns on disk that stay in memory once they have been read, until there is no more room for them."""

from __future__ import annotations

import abc

import numpy as np
import scipy.sparse

from condgrad.linalg.matrix import Matrix
from condgrad.storage.stored_columns import ColumnBlock, StoredColumns

_KEPT = 256_000_000  # bytes of columns that are kept in memory; those that are asked for together are always kept


class KeptColumns:
    """Columns by number, read when they are first asked for.

    Attributes
    ----------
    n_room : int
        The number of columns for which there is memory, however large they are.
    matrix : Matrix
        The columns in memory. It is a new object whenever they change, and the memory of the old one is not touched.
    columns : array
        Which columns of X these are.
    """

    def __init__(self, stored: StoredColumns) -> None:
        self.stored = stored
        largest = -np.sort(-stored.column_bytes)
        self.n_room = max(64, int(np.searchsorted(np.cumsum(largest), _KEPT, side="right")))
        self._place = np.full(stored.shape[1], -1)  # of each column in memory
        self._asked = np.zeros(stored.shape[1], np.int64)  # when each column was asked for
        self._time = 0
        self._begin(np.empty(0, np.int64), 0)

    def _begin(self, columns: np.ndarray, room: int) -> None:
        """Begin with fresh memory, in which the columns of the next blocks are put."""
        make = _SparseMemory if self.stored.is_sparse else _DenseMemory
        self.columns, self._memory, self._room = columns, make(self.stored, room), room

    @property
    def matrix(self) -> Matrix:
        """The columns in memory."""
        return self._memory.matrix

    def has(self, columns: np.ndarray) -> np.ndarray:
        """Return for each of the columns whether it is in memory."""
        return self._place[columns] >= 0

    def places_of(self, columns: np.ndarray) -> np.ndarray:
        """Return the places of columns in ``matrix``; missing ones are read."""
        self._time += 1
        self._asked[columns] = self._time
        missing = np.unique(columns[self._place[columns] < 0])
        if missing.size:
            self._keep(missing, columns.size)
        return self._place[columns]

    def _keep(self, missing: np.ndarray, n_wanted: int) -> None:
        """Read columns and keep them; where there is no room, those that were asked for last stay."""
        if self.columns.size + missing.size > self._room:
            room = max(self.n_room, 2 * n_wanted)
            stay = np.argsort(-self._asked[self.columns], kind="stable")
            if self.columns.size + missing.size > room:
                stay = stay[: max(room // 2, n_wanted) - missing.size]
            old, stayed = self.matrix, self.columns[stay]
            self._place[self.columns] = -1
            self._begin(stayed, room)
            self._memory.append(ColumnBlock(stayed, old, stay))
        for block in self.stored.blocks(missing):
            self._memory.append(block)
        self.columns = np.concatenate([self.columns, missing])
        self._place[self.columns] = np.arange(self.columns.size)


class _Memory(abc.ABC):
    """Memory to which columns are appended."""

    matrix: Matrix

    @abc.abstractmethod
    def append(self, block: ColumnBlock) -> None:
        """Append the columns of a block."""


class _DenseMemory(_Memory):
    """Dense columns, with room for a number of them."""

    def __init__(self, stored: StoredColumns, room: int) -> None:
        self._values, self._size = np.empty((room, stored.shape[0]), stored.dtype), 0
        self.matrix = Matrix(self._values[:0].T)

    def append(self, block: ColumnBlock) -> None:
        """Append the columns of a block."""
        begin, self._size = self._size, self._size + block.columns.size
        np.take(block.matrix.X.T, block.places, axis=0, out=self._values[begin : self._size], mode="clip")
        self.matrix = Matrix(self._values[: self._size].T)


class _SparseMemory(_Memory):
    """Sparse columns; their memory doubles when it is full."""

    def __init__(self, stored: StoredColumns, room: int) -> None:
        self._n_samples = stored.shape[0]
        self._data, self._indices = np.empty(0, stored.dtype), np.empty(0, np.int32)
        self._indptr = np.zeros(1, np.int64)
        self._show()

    def append(self, block: ColumnBlock) -> None:
        """Append the columns of a block."""
        new = block.matrix.chosen_columns(block.places)
        begin, end = int(self._indptr[-1]), int(self._indptr[-1]) + new.nnz
        if end > self._data.size:
            self._data, self._indices = (
                np.concatenate([old[:begin], np.empty(2 * end - begin, old.dtype)])
                for old in (self._data, self._indices)
            )
        self._data[begin:end], self._indices[begin:end] = new.data, new.indices
        self._indptr = np.concatenate([self._indptr, begin + new.indptr[1:]])
        self._show()

    def _show(self) -> None:
        end, shape = int(self._indptr[-1]), (self._n_samples, self._indptr.size - 1)
        parts = (self._data[:end], self._indices[:end], self._indptr)
        self.matrix = Matrix(scipy.sparse.csc_matrix(parts, shape=shape, copy=False))
