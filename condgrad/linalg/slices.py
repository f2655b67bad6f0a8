"""Slices: the rows of X, or its columns as the rows of X'.

Solvers need two operations on data, whatever the storage: the dot product of a slice with a vector, and adding a
multiple of a slice to a vector. Here are the contracts; the classes are in :mod:`~condgrad.linalg.dense_slices`,
:mod:`~condgrad.linalg.sparse_slices` and others.
"""

from typing import Protocol

import numpy as np

from condgrad.compiled import compiled, fill_in


class Sink(Protocol):
    """A vector to which slices can be added."""

    def add_at(self, j: int, delta: float) -> None:
        """Add ``delta`` to entry ``j``."""


class SliceRanges(Protocol):
    """The methods of a pass: they use consecutive slices, in the order in which their storage is read fastest."""

    def dot_slices(self, first: int, v: np.ndarray, out: np.ndarray) -> None:
        """Set ``out`` to the products of ``v`` with the slices ``first``, ``first`` + 1, ...."""

    def add_slices(self, first: int, c: np.ndarray, out: Sink) -> None:
        """Add the slices from ``first`` on, each times its entry of ``c``, to the vector ``out``."""


class Slices(Protocol):
    """The methods of every kind of slices that can be used one at a time."""

    def dot_slice(self, k: int, v: np.ndarray) -> float:
        """Return ``<slice k, v>`` for an array ``v``, accumulated in float64."""

    def add_slice(self, k: int, c: float, out: Sink) -> None:
        """Add ``c`` times slice ``k`` to the vector ``out``."""

    def add_outer(self, k: int, c: float, H: np.ndarray) -> None:
        """Add ``c`` times the outer product of slice ``k`` with itself to the array ``H``."""

    def entry(self, k: int, j: int) -> float:
        """Return entry ``j`` of slice ``k``."""


class OneByOne:
    """The methods of a pass for slices that are used one after the other."""

    def dot_slice(self, k, v):
        """Return ``<slice k, v>`` for an array ``v``, accumulated in float64."""
        raise NotImplementedError

    def add_slice(self, k, c, out):
        """Add ``c`` times slice ``k`` to the vector ``out``."""
        raise NotImplementedError

    def dot_slices(self, first, v, out):
        """Set ``out`` to the products of ``v`` with the slices ``first``, ``first`` + 1, ...."""
        start = np.uint64(first)
        for k in range(np.uint64(out.shape[0])):
            out[k] = self.dot_slice(start + k, v)

    def add_slices(self, first, c, out):
        """Add the slices from ``first`` on, each times its entry of ``c``, to the vector ``out``."""
        start = np.uint64(first)
        for k in range(np.uint64(c.shape[0])):
            if c[k] != 0.0:
                self.add_slice(start + k, c[k], out)

    def dot_some(self, chosen, start, stop, v, out):
        """Set ``out[q]`` to the product of ``v`` with slice ``chosen[q]``, for q from ``start`` to ``stop`` - 1."""
        for q in range(start, stop):
            out[q] = self.dot_slice(chosen[q], v)

    def add_some(self, chosen, start, stop, c, scale, out):
        """Add slice ``k = chosen[q]``, times ``c[q]`` and ``scale[k]``, to the vector ``out``, for the same q."""
        for q in range(start, stop):
            if c[q] != 0.0:
                self.add_slice(chosen[q], c[q] * scale[chosen[q]], out)


def slices_one_by_one(cls: type) -> type:
    """Make a NamedTuple class with ``dot_slice`` and ``add_slice`` a class of slices that passes can use."""
    return compiled(fill_in(cls, OneByOne))
