"""Samples: the outer function f(p) = sum_i weight_i f(p_i + b + o_i, y_i) of all predictions at once.

With F(w) = f(Xw), this module contains everything that a full pass needs besides the two products with X: the value,
the derivatives alpha_i = weight_i f'(p_i + b + o_i, y_i), the curvatures, the best intercept b, and f along a line. The
offsets o_i are added here and nowhere else; the formulas below leave them out.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg import threads
from condgrad.linalg.rounding import Sizes, gamma
from condgrad.linalg.support import Support
from condgrad.losses import Loss
from condgrad.problems import sample_lines
from condgrad.problems.intercepts import bounds_of_intercepts
from condgrad.problems.offset import EVERY, NoOffset, Offsets
from condgrad.problems.totals import Totals, errors_of_predictions, scale_of_losses

_PIECE = 1024  # samples whose values are kept while their sums are computed
_WORK_PER_SAMPLE = 20  # cost in multiply-adds: that of a loss with an exponential, about


class Expansion(NamedTuple):
    """f at p to second order: the sums, the derivatives ``alpha`` and the curvatures ``d`` of all samples."""

    totals: Totals
    alpha: np.ndarray
    d: np.ndarray


@compiled
class Samples(NamedTuple):
    """A loss with the targets, weights and offsets of all samples; the weights sum to one."""

    loss: Loss
    y: np.ndarray
    weight: np.ndarray
    offset: Offsets = NoOffset()

    # One sample, in kernels.

    def value_at(self, i, p):
        """Return weight_i f(p, y_i)."""
        return self.weight[i] * self.loss.value(self.offset.added_to(i, p), self.y[i])

    def derivative_at(self, i, p):
        """Return weight_i f'(p, y_i)."""
        return self.weight[i] * self.loss.derivative(self.offset.added_to(i, p), self.y[i])

    def curvature_at(self, i, p):
        """Return weight_i f''(p, y_i)."""
        return self.weight[i] * self.loss.second_derivative(self.offset.added_to(i, p), self.y[i])

    # All samples, on all cores, from Python.

    def value(self, p: np.ndarray, b: float) -> float:
        """Return f(p) = sum_i weight_i f(p_i + b, y_i)."""
        return float(sum(threads.run(functools.partial(value_of_range, self, p, b), _borders(p))))

    def derivatives(self, p: np.ndarray, b: float) -> np.ndarray:
        """Return alpha, the gradient of f at p."""
        alpha = np.empty_like(p)
        threads.run(functools.partial(_derivatives, self, p, b, alpha), _borders(p))
        return alpha

    def curvatures(self, p: np.ndarray, b: float) -> np.ndarray:
        """Return the diagonal of the Hessian of f at p."""
        d = np.empty_like(p)
        threads.run(functools.partial(_curvatures, self, p, b, d), _borders(p))
        return d

    def expand(self, p: np.ndarray, b: float) -> Expansion:
        """Return sums, derivatives and curvatures at p together: they share one exponential per sample."""
        alpha, d = np.empty_like(p), np.empty_like(p)

        def expand_range(start: int, stop: int) -> Totals:
            part, totals = slice(start, stop), np.zeros(len(Totals._fields))
            expand_block(self, start, p[part], b, alpha[part], d[part], totals)
            return Totals(*totals.tolist())

        return Expansion(functools.reduce(Totals.__add__, threads.run(expand_range, _borders(p))), alpha, d)

    def intercept_range(self, p: np.ndarray, b: float, reach: float, level: float | None = None) -> tuple[float, float]:
        """Return bounds of the best intercepts over all points of a set, from tangents of a convex loss.

        ``b`` is the best intercept at p, and ``reach`` bounds the norm of the changes from p to points of the set. The
        tangent plane at p + b + step lies below F: so F can be at most ``level`` only up to some distance from b. The
        default is the value at p + b, if p belongs to a point of the set.
        """
        return bounds_of_intercepts(self, p, b, reach, level)

    def tangent(self, p: np.ndarray, b: float) -> tuple[float, float, float]:
        """Return value, squared norm of the derivatives, and their sum."""
        value, slope, balance = _tangent(self, p, b)
        return value, slope, balance

    def largest_value(self, size: float) -> float:
        """Return an upper bound of f for predictions of at most this size, for a convex loss: its ends are largest."""
        ends = np.maximum(self._losses(np.full(self.y.size, size)), self._losses(np.full(self.y.size, -size)))
        return float(self.weight @ ends)

    def _losses(self, p: np.ndarray) -> np.ndarray:
        """Return f(p_i, y_i) for every sample."""
        losses: np.ndarray = self.loss.value(self.offset.added_to(EVERY, p), self.y)
        return losses

    def mean_size(self, p: np.ndarray | float, b: float = 0.0) -> float:
        """Return the weighted mean of |f(p_i + b, y_i)|."""
        return float(self.weight @ np.abs(self._losses(np.asarray(p) + b)))

    def loss_scale(self, p: np.ndarray, b: float = 0.0) -> float:
        """Return the mean absolute loss for the predictions p + b of w = 0, with a positive lower limit."""
        at_zero = self.mean_size(0.0)
        return scale_of_losses(self.mean_size(p, b) if b != 0.0 or p.any() else at_zero, at_zero)

    def least_value(self) -> float:
        """Return a lower bound of f over all predictions, rounding included."""
        least = self.loss.least_value(self.y)
        if not least.any():
            return 0.0
        least = np.where(self.weight > 0.0, least, 0.0)
        return float(self.weight @ least) - 2.0 * gamma(least.size + 8) * float(self.weight @ np.abs(least))

    def derivative_size(self) -> float:
        """Return the weighted mean of |f'(0, y_i)|."""
        p = self.offset.added_to(EVERY, np.zeros(self.y.size))
        return float(self.weight @ np.abs(self.loss.derivative(p, self.y)))

    def prediction_errors(self, sizes: Sizes, n_terms: int, spread: float, size: float) -> tuple[float, float]:
        """Return bounds of the errors of the predictions, in the norm and in each entry.

        A prediction sums up at most ``n_terms`` products, whose sizes have at most the norm ``spread``; x_i'w and the
        intercept together have at most ``size``. An offset is one more rounded sum.
        """
        return errors_of_predictions(self.offset, sizes, n_terms, spread, size)

    def chosen(self, places: Any) -> Samples:
        """Return the samples at these places, with their weights in the whole sum."""
        return Samples(self.loss, self.y[places], self.weight[places], self.offset.chosen(places))

    def alone(self, places: Any) -> Samples | None:
        """Return the samples at these places as all there are, with weights that sum to one; None without weight."""
        weight = self.weight[places]
        if not weight.any():
            return None
        return self.chosen(places)._replace(y=np.ascontiguousarray(self.y[places]), weight=weight / weight.sum())

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the samples in a fingerprint."""
        return (self.loss, self.y, self.weight, *self.offset.definition())

    # From kernels and from Python: see :mod:`condgrad.problems.sample_lines`. The entries of q belong to the samples
    # in ``support``.

    def best_intercept(self, p: np.ndarray, b: float) -> float:
        """Return the b that minimises f(p + b), starting from the guess ``b``."""
        return sample_lines.best_intercept(self, p, p, 0.0, b)

    def line_slopes(
        self, support: Support, p: np.ndarray, q: np.ndarray, gamma: float, b: float, has_intercept: bool
    ) -> tuple[float, float, float]:
        """Return phi'(gamma), phi''(gamma) and the intercept for phi(gamma) = min_b f(p + gamma q + b)."""
        return sample_lines.line_slopes(self, support, p, q, gamma, b, has_intercept)

    def line_value(self, support: Support, p: np.ndarray, q: np.ndarray, gamma: float, b: float) -> float:
        """Return the sum of the terms of f(p + gamma q + b) that belong to ``support``."""
        return sample_lines.line_value(self, support, p, q, gamma, b)

    def line_curvature(self, support: Support, q: np.ndarray) -> float:
        """Return sum_i weight_i q_i^2; times L it bounds the curvature of f along q."""
        return sample_lines.line_curvature(self, support, q)

    def minimise_on_line(
        self,
        support: Support,
        p: np.ndarray,
        q: np.ndarray,
        b: float,
        has_intercept: bool,
        max_step: float,
        is_quadratic: bool,
    ) -> float:
        """Return the gamma in [0, max_step] that minimises phi (a root of phi' if phi is not convex)."""
        return sample_lines.minimise_on_line(self, support, p, q, b, has_intercept, max_step, is_quadratic)

    def rederive(self, rows: np.ndarray, p: np.ndarray, b: float, alpha: np.ndarray) -> np.ndarray:
        """Recompute ``alpha`` at the chosen rows and return its changes there."""
        return _rederive(self, rows, p, b, alpha)


def _borders(p: np.ndarray) -> np.ndarray:
    return threads.cut(p.size, _WORK_PER_SAMPLE * p.size)


# The indices below are unsigned: numba lets negative signed indices count from the end, which prevents vectorisation.


@kernel
def value_of_range(samples, p, b, start, stop):
    """Return the sum of weight_i f(p_i + b, y_i) over a range of samples."""
    total = 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        total += samples.value_at(i, p[i] + b)
    return total


@kernel
def _derivatives(samples, p, b, alpha, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        alpha[i] = samples.derivative_at(i, p[i] + b)


@kernel
def _curvatures(samples, p, b, d, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        d[i] = samples.curvature_at(i, p[i] + b)


@kernel
def expand_block(samples, first, p, b, alpha, d, totals):
    """Fill ``alpha`` and ``d`` for the samples first, first + 1, ... with predictions p, and add to the totals."""
    values, start = np.empty(min(p.shape[0], _PIECE)), np.uint64(first)
    for begin in range(0, p.shape[0], _PIECE):
        end, total, size = min(begin + _PIECE, p.shape[0]), 0.0, 0.0
        place = np.uint64(begin)
        for q in range(np.uint64(end - begin)):  # all three before one is stored, as in derive_block
            k = place + q
            slope, curvature = samples.derivative_at(start + k, p[k] + b), samples.curvature_at(start + k, p[k] + b)
            value = samples.value_at(start + k, p[k] + b)
            alpha[k], d[k], values[q] = slope, curvature, value
        for q in range(np.uint64(end - begin)):
            total += values[q]
            size += abs(values[q])
        totals[0] += total
        totals[1] += size
        _add_sums(samples, first, p, b, alpha, d, totals, begin, end)


@kernel
def derive_block(samples, first, p, b, alpha, d):
    """Fill in the derivatives and the curvatures of the samples first, first + 1, ... with predictions p."""
    start = np.uint64(first)
    for k in range(np.uint64(p.shape[0])):
        # Both before either is stored: the compiler takes no number for known after that, such as an exponential.
        slope, curvature = samples.derivative_at(start + k, p[k] + b), samples.curvature_at(start + k, p[k] + b)
        alpha[k], d[k] = slope, curvature


@kernel
def total_block(samples, first, p, b, alpha, d, totals):
    """Add the samples first, first + 1, ... to the totals, with predictions p and what belongs to them."""
    start, total, size = np.uint64(first), 0.0, 0.0
    for k in range(np.uint64(p.shape[0])):
        value = samples.value_at(start + k, p[k] + b)
        total += value
        size += abs(value)
    totals[0] += total
    totals[1] += size
    _add_sums(samples, first, p, b, alpha, d, totals, 0, p.shape[0])


@kernel
def _add_sums(samples, first, p, b, alpha, d, totals, begin, end):
    """Add the samples first + begin, ..., first + end - 1 to the totals but those of the values, the first two."""
    start = np.uint64(first)
    slope, prediction, target, balance, inputs, curvature = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(np.uint64(begin), np.uint64(end)):
        v, y, at = samples.weight[start + k], samples.y[start + k], samples.offset.added_to(start + k, p[k] + b)
        square, span = d[k] * (d[k] / v if v > 0.0 else 0.0), abs(at) + abs(y)
        slope += alpha[k] * (alpha[k] / v if v > 0.0 else 0.0)
        prediction += v * at * at
        target += v * y * y
        balance += alpha[k]
        inputs += square * span * span
        curvature += square
    sums = (slope, prediction, target, balance, inputs, curvature)
    for k in range(len(sums)):
        totals[2 + k] += sums[k]


@kernel
def _tangent(samples, p, b):
    """Return value, squared norm of the derivatives, and their sum."""
    total, slope, balance = 0.0, 0.0, 0.0
    for i in range(np.uint64(0), np.uint64(p.shape[0])):
        derivative = samples.loss.derivative(samples.offset.added_to(i, p[i] + b), samples.y[i])
        total += samples.value_at(i, p[i] + b)
        slope += samples.weight[i] * derivative * derivative
        balance += samples.weight[i] * derivative
    return total, slope, balance


@kernel
def _rederive(samples: Samples, rows: np.ndarray, p: np.ndarray, b: float, alpha: np.ndarray) -> np.ndarray:
    change = np.empty(rows.shape[0])
    for k in range(rows.shape[0]):
        i = rows[k]
        new = samples.derivative_at(i, p[i] + b)
        change[k] = new - alpha[i]
        alpha[i] = new
    return change
