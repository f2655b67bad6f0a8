"""Which radius has a given multiplier: where grids of radii end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad import constraints
from condgrad.constraints import best_vertex
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.interrupts import time_is_over
from condgrad.linalg.roots import Bracket
from condgrad.paths.allowed_sets import (
    AllowedSets,
    at_radius_zero,
    least_radius,
    leaves_out_zero,
    minimize_over,
    suited,
    typical,
)
from condgrad.paths.allowed_sets import set_by_name as set_by_name
from condgrad.problems.evaluation import gap_at
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Status

_BALLS = constraints.NonnegativeL1Ball | constraints.LimitedL1Ball | constraints.WeightedGroupBall  # contain zero
_CLOSE = 1.02  # largest factor between the multiplier wanted and that of the radius found
_CLOSE_GAP = 5e-3  # gap of a solve of the search, as a share of what the multiplier wanted could gain
_MOST_EPOCHS = 300.0  # most epochs of one solve of the search
_MOST_SOLVES = 40  # most solves of the search
_LEAST_GROWTH = 1.5  # least factor to the next radius, while none is known to be too large
_MOST_GROWTH = 4.0  # largest factor to the next radius, while none is known to be too large
_FARTHEST = 4.0  # first radius at most, over the one at which F would be 0 if it fell on at its first rate
_MARGIN = 0.1  # share of the bracket that the next radius stays away from its ends


def radius_at(
    problem: Problem | OutputsProblem,
    make: Callable[[float], ConstraintSet],
    share: float,
) -> float:
    """Return the radius whose multiplier is ``share`` of that at zero; ``problem`` is over the unit set.

    The multiplier is close to linear in the radius (piecewise so for the Lasso), so the radius is found by secants
    within a bracket, each solve from the last solution, to the accuracy that the multiplier needs. When the time of the
    call is over it is the radius that would be tried next.
    """
    if leaves_out_zero(make):
        return _beyond_limits(problem, make, share)
    zero, make = _without_budget(problem, suited(make, problem))
    look = problem.look(zero)
    s = _best_paid_vertex(make(1.0), look.gradient)
    largest = gap_at(look.gradient, np.zeros(zero.size), s)
    if largest <= 1e-14 * problem.slope_size(s):  # rounding: y is constant, or has nothing to do with X
        return 0.0
    bend = float(look.curvature([s])[0, 0])
    radius = largest / bend if bend > 0.0 else math.inf  # the minimiser of F along s, if s were all
    radius = min(radius, _FARTHEST * problem.loss_scale() / largest)  # where F is flat it would be far away
    return _searched(problem, make, radius, zero, largest, share * largest)


def _beyond_limits(problem: Problem | OutputsProblem, make: Callable[..., Any], share: float) -> float:
    """Return the radius as :func:`radius_at` does, where limits leave out zero; zero is what the rate refers to.

    Its rate is that of the norm without limits, because no set has zero.
    """
    assert isinstance(make, AllowedSets) and isinstance(problem, Problem)
    weights, r = make.allowance.weights, problem.gradient(np.zeros(problem.n_features))
    is_paid = slice(None) if weights is None else weights > 0.0
    largest = float((np.abs(r[is_paid]) / (1.0 if weights is None else weights[is_paid])).max(initial=0.0))
    if largest <= 1e-14 * problem.derivative_size() * problem.rows.largest_entry:
        return 2.0 * make.least_radius or 1.0
    first = make.least_radius or problem.loss_scale() / largest
    return _searched(problem, suited(make, problem), first, None, largest, share * largest)


def _searched(
    problem: Problem | OutputsProblem,
    make: Callable[..., Any],
    first: float,
    w: np.ndarray | None,
    largest: float,
    target: float,
) -> float:
    """Return the radius whose multiplier is ``target``, by secants within a bracket.

    The first one tried is ``first`` beyond the least radius, whose multiplier counts as ``largest``. The start ``w`` is
    None where sets do not contain zero, so that w cannot be made smaller.
    """
    unit, least, extra = typical(make), least_radius(make), first
    bracket, multipliers = Bracket(0.0, math.inf), {0.0: largest}  # of target - multiplier, which grows with the radius
    last = extra
    for _ in range(_MOST_SOLVES):
        if time_is_over():
            break
        radius, start = least + extra, w
        if extra < last:
            start = w * (extra / last) if w is not None and not leaves_out_zero(make) else None
        tol = _CLOSE_GAP * target * extra
        part, make, result = minimize_over(
            problem, make, radius, w0=start, tol=tol, random_state=0, max_epochs=_MOST_EPOCHS
        )
        go_on_unless_interrupted(result.status)
        w, last = result.w, extra
        found = multiplier_over(part.constraint, unit, part.gradient(w), radius)
        if target / _CLOSE <= found <= target * _CLOSE:
            break
        multipliers[extra] = found
        slope = _secant(bracket, multipliers, extra, found > target)
        bracket, extra = bracket.after(extra, target - found, slope, _LEAST_GROWTH * extra, _MOST_GROWTH * extra)
        if bracket.is_closed():
            if bracket.high - bracket.low <= 1e-3 * bracket.high:
                return least + bracket.high  # the multiplier jumps here: a loss that is not convex
            extra = bracket.inside(extra, _MARGIN)
    return least + extra


def multiplier(unit: ConstraintSet, r: np.ndarray) -> float:
    """Return max over s in the set of radius 1 of <-r, s>: the rate at which F falls as the radius grows from 0."""
    if isinstance(unit, constraints.LimitedL1Ball):
        return float(unit.gains(r).max())  # what limits do not hinder at 0, and features that cost nothing do not count
    return gap_at(r, np.zeros(r.size), best_vertex(unit, r))


def multiplier_over(over: ConstraintSet, unit: ConstraintSet, r: np.ndarray, radius: float) -> float:
    """Return the rate at which F falls as the radius grows, for the gradient r at the minimiser over the set ``over``.

    It is that of the set of radius 1, where sets are multiples of that one. Limits do not grow with the radius: there
    it is the multiplier of the budget, after those of other rows.
    """
    if isinstance(over, constraints.LinearlyConstrained):
        r = -over.multipliers(r).normal
        inner = over.constraint
        if not isinstance(inner, constraints.LimitedL1Ball):
            return gap_at(r, np.zeros(r.size), best_vertex(inner, r)) / radius
        over = inner
    if isinstance(over, constraints.LimitedL1Ball):
        return over.multiplier(r)
    return multiplier(unit, r)


def _without_budget(
    problem: Problem | OutputsProblem, make: Callable[..., ConstraintSet]
) -> tuple[np.ndarray, Callable[..., ConstraintSet]]:
    """Return the minimiser over the set of radius 0 (zero, or the best free coefficients), and what makes its sets."""
    if at_radius_zero(make) is None:
        return np.zeros(problem.n_features), make
    tol = _CLOSE_GAP**2 * problem.loss_scale()
    _, make, result = minimize_over(problem, make, 0.0, tol=tol, max_epochs=_MOST_EPOCHS, random_state=0)
    go_on_unless_interrupted(result.status)
    return result.w, make


def _best_paid_vertex(unit: ConstraintSet, r: np.ndarray) -> Vertex:
    """Return the best vertex of the unit set; of free and limited features one that is not free, without limits."""
    if not isinstance(unit, constraints.LimitedL1Ball):
        return best_vertex(unit, r)
    gains = unit.gains(r)
    j = int(gains.argmax())
    size = 1.0 / np.broadcast_to(unit.weights, r.size)[j] if gains[j] > 0.0 else 0.0  # with no gain j may be free
    return constraints.Atom(j, -math.copysign(size, r[j]))


def go_on_unless_interrupted(status: Status) -> None:
    """Raise KeyboardInterrupt where Ctrl-C has ended one of several runs: a part of them makes no model."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def _secant(bracket: Bracket, multipliers: dict[float, float], radius: float, is_low: bool) -> float:
    """Return how fast the multiplier falls between a radius and the other end of the bracket, or its low one."""
    other = bracket.high if is_low and bracket.is_closed() else bracket.low
    return (multipliers[other] - multipliers[radius]) / (radius - other)


def contains_zero(constraint: ConstraintSet) -> bool:
    """Tell whether sets of this kind contain zero, whatever their radius."""
    if isinstance(constraint, constraints.LinearlyConstrained):
        return contains_zero(constraint.constraint) and constraint.contains(np.zeros(constraint.n_features))
    is_ball = isinstance(constraint, _BALLS)
    return is_ball or constraint.is_symmetric
