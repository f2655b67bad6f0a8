"""DeviceSamples: the loss of all samples at once, with targets and predictions on a device."""

from __future__ import annotations

import functools
from typing import Self

import numpy as np

from condgrad.linalg.device.base import Device, DeviceArray, Expanded, Losses, expand_samples
from condgrad.linalg.device.formulas import parameters_of, source_of
from condgrad.linalg.rounding import Sizes, gamma
from condgrad.losses import Loss
from condgrad.problems.intercepts import bounds_of_intercepts, newton_intercept
from condgrad.problems.offset import NoOffset, Offset, Offsets, as_offset
from condgrad.problems.totals import Totals, errors_of_predictions, scale_of_losses


class DeviceSamples:
    """What :class:`~condgrad.problems.samples.Samples` offers to problems, where predictions are on a device.

    Predictions p are an array there, or None where they are all zero.

    Attributes
    ----------
    loss : Loss
    losses : Losses
        Loss, targets and weights as kernels take them.
    """

    def __init__(self, device: Device, loss: Loss, losses: Losses) -> None:
        self.device, self.loss, self.losses = device, loss, losses

    @classmethod
    def of(
        cls, device: Device, loss: Loss, y: DeviceArray, v: DeviceArray | None, o: DeviceArray | None = None
    ) -> Self:
        """Return the samples with these targets, weights (None: all equal), which need not sum to one, and offsets."""
        theta = device.to_device(parameters_of(loss))
        if v is not None:
            v = v / v.max()  # the sum of huge or tiny weights could leave the range of floats
            v = v / v.sum()
        return cls(device, loss, Losses(source_of(type(loss)), theta, y, v, 1.0 / y.size, o))

    def with_targets(self, y: DeviceArray) -> DeviceSamples:
        """Return the same samples with other targets."""
        return DeviceSamples(self.device, self.loss, self.losses._replace(y=y))

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the samples in a fingerprint."""
        return (self.loss, self.y, self.weight, *self.offset.definition())

    def alone(self, rows: DeviceArray | slice) -> DeviceSamples | None:
        """Return some of the samples; None if they have no weight."""
        part = self.losses.chosen(rows)
        if part.v is not None and not float(part.v.sum()) > 0.0:
            return None
        return DeviceSamples.of(self.device, self.loss, part.y, part.v, part.o)

    def check(self, has_intercept: bool) -> None:
        """Raise ValueError if the loss is not defined for the targets, or no intercept is best for them."""
        xp, y = self.device.xp, self.losses.y
        is_class = self.loss.classes is not None  # then the kinds of targets say all
        self.loss.check_targets(self.device.to_host(xp.unique(y) if is_class else y))
        if has_intercept:
            used = y if self.losses.v is None else y[self.losses.v > 0.0]
            self.loss.check_intercept(self.device.to_host(xp.unique(used) if is_class else used))

    @functools.cached_property
    def y(self) -> np.ndarray:
        """The targets, in the memory of the host."""
        return self.device.to_host(self.losses.y)

    @functools.cached_property
    def weight(self) -> np.ndarray:
        """The weights, in the memory of the host."""
        v = self.losses.v
        return np.full(self.losses.y.size, self.losses.v0) if v is None else self.device.to_host(v)

    @functools.cached_property
    def offset(self) -> Offsets:
        """The offsets, in the memory of the host."""
        o = self.losses.o
        return as_offset(None if o is None else self.device.to_host(o), self.losses.y.size)

    def prediction_errors(self, sizes: Sizes, n_terms: int, spread: float, size: float) -> tuple[float, float]:
        """Return bounds of the errors of predictions, in the norm and of each."""
        return errors_of_predictions(self._size_of_offset, sizes, n_terms, spread, size)

    @functools.cached_property
    def _size_of_offset(self) -> Offsets:
        """No offset values, but a bound of their sizes."""
        o = self.losses.o
        return NoOffset() if o is None else Offset(np.empty(0), float(self.device.xp.abs(o).max()))

    # What problems ask for.

    def value(self, p: DeviceArray | None, b: float) -> float:
        """Return f(p) = sum_i weight_i f(p_i + b, y_i)."""
        return float(self._sums(p, b)[0])

    def derivatives(self, p: DeviceArray | None, b: float) -> DeviceArray:
        """Return the gradient of f at p."""
        return self._expand(p, b, wants=True).alpha

    def best_intercept(self, p: DeviceArray | None, b: float) -> float:
        """Return the b that minimises f(p + b), starting from the guess ``b``."""

        def slopes(b: float) -> tuple[float, float, float]:
            sums = self._sums(p, b)
            return float(sums[5]), float(sums[8]), float(np.sqrt(sums[2]) + np.sqrt(sums[7] * sums[3]))

        return newton_intercept(slopes, b)

    def tangent(self, p: DeviceArray | None, b: float) -> tuple[float, float, float]:
        """Return value, squared norm of the derivatives, and their sum."""
        sums = self._sums(p, b).tolist()
        return sums[0], sums[2], sums[5]

    def intercept_range(
        self, p: DeviceArray | None, b: float, reach: float, level: float | None = None
    ) -> tuple[float, float]:
        """Return bounds of the best intercepts over all points of a set, from tangents of a convex loss."""
        return bounds_of_intercepts(self, p, b, reach, level)

    def largest_value(self, size: float) -> float:
        """Return an upper bound of f for predictions of at most this size, for a convex loss."""
        return self.mean_size(None, size) + self.mean_size(None, -size)  # a maximum is at most the sum of the sizes

    def mean_size(self, p: DeviceArray | None, b: float = 0.0) -> float:
        """Return the weighted mean of |f(p_i + b, y_i)|."""
        return float(self._sums(p, b)[1])

    def loss_scale(self, p: DeviceArray | None, b: float = 0.0) -> float:
        """Return the mean absolute loss for the predictions of w = 0, with a positive lower limit."""
        return scale_of_losses(self.mean_size(p, b), self.mean_size(None))

    def least_value(self) -> float:
        """Return a lower bound of f over all predictions, rounding included."""
        least = np.where(self.weight > 0.0, self.loss.least_value(self.y), 0.0)
        return float(self.weight @ least) - 2.0 * gamma(least.size + 8) * float(self.weight @ np.abs(least))

    def derivative_size(self) -> float:
        """Return the weighted mean of |f'(0, y_i)|."""
        return float(self.device.xp.abs(self._expand(None, 0.0, wants=True).alpha).sum())

    def _expand(self, p: DeviceArray | None, b: float, *, wants: bool) -> Expanded:
        return expand_samples(self.device, self.losses, p, b, wants=wants)

    def _sums(self, p: DeviceArray | None, b: float) -> np.ndarray:
        return self._expand(p, b, wants=False).sums


def totals_of(sums: np.ndarray) -> Totals:
    """Return the sums of a kernel, without the last one, by their names."""
    return Totals(*sums[:-1].tolist())
