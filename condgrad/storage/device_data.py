"""DeviceData: X in the memory of a GPU, or streamed to it, as estimators take it in place of X."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.linalg.device.arrays import device_by_name, matrix_on_device, rows_for
from condgrad.linalg.device.base import Device
from condgrad.linalg.device.failures import failures_explained
from condgrad.linalg.device.matrices import DeviceMatrix
from condgrad.linalg.device.streamed import StreamedMatrix
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.spread import spread_rows
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.stored_rows import StoredRows


class DeviceData(OutsideRows):
    """The rows of a matrix on a device; targets and weights are given beside them."""

    n_chunks = 1
    y = weight = offset = feature_names = None
    n_reads = 0.0

    def __init__(self, matrix: DeviceMatrix | StreamedMatrix) -> None:
        self.matrix, self.shape = matrix, matrix.shape

    @classmethod
    def of(cls, X: Any, device: Device | None = None) -> DeviceData:
        """Return X on a device, by default on the current GPU, or streamed to it if it cannot hold X."""
        device = device_by_name("cuda") if device is None else device
        with failures_explained():
            return cls(rows_for(device, X) if isinstance(X, StoredRows) else matrix_on_device(device, X))

    def __repr__(self) -> str:
        n, d = self.shape
        verb = "streamed to" if isinstance(self.matrix, StreamedMatrix) else "on"
        return f"<{n:,} rows of {d:,} features {verb} {self.matrix.device.name}>"

    def sample(self, share: float) -> tuple[Matrix, np.ndarray]:
        """Return about this share of the rows in memory, evenly spread, and their places among all."""
        if isinstance(self.matrix, StreamedMatrix):
            return self.matrix.source.sample(share)
        every = max(1, int(1.0 / share))
        places = spread_rows(self.shape[0], every)
        return Matrix(self.matrix.fetched(self.matrix.device.to_device(places))), places

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W: an array of shape (k, n_samples)."""
        device = self.matrix.device
        with failures_explained():
            return np.array([device.to_host(self.matrix.predict(np.ascontiguousarray(w))) for w in W])
