"""Walk: one problem over the sets of many radii, each solved from the last solution; MinimizedPath: a path of that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.compiled import Stopwatch
from condgrad.linalg.interrupts import time_is_over
from condgrad.paths.allowed_sets import at_radius_zero, leaves_out_zero, minimize_over, suited, typical
from condgrad.paths.gauges import Gauge
from condgrad.paths.group_gauge import GroupGauge, any_gauge_of
from condgrad.paths.points import InterruptedPathError, OutOfTimeError, Solved
from condgrad.paths.radius_search import (
    contains_zero,
    go_on_unless_interrupted,
    multiplier,
    multiplier_over,
    radius_at,
)
from condgrad.problems.completion.problem import CompletionProblem
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Result, Status

_FARTHEST = 4.0  # how many times as far as the last two points are apart the next start may be
_OUTSIDE = 1e-12  # share of the norm of a point by which rounding may push it outside of its set
_INSIDE = 4e-16  # share of a radius by which a start is inside of the ball, so that rounding is too


class Walk:
    """One problem over the sets ``make(radius)`` of ascending radii, each solved from the last solution.

    Parameters
    ----------
    problem : any problem that has ``over``
    make : callable
        Makes the set of a radius.
    solver : str or solver object
    w : array or Factored, optional
        Where to start.
    **settings
        Those of :func:`condgrad.minimize`.
    """

    def __init__(
        self,
        problem: Problem | OutputsProblem | CompletionProblem,
        make: Callable[..., Any],
        solver: object = "auto",
        *,
        w: Any = None,
        **settings: Any,
    ) -> None:
        self.problem, self.make, self.solver, self.settings = problem, suited(make, problem), solver, settings
        self.w = w
        self._solutions: list[tuple[float, Any]] = []  # the last two radii and solutions

    @functools.cached_property
    def is_nested(self) -> bool:
        """Whether every set contains the smaller ones."""
        return contains_zero(self.problem.over(typical(self.make)).constraint)

    def to(self, radius: float, **settings: Any) -> Result:
        """Return the solution over the set of that radius; KeyboardInterrupt tells of Ctrl-C."""
        used, start = self.settings | settings, self.start_at(radius)
        self.problem, self.make, result = minimize_over(
            self.problem, self.make, radius, self.solver_at(radius), w0=start, **used
        )
        go_on_unless_interrupted(result.status)
        self.w = result.w
        self._solutions = [*self._solutions[-1:], (radius, result.w)]
        return result

    def largest_radius(self, eps: float) -> float:
        """Return the radius whose multiplier is ``eps`` times that of zero."""
        assert not isinstance(self.problem, CompletionProblem)
        return radius_at(self.problem, self.make, eps)

    def solver_at(self, radius: float) -> object:
        """Return the solver for a radius."""
        return self.solver

    def start_at(self, radius: float) -> Any:
        """Return where to start for a radius, None to leave it to the solver."""
        # Sets whose limits leave out zero contain those of smaller radii, but no start that would suit all.
        is_wider = leaves_out_zero(self.make) and bool(self._solutions) and self._solutions[-1][0] <= radius
        if not (self.is_nested or is_wider):
            return None
        gauge = any_gauge_of(self.problem.constraint)
        is_known = len(self._solutions) == 2 and self.w is self._solutions[-1][1]  # nobody has put w elsewhere
        return self.w if gauge is None or not is_known else self._ahead(radius, gauge)

    def _ahead(self, radius: float, gauge: Gauge | GroupGauge) -> np.ndarray:
        """Return the point on the line through the last two solutions, without what would pass zero, in the ball."""
        (first, before), (second, last) = self._solutions
        w: np.ndarray = last
        way = second - first
        if not (way > 0.0 and 0.0 < radius - second <= _FARTHEST * way):
            return w
        w = last + (radius - second) / way * (last - before)
        w[w * last <= 0.0] = 0.0
        norm = gauge.norm(w)
        return w if norm <= radius else w * (radius / norm * (1.0 - _INSIDE))


class MinimizedPath:
    """The points of a walk from zero as those of a path; ``tol`` is relative to ``scale``."""

    is_penalised = False
    falls_short = False

    def __init__(self, walk: Walk, *, tol: float, scale: float) -> None:
        self.walk, self.unit = walk, typical(walk.make)
        self.tol, self.scale = tol, scale
        self.n_features = walk.problem.n_features
        walk.w = np.zeros(self.n_features)
        walk.settings["tol"] = tol * scale
        self.shortfall = Status.STALLED
        self.gap_bounds_objective = walk.problem.is_convex
        self.epochs = 0.0
        self.n_lmo = 0

    def advance(self, targets: np.ndarray) -> list[Solved]:
        """Return the solver's answer at the first radius of those that are left."""
        with Stopwatch() as watch:
            solved = self._solve(float(targets[0]))
        return [solved._replace(seconds=watch.seconds)]

    def _solve(self, radius: float) -> Solved:
        if radius == 0.0 and at_radius_zero(self.walk.make) is None:
            zero = self.walk.problem.evaluate(self.walk.w)
            zero = zero._replace(gap=0.0, rounding=0.0)  # the only point of its ball
            return self._solved(radius, zero, zero.gradient)
        try:
            result = self.walk.to(radius)
        except KeyboardInterrupt:
            raise InterruptedPathError from None
        if result.gap + result.rounding > self.tol * self.scale:
            self.shortfall = result.status
        self.epochs += result.n_epochs
        self.n_lmo += result.n_lmo
        if result.status is Status.MAX_TIME and time_is_over():
            raise OutOfTimeError
        return self._solved(radius, result, self.walk.problem.gradient(result.w))

    def least_value(self) -> tuple[float, int]:
        """Return the least value of F, as far as it is known, and the number of samples."""
        return self.walk.problem.least_value(), self.walk.problem.n_samples

    def unfinished(self, target: float) -> Solved | None:
        """Return the present point over the ball of this radius."""
        walk = self.walk
        if target == 0.0:
            return self._solve(target) if at_radius_zero(walk.make) is None else None
        walk.problem = walk.problem.over(walk.make(target))
        if walk.problem.constraint.violation(walk.w) > _OUTSIDE * np.abs(walk.w).sum():
            walk.w = walk.problem.start()[0]
        found = walk.problem.evaluate(walk.w)
        return self._solved(target, found, found.gradient)

    def _solved(self, radius: float, found: Evaluation | Result, r: np.ndarray) -> Solved:
        features = np.flatnonzero(self.walk.w)
        return Solved(
            features=features,
            w=self.walk.w[features],
            radius=radius,
            alpha=self._multiplier(r, radius),
            gap=found.gap,
            rounding=found.rounding,
            objective=found.objective,
            intercept=found.intercept,
            seconds=0.0,
        )

    def _multiplier(self, r: np.ndarray, radius: float) -> float:
        over = self.walk.problem.constraint
        return multiplier(self.unit, r) if radius == 0.0 else multiplier_over(over, self.unit, r, radius)

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls."""
        return int(self.epochs * self.n_features), self.n_lmo
