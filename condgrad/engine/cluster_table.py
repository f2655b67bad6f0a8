"""ClusterTable: samples with the workers of a Dask cluster; one pass takes the moments of any number of sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condgrad.engine.moments import Moments, Table
from condgrad.engine.stored_table import SAMPLED, within
from condgrad.linalg import threads
from condgrad.linalg.interrupts import Interrupts, end_of_time
from condgrad.problems.rows.worker_samples import with_checked_numbers
from condgrad.storage.cluster_rows import ClusterRows
from condgrad.storage.partitions import HostPart, Partition


class ClusterTable:
    """The rows of a cluster, dense or sparse, as a table; targets, weights and offsets are with the workers, too.

    Parameters
    ----------
    rows : ClusterRows
        In the memory of the workers.
    y, weight, offset : array or None
        Checked numbers of the samples that go to the workers once; None leaves those that are there.
    is_centred : bool
        As for :class:`~condgrad.engine.moments.Table`.
    """

    def __init__(
        self,
        rows: ClusterRows,
        y: np.ndarray | None,
        weight: np.ndarray | None,
        offset: np.ndarray | None,
        *,
        is_centred: bool,
    ) -> None:
        self.shape, self.is_centred = rows.shape, is_centred
        self.rows = with_checked_numbers(_with_given(rows, y, weight, offset))
        matrix, (y, weight, offset) = self.rows.sample_with_numbers(min(1.0, SAMPLED / rows.shape[0]))
        assert y is not None
        chosen = None if weight is None or not weight.any() else np.maximum(weight, weight.max() * 1e-9)
        like = Table(matrix.X, y if offset is None else y - offset, chosen, is_centred=is_centred)
        self.shift, self.y_shift = like.shift, like.y_shift
        self._like = Table(matrix.X[:0], y[:0], None, is_centred=is_centred, like=like)  # which travels, has no rows

    def moments_of(self, sets: Sequence[np.ndarray | None]) -> list[Moments]:
        """Return the moments of several sets of samples (None: of all), in one pass.

        PassInterruptedError tells of Ctrl-C, or of a time that is over.
        """
        ordered = [None if samples is None else np.sort(samples) for samples in sets]

        def task_at(place: slice) -> tuple[Any, ...]:
            return _moments, [None if samples is None else within(samples, place) for samples in ordered], self._like

        with Interrupts() as interrupts:
            interrupts.end_passes_at(end_of_time())
            total: Moments = self.rows.add_up(task_at)
        return [total._replace(M=M) for M in total.M]


def _with_given(rows: ClusterRows, *given: np.ndarray | None) -> ClusterRows:
    """Return the rows with other numbers of their samples; those that the workers have stay there."""
    if all(values is None for values in given):
        return rows
    of_samples = zip(given, (rows.y, rows.weight, rows.offset), strict=True)
    return rows.with_samples(*(None if own is not None and _are_equal(new, own) else new for new, own in of_samples))


def _are_equal(new: np.ndarray | None, own: np.ndarray) -> bool:
    return new is not None and np.array_equal(new, own)


# The task of workers --------------------------------------------------------------------------------------------------


def _moments(part: Partition, first: int, sets: list[np.ndarray | None], like: Table) -> Moments:
    """Return the moments of several sets of samples of a partition, one after the other in an array."""
    assert isinstance(part.rows, HostPart) and part.y is not None
    y = part.y if part.offset is None else part.y - part.offset
    table = Table(part.rows.X, y, part.weight, is_centred=like.is_centred, like=like)
    with threads.one_blas_thread():  # whatever other workers in this process do: the same bits
        found = table.moments_of(sets)
    return Moments(np.stack([each.M for each in found]), max(each.length for each in found))
