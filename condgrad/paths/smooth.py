"""SmoothPath: the path of a smooth convex loss over l1 balls, by Taylor models on a working set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from condgrad.compiled import Stopwatch
from condgrad.constraints import L1Ball
from condgrad.linalg.interrupts import Interrupts
from condgrad.paths.engine import PathPoint
from condgrad.paths.least_squares import Goal
from condgrad.paths.minimized import MinimizedPath, Walk
from condgrad.paths.points import InterruptedPathError, Solved
from condgrad.paths.radius_search import radius_at, set_by_name
from condgrad.paths.smooth_engine import OutgrownError, SmoothEngine
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Status

_WALK = 8  # number of penalties on the way to the largest radius
_WALK_TOL = 1e-2  # relative gap to which they are solved
_LAST_TOL = 1e-4  # largest relative gap to which the last one is solved


def serves(problem: BaseProblem, make: object, solver: object) -> TypeGuard[Problem]:
    """Tell whether the engine of smooth losses solves the problem over the sets ``make(radius)``.

    The sets must be the l1 balls themselves: a function of the radius could make a ball of any other radius.
    """
    can_serve = Feature.COLUMNS in problem.offers and problem.is_convex  # single columns: linear, and without l2
    return can_serve and make is L1Ball and isinstance(solver, str) and solver == "auto"


def largest_radius(problem: Problem | OutputsProblem, make: Callable[..., Any], eps: float) -> float:
    """Return the radius whose multiplier is ``eps`` times that of zero; KeyboardInterrupt tells of Ctrl-C."""
    if not serves(problem, make, "auto"):
        return radius_at(problem, make, eps)
    try:
        return SmoothPath(problem, tol=_LAST_TOL, interrupts=Interrupts()).largest_radius(eps)
    except InterruptedPathError:
        raise KeyboardInterrupt from None


class Found(NamedTuple):
    """A solution over one radius, as a walk over radii returns it."""

    w: np.ndarray
    intercept: Any  # one number, or one for each output


def solutions(
    problem: Problem | OutputsProblem,
    make: Callable[..., Any],
    solver: object,
    radii: Iterable[float],
    *,
    tol: float,
    **settings: Any,
) -> Iterator[Found]:
    """Yield the solutions over the sets of ascending radii, by the fastest way; KeyboardInterrupt tells of Ctrl-C.

    ``tol`` is relative to the mean size of the loss at zero; ``settings`` are those of :func:`condgrad.minimize`.
    """
    if not serves(problem, make, solver):
        walk = Walk(problem, make, solver, tol=tol * problem.loss_scale(), **settings)
        for radius in radii:
            result = walk.to(radius)
            yield Found(result.w, result.intercept)
        return
    path = SmoothPath(problem, tol=tol, interrupts=Interrupts(), **settings)
    for radius in radii:
        try:
            (point,) = path.advance(np.array([radius]))
        except InterruptedPathError:
            raise KeyboardInterrupt from None
        w = np.zeros(problem.n_features)
        w[point.features] = point.w
        yield Found(w, point.intercept)


class SmoothPath:
    """Points of a problem over l1 balls of growing radii.

    Where the working set grows beyond what a dense matrix of its curvature can hold, ``minimize`` solves the radii that
    are left; so it does a single radius where Taylor models do not lead to the tolerance.

    Parameters
    ----------
    problem : Problem
        Over an l1 ball, of a convex loss.
    tol : float
        Gap of every point, relative to the mean size of the loss at zero.
    interrupts : Interrupts
    max_epochs : float
        Most passes over the columns for one point.
    **settings
        Those of :func:`condgrad.minimize`, for radii that it solves.
    """

    gap_bounds_objective = True
    is_penalised = falls_short = False

    def __init__(
        self, problem: Problem, *, tol: float, interrupts: Interrupts, max_epochs: float = np.inf, **settings: Any
    ) -> None:
        self.problem, self.tol = problem, tol
        settings |= {"max_epochs": max_epochs}
        self._by_minimize = MinimizedPath(
            Walk(problem, set_by_name("l1"), **settings), tol=tol, scale=problem.loss_scale()
        )
        self.is_outgrown = False
        self.n_features = problem.n_features
        self.engine = SmoothEngine(problem, interrupts)
        self.engine.most_scanned = max_epochs * problem.n_features
        self.scale = self.engine.scale
        self.last = self.engine.zero()
        self.columns_seen = self.n_scans = 0

    @property
    def shortfall(self) -> Status:
        """Why a point may miss the tolerance."""
        return Status.MAX_EPOCHS if self.engine.was_spent else self._by_minimize.shortfall

    def largest_radius(self, eps: float) -> float:
        """Return the l1 norm of the solution with the penalty eps times the largest one."""
        largest = self.engine.largest
        if largest == 0.0:
            return 0.0
        try:
            for k in range(1, _WALK):
                self.engine.solve(Goal(largest * eps ** (k / _WALK), is_penalised=True), tol=_WALK_TOL)
            norm = self.engine.solve(Goal(largest * eps, is_penalised=True), tol=min(_LAST_TOL, self.tol)).norm
        except OutgrownError:
            norm = radius_at(self.problem, set_by_name("l1"), eps)
        self.columns_seen, self.n_scans = self.totals()
        self.engine.restart()
        return norm

    def advance(self, targets: np.ndarray) -> list[Solved]:
        """Return the solution at the first radius of those that are left."""
        if not self.is_outgrown:
            try:
                return [self._solve(float(targets[0]))]
            except OutgrownError:
                self.is_outgrown = True
                self._by_minimize.walk.w = self._dense(self.last)
        return self._by_minimize.advance(targets)

    def _solve(self, radius: float) -> Solved:
        goal = Goal(radius, is_penalised=False)
        with Stopwatch() as watch:
            if radius == 0.0:  # zero is the only point of its ball
                point = self.engine.zero()
            elif self.engine.largest == 0.0:
                point = self.engine.zero(goal)
            else:
                point = self.last = self.engine.solve(goal, self.tol)
        is_short = point.certified_gap > self.tol * self.scale and point.gap > point.rounding
        if is_short and not self.engine.is_spent:  # its models do not lead further, as may be with flat losses
            self._by_minimize.walk.w = self._dense(point)
            return self._by_minimize.advance(np.array([radius]))[0]
        return self._solved(point, radius, watch.seconds)

    def _solved(self, point: PathPoint, radius: float, seconds: float) -> Solved:
        return Solved(
            features=point.features,
            w=point.x,
            radius=radius,
            alpha=point.alpha,
            gap=point.gap,
            rounding=point.rounding,
            objective=point.objective,
            intercept=self.problem.intercept_at(self._dense(point), point.offset),
            seconds=seconds,
        )

    def _dense(self, point: PathPoint) -> np.ndarray:
        w = np.zeros(self.n_features)
        w[point.features] = point.x
        return w

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls, of the search for the largest radius too."""
        columns, calls = self._by_minimize.totals()
        bounds = self.engine.bounds
        return columns + self.columns_seen + int(bounds.n_scanned()), calls + self.n_scans + int(bounds.n_scans())
