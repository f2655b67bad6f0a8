"""The best intercept, and how far away it can be, from sums over samples that are made anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from condgrad.linalg.roots import Bracket
from condgrad.linalg.rounding import UNIT

_MOST_TRIES = 200  # distances at which tangents are tried
_FEW, _LEAP = 50, 1024.0  # so many of them are doubled; after that, if none has a slope, rounding hides it: they leap
_MOST_STEPS = 200  # Newton steps to the best intercept


class WithTangents(Protocol):
    """The losses of all samples, in memory or elsewhere, as far as bounds of intercepts use them."""

    def tangent(self, p: Any, b: float) -> tuple[float, float, float]:
        """Return value, squared norm of the derivatives, and their sum at the predictions p + b."""


def bounds_of_intercepts(
    samples: WithTangents, p: Any, b: float, reach: float, level: float | None
) -> tuple[float, float]:
    """Return what ``Samples.intercept_range`` describes."""
    level = samples.tangent(p, b)[0] if level is None else level
    return b - _farthest(samples, p, b, reach, level, -1.0), b + _farthest(samples, p, b, reach, level, 1.0)


def newton_intercept(slopes: Callable[[float], tuple[float, float, float]], b: float) -> float:
    """Return the root of the first of ``slopes`` at b: the derivative by the intercept, its own, and what rounds.

    These are the steps of :func:`condgrad.problems.sample_lines.best_intercept`, for sums that are made elsewhere.
    """
    bracket, longest = Bracket(-math.inf, math.inf), 1.0
    for k in range(_MOST_STEPS):
        slope, curvature, size = slopes(b)
        # Stop where the slope is rounding, or the step would not change b.
        if abs(slope) <= max(2.0 * UNIT * (1.0 + k) * size, UNIT * abs(b) * curvature):
            break
        bracket, b = bracket.after(b, slope, curvature, b - longest, b + longest)
        longest *= 4.0
    return float(b)


def _farthest(samples: WithTangents, p: Any, b: float, reach: float, level: float, sign: float) -> float:
    step, best = (reach if reach > 0.0 else 1.0), math.inf
    for k in range(_MOST_TRIES):
        there, slope, push = samples.tangent(p, b + sign * step)
        if sign * push > 0.0:
            far = step + max(0.0, math.sqrt(slope) * reach + level - there) / (sign * push)
            if far >= best:
                break
            best = far
        step *= 2.0 if k < _FEW or best < math.inf else _LEAP
    return 1.01 * best
