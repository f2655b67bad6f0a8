"""StreamedRows: samples of the host that are sent to a device in every pass, because it cannot hold them."""

from __future__ import annotations

import functools
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg.centring import centring
from condgrad.linalg.device.arrays import rows_sent
from condgrad.linalg.device.base import N_SUMS
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.streamed import MatrixRows, StreamedMatrix
from condgrad.problems.active_set import Stack
from condgrad.problems.rows.base import AnyPass, Expand
from condgrad.problems.rows.device import DeviceRows, RowsOnDevice, check_finite
from condgrad.problems.rows.device_samples import DeviceSamples, totals_of
from condgrad.problems.rows.findings import At, InterceptSlope, Measures, Pass

_SHARE, _LEAST = 1 / 8, 2**26  # of all rows, the sample that stays on the device; bytes that it may have in any case
_SHARE_OF_DEVICE = 1 / 4  # of the free memory of the device, which such a sample takes at most


class StreamedRows(RowsOnDevice):
    """The rows of a :class:`~condgrad.linalg.device.streamed.StreamedMatrix`.

    A pass takes as long as sending X. So steps are made on a sample that stays on the device, and a look does not make
    a pass of its own to find the best intercept. The certificate is that of a pass over all rows.
    """

    is_in_memory = False
    matrix: StreamedMatrix

    def __init__(self, matrix: StreamedMatrix, samples: DeviceSamples, has_intercept: bool = False) -> None:
        self._begin(matrix, samples)
        self.matrix = matrix
        is_dense = matrix.source.kind == "dense"
        squares, largest, means = self._measure(wants_means=has_intercept and is_dense)
        shift = None if means is None else centring(means, squares)
        if shift is not None:  # the intercept absorbs it; large means then cost no digits
            self.matrix = matrix.with_shift(shift)
            squares, largest, _ = self._measure(wants_means=False)
        self.measures = Measures(squares, largest)

    def _measure(self, wants_means: bool) -> tuple[np.ndarray, float, np.ndarray | None]:
        """Return sizes of the columns, the largest entry and, if they are wanted, the means, in one pass."""
        device, losses = self.device, self.samples.losses
        squares, largest, means = np.zeros(self.n_features), 0.0, np.zeros(self.n_features)
        for place, block in self.matrix.blocks():
            part = losses.part(place)
            own, entry = block.measure(part)
            squares += own
            largest = max(largest, entry)
            if wants_means:
                means += block.combine(device.xp.full(part.y.size, part.v0) if part.v is None else part.v)
        check_finite(squares)
        return squares, largest, means if wants_means else None

    @property
    def n_reads(self) -> float:
        """How often all rows have been sent."""
        return float(self.matrix.n_passes)

    @property
    def bytes_of_pass(self) -> int:
        """The number of bytes of X."""
        return self.matrix.n_bytes

    def _expand(self, task: Expand, w: np.ndarray) -> Pass:
        sums, r, u = np.zeros(N_SUMS), np.zeros(self.n_features), np.zeros(self.n_features)
        for place, block in self.matrix.blocks():
            p = None if task.p is None else task.p[place]
            swept = block.expand(w, task.b, p, self.samples.losses.part(place))
            sums += swept.sums
            r += swept.r
            if task.is_guess:
                u += block.combine(swept.D)
        slope = InterceptSlope(u, float(sums[-1])) if task.is_guess else None
        return Pass(totals_of(sums), r, At(w.copy(), task.b), slope)

    def head(self, n_rows: int) -> RowsOnDevice | None:
        """Return a subsample of about ``n_rows`` samples on the device; self if it is too large."""
        if n_rows > self.most_in_memory:
            return self
        return self._guide if n_rows == self.most_in_memory else self._on_device(n_rows / self.n_samples)

    @functools.cached_property
    def most_in_memory(self) -> int:
        """The number of samples of the largest subsample: at most half of all, and within the limits of the device."""
        room = min(_SHARE_OF_DEVICE * self.device.free_bytes(), max(_LEAST, _SHARE * self.matrix.n_bytes))
        return min(self.n_samples // 2, int(room * self.n_samples / max(1, self.matrix.n_bytes)))

    @functools.cached_property
    def _guide(self) -> DeviceRows | None:
        """The largest subsample; None if it has no weight."""
        return self._on_device(self.most_in_memory / self.n_samples)

    def _on_device(self, share: float) -> DeviceRows | None:
        part, places = self.matrix.source.sample(share)
        samples = self.samples.alone(self.device.to_device(places))
        if samples is None:
            return None
        matrix = rows_sent(self.device, MatrixRows(part))
        if isinstance(matrix, DenseOnDevice):
            matrix = matrix.with_shift(self.matrix.shift)
        return DeviceRows(matrix, samples)

    def curvature(self, found: AnyPass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return the curvature on atoms of the largest subsample, at the point of the pass."""
        assert isinstance(found, Pass) and isinstance(found.d, At)
        guide = self._guide
        if guide is None:
            return np.zeros((len(atoms), len(atoms)))
        there = guide.sweep(Expand(found.d.b), found.d.w)
        return guide.curvature(there, atoms, n_rows, n_known, has_intercept)

    def guess_intercept(self, found: AnyPass, b: float, step: np.ndarray) -> float:
        """Return the best intercept after a step of w from the point of ``found``, by Newton's formula."""
        assert isinstance(found, Pass)
        known = found.intercept_after(b, step)
        return b if known is None else known

    def with_targets(self, y: ArrayLike) -> Self:
        """Return the same rows with other targets; both share the data."""
        other = super().with_targets(y)
        other.__dict__.pop("_guide", None)
        return other

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the data, loss, targets and weights."""
        return (*self.matrix.source.definition(), *self.samples.definition())
