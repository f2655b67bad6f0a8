"""Columns of data that are stored by rows: those that are asked for, and no others."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.dense_slices import DenseSlices
from condgrad.linalg.slices import Slices
from condgrad.linalg.sparse_slices import SparseSlices

_HEIGHT = 16  # rows of a block that is transposed: 16 numbers of single precision fill a line of the cache
_MOST_KEPT = 3  # columns that are kept, over those that are asked for


class _Known(NamedTuple):
    place: np.ndarray  # of a feature among the columns; -1: it is not there
    columns: SparseSlices


class GatheredColumns:
    """Columns that were taken out of sparse rows; they stay, so that the next call reads rows for the new ones alone.

    Several threads may ask: what is known is replaced as a whole, never changed.

    Parameters
    ----------
    rows : SparseSlices
    shape : tuple of int
        The numbers of rows and of features.
    """

    def __init__(self, rows: Slices, shape: tuple[int, int]) -> None:
        self._rows, self._n_features = cast("SparseSlices", rows), shape[1]
        self._known = self._nothing()

    def _nothing(self) -> _Known:
        empty = np.empty(0, self._rows.data.dtype), np.empty(0, np.uint32), np.zeros(1, np.uint64)
        return _Known(np.full(self._n_features, -1, np.int32), SparseSlices(*empty))

    def of(self, features: np.ndarray) -> tuple[Slices, np.ndarray]:
        """Return columns, at least those of the features, and the places of the latter among them."""
        known = self._known
        missing = features[known.place[features] < 0]
        if missing.size > 0:
            if known.columns.indptr.size - 1 + missing.size > _MOST_KEPT * features.size:
                known, missing = self._nothing(), features
            known = self._known = self._joined(known, missing)
        return cast("Slices", known.columns), known.place[features].astype(np.int64)

    def _joined(self, known: _Known, features: np.ndarray) -> _Known:
        """Return what is known, and the columns of these features after it."""
        place, old, is_new = known.place.copy(), known.columns, np.zeros(self._n_features, np.bool_)
        first, used = old.indptr.size - 1, old.data.size
        place[features] = np.arange(first, first + features.size)
        is_new[features] = True
        kept, ends, sizes = _find(self._rows, place, is_new, first, features.size)
        indptr = np.append(old.indptr, old.indptr[-1] + np.cumsum(sizes))
        data, indices = np.empty(int(indptr[-1]), old.data.dtype), np.empty(int(indptr[-1]), np.uint32)
        data[:used], indices[:used] = old.data, old.indices
        _copy(self._rows, place, first, kept, ends, indptr[first:].copy(), data, indices)
        return _Known(place, SparseSlices(data, indices, indptr))


class CopiedColumns:
    """Columns that were copied from dense rows, in single precision, each of them once.

    Parameters
    ----------
    rows : Slices
    shape : tuple of int
        The numbers of rows and of features.
    """

    def __init__(self, rows: Slices, shape: tuple[int, int]) -> None:
        self._rows = rows
        self._values, self._is_copied = np.empty(shape[::-1], np.float32), np.zeros(shape[1], np.bool_)

    def of(self, features: np.ndarray) -> tuple[Slices, np.ndarray]:
        """Return all columns, of which those of the features have values, and the features: these are their places."""
        new = np.sort(features[~self._is_copied[features]])
        if new.size > 0:
            _copy_dense(self._rows, new, self._values)
            self._is_copied[new] = True  # another thread may have copied the same numbers
        return cast("Slices", DenseSlices(self._values)), features


@kernel
def _find(rows, place, is_new, first, count):
    """Return the places of all entries of new columns, where those of each row end, and how many each column has."""
    # Which entries are chosen, a processor cannot foresee: the first loop has no branch.
    n, size = rows.indptr.shape[0] - 1, np.uint64(0)
    kept, ends = np.empty(rows.indices.shape[0] + 1, rows.indptr.dtype), np.empty(n, np.int64)
    for i in range(n):
        for m in range(rows.indptr[i], rows.indptr[i + 1]):
            kept[size] = m
            size = size + np.uint64(is_new[rows.indices[m]])
        ends[i] = size
    sizes = np.zeros(count, np.uint64)
    for q in range(size):
        sizes[place[rows.indices[kept[q]]] - first] += np.uint64(1)
    return kept, ends, sizes


@kernel
def _copy(rows, place, first, kept, ends, starts, data, indices):
    """Copy the entries that were found to their columns, which begin at ``starts``; these are used up."""
    begin = 0
    for i in range(ends.shape[0]):
        for q in range(begin, ends[i]):
            k = place[rows.indices[kept[q]]] - first
            data[starts[k]] = rows.data[kept[q]]
            indices[starts[k]] = i
            starts[k] += np.uint64(1)
        begin = ends[i]


@kernel
def _copy_dense(rows, features, out):
    """Copy the chosen columns of data with dense rows to the same rows of ``out``, in the precision of that."""
    height, n = np.uint64(_HEIGHT), np.uint64(out.shape[1])
    whole = n // height * height
    for top in range(np.uint64(0), whole, height):
        for q in range(features.shape[0]):
            j = np.uint64(features[q])
            for i in range(height):  # known when it is compiled: so the loop becomes straight code
                out[j, top + i] = rows.entry(top + i, j)
    for q in range(features.shape[0]):
        for i in range(whole, n):
            out[features[q], i] = rows.entry(i, features[q])
