"""Simulated entries of a matrix of low rank, for completion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.datasets._drawing import as_count, as_positive
from condgrad.linalg.convert import as_number
from condgrad.linalg.settings import RandomState, as_generator


class LowRankEntries(NamedTuple):
    """Some entries of a matrix, and the true matrix U V' behind them, with factors of few columns.

    Attributes
    ----------
    rows, cols : arrays of int
        The places, all different, row by row.
    values : array
        The observed values there.
    shape : pair of int
    U, V : arrays of shapes (n_rows, rank) and (n_cols, rank)
    is_outlier : array of bool
        Which values have nothing to do with U V'.
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    U: np.ndarray
    V: np.ndarray
    is_outlier: np.ndarray

    def __repr__(self) -> str:
        n, d = self.shape
        return f"LowRankEntries({self.values.size} entries of a {n} x {d} matrix of rank {self.U.shape[1]})"


def simulate_low_rank(
    n_rows: int,
    n_cols: int,
    rank: int,
    n_entries: int,
    *,
    noise: float = 0.1,
    outliers: float = 0.0,
    outlier_size: float = 10.0,
    random_state: RandomState = None,
) -> LowRankEntries:
    """Return noisy entries of a random matrix of low rank, at places drawn without replacement.

    The factors are Gaussian, scaled so that an entry of U V' has variance one. 20 million entries take seconds.

    Parameters
    ----------
    n_rows, n_cols, rank : int
    n_entries : int
        The number of observed entries, at most n_rows n_cols.
    noise : float
        Standard deviation of the noise.
    outliers : float
        The share of observed entries, in [0, 1], that are replaced by plus or minus ``outlier_size``.
    outlier_size : float
    random_state : int, numpy Generator or None

    Examples
    --------
    >>> data = simulate_low_rank(50, 30, 2, 400, outliers=0.05, random_state=0)
    >>> data, int(data.is_outlier.sum())
    (LowRankEntries(400 entries of a 50 x 30 matrix of rank 2), 20)
    """
    rng = as_generator(random_state)
    n_rows, n_cols, rank = as_count(n_rows, "n_rows"), as_count(n_cols, "n_cols"), as_count(rank, "rank")
    n_entries, size = as_count(n_entries, "n_entries"), n_rows * n_cols
    if n_entries > size:
        raise ValueError(f"n_entries must be at most n_rows n_cols = {size}; got {n_entries}.")
    if rank > min(n_rows, n_cols):
        raise ValueError(f"rank must be at most {min(n_rows, n_cols)}, the smaller side; got {rank}.")
    noise = as_number(noise, "noise", low=0.0, what="a number of at least 0")
    share = as_number(outliers, "outliers", low=0.0, what="a number in [0, 1]")
    if share > 1.0:
        raise ValueError(f"outliers must be a number in [0, 1]; got {outliers!r}.")
    outlier_size = as_positive(outlier_size, "outlier_size")
    U, V = rng.standard_normal((n_rows, rank)) / np.sqrt(rank), rng.standard_normal((n_cols, rank))
    rows, cols = np.divmod(_places(size, n_entries, rng), n_cols)
    values = noise * rng.standard_normal(n_entries)
    for u, v in zip(np.ascontiguousarray(U.T), np.ascontiguousarray(V.T), strict=True):
        values += u[rows] * v[cols]
    is_outlier = np.zeros(n_entries, dtype=bool)
    is_outlier[rng.choice(n_entries, round(share * n_entries), replace=False)] = True
    values[is_outlier] = outlier_size * rng.choice((-1.0, 1.0), int(is_outlier.sum()))
    return LowRankEntries(rows, cols, values, (n_rows, n_cols), U, V, is_outlier)


def _places(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` different numbers below ``size``, ascending.

    Numbers are drawn with repetitions until enough of them differ; then random ones are deleted if there are too many.
    """
    if 2 * count > size:
        return np.sort(rng.permutation(size)[:count])
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        missing = count - found.size
        drawn = rng.integers(size, size=missing + missing // 10 + missing * count // size + 10)
        found = np.sort(np.concatenate([found, drawn]))
        found = found[np.append(True, found[1:] != found[:-1])]  # np.unique takes a minute where this takes a second
    return np.delete(found, rng.choice(found.size, found.size - count, replace=False))
