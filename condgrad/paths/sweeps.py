"""Sweeps of coordinate descent over a working set, and products with its columns on all cores.

A sweep minimises ||R||^2/2 + alpha ||x||_1 over one coefficient after the other, at the cost of the stored entries.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg import threads
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.columns import Columns


@compiled
class WeightedVector(NamedTuple):
    """A vector that takes v_i times what is added to entry i."""

    values: np.ndarray
    weight: np.ndarray

    def add_at(self, i, delta):
        """Add weight_i delta to entry i."""
        self.values[i] += self.weight[i] * delta


class Fit(NamedTuple):
    """Sums at a point, l2 included: ||R||^2, <y, Xx>, <R, Xx>, ||x||_1, and the sum of the weighted residuals."""

    squared_r: float
    fit: float
    along: float
    norm: float
    mu: float


class Atoms:
    """The columns of chosen features: products with all of them, on all cores where they are large."""

    def __init__(self, columns: Columns, features: np.ndarray) -> None:
        self.columns, self.features = columns, features
        offsets = _count(columns, features)
        self.n_stored = int(offsets[-1])
        borders = threads.cut(features.size, 2 * self.n_stored, offsets)
        self.borders = np.unique(borders) if len(borders) > 2 else borders  # one long column may leave a range empty
        self.sums = np.zeros((len(self.borders) - 1, columns.weight.size))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return sum_k x_k scale_j x_j over the features j = features_k, in an array that the next call reuses."""
        places = {int(start): k for k, start in enumerate(self.borders[:-1])}

        def add(start: int, stop: int) -> None:
            _predict(self.columns, self.features, x, self.sums[places[start]], start, stop)

        threads.run(add, self.borders)
        for other in self.sums[1:]:
            self.sums[0] += other
        return self.sums[0]

    def correlate(self, a: np.ndarray, mu: float, x: np.ndarray, l2: float, out: np.ndarray) -> float:
        """Fill in the correlations with weighted residuals ``a`` of sum ``mu``, less l2 x; return the largest size."""
        task = functools.partial(_correlate, self.columns, self.features, a, mu, x, l2, out)
        return max(threads.run(task, self.borders), default=0.0)


@kernel
def _count(columns, features):
    """Return where the stored entries of each feature would begin if they were put together, and their number."""
    offsets = np.zeros(features.shape[0] + 1, np.int64)
    for k in range(features.shape[0]):
        offsets[k + 1] = offsets[k] + np.int64(columns.n_stored(features[k]))
    return offsets


@kernel
def _predict(columns, features, x, out, start, stop):
    vector = DenseVector(out)
    for i in range(out.shape[0]):
        out[i] = 0.0
    for k in range(start, stop):
        if x[k] != 0.0:
            columns.add(features[k], x[k], vector)


@kernel
def _correlate(columns, features, a, mu, x, l2, out, start, stop):
    for k in range(start, stop):
        out[k] = columns.correlation(features[k], a, mu) - l2 * x[k]
    largest = 0.0
    for k in range(start, stop):
        largest = max(largest, abs(out[k]))
    return largest


@kernel
def renew(columns, p, x, l2, y, has_intercept, R, a):
    """Renew residuals and weighted residuals from the predictions p of x; return the sums of :class:`Fit`."""
    mean = 0.0
    if has_intercept:
        for i in range(p.shape[0]):
            mean += columns.weight[i] * p[i]
    for i in range(p.shape[0]):
        R[i] = y[i] - (p[i] - mean)
        a[i] = columns.weight[i] * R[i]
    return _fit(columns, x, l2, y, has_intercept, R, a)


@kernel
def follow_sweeps(columns, mu, x, l2, y, has_intercept, R, a):
    """Renew residuals from the weighted ones that sweeps have kept, of sum mu; return the sums of :class:`Fit`."""
    for i in range(y.shape[0]):
        R[i] = a[i] / columns.weight[i] - mu if columns.weight[i] > 0.0 else 0.0
        a[i] = columns.weight[i] * R[i]
    return _fit(columns, x, l2, y, has_intercept, R, a)


@kernel
def _fit(columns, x, l2, y, has_intercept, R, a):
    squared_r, fit, along, mu = 0.0, 0.0, 0.0, 0.0
    for i in range(y.shape[0]):
        squared_r += a[i] * R[i]
        fit += columns.weight[i] * y[i] * (y[i] - R[i])
        along += a[i] * (y[i] - R[i])
        mu += a[i]
    norm, squared_x = 0.0, 0.0
    for k in range(x.shape[0]):
        norm += abs(x[k])
        squared_x += x[k] * x[k]
    return squared_r + l2 * squared_x, fit, along - l2 * squared_x, norm, mu if has_intercept else 0.0


@kernel
def sums(weight, y, R, x, l2):
    """Return ||R||^2 + l2 ||x||^2 and <y, R>. (A BLAS would keep its threads awake for a while, in the way of ours.)"""
    squared_r, y_r = 0.0, 0.0
    for i in range(R.shape[0]):
        squared_r += weight[i] * R[i] * R[i]
        y_r += weight[i] * y[i] * R[i]
    for k in range(x.shape[0]):
        squared_r += l2 * x[k] * x[k]
    return squared_r, y_r


@kernel
def sweep(columns, features, clusters, only_used, x, alpha, l2, accuracy, a, mu, common):
    """Minimise over one block of coefficients after the other; return the sum of weighted residuals.

    With ``only_used``, blocks without a coefficient that is not zero are left out. Correlations within a block are
    exact up to ``accuracy``. ``common`` is the weight that all samples have, or 0 where they differ.
    """
    weighted, plain = WeightedVector(a, columns.weight), DenseVector(a)
    total = np.array([mu])
    correlation, before = np.empty(features.shape[0]), np.empty(features.shape[0])
    for b in range(clusters.starts.shape[0] - 1):
        first, size = clusters.starts[b], clusters.starts[b + 1] - clusters.starts[b]
        is_used = False
        for i in range(size):
            before[i] = x[first + i]
            is_used |= before[i] != 0.0
        if only_used and not is_used:
            continue
        for i in range(size):
            correlation[i] = columns.correlation(features[first + i], a, total[0]) - l2 * before[i]
        if clusters.minimise(b, x, alpha, accuracy, correlation):
            for i in range(size):
                change = x[first + i] - before[i]
                if change != 0.0:
                    j = features[first + i]
                    if common > 0.0:
                        columns.add(j, -common * change, plain)
                    else:
                        columns.add(j, -change, weighted)
                    total[0] -= change * columns.scale[j] * columns.mean[j]
    return total[0]
