"""Samples: the outer function f(p) = sum_i weight_i f(p_i + b, y_i) of all predictions at once.

With F(w) = f(Xw), everything that a full pass needs besides the two products with X is here: the value, the
derivatives alpha_i = weight_i f'(p_i + b, y_i), the curvatures, and the best intercept b.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg import threads
from condgrad.linalg.rounding import FORMULA, UNIT, Sizes
from condgrad.linalg.support import Support
from condgrad.losses import Loss

_MOST_DOUBLINGS = 200
_STEEP = 0.05  # of L: where derivatives are that large, curvatures are about L
_WORK_PER_SAMPLE = 20  # a loss with an exponential costs about as much as twenty multiply-adds


_SMALLEST_SCALE = 1e-9  # of the loss of predicting zero, for targets that a constant predicts up to rounding


@compiled
class Samples(NamedTuple):
    """A loss with the targets and weights of all samples; the weights sum to one."""

    loss: Loss
    y: np.ndarray
    weight: np.ndarray

    def value_at(self, i, p):
        """Return weight_i f(p, y_i)."""
        return self.weight[i] * self.loss.value(p, self.y[i])

    def derivative_at(self, i, p):
        """Return weight_i f'(p, y_i)."""
        return self.weight[i] * self.loss.derivative(p, self.y[i])

    def curvature_at(self, i, p):
        """Return weight_i f''(p, y_i)."""
        return self.weight[i] * self.loss.second_derivative(p, self.y[i])


def value(samples: Samples, p: np.ndarray, b: float) -> float:
    """Return f(p) = sum_i weight_i f(p_i + b, y_i), on all cores."""
    return float(sum(threads.run(functools.partial(_value, samples, p, b), _borders(p))))


def derivatives(samples: Samples, p: np.ndarray, b: float) -> np.ndarray:
    """Return alpha, the gradient of f at p, on all cores."""
    alpha = np.empty_like(p)
    threads.run(functools.partial(_derivatives, samples, p, b, alpha), _borders(p))
    return alpha


def curvatures(samples: Samples, p: np.ndarray, b: float) -> np.ndarray:
    """Return the diagonal of the Hessian of f at p, on all cores."""
    out = np.empty_like(p)
    threads.run(functools.partial(_curvatures, samples, p, b, out), _borders(p))
    return out


def mean_size(samples: Samples, p: np.ndarray | float) -> float:
    """Return the weighted mean of |f(p_i, y_i)|."""
    return float(samples.weight @ np.abs(samples.loss.value(np.asarray(p), samples.y)))


def loss_scale(samples: Samples, p: np.ndarray) -> float:
    """Return the mean size of the loss for the predictions p of w = 0; never next to nothing."""
    return max(mean_size(samples, p), _SMALLEST_SCALE * mean_size(samples, 0.0))


class Expansion(NamedTuple):
    """What the samples tell at p: value, derivatives, curvatures, and the norms that bound the rounding of them."""

    value: float
    alpha: np.ndarray
    d: np.ndarray
    sizes: Sizes


def expand(samples: Samples, p: np.ndarray, b: float) -> Expansion:
    """Return value, derivatives and curvatures at p together, on all cores: one exponential serves all three."""
    alpha, d = np.empty_like(p), np.empty_like(p)
    parts = threads.run(functools.partial(_expand, samples, p, b, alpha, d), _borders(p))
    total, size, slope, prediction, target, balance = map(sum, zip(*parts, strict=True))
    sizes = Sizes(math.sqrt(slope), math.sqrt(prediction), math.sqrt(target), float(size), abs(balance))
    return Expansion(float(total), alpha, d, sizes)


def slope_error(samples: Samples, p: np.ndarray, b: float, seen: Expansion, delta: float, largest: float) -> float:
    """Return a bound for the norm of the errors of the derivatives.

    Predictions are off by ``delta`` in the norm and by ``largest`` in one of them, and f' with them by f'' times that.
    Unless the loss rounds relatively, its formula is taken for one of inputs that are off in their last digit, which is
    f'' (|p| + |y|) units more. Where f'' is smooth, it is that of the sample; else L bounds it (a kink may be near).
    Where there is no L, a difference of an exponential and y is taken for what its parts may be.
    """
    found, loss = seen.sizes, samples.loss
    L, unit = float(loss.smoothness()), FORMULA * UNIT
    has_kinks = not math.isfinite(loss.curvature_smoothness()) and math.isfinite(L)
    is_curved = loss.rounds_relatively and found.slope > _STEEP * L  # then a closer look at f'' would gain nothing
    if has_kinks or loss.is_quadratic or is_curved:
        inputs = 0.0 if loss.rounds_relatively else L * (found.prediction + found.target)
        return unit * (found.slope + inputs) + L * delta
    inputs, curvature = map(math.sqrt, _curved(samples, p, b, seen.d))
    if loss.rounds_relatively:
        inputs = 0.0
    elif not math.isfinite(L):
        inputs += 2.0 * found.target
    return unit * (found.slope + inputs) + 2.0 * min(curvature * largest, L * delta)  # f'' may grow on the way


def intercept_range(samples: Samples, p: np.ndarray, b: float, reach: float) -> tuple[float, float]:
    """Return bounds of the intercepts that are best for some point of a set, by tangents of a convex loss.

    ``b`` is the best intercept at p, and ``reach`` bounds the norm of the changes of p that the set allows. The tangent
    plane at p + b + step lies below F: it tells how far beyond that step F can still be as small as at p + b.
    """
    return b - _farthest(samples, p, b, reach, -1.0), b + _farthest(samples, p, b, reach, 1.0)


def _farthest(samples: Samples, p: np.ndarray, b: float, reach: float, sign: float) -> float:
    here = _tangent(samples, p, b)[0]
    step, best = (reach if reach > 0.0 else 1.0), math.inf
    for _ in range(_MOST_DOUBLINGS):
        there, slope, push = _tangent(samples, p, b + sign * step)
        if sign * push > 0.0:
            far = step + max(0.0, math.sqrt(slope) * reach + here - there) / (sign * push)
            if far >= best:
                break
            best = far
        step *= 2.0
    return 1.01 * best


def sample_by_curvature(d: np.ndarray, count: float) -> tuple[np.ndarray, np.ndarray]:
    """Return about ``count`` rows with weights c that stand for all: sum_i d_i x_i x_i' is about that of c_i x_i x_i'.

    Row i is taken with probability min(1, rate d_i) and weighs d_i divided by that. The draw is systematic (every
    1 / rate of the running sum of d), not random: the rows are spread evenly, and equal calls give equal rows.
    """
    rows, c = np.empty(d.size, dtype=np.int64), np.empty(d.size)
    size = _sample_by_curvature(d, count / d.sum(), rows, c)
    return rows[:size], c[:size]


def _borders(p: np.ndarray) -> np.ndarray:
    return threads.cut(p.size, _WORK_PER_SAMPLE * p.size)


# Unsigned indices below: signed ones could be negative, count from the end, and keep loops from vectorising.


@kernel
def _value(samples, p, b, start, stop):
    total = 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        total += samples.value_at(i, p[i] + b)
    return total


@kernel
def _derivatives(samples, p, b, alpha, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        alpha[i] = samples.derivative_at(i, p[i] + b)


@kernel
def _curvatures(samples, p, b, out, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        out[i] = samples.curvature_at(i, p[i] + b)


@kernel
def _expand(samples, p, b, alpha, d, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        alpha[i] = samples.derivative_at(i, p[i] + b)
        d[i] = samples.curvature_at(i, p[i] + b)
    total, size = 0.0, 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        value = samples.value_at(i, p[i] + b)
        total += value
        size += abs(value)
    slope, prediction, target, balance = 0.0, 0.0, 0.0, 0.0
    for i in range(np.uint64(start), np.uint64(stop)):
        v, at = samples.weight[i], p[i] + b
        slope += alpha[i] * (alpha[i] / v if v > 0.0 else 0.0)
        prediction += v * at * at
        target += v * samples.y[i] * samples.y[i]
        balance += alpha[i]
    return total, size, slope, prediction, target, balance


@kernel
def _tangent(samples, p, b):
    """Return value, squared norm of the derivatives, and their sum."""
    total, slope, balance = 0.0, 0.0, 0.0
    for i in range(np.uint64(0), np.uint64(p.shape[0])):
        derivative = samples.loss.derivative(p[i] + b, samples.y[i])
        total += samples.value_at(i, p[i] + b)
        slope += samples.weight[i] * derivative * derivative
        balance += samples.weight[i] * derivative
    return total, slope, balance


@kernel
def _curved(samples, p, b, d):
    total, curvature = 0.0, 0.0
    for i in range(np.uint64(0), np.uint64(p.shape[0])):
        v, size = samples.weight[i], abs(p[i] + b) + abs(samples.y[i])
        square = d[i] * (d[i] / v if v > 0.0 else 0.0)
        total += square * size * size
        curvature += square
    return total, curvature


@kernel
def _sample_by_curvature(d, rate, rows, c):
    size, walked = 0, 0.5
    for i in range(d.shape[0]):
        walked = walked + min(1.0, rate * d[i])
        if walked >= 1.0:
            walked = walked - 1.0
            rows[size] = i
            c[size] = max(d[i], 1.0 / rate)
            size += 1
    return size


@kernel
def rederive(samples: Samples, rows: np.ndarray, p: np.ndarray, b: float, alpha: np.ndarray) -> np.ndarray:
    """Renew ``alpha`` at the chosen rows and return by how much it changed there."""
    change = np.empty(rows.shape[0])
    for k in range(rows.shape[0]):
        i = rows[k]
        new = samples.derivative_at(i, p[i] + b)
        change[k] = new - alpha[i]
        alpha[i] = new
    return change


@kernel
def _best_intercept(samples: Samples, p: np.ndarray, q: np.ndarray, gamma: float, b: float) -> float:
    """Return the root b of h(b) = sum_i weight_i f'(p_i + gamma q_i + b), increasing for convex f.

    Newton steps, kept inside the bracket found so far and, while a side of it is still open, inside a reach that
    grows: far out on the flat tail of a loss a Newton step can be astronomic.
    """
    low, high, reach = -np.inf, np.inf, 1.0
    for k in range(200):
        slope, curvature, size = 0.0, 0.0, 0.0
        for i in range(p.shape[0]):
            at = p[i] + gamma * q[i] + b
            first, second = samples.derivative_at(i, at), samples.curvature_at(i, at)
            slope += first
            curvature += second
            size += abs(first) + second * abs(at)
        if abs(slope) <= 2.0**-52 * (1.0 + k) * size:  # rounding, of which a sum may have more than one unit
            return b
        if slope < 0.0:
            low = b
        else:
            high = b
        step = -slope / curvature if curvature > 0.0 else -np.sign(slope) * reach
        new = b + min(max(step, -reach), reach)
        reach *= 4.0
        if abs(new - b) <= 2.0**-53 * abs(b):
            return new
        if new <= low or new >= high:  # never with an open side: a step goes away from the known side
            new = 0.5 * (low + high)
        b = new
    return b


@kernel
def best_intercept(samples: Samples, p: np.ndarray, b: float) -> float:
    """Return the b that minimises f(p + b), from a first guess."""
    return _best_intercept(samples, p, p, 0.0, b)


@kernel
def line_slopes(
    samples: Samples, support: Support, p: np.ndarray, q: np.ndarray, gamma: float, b: float, has_intercept: bool
) -> tuple[float, float, float]:
    """Return phi'(gamma), phi''(gamma) and the intercept for phi(gamma) = min_b f(p + gamma q + b).

    ``q`` holds the direction at the places of ``support``. Without an intercept b is fixed and the minimum falls
    away; with one, phi'' is the Schur complement of the 2 x 2 Hessian in (gamma, b).
    """
    if has_intercept:
        b = _best_intercept(samples, p, q, gamma, b)
    first, second, mixed, twice_b = 0.0, 0.0, 0.0, 0.0
    for k in range(support.size()):
        i = support.row(k)
        at = p[i] + gamma * q[k] + b
        curvature = samples.curvature_at(i, at)
        first += samples.derivative_at(i, at) * q[k]
        second += curvature * q[k] * q[k]
        mixed += curvature * q[k]
        twice_b += curvature
    if has_intercept and twice_b > 0.0:
        second -= mixed * mixed / twice_b
    return first, second, b


@kernel
def line_value(samples: Samples, support: Support, p: np.ndarray, q: np.ndarray, gamma: float, b: float) -> float:
    """Return the sum of the terms of f(p + gamma q + b) that belong to ``support``."""
    total = 0.0
    for k in range(support.size()):
        i = support.row(k)
        total += samples.value_at(i, p[i] + gamma * q[k] + b)
    return total


@kernel
def line_curvature(samples: Samples, support: Support, q: np.ndarray) -> float:
    """Return sum_i weight_i q_i^2: times L, the most that f can curve along q."""
    total = 0.0
    for k in range(support.size()):
        total += samples.weight[support.row(k)] * q[k] * q[k]
    return total


@kernel
def minimise_on_line(
    samples: Samples,
    support: Support,
    p: np.ndarray,
    q: np.ndarray,
    b: float,
    has_intercept: bool,
    max_step: float,
    is_quadratic: bool,
) -> float:
    """Return the gamma in [0, max_step] that minimises phi (a root of phi' if phi is not convex).

    Newton on phi' inside a bracket [low, high] with phi'(low) < 0; one Newton step is exact for a quadratic.
    """
    first, second, b = line_slopes(samples, support, p, q, 0.0, b, has_intercept)
    if first >= 0.0:
        return 0.0
    low, high, high_is_tried, gamma = 0.0, max_step, False, 0.0
    for _ in range(100):
        new = gamma - first / second if second > 0.0 else high
        if is_quadratic:
            return min(new, max_step)
        # Before the bracket is asked: at the root a rounding error may point out of it. A Newton step that short is the
        # last one, for its successor would be of the order of its square.
        if second > 0.0 and abs(new - gamma) <= 1e-10 * gamma:
            return min(max(new, low), high)
        if new >= high or new <= low:
            new = 0.5 * (low + high) if high_is_tried else high
        if abs(new - gamma) <= 1e-15 * new:  # the bracket has closed
            return new
        gamma = new
        first, second, b = line_slopes(samples, support, p, q, gamma, b, has_intercept)
        if first > 0.0:
            high, high_is_tried = gamma, True
        elif gamma == max_step or first == 0.0:
            return gamma
        else:
            low = gamma
    return gamma
