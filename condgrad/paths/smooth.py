"""SmoothPath: a smooth convex loss over balls of an l1 norm, or of groups, by Taylor models on a working set."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from condgrad.compiled import Stopwatch
from condgrad.constraints import L1Ball, NonnegativeL1Ball
from condgrad.linalg.interrupts import Interrupts, time_is_over
from condgrad.paths.allowed_sets import typical
from condgrad.paths.engine import PathPoint
from condgrad.paths.group_engine import GroupEngine
from condgrad.paths.group_gauge import any_gauge_of, group_gauge_of
from condgrad.paths.guided_walk import walk_over
from condgrad.paths.least_squares import Goal
from condgrad.paths.minimized import MinimizedPath, Walk
from condgrad.paths.penalised import PenalisedPath
from condgrad.paths.points import InterruptedPathError, OutOfTimeError, Solved, status_of
from condgrad.paths.radius_search import radius_at
from condgrad.paths.smooth_data import SmoothData
from condgrad.paths.smooth_engine import OutgrownError, SmoothEngine
from condgrad.paths.stretch import Stretch
from condgrad.paths.tall import TallPath, tall_quadratic
from condgrad.paths.tall import largest_radius as largest_of_moments
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Status

_WALK = 8  # number of penalties on the way to the largest radius
_WALK_TOL = 1e-2  # relative gap to which they are solved
_LAST_TOL = 1e-4  # largest relative gap to which the last one is solved
_INSIDE = 4e-16  # share of a radius by which a scaled point is inside of the ball, so that rounding is too
_AT_ONCE = 256  # most targets that the engine is given at a time
_PLAIN_BALLS = (L1Ball, NonnegativeL1Ball)  # what makes the ball of the very radius that it is given
_OF_PATHS = frozenset(("max_epochs", "random_state"))  # settings that the engine of smooth losses takes too


def serves(problem: BaseProblem, make: Callable[..., Any], solver: object) -> TypeGuard[Problem]:
    """Tell whether the engine of smooth losses solves the problem over the sets ``make(radius)``.

    They are l1 balls, weighted l1 balls or l1 balls of non-negative coefficients, or balls of groups.
    """
    can_serve = Feature.COLUMNS in problem.offers and problem.is_convex  # single columns: linear, and without l2
    is_auto = isinstance(solver, str) and solver == "auto"
    return can_serve and is_auto and any_gauge_of(typical(make)) is not None


def largest_radius(problem: Problem | OutputsProblem, make: Callable[..., Any], eps: float) -> float:
    """Return the radius whose multiplier is ``eps`` times that of zero; KeyboardInterrupt tells of Ctrl-C."""
    if (quadratic := tall_quadratic(problem, make, "auto", _WALK)) is not None:
        return largest_of_moments(quadratic, eps, _LAST_TOL)
    if not serves(problem, make, "auto"):
        return walk_over(problem, make).largest_radius(eps)
    try:
        return SmoothPath(problem, make, tol=_LAST_TOL, interrupts=Interrupts()).largest_radius(eps)
    except InterruptedPathError:
        raise KeyboardInterrupt from None


class Found(NamedTuple):
    """A solution over one radius, as a walk over radii returns it."""

    w: np.ndarray
    intercept: Any  # one number, or one for each output
    status: Status


def solutions(
    problem: Problem | OutputsProblem,
    make: Callable[..., Any],
    solver: object,
    radii: Iterable[float],
    *,
    tol: float,
    at_once: int | None = None,
    **settings: Any,
) -> Iterator[Found]:
    """Yield the solutions over the sets of ascending radii, by the fastest way; KeyboardInterrupt tells of Ctrl-C.

    Of a path of smooth losses so many are solved before the first of them is yielded: ``at_once``, by default all.
    ``tol`` is relative to the mean size of the loss at zero; ``settings`` are those of :func:`condgrad.minimize`. Some
    of them only have a meaning for runs of a solver (``max_steps``, ``relative_tol``): with one of these, ``minimize``
    solves all radii. Solutions end when the time of the call is over; of data in memory there is at least the first
    one, as far as it came.
    """
    radii = np.fromiter(radii, np.float64)
    if _OF_PATHS.issuperset(settings) and (quadratic := tall_quadratic(problem, make, solver, radii.size)):
        path = TallPath(quadratic, radii, tol=tol, is_penalised=False)
        if path.is_certified:
            for w, intercept in zip(path.points.W, path.points.intercept.tolist(), strict=True):
                yield Found(w, intercept, Status.CONVERGED)
            return
    if not serves(problem, make, solver) or not _OF_PATHS.issuperset(settings):
        walk = walk_over(problem, make, solver, tol=tol * problem.loss_scale(), **settings)
        for k, radius in enumerate(radii.tolist()):
            result = walk.to(radius)
            if k > 0 and result.status is Status.MAX_TIME and time_is_over():
                return
            yield Found(result.w, result.intercept, result.status)
        return
    path = SmoothPath(problem, make, tol=tol, interrupts=Interrupts(), **settings)
    left, is_first = radii, True
    while left.size:
        try:
            points = Stretch.of(Solved, path.advance(left[:at_once]))
        except OutOfTimeError:
            first = path.unfinished(float(left[0])) if is_first else None
            if first is not None:
                yield Found(first.to_dense(problem.n_features), first.intercept, Status.MAX_TIME)
            return
        except InterruptedPathError:
            raise KeyboardInterrupt from None
        left, status, is_first = left[len(points) :], status_of(points, path), False
        for k, point in enumerate(points):
            own = status if status is Status.CONVERGED else status_of(points[k : k + 1], path)
            yield Found(point.to_dense(problem.n_features), point.intercept, own)


class SmoothPath:
    """Points of a problem over balls of growing radii, or with falling penalties.

    Where the working set grows beyond what a dense matrix of its curvature can hold, ``minimize`` solves the points
    that are left. It also solves single points: where Taylor models do not lead to the tolerance, and where the
    function ``make`` returns a set that is no ball of the norm.

    Parameters
    ----------
    problem : Problem
        Of a convex loss, over ``make(1.0)``.
    make : callable
        Makes the set of a radius: a ball of a :class:`~condgrad.paths.gauges.Gauge`, or of a
        :class:`~condgrad.paths.group_gauge.GroupGauge`.
    tol : float
        Gap of every point, relative to the mean size of the loss at zero.
    interrupts : Interrupts
    is_penalised : bool
        Whether the targets are penalties of the norm whose unit ball is ``make(1.0)``.
    data : SmoothData, optional
        The columns of the problem; by default they are in memory.
    max_epochs : float
        Most passes over the columns for one point.
    **settings
        Those of :func:`condgrad.minimize`, for points that it solves.
    """

    gap_bounds_objective = True
    falls_short = False

    def __init__(
        self,
        problem: Problem,
        make: Callable[..., Any],
        *,
        tol: float,
        interrupts: Interrupts,
        is_penalised: bool = False,
        data: SmoothData | None = None,
        max_epochs: float = np.inf,
        **settings: Any,
    ) -> None:
        self.problem, self.make, self.tol, self.is_penalised = problem, make, tol, is_penalised
        groups = group_gauge_of(problem.constraint)
        self.engine: SmoothEngine | GroupEngine = (
            SmoothEngine(problem, interrupts, data) if groups is None else GroupEngine(problem, groups, interrupts)
        )
        self.engine.most_scanned = max_epochs * problem.n_features
        walk, scale = Walk(problem, make, max_epochs=max_epochs, **settings), self.engine.scale
        self._by_minimize = (
            PenalisedPath(walk, self.engine.gauge, tol=tol, scale=scale)
            if is_penalised
            else MinimizedPath(walk, tol=tol, scale=scale)
        )
        self.is_outgrown, self._is_in_memory = False, data is None
        self.n_features = problem.n_features
        self.scale, self.unit = self.engine.scale, self._radius_of(1.0) or 1.0
        self._last: Sequence[PathPoint] = ()  # the last one of them is where a path goes on
        scale = self.engine.columns.scale
        self._is_plain = bool(((scale == 1.0) | (scale == 0.0)).all())  # 0: constant columns, which no point uses
        self.columns_seen = self.n_scans = 0

    @property
    def shortfall(self) -> Status:
        """Why a point may miss the tolerance."""
        return Status.MAX_EPOCHS if self.engine.was_spent else self._by_minimize.shortfall

    def largest_radius(self, eps: float) -> float:
        """Return the norm of the solution with the penalty eps times the largest one."""
        largest = self.engine.largest
        if largest == 0.0:
            return 0.0
        if self.engine.floor == -np.inf:  # penalised points have no certificate
            return radius_at(self.problem, self.make, eps)
        try:
            way = largest * eps ** (np.arange(1, _WALK) / _WALK)
            while way.size:
                way = way[len(self.engine.advance(way, True, _WALK_TOL)) :]
            tol = min(_LAST_TOL, self.tol)
            last = self.engine.solve(Goal(largest * eps, is_penalised=True), tol=tol)
            norm = np.nan if self._is_short(last.gap, last.rounding, tol) else last.norm
        except OutgrownError:
            norm = np.nan
        except OutOfTimeError:  # the last penalty that was reached; for zero where F would be 0 if it fell on as there
            norm = self.engine.gauge.norm(self._present()) or self.scale / largest
        self.columns_seen, self.n_scans = self.totals()
        self.engine.restart()
        # A function may make the ball of a radius that is not its argument: then its argument is searched for.
        return norm if norm > 0.0 and self._radius_of(norm) == norm else radius_at(self.problem, self.make, eps)

    def _radius_of(self, radius: float) -> float | None:
        """Return the radius of the ball that ``make`` returns, None where it is no ball of the norm."""
        return self.engine.gauge.radius_of(self.make(radius))

    def advance(self, targets: np.ndarray) -> Sequence[Solved]:
        """Return the solution at the first one of the targets that are left, or at the first few."""
        goals = self._goals(targets)
        if goals is None:
            self._by_minimize.walk.w = np.zeros(self.n_features)  # the last point may be outside of this set
        elif not self.is_outgrown:
            try:
                return self._solve(goals, targets)
            except OutgrownError:
                self.is_outgrown = True
                self._by_minimize.walk.w = self._dense(self._last[-1]) if self._last else np.zeros(self.n_features)
        return self._by_minimize.advance(targets)

    def least_value(self) -> tuple[float, int]:
        """Return the least value of the loss and the number of samples."""
        return self.engine.floor, self.problem.n_samples

    def unfinished(self, target: float) -> Solved | None:
        """Return where the search for the first target stands; None for columns on disk."""
        if not self._is_in_memory:
            return None
        walk, goals = self._by_minimize.walk, self._goals(np.array([target]))
        if goals is not None and not walk.w.any():  # no run has begun
            w = self._present()
            norm, most = self.engine.gauge.norm(w), np.inf if self.is_penalised else float(goals[0])
            walk.w = w if norm <= most else w * (most / norm * (1.0 - _INSIDE))
        return self._by_minimize.unfinished(target)

    def _present(self) -> np.ndarray:
        """Return the coefficients where the engine stands."""
        features, x = self.engine.present()
        w = np.zeros(self.n_features)
        w[features] = x * self.engine.columns.scale[features]
        return w

    def _goals(self, targets: np.ndarray) -> np.ndarray | None:
        """Return what the engine is to solve for the first few of the targets, None where it cannot for the first."""
        if self.is_penalised or any(self.make is ball for ball in _PLAIN_BALLS):
            return targets
        goals: list[float] = []
        for target in targets[:_AT_ONCE].tolist():
            radius = target if target == 0.0 else self._radius_of(target)
            if radius is None or (goals and radius <= 0.0):
                break
            goals.append(radius)
        return np.array(goals) if goals else None

    def _solve(self, goals: np.ndarray, targets: np.ndarray) -> Sequence[Solved]:
        found: Sequence[PathPoint]
        with Stopwatch() as watch:
            if goals[0] == 0.0:  # zero is the only point of its ball
                found = [self.engine.zero()]
            elif self.engine.largest == 0.0:
                found = [self.engine.zero(Goal(float(goals[0]), self.is_penalised))]
            else:
                found = self.engine.advance(goals, self.is_penalised, self.tol)
                self._last = found
        points = Stretch.of(PathPoint, found)
        solved = self._solved(points, targets[: len(points)], watch.seconds / len(points))
        is_short = self._is_short(points.column("gap"), points.column("rounding"), self.tol)
        if self.engine.is_spent or not is_short.any():
            return solved
        singly = list(solved)
        for k in np.flatnonzero(is_short).tolist():  # models may not lead further: flat losses
            point, goal = points[k], float(goals[k])
            inside = 1.0 if self.is_penalised else min(1.0, goal / max(point.norm, goal))
            self._by_minimize.walk.w = inside * self._dense(point)
            try:
                singly[k] = self._by_minimize.advance(targets[k : k + 1])[0]
            except InterruptedPathError:  # those before are done; whoever asks for the next one hears of it again
                if k == 0:
                    raise
                return singly[:k]
        return singly

    def _is_short(self, gap: Any, rounding: Any, tol: float) -> Any:
        """Tell which points miss the tolerance for another reason than rounding."""
        return (gap + rounding > tol * self.scale) & (gap > rounding)

    def _solved(self, points: Stretch[PathPoint], targets: np.ndarray, seconds: float) -> Stretch[Solved]:
        norm, alpha, gap, rounding, objective, offset = points.numbers
        features, w = points.features, points.coefficients
        if not self._is_plain:
            w = w * self.engine.columns.scale[features]
        intercept = np.zeros(len(points))
        if self.problem.has_intercept:
            ends = np.cumsum(points.sizes).tolist()
            for k, (first, end) in enumerate(itertools.pairwise([0, *ends])):
                intercept[k] = self.problem.intercept_at(w[first:end], offset[k], features[first:end])
        radius, penalty = (norm, targets) if self.is_penalised else (targets, alpha * self.unit)
        numbers = np.array([radius, penalty, gap, rounding, objective, intercept, np.full(len(points), seconds)])
        return Stretch(Solved, points.sizes, features, w, numbers)

    def _dense(self, point: PathPoint) -> np.ndarray:
        w = np.zeros(self.n_features)
        w[point.features] = point.x * self.engine.columns.scale[point.features]
        return w

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls, of the search for the largest radius too."""
        columns, calls = self._by_minimize.totals()
        bounds = self.engine.bounds
        return columns + self.columns_seen + int(bounds.n_scanned()), calls + self.n_scans + int(bounds.n_scans())
