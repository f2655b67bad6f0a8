"""Vectors in the form that kernels read: a gradient, an estimate of one, an iterate.

Every vector has the methods ``size, at, add_at, shrink, inner, dot_slice`` and those that oracles call: ``argmax_abs``,
``argmin``, ``argmax_weighted``, ``best_group``. :class:`~condgrad.linalg.max_tree.MaxTree` has the latter in O(log d).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import bits_of, compiled, kernel
from condgrad.linalg.slices import Slices

_BLOCK = 256  # entries compared at a time: counting those better than the best so far vectorises, finding one does not


class Vector(Protocol):
    """The methods of every vector."""

    def size(self) -> int:
        """Return the number of entries."""

    def at(self, j: int) -> float:
        """Return entry ``j``."""

    def add_at(self, j: int, delta: float) -> None:
        """Add ``delta`` to entry ``j``."""

    def add_array(self, c: float, v: np.ndarray) -> None:
        """Add ``c`` times the array ``v``."""

    def shrink(self, factor: float) -> None:
        """Multiply the vector by ``factor``."""

    def to_array(self) -> np.ndarray:
        """Return the entries as a new array."""

    def inner(self, v: np.ndarray) -> float:
        """Return the inner product with the array ``v``."""

    def dot_slice(self, X: Slices, k: int) -> float:
        """Return the inner product with slice ``k`` of ``X``."""

    def argmax_abs(self) -> int:
        """Return the first index of the largest absolute value."""

    def argmin(self) -> int:
        """Return the first index of the smallest value."""

    def argmax_weighted(self, weights: np.ndarray) -> int:
        """Return the first index of the largest ``|v_j| / weights_j``."""

    def best_group(self, members: np.ndarray, offsets: np.ndarray) -> int:
        """Return the first group with the largest sum of squares; group g is members[offsets[g]:offsets[g + 1]]."""


@compiled
class DenseVector(NamedTuple):
    """An ordinary vector: every entry is stored as it is."""

    values: np.ndarray

    def size(self):
        """Return the number of entries."""
        return self.values.shape[0]

    def at(self, j):
        """Return entry ``j``."""
        return self.values[j]

    def add_at(self, j, delta):
        """Add ``delta`` to entry ``j``."""
        self.values[j] += delta

    def add_array(self, c, v):
        """Add ``c`` times the array ``v``."""
        for j in range(self.values.shape[0]):
            self.values[j] += c * v[j]

    def add_row(self, c, H, k):
        """Add ``c`` times row ``k`` of the array ``H``."""
        for j in range(self.values.shape[0]):
            self.values[j] += c * H[k, j]

    def shrink(self, factor):
        """Multiply the vector by ``factor``."""
        for j in range(self.values.shape[0]):
            self.values[j] *= factor

    def set_to(self, v):
        """Set all entries to those of ``v``."""
        self.values[:] = v

    def to_array(self):
        """Return the entries as a new array."""
        return self.values.copy()

    def inner(self, v):
        """Return the inner product with the array ``v``."""
        total = 0.0
        for j in range(self.values.shape[0]):
            total += self.values[j] * v[j]
        return total

    def dot_slice(self, X, k):
        """Return the inner product with slice ``k`` of ``X``."""
        return X.dot_slice(k, self.values)

    def argmax_abs(self):
        """Return the first index of the largest absolute value."""
        d, block = np.uint64(self.values.shape[0]), np.uint64(_BLOCK)
        best, start, where_best = np.int64(-1), np.uint64(0), np.uint64(0)
        while start < d:
            stop = min(start + block, d)
            largest = np.int64(-1)
            for j in range(start, stop):
                largest = max(largest, bits_of(abs(self.values[j])))
            if largest > best:
                best, where_best = largest, start
            start = stop
        for j in range(where_best, d):
            if bits_of(abs(self.values[j])) == best:
                return np.int64(j)
        return np.int64(0)

    def argmin(self):
        """Return the first index of the smallest value."""
        d = self.values.shape[0]
        best, where_best = self.values[0], 0
        for start in range(0, d, _BLOCK):
            stop = min(start + _BLOCK, d)
            n_below = 0
            for j in range(start, stop):
                n_below += self.values[j] < best
            if n_below > 0:
                for j in range(start, stop):
                    if self.values[j] < best:
                        best, where_best = self.values[j], j
        return where_best

    def argmax_weighted(self, weights):
        """Return the first index of the largest ``|v_j| / weights_j``."""
        scale = self.largest()
        best, where_best = -1.0, 0
        for j in range(self.values.shape[0]):
            size = abs(self.values[j]) / scale / weights[j]
            if size > best:
                best, where_best = size, j
        return where_best

    def best_group(self, members, offsets):
        """Return the first group with the largest sum of squares; group g is members[offsets[g]:offsets[g + 1]]."""
        scale = self.largest()
        best, where_best = -1.0, 0
        for g in range(offsets.shape[0] - 1):
            total = 0.0
            for k in range(offsets[g], offsets[g + 1]):
                entry = self.values[members[k]] / scale
                total += entry * entry
            if total > best:
                best, where_best = total, g
        return where_best

    def largest(self):
        """Return the largest absolute value, or 1 for zeros: quotients by it neither overflow nor vanish."""
        largest = abs(self.values[self.argmax_abs()])
        return largest if largest > 0.0 else 1.0


@kernel
def product(H: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return H v: like :func:`inner`, always summed in the same order, which a BLAS does not guarantee."""
    out = np.empty(H.shape[0])
    for k in range(H.shape[0]):
        total = 0.0
        for j in range(H.shape[1]):
            total += H[k, j] * v[j]
        out[k] = total
    return out


@kernel
def symmetric_product(H: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return H v for a symmetric H: the sums of :func:`product` in the same order, many at a time along rows of H."""
    out = np.zeros(v.shape[0])
    for k in range(v.shape[0]):
        for j in range(v.shape[0]):
            out[j] += H[k, j] * v[k]
    return out


@kernel
def inner(a: np.ndarray, b: np.ndarray) -> float:
    """Return <a, b>: always summed in the same order, and without the threads of a BLAS, too slow for a short loop."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total
