"""PenalisedPath: points with given penalties, each found among the solutions over balls of many radii."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.constraints._protocol import ConstraintSet
from condgrad.linalg.roots import Bracket
from condgrad.paths.gauges import Gauge, gauge_of
from condgrad.paths.group_gauge import GroupGauge
from condgrad.paths.minimized import MinimizedPath, Walk
from condgrad.paths.points import InterruptedPathError, OutOfTimeError, Solved, status_of
from condgrad.paths.radius_search import multiplier
from condgrad.paths.smooth_point import penalised_gap
from condgrad.paths.stretch import Stretch
from condgrad.problems.cox import CoxProblem
from condgrad.problems.linear import Problem
from condgrad.run.result import Status

_INNER = 0.3  # share of the tolerance that the gap over a ball may use up
_FINER = 0.03  # the same share of the last search, for the next one
_MOST_SEARCHES = 4  # most searches for the radius of one penalty
_MOST_SOLVES = 60  # most radii that are tried in one of them
_LEAST_GROWTH = 1.1  # least factor to the next radius, while none is known to be too large
_MOST_GROWTH = 4.0  # largest factor to the next radius, while none is known to be too large
_FARTHEST = 1e30  # largest norm of an optimum for which rounding is bounded


class PenalisedPath(MinimizedPath):
    """The points that minimise F + alpha times a norm, for penalties alpha, by ``minimize`` over balls of the norm.

    The multiplier of a ball falls as its radius grows. The radius whose multiplier is alpha is found by secants within
    a bracket.
    """

    is_penalised = True

    def __init__(self, walk: Walk, gauge: Gauge | GroupGauge, *, tol: float, scale: float) -> None:
        super().__init__(walk, tol=tol, scale=scale)
        self.gauge = gauge
        self.floor = self._problem.least_value()
        walk.settings["tol"] = _INNER * tol * scale

    @property
    def _problem(self) -> Problem | CoxProblem:
        assert isinstance(self.walk.problem, Problem | CoxProblem)
        return self.walk.problem

    def _solve(self, target: float) -> Solved:
        best, limit = self._certified(target), self.tol * self.scale
        for k in range(_MOST_SEARCHES):
            if best.certified_gap <= limit or best.gap <= best.rounding:
                break
            # Multipliers of rough solutions may lead a search to a wrong radius: the next one knows them better.
            self.walk.settings["tol"] = _INNER * limit * _FINER**k
            best = self._search(target, best, limit)
            self.walk.w = best.to_dense(self.n_features)
        self.walk.settings["tol"] = _INNER * limit
        return best

    def unfinished(self, target: float) -> Solved | None:
        """Return the present point with the bound of its excess."""
        return self._certified(target)

    def _search(self, target: float, best: Solved, limit: float) -> Solved:
        """Return the best of the points over balls on the way to the one whose multiplier is the target."""
        bracket, last = Bracket(0.0, math.inf), (0.0, math.inf)
        radius = self.gauge.norm(self.walk.w) or 1.0
        for _ in range(_MOST_SOLVES):
            self.walk.w = self._inside(radius)
            over_ball = super()._solve(radius)
            found = self._certified(target)
            if found.certified_gap < best.certified_gap:
                best = found
            if best.certified_gap <= limit:
                break
            way = radius - last[0]
            slope = (last[1] - over_ball.alpha) / way if way != 0.0 and math.isfinite(last[1]) else 0.0
            last = radius, over_ball.alpha
            most, least = _MOST_GROWTH * radius, _LEAST_GROWTH * radius
            bracket, radius = bracket.after(radius, target - over_ball.alpha, slope, least, most)
            if bracket.is_closed() and bracket.high - bracket.low <= 1e-15 * bracket.high:
                break
        return best

    def _inside(self, radius: float) -> np.ndarray:
        """Return the present point, scaled into the ball where it is outside."""
        norm = self.gauge.norm(self.walk.w)
        w: np.ndarray = self.walk.w * (radius / norm) if norm > radius else self.walk.w
        return w

    def _certified(self, alpha: float) -> Solved:
        """Return the present point with the bound of its excess.

        An optimum has a norm of at most (F(w) - floor) / alpha + ||w||: rounding is bounded over a ball that holds it.
        """
        w, norm = self.walk.w, self.gauge.norm(self.walk.w)
        value = self._problem.objective(w)
        radius = abs(value - self.floor) / alpha + norm
        at = self._problem.over(self.gauge.ball(min(max(radius, 1e-300), _FARTHEST))).evaluate(w)
        largest, along = multiplier(self.unit, at.gradient), -float(at.gradient @ w)
        of_objective = at.objective - at.gap - at.rounding - at.lower_bound
        is_false = at.objective < self.floor - of_objective
        gap = math.inf if is_false else penalised_gap(alpha, at.objective, along, norm, largest, self.floor)
        rounding = at.rounding + of_objective if radius <= _FARTHEST else math.inf
        solved = self._solved(norm, at._replace(gap=max(gap, 0.0), rounding=rounding), at.gradient)
        return solved._replace(alpha=alpha)


def solution_at(
    problem: CoxProblem, make: Callable[[float], ConstraintSet], alpha: float, *, tol: float, **settings: Any
) -> tuple[Solved, Status]:
    """Return the solution with a penalty of the norm whose balls ``make`` makes; KeyboardInterrupt tells of Ctrl-C."""
    gauge = gauge_of(make(1.0))
    assert gauge is not None
    path = PenalisedPath(Walk(problem, make, **settings), gauge, tol=tol, scale=problem.loss_scale())
    try:
        (found,) = path.advance(np.array([alpha]))
    except OutOfTimeError:
        return path._certified(alpha), Status.MAX_TIME
    except InterruptedPathError:
        raise KeyboardInterrupt from None
    return found, status_of(Stretch.of(Solved, [found]), path)
