r"""Moments: the weighted sums of products of a tall table, all that the squared loss needs to know about its samples.

With u_i = (x_i - shift, y_i - y_shift, 1), the moments of some samples are M = sum_i v_i u_i u_i'. Those of two sets of
samples add up: so one pass over a table gives the moments of every fold of a cross-validation, and of what is left for
training. Numbers close to the means are subtracted, so that sums over columns with far means keep their digits.

**Rounding.** A sum of m products, in any order, is off by at most gamma(m) times the sum of their sizes, which is at
most the product of the norms of its two columns. Rows are summed up in blocks, and blocks are added up: with about
sqrt(n) rows each, m is about 2 sqrt(n) in place of n. ``length`` is this m, with the few operations that make u_i.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.interrupts import Interrupts, PassInterruptedError, time_is_over
from condgrad.linalg.sparse_slices import slices_of

_SAMPLED = 1000  # rows that estimate the means: what is subtracted need not be the exact mean
_STORED = 0.2  # share of stored entries from which on BLAS multiplies rows with their zeros faster than we without
_ADDED = 8.0  # how many times less work adding up a block of sparse rows may be than its products
_OPERATIONS = 12  # on two entries: what is subtracted, weights that sum to one, their roots, and products with them
LEAST = 1e-280  # least sum of squares that has all its digits, whatever its terms
LOST = np.finfo(np.float64).tiny  # stands for squares that are not zero, but too small for floats


class Moments(NamedTuple):
    """M, and the number of terms that stand for its rounding."""

    M: np.ndarray
    length: int

    def __add__(self, other: Any) -> Moments:
        """Return the moments of the samples of both."""
        return Moments(self.M + other.M, max(self.length, other.length) + 1)

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self.M[-1, -1])

    @property
    def are_exact_enough(self) -> bool:
        """Whether no sum of squares of a feature may have lost digits because its terms are tiny."""
        squares = self.M.diagonal()[:-2]
        return bool(np.isfinite(self.M).all() and ((squares >= LEAST) | (squares == 0.0)).all())


class HasMoments(Protocol):
    """Samples of which moments can be taken, wherever they lie."""

    shape: tuple[int, int]
    shift: np.ndarray
    y_shift: float
    is_centred: bool

    def moments_of(self, sets: Sequence[np.ndarray | None]) -> list[Moments]:
        """Return the moments of several sets of samples (None: of all)."""


class Table:
    """X, y and the weights of the samples, of which moments are taken.

    Parameters
    ----------
    X : array, CSR or CSC matrix of shape (n_samples, n_features)
        Checked.
    y : array of shape (n_samples,)
        What predictions are compared with.
    weight : array of shape (n_samples,)
        Not negative.
    is_centred : bool
        Whether numbers may be subtracted from y, and from columns that are not sparse: an intercept takes them up.
    like : Table, optional
        A table of which this one is a part: the same numbers are subtracted, and entries are multiplied alike.

    Examples
    --------
    >>> table = Table(np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 0.0, 1.0]), np.ones(3), is_centred=False)
    >>> table.moments(np.array([0, 1])).M
    array([[5., 1., 3.],
           [1., 1., 1.],
           [3., 1., 2.]])
    """

    def __init__(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, *, is_centred: bool, like: Table | None = None
    ) -> None:
        n, d = X.shape
        self.X, self.y, self.shape, self.is_centred = X, y, (n, d), is_centred
        self.shift, self.y_shift = np.zeros(d), 0.0
        self.weight = None if weight is None or (like is None and (weight == weight[0]).all()) else weight
        is_sparse = scipy.sparse.issparse(X)
        self.as_blocks: bool = (not is_sparse or X.nnz >= _STORED * n * d) if like is None else like.as_blocks
        if is_sparse:
            self.X = X.tocsr()
        if like is not None:
            self.shift, self.y_shift = like.shift, like.y_shift
        elif is_centred:
            self.y_shift = float(np.average(y, weights=self.weight))
            if self.as_blocks:
                sampled = self.X[:: max(1, n // _SAMPLED)]
                self.shift = np.asarray((sampled.toarray() if is_sparse else sampled).mean(axis=0, dtype=np.float64))

    def moments(self, samples: np.ndarray | None = None) -> Moments:
        """Return the moments of the samples at these places (None: of all), in one pass on all cores.

        PassInterruptedError tells of Ctrl-C, or of a time that is over.
        """
        n, d = self.shape
        count = n if samples is None else samples.size
        places = slice(0, n) if samples is None else _as_slice(samples)
        height = self._height(count)
        task = functools.partial(self._add_blocks if self.as_blocks else self._add_rows, places, height)
        borders = threads.cut(count, 0.5 * count * d * (d if self.as_blocks else 1.0))
        one_thread = threads.one_blas_thread() if len(borders) > 2 else contextlib.nullcontext()
        with one_thread:
            M = functools.reduce(np.add, threads.run(task, borders))
        zero = np.flatnonzero(M.diagonal()[:-2] == 0.0)
        if count > 0 and zero.size > 0 and self._loses_digits(zero):
            M[zero, zero] = LOST
        return Moments(M, n_terms(min(count, height), -(-count // height) + len(borders)))

    def moments_of(self, sets: Sequence[np.ndarray | None]) -> list[Moments]:
        """Return the moments of several sets of samples."""
        return [self.moments(samples) for samples in sets]

    def _loses_digits(self, columns: np.ndarray) -> bool:
        """Tell whether columns whose squares sum up to zero may have entries that are not zero."""
        weight = 1.0 if self.weight is None else float(self.weight[self.weight > 0.0].min(initial=1.0))
        least = math.sqrt(LEAST / weight)
        if not scipy.sparse.issparse(self.X):
            entries = self.X[:, columns] - self.shift[columns]
        elif self.as_blocks:
            entries = self.X[:, columns].toarray() - self.shift[columns]
        elif _smallest(self.X.data) >= least:  # as nearly always: no need to look for the columns
            return False
        else:
            entries = self.X[:, columns].data
        return _smallest(entries) < least

    def _height(self, count: int) -> int:
        """Return the number of rows in a block."""
        n, d = self.shape
        height = math.isqrt(max(0, count - 1)) + 1
        if not self.as_blocks:
            per_row = max(1.0, self.X.nnz / n)
            height = max(height, int(2.0 * _ADDED * d * d / (per_row * per_row)))
        return height

    def _add_blocks(self, places: slice | np.ndarray, height: int, start: int, stop: int) -> np.ndarray:
        """Return the moments of a range of the samples by products of dense blocks."""
        d = self.shape[1]
        M, is_sparse = np.zeros((d + 2, d + 2)), scipy.sparse.issparse(self.X)
        by_columns = not is_sparse and not self.X.flags.c_contiguous
        whole = np.empty((min(height, stop - start), d + 2), order="F" if by_columns else "C")
        whole[:, -1] = 1.0
        for first in range(start, stop, height):
            end_pass()
            last = min(first + height, stop)
            at = _part(places, first, last)
            rows, U = self.X[at], whole[: last - first]
            np.subtract(rows.toarray() if is_sparse else rows, self.shift, out=U[:, :d])
            np.subtract(self.y[at], self.y_shift, out=U[:, d])
            if self.weight is not None:
                U[:, -1] = 1.0
                U *= np.sqrt(self.weight[at])[:, None]
            M += U.T @ U
        return M

    def _add_rows(self, places: slice | np.ndarray, height: int, start: int, stop: int) -> np.ndarray:
        """Return the moments of a range of the samples by the products of their stored entries."""
        d, rows = self.shape[1], slices_of(self.X)
        M = np.zeros((d + 2, d + 2))
        for first in range(start, stop, height):
            end_pass()
            at = _part(places, first, min(first + height, stop))
            samples = np.arange(at.start, at.stop) if isinstance(at, slice) else at
            weight = np.ones(samples.size) if self.weight is None else self.weight[samples]
            block = np.zeros((d + 2, d + 2))
            _add_products(rows, samples, weight, self.y[samples] - self.y_shift, block)
            M += block
        lower = np.tril(M, -1)
        return np.asarray(np.diag(M.diagonal()) + lower + lower.T)


def n_terms(height: int, n_blocks: int) -> int:
    """Return the length of moments that are the sum of so many blocks, of so many rows at most."""
    return height + n_blocks + _OPERATIONS


def end_pass() -> None:
    """Raise PassInterruptedError where Ctrl-C was pressed, or the time of the call is over."""
    Interrupts.end_pass()
    if time_is_over():
        raise PassInterruptedError


def _smallest(entries: np.ndarray) -> float:
    """Return the smallest size of those that are not zero."""
    return float(np.abs(entries[entries != 0.0]).min(initial=np.inf))


def _as_slice(samples: np.ndarray) -> slice | np.ndarray:
    """Return places that lie one after the other as a slice, which needs no copy."""
    if samples.size and samples[-1] - samples[0] == samples.size - 1 and bool((np.diff(samples) == 1).all()):
        return slice(int(samples[0]), int(samples[-1]) + 1)
    return samples


def _part(places: slice | np.ndarray, first: int, last: int) -> slice | np.ndarray:
    return slice(places.start + first, places.start + last) if isinstance(places, slice) else places[first:last]


@kernel
def _add_products(rows, samples, weight, y, M):
    """Add the products of the stored entries of some rows, whose columns ascend, to the lower triangle of M."""
    of_y = np.uint64(M.shape[0] - 2)
    of_one = np.uint64(M.shape[0] - 1)
    for k in range(samples.shape[0]):
        i, v, of_target = samples[k], weight[k], weight[k] * y[k]
        first, last = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
        for a in range(first, last):
            j, value = np.uint64(rows.indices[a]), v * rows.data[a]
            for b in range(first, a + np.uint64(1)):
                M[j, np.uint64(rows.indices[b])] += value * rows.data[b]
            M[of_y, j] += of_target * rows.data[a]
            M[of_one, j] += value
        M[of_y, of_y] += of_target * y[k]
        M[of_one, of_y] += of_target
        M[of_one, of_one] += v
