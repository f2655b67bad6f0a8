"""Which radius predicts samples best that were held out: the choice behind radius=None."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from condgrad.linalg.device.arrays import on_host
from condgrad.linalg.interrupts import time_is_over
from condgrad.paths.smooth import Found, solutions
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Status

_GROWTH = 1.5  # factor from one radius to the next
_BEFORE, _AFTER = 3, 20  # radii below and above the first guess: from 0.3 to 3300 times it
_BETTER = 1e-3  # share of the loss of a constant by which a larger radius must predict held-out samples better
_WORSE = 1e-2  # share of it by which a radius must predict them worse, so that the search ends: losses have plateaus
_TOL, _MOST_EPOCHS = 1e-2, 300.0  # of the fits: relative gap, and most epochs of one of them
_PARTS = 5  # a part of so many is held out
_FEWEST, _ENOUGH = 30, 1000  # kinds of samples: with fewer nothing is held out; so many need not be held out
_FEW_KINDS = 10  # samples per kind, in the mean, from which on fewer kinds than that are no obstacle
INSIDE = 1e-3  # distance of a solution to the boundary, over the radius, beyond which the set does not bind
_MOST_SAMPLES = 100_000  # that are fitted: with more a radius is chosen for some of them, evenly spread
_FINE = 997.0  # parts per standard deviation of a random score, by which samples are dealt


def best_held_out(
    problem: Problem | OutputsProblem, make: Callable[[float], Any], first: float, least: float = 0.0
) -> float:
    """Return the radius whose solution predicts held-out samples best, or the first guess where none can be held out.

    ``first`` is what the first guess exceeds ``least`` by, the smallest radius of all. Radii grow from a third of it
    until they predict worse, or nearly without an error, or until the time of the call is over. One fifth of the
    samples is held out, or several fifths in turn, until these are a thousand.
    """
    pairs = [] if time_is_over() else _pairs(problem.part(_MOST_SAMPLES) or problem)
    sizes = first * _GROWTH ** np.arange(-_BEFORE, _AFTER + 1.0)
    radii = [least + two_digits(size) for size in sizes.tolist()]
    limits: dict[str, Any] = {"max_epochs": _MOST_EPOCHS, "random_state": 0}
    scale = problem.loss_scale()
    walks = [solutions(fitted, make, "auto", radii, at_once=1, tol=_TOL, **limits) for fitted, _ in pairs]
    best, lowest = least + first, math.inf
    for radius, *found in zip(radii, *walks, strict=False) if pairs else ():
        if any(own.status is Status.MAX_TIME for own in found):
            break
        each = zip(pairs, found, strict=True)
        loss = float(np.mean([held.mean_loss(own.w, own.intercept) for (_, held), own in each]))
        if loss < lowest - _BETTER * scale or lowest == math.inf:
            best, lowest = radius, loss
        is_enough = loss > lowest + _WORSE * scale or abs(lowest) <= _BETTER * scale
        if is_enough or time_is_over() or not _binds(make(radius), radius, found):
            break
    return best


def _binds(constraint: Any, radius: float, found: Sequence[Found]) -> bool:
    """Return whether a larger radius would change one of the solutions."""
    return any(-constraint.violation(each.w) <= INSIDE * radius for each in found)


def two_digits(radius: float) -> float:
    """Return a radius rounded to two digits."""
    return float(f"{radius:.1e}")


def _pairs(problem: Problem | OutputsProblem) -> list[tuple[Any, Any]]:
    """Return pairs of problems on most samples, and on those held out; none where there are too few for that.

    Samples are dealt by a random linear score of their features: so equal ones are on the same side, and it does not
    matter in which order they come, in which form or unit, and whether one is repeated or has the weight 2. Many
    samples of few kinds are dealt at random.
    """
    score, weight = _random_score(problem)
    score -= weight @ score
    size = math.sqrt(float(weight @ score**2))
    if not 0.0 < size < math.inf:
        return []
    place = np.floor(score * (_FINE * _PARTS / size))
    n_kinds = np.unique(place[weight > 0.0]).size
    if n_kinds < _FEWEST:
        n_kinds = place.size
        if n_kinds < _FEW_KINDS * _FEWEST:
            return []
        place = np.random.default_rng(0).permutation(n_kinds)
    part_of = place % _PARTS
    pairs = []
    for k in range(min(_PARTS, math.ceil(_ENOUGH * _PARTS / n_kinds))):
        fitted, held = (problem.chosen(np.flatnonzero(is_in)) for is_in in (part_of != k, part_of == k))
        if fitted is not None and held is not None:
            pairs.append((fitted, held))
    return pairs


def _random_score(problem: Problem | OutputsProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return a random linear score of all samples, and their weights."""
    rng = np.random.default_rng(0)
    if isinstance(problem, Problem):
        return problem.rows.dot(rng.standard_normal(problem.n_features)), problem.samples.weight
    return on_host(problem.matrix.dot_each(rng.standard_normal((1, problem.n_columns)))[0]), problem.weight
