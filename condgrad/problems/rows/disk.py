"""DiskRows: samples in chunks on disk; a pass reads each chunk once, ahead of the kernels that work on it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from condgrad.linalg.by_rows import ByRows
from condgrad.linalg.centring import centring
from condgrad.linalg.matrix import Matrix
from condgrad.problems.base import Feature
from condgrad.problems.rows.chunked import ChunkedRows, ChunkTask
from condgrad.problems.rows.findings import Measures
from condgrad.problems.rows.memory import ChunkInMemory
from condgrad.problems.samples import Samples
from condgrad.storage.stored_rows import StoredRows


class DiskRows(ChunkedRows):
    """The rows of a folder of chunks."""

    shares_sums = True

    def __init__(self, stored: StoredRows, samples: Samples, has_intercept: bool) -> None:
        self.stored, self.samples = stored, samples
        self.n_samples, self.n_features = stored.shape
        self.n_bytes = stored.n_bytes
        self.chunk_sizes = stored.chunk_sizes
        self._n_visited = 0  # chunks; others may read the same folder meanwhile
        if not has_intercept:  # the best intercept is known after a pass only, and steps would use an old one
            self.offers = ChunkedRows.offers | {Feature.CHUNKS}
        known = stored.columns if has_intercept and stored.kind == "dense" else None
        self.shift = None if known is None else centring(known[0] / self.n_samples, known[1] / self.n_samples)

    @property
    def n_reads(self) -> float:
        """How often all rows have been read from the disk for this problem; the heads of chunks do not count."""
        return self._n_visited / self.stored.n_chunks

    def over_chunks(self, task: ChunkTask, w: np.ndarray) -> Iterator[Any]:
        """Yield the results of a task on all chunks; the next chunks are read meanwhile."""
        for chunk in self.visit(np.arange(self.stored.n_chunks)):
            yield task.at(chunk.place)(chunk, w)

    def visit(self, order: np.ndarray) -> Iterator[ChunkInMemory]:
        """Yield the chunks in the given order, each valid until the next one; the next chunks are read meanwhile."""
        for chunk in self.stored.chunks(order=order):
            self._n_visited += 1
            yield ChunkInMemory(chunk.first, self._centred(chunk.matrix), self.samples.chosen(chunk.place))

    def _centred(self, matrix: ByRows) -> ByRows:
        return Matrix(matrix.X, self.shift) if self.shift is not None and isinstance(matrix, Matrix) else matrix

    def _heads(self, share: float) -> tuple[Matrix, np.ndarray]:
        matrix, places = self.stored.sample(share)
        return Matrix(matrix.X, self.shift), places

    def with_targets(self, y: np.ndarray) -> DiskRows:
        """Return the same rows with other targets; both share the folder."""
        other = copy.copy(self)
        other.samples = self.samples._replace(y=y)
        other.__dict__.pop("_guide", None)
        return other

    def definition(self) -> tuple[object, ...]:
        """Return the checksums of all chunks, loss, targets and weights."""
        return (*self.stored.definition(), self.samples)

    @functools.cached_property
    def measures(self) -> Measures:
        """The sizes of the columns: from the manifest, as upper bounds where weights differ, or by a pass."""
        known = self.stored.columns
        if known is None or self.shift is not None:
            return super().measures
        return Measures(known[1] * float(self.samples.weight.max()), float(known[2].max(initial=0.0)))
