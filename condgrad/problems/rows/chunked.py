"""ChunkedRows: samples in chunks that are brought to memory, or to a worker, one after the other."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

import numpy as np

from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.spread import spread_rows
from condgrad.losses import Loss
from condgrad.problems.active_set import Stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.rows.base import Additive, AnyPass, Combine, Expand, Found, Predict, Rows, Task
from condgrad.problems.rows.findings import (
    FeatureCurvature,
    GradientSums,
    InterceptSlope,
    Joined,
    Kept,
    Pass,
    is_finite,
)
from condgrad.problems.rows.memory import MemoryRows
from condgrad.problems.samples import Samples

_GUIDE = 4000  # samples in memory that tell the sum of all curvatures before a pass
_MOST_HEAD, _SHARE_OF_HEAD = 2**29, 1 / 32  # limits of a subsample in memory: bytes, and share of all rows
_MOST_KEPT, _SHARE_KEPT = 2**27, 1 / 64  # limits of the rows that a pass keeps for the curvature
_ROWS_PER_FEATURE = 4000  # samples for the second derivatives by some features, for each of them
_MANY = 4  # factor by which these samples must be more than the subsample in memory, which has second derivatives, too
_PAIRS = 1.5  # most multiply-adds for these, in those of a pass
_DENSE_SPEED = 18.0  # multiply-adds of a product of dense matrices, with its copies, in the time of one of a pass
_WORK_PER_SAMPLE = 20.0  # multiply-adds in the time of the loss of a sample
_LEAST_HEAD, _LEAST_KEPT = 2**25, 2**24  # bytes that subsample and kept rows may take in any case


class SweptChunk(Protocol):
    """Consecutive samples in memory or on a device; one number for each of them is an array there."""

    @property
    def first(self) -> int:
        """The place of the first sample among all."""

    @property
    def n_samples(self) -> int:
        """The number of samples."""

    @property
    def loss(self) -> Loss:
        """The loss of the samples."""

    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task on all samples of the chunk."""

    def keep(self, d: np.ndarray, rate: float) -> Kept:
        """Return rows that are drawn by their curvature d at the given rate, in the memory of the host."""

    def gram(self, features: np.ndarray, d: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return the second derivatives by some features, summed over some samples (None: all)."""


class ExpandAndKeep:
    """The task of a look at chunks: value and gradient, and rows drawn by their curvature at the given rate.

    With ``look.sums`` the gradients of all chunks are added there, and ``finish`` brings them into the result. The
    second derivatives by ``look.features`` are summed over one of ``every`` samples.
    """

    def __init__(self, look: Expand, rate: float, every: int) -> None:
        self.look, self.rate, self.every = look, rate, every

    def at(self, place: slice) -> ExpandAndKeep:
        """Return the task for the chunk of these samples, with their predictions alone."""
        look = self.look
        if look.p is None:
            return self
        here = Expand(look.b, look.p[place], look.is_guess, look.sums, look.features)
        return ExpandAndKeep(here, self.rate, self.every)

    def finish(self, found: Pass) -> Pass:
        """Return the result of all chunks."""
        sums = self.look.sums
        return found if sums is None else dataclasses.replace(found, r=sums.total())

    def __call__(self, chunk: SweptChunk, w: np.ndarray) -> Pass:
        """Return the contribution of a chunk."""
        sums = self.look.sums
        found = chunk.sweep(self.look, w)
        if not (np.isfinite(found.totals.value) and (is_finite(found.r) if sums is None else sums.are_finite())):
            last = chunk.first + chunk.n_samples - 1
            raise ValueError(
                f"X has entries that are not finite, or too large, in samples {chunk.first:,} to {last:,}; "
                "remove or impute them and convert the data again."
            )
        assert isinstance(found.d, Joined)
        d, slope = found.d.array, None
        if not chunk.loss.is_convex:
            d = np.maximum(d, 0.0)
        if self.look.is_guess:
            slope = InterceptSlope(chunk.sweep(Combine(d), w), float(d.sum()))
        return Pass(found.totals, found.r, chunk.keep(d, self.rate), slope, self._bends(chunk, d))

    def _bends(self, chunk: SweptChunk, d: np.ndarray) -> FeatureCurvature | None:
        features = self.look.features
        if features is None:
            return None
        rows = None if self.every == 1 else spread_rows(chunk.n_samples, self.every)
        used = d if rows is None else d[rows]
        H = chunk.gram(features, used, rows)
        return FeatureCurvature(features, H, float(used.sum()), float(d.sum()))

    def with_predictions(self, p: np.ndarray) -> ExpandAndKeep:
        """Return the task for a chunk whose predictions are known."""
        look = self.look
        return ExpandAndKeep(Expand(look.b, p, look.is_guess, look.sums, look.features), self.rate, self.every)


class Sweep:
    """The task of running another task on all blocks of a chunk."""

    def __init__(self, task: Task[Additive]) -> None:
        self.task = task

    def at(self, place: slice) -> Sweep:
        """Return the task for the chunk of these samples."""
        return self

    def finish(self, found: Additive) -> Additive:
        """Return the result of all chunks: their sum."""
        return found

    def __call__(self, chunk: SweptChunk, w: np.ndarray) -> Additive:
        """Return the result for the chunk."""
        return chunk.sweep(self.task, w)


class CombineAll:
    """The task of computing X'a, for one number a_i for each of all samples."""

    def __init__(self, a: np.ndarray) -> None:
        self.a = a

    def at(self, place: slice) -> CombineAll:
        """Return the task for the chunk of these samples, with their numbers alone."""
        return CombineAll(self.a[place])

    def finish(self, found: np.ndarray) -> np.ndarray:
        """Return the result of all chunks: their sum."""
        return found

    def __call__(self, chunk: SweptChunk, w: np.ndarray) -> np.ndarray:
        """Return the sum over a chunk."""
        return chunk.sweep(Combine(self.a), w)


# Pure functions of a chunk and of w; their results can be added.
ChunkTask: TypeAlias = ExpandAndKeep | CombineAll | Sweep


class ChunkedRows(Rows):
    """Samples in chunks; targets and weights, one number for each sample, are in memory.

    A pass brings every chunk to memory once. Curvatures are not kept: while a pass has the rows at hand, it draws some
    of them by their curvature, and these stand for all. A subclass defines where chunks come from.

    Attributes
    ----------
    n_bytes : int
        The number of bytes of X.
    shift : array or None
        What is subtracted from each column, for a problem with an intercept.
    """

    offers = BaseProblem.offers | {Feature.CURVATURE}
    is_in_memory = False
    shares_sums: bool  # whether all chunks are worked on in this process, one after the other
    n_bytes: int
    shift: np.ndarray | None

    @abc.abstractmethod
    def over_chunks(self, task: ChunkTask, w: np.ndarray) -> Iterable[Any]:
        """Yield the results of a task on all chunks, in their order."""

    @abc.abstractmethod
    def _heads(self, share: float) -> tuple[Matrix, np.ndarray]:
        """Return this share of the rows, from the heads of all chunks, and their places among all samples."""

    @property
    def bytes_of_pass(self) -> int:
        """The number of bytes of X."""
        return self.n_bytes

    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task on every block of every chunk and add the results in their order."""
        on_chunk: ChunkTask = Sweep(task)
        if isinstance(task, Expand):
            on_chunk = self._expanding(task, w)
        elif isinstance(task, Combine):
            on_chunk = CombineAll(task.a)
        total: Any = None
        for found in self.over_chunks(on_chunk, w):
            total = found if total is None else total + found
            Interrupts.end_pass()
        return on_chunk.finish(total)  # type: ignore[return-value]

    def _expanding(self, task: Expand, w: np.ndarray) -> ExpandAndKeep:
        """Return the task of a look for chunks."""
        sums = GradientSums(self.n_features) if self.shares_sums else None
        every = self._every(task.features)
        look = Expand(task.b, task.p, task.is_guess, sums, None if every == 0 else task.features)
        return ExpandAndKeep(look, self._rate_at(w, task.b), every)

    def _rate_at(self, w: np.ndarray, b: float) -> float:
        """Return the rate at which a pass at w draws rows by their curvature."""
        guide = self._guide
        if guide is None:
            return 0.0
        d = guide.samples.expand(guide.sweep(Predict(), w).array, b).d
        total = float(np.maximum(d, 0.0).sum())
        budget = max(_LEAST_KEPT, min(_MOST_KEPT, _SHARE_KEPT * self.n_bytes))
        return budget / self._bytes_in_memory / total if total > 0.0 else 0.0

    def _every(self, features: np.ndarray | None) -> int:
        """Return k if second derivatives are summed over one of k samples; 0 if that is too expensive to be of use."""
        guide = self._guide
        if features is None or features.size == 0 or guide is None or not self.shares_sums:
            return 0  # with a cluster, a matrix would travel for each partition
        if guide.matrix.is_sparse:
            chosen = np.zeros(self.n_features, np.bool_)
            chosen[features] = True
            entries = guide.matrix.n_stored / guide.n_samples
            among = np.count_nonzero(chosen[guide.matrix.X.indices]) / guide.n_samples
            share = (entries + 0.5 * among**2) / (2.0 * entries + _WORK_PER_SAMPLE)
        else:
            share = features.size**2 / _DENSE_SPEED / (2.0 * self.n_features + _WORK_PER_SAMPLE)
        every = max(1, round(share / _PAIRS), int(self.n_samples / (_ROWS_PER_FEATURE * features.size)))
        return every if every == 1 or self.n_samples / every >= _MANY * self.most_in_memory else 0

    @property
    def _bytes_in_memory(self) -> float:
        """The number of bytes of a row in memory, where codes of categories take more than on disk."""
        guide = self._guide
        return 1.0 if guide is None else max(1.0, guide.matrix.n_bytes / guide.n_samples)

    @functools.cached_property
    def _guide(self) -> MemoryRows | None:
        """A few samples in memory; None if they have no weight."""
        return self._in_memory(min(0.5, _GUIDE / self.n_samples))

    def _in_memory(self, share: float) -> MemoryRows | None:
        matrix, places = self._heads(share)
        samples = self.samples.alone(places)
        return None if samples is None else MemoryRows(matrix, samples)

    def head(self, n_rows: int) -> Rows | None:
        """Return a subsample of about ``n_rows`` samples from the heads of all chunks, in memory; self if too large."""
        if n_rows > self.most_in_memory:
            return self
        return self._in_memory(n_rows / self.n_samples)

    @property
    def most_in_memory(self) -> int:
        """The number of samples of the largest subsample: at most half of all, and within the limits of memory."""
        budget = max(_LEAST_HEAD, min(_MOST_HEAD, _SHARE_OF_HEAD * self.n_bytes))
        return int(min(0.5 * self.n_samples, budget / self._bytes_in_memory))

    def curvature(self, found: AnyPass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return the curvature on atoms, estimated from the rows that the pass has kept."""
        assert isinstance(found, Pass) and isinstance(found.d, Kept)
        return self._curvature_from(found.d, atoms, has_intercept)

    def _curvature_from(self, kept: Kept, atoms: Stack, has_intercept: bool) -> np.ndarray:
        ones = np.ones(kept.c.size)
        if kept.c.size == 0:
            return np.zeros((len(atoms), len(atoms)))
        return MemoryRows(kept.matrix, Samples(self.samples.loss, ones, ones)).curvature_on(
            atoms, kept.c, None, 0, has_intercept
        )

    def guess_intercept(self, found: AnyPass, b: float, step: np.ndarray) -> float:
        """Return the best intercept after a step of w from the point of ``found``, by Newton's formula."""
        assert isinstance(found, Pass) and isinstance(found.d, Kept)
        known = found.intercept_after(b, step)
        if known is not None:
            return known
        total = float(found.d.c.sum())
        if total <= 0.0:
            return b
        return b - (found.totals.balance + float(found.d.c @ found.d.matrix.dot(step))) / total

    @property
    def cost_of_pass(self) -> float:
        """Two multiply-adds for every stored entry of X."""
        return 2.0 * self.n_bytes / 4.0

    def along_shift(self, w: np.ndarray, features: np.ndarray | None = None) -> float:
        """Return <shift, w> for centred columns."""
        if self.shift is None:
            return 0.0
        return float((self.shift if features is None else self.shift[features]) @ w)
