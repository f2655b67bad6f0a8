"""The course of a stochastic run, recorded after the same numbers of steps for every method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import condgrad as cg

METHODS = ("sfw", "mokhtari", "lu-freund")
SEEDS = (0, 1, 2, 3, 4)


def batch_size(n: int) -> int:
    """Return b = floor(n / 100), the paper's."""
    return max(1, n // 100)


def recorded_steps(problem: cg.Problem, epochs: float, points: int = 60) -> list[int]:
    """Return 0 and about ``points`` numbers of steps, evenly spaced on a logarithmic axis."""
    last = max(1, int(epochs * problem.n_samples / batch_size(problem.n_samples)))
    return [0, *np.unique(np.geomspace(1, last, points).round().astype(int)).tolist()]


def course(problem: cg.Problem, method: str, seed: int, steps: list[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Yield gradient evaluations and iterate after each number of steps, from w = 0 on.

    The solver is stepped by hand, because the figure needs the iterate after few steps and after many, and
    ``minimize`` returns the best iterate that it met rather than the last.
    """
    solver: Any = cg.solvers.by_name(method)(batch_size=batch_size(problem.n_samples), sampling="batch")
    state, t = solver.init(problem, np.zeros(problem.n_features), seed), 0
    for stop in steps:
        while t < stop:
            t += solver.advance(problem, state, t, stop - t, math.inf)
        yield state.gradient_evaluations, state.w
