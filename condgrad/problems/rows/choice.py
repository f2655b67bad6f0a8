"""Which rows the data of a user become: in memory, on disk, or with the workers of a cluster."""

from __future__ import annotations

from typing import cast

from numpy.typing import ArrayLike

from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.matrix import Matrix
from condgrad.losses import Loss
from condgrad.problems.rows.base import Rows
from condgrad.problems.rows.cluster import PartitionedRows
from condgrad.problems.rows.disk import DiskRows
from condgrad.problems.rows.memory import MemoryRows
from condgrad.problems.samples import Samples
from condgrad.storage.cluster_rows import ClusterRows, is_dask, of_dask
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.stored_rows import StoredRows


def make_rows(
    X: Data | OutsideRows, y: ArrayLike | None, loss: Loss, sample_weight: ArrayLike | None, has_intercept: bool
) -> Rows:
    """Return the rows of X with their targets and weights, checked, and centred for an intercept."""
    if is_dask(X):
        X, y, sample_weight = of_dask(X, y, sample_weight, None), None, None
    if isinstance(X, StoredRows):
        return DiskRows(X, _samples_of(X, y, loss, sample_weight), has_intercept)
    if isinstance(X, ClusterRows):
        return PartitionedRows(X, _samples_of(X, y, loss, sample_weight), has_intercept)
    matrix = Matrix(convert.as_data(cast("Data", X)))
    samples = _samples(loss, y, sample_weight, matrix.shape[0])
    if has_intercept:
        matrix = matrix.centred(samples.weight)  # the intercept absorbs it; large means then cost no digits
    return MemoryRows(matrix, samples)


def _samples(loss: Loss, y: ArrayLike | None, sample_weight: ArrayLike | None, n_samples: int) -> Samples:
    if y is None:
        raise TypeError("y is missing: Problem requires one target per sample.")
    return Samples(loss, convert.as_targets(y, n_samples), convert.as_weights(sample_weight, n_samples))


def _samples_of(stored: OutsideRows, y: ArrayLike | None, loss: Loss, sample_weight: ArrayLike | None) -> Samples:
    """Return the samples of rows outside of memory: their own targets and weights unless others are given."""
    y = stored.y if y is None else y
    if y is None:
        raise ValueError(f"y is missing: {stored!r} has no targets; pass y.")
    return _samples(loss, y, stored.weight if sample_weight is None else sample_weight, stored.shape[0])
