"""DeviceChunk: consecutive samples on the GPU of a worker, and the passes over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.linalg.device.base import DeviceArray, Losses
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.formulas import parameters_of, source_of
from condgrad.linalg.device.matrices import DeviceMatrix
from condgrad.linalg.matrix import Matrix
from condgrad.losses import Loss
from condgrad.problems.rows.base import Found, Task
from condgrad.problems.rows.device import draw_at_rate, sweep_matrix
from condgrad.problems.rows.findings import Kept
from condgrad.storage.partitions import DevicePart, Partition


class DeviceChunk(NamedTuple):
    """The samples of a partition; ``shift`` is what is subtracted from each column."""

    first: int
    loss: Loss
    matrix: DeviceMatrix
    losses: Losses
    shift: np.ndarray | None

    @classmethod
    def of(cls, part: Partition, rows: DevicePart, first: int, loss: Loss, equal: float | None) -> DeviceChunk:
        """Return the samples of a partition, with their weights in the whole sum: all ``equal``, or its own."""
        matrix = rows.matrix
        if part.shift is not None and isinstance(matrix, DenseOnDevice):
            matrix = matrix.with_shift(part.shift)
        y, o = rows.sent("y", part.y), rows.sent("offset", part.offset)
        v, v0 = (rows.sent("weight", part.weight), 0.0) if equal is None else (None, equal)
        theta = matrix.device.to_device(parameters_of(loss))
        return cls(first, loss, matrix, Losses(source_of(type(loss)), theta, y, v, v0, o), part.shift)

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return self.matrix.shape[0]

    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task in one pass over the rows."""
        return sweep_matrix(self.matrix, self.losses, task, w)

    def keep(self, d: DeviceArray, rate: float) -> Kept:
        """Return rows that are drawn by their curvature at the given rate, in the memory of the host."""
        rows, c = draw_at_rate(self.matrix.device.xp, d, rate)
        return Kept((Matrix(self.matrix.fetched(rows), self.shift),), (self.matrix.device.to_host(c),))

    def gram(self, features: np.ndarray, d: DeviceArray, rows: np.ndarray | None) -> np.ndarray:
        """Return the second derivatives by some features, summed over some samples (None: all)."""
        chosen = None if rows is None else self.matrix.device.to_device(rows)
        return self.matrix.gram(features, np.ones(features.size), d, chosen)[0]
