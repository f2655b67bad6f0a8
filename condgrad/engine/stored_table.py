"""StoredTable: samples in chunks on disk, of which one read takes the moments of any number of sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from condgrad.engine.moments import Moments, Table, end_pass
from condgrad.linalg.matrix import Matrix
from condgrad.storage.stored_rows import StoredRows

SAMPLED = 1000  # rows that estimate the means


class StoredTable:
    """The rows of a folder, dense or sparse, as a table; targets and weights are in memory.

    Parameters
    ----------
    rows : StoredRows
    y, weight, is_centred
        As for :class:`~condgrad.engine.moments.Table`.
    """

    def __init__(self, rows: StoredRows, y: np.ndarray, weight: np.ndarray, *, is_centred: bool) -> None:
        self.rows, self.y, self.shape, self.is_centred = rows, y, rows.shape, is_centred
        self.weight = None if (weight == weight[0]).all() else weight
        matrix, places = rows.sample(min(1.0, SAMPLED / rows.shape[0]))
        chosen = np.ones(places.size) if self.weight is None else np.maximum(self.weight[places], weight.max() * 1e-9)
        self._like = Table(matrix.X, y[places], chosen, is_centred=is_centred)
        self.shift, self.y_shift = self._like.shift, self._like.y_shift

    def moments_of(self, sets: Sequence[np.ndarray | None]) -> list[Moments]:
        """Return the moments of several sets of samples (None: of all), in one read.

        PassInterruptedError tells of Ctrl-C, or of a time that is over.
        """
        ordered = [None if samples is None else np.sort(samples) for samples in sets]
        totals: list[Moments | None] = [None] * len(sets)
        for chunk in self.rows.chunks():
            end_pass()
            X, place = cast("Matrix", chunk.matrix).X, chunk.place
            weight = None if self.weight is None else self.weight[place]
            part = Table(X, self.y[place], weight, is_centred=self.is_centred, like=self._like)
            for k, samples in enumerate(ordered):
                found = part.moments(None if samples is None else within(samples, place))
                before = totals[k]
                totals[k] = found if before is None else before + found
        return [total for total in totals if total is not None]


def within(samples: np.ndarray, place: slice) -> np.ndarray:
    """Return the places in a chunk of those of ascending samples that it holds."""
    first, last = np.searchsorted(samples, [place.start, place.stop])
    return np.asarray(samples[first:last] - place.start)
