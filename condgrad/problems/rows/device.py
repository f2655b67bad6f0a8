"""DeviceRows: samples in the memory of an accelerator, where a pass is a kernel; see :mod:`condgrad.linalg.device`."""

from __future__ import annotations

import abc
import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg.centring import centring
from condgrad.linalg.device.base import DeviceArray, Losses
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.digest import digest
from condgrad.linalg.device.matrices import DeviceMatrix, SweptMatrix
from condgrad.linalg.spread import GOLDEN, spread_rows
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.rows.base import AnyPass, Combine, Expand, Found, Measure, Predict, Rows, Task
from condgrad.problems.rows.device_samples import DeviceSamples, totals_of
from condgrad.problems.rows.findings import Joined, Measures, Pass

_CANDIDATES = 4  # samples from which one row is drawn by its curvature, on average
_MOST_DRAWN = 100_000  # samples from which a curvature is estimated: more would cost more than another pass
_ONE = 2**32  # shares of samples are counted in units of 1 / _ONE: sums of integers do not depend on their order
_TURN = round(GOLDEN * _ONE)


class RowsOnDevice(Rows):
    """Rows whose passes run on a device; w comes from the host and the gradient goes back there.

    Predictions and curvatures, one number for each sample, stay on the device.
    """

    offers = BaseProblem.offers | {Feature.CURVATURE}
    first_part, part_growth = 2**16, 256  # passes over fewer samples take no less time
    samples: DeviceSamples  # type: ignore[assignment]
    matrix: SweptMatrix

    def _begin(self, matrix: SweptMatrix, samples: DeviceSamples) -> None:
        self.device, self.samples = matrix.device, samples
        self.n_samples, self.n_features = matrix.shape

    def check_targets(self, has_intercept: bool) -> None:
        """Raise ValueError if the loss is not defined for the targets, or no intercept is best for them."""
        self.samples.check(has_intercept)

    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task in one pass over X."""
        if isinstance(task, Expand):
            return self._expand(task, w)
        if isinstance(task, Measure):
            return self.measures
        return sweep_matrix(self.matrix, self.samples.losses, task, w)

    @abc.abstractmethod
    def _expand(self, task: Expand, w: np.ndarray) -> Pass:
        """Make the pass of a look at w."""

    def predictions(self, w: np.ndarray) -> DeviceArray:
        """Return X w, on the device."""
        return self.matrix.predict(w)

    def zeros(self) -> None:
        """Return the predictions of w = 0: None."""
        return

    def with_targets(self, y: ArrayLike) -> Self:
        """Return the same rows with other targets; both share the data."""
        other = copy.copy(self)
        other.samples = self.samples.with_targets(self.device.to_device(np.asarray(y, dtype=np.float64)))
        return other

    @property
    def cost_of_pass(self) -> float:
        """Two multiply-adds for every stored entry of X."""
        return 2.0 * self.matrix.n_stored

    def along_shift(self, w: np.ndarray, features: np.ndarray | None = None) -> float:
        """Return <shift, w> for centred columns."""
        if features is not None:
            w, some = np.zeros(self.n_features), w
            w[features] = some
        return self.matrix.along_shift(w)


def check_finite(squares: np.ndarray) -> None:
    """Raise ValueError if the sum of the squares of a column is not a number."""
    if not np.isfinite(squares).all():
        raise ValueError("X has entries that are not finite, or too large; remove or impute them.")


def sweep_matrix(matrix: SweptMatrix, losses: Losses, task: Task[Found], w: np.ndarray) -> Found:
    """Run a task in one pass over a matrix; predictions and curvatures stay on its device."""
    device = matrix.device
    found: Any
    match task:
        case Expand():
            p = None if task.p is None else device.xp.asarray(task.p)
            swept = matrix.expand(w, task.b, p, losses)
            found = Pass(totals_of(swept.sums), swept.r, Joined((swept.D,)))
        case Predict():
            found = Joined((device.to_host(matrix.predict(w)),))
        case Combine():
            found = matrix.combine(device.xp.asarray(task.a))
        case Measure():
            found = Measures(*matrix.measure(losses))
        case _:
            raise TypeError(f"{type(task).__name__} cannot run on a device.")
    return found


def draw_at_rate(xp: Any, d: DeviceArray, rate: float) -> tuple[DeviceArray, DeviceArray]:
    """Return rows and weights as :func:`~condgrad.problems.drawn_rows.sample_at_rate` does, for d of the module."""
    if rate <= 0.0:
        return xp.zeros(0, dtype=np.int64), d[:0]
    is_large = rate * d >= 1.0
    shares = xp.rint(xp.where(is_large, 0.0, rate * d) * _ONE).astype(np.int64)
    walked = xp.cumsum(shares)
    counts = _points_up_to(walked) - _points_up_to(walked - shares)
    c = xp.where(is_large, d, counts / rate)
    places = xp.flatnonzero(is_large | (counts > 0))
    return places, c[places]


def _points_up_to(walked: DeviceArray) -> DeviceArray:
    """Return how many of the points k + u_k, with u_k = 1/2 + k GOLDEN modulo 1, have been passed."""
    k = walked // _ONE
    return k + (walked % _ONE >= (_ONE // 2 + k * _TURN) % _ONE)


class DeviceRows(RowsOnDevice):
    """The rows of a matrix in the memory of a device."""

    matrix: DeviceMatrix

    def __init__(self, matrix: DeviceMatrix, samples: DeviceSamples, has_intercept: bool = False) -> None:
        self._begin(matrix, samples)
        squares, largest = matrix.measure(samples.losses)
        check_finite(squares)
        if has_intercept and isinstance(matrix, DenseOnDevice):
            shift = centring(self._means(matrix), squares)
            if shift is not None:  # the intercept absorbs it; large means then cost no digits
                matrix = matrix.with_shift(shift)
                squares, largest = matrix.measure(samples.losses)
        self.matrix, self.measures = matrix, Measures(squares, largest)

    def _means(self, matrix: DeviceMatrix) -> np.ndarray:
        v = self.samples.losses.v
        return matrix.combine(self.device.xp.full(self.n_samples, 1.0 / self.n_samples) if v is None else v)

    def _expand(self, task: Expand, w: np.ndarray) -> Pass:
        return sweep_matrix(self.matrix, self.samples.losses, task, w)

    def head(self, n_rows: int) -> DeviceRows | None:
        """Return a subsample of ``n_rows`` samples or somewhat more, evenly spread, on the device."""
        every = max(1, self.n_samples // max(1, n_rows))
        if every == 1:
            return self
        samples = self.samples.alone(self.device.to_device(spread_rows(self.n_samples, every)))
        return None if samples is None else DeviceRows(self.matrix.thinned(every), samples)

    def curvature(self, found: AnyPass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return sum_i d_i <x_i, v_k> <x_i, v_l> for all pairs of atoms; negative curvatures are replaced by zero.

        If ``n_rows`` is at most half of all samples, the sum is estimated from so many, drawn by their curvature.
        """
        assert isinstance(found, Pass)
        assert isinstance(found.d, Joined)
        c: DeviceArray = found.d.array
        rows = None
        if not self.samples.loss.is_convex:
            c = self.device.xp.maximum(c, 0.0)
        if n_rows < np.inf:
            n_rows = min(n_rows, _MOST_DRAWN)
        if n_rows <= self.n_samples / 2:
            rows, c = self._drawn(c, n_rows)
        if isinstance(atoms, AtomStack):
            H, u = self.matrix.gram(atoms.index, atoms.value, c, rows)
        else:
            V = np.array([atoms.vertex(k).to_dense(self.n_features) for k in range(len(atoms))]).T
            H, u = self.matrix.gram_of_products(np.ascontiguousarray(V), c, rows)
        total = float(c.sum())
        return H - np.outer(u, u) / total if has_intercept and total > 0.0 else H

    def _drawn(self, d: DeviceArray, n_rows: float) -> tuple[DeviceArray, DeviceArray]:
        """Return about ``n_rows`` rows and their weights, by curvature from evenly spread candidates.

        They are drawn as :func:`~condgrad.problems.drawn_rows.sample_by_curvature` does.
        """
        every = max(1, int(self.n_samples / (_CANDIDATES * n_rows)))
        candidates = self.device.to_device(spread_rows(self.n_samples, every))
        d = d[candidates] * float(every)
        total = float(d.sum())
        rate = n_rows / total if total > 0.0 else 0.0
        places, c = draw_at_rate(self.device.xp, d, rate)
        return candidates[places], c

    def with_weights(self, weight: np.ndarray) -> DeviceRows:
        """Return the same rows with other weights, such as those of a fold; both share the data."""
        known, there = self.samples.losses, self.device.to_device(np.asarray(weight, dtype=np.float64))
        return DeviceRows(self.matrix, DeviceSamples.of(self.device, self.samples.loss, known.y, there, known.o))

    def chosen(self, places: np.ndarray) -> DeviceRows | None:
        """Return the rows with weights for some samples alone, on the device; None if they have no weight."""
        weight = np.zeros(self.n_samples)
        weight[places] = self.samples.weight[places]
        return self.with_weights(weight) if weight.any() else None

    def definition(self) -> tuple[object, ...]:
        """Return shape, a digest of the data, loss, targets and weights."""
        return (self.matrix.shape, digest(self.device, self.matrix.arrays), *self.samples.definition())
