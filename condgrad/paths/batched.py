"""BatchedPaths: many radii of many problems at once, on a device, where a pass at many points costs little more.

Radii are solved in waves: some of them first, then those between two solved ones, which begin on the line between the
two solutions, with the curvature in between. In every round one pass is made at all points of a wave that are not
solved yet, and the Taylor model of each is minimised exactly over its ball. Every point has the certificate of its own
pass.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from condgrad.linalg import threads
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.interrupts import Interrupts, time_is_over
from condgrad.paths.allowed_sets import typical
from condgrad.paths.gauges import gauge_of
from condgrad.paths.minimized import MinimizedPath, Walk
from condgrad.paths.points import InterruptedPathError, Solved
from condgrad.paths.radius_search import multiplier
from condgrad.problems.linear import Problem
from condgrad.problems.linear_look import LinearLook
from condgrad.problems.rows.device import DeviceRows
from condgrad.problems.rows.device_batch import Curvature, DeviceBatch
from condgrad.run.result import Status
from condgrad.solvers.full_pass.hull_steps import minimise_in_ball

_FIRST = 8  # radii of the first wave
_ALL = 512  # features up to which models use all of them
_FEWEST = 32  # features with the largest slopes that other models have at least
_ROWS = 2**16  # samples from which a curvature is estimated at first
_WIDENING = 4  # factor by which their number grows where an estimate is too rough
_ROUGH = 0.3  # share of the last gap above which the curvature is computed anew
_FAST = 0.1  # share of it above which a fresh estimate is made from more samples
_INNER = 0.02  # share of the gap to which a model is minimised
_SUFFICIENT = 1e-4  # share of the model's slope by which F must fall
_SHORTER = 0.3  # factor by which a step is shortened
_MOST_ROUNDS = 60  # of passes for one wave; what is left then is solved one by one


def serves(problem: Problem, make: Callable[..., Any], solver: object) -> bool:
    """Tell whether many radii are solved at once: dense rows on a device, a convex loss, plain l1 balls."""
    rows, is_auto = problem.rows, isinstance(solver, str) and solver == "auto"
    is_there = isinstance(rows, DeviceRows) and isinstance(rows.matrix, DenseOnDevice)
    if not (is_there and is_auto and problem.is_convex and problem.l2 == 0.0):
        return False
    gauge = gauge_of(typical(make))
    return gauge is not None and gauge.weights is None and gauge.is_symmetric


@dataclasses.dataclass
class _Point:
    """A point on its way to the solution over one ball."""

    problem: Problem  # over its ball
    owner: int
    radius: float
    w: np.ndarray
    b: float
    look: LinearLook | None = None  # at (w, b)
    ahead: tuple[np.ndarray, float] | None = None  # where the next pass is made, if not at (w, b)
    slope: float = 0.0  # of F along the way there, by the model
    curvature: Curvature | None = None
    features: np.ndarray | None = None  # of the model
    is_fresh: bool = False  # whether the curvature is that of the point
    every: int = 1  # of how many samples it is estimated from one
    last_gap: float = np.inf

    @property
    def next(self) -> tuple[np.ndarray, float]:
        """Where the next pass is made."""
        return (self.w, self.b) if self.ahead is None else self.ahead


class BatchedPaths:
    """The solutions of several problems over the same data, over balls of the same radii.

    Parameters
    ----------
    problems : sequence of Problem
        Over dense rows on a device that share the data: the folds of a cross-validation, or several outputs.
    make : callable
        Makes the ball of a radius.
    tol : float
        Gap of every point, relative to the mean size of the loss at zero.
    interrupts : Interrupts, optional

    When the time of the call is over points are left as they are.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        make: Callable[..., Any],
        *,
        tol: float,
        interrupts: Interrupts | None = None,
        **settings: Any,
    ) -> None:
        self.problems, self.make, self.tol, self.interrupts = list(problems), make, tol, interrupts
        self.settings = settings
        self.most_rounds = max(1, int(min(_MOST_ROUNDS, settings.get("max_epochs", _MOST_ROUNDS))))
        self.batch = DeviceBatch([problem.rows for problem in self.problems])
        self.scales = [problem.loss_scale() for problem in self.problems]
        self.n_passes = self.n_points = self.n_alone = 0  # of the device, at points; points that were solved alone

    def solve(self, radii: np.ndarray) -> list[list[Solved]]:
        """Return the solutions of each problem at positive radii in ascending order."""
        largest = [problem.over(self.make(float(radii[-1]))) for problem in self.problems]
        solved: dict[tuple[int, int], _Point] = {}
        for wave in _waves(radii.size):
            points = {
                (owner, k): self._begin(largest[owner], owner, radii, k, solved)
                for k in wave
                for owner in range(len(self.problems))
            }
            self._solve_wave(list(points.values()))
            solved |= points
        return [[self._solved(solved[owner, k]) for k in range(radii.size)] for owner in range(len(self.problems))]

    def solve_each(self, radii: Sequence[float]) -> list[np.ndarray]:
        """Return the solution of every problem over the ball of its own radius, found in common passes."""
        points = []
        for owner, (problem, radius) in enumerate(zip(self.problems, radii, strict=True)):
            zero = np.zeros(problem.n_features)
            points.append(_Point(problem.over(self.make(radius)), owner, radius, zero, problem.best_offset(zero)))
        self._solve_wave(points)
        return [point.w for point in points]

    def _begin(
        self, largest: Problem, owner: int, radii: np.ndarray, k: int, solved: dict[tuple[int, int], _Point]
    ) -> _Point:
        """Return the point to begin at: on the line between the two nearest solutions, or zero."""
        radius, problem = float(radii[k]), largest.within(self.make(float(radii[k])))
        below = [m for o, m in solved if o == owner and m < k]
        above = [m for o, m in solved if o == owner and m > k]
        if not (below and above):
            zero = np.zeros(problem.n_features)
            return _Point(problem, owner, radius, zero, problem.best_offset(zero))
        low, high = solved[owner, max(below)], solved[owner, min(above)]
        share = (radius - low.radius) / (high.radius - low.radius)
        w, b = (1.0 - share) * low.w + share * high.w, (1.0 - share) * low.b + share * high.b
        norm = float(np.abs(w).sum())
        point = _Point(problem, owner, radius, w if norm <= radius else w * (radius / norm), b)
        if w.size <= _ALL and low.curvature is not None and high.curvature is not None:
            point.curvature = _between(low.curvature, high.curvature, share)
            point.features, point.every = low.features, min(low.every, high.every)
        return point

    def _solve_wave(self, points: list[_Point]) -> None:
        left = points
        for _ in range(self.most_rounds):
            if self.interrupts is not None and self.interrupts.heard():
                raise InterruptedPathError
            self._look(left)
            left = [point for point in left if not self._is_solved(point)]
            if not left or time_is_over():
                return
            self._renew([point for point in left if point.ahead is None and point.curvature is None])
            self._minimise([point for point in left if point.ahead is None])
        for point in left:
            self._solve_alone(point)
            self.n_alone += 1

    def _look(self, points: list[_Point]) -> None:
        """Make one pass at all points; accept the steps by which F falls, and shorten the others."""
        ends = [point.next for point in points]
        W, b = np.array([w for w, _ in ends]).T, np.array([b for _, b in ends])
        owner = np.array([point.owner for point in points])
        self.n_passes += 1
        self.n_points += len(points)
        for point, (w, b_end), found in zip(points, ends, self.batch.passes(W, b, owner), strict=True):
            look = point.problem.look_after(w, b_end, found)
            if point.look is None or self._accepts(point, look):
                point.last_gap = np.inf if point.look is None else point.look.gap
                point.w, point.b, point.look, point.ahead = w, b_end, look, None
                self._judge(point)
            else:
                assert point.ahead is not None
                step, rise = point.ahead[0] - point.w, point.ahead[1] - point.b
                point.slope *= _SHORTER
                point.ahead = point.w + _SHORTER * step, point.b + _SHORTER * rise

    def _accepts(self, point: _Point, look: LinearLook) -> bool:
        assert point.look is not None
        rounding = 1e-13 * abs(point.look.objective)
        has_fallen = look.objective <= point.look.objective + _SUFFICIENT * point.slope + rounding
        return has_fallen or look.gap <= 0.5 * point.look.gap

    def _judge(self, point: _Point) -> None:
        """Decide whether the curvature serves for another step, or must be renewed, from more samples if it was new."""
        assert point.look is not None
        share = point.look.gap / point.last_gap if point.last_gap < np.inf else 0.0
        if share > _FAST and point.is_fresh:
            point.every = max(1, point.every // _WIDENING)
        if point.curvature is not None and (share > _ROUGH or self._lacks_features(point)):
            point.curvature = None
        point.is_fresh = False

    def _lacks_features(self, point: _Point) -> bool:
        assert point.look is not None
        assert point.features is not None
        r = np.abs(point.look.gradient)
        return bool(r[point.features].max(initial=0.0) < r.max())

    def _is_solved(self, point: _Point) -> bool:
        look, allowed = point.look, self.tol * self.scales[point.owner]
        assert look is not None
        return point.ahead is None and look.gap + look.evaluation.rounding <= allowed

    def _renew(self, points: list[_Point]) -> None:
        """Compute the curvatures of some points, from samples that they share."""
        for point in points:
            if point.features is None:
                point.every = max(1, self.batch.n_samples // _ROWS)
            point.features = self._features(point)
        for every in sorted({point.every for point in points}):
            group = [point for point in points if point.every == every]
            W, b = np.array([point.w for point in group]).T, np.array([point.b for point in group])
            owner = np.array([point.owner for point in group])
            used = [point.features for point in group if point.features is not None]
            for point, found in zip(group, self.batch.curvatures(W, b, owner, used, every), strict=True):
                point.curvature, point.is_fresh = found, True

    def _features(self, point: _Point) -> np.ndarray:
        """Return the features of a model: all, or those of w and those with the largest slopes."""
        d = point.w.size
        if d <= _ALL:
            return np.arange(d)
        assert point.look is not None
        support = np.flatnonzero(point.w)
        best, _ = point.problem.constraint.best_atoms(point.look.gradient, max(_FEWEST, support.size))
        return np.union1d(support, best)

    def _minimise(self, points: list[_Point]) -> None:
        """Minimise the models of some points, on all cores."""
        if not points:
            return
        with concurrent.futures.ThreadPoolExecutor(threads.n_threads()) as pool:
            list(pool.map(_step, points))

    def _solve_alone(self, point: _Point) -> None:
        """Solve a point by :func:`condgrad.minimize`."""
        from condgrad.run.minimize import minimize

        tol = self.tol * self.scales[point.owner]
        result = minimize(point.problem, w0=point.w, tol=tol, **self.settings)
        look = point.problem.look(result.w)
        point.w, point.b, point.look, point.ahead = result.w, look.evaluation.offset, look, None

    def _solved(self, point: _Point) -> Solved:
        look, features = point.look, np.flatnonzero(point.w)
        assert look is not None
        return Solved(
            features=features,
            w=point.w[features],
            radius=point.radius,
            alpha=multiplier(self.make(1.0), look.gradient),
            gap=look.gap,
            rounding=look.evaluation.rounding,
            objective=look.objective,
            intercept=look.evaluation.intercept,
            seconds=0.0,
        )


def _step(point: _Point) -> None:
    """Set where the next pass is made: at the minimiser of the Taylor model over the ball, with its best intercept."""
    assert point.look is not None
    assert point.curvature is not None
    assert point.features is not None
    (G, u, total), used, radius = point.curvature, point.features, point.radius
    g, balance = point.look.gradient[used], 0.0
    if point.problem.has_intercept and total > 0.0:
        balance = point.look.found.totals.balance
        g, G = g - u * (balance / total), G - np.outer(u, u) / total
    x = point.w[used] / radius
    z = minimise_in_ball(x, radius * g, radius**2 * G, _INNER * point.look.gap, np.inf)
    change = radius * z - point.w[used]
    w = point.w.copy()
    w[used] = radius * z
    rise = -(balance + float(u @ change)) / total if point.problem.has_intercept and total > 0.0 else 0.0
    point.slope = min(0.0, float(g @ change))
    point.ahead = w, point.b + rise


def _between(low: Curvature, high: Curvature, share: float) -> Curvature:
    """Return the curvature on the way from one point to another."""
    rest = 1.0 - share
    return Curvature(
        rest * low.G + share * high.G, rest * low.u + share * high.u, rest * low.total + share * high.total
    )


def _waves(size: int) -> list[list[int]]:
    """Return the places of a path in waves: some first, then always those in the middle of two known ones."""
    known = sorted({round(k) for k in np.linspace(0, size - 1, min(size, _FIRST))})
    waves = [known]
    while len(known) < size:
        wave = [(low + high) // 2 for low, high in itertools.pairwise(known) if high - low > 1]
        waves.append(wave)
        known = sorted(known + wave)
    return waves


def with_weights(problem: Problem, weight: np.ndarray) -> Problem:
    """Return a problem over rows on a device with other weights of its samples, such as those of a fold."""
    assert isinstance(problem.rows, DeviceRows)
    rows = problem.rows.with_weights(weight)
    return Problem.of_rows(rows, problem.constraint, intercept=problem.has_intercept)


def mean_losses(problems: Sequence[Problem], paths: list[list[Solved]]) -> np.ndarray:
    """Return the mean loss of every point of path k over the samples of problem k: one row for each path."""
    n_features, points = problems[0].n_features, [(k, point) for k, path in enumerate(paths) for point in path]
    W, b = np.zeros((n_features, len(points))), np.empty(len(points))
    for j, (k, point) in enumerate(points):
        W[point.features, j] = point.w
        b[j] = point.intercept + problems[k].rows.along_shift(W[:, j])
    owner = np.array([k for k, _ in points])
    found = DeviceBatch([problem.rows for problem in problems]).passes(W, b, owner)
    return np.array([each.totals.value for each in found]).reshape(len(paths), -1)


class BatchedPath(MinimizedPath):
    """One problem's path, all of whose points are solved at once."""

    def __init__(
        self, problem: Problem, make: Callable[..., Any], *, tol: float, interrupts: Interrupts, **settings: Any
    ) -> None:
        super().__init__(Walk(problem, make, **settings), tol=tol, scale=problem.loss_scale())
        self.paths = BatchedPaths([problem], make, tol=tol, interrupts=interrupts, **settings)

    def advance(self, targets: np.ndarray) -> list[Solved]:
        """Return the solutions at all radii that are left."""
        if targets[0] == 0.0:
            return super().advance(targets)
        (found,) = self.paths.solve(targets)
        self.epochs += float(self.paths.n_points)
        if any(point.certified_gap > self.tol * self.scale for point in found):
            self.shortfall = Status.MAX_TIME if time_is_over() else Status.STALLED
        return found
