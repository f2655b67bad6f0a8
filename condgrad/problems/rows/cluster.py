"""PartitionedRows: a linear problem whose rows are with the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from condgrad.linalg.matrix import Matrix, centring
from condgrad.losses import Loss
from condgrad.problems.offset import as_offset
from condgrad.problems.rows.base import Chunk
from condgrad.problems.rows.chunked import ChunkedRows, ChunkTask
from condgrad.problems.samples import Samples
from condgrad.storage.cluster_rows import ClusterRows, Partition


class SparseVector(NamedTuple):
    """The nonzero entries of w, which are few: what travels to the workers."""

    places: np.ndarray
    values: np.ndarray
    size: int

    def to_dense(self) -> np.ndarray:
        """Return w."""
        w = np.zeros(self.size)
        w[self.places] = self.values
        return w


class PartitionedRows(ChunkedRows):
    """The rows of the partitions of a cluster; a pass sends w as a sparse vector, and receives one sum."""

    shares_sums = False

    def __init__(self, rows: ClusterRows, samples: Samples, has_intercept: bool) -> None:
        self.samples, self._has_intercept = samples, has_intercept
        self.shift: np.ndarray | None = None
        if has_intercept and rows.kind == "dense":
            self.shift = centring(*(rows.moments / rows.shape[0]))
        self.n_samples, self.n_features = rows.shape
        self.n_bytes = rows.n_bytes
        weight = samples.weight
        self._equal = float(weight[0]) if (weight == weight[0]).all() else None  # the weight of all, if they are equal
        # Targets, weights and offsets that the workers do not have go to them once.
        offset = samples.offset.to_array()
        self.rows = rows.with_samples(
            None if samples.y is rows.y else samples.y,
            None if self._equal is not None else weight,
            None if offset is rows.offset else offset,
        )

    @property
    def n_reads(self) -> float:
        """How many passes over all partitions have been made."""
        return self.rows.n_reads

    def over_chunks(self, task: ChunkTask, w: np.ndarray) -> Iterable[Any]:
        """Return the sum of the results of all partitions, as the only result."""
        index = np.flatnonzero(w)
        sparse = SparseVector(index, w[index], w.size)
        settings = (self.samples.loss, self._equal, self.shift, sparse)
        return [self.rows.add_up(lambda place: (_run, task.at(place), *settings))]

    def _heads(self, share: float) -> tuple[Matrix, np.ndarray]:
        matrix, places = self.rows.sample(share)
        return Matrix(matrix.X, self.shift), places

    def with_targets(self, y: np.ndarray) -> PartitionedRows:
        """Return the same rows with other targets."""
        return PartitionedRows(self.rows, self.samples._replace(y=y), self._has_intercept)

    def definition(self) -> tuple[object, ...]:
        """Return checksums of all partitions, loss, targets and weights."""
        return (*self.rows.definition(), self.samples)


def _run(
    part: Partition,
    first: int,
    task: ChunkTask,
    loss: Loss,
    equal: float | None,
    shift: np.ndarray | None,
    w: SparseVector,
) -> Any:
    """Run a task on a partition, at its worker."""
    assert part.y is not None
    weight = part.weight if equal is None else np.full(part.y.size, equal)
    assert weight is not None
    samples = Samples(loss, part.y, weight, as_offset(part.offset, part.y.size))
    return task(Chunk(first, Matrix(part.X, shift), samples), w.to_dense())
