"""Which radius has a given multiplier: where grids of radii end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from condgrad import constraints
from condgrad.constraints import best_vertex
from condgrad.constraints._protocol import ConstraintSet
from condgrad.linalg.roots import Bracket
from condgrad.problems.evaluation import gap_at
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.minimize import minimize
from condgrad.run.result import Status

_CLOSE = 1.02  # largest factor between the multiplier wanted and that of the radius found
_CLOSE_GAP = 5e-3  # gap of a solve of the search, as a share of what the multiplier wanted could gain
_MOST_EPOCHS = 300.0  # most epochs of one solve of the search
_MOST_SOLVES = 40  # most solves of the search
_LEAST_GROWTH = 1.5  # least factor to the next radius, while none is known to be too large
_MOST_GROWTH = 4.0  # largest factor to the next radius, while none is known to be too large
_MARGIN = 0.1  # share of the bracket that the next radius stays away from its ends
_REMEDY = "pass the set itself, condgrad.constraints.{name}(...), and leave radius at None"


def radius_at(
    problem: Problem | OutputsProblem,
    make: Callable[[float], ConstraintSet],
    share: float,
    max_time: float | None = None,
) -> float:
    """Return the radius whose multiplier is ``share`` of that at zero; ``problem`` is over the unit set.

    The multiplier is close to linear in the radius (piecewise so for the Lasso), so the radius is found by secants
    within a bracket, each solve from the last solution, to the accuracy that the multiplier needs. After ``max_time``
    seconds it is the radius that would be tried next.
    """
    deadline = math.inf if max_time is None else time.perf_counter() + max_time
    zero = np.zeros(problem.n_features)
    unit = make(1.0)
    look = problem.look(zero)
    s = best_vertex(unit, look.gradient)
    largest = gap_at(look.gradient, zero, s)
    if largest <= 1e-14 * problem.slope_size(s):  # rounding: y is constant, or has nothing to do with X
        return 0.0
    target = share * largest
    bend = float(look.curvature([s])[0, 0])
    radius = largest / bend if bend > 0.0 else 1.0  # the minimiser of F along s, if s were all
    bracket, multipliers = Bracket(0.0, math.inf), {0.0: largest}  # of target - multiplier, which grows with the radius
    w, last = zero, radius
    for _ in range(_MOST_SOLVES):
        left = deadline - time.perf_counter()
        if left <= 0.0:
            break
        part = problem.over(make(radius))
        tol = _CLOSE_GAP * target * radius
        start = w * min(1.0, radius / last)
        result = minimize(part, w0=start, tol=tol, max_epochs=_MOST_EPOCHS, max_time=left, random_state=0)
        go_on_unless_interrupted(result.status)
        w, last = result.w, radius
        found = multiplier(unit, part.gradient(w))
        if target / _CLOSE <= found <= target * _CLOSE:
            return radius
        multipliers[radius] = found
        slope = _secant(bracket, multipliers, radius, found > target)
        bracket, radius = bracket.after(radius, target - found, slope, _LEAST_GROWTH * radius, _MOST_GROWTH * radius)
        if bracket.is_closed():
            if bracket.high - bracket.low <= 1e-3 * bracket.high:
                return bracket.high  # the multiplier jumps here: a loss that is not convex
            radius = bracket.inside(radius, _MARGIN)
    return radius


def multiplier(unit: ConstraintSet, r: np.ndarray) -> float:
    """Return max over s in the set of radius 1 of <-r, s>: the rate at which F falls as the radius grows."""
    return gap_at(r, np.zeros(r.size), best_vertex(unit, r))


def set_by_name(name: str, remedy: str = _REMEDY) -> Callable[[float], ConstraintSet]:
    """Return the class of a set that a radius alone defines; ``remedy`` says what to do about others."""
    made = constraints.by_name(name)
    if getattr(made, "_fields", ()) != ("radius",):
        raise ValueError(f"constraint={name!r} takes more than a radius; {remedy.format(name=made.__name__)}.")
    return made


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
    is_ball = isinstance(constraint, constraints.NonnegativeL1Ball | constraints.WeightedGroupBall)
    return is_ball or constraint.is_symmetric
