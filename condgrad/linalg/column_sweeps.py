"""Sweeps of coordinate descent over some columns of sparse data, for a quadratic over an l1 ball: no Gram matrix."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.slices import SparseSlices


def columns_of(rows: SparseSlices, features: np.ndarray, n_features: int) -> SparseSlices:
    """Return the chosen columns of a matrix that is stored by rows, in their order."""
    place = np.full(n_features, -1, np.int32)
    place[features] = np.arange(features.size)
    return SparseSlices(*_gather(rows, place, place >= 0, features.size))


@kernel
def _gather(rows, place, is_chosen, count):
    # Which entries are chosen, a processor cannot foresee: the first loop has no branch.
    n, size = rows.indptr.shape[0] - 1, np.uint64(0)
    kept, ends = np.empty(rows.indices.shape[0] + 1, rows.indptr.dtype), np.empty(n, np.int64)
    for i in range(n):
        for m in range(rows.indptr[i], rows.indptr[i + 1]):
            kept[size] = m
            size = size + np.uint64(is_chosen[rows.indices[m]])
        ends[i] = size
    indptr = np.zeros(count + 2, np.int64)
    for q in range(size):
        indptr[place[rows.indices[kept[q]]] + 2] += 1
    for k in range(count):
        indptr[k + 2] += indptr[k + 1]
    data, indices = np.empty(size, rows.data.dtype), np.empty(size, np.uint32)
    start = 0
    for i in range(n):
        for q in range(start, ends[i]):
            k = place[rows.indices[kept[q]]] + 1
            data[indptr[k]] = rows.data[kept[q]]
            indices[indptr[k]] = i
            indptr[k] += 1
        start = ends[i]
    return data, indices, indptr[:-1].astype(np.uint64)


@kernel
def measure(columns, chosen, alpha, d, slopes, bends):
    """Set ``slopes`` to <x_j, alpha> and ``bends`` to sum_i d_i x_ij^2, for every chosen column x_j."""
    for q in range(chosen.shape[0]):
        slope, bend = 0.0, 0.0
        for m in range(columns.indptr[chosen[q]], columns.indptr[chosen[q] + 1]):
            i = columns.indices[m]
            slope += alpha[i] * columns.data[m]
            bend += d[i] * columns.data[m] * columns.data[m]
        slopes[q], bends[q] = slope, bend


@kernel
def sweep(columns, chosen, d, a, bends, l2, price, w, multiplier, stiffness, n_sweeps, has_intercept):
    """Minimise a quadratic of w over one coefficient after the other; return multiplier and change of the intercept.

    The first derivatives of the quadratic are X'a + ``l2`` w for the chosen columns X, and a_i grows by d_i x_ij with
    w_j; its second derivatives by single coefficients are ``bends`` + ``l2``. To keep the norm N = sum_j price_j |w_j|
    at 1 at most, an augmented Lagrangian is added: its derivative by N is max(0, multiplier + stiffness (N - 1)), and
    the multiplier follows after each sweep. The first sweep is over all columns, the others are over those in use.
    """
    norm, shift = 0.0, 0.0
    for q in range(w.shape[0]):
        norm += price[q] * abs(w[q])
    for t in range(n_sweeps):
        if has_intercept:
            shift += _balance(d, a)
        for q in range(w.shape[0]):
            before = w[q]
            if (t > 0 and before == 0.0) or bends[q] + l2 <= 0.0:
                continue
            first, end = columns.indptr[chosen[q]], columns.indptr[chosen[q] + 1]
            slope = 0.0
            for m in range(first, end):
                slope += a[columns.indices[m]] * columns.data[m]
            rest, pull = norm - price[q] * abs(before), bends[q] * before - slope
            size, force = abs(pull) / (bends[q] + l2), multiplier + stiffness * (rest - 1.0)
            if force + stiffness * price[q] * size > 0.0:  # the ball binds
                size = max(0.0, abs(pull) - force * price[q]) / (bends[q] + l2 + stiffness * price[q] * price[q])
            after = size if pull > 0.0 else -size
            if after != before:
                w[q], norm = after, rest + price[q] * size
                for m in range(first, end):
                    i = columns.indices[m]
                    a[i] += d[i] * columns.data[m] * (after - before)
        multiplier = max(0.0, multiplier + stiffness * (norm - 1.0))
    return multiplier, shift


@kernel
def _balance(d, a):
    """Move the intercept to where the sum of a is zero; return by how much."""
    total, bend = 0.0, 0.0
    for i in range(a.shape[0]):
        total += a[i]
        bend += d[i]
    if bend <= 0.0:
        return 0.0
    for i in range(a.shape[0]):
        a[i] -= d[i] * (total / bend)
    return -total / bend
