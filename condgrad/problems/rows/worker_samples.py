"""WorkerSamples: the loss of all samples at once, with targets, weights and predictions at the workers of a cluster."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condgrad.linalg import convert
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.rounding import Sizes
from condgrad.losses import Loss
from condgrad.problems.intercepts import bounds_of_intercepts, newton_intercept
from condgrad.problems.offset import NoOffset, Offset, Offsets, as_offset
from condgrad.problems.rows.parts import Union
from condgrad.problems.samples import Samples
from condgrad.problems.totals import Totals, errors_of_predictions, scale_of_losses
from condgrad.storage.cluster_rows import ClusterRows
from condgrad.storage.partitions import Partition

Question = Callable[..., Any]  # of the samples of a partition, their predictions, and more


class WorkerPredictions(NamedTuple):
    """One future for the predictions of each partition."""

    futures: list[Any]

    def at(self, firsts: np.ndarray) -> dict[int, Any]:
        """Return the futures by the first sample of their partition."""
        return dict(zip(firsts.tolist(), self.futures, strict=False))


class WorkerSamples:
    """What :class:`~condgrad.problems.samples.Samples` offers to problems, where one number a sample is too much here.

    Every sum over the samples is a question to the workers. Predictions p are futures, or None where they are all zero.

    Attributes
    ----------
    rows : ClusterRows
        The partitions, whose weights, if there are any, sum to one.
    loss : Loss
    equal : float or None
        The weight of every sample, if there are no others.
    """

    def __init__(self, rows: ClusterRows, loss: Loss) -> None:
        self.loss, self.equal = loss, None if rows.has_weights else 1.0 / rows.shape[0]
        self.rows = with_checked_numbers(rows)

    @functools.cached_property
    def y(self) -> np.ndarray:
        """The targets, which come here when they are asked for: 8 bytes a sample."""
        y = self.rows.y
        assert y is not None
        return y

    @functools.cached_property
    def weight(self) -> np.ndarray:
        """The weights, which come here when they are asked for: 8 bytes a sample."""
        return convert.as_weights(self.rows.weight, self.rows.shape[0])

    @functools.cached_property
    def offset(self) -> Offsets:
        """The offsets, which come here when they are asked for: 8 bytes a sample."""
        return as_offset(self.rows.offset, self.rows.shape[0])

    def check(self, has_intercept: bool) -> None:
        """Raise ValueError if the loss is not defined for the targets, or no intercept is best for them."""
        kinds: Union = self._ask(None, _kinds)
        if has_intercept:
            self.loss.check_intercept(kinds.features)

    def definition(self) -> tuple[object, ...]:
        """Return the loss and a checksum of the targets, weights and offsets of each partition."""
        return (self.loss, self._ask(None, _checksum))

    # What problems ask for.

    def value(self, p: WorkerPredictions | None, b: float) -> float:
        """Return f(p) = sum_i weight_i f(p_i + b, y_i)."""
        return self._sums(p, b).totals.value

    def derivatives(self, p: np.ndarray, b: float) -> np.ndarray:
        """Return the gradient of f at predictions that are here."""
        return Samples(self.loss, self.y, self.weight, self.offset).derivatives(p, b)

    def best_intercept(self, p: WorkerPredictions | None, b: float) -> float:
        """Return the b that minimises f(p + b), starting from the guess ``b``."""
        return newton_intercept(lambda b: self._sums(p, b).slopes, b)

    def tangent(self, p: WorkerPredictions | None, b: float) -> tuple[float, float, float]:
        """Return value, squared norm of the derivatives, and their sum."""
        totals = self._sums(p, b).totals
        return totals.value, totals.slope, totals.balance

    def intercept_range(
        self, p: WorkerPredictions | None, b: float, reach: float, level: float | None = None
    ) -> tuple[float, float]:
        """Return bounds of the best intercepts over all points of a set, from tangents of a convex loss."""
        return bounds_of_intercepts(self, p, b, reach, level)

    def largest_value(self, size: float) -> float:
        """Return an upper bound of f for predictions of at most this size, for a convex loss."""
        return float(self._ask(None, _largest_value, size))

    def mean_size(self, p: WorkerPredictions | None, b: float = 0.0) -> float:
        """Return the weighted mean of |f(p_i + b, y_i)|."""
        return self._sums(p, b).totals.size

    def loss_scale(self, p: WorkerPredictions | None, b: float = 0.0) -> float:
        """Return the mean absolute loss for the predictions of w = 0, with a positive lower limit."""
        return scale_of_losses(self.mean_size(p, b), self.mean_size(None))

    def least_value(self) -> float:
        """Return a lower bound of f over all predictions, rounding included."""
        return float(self._ask(None, _least_value))

    def derivative_size(self) -> float:
        """Return the weighted mean of |f'(0, y_i)|."""
        return float(self._ask(None, _derivative_size))

    def prediction_errors(self, sizes: Sizes, n_terms: int, spread: float, size: float) -> tuple[float, float]:
        """Return bounds of the errors of predictions, in the norm and of each."""
        return errors_of_predictions(self._size_of_offset, sizes, n_terms, spread, size)

    @functools.cached_property
    def _size_of_offset(self) -> Offsets:
        """No offset values, but a bound of their sizes."""
        if not self.rows.has_offsets:
            return NoOffset()
        return Offset(np.empty(0), float(np.abs(self._ask(None, _offset_sizes).features).max()))

    def _sums(self, p: WorkerPredictions | None, b: float) -> SampleSums:
        found: SampleSums = self._ask(p, _sums_at, b)
        return found

    def _ask(self, p: WorkerPredictions | None, question: Question, *args: Any) -> Any:
        """Return the sum of the answers of all partitions to a question about their samples."""
        predicted = [None] * self.rows.n_chunks if p is None else p.futures
        return self.rows.ask_pairs(predicted, _answer, question, self.loss, self.equal, *args)


@dataclasses.dataclass(frozen=True)
class SampleSums:
    """Sums over samples at p + b; ``slopes`` are those by the intercept: first and second one, and what rounds."""

    totals: Totals
    slopes: tuple[float, float, float]

    def __add__(self, other: SampleSums) -> SampleSums:
        first, second, size = (one + two for one, two in zip(self.slopes, other.slopes, strict=True))
        return SampleSums(self.totals + other.totals, (first, second, size))


def samples_of(part: Partition, loss: Loss, equal: float | None) -> Samples:
    """Return the samples of a partition, with their weights in the whole sum."""
    assert part.y is not None
    weight = part.weight if equal is None else np.full(part.y.size, equal)
    assert weight is not None
    return Samples(loss, part.y, weight, as_offset(part.offset, part.y.size))


def with_checked_numbers(rows: ClusterRows) -> ClusterRows:
    """Return rows that have targets; weights sum to one, as :func:`condgrad.linalg.convert.as_weights` makes them."""
    if not rows.has_targets:
        raise ValueError(f"y is missing: {rows!r} has no targets; pass y.")
    if not rows.has_weights:
        return rows
    extremes: np.ndarray = rows.ask(rows.partitions, _extremes).features
    convert.as_weights(extremes, extremes.size)  # raises if they cannot be weights
    largest = float(extremes[-1])
    return rows.changed(_divided, largest).changed(_divided, float(rows.ask(rows.partitions, _total, largest)))


# The tasks of workers -------------------------------------------------------------------------------------------------


def _answer(
    part: Partition, p: np.ndarray | None, question: Question, loss: Loss, equal: float | None, *args: Any
) -> Any:
    samples = samples_of(part, loss, equal)
    return question(samples, np.zeros(samples.y.size) if p is None else p, *args)


def _sums_at(samples: Samples, p: np.ndarray, b: float) -> SampleSums:
    totals, alpha, d = samples.expand(p, b)
    size = float(np.abs(alpha).sum() + d @ np.abs(p + b))
    return SampleSums(totals, (totals.balance, float(d.sum()), size))


def _kinds(samples: Samples, p: np.ndarray) -> Union:
    """Check the targets of a partition, and return the smallest and the largest that have a weight."""
    samples.loss.check_targets(samples.y)
    y = samples.y[samples.weight > 0.0]
    return Union(np.unique([y.min(), y.max()]) if y.size > 0 else y)


def _checksum(samples: Samples, p: np.ndarray) -> tuple[str, ...]:
    return (fingerprint_of(samples.definition()),)


def _offset_sizes(samples: Samples, p: np.ndarray) -> Union:
    return Union(np.array([samples.offset.largest_size()]))


def _largest_value(samples: Samples, p: np.ndarray, size: float) -> float:
    return samples.largest_value(size)


def _least_value(samples: Samples, p: np.ndarray) -> float:
    return samples.least_value()


def _derivative_size(samples: Samples, p: np.ndarray) -> float:
    return samples.derivative_size()


def _extremes(part: Partition) -> Union:
    assert part.weight is not None
    return Union(np.unique([part.weight.min(), part.weight.max()]))


def _total(part: Partition, largest: float) -> float:
    assert part.weight is not None
    return float((part.weight / largest).sum())


def _divided(part: Partition, by: float) -> Partition:
    assert part.weight is not None
    return part._replace(weight=part.weight / by)
