"""Scaled: a vector times a number, so that shrinking all of it is O(1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector

_FACTOR, _RECIPROCAL = 0, 1  # places in ``scale``; a checkpoint holds the numbers in this order
_SMALLEST = 1e-100  # smallest factor, its reciprocal the largest: beyond, the factor is multiplied into the vector


@compiled
class Scaled(NamedTuple):
    """A factor times ``vector``; ``scale`` holds the factor and its reciprocal, so that adding needs no division."""

    vector: Vector
    scale: np.ndarray

    def size(self):
        """Return the number of entries."""
        return self.vector.size()

    def at(self, j):
        """Return entry ``j``."""
        return self.scale[_FACTOR] * self.vector.at(j)

    def add_at(self, j, delta):
        """Add ``delta`` to entry ``j``."""
        self.vector.add_at(j, delta * self.scale[_RECIPROCAL])

    def add_array(self, c, v):
        """Add ``c`` times the array ``v``."""
        self.vector.add_array(c * self.scale[_RECIPROCAL], v)

    def shrink(self, factor):
        """Multiply the vector by ``factor`` >= 0."""
        scale = factor * self.scale[_FACTOR]
        if scale < _SMALLEST or scale > 1.0 / _SMALLEST:
            self.vector.shrink(scale)
            scale = 1.0
        self.scale[_FACTOR] = scale
        self.scale[_RECIPROCAL] = 1.0 / scale

    def inner(self, v):
        """Return the inner product with the array ``v``."""
        return self.scale[_FACTOR] * self.vector.inner(v)

    def dot_slice(self, X, k):
        """Return the inner product with slice ``k`` of ``X``."""
        return self.scale[_FACTOR] * self.vector.dot_slice(X, k)

    def argmax_abs(self):
        """Return the first index of the largest absolute value."""
        return self.vector.argmax_abs()

    def argmin(self):
        """Return the first index of the smallest value."""
        return self.vector.argmin()

    def argmax_weighted(self, weights):
        """Return the first index of the largest ``|v_j| / weights_j``."""
        return self.vector.argmax_weighted(weights)

    def best_group(self, members, offsets):
        """Return the first group with the largest sum of squares."""
        return self.vector.best_group(members, offsets)

    def to_array(self):
        """Return the entries as a new array."""
        return self.scale[_FACTOR] * self.vector.to_array()

    def set_to(self, v):
        """Set all entries to those of ``v``."""
        self.vector.set_to(v)
        self.scale[:] = 1.0


def scaled(vector: Vector) -> Scaled:
    """Return ``1 * vector``."""
    return Scaled(vector, np.ones(2))
