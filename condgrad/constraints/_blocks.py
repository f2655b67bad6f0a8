"""Blocks of features: a vertex is nonzero on one block only, and a block has one vertex, a pair or a sphere of them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import compiled
from condgrad.constraints._sphere import stretch
from condgrad.constraints.vertices import SparseVertex


class Blocks(Protocol):
    """The methods of every division of the features into blocks."""

    def size(self) -> int:
        """Return the number of blocks."""

    def first(self, g: int) -> int:
        """Return the place of the first member of block ``g``; the block ends before ``first(g + 1)``."""

    def member(self, k: int) -> int:
        """Return the feature at place ``k``."""


@compiled
class SingleFeatures(NamedTuple):
    """Every feature is a block of its own."""

    count: int  # type: ignore[assignment]

    def size(self):
        """Return the number of blocks."""
        return self.count

    def first(self, g):
        """Return the place of the first member of block ``g``; the block ends before ``first(g + 1)``."""
        return g

    def member(self, k):
        """Return the feature at place ``k``."""
        return k


@compiled
class FeatureGroups(NamedTuple):
    """Block g is members[offsets[g]:offsets[g + 1]]."""

    members: np.ndarray
    offsets: np.ndarray

    def size(self):
        """Return the number of blocks."""
        return self.offsets.shape[0] - 1

    def first(self, g):
        """Return the place of the first member of block ``g``; the block ends before ``first(g + 1)``."""
        return self.offsets[g]

    def member(self, k):
        """Return the feature at place ``k``."""
        return self.members[k]

    def opposite(self, r, g, radius):
        """Return -radius r_g / ||r_g||_2, the point of the sphere over block ``g`` with the smallest <r, s>."""
        first, size = self.offsets[g], self.offsets[g + 1] - self.offsets[g]
        indices = np.empty(size, np.int64)
        values = np.empty(size)
        for k in range(size):
            indices[k] = self.members[first + k]
            values[k] = r.at(indices[k])
        stretch(values, -radius)
        return SparseVertex(indices, values)
