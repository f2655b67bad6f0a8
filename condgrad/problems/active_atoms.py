"""ActiveAtoms: an iterate as a convex combination of single-feature atoms, for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, fill_in
from condgrad.constraints import Atom
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.saved import ROUNDING_OF_WEIGHTS
from condgrad.problems.combination import Combination


def combination(cls: type) -> type:
    """Make a NamedTuple class a :class:`~condgrad.problems.combination.Combination` for kernels."""
    return compiled(fill_in(cls, Combination))


@combination
class ActiveAtoms(NamedTuple):
    """Atoms with positive weights that sum to one, in arrays with room for every vertex of the set.

    :class:`~condgrad.problems.combination.Combination` updates the weights.

    ``count[0]`` atoms are stored; ``place[id]`` is the place of the vertex with that id, or -1 if it is not stored.
    """

    index: np.ndarray  # type: ignore[assignment]
    value: np.ndarray
    weights: np.ndarray
    count: np.ndarray  # type: ignore[assignment]
    place: np.ndarray

    def size(self):
        """Return the number of atoms."""
        return self.count[0]

    def atom(self, k):
        """Return the atom at place ``k``."""
        return Atom(self.index[k], self.value[k])

    def id_of(self, s):
        """Return the id of a vertex. A feature has two ids, the second one for a positive value."""
        return 2 * s.index + (1 if s.value > 0.0 else 0)

    def place_of(self, s):
        """Return the place of the vertex ``s``, or -1 if it is not stored."""
        return self.place[self.id_of(s)]

    def worst(self, r):
        """Return the place of the atom with the largest <r, v>."""
        best, where_best = -np.inf, 0
        for k in range(self.count[0]):
            product = self.value[k] * r.at(self.index[k])
            if product > best:
                best, where_best = product, k
        return where_best

    def add(self, s, weight):
        """Add ``weight`` to the weight of the vertex s, which may be new."""
        k = self.place_of(s)
        if k < 0:
            k = self.count[0]
            self.count[0] += 1
            self.place[self.id_of(s)] = k
            self.index[k] = s.index
            self.value[k] = s.value
            self.weights[k] = 0.0
        self.weights[k] += weight

    def drop(self, k):
        """Remove the atom at place ``k``; the last atom moves to its place."""
        last = self.count[0] - 1
        self.place[self.id_of(self.atom(k))] = -1
        if k != last:
            self.index[k] = self.index[last]
            self.value[k] = self.value[last]
            self.weights[k] = self.weights[last]
            self.place[self.id_of(self.atom(k))] = k
        self.count[0] = last

    def scale(self, factor):
        """Multiply all weights by ``factor``."""
        for k in range(self.count[0]):
            self.weights[k] *= factor

    def reset(self, s):
        """Make ``s`` the only atom."""
        for k in range(self.count[0]):
            self.place[self.id_of(self.atom(k))] = -1
        self.count[0] = 0
        self.add(s, 1.0)

    def combination(self, n_features):
        """Return w = sum_k weight_k v_k, after rescaling the weights to sum one."""
        held = slice(self.count[0])
        self.weights[held] /= self.weights[held].sum()
        w = np.zeros(n_features)
        np.add.at(w, self.index[held], self.weights[held] * self.value[held])
        return w

    def is_sound(self):
        """Return whether the atoms are different ones of existing features, each at its place."""
        room, count = self.place.shape[0], self.count[0]
        if not 0 < count <= room:
            return False
        index, value, weights = self.index[:count], self.value[:count], self.weights[:count]
        if index.min() < 0 or index.max() >= room // 2 or weights.min() < 0.0:
            return False
        if abs(weights.sum() - 1.0) > ROUNDING_OF_WEIGHTS:
            return False
        place = np.full(room, -1)
        place[2 * index + (value > 0.0)] = np.arange(count)
        return np.count_nonzero(place >= 0) == count and bool((place == self.place).all())

    def reach(self, norms):
        """Return sum_k weight_k ||X v_k||, an upper bound of ||X w||, from the norms of the columns."""
        total = 0.0
        for k in range(self.count[0]):
            total += self.weights[k] * abs(self.value[k]) * norms[self.index[k]]
        return total


def active_atoms(terms: list[tuple[float, Vertex]], n_features: int) -> ActiveAtoms:
    """Return the combination of the (weight, atom) pairs ``terms``."""
    room = 2 * n_features
    atoms = ActiveAtoms(
        np.zeros(room, dtype=np.int64), np.zeros(room), np.zeros(room), np.zeros(1, dtype=np.int64),
        np.full(room, -1, dtype=np.int64),
    )  # fmt: skip
    for weight, v in terms:
        atoms.add(v, weight)
    return atoms
