"""Matrix: the data X with its rows, its columns, and full passes over it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.slices import DenseSlices, SparseSlices
from condgrad.linalg.vectors import DenseVector


class Matrix:
    """The n x d data, held as the user gave it; the other view is made when a solver first asks for it.

    A dense array offers rows and columns without a copy. CSR offers rows, CSC columns: the other view of a sparse
    matrix is a second copy of its entries.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.is_sparse = scipy.sparse.issparse(X)
        self.n_stored = int(X.nnz if self.is_sparse else X.size)
        self._rows_are_native = X.format == "csr" if self.is_sparse else X.flags.c_contiguous

    @functools.cached_property
    def rows(self) -> Any:
        """The rows of X."""
        return _sparse_slices(self.X.tocsr()) if self.is_sparse else DenseSlices(self.X)

    @functools.cached_property
    def columns(self) -> Any:
        """The columns of X."""
        return _sparse_slices(self.X.tocsc()) if self.is_sparse else DenseSlices(self.X.T)

    def dot(self, w: np.ndarray) -> np.ndarray:
        """Return X w in one pass, on all cores; for a sparse w through its columns alone, where they are at hand."""
        if self.is_sparse and "columns" in vars(self):
            support = np.flatnonzero(w)
            if 4 * _count_chosen(self.columns, support) < self.n_stored:
                p = np.zeros(self.shape[0])
                _add_chosen(self.columns, support, w[support], DenseVector(p))
                return p
        if self._has("rows"):
            return _dot_all(self.rows, self.shape[0], self.n_stored, w)
        return _add_all(self.columns, self.shape, self.n_stored, w)

    def transpose_dot(self, a: np.ndarray) -> np.ndarray:
        """Return X' a in one pass, on all cores."""
        if self._has("columns"):
            return _dot_all(self.columns, self.shape[1], self.n_stored, a)
        return _add_all(self.rows, self.shape[::-1], self.n_stored, a)

    def column(self, j: int) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the rows that column ``j`` touches (None: all of them) and its values there."""
        if not self.is_sparse:
            return None, np.ascontiguousarray(self.X[:, j], dtype=np.float64)
        data, indices, indptr = self.columns
        stored = slice(int(indptr[j]), int(indptr[j + 1]))
        return indices[stored], data[stored].astype(np.float64, copy=False)

    def column_products(self, columns: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return ``<X_j, a>`` for the chosen columns alone."""
        return _dot_chosen(self.columns, columns, a)

    def add_rows(self, rows: np.ndarray, c: np.ndarray, out: np.ndarray) -> None:
        """Add ``sum_q c_q x_(rows_q)`` to ``out``."""
        _add_chosen(self.rows, rows, c, DenseVector(out))

    def gram(self, features: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return X_A' diag(d) X_A for the chosen features A, on all cores."""
        if not self.is_sparse:
            X = self.X[:, features].astype(np.float64, copy=False)
            return X.T @ (d[:, None] * X)
        place = np.full(self.shape[1], -1, dtype=np.int32)
        place[features] = np.arange(features.size)

        def add_rows(start: int, stop: int) -> np.ndarray:
            H = np.zeros((features.size, features.size))
            _add_outer_products(self.rows, place, d, H, start, stop)
            return H

        work = 4 * self.n_stored if features.size < 1000 else 0  # each thread has an H of its own
        borders = threads.cut(self.shape[0], work, self.rows.indptr)
        H = functools.reduce(np.add, threads.run(add_rows, borders))
        return H + np.tril(H, -1).T

    def count_stored(self, rows: np.ndarray) -> int:
        """Return how many entries the chosen rows store."""
        return int(_count_chosen(self.rows, rows))

    def _has(self, view: str) -> bool:
        """Tell whether a pass should go through ``view``: it is contiguous in memory, or has been built anyway."""
        if self.is_sparse:
            return view in vars(self) or self._rows_are_native == (view == "rows")
        return self._rows_are_native == (view == "rows")


def _sparse_slices(X: Any) -> SparseSlices:
    # Unsigned indices spare kernels the test for negative ones: half the time of a pass.
    return SparseSlices(X.data, _unsigned(X.indices), _unsigned(X.indptr))


def _unsigned(indices: np.ndarray) -> np.ndarray:
    return indices.view(np.uint32 if indices.dtype.itemsize == 4 else np.uint64)


def _offsets(slices: Any) -> np.ndarray | None:
    return getattr(slices, "indptr", None)


def _dot_all(slices: Any, n: int, n_stored: int, v: np.ndarray) -> np.ndarray:
    out = np.empty(n)
    threads.run(functools.partial(_dot_range, slices, v, out), threads.cut(n, n_stored, _offsets(slices)))
    return out


def _add_all(slices: Any, shape: tuple[int, int], n_stored: int, c: np.ndarray) -> np.ndarray:
    n, length = shape[1], shape[0]
    # Each thread adds into a vector of its own: worth it where the slices hold more than those vectors.
    borders = threads.cut(n, n_stored if n_stored > 4 * length else 0, _offsets(slices))

    def add_range(start: int, stop: int) -> np.ndarray:
        out = np.zeros(length)
        _add_range(slices, c, DenseVector(out), start, stop)
        return out

    return functools.reduce(np.add, threads.run(add_range, borders))


@kernel
def _dot_range(slices, v, out, start, stop):
    for k in range(start, stop):
        out[k] = slices.dot_slice(k, v)


@kernel
def _add_range(slices, c, out, start, stop):
    for k in range(start, stop):
        if c[k] != 0.0:
            slices.add_slice(k, c[k], out)


@kernel
def _dot_chosen(slices, chosen, v):
    out = np.empty(chosen.shape[0])
    for q in range(chosen.shape[0]):
        out[q] = slices.dot_slice(chosen[q], v)
    return out


@kernel
def _add_chosen(slices, chosen, c, out):
    for q in range(chosen.shape[0]):
        slices.add_slice(chosen[q], c[q], out)


@kernel
def _count_chosen(slices, chosen):
    total = 0
    for q in range(chosen.shape[0]):
        total += int(slices.n_stored(chosen[q]))
    return total


@kernel
def _add_outer_products(rows, place, d, H, start, stop):
    """Add the lower triangles of d_i x_i x_i', restricted to the features that have a place."""
    where = np.empty(H.shape[0], np.int64)
    value = np.empty(H.shape[0])
    for i in range(start, stop):
        count = 0
        for m in range(rows.indptr[i], rows.indptr[i + 1]):
            k = place[rows.indices[m]]
            if k >= 0:
                where[count] = k
                value[count] = rows.data[m]
                count += 1
        for a in range(count):
            scaled = d[i] * value[a]
            for b in range(a + 1):
                low, high = min(where[a], where[b]), max(where[a], where[b])
                H[high, low] += scaled * value[b]
