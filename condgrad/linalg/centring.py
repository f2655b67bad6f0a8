"""What is subtracted from columns whose means are far from zero, so that sums over them keep their digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.linalg.spread import spread_rows

FAR = 8.0  # ratio |mean| / standard deviation of a column, above which digits are lost and the column is centred
_SAMPLED = 1000  # rows from which the means are estimated: the number subtracted need not be the exact mean
_ENTRIES = 1_000_000  # entries of dense data that are processed together


def large_means(X: Any, weight: np.ndarray, is_sparse: bool) -> np.ndarray | None:
    """Return the means of the columns whose mean is far from zero, and 0 for the others; None if all are 0."""
    n, d = X.shape
    every = max(1, n // _SAMPLED)
    rows = spread_rows(n, every)
    sampled = weight[rows]
    sampled = sampled if sampled.any() else np.ones(sampled.size)
    sampled = sampled / sampled.sum()
    shift = np.zeros(d)
    chosen = full_columns(X) if is_sparse else np.arange(d)
    width = max(1, _ENTRIES // sampled.size)
    for start in range(0, chosen.size, width):
        columns = chosen[start : start + width]
        part = X[rows][:, columns].toarray() if is_sparse else X[rows, columns[0] : columns[-1] + 1]
        part = part.astype(np.float64)
        mean = sampled @ part
        part -= mean
        spread = np.sqrt(sampled @ (part * part))
        shift[columns] = np.where(np.abs(mean) > FAR * spread, mean, 0.0)
    return shift if shift.any() else None


def centring(mean: np.ndarray, mean_square: np.ndarray) -> np.ndarray | None:
    """Return the means of the columns whose mean is far from zero, and 0 for the others; None if all are 0."""
    variance = mean_square - mean**2  # so imprecise where the mean is far away that it counts as small
    shift = np.where(mean**2 > FAR**2 * np.maximum(variance, 0.0), mean, 0.0)
    return shift if shift.any() else None


def full_columns(X: Any) -> np.ndarray:
    """Return the columns of a sparse matrix that store an entry for every row."""
    n, d = X.shape
    if X.format == "csc":
        return np.flatnonzero(np.diff(X.indptr) == n)
    candidates = X.indices[: X.indptr[1]]
    for i in {n - 1, n // 2, n // 3}:  # in most data these rows and row 0 have no column in common
        candidates = np.intersect1d(candidates, X.indices[X.indptr[i] : X.indptr[i + 1]])
    if candidates.size == 0:
        return candidates
    return np.flatnonzero(np.bincount(X.indices, minlength=d) == n)


def shifted(X: Any, shift: np.ndarray) -> Any:
    """Return X with ``shift_j`` subtracted from every stored entry of column j; the indices are shared with X."""
    columns = X.indices if X.format == "csr" else np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    return type(X)((X.data - shift[columns], X.indices, X.indptr), shape=X.shape, copy=False)
