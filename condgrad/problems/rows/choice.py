"""Which rows the data of a user become: in memory, on disk, or with the workers of a cluster."""

from __future__ import annotations

from numpy.typing import ArrayLike

from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.matrix import Matrix
from condgrad.losses import Loss
from condgrad.problems.offset import as_offset
from condgrad.problems.rows.base import Rows
from condgrad.problems.rows.cluster import PartitionedRows
from condgrad.problems.rows.disk import DiskRows
from condgrad.problems.rows.memory import MemoryRows
from condgrad.problems.samples import Samples
from condgrad.storage.cluster_rows import ClusterRows, is_dask, of_dask
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.stored_rows import StoredRows


def make_rows(
    X: Data | OutsideRows,
    y: ArrayLike | None,
    loss: Loss,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    has_intercept: bool,
) -> Rows:
    """Return the rows of X with their targets, weights and offsets, checked, and centred for an intercept."""
    if is_dask(X):
        X, y, sample_weight, offset = of_dask(X, y, sample_weight, offset, None), None, None, None
    if isinstance(X, OutsideRows):
        samples = _samples_of(X, y, loss, sample_weight, offset)
        return _outside(X, samples, has_intercept)
    if y is None:
        raise TypeError("y is missing: Problem requires one target per sample.")
    matrix = Matrix(convert.as_data(X))
    samples = _samples(loss, y, sample_weight, offset, matrix.shape[0])
    if has_intercept:
        matrix = matrix.centred(samples.weight)  # the intercept absorbs it; large means then cost no digits
    return MemoryRows(matrix, samples)


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
