"""PartitionedRows: a linear problem whose rows are with the workers of a Dask cluster."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from condgrad.linalg import convert
from condgrad.linalg.centring import centring
from condgrad.linalg.device.failures import failures_explained
from condgrad.linalg.matrix import Matrix
from condgrad.losses import Loss
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.offset import as_offset
from condgrad.problems.rows.base import AnyPass, Expand, Measure, Predict
from condgrad.problems.rows.chunked import ChunkedRows, ChunkTask, ExpandAndKeep, Sweep, SweptChunk
from condgrad.problems.rows.device_chunk import DeviceChunk
from condgrad.problems.rows.findings import Joined, Measures
from condgrad.problems.rows.memory import ChunkInMemory, MemoryRows
from condgrad.problems.rows.parts import CurvatureSums, OutsidePass, PartOfPass, curvature_sums, kept_rows
from condgrad.problems.rows.worker_samples import WorkerPredictions, WorkerSamples, samples_of
from condgrad.problems.samples import Samples
from condgrad.storage.cluster_rows import ClusterRows
from condgrad.storage.partitions import DevicePart, HostPart, Partition

_WIDE = 2**17  # number of features from which on gradients stay with the workers: a megabyte


class SparseVector(NamedTuple):
    """The nonzero entries of w, which are few: what travels to the workers."""

    places: np.ndarray
    values: np.ndarray
    size: int

    @classmethod
    def of(cls, w: np.ndarray) -> SparseVector:
        """Return the nonzero entries of an array."""
        places = np.flatnonzero(w)
        return cls(places, w[places], w.size)

    def to_dense(self) -> np.ndarray:
        """Return w."""
        w = np.zeros(self.size)
        w[self.places] = self.values
        return w


class PartitionedRows(ChunkedRows):
    """The rows of the partitions of a cluster; a pass sends w as a sparse vector.

    What it finds stays with the workers (:mod:`condgrad.problems.rows.parts`): sums come here and, unless it has many
    features, the gradient.
    """

    shares_sums = False

    samples: Samples | WorkerSamples  # type: ignore[assignment]

    def __init__(self, rows: ClusterRows, samples: Samples | WorkerSamples, has_intercept: bool) -> None:
        self.samples, self._has_intercept = samples, has_intercept
        self.shift: np.ndarray | None = None
        if has_intercept and rows.kind == "dense":
            self.shift = centring(*(rows.moments / rows.shape[0]))
        self.n_samples, self.n_features = rows.shape
        self.n_bytes = rows.n_bytes
        if isinstance(samples, WorkerSamples):
            self._equal, self.rows = samples.equal, samples.rows.shifted(self.shift)
            return
        weight = samples.weight
        self._equal = float(weight[0]) if (weight == weight[0]).all() else None  # the weight of all, if they are equal
        # Targets, weights, offsets and shifts that the workers do not have go to them once.
        offset = samples.offset.to_array()
        self.rows = rows.with_samples(
            None if samples.y is rows.y else samples.y,
            None if self._equal is not None else weight,
            None if offset is rows.offset else offset,
        ).shifted(self.shift)

    @property
    def n_reads(self) -> float:
        """How many passes over all partitions have been made."""
        return self.rows.n_reads

    @property
    def _is_wide(self) -> bool:
        """Whether a gradient is so large that it stays with the workers."""
        return self.n_features >= _WIDE

    def over_chunks(self, task: ChunkTask, w: np.ndarray) -> Iterable[Any]:
        """Return the sum of the results of all partitions, as the only result."""
        settings = (self.samples.loss, self._equal, SparseVector.of(w))
        return [self.rows.add_up(lambda place: (_run, task.at(place), *settings))]

    def expand(self, task: Expand, w: np.ndarray) -> AnyPass:
        """Make the pass of a look at w."""
        p, settings = task.p, (self.samples.loss, self._equal, SparseVector.of(w))
        predicted: dict[int, Any] = {}
        if isinstance(p, WorkerPredictions):
            task, predicted = Expand(task.b, None, task.is_guess), p.at(self.rows.firsts)
        on_chunk = self._expanding(task, w)
        parts = self.rows.run(lambda place: (_keep, on_chunk.at(place), *settings, predicted.get(place.start)))
        ask = functools.partial(self.rows.ask, parts)
        features = np.flatnonzero(w) if self._is_wide else None
        return OutsidePass(ask, self.n_samples, self.n_features, features, task.is_guess)

    def predictions(self, w: np.ndarray) -> np.ndarray | WorkerPredictions:
        """Return X w, at the workers if the targets are there."""
        if not isinstance(self.samples, WorkerSamples):
            return self.dot(w)
        settings = (Sweep(Predict()), self.samples.loss, self._equal, SparseVector.of(w))
        return WorkerPredictions(self.rows.run(lambda place: (_predict, *settings)))

    def zeros(self) -> np.ndarray | None:
        """Return the predictions of w = 0: None, if predictions are at the workers."""
        return None if isinstance(self.samples, WorkerSamples) else np.zeros(self.n_samples)

    def check_targets(self, has_intercept: bool) -> None:
        """Raise ValueError if the loss is not defined for the targets, or no intercept is best for them."""
        if isinstance(self.samples, WorkerSamples):
            self.samples.check(has_intercept)
        else:
            super().check_targets(has_intercept)

    def _in_memory(self, share: float) -> MemoryRows | None:
        if not isinstance(self.samples, WorkerSamples):
            return super()._in_memory(share)
        matrix, (y, given, offset) = self.rows.sample_with_numbers(share)
        assert y is not None
        if given is not None and not given.any():
            return None
        weight = convert.as_weights(given, y.size)
        return MemoryRows(
            Matrix(matrix.X, self.shift), Samples(self.samples.loss, y, weight, as_offset(offset, y.size))
        )

    def curvature(self, found: AnyPass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return the curvature on atoms, estimated from the rows that the pass has kept."""
        assert isinstance(found, OutsidePass)
        if not isinstance(atoms, AtomStack):
            return self._curvature_from(found.ask(kept_rows), atoms, has_intercept)
        sums: CurvatureSums = found.ask(curvature_sums, atoms)
        return sums.without_intercept() if has_intercept else sums.H

    def guess_intercept(self, found: AnyPass, b: float, step: np.ndarray) -> float:
        """Return the best intercept after a step of w from the point of ``found``, by Newton's formula."""
        assert isinstance(found, OutsidePass)
        change, total = found.slope_along(step)
        return b if total <= 0.0 else b - (found.totals.balance + change) / total

    @functools.cached_property
    def measures(self) -> Measures:
        """The sizes of the columns; with many features, a bound that holds for all of them."""
        if not self._is_wide:
            return super().measures
        settings = (self.samples.loss, self._equal, SparseVector.of(np.zeros(self.n_features)))
        found: Measures = self.rows.add_up(lambda place: (_measure, *settings))
        return Measures(np.broadcast_to(found.squares, self.n_features), found.largest_entry)

    def _heads(self, share: float) -> tuple[Matrix, np.ndarray]:
        matrix, places = self.rows.sample(share)
        return Matrix(matrix.X, self.shift), places

    def with_targets(self, y: np.ndarray) -> PartitionedRows:
        """Return the same rows with other targets."""
        samples = Samples(self.samples.loss, y, self.samples.weight, self.samples.offset)
        return PartitionedRows(self.rows, samples, self._has_intercept)

    def definition(self) -> tuple[object, ...]:
        """Return checksums of all partitions, loss, targets and weights."""
        return (*self.rows.definition(), *self.samples.definition())


def _run(part: Partition, first: int, task: ChunkTask, loss: Loss, equal: float | None, w: SparseVector) -> Any:
    """Run a task on a partition, at its worker."""
    with failures_explained():
        return task(_chunk(part, first, loss, equal), w.to_dense())


def _chunk(part: Partition, first: int, loss: Loss, equal: float | None) -> SweptChunk:
    rows = part.rows
    if isinstance(rows, DevicePart):
        return DeviceChunk.of(part, rows, first, loss, equal)
    assert isinstance(rows, HostPart)
    return ChunkInMemory(first, Matrix(rows.X, part.shift), samples_of(part, loss, equal))


def _predict(part: Partition, *args: Any) -> np.ndarray:
    """Return the predictions of a partition."""
    found: Joined = _run(part, *args)
    return found.array


def _keep(
    part: Partition,
    first: int,
    task: ExpandAndKeep,
    loss: Loss,
    equal: float | None,
    w: SparseVector,
    p: np.ndarray | None,
) -> PartOfPass:
    """Make the pass of a look on a partition, with its predictions if they are known; return what its worker keeps."""
    task = task if p is None else task.with_predictions(p)
    return PartOfPass.of(part.rows.shape[0], _run(part, first, task, loss, equal, w))


def _measure(part: Partition, first: int, *args: Any) -> Measures:
    """Return the largest of the sizes of the columns on a partition; sums of these are bounds for all columns."""
    found: Measures = _run(part, first, Sweep(Measure()), *args)
    return Measures(found.squares.max(keepdims=True), found.largest_entry)
