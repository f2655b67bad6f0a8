"""Observations: the samples that an estimator is fitted to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.storage.outside_rows import OutsideRows


class Observations(NamedTuple):
    """Data and targets, with weights (None: all equal) and offsets (None: there are none)."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    offset: np.ndarray | None

    def at(self, places: np.ndarray) -> Observations:
        """Return the samples at these places, for data in memory."""
        weight, offset = (None if part is None else part[places] for part in (self.weight, self.offset))
        return Observations(self.X[places], self.y[places], weight, offset)

    def weighted_only(self) -> Observations:
        """Return the samples with positive weight; the others are left out, as if never given."""
        if self.weight is None or self.weight.all() or isinstance(self.X, OutsideRows):
            return self
        return self.at(np.flatnonzero(self.weight))
