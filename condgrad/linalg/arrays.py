"""Slices and vectors for ordinary Python: the same methods, each a compiled kernel or a numpy call.

A kernel cannot call an oracle that is written in Python (a linear program, a user's function). The solver's step then
runs interpreted over these classes, and its heavy parts still run compiled.
"""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.slices import Sink, Slices
from condgrad.linalg.vectors import DenseVector


class ArraySlices:
    """Compiled slices, called from Python."""

    def __init__(self, slices: Slices) -> None:
        self.slices = slices

    def dot_slice(self, k: int, v: np.ndarray) -> float:
        """Return ``<slice k, v>``."""
        return _dot_slice(self.slices, k, v)

    def add_slice(self, k: int, c: float, out: Sink | ArrayVector) -> None:
        """Add ``c`` times slice ``k`` to ``out``, an :class:`ArrayVector` or a compiled vector."""
        _add_slice(self.slices, k, c, out.compiled if isinstance(out, ArrayVector) else out)

    def add_outer(self, k: int, c: float, H: np.ndarray) -> None:
        """Add ``c`` times the outer product of slice ``k`` with itself to ``H``."""
        _add_outer(self.slices, k, c, H)

    def add_weighted(self, k: int, weights: np.ndarray, c: float, other: ArraySlices, out: ArrayVector) -> None:
        """Add ``c * sum_i weights_i x_i y_i`` to ``out``: x is slice ``k``, y_i are the slices of ``other``."""
        _add_weighted(self.slices, k, weights, c, other.slices, out.compiled)

    def entry(self, k: int, j: int) -> float:
        """Return entry ``j`` of slice ``k``."""
        return float(self.slices.entry(k, j))  # a float32 times a Python float would stay a float32


class ArrayVector:
    """A dense vector, called from Python."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.compiled = DenseVector(values)

    def size(self) -> int:
        """Return the number of entries."""
        return self.values.size

    def at(self, j: int) -> float:
        """Return entry ``j``."""
        return self.values[j]

    def add_at(self, j: int, delta: float) -> None:
        """Add ``delta`` to entry ``j``."""
        self.values[j] += delta

    def add_array(self, c: float, v: np.ndarray) -> None:
        """Add ``c`` times the array ``v``."""
        self.values += c * v

    def add_row(self, c: float, H: np.ndarray, k: int) -> None:
        """Add ``c`` times row ``k`` of the array ``H``."""
        self.values += c * H[k]

    def shrink(self, factor: float) -> None:
        """Multiply the vector by ``factor``."""
        self.values *= factor

    def set_to(self, v: np.ndarray) -> None:
        """Set all entries to those of ``v``."""
        self.values[:] = v

    def inner(self, v: np.ndarray) -> float:
        """Return the inner product with the array ``v``."""
        return float(self.values @ v)

    def dot_slice(self, X: Slices, k: int) -> float:
        """Return the inner product with slice ``k`` of ``X``."""
        return X.dot_slice(k, self.values)

    def argmax_abs(self) -> int:
        """Return the first index of the largest absolute value."""
        return int(np.abs(self.values).argmax())

    def argmin(self) -> int:
        """Return the first index of the smallest value."""
        return int(self.values.argmin())

    def argmax_weighted(self, weights: np.ndarray) -> int:
        """Return the first index of the largest ``|v_j| / weights_j``."""
        return int((np.abs(self.values) / weights).argmax())

    def best_group(self, members: np.ndarray, offsets: np.ndarray) -> int:
        """Return the first group with the largest sum of squares."""
        return int(np.add.reduceat(self.values[members] ** 2, offsets[:-1]).argmax())

    def to_array(self) -> np.ndarray:
        """Return the entries as a new array."""
        return self.values.copy()


@kernel
def _dot_slice(slices, k, v):
    return slices.dot_slice(k, v)


@kernel
def _add_slice(slices, k, c, out):
    slices.add_slice(k, c, out)


@kernel
def _add_outer(slices, k, c, H):
    slices.add_outer(k, c, H)


@kernel
def _add_weighted(slices, k, weights, c, other, out):
    slices.add_weighted(k, weights, c, other, out)
