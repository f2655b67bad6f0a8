"""DeviceTable: samples in the memory of an accelerator, which takes their moments; no more than these come back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from condgrad.engine.moments import LOST, Moments, n_terms
from condgrad.linalg.device.base import DeviceArray
from condgrad.linalg.device.matrices import GATHERED
from condgrad.linalg.interrupts import Interrupts
from condgrad.problems.rows.device import DeviceRows

MOST_FEATURES = 4096  # whose products are kept on the host: some matrices of 128 MB


class DeviceTable:
    """Rows on a device as a table, in float64 whatever X is stored in.

    Parameters
    ----------
    rows : DeviceRows
        Those of a problem with an intercept if ``is_centred``: then what they subtract from far columns is the shift.
    is_centred : bool
        Whether numbers may be subtracted from y: an intercept takes them up.
    """

    def __init__(self, rows: DeviceRows, *, is_centred: bool) -> None:
        self.matrix, self.device, self.shape, self.is_centred = rows.matrix, rows.device, rows.matrix.shape, is_centred
        losses, shift = rows.samples.losses, getattr(rows.matrix, "shift", None)
        self.weight = losses.v
        self.y = losses.y if losses.o is None else losses.y - losses.o
        self.shift = np.zeros(self.shape[1]) if shift is None else self.device.to_host(shift)
        mean = self.y.mean() if self.weight is None else (self.weight * self.y).sum()
        self.y_shift = float(mean) if is_centred else 0.0

    def moments_of(self, sets: Sequence[np.ndarray | None]) -> list[Moments]:
        """Return the moments of several sets of samples (None: of all), each in a pass.

        PassInterruptedError tells of Ctrl-C; a pass is too short to end where the time of the call does.
        """
        return [self._moments(samples) for samples in sets]

    def _moments(self, samples: np.ndarray | None) -> Moments:
        count, width = self.shape[0] if samples is None else samples.size, self.shape[1] + 2
        places = None if samples is None else self.device.to_device(samples)
        height, M = math.isqrt(max(0, count - 1)) + 1, self.device.zeros(width, width)
        n_blocks = 0
        for piece in _pieces(count, width):
            U = self._numbers(piece if places is None else places[piece])
            for first in range(0, U.shape[0], height):
                Interrupts.end_pass()
                block = U[first : first + height]
                M += block.T @ block
                n_blocks += 1
        found = self.device.to_host(M)
        zero = np.flatnonzero(found.diagonal()[:-2] == 0.0)
        if zero.size > 0 and self._has_entries(zero):
            found[zero, zero] = LOST
        return Moments(found, n_terms(min(count, height), n_blocks))

    def _numbers(self, at: slice | DeviceArray) -> DeviceArray:
        """Return sqrt(v_i) u_i for some samples."""
        X, xp = self.matrix.chosen(at, None), self.device.xp
        U = xp.ones((X.shape[0], X.shape[1] + 2))
        U[:, :-2], U[:, -2] = X, self.y[at] - self.y_shift
        if self.weight is not None:
            U *= xp.sqrt(self.weight[at])[:, None]
        return U

    def _has_entries(self, columns: np.ndarray) -> bool:
        """Tell whether samples that count have other entries than zero in some columns."""
        for piece in _pieces(self.shape[0], columns.size):
            entries = self.matrix.chosen(piece, columns)
            if bool((entries if self.weight is None else entries[self.weight[piece] > 0.0]).any()):
                return True
        return False


def _pieces(count: int, width: int) -> Iterator[slice]:
    """Yield ranges of samples whose dense copies are not too large."""
    height = max(1, GATHERED // (8 * width))
    for first in range(0, count, height):
        yield slice(first, min(first + height, count))
