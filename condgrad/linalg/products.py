"""Products of sparse slices with several vectors at once, on all cores: an entry is read once for all of them."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.sparse_slices import SparseSlices


def dot_slices(slices: SparseSlices, n_stored: int, V: np.ndarray) -> np.ndarray:
    """Return ``<slice i, v_c>`` for every column v_c of V and every slice: an array of shape (k, n_slices)."""
    V = np.ascontiguousarray(V)  # the k factors of an entry are contiguous
    n, k = slices.indptr.size - 1, V.shape[1]
    out = np.empty((k, n))
    threads.run(functools.partial(_dot_range, slices, V, out), threads.cut(n, n_stored * k, slices.indptr))
    return out


def add_slices(slices: SparseSlices, n_stored: int, C: np.ndarray, length: int) -> np.ndarray:
    """Return ``sum_i c_i slice i`` for every row c of C, in the columns of an array of shape (length, k)."""
    C = np.ascontiguousarray(C)
    k, n = C.shape
    # Each thread adds into its own array: this pays if the slices hold more entries than those arrays.
    borders = threads.cut(n, n_stored * k if n_stored > 4 * length else 0, slices.indptr)

    def add_range(start: int, stop: int) -> np.ndarray:
        out = np.zeros((length, k))
        _add_range(slices, C, out, start, stop)
        return out

    return functools.reduce(np.add, threads.run(add_range, borders))


@kernel
def _dot_range(slices, V, out, start, stop):
    k = np.uint64(V.shape[1])
    row = np.empty(k)
    for i in range(np.uint64(start), np.uint64(stop)):
        for c in range(k):
            row[c] = 0.0
        for m in range(slices.indptr[i], slices.indptr[i + np.uint64(1)]):
            x, j = slices.data[m], slices.indices[m]
            for c in range(k):
                row[c] += x * V[j, c]
        for c in range(k):
            out[c, i] = row[c]


@kernel
def _add_range(slices, C, out, start, stop):
    k = np.uint64(out.shape[1])
    row = np.empty(k)
    for i in range(np.uint64(start), np.uint64(stop)):
        for c in range(k):
            row[c] = C[c, i]
        for m in range(slices.indptr[i], slices.indptr[i + np.uint64(1)]):
            x, j = slices.data[m], slices.indices[m]
            for c in range(k):
                out[j, c] += x * row[c]
