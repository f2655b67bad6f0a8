"""Columns: the features as the path sees them, weighted, centred and scaled, without a copy of X.

With weights v_i that sum to one, feature j is z_j = scale_j (x_j - mean_j), and <a, b> = sum_i v_i a_i b_i is the inner
product that every formula of this folder uses. mean_j is 0 without an intercept, scale_j is 1 without standardisation,
and 0 for a feature that is constant once centred: it takes no part. Predictions are kept without the means, which an
intercept takes up. A budget that counts feature j with weight_j is the plain budget of the features x_j / weight_j.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import compiled, kernel, where
from condgrad.linalg import threads
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.slices import Slices
from condgrad.linalg.sparse_slices import SparseSlices
from condgrad.linalg.vectors import DenseVector

_CONSTANT = 1e-12  # share of its size below which the deviation of a feature from its mean is rounding


class Features(Protocol):
    """What a path knows about all of its features, wherever their columns lie."""

    @property
    def weight(self) -> np.ndarray:
        """The weights of the samples."""

    @property
    def mean(self) -> np.ndarray:
        """mean_j of every feature."""

    @property
    def scale(self) -> np.ndarray:
        """scale_j of every feature."""

    @property
    def norm(self) -> np.ndarray:
        """||z_j|| of every feature."""

    @property
    def is_symmetric(self) -> bool:
        """Whether coefficients may have both signs; otherwise they are at least 0."""

    def size(self, correlation: np.ndarray) -> np.ndarray:
        """Return the rates at which F falls along features, from their correlations."""

    def offsets(self) -> np.ndarray | None:
        """Return where the stored entries of each feature begin, or None where every feature stores all entries."""

    def chosen(self, features: np.ndarray) -> tuple[Columns, np.ndarray]:
        """Return columns in memory, and the places of the chosen features among them."""


@compiled
class Columns(NamedTuple):
    """The scaled and centred features; ``slices`` are the columns of X, ``norm_j`` is ||z_j||.

    ``is_symmetric`` says whether coefficients may have both signs; otherwise they are at least 0.
    """

    slices: Slices
    weight: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    norm: np.ndarray
    is_symmetric: bool = True

    def correlation(self, j, a, mu):
        """Return <z_j, R> for weighted residuals a_i = v_i R_i with sum mu."""
        return self.scale[j] * (self.slices.dot_slice(j, a) - self.mean[j] * mu)

    def correlations(self, chosen, start, stop, a, mu, out):
        """Set ``out[q]`` to the correlation of feature ``chosen[q]``, for q from ``start`` to ``stop`` - 1."""
        self.slices.dot_some(chosen, start, stop, a, out)
        for q in range(start, stop):
            j = chosen[q]
            out[q] = self.scale[j] * (out[q] - self.mean[j] * mu)

    def size(self, correlation):
        """Return the rate at which F falls along a feature: a negative correlation is of use to both signs only."""
        return where(self.is_symmetric, abs(correlation), correlation)

    def add(self, j, c, out):
        """Add c scale_j x_j to the vector ``out``."""
        self.slices.add_slice(j, c * self.scale[j], out)

    def add_some(self, chosen, start, stop, c, out):
        """Add c[q] scale_j x_j for the features j = chosen[q] to the vector ``out``, for the same q."""
        self.slices.add_some(chosen, start, stop, c, self.scale, out)

    def n_stored(self, j):
        """Return how many entries feature j stores."""
        return self.slices.n_stored(j)

    def offsets(self):
        """Return where the stored entries of each feature begin, or None where every feature stores all entries."""
        return self.slices.indptr if isinstance(self.slices, SparseSlices) else None

    def chosen(self, features):
        """Return columns in memory, and the places of the chosen features among them."""
        return self, features


def make_columns(matrix: Matrix, weight: np.ndarray, has_intercept: bool, standardize: bool) -> Columns:
    """Return the features of ``matrix``: two passes over the data, on all cores."""
    return columns_of(matrix.columns, matrix.shape[1], matrix.n_stored, weight, has_intercept, standardize)


def columns_of(
    slices: Slices,
    d: int,
    n_stored: int,
    weight: np.ndarray,
    has_intercept: bool,
    standardize: bool,
    is_symmetric: bool = True,
) -> Columns:
    """Return the d features that are the given slices."""
    mean, scale, norm = np.zeros(d), np.ones(d), np.empty(d)
    columns = Columns(slices, weight, mean, scale, norm, is_symmetric)
    task = functools.partial(_measure, columns, has_intercept, standardize)
    threads.run(task, threads.cut(d, 4 * n_stored, columns.offsets()))
    return columns


@kernel
def _measure(columns, has_intercept, standardize, start, stop):
    for j in range(start, stop):
        mean, size, spread = columns.slices.moments(j, columns.weight)
        if has_intercept:
            columns.mean[j] = mean
        else:
            spread = size
        if not spread > _CONSTANT * size:
            columns.scale[j] = 0.0
            columns.norm[j] = 0.0
        elif standardize:
            columns.scale[j] = 1.0 / spread
            columns.norm[j] = 1.0
        else:
            columns.norm[j] = spread


def pack(columns: Columns, features: np.ndarray) -> tuple[Columns, np.ndarray]:
    """Return columns that begin with the chosen features, and their places: a copy for sparse data.

    Short columns that lie one after the other are read several times faster than those all over the data. Dense ones
    are long, and a copy would be large: they stay where they are.
    """
    if not isinstance(columns.slices, SparseSlices):
        return columns, features
    slices = SparseSlices(*_pack(columns.slices, features))
    chosen = columns.mean[features], columns.scale[features], columns.norm[features]
    return Columns(slices, columns.weight, *chosen, columns.is_symmetric), np.arange(features.size)


@kernel
def _pack(slices, features):
    indptr = np.zeros(features.shape[0] + 1, slices.indptr.dtype)
    for k in range(features.shape[0]):
        indptr[k + 1] = indptr[k] + slices.n_stored(features[k])
    data, indices = np.empty(indptr[-1], slices.data.dtype), np.empty(indptr[-1], slices.indices.dtype)
    for k in range(features.shape[0]):
        shift = slices.indptr[features[k]] - indptr[k]
        for m in range(indptr[k], indptr[k + 1]):
            data[m] = slices.data[m + shift]
            indices[m] = slices.indices[m + shift]
    return data, indices, indptr


@kernel
def extend_gram(columns, features, first, l2, c, target, G, buffer):
    """Fill the rows of G, l2 included, and the entries of c that belong to features[first:], the new ones.

    ``buffer`` holds zeros, one for each sample, before and after.
    """
    vector = DenseVector(buffer)
    for q in range(first, features.shape[0]):
        j = features[q]
        columns.add(j, 1.0, vector)
        c[q] = 0.0
        mu = 0.0
        for i in range(buffer.shape[0]):
            buffer[i] *= columns.weight[i]
        for i in range(buffer.shape[0]):
            mu += buffer[i]
        total = 0.0
        for i in range(buffer.shape[0]):
            total += buffer[i] * target[i]
        c[q] = total
        columns.correlations(features, 0, q + 1, buffer, mu, G[q])
        for k in range(q):
            G[k, q] = G[q, k]
        G[q, q] += l2
        for i in range(buffer.shape[0]):
            buffer[i] = 0.0
