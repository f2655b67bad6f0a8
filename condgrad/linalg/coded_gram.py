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
_ROWS = 64  # rows looked up field by field: so few that the places of their features stay in the nearest cache
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
    by_fours = np.append(numbers, np.zeros(-numbers.size % 4, np.uint64))  # more than chosen, for the kernel
    support = support_of(chosen, X.shape[0])

    def add_rows(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        H, M = np.zeros((features.size, features.size)), np.zeros((features.size, by_fours.size))
        _add_pairs(rows, support, place, by_fours, first, d, H, M, start, stop)
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
    ``first`` are left out. The products of categories with the chosen numbers, a multiple of four of them, go to M.
    """
    fields, n1, n2 = rows.fields, rows.fields.codes1.shape[1], rows.fields.codes2.shape[1]
    at = np.empty((fields.n_fields(), _ROWS), place.dtype)
    n_fields = np.uint64(at.shape[0])
    where = np.empty(n_fields + np.uint64(1), np.uint64)  # the last entry is for a feature that is not chosen
    flat, width = H.ravel(), np.uint64(H.shape[1])  # H is contiguous, so this is no copy
    for top in range(start, stop, _ROWS):
        size = min(_ROWS, stop - top)
        _look_up(fields.codes1, fields.first1, support, top, place, at[:n1, :size])
        _look_up(fields.codes2, fields.first2, support, top, place, at[n1 : n1 + n2, :size])
        _look_up(fields.codes4, fields.first4, support, top, place, at[n1 + n2 :, :size])
        for k in range(size):
            count = np.uint64(0)
            if first > 0:
                for q in range(n_fields):
                    where[count] = at[q, k]  # without a branch, which would often be mispredicted
                    count = count + np.uint64(0 <= at[q, k] < first)
            n_known = count
            for q in range(n_fields):
                where[count] = at[q, k]
                count = count + np.uint64(at[q, k] >= first)
            weight = d[top + k]  # in a register: as far as the compiler knows, H may overlap d
            for a in range(n_known, count):
                row = where[a] * width
                for b in range(a + np.uint64(1)):
                    flat[row + where[b]] += weight
            _add_numbers(rows.numbers, numbers, support.row(top + k), weight, where, count, M)


@kernel
def _look_up(codes, firsts, support, top, place, out):
    """Set out[q, k] to the place of the feature of field q in the row at place top + k of ``support``."""
    for q in range(np.uint64(codes.shape[1])):
        zero = firsts[q]
        for k in range(out.shape[1]):
            out[q, k] = place[zero + np.uint64(codes[support.row(top + k), q])]


@kernel
def _add_numbers(table, numbers, i, weight, where, count, M):
    """Add the numbers of row i, four at a time and times ``weight``, to the rows of M of its categories."""
    for c in range(np.uint64(0), np.uint64(M.shape[1]), np.uint64(4)):
        x0 = weight * table[numbers[c], i]
        x1 = weight * table[numbers[c + np.uint64(1)], i]
        x2 = weight * table[numbers[c + np.uint64(2)], i]
        x3 = weight * table[numbers[c + np.uint64(3)], i]
        for a in range(count):
            row = where[a]
            M[row, c] += x0
            M[row, c + np.uint64(1)] += x1
            M[row, c + np.uint64(2)] += x2
            M[row, c + np.uint64(3)] += x3
