"""Gram matrices A' diag(d) A of a few columns of the data."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.sparse_slices import SparseSlices

_BLOCK = 32  # rows and columns of a block of a transposition


def weighted_gram(X: np.ndarray, d: np.ndarray, first: int) -> np.ndarray:
    """Return X' diag(d) X; entries [:first, :first] stay 0."""
    is_double = X.dtype == np.float64  # the products of a float32 X would have its digits only
    if first == 0 and is_double and d.size and (d == d[0]).all():  # the squared loss of equal weights
        equal: np.ndarray = d[0] * (X.T @ X)  # a BLAS computes only half of it
        return equal
    if first == 0 and not (d < 0.0).any():
        scaled = np.sqrt(d)[:, None] * X
        whole: np.ndarray = scaled.T @ scaled
        return whole
    H = np.zeros((X.shape[1], X.shape[1]))
    H[first:] = (d[:, None] * X[:, first:]).T @ X
    H[:first, first:] = H[first:, :first].T
    return H


@kernel
def add_outer_products(rows, support, place, values, first, d, H, start, stop):
    """Add d_k a_i a_i' for the rows i at the places k = start, ..., stop - 1 of ``support``.

    Row a_i has the features whose ``place`` is not negative, times their ``values``. Every product of two features is
    added once, on either side of the diagonal. Products of two features placed before ``first`` are left out.
    """
    where = np.empty(H.shape[0] + 1, np.uint64)  # the last entry is for features that are not chosen
    value = np.empty(H.shape[0] + 1)
    for k in range(start, stop):
        i = support.row(k)
        count = np.uint64(0)
        if first > 0:
            for m in range(rows.indptr[i], rows.indptr[i + 1]):
                at = place[rows.indices[m]]  # without a branch, which would often be mispredicted
                where[count] = at
                value[count] = rows.data[m] * values[max(at, 0)]
                count = count + np.uint64(0 <= at < first)
        n_known = count
        for m in range(rows.indptr[i], rows.indptr[i + 1]):
            at = place[rows.indices[m]]
            where[count] = at
            value[count] = rows.data[m] * values[max(at, 0)]
            count = count + np.uint64(at >= first)
        for a in range(n_known, count):
            scaled, row = d[k] * value[a], where[a]
            for b in range(a + np.uint64(1)):
                H[row, where[b]] += scaled * value[b]


@kernel
def mirror(H, first):
    """Make H symmetric, from row ``first`` on: add up its two triangles, in blocks that fit into the cache."""
    k = H.shape[0]
    for top in range(first, k, _BLOCK):
        for left in range(0, top + _BLOCK, _BLOCK):
            for a in range(top, min(top + _BLOCK, k)):
                for b in range(left, min(left + _BLOCK, a)):
                    H[a, b] += H[b, a]
                    H[b, a] = H[a, b]


def rows_of(columns: SparseSlices, chosen: np.ndarray, n_rows: int) -> SparseSlices:
    """Return the rows of the matrix that has the chosen columns alone, in their order."""
    return SparseSlices(*_transpose(columns, chosen, n_rows))


@kernel
def _transpose(columns, chosen, n_rows):
    indptr = np.zeros(n_rows + 2, np.int64)
    for q in range(chosen.shape[0]):
        for m in range(columns.indptr[chosen[q]], columns.indptr[chosen[q] + 1]):
            indptr[columns.indices[m] + np.uint64(2)] += 1
    for i in range(n_rows):
        indptr[i + 2] += indptr[i + 1]
    data, places = np.empty(indptr[-1], columns.data.dtype), np.empty(indptr[-1], columns.indices.dtype)
    for q in range(chosen.shape[0]):
        for m in range(columns.indptr[chosen[q]], columns.indptr[chosen[q] + 1]):
            i = columns.indices[m] + np.uint64(1)
            data[indptr[i]] = columns.data[m]
            places[indptr[i]] = q
            indptr[i] += 1
    return data, places, indptr[:-1].copy()
