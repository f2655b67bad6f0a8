"""ActiveSet: the iterate as a convex combination of vertices, w = sum_k lambda_k v_k."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints import Atom, DenseVertex, SparseVertex
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.saved import take_floats, take_indices, take_weights
from condgrad.linalg.vectors import inner
from condgrad.problems.combination import Combination


class Stack(Protocol):
    """An ordered list of vertices; a new vertex must be of the same kind as the stored ones."""

    def __len__(self) -> int: ...

    def vertex(self, k: int) -> Vertex:
        """Return the vertex at place ``k``."""

    def append(self, v: Vertex) -> None:
        """Add a vertex."""

    def extend(self, vertices: Sequence[Vertex]) -> None:
        """Add several vertices."""

    def join(self, others: Self) -> None:
        """Add the vertices of another stack."""

    def remove(self, k: int) -> None:
        """Remove the vertex at place ``k``; the last vertex moves to its place."""

    def select(self, kept: np.ndarray) -> Self:
        """Return a stack of the vertices chosen by the mask ``kept``."""

    def without(self, others: Self, up_to_sign: bool) -> Self:
        """Return those of the ``others`` that are not in this stack (with ``up_to_sign``, nor are their opposites)."""

    def inner_products(self, r: np.ndarray) -> np.ndarray:
        """Return <r, v_k> for every vertex."""

    def gram(self) -> np.ndarray:
        """Return <v_k, v_l> for all pairs."""

    def combination(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        """Return sum_k weights_k v_k."""

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the vertices as named arrays."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_features: int) -> Self:
        """Return the stack saved as the arrays of ``to_arrays``, each name prefixed with "atoms."."""


class ActiveSet(Combination):
    """Vertices with positive weights that sum to one; an atom whose weight reaches zero is removed.

    ``terms`` are (weight, vertex) pairs.
    """

    def __init__(self, terms: list[tuple[float, Vertex]]) -> None:
        self._places: dict[Hashable, int] = {}
        self._atoms = stack([v for _, v in terms]).select(np.zeros(len(terms), dtype=bool))
        self.weights = np.empty(0)
        for weight, v in terms:
            self.add(v, weight)
        self.weights /= self.weights.sum()

    def __len__(self) -> int:
        return len(self._atoms)

    @property
    def is_atomic(self) -> bool:
        """Whether every vertex is a single feature."""
        return isinstance(self._atoms, AtomStack)

    def vertex(self, k: int) -> Vertex:
        """Return the atom at place ``k``."""
        return self._atoms.vertex(k)

    def inner_products(self, r: np.ndarray) -> np.ndarray:
        """Return <r, v_k> for every atom."""
        return self._atoms.inner_products(r)

    @property
    def atoms(self) -> Stack:
        """The vertices, as a stack."""
        return self._atoms

    def place_of(self, s: Vertex) -> int:
        """Return the place of the vertex ``s``, or -1 if it is not stored."""
        return self._places.get(s.key(), -1)

    def add(self, v: Vertex, weight: float) -> None:
        """Add ``weight`` to the weight of the vertex v, which may be new."""
        k = self.place_of(v)
        if k >= 0:
            self.weights[k] += weight
        elif weight > 0.0:
            if self.is_atomic and not isinstance(v, Atom):
                self._atoms = VertexStack([self.vertex(k) for k in range(len(self))])
            self._places[v.key()] = len(self)
            self._atoms.append(v)
            self.weights = np.append(self.weights, weight)

    def drop(self, k: int) -> None:
        """Remove the atom at place ``k``; the last atom moves to its place."""
        last = len(self) - 1
        del self._places[self.vertex(k).key()]
        if k != last:
            self._places[self.vertex(last).key()] = k
            self.weights[k] = self.weights[last]
        self._atoms.remove(k)
        self.weights = self.weights[:last]

    def scale(self, factor: float) -> None:
        """Multiply all weights by ``factor``."""
        self.weights *= factor

    def reset(self, s: Vertex) -> None:
        """Make ``s`` the only atom."""
        self._atoms = stack([s])
        self._places = {s.key(): 0}
        self.weights = np.ones(1)

    def combination(self, n_features: int) -> np.ndarray:
        """Compute and return w = sum_k lambda_k v_k, after rescaling the weights to sum one."""
        self.weights /= self.weights.sum()
        return self._atoms.combination(self.weights, n_features)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return weights and atoms as arrays."""
        return {"weights": self.weights} | {f"atoms.{name}": part for name, part in self._atoms.to_arrays().items()}

    def restore(self, arrays: dict[str, np.ndarray], n_features: int) -> None:
        """Restore weights and atoms from a snapshot."""
        self._atoms = stack_from(arrays, n_features)
        self._places = {self.vertex(k).key(): k for k in range(len(self))}
        self.weights = take_weights(arrays, "weights", len(self))
        if len(self._places) < len(self):
            raise ValueError("its atoms are not different ones")


def stack(vertices: Sequence[Vertex]) -> Stack:
    """Return a stack of the given vertices; at least one is needed."""
    held: Stack = AtomStack() if all(isinstance(v, Atom) for v in vertices) else VertexStack()
    held.extend(vertices)
    return held


def stack_from(arrays: dict[str, np.ndarray], n_features: int) -> Stack:
    """Return the stack saved as the arrays of ``to_arrays``, each name prefixed with "atoms."."""
    kind: type[Stack] = AtomStack if "atoms.index" in arrays else VertexStack
    return kind.from_arrays(arrays, n_features)


def as_stack(atoms: Stack | list[Vertex]) -> Stack:
    """Return ``atoms`` as a stack; a stack is returned unchanged."""
    return stack(atoms) if isinstance(atoms, list) else atoms


class AtomStack:
    """Atoms value * e_index, stored as two arrays."""

    def __init__(self, index: ArrayLike = (), value: ArrayLike = ()) -> None:
        self.index = np.array(index, dtype=np.int64)
        self.value = np.array(value, dtype=np.float64)

    def __len__(self) -> int:
        return self.index.size

    def vertex(self, k: int) -> Atom:
        return Atom(int(self.index[k]), float(self.value[k]))

    def append(self, v: Vertex) -> None:
        atom = cast("Atom", v)
        self.index = np.append(self.index, atom.index)
        self.value = np.append(self.value, atom.value)

    def remove(self, k: int) -> None:
        self.index[k], self.value[k] = self.index[-1], self.value[-1]
        self.index, self.value = self.index[:-1], self.value[:-1]

    def extend(self, vertices: Sequence[Vertex]) -> None:
        atoms = cast("Sequence[Atom]", vertices)
        self.index = np.append(self.index, [v.index for v in atoms]).astype(np.int64)
        self.value = np.append(self.value, [v.value for v in atoms])

    def join(self, others: AtomStack) -> None:
        self.index = np.concatenate((self.index, others.index))
        self.value = np.concatenate((self.value, others.value))

    def select(self, kept: np.ndarray) -> AtomStack:
        return AtomStack(self.index[kept], self.value[kept])

    def without(self, others: AtomStack, up_to_sign: bool) -> AtomStack:
        """Return those of the ``others`` whose feature is not in this stack; an atom and its opposite share theirs."""
        is_new = np.ones(max(self.index.max(initial=0), others.index.max(initial=0)) + 1, dtype=bool)
        is_new[self.index] = False
        return others.select(is_new[others.index])

    def inner_products(self, r: np.ndarray) -> np.ndarray:
        return r[self.index] * self.value

    def gram(self) -> np.ndarray:
        """Return <v_k, v_l> for all pairs."""
        is_shared: np.ndarray = self.index[:, None] == self.index
        return is_shared * np.outer(self.value, self.value)

    def combination(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        w = np.bincount(self.index, weights * self.value, n_features)
        return w.astype(np.float64, copy=False)  # of no atoms it counts in whole numbers

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"index": self.index, "value": self.value}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_features: int) -> AtomStack:
        index = take_indices(arrays, "atoms.index", n_features)
        return cls(index, take_floats(arrays, "atoms.value", index.size))


class VertexStack:
    """Vertices of any kind, stored as a list."""

    def __init__(self, vertices: list[Vertex] | None = None) -> None:
        self.vertices: list[Vertex] = [] if vertices is None else vertices

    def __len__(self) -> int:
        return len(self.vertices)

    def vertex(self, k: int) -> Vertex:
        return self.vertices[k]

    def append(self, v: Vertex) -> None:
        self.vertices.append(v)

    def remove(self, k: int) -> None:
        self.vertices[k] = self.vertices[-1]
        self.vertices.pop()

    def extend(self, vertices: Sequence[Vertex]) -> None:
        self.vertices += vertices

    def join(self, others: VertexStack) -> None:
        self.vertices += others.vertices

    def select(self, kept: np.ndarray) -> VertexStack:
        return VertexStack([v for v, is_kept in zip(self.vertices, kept, strict=True) if is_kept])

    def without(self, others: VertexStack, up_to_sign: bool) -> VertexStack:
        """Return those of the ``others`` that are not in this stack (with ``up_to_sign``, nor are their opposites)."""
        known = {v.key() for v in self.vertices}
        if up_to_sign:
            known |= {v.scaled(-1.0).key() for v in self.vertices}
        return others.select(np.array([v.key() not in known for v in others.vertices], dtype=bool))

    def inner_products(self, r: np.ndarray) -> np.ndarray:
        supports = (v.support() for v in self.vertices)
        return np.array([inner(values, r if indices is None else r[indices]) for indices, values in supports])

    def gram(self) -> np.ndarray:
        """Return <v_k, v_l> for all pairs."""
        if not self.vertices:
            return np.zeros((0, 0))
        supports = [v.support() for v in self.vertices]
        size = max(values.size if indices is None else int(indices.max(initial=-1)) + 1 for indices, values in supports)
        V = np.array([v.to_dense(size) for v in self.vertices])
        products: np.ndarray = V @ V.T
        return products

    def combination(self, weights: np.ndarray, n_features: int) -> np.ndarray:
        w = np.zeros(n_features)
        for weight, v in zip(weights, self.vertices, strict=True):
            indices, values = v.support()
            if indices is None:
                w += weight * values
            else:
                w[indices] += weight * values
        return w

    def to_arrays(self) -> dict[str, np.ndarray]:
        supports = [v.support() for v in self.vertices]
        arrays = {f"values{k}": values for k, (_, values) in enumerate(supports)}
        return arrays | {f"indices{k}": indices for k, (indices, _) in enumerate(supports) if indices is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_features: int) -> VertexStack:
        vertices, k = cls(), 0
        while f"atoms.values{k}" in arrays:
            if f"atoms.indices{k}" in arrays:
                indices = take_indices(arrays, f"atoms.indices{k}", n_features, distinct=True)
                vertices.append(SparseVertex(indices, take_floats(arrays, f"atoms.values{k}", indices.size)))
            else:
                vertices.append(DenseVertex(take_floats(arrays, f"atoms.values{k}", n_features)))
            k += 1
        return vertices
