"""SmoothEngine: one certified point of a smooth loss after another, by Newton steps on a working set.

A search (:mod:`~condgrad.paths.smooth_search`) makes the steps. It returns to this module for what it needs: the loss,
a larger working set, another curvature, and at the end.
"""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.gram_model import factor
from condgrad.linalg.interrupts import Interrupts
from condgrad.paths.engine import PathPoint
from condgrad.paths.gauges import PLAIN, gauge_of
from condgrad.paths.least_squares import Goal
from condgrad.paths.oracle import found_by
from condgrad.paths.point_rounding import PointRounding
from condgrad.paths.points import InterruptedPathError, raise_if_interrupted
from condgrad.paths.smooth_course import (
    ATOMS,
    BEGUN,
    CURVATURE,
    CURVED,
    DONE,
    ENLARGED,
    EVALUATED,
    EVALUATION,
    FALLING,
    IS_FRESH,
    N_COURSE,
    NEXT,
    PAUSE,
    PRUNING,
    QUALITY,
    RENEWAL,
    SCAN,
    SPENT,
    STAGE,
    STEPS,
    TARGETS,
    THRESHOLD,
    TOTALS,
    Course,
    Task,
)
from condgrad.paths.smooth_curvature import Curvature
from condgrad.paths.smooth_data import MemoryData, SmoothData
from condgrad.paths.smooth_history import new_history
from condgrad.paths.smooth_passes import SmoothPasses
from condgrad.paths.smooth_point import LEVEL, MU, facts_of, part_of_point, point_at_zero
from condgrad.paths.smooth_search import (
    ALPHA_FOUND,
    B_FOUND,
    GAP_FOUND,
    N_FOUND,
    NORM_FOUND,
    Search,
    Solutions,
    gather,
    record,
    turn,
)
from condgrad.paths.stretch import Stretch
from condgrad.problems.linear import Problem
from condgrad.problems.totals import Totals, scale_of_losses

_IDLE = 150  # atoms without a coefficient that the working set keeps, or as many as those with one
_FIRST = 0.9  # share of the largest correlation that the first atoms have at least
_BATCH = 30  # atoms that are admitted at most at a time, or a quarter of those with a coefficient if that is more
_MOST_STEPS = 300  # most Newton steps for one point
_ROOM = 64  # atoms for which there is memory in the beginning
_MOST_ATOMS = 3000  # most features of a working set: their curvature takes 72 MB
_MOST_WORK = 1e8  # multiply-adds after which a search returns to hear Ctrl-C: about a tenth of a second
_STRETCH = 256  # most targets of one search, where one thread is enough for its passes
_OF_POINTS = (NORM_FOUND, ALPHA_FOUND, GAP_FOUND, GAP_FOUND, N_FOUND, B_FOUND)  # PathPoint's numbers, but rounding
_NO_POINTS = Stretch(PathPoint, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty((6, 0)))
_ROUGH = 1e-7  # relative tolerance from which on rounding is expected to be small before there are points
_LITTLE = 1e-3  # the share of the tolerance that it is expected to be at most
_CLEAR = 100.0  # how many times rounding the tolerance must be for a search over several targets


class OutgrownError(Exception):
    """The working set has too many features for a dense matrix of their curvature."""


class SmoothEngine:
    """Solves points one after the other, each from where the last ones lead.

    Parameters
    ----------
    problem : Problem
        Of a convex loss over a ball of a :class:`~condgrad.paths.gauges.Gauge`, of any radius.
    interrupts : Interrupts, optional
        Where Ctrl-C is heard: then :class:`~condgrad.paths.points.InterruptedPathError` is raised.
    data : SmoothData, optional
        The columns of the problem; by default they are in memory.

    Attributes
    ----------
    scale : float
        The mean size of the loss at zero: what relative gaps are relative to.
    largest : float
        The largest correlation at zero, which is the smallest penalty whose solution is zero.
    floor : float
        A lower bound of the loss over all predictions.
    """

    def __init__(self, problem: Problem, interrupts: Interrupts | None = None, data: SmoothData | None = None) -> None:
        self.problem, self.interrupts = problem, interrupts
        samples, has_intercept = problem.samples, problem.has_intercept
        self.gauge = gauge_of(problem.constraint) or PLAIN
        self.data = MemoryData(problem, self.gauge) if data is None else data
        self.columns = self.data.columns
        self._null_intercept = samples.best_intercept(np.zeros(samples.y.size), 0.0) if has_intercept else 0.0
        self.floor = samples.least_value()
        farthest = self.columns.norm
        if has_intercept:  # the norms of columns that are not centred
            farthest = np.hypot(farthest, self.columns.scale * self.columns.mean)
        self._rounds = PointRounding(
            problem,
            null_intercept=self._null_intercept,
            farthest=float(farthest.max(initial=0.0)),
            largest_entry=self.data.largest_entry,
        )
        self.most_scanned = np.inf  # most columns that may be scanned for one point
        self.restart()
        size, b = self._at_zero.totals.size, self._null_intercept
        self.scale = scale_of_losses(size, size if b == 0.0 else samples.mean_size(0.0))

    def restart(self) -> None:
        """Go back to zero."""
        samples, has_intercept = self.problem.samples, self.problem.has_intercept
        room = min(_ROOM, self.problem.n_features)  # for a start
        self.point = point_at_zero(samples, self.columns, has_intercept, self._null_intercept, self.floor, room)
        self.history = new_history()
        self.course = np.zeros(N_COURSE)
        self.course[FALLING] = _FIRST
        self.passes = SmoothPasses(self.point, self.course)
        self.passes.begin()
        self.curvature = Curvature(self.problem, self.data, self.point.d)
        self.course[CURVED] = self.point.d.sum()
        self.oracle = self.data.oracle(self.point.R, lambda: self.point)
        self.bounds = self.oracle.bounds
        self.oracle.begin(self.point.a, self.point.numbers[MU])
        self.largest = float(self.bounds.largest())
        self._at_zero = facts_of(self.point)
        self._last_rounding = 0.0
        self.is_spent = self.was_spent = False  # whether most_scanned has ended the search for the last point, for any

    @property
    def n_atoms(self) -> int:
        """The number of features in the working set."""
        return int(self.point.model.n_atoms())

    def present(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of the working set and their coefficients where the search stands."""
        return self.point.features[: self.n_atoms], self.point.x[: self.n_atoms]

    @property
    def _is_alone(self) -> bool:
        """Whether one thread is enough for the passes over samples and columns."""
        return self.passes.is_alone and self.oracle.works_alone

    @property
    def n_evaluated(self) -> int:
        """How often the loss was evaluated since the path began at zero."""
        return int(self.course[EVALUATED])

    # Points.

    def solve(self, goal: Goal, tol: float) -> PathPoint:
        """Return the point at a positive radius, or penalty, with a gap of at most ``tol * scale``, rounding included.

        The gap is exact: the oracle proves the largest correlation. It exceeds the limit only where rounding does not
        let it fall any further, or where ``most_scanned`` ends the search.
        """
        return self.advance(np.array([goal.target]), goal.is_penalised, tol)[0]

    def advance(self, targets: np.ndarray, is_penalised: bool, tol: float) -> Stretch[PathPoint]:
        """Return such points at the first one of the targets, or at the first few where the data are small."""
        allowed, self.is_spent = tol * self.scale, False
        self.history.take_up(is_penalised, self.largest)
        self.course[STAGE] = NEXT
        stretch = targets[: _STRETCH if self._is_alone else 1]
        if self._last_rounding == 0.0:  # at zero no points are known yet; what is expected of them need not hold
            is_rough = tol >= _ROUGH
            self._last_rounding = _LITTLE * allowed if is_rough else self._rounding_at_zero(stretch, is_penalised)
        if _CLEAR * self._last_rounding > allowed:
            stretch = targets[:1]
        rounding = 2.0 * self._last_rounding  # it grows with the radius
        points = self._search(stretch, is_penalised, allowed, rounding)
        while stretch.size == 1 and not self._n_good(points, allowed, rounding) and not self.is_spent:
            # Rounding has grown by more than was expected: go on to a smaller gap.
            rounding = 2.0 * points[0].rounding
            self.course[STAGE], self.course[STEPS] = ENLARGED, 0.0
            points = self._search(stretch, is_penalised, allowed, rounding)
        self._last_rounding = float(points.column("rounding")[-1])
        n_good = self._n_good(points, allowed, rounding)
        if stretch.size > 1 and n_good == 0:
            return self.advance(targets[:1], is_penalised, tol)
        return points if n_good == len(points) else points[: max(1, n_good)]

    @staticmethod
    def _n_good(points: Stretch[PathPoint], allowed: float, rounding: float) -> int:
        """Return the number of points before the first one whose rounding is more than was expected, and too much."""
        of_points = points.column("rounding")
        is_short = (points.column("gap") + of_points > allowed) & (of_points > rounding)
        return int(is_short.argmax()) if is_short.any() else len(points)

    def _search(self, targets: np.ndarray, is_penalised: bool, allowed: float, rounding: float) -> Stretch[PathPoint]:
        """Return the points at the targets, or at some of them; what a search needs in between comes from here."""
        found, done, needs = [_NO_POINTS], 0, -1
        if self.n_atoms == 0 and self.course[STAGE] == NEXT:
            self._begin(targets, is_penalised, allowed, rounding)
        task, solutions = self._task(targets, is_penalised, allowed, rounding)
        while needs != TARGETS:
            try:
                raise_if_interrupted(self.interrupts)
            except InterruptedPathError:
                found.append(self._harvest(task, solutions))
                if done + len(found[-1]) > 0:
                    break
                raise
            needs = turn(self.search, task, solutions)
            if needs == PAUSE:
                continue
            elif needs == EVALUATION:
                self.passes.arrive(task.is_penalised)
            elif needs == SCAN:
                self.found = self.passes.ask(self.oracle, float(self.course[THRESHOLD]))
            elif needs == TOTALS:
                self.passes.add_up()
            elif needs == CURVATURE:
                self._renew_curvature(task)
            elif needs == ATOMS and self._is_at_limit():
                found.append(self._harvest(task, solutions))
                found.append(self._present(float(targets[done + len(found[-1])]), task.is_penalised))
                break
            elif needs == ATOMS and self.n_atoms + (new := self._best()).size <= self.point.x.size:
                self._admit(new)
            else:  # the arrays change, or all is done
                found.append(self._harvest(task, solutions))
                done += len(found[-1])
                if needs == ATOMS:
                    self._admit(new)
                elif needs == PRUNING:
                    self._prune()
                task, solutions = self._task(targets[done:], task.is_penalised, allowed, rounding)
        return Stretch.joined([points for points in found if len(points) > 0])

    def _task(self, targets: np.ndarray, is_penalised: bool, allowed: float, rounding: float) -> tuple[Task, Solutions]:
        """Return the task of solving these targets, and where the solutions go."""
        self.course[DONE] = 0.0
        x, found = np.zeros((targets.size, self.point.x.size)), np.empty((targets.size, N_FOUND + len(Totals._fields)))
        return Task(targets, is_penalised, allowed, rounding, _MOST_STEPS, _IDLE), Solutions(x, found)

    def _begin(self, targets: np.ndarray, is_penalised: bool, allowed: float, rounding: float) -> None:
        """Begin at zero: the first atoms are known without a search, unless zero serves for the first target."""
        self.course[DONE] = 0.0
        course = self._course(Task(targets, is_penalised, allowed, rounding, _MOST_STEPS, _IDLE))
        if course.choose_target(self.largest, course.gap(self.largest)) == ATOMS:
            self._admit(self._best())
        else:
            self._arrange()

    def _course(self, task: Task) -> Course:
        """Return what decides in a search."""
        return Course(self.course, self.point.numbers, self.point.totals, task)

    def _harvest(self, task: Task, solutions: Solutions) -> Stretch[PathPoint]:
        """Return the points that were found since the task was given, and begin with the next target."""
        count, self.course[DONE] = int(self.course[DONE]), 0.0
        self.curvature.relax(count)
        if count == 0:
            return _NO_POINTS
        order, known = np.argsort(self.point.features[: self.n_atoms]), solutions.found[:count]
        sizes, features, x, size_of_w = gather(solutions.x[:count], order, self.point.features, self.columns.scale)
        rounding = self._rounding(task.is_penalised, task.targets[:count], known, size_of_w, int(sizes.max()))
        numbers = known[:, _OF_POINTS].T
        _, _, gap, roundings, value, _ = numbers
        roundings[:] = rounding
        if task.is_penalised:
            gap[value < self.floor - rounding] = math.inf  # the floor is not what it says
        return Stretch(PathPoint, sizes, features, x, numbers)

    def zero(self, goal: Goal | None = None) -> PathPoint:
        """Return the point w = 0 where it is the solution; without a goal, where rounding cannot change that."""
        rounding = 0.0 if goal is None else self._present(*goal)[0].rounding
        value, b = self._at_zero.totals.value, self._at_zero.b
        return PathPoint(np.empty(0, np.int64), np.empty(0), 0.0, self.largest, 0.0, rounding, value, b)

    def _present(self, target: float, is_penalised: bool) -> Stretch[PathPoint]:
        """Return the present point with its certificate, be it solved or not."""
        self.passes.add_up()
        task, solutions = self._task(np.array([target]), is_penalised, 0.0, 0.0)
        numbers, totals = self.point.numbers, self.point.totals
        alpha = max(float(numbers[LEVEL]), float(self.bounds.largest()))
        gap = self._course(task).gap(alpha)
        record(solutions, self.course, self.point.x, numbers, totals, alpha, gap, self.n_atoms)
        return self._harvest(task, solutions)

    # The working set.

    def _arrange(self) -> None:
        """Make passes and a search for the present working set."""
        point = self.point
        if self.passes.point is not point or self.passes.size != self.n_atoms:
            self.passes.take(point)
        atoms, is_alone = self.passes.atoms, self._is_alone
        self.search = Search(
            atoms.columns, atoms.features, self.bounds, self.history, point.model, point.x, point.before,
            point.correlation_before, point.saved, point.correlation, point.p, point.a, point.R, point.d,
            self.curvature.h, point.saved_p, point.totals, point.numbers, self.course, is_alone, self.passes.errand,
            is_alone and self.curvature.is_plain(atoms), point.has_intercept, self.passes.work, _MOST_WORK,
        )  # fmt: skip
        self.course[RENEWAL] = self.curvature.work(atoms)

    def _is_at_limit(self) -> bool:
        """Tell whether too many columns were scanned for the present point to go on with it."""
        n_scanned = self.bounds.n_scanned() - self.course[BEGUN]
        if self.course[STAGE] == ENLARGED and n_scanned >= self.most_scanned:
            self.is_spent = self.was_spent = True
        return self.is_spent

    def _best(self) -> np.ndarray:
        """Return the features with the largest correlations that the last scan has found."""
        if self.n_atoms == 0:  # at zero all correlations are known
            sizes = self.bounds.upper()
            is_few = sizes.size <= _BATCH  # so few features need no choice, and then no scans
            features = np.arange(sizes.size) if is_few else np.flatnonzero(sizes >= _FIRST * self.largest)
            sizes = sizes[features]
        else:
            _, features, sizes = found_by(self.bounds) if self.search.is_alone else self.found
        most = max(_BATCH, int(np.count_nonzero(self.point.x)) // 4)
        return features[np.argsort(-sizes, kind="stable")[:most]]

    def _admit(self, new: np.ndarray) -> None:
        """Admit these features to the working set."""
        first, size = self.n_atoms, self.n_atoms + new.size
        if size > _MOST_ATOMS:
            raise OutgrownError
        if size > self.point.x.size:
            self.point = part_of_point(self.point, np.arange(first), 2 * size)
        self.point.features[first:size] = new
        self.point.x[first:size] = self.point.before[first:size] = 0.0
        self.point.correlation_before[first:size] = np.nan
        self.bounds.key[new] = -np.inf  # the correlations of atoms are always computed
        self.point.model.append(new.size)
        self._arrange()
        self.curvature.fill(self.point.model.G, self.passes.atoms, self.point.features[:size], first)
        self.passes.correlate(first)

    def _prune(self) -> None:
        """Drop the atoms without a coefficient."""
        point, size = self.point, self.n_atoms
        is_kept = (point.x[:size] != 0.0) | point.model.is_in[:size]
        left = np.flatnonzero(~is_kept)
        self.oracle.move(point.R)  # no scan has done so while all features were in the working set
        self.bounds.set_known(point.features[left], self.columns.size(point.correlation[left]))
        self.point = part_of_point(point, np.flatnonzero(is_kept), point.x.size)
        self._arrange()

    def _renew_curvature(self, task: Task) -> None:
        """Make the model of the curvatures of the present point."""
        point, model, course = self.point, self.point.model, self.course
        self.curvature.take(point.d, self.n_atoms, course[QUALITY], was_fresh=bool(course[IS_FRESH] > 0.0))
        self.curvature.fill(model.G, self.passes.atoms, point.features[: self.n_atoms], 0)
        factor(model, np.flatnonzero(point.x[: self.n_atoms]), self.curvature.is_rough)
        self.history.renew(task.place(self._course(task).target()))
        course[CURVED] = point.d.sum()
        course[SPENT], course[RENEWAL] = 0.0, self.curvature.work(self.passes.atoms)

    # What rounding does.

    def _rounding(
        self, is_penalised: bool, targets: np.ndarray, known: np.ndarray, size_of_w: float, n_terms: int
    ) -> float:
        """Return a bound of what rounding does to the gaps of some points, one bound for all of them.

        ``size_of_w`` and ``n_terms`` are the largest sum of the sizes of the coefficients of X, and their most.
        """
        most = np.abs(known).max(axis=0)
        totals = Totals(*most[N_FOUND:].tolist())
        norm, b, largest = float(most[NORM_FOUND]), float(most[B_FOUND]), float(most[ALPHA_FOUND])
        radius = float(targets.max())
        if is_penalised:  # an optimum has a norm of at most (F(x) - floor) / alpha + ||x||
            radius = float((np.abs(known[:, N_FOUND] - self.floor) / targets + known[:, NORM_FOUND]).max())
        return self._rounds.of_gap(
            totals, n_terms=n_terms, norm=norm, size_of_w=size_of_w, b=b, radius=radius, largest=largest,
            is_penalised=is_penalised,
        )  # fmt: skip

    def _rounding_at_zero(self, targets: np.ndarray, is_penalised: bool) -> float:
        """Return a bound of what rounding does to the gap of zero as the solution for any of the targets."""
        known = np.zeros((1, N_FOUND + len(Totals._fields)))
        known[0, ALPHA_FOUND], known[0, B_FOUND] = self.largest, self._at_zero.b
        known[0, N_FOUND:] = self._at_zero.totals
        return self._rounding(is_penalised, targets, known, 0.0, 0)
