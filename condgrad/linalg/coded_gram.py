"""Gram matrices of tables of numbers and codes: products of categories are counts, those of numbers go through BLAS."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.coded_slices import CodedRows
from condgrad.linalg.gram import mirror, weighted_gram
from condgrad.linalg.support import support_of

_ENTRIES = 250_000  # numbers that are multiplied together, so that they stay in the cache
_FEW = 4  # columns of numbers up to which a loop is faster than BLAS, which starts its threads


def coded_gram(
    X: CodedData, rows: CodedRows, features: np.ndarray, d: np.ndarray, chosen: np.ndarray | None, first: int
) -> np.ndarray:
    """Return sum_k d_k x_i x_i' on different features, over the chosen rows i (None: all), on all cores.

    Entries [:first, :first] are not computed: they are zero.
    """
    place = np.full(X.shape[1], -1, np.int32)
    place[features] = np.arange(features.size)
    at = place[X.places.astype(np.int64)]  # the places of the numbers
    numbers, at = np.flatnonzero(at >= 0).astype(np.uint64), at[at >= 0].astype(np.uint64)
    support = support_of(chosen, X.shape[0])

    def add_rows(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        H, M = np.zeros((features.size, features.size)), np.zeros((features.size, 4 * -(-numbers.size // 4)))
        _add_pairs(rows, support, place, numbers, first, d, H, M, start, stop)
        return H, M

    H = np.zeros((features.size, features.size))
    if numbers.size < features.size:
        # Each thread has its own H, and adding them costs k^2.
        work = max(0.0, 4.0 * d.size * (X.n_fields + numbers.size) - 4.0 * features.size**2)
        of_threads, of_numbers = zip(*threads.run(add_rows, threads.cut(d.size, work)), strict=True)
        H, M = functools.reduce(np.add, of_threads), functools.reduce(np.add, of_numbers)
        mirror(H, first)
        H[:, at], H[at] = M[:, : at.size], M[:, : at.size].T
    H[np.ix_(at, at)] = _gram_of_numbers(X.numbers, numbers, d, chosen)
    H[:first, :first] = 0.0
    return H


def _gram_of_numbers(numbers: np.ndarray, columns: np.ndarray, d: np.ndarray, chosen: np.ndarray | None) -> np.ndarray:
    """Return the products of columns of numbers, some rows at a time."""
    H = np.zeros((columns.size, columns.size))
    height = max(1, _ENTRIES // max(1, columns.size))
    for start in range(0, d.size if columns.size else 0, height):
        part = slice(start, min(start + height, d.size))
        block = numbers[columns, part] if chosen is None else numbers[columns[:, None], chosen[part]]
        block = block.astype(np.float64, copy=False)
        if columns.size <= _FEW:
            H += np.einsum("an,bn->ab", block * d[part], block)
        else:
            H += weighted_gram(block.T, d[part], 0)
    return H


@kernel
def _add_pairs(rows, support, place, numbers, first, d, H, M, start, stop):
    """Add d_k x_i x_i' for the rows i at the places k = start, ..., stop - 1 of ``support``, without pairs of numbers.

    The products of categories go to H, each once, on either side of the diagonal; those of two categories placed before
    ``first`` are left out. The products of categories with the chosen numbers go to M.
    """
    n_fields, n_numbers = np.uint64(rows.fields.n_fields()), np.uint64(numbers.shape[0])
    features, scaled = np.empty(n_fields, np.uint64), np.zeros(M.shape[1])
    where = np.empty(n_fields + np.uint64(1), np.uint64)  # the last entry is for a feature that is not chosen
    flat, width = H.ravel(), np.uint64(H.shape[1])  # H is contiguous, so this is no copy
    for k in range(start, stop):
        i = support.row(k)
        rows.fields.features_of(i, features)
        count = np.uint64(0)
        if first > 0:
            for q in range(n_fields):
                found = place[features[q]]  # without a branch, which would often be mispredicted
                where[count] = found
                count = count + np.uint64(0 <= found < first)
        n_known = count
        for q in range(n_fields):
            found = place[features[q]]
            where[count] = found
            count = count + np.uint64(found >= first)
        for a in range(n_known, count):
            row = where[a] * width
            for b in range(a + np.uint64(1)):
                flat[row + where[b]] += d[k]
        for c in range(n_numbers):
            scaled[c] = d[k] * rows.numbers[numbers[c], i]
        for a in range(count):
            row = where[a]
            for c in range(np.uint64(0), np.uint64(M.shape[1]), np.uint64(4)):
                M[row, c] += scaled[c]
                M[row, c + np.uint64(1)] += scaled[c + np.uint64(1)]
                M[row, c + np.uint64(2)] += scaled[c + np.uint64(2)]
                M[row, c + np.uint64(3)] += scaled[c + np.uint64(3)]
