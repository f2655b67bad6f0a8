"""Vertices: what a linear minimisation oracle returns, in sparse storage where it is sparse.

A step of a solver moves the iterate towards a vertex s, and needs ``<r, s>`` and ``X s``; each kind of vertex computes
them the cheapest way. ``blend_into``, ``inner`` and ``dot_row_of`` run inside kernels; the rest is for ordinary Python.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import Vector


class Vertex(Protocol):
    """The methods of every vertex."""

    def inner(self, r: Vector) -> float:
        """Return <r, s> for a vector ``r``."""

    def blend_into(self, w: Vector, gamma: float) -> None:
        """Set w to (1 - gamma) w + gamma s."""

    def dot_row_of(self, X: Slices, i: int) -> float:
        """Return <x_i, s>."""

    def scaled(self, factor: float) -> Vertex:
        """Return the vertex factor * s."""

    def to_dense(self, n_features: int) -> np.ndarray:
        """Return s as an array."""

    def support(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the features where s may be nonzero (None: all features) and its values there."""

    def key(self) -> Hashable:
        """Return a key that distinguishes this vertex from the others of its set."""


@compiled
class Atom(NamedTuple):
    """The vertex ``value * e_index``, with one nonzero entry."""

    index: int  # type: ignore[assignment]
    value: float

    def inner(self, r):
        """Return <r, s> for a vector ``r``."""
        return self.value * r.at(self.index)

    def blend_into(self, w, gamma):
        """Set w to (1 - gamma) w + gamma s."""
        w.shrink(1.0 - gamma)
        w.add_at(self.index, gamma * self.value)

    def dot_row_of(self, X, i):
        """Return <x_i, s>."""
        return self.value * X.entry(i, self.index)

    def n_entries(self):
        """Return how many entries may be nonzero."""
        return 1

    def feature(self, k):
        """Return the feature of entry ``k``."""
        return self.index

    def entry(self, k):
        """Return the value of entry ``k``."""
        return self.value

    def add_columns_of(self, X, out):
        """Add X s to the vector ``out``, for the columns of X."""
        X.add_slice(self.index, self.value, out)

    def value_at(self, j):
        """Return the value at feature ``j``."""
        return self.value if j == self.index else 0.0

    def add_image(self, H, c, out):
        """Add c H s to the vector ``out``, for a symmetric array ``H``."""
        out.add_row(c * self.value, H, self.index)

    def add_weighted_rows(self, rows, columns, t, c, out):
        """Add c X'(t * X s) to the vector ``out``."""
        columns.add_weighted(self.index, t, c * self.value, rows, out)

    def scaled(self, factor):
        """Return the vertex factor * s."""
        return Atom(self.index, factor * self.value)

    def to_dense(self, n_features):
        """Return s as an array."""
        dense = np.zeros(n_features)
        dense[self.index] = self.value
        return dense

    def support(self):
        """Return the features where s may be nonzero and its values there."""
        return np.array([self.index]), np.array([self.value])

    def key(self):
        """Return a key that distinguishes this vertex from the others of its set."""
        return int(self.index), float(self.value)


@compiled
class SparseVertex(NamedTuple):
    """A vertex with the given values at the given features, and zeros elsewhere."""

    indices: np.ndarray
    values: np.ndarray

    def inner(self, r):
        """Return <r, s> for a vector ``r``."""
        total = 0.0
        for k in range(self.indices.shape[0]):
            total += self.values[k] * r.at(self.indices[k])
        return total

    def blend_into(self, w, gamma):
        """Set w to (1 - gamma) w + gamma s."""
        w.shrink(1.0 - gamma)
        for k in range(self.indices.shape[0]):
            w.add_at(self.indices[k], gamma * self.values[k])

    def dot_row_of(self, X, i):
        """Return <x_i, s>."""
        total = 0.0
        for k in range(self.indices.shape[0]):
            total += self.values[k] * X.entry(i, self.indices[k])
        return total

    def n_entries(self):
        """Return how many entries may be nonzero."""
        return self.indices.shape[0]

    def feature(self, k):
        """Return the feature of entry ``k``."""
        return self.indices[k]

    def entry(self, k):
        """Return the value of entry ``k``."""
        return self.values[k]

    def add_columns_of(self, X, out):
        """Add X s to the vector ``out``, for the columns of X."""
        for k in range(self.indices.shape[0]):
            X.add_slice(self.indices[k], self.values[k], out)

    def value_at(self, j):
        """Return the value at feature ``j``."""
        for k in range(self.indices.shape[0]):
            if self.indices[k] == j:
                return self.values[k]
        return 0.0

    def add_image(self, H, c, out):
        """Add c H s to the vector ``out``, for a symmetric array ``H``."""
        for k in range(self.indices.shape[0]):
            out.add_row(c * self.values[k], H, self.indices[k])

    def add_weighted_rows(self, rows, columns, t, c, out):
        """Add c X'(t * X s) to the vector ``out``."""
        for k in range(self.indices.shape[0]):
            columns.add_weighted(self.indices[k], t, c * self.values[k], rows, out)

    def scaled(self, factor):
        """Return the vertex factor * s."""
        return SparseVertex(self.indices, factor * self.values)

    def to_dense(self, n_features):
        """Return s as an array."""
        dense = np.zeros(n_features)
        dense[self.indices] = self.values
        return dense

    def support(self):
        """Return the features where s may be nonzero and its values there."""
        return self.indices, self.values

    def key(self):
        """Return a key that distinguishes this vertex from the others of its set."""
        return self.indices.tobytes(), self.values.tobytes()


@kernel
def nonzeros(values):
    """Return an array as a SparseVertex of its nonzero entries, of which there is at least one: 0 e_0 stands for 0."""
    count = 0
    for j in range(values.shape[0]):
        if values[j] != 0.0:
            count += 1
    indices, entries = np.zeros(max(count, 1), np.int64), np.zeros(max(count, 1))
    k = 0
    for j in range(values.shape[0]):
        if values[j] != 0.0:
            indices[k] = j
            entries[k] = values[j]
            k += 1
    return SparseVertex(indices, entries)


@compiled
class DenseVertex(NamedTuple):
    """A vertex stored in full."""

    values: np.ndarray

    def inner(self, r):
        """Return <r, s> for a vector ``r``."""
        return r.inner(self.values)

    def blend_into(self, w, gamma):
        """Set w to (1 - gamma) w + gamma s."""
        w.shrink(1.0 - gamma)
        w.add_array(gamma, self.values)

    def dot_row_of(self, X, i):
        """Return <x_i, s>."""
        return X.dot_slice(i, self.values)

    def add_image(self, H, c, out):
        """Add c H s to the vector ``out``, for a symmetric array ``H``."""
        for k in range(H.shape[0]):
            out.add_row(c * self.values[k], H, k)

    def add_weighted_rows(self, rows, columns, t, c, out):
        """Add c X'(t * X s) to the vector ``out``."""
        for i in range(t.shape[0]):
            rows.add_slice(i, c * t[i] * rows.dot_slice(i, self.values), out)

    def scaled(self, factor):
        """Return the vertex factor * s."""
        return DenseVertex(factor * self.values)

    def to_dense(self, n_features):
        """Return s as an array (a copy)."""
        return self.values.copy()

    def support(self):
        """Return the features where s may be nonzero (None: all features) and its values there."""
        return None, self.values

    def key(self):
        """Return a key that distinguishes this vertex from the others of its set."""
        return self.values.tobytes()


@compiled
class AtomMemory(NamedTuple):
    """Memory for an atom from one step to the next."""

    index: np.ndarray  # type: ignore[assignment]
    value: np.ndarray

    def put(self, s):
        """Store ``s``."""
        self.index[0] = s.index
        self.value[0] = s.value

    def get(self):
        """Return the atom stored last."""
        return Atom(self.index[0], self.value[0])


@compiled
class DenseMemory(NamedTuple):
    """Memory for a vertex of any kind from one step to the next."""

    values: np.ndarray

    def put(self, s):
        """Store ``s``, in O(d)."""
        dense = s.to_dense(self.values.shape[0])
        for j in range(self.values.shape[0]):
            self.values[j] = dense[j]

    def get(self):
        """Return the vertex stored last."""
        return DenseVertex(self.values)


def memory_for(vertex: type[Vertex], n_features: int) -> AtomMemory | DenseMemory:
    """Return memory for a vertex of the given kind."""
    if vertex is Atom:
        return AtomMemory(np.zeros(1, dtype=np.int64), np.zeros(1))
    return DenseMemory(np.zeros(n_features))
