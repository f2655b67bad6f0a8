"""Which rows the data of a user become: in memory, on disk, on a device, or with the workers of a cluster."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from condgrad.linalg import convert
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import (
    device_by_name,
    is_on_device,
    matrix_on_device,
    rows_for,
    vector_on_device,
    weights_on_device,
)
from condgrad.linalg.device.base import Device
from condgrad.linalg.device.failures import failures_explained
from condgrad.linalg.device.streamed import StreamedMatrix
from condgrad.losses import Loss
from condgrad.problems.offset import as_offset
from condgrad.problems.rows.base import Rows
from condgrad.problems.rows.cluster import PartitionedRows
from condgrad.problems.rows.device import DeviceRows, RowsOnDevice
from condgrad.problems.rows.device_samples import DeviceSamples
from condgrad.problems.rows.disk import DiskRows
from condgrad.problems.rows.memory import MemoryRows
from condgrad.problems.rows.streamed import StreamedRows
from condgrad.problems.rows.worker_samples import WorkerSamples
from condgrad.problems.samples import Samples
from condgrad.storage.cluster_rows import ClusterRows, is_dask, of_dask, on_devices
from condgrad.storage.device_data import DeviceData
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.stored_rows import StoredRows

_MANY = 2**24  # number of samples of a cluster from which on their targets and weights stay there


def make_rows(
    X: Data | OutsideRows,
    y: ArrayLike | None,
    loss: Loss,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    has_intercept: bool,
    device: str | None = None,
) -> Rows:
    """Return the rows of X with their targets, weights and offsets, checked, and centred for an intercept."""
    if is_dask(X):
        X, y, sample_weight, offset = of_dask(X, y, sample_weight, offset, None), None, None, None
    if isinstance(X, ClusterRows):
        X = X if device is None else on_devices(X, device)
    elif device is not None or is_on_device(X) or isinstance(X, DeviceData):
        there = X.matrix.device if isinstance(X, DeviceData) else device_by_name(device or "cuda")
        with failures_explained():
            return rows_on_device(X, y, loss, sample_weight, has_intercept, there, offset)
    is_given = any(each is not None for each in (y, sample_weight, offset))
    if isinstance(X, ClusterRows) and X.shape[0] >= _MANY and not is_given:
        return PartitionedRows(X, WorkerSamples(X, loss), has_intercept)
    if isinstance(X, OutsideRows):
        samples = _samples_of(X, y, loss, sample_weight, offset)
        return _outside(X, samples, has_intercept)
    if y is None:
        raise TypeError("y is missing: Problem requires one target per sample.")
    matrix = matrix_of(X)
    samples = _samples(loss, y, sample_weight, offset, matrix.shape[0])
    if has_intercept:
        matrix = matrix.centred(samples.weight)  # the intercept absorbs it; large means then cost no digits
    return MemoryRows(matrix, samples)


def rows_on_device(
    X: Any,
    y: ArrayLike | None,
    loss: Loss,
    weight: ArrayLike | None,
    has_intercept: bool,
    device: Device,
    offset: ArrayLike | None = None,
) -> RowsOnDevice:
    """Return the rows of X on a device, or streamed to it, with their targets, weights and offsets, checked."""
    if isinstance(X, StoredRows):
        matrix = rows_for(device, X)
        y, weight = X.y if y is None else y, X.weight if weight is None else weight
        offset = X.offset if offset is None else offset
    elif isinstance(X, DeviceData):
        matrix = X.matrix
    else:
        matrix = matrix_on_device(device, X)
    if y is None:
        raise TypeError("y is missing: Problem requires one target per sample.")
    n_samples = matrix.shape[0]
    targets, weights = vector_on_device(device, y, "y", n_samples), weights_on_device(device, weight, n_samples)
    known = None if offset is None else vector_on_device(device, offset, "offset", n_samples)
    samples = DeviceSamples.of(device, loss, targets, weights, known)
    if isinstance(matrix, StreamedMatrix):
        return StreamedRows(matrix, samples, has_intercept)
    return DeviceRows(matrix, samples, has_intercept)


def _outside(X: OutsideRows, samples: Samples, has_intercept: bool) -> Rows:
    if isinstance(X, ClusterRows):
        return PartitionedRows(X, samples, has_intercept)
    assert isinstance(X, StoredRows)
    return DiskRows(X, samples, has_intercept)


def _samples(
    loss: Loss, y: ArrayLike, sample_weight: ArrayLike | None, offset: ArrayLike | None, n_samples: int
) -> Samples:
    targets, weight = convert.as_targets(y, n_samples), convert.as_weights(sample_weight, n_samples)
    return Samples(loss, targets, weight, as_offset(offset, n_samples))


def _samples_of(
    X: OutsideRows, y: ArrayLike | None, loss: Loss, sample_weight: ArrayLike | None, offset: ArrayLike | None
) -> Samples:
    """Return the samples of rows outside of memory: their own targets, weights and offsets unless others are given."""
    y = X.y if y is None else y
    if y is None:
        raise ValueError(f"y is missing: {X!r} has no targets; pass y.")
    weight = X.weight if sample_weight is None else sample_weight
    return _samples(loss, y, weight, X.offset if offset is None else offset, X.shape[0])
