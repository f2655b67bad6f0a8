"""Which radius has a given multiplier: where grids of radii end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from condgrad import constraints
from condgrad.constraints import best_vertex
from condgrad.constraints._protocol import ConstraintSet
from condgrad.problems.evaluation import gap_at
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.minimize import minimize
from condgrad.run.result import Status

_CLOSE = 1.02  # a radius is found when its multiplier is within this factor of the one wanted
_CLOSE_GAP = 5e-3  # gap of the solves that tell it, relative to what that multiplier could gain
_MOST_EPOCHS = 300.0  # for one solve of the search
_MOST_SOLVES = 40
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
    low, high = (0.0, largest), (math.inf, 0.0)
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
        slope = (found - low[1]) / (radius - low[0]) if radius > low[0] else 0.0
        if found > target:
            low = (radius, found)
        else:
            high = (radius, found)
        if math.isfinite(high[0]) and high[0] - low[0] <= 1e-3 * high[0]:
            return high[0]  # the multiplier jumps here: a loss that is not convex
        radius = _next(low, high, target, slope)
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


def _next(low: tuple[float, float], high: tuple[float, float], target: float, slope: float) -> float:
    """Return the radius to try next: a secant, kept inside the bracket or, while it is open, within a factor of 4."""
    if math.isinf(high[0]):
        wanted = low[0] + (target - low[1]) / slope if slope < 0.0 else math.inf
        return min(max(wanted, 1.5 * low[0]), 4.0 * low[0])
    width = high[0] - low[0]
    wanted = low[0] + width * (low[1] - target) / max(low[1] - high[1], 1e-300)
    return min(max(wanted, low[0] + 0.1 * width), high[0] - 0.1 * width)


def contains_zero(constraint: ConstraintSet) -> bool:
    """Tell whether sets of this kind contain zero, whatever their radius."""
    return constraint.is_symmetric or isinstance(constraint, constraints.NonnegativeL1Ball)
