"""Kernels of the outer function f(p) = sum_i weight_i f(p_i + b, y_i) along a line p + gamma q, and of its best b.

Python and other kernels call them through :class:`~condgrad.problems.samples.Samples`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.roots import Bracket
from condgrad.linalg.support import Support
from condgrad.problems.offset import Offsets


class Terms(Protocol):
    """The methods of samples that these kernels use: weight_i f(p, y_i) and its derivatives."""

    @property
    def weight(self) -> np.ndarray:
        """The weights, which sum to one."""

    @property
    def offset(self) -> Offsets:
        """The offsets, which the methods below add to p."""

    def value_at(self, i: int, p: float) -> float:
        """Return weight_i f(p, y_i)."""

    def derivative_at(self, i: int, p: float) -> float:
        """Return weight_i f'(p, y_i)."""

    def curvature_at(self, i: int, p: float) -> float:
        """Return weight_i f''(p, y_i)."""


@kernel
def best_intercept(samples: Terms, p: np.ndarray, q: np.ndarray, gamma: float, b: float) -> float:
    """Return the root b of h(b) = sum_i weight_i f'(p_i + gamma q_i + b), increasing for convex f.

    It is found by Newton steps in a bracket; while one side of the bracket is infinite, the length of a step is
    limited, by a limit that grows.
    """
    bracket, longest = Bracket(-np.inf, np.inf), 1.0
    for k in range(200):
        slope, curvature, size = 0.0, 0.0, 0.0
        for i in range(p.shape[0]):
            at = p[i] + gamma * q[i] + b
            first, second = samples.derivative_at(i, at), samples.curvature_at(i, at)
            slope += first
            curvature += second
            size += abs(first) + second * abs(samples.offset.added_to(i, at))
        # Stop where the slope is rounding (a sum may be wrong by more than one unit), or the step would not change b.
        if abs(slope) <= max(2.0**-52 * (1.0 + k) * size, 2.0**-53 * abs(b) * curvature):
            return b
        bracket, b = bracket.after(b, slope, curvature, b - longest, b + longest)
        longest *= 4.0
    return b


@kernel
def line_slopes(
    samples: Terms, support: Support, p: np.ndarray, q: np.ndarray, gamma: float, b: float, has_intercept: bool
) -> tuple[float, float, float]:
    """Return phi'(gamma), phi''(gamma) and the intercept for phi(gamma) = min_b f(p + gamma q + b).

    ``q`` holds the direction at the places of ``support``. Without an intercept b is fixed and there is no minimum
    over b; with an intercept, phi'' is the Schur complement of the 2 x 2 Hessian in (gamma, b).
    """
    if has_intercept:
        b = best_intercept(samples, p, q, gamma, b)
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
def line_value(samples: Terms, support: Support, p: np.ndarray, q: np.ndarray, gamma: float, b: float) -> float:
    """Return the sum of the terms of f(p + gamma q + b) that belong to ``support``."""
    total = 0.0
    for k in range(support.size()):
        i = support.row(k)
        total += samples.value_at(i, p[i] + gamma * q[k] + b)
    return total


@kernel
def line_curvature(samples: Terms, support: Support, q: np.ndarray) -> float:
    """Return sum_i weight_i q_i^2; times L it bounds the curvature of f along q."""
    total = 0.0
    for k in range(support.size()):
        total += samples.weight[support.row(k)] * q[k] * q[k]
    return total


@kernel
def minimise_on_line(
    samples: Terms,
    support: Support,
    p: np.ndarray,
    q: np.ndarray,
    b: float,
    has_intercept: bool,
    max_step: float,
    is_quadratic: bool,
) -> float:
    """Return the gamma in [0, max_step] that minimises phi (a root of phi' if phi is not convex).

    It is found by Newton steps on phi' in a bracket; the upper end of the bracket is finite once phi' was positive
    somewhere. For a quadratic one Newton step is exact.
    """
    first, second, b = line_slopes(samples, support, p, q, 0.0, b, has_intercept)
    if first >= 0.0:
        return 0.0
    if is_quadratic:
        return min(-first / second, max_step) if second > 0.0 else max_step
    bracket, gamma = Bracket(0.0, np.inf), 0.0
    for _ in range(100):
        # A Newton step this short is the last one: the next would be of the order of its square. The bracket is not
        # updated, because at the root a rounding error may point out of it.
        if second > 0.0 and abs(first) <= 1e-10 * gamma * second:
            return min(max(gamma - first / second, bracket.low), min(bracket.high, max_step))
        bracket, new = bracket.after(gamma, first, second, bracket.low, max_step)
        if abs(new - gamma) <= 1e-15 * new:  # the bracket has closed
            return new
        gamma = new
        first, second, b = line_slopes(samples, support, p, q, gamma, b, has_intercept)
        if first == 0.0 or (gamma == max_step and first < 0.0):
            return gamma
    return gamma
