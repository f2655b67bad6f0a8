"""ScoredOnDevice: X on a device, for problems whose samples have several linear predictions (scores)."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from condgrad.linalg.centring import centring
from condgrad.linalg.device.base import DeviceArray, weights_alone
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.digest import digest
from condgrad.linalg.device.matrices import DeviceMatrix

_TILE = 2**28  # bytes of the rows that are converted to float64 at a time


class ScoredOnDevice:
    """What :class:`~condgrad.linalg.matrix.Matrix` offers to such problems, with scores that stay on the device.

    Scores of dense rows are products with matrices in float64, so that X is read once for all outputs. Sparse rows are
    read once for each output, by the kernels of one output.

    Parameters
    ----------
    matrix : DeviceMatrix
    rows : array, optional
        The places of the rows that are meant; by default all.
    """

    def __init__(self, matrix: DeviceMatrix, rows: DeviceArray | None = None) -> None:
        self.matrix, self.device, self._rows = matrix, matrix.device, rows
        self.shape = matrix.shape if rows is None else (int(rows.size), matrix.shape[1])
        self.n_stored = matrix.n_stored

    @functools.cached_property
    def shift(self) -> np.ndarray | None:
        """What is subtracted from each row, in the memory of the host."""
        there = self.matrix.shift if isinstance(self.matrix, DenseOnDevice) else None
        return None if there is None else self.device.to_host(there)

    def centred(self, weight: np.ndarray) -> ScoredOnDevice:
        """Return the same data with a number subtracted from each column whose mean is far from zero."""
        if not isinstance(self.matrix, DenseOnDevice):
            return self
        shift = centring(self.matrix.combine(self.device.to_device(weight)), self.column_squares(weight))
        return self if shift is None else ScoredOnDevice(self.matrix.with_shift(shift))

    def dot_each(self, W: np.ndarray) -> DeviceArray:
        """Return X w_c for every row w_c of W, an array on the device of shape (k, n)."""
        if self._rows is None and not isinstance(self.matrix, DenseOnDevice):
            return self.device.xp.stack([self.matrix.predict(w) for w in np.ascontiguousarray(W)])
        S, there = self.device.empty(W.shape[0], self.shape[0]), self.device.to_device(np.ascontiguousarray(W))
        for part, X in self._tiles():
            S[:, part] = there @ X.T
        return S

    def transpose_dot_each(self, A: DeviceArray) -> np.ndarray:
        """Return A X, for an array A on the device of shape (k, n)."""
        if self._rows is None and not isinstance(self.matrix, DenseOnDevice):
            return np.array([self.matrix.combine(a) for a in self.device.xp.ascontiguousarray(A)])
        R = self.device.zeros(A.shape[0], self.shape[1])
        for part, X in self._tiles():
            R += A[:, part] @ X
        return self.device.to_host(R)

    def _tiles(self) -> Iterator[tuple[slice, DeviceArray]]:
        n, d = self.shape
        height = max(1, _TILE // (8 * d))
        for top in range(0, n, height):
            part = slice(top, min(top + height, n))
            yield part, self.matrix.chosen(part if self._rows is None else self._rows[part], None)

    def column_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return sum_i weight_i x_ij^2 for every column."""
        return self.matrix.measure(weights_alone(self.device.to_device(weight)))[0]

    def largest_entry(self) -> float:
        """Return the largest absolute value of an entry."""
        return self.matrix.measure(weights_alone(self.device.zeros(self.shape[0])))[1]

    def thinned(self, every: int) -> ScoredOnDevice:
        """Return one of every ``every`` rows as a new matrix."""
        return ScoredOnDevice(self.matrix.thinned(every))

    def chosen(self, rows: np.ndarray) -> ScoredOnDevice:
        """Return chosen rows, for scores alone; their entries are gathered when they are used."""
        return ScoredOnDevice(self.matrix, self.device.to_device(rows))

    def block(self, rows: np.ndarray, columns: np.ndarray) -> DeviceArray:
        """Return the chosen rows and columns as a dense array in float64, on the device."""
        return self.matrix.chosen(self.device.to_device(rows), columns)

    def definition(self) -> tuple[object, ...]:
        """Return the shape and a digest of the data."""
        return self.shape, digest(self.device, self.matrix.arrays)
