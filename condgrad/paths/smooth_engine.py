"""SmoothEngine: one certified point of a smooth loss after another, by Newton steps on a working set.

A search (:mod:`~condgrad.paths.smooth_search`) makes the steps on a working set and asks for features that are missing
there. It returns to this module where a model is to be minimised, where the working set must grow, and at the end.
"""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.gram_model import factor, forget_support, recentre, solve_model
from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.rounding import UNIT, bounds, gamma
from condgrad.paths.engine import PathPoint
from condgrad.paths.gauges import PLAIN, gauge_of
from condgrad.paths.least_squares import Goal
from condgrad.paths.points import raise_if_interrupted
from condgrad.paths.smooth_curvature import Curvature
from condgrad.paths.smooth_data import MemoryData, SmoothData
from condgrad.paths.smooth_history import History
from condgrad.paths.smooth_point import (
    LEVEL,
    QUALITY,
    Facts,
    facts_of,
    foresee,
    gap_at,
    part_of_point,
    point_at_zero,
    was_fresh,
)
from condgrad.paths.smooth_search import ATOMS, FRESH_MODEL, LAST, SOLVED, START, ZERO, SmoothSearch, model_tolerance
from condgrad.problems.linear import Problem

_IDLE = 150  # atoms without a coefficient that the working set keeps, or as many as those with one
_INNER = 0.6  # share of the tolerance that the working set's own gap may use up
_FIRST = 0.9  # share of the largest correlation that the first atoms have at least
_BATCH = 30  # atoms that are admitted at most at a time, or a quarter of those with a coefficient if that is more
_MOST_STEPS = 300  # most Newton steps for one point
_ROOM = 64  # atoms for which there is memory in the beginning
_MOST_ATOMS = 3000  # most features of a working set: their curvature takes 72 MB
_STEPS_AHEAD = 2  # number of points ahead at which a feature would enter that is admitted now
_MODEL = 0.1  # share of the tolerance to which the first model of a point is minimised
_PATIENCE = 3.0  # work of steps with an old curvature after which it is renewed, over the work of renewing it


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
        norms = np.hypot(self.columns.norm, self.columns.scale * self.columns.mean)
        self.largest_column = float(norms.max(initial=0.0))
        zeros = np.zeros(samples.y.size)
        self._null_intercept = samples.best_intercept(zeros, 0.0) if has_intercept else 0.0
        self.scale = samples.loss_scale(zeros + self._null_intercept)
        self.floor = samples.least_value()
        self._range = (0.0, 0.0, 0.0)  # a radius, and bounds of the best intercepts over its ball
        self.most_scanned = np.inf  # most columns that may be scanned for one point
        self.restart()

    def restart(self) -> None:
        """Go back to zero."""
        samples, has_intercept = self.problem.samples, self.problem.has_intercept
        self.point = point_at_zero(samples, self.columns, has_intercept, self._null_intercept, self.floor, _ROOM)
        self.oracle = self.data.oracle(self.point.R, lambda: self.point)
        self.bounds = self.oracle.bounds
        self.search = SmoothSearch(self.point)
        self.falling, self.last_alpha = _FIRST, 0.0  # ratio of the last two alphas, and the last one
        self._pursue(Goal(0.0, is_penalised=False), 0.0, ZERO)
        self.largest = float(self.bounds.largest())
        at_zero = facts_of(self.point)
        self._at_zero = at_zero.totals.value, at_zero.b
        self._last_rounding = 0.0
        self.is_spent = self.was_spent = False  # whether most_scanned has ended the search for the last point, for any
        self.curvature = Curvature(self.problem, self.data, self.point.d)
        self.history = History(self.largest)
        self.spent = 0.0  # work of the steps since the curvature was computed

    @property
    def n_atoms(self) -> int:
        """The number of features in the working set."""
        return int(self.point.model.n_atoms())

    # A point.

    def solve(self, goal: Goal, tol: float) -> PathPoint:
        """Return the point at a positive radius, or penalty, with a gap of at most ``tol * scale``, rounding included.

        The gap is exact: the oracle proves the largest correlation. It exceeds the limit only where rounding does not
        let it fall any further, or where ``most_scanned`` ends the search.
        """
        allowed, self.is_spent = tol * self.scale, False
        if self._gap(goal) + self._last_rounding <= allowed:  # the last point may serve for this one too
            found = self._found(goal)
            if found.certified_gap <= allowed:
                return found
        if self.n_atoms == 0:
            self.search.ask(self.oracle, _FIRST * self.largest)
            self._admit_best()
        elif self.bounds.largest() > self.falling * self.point.numbers[LEVEL]:  # it would enter now
            self._admit_best()
        event, begun = START, int(self.bounds.n_scanned())
        self.curvature.relax()
        while True:
            rounding = 2.0 * self._last_rounding  # it grows with the radius
            limit = max(allowed - rounding, rounding)  # where rounding is more than half of it, that much is the best
            self._search(goal, limit, event, begun)
            found = self._found(goal)
            self._last_rounding = found.rounding
            is_short = found.certified_gap > allowed and found.rounding > rounding
            if not is_short or self.is_spent:
                break
            event = ATOMS  # rounding has grown by more than was expected: go on to a smaller gap
        if self.last_alpha > 0.0:
            self.falling = min(1.0, max(_FIRST, found.alpha / self.last_alpha))
        self.last_alpha = found.alpha
        self._prune()
        return found

    def _search(self, goal: Goal, limit: float, event: int, begun: int) -> None:
        """Go to the point with a gap of at most ``limit``, or as close to it as rounding and limits of work allow.

        ``begun`` is the number of columns that were scanned before this point.
        """
        n_steps = 0
        if event == START:
            self._foresee(goal, limit)
        while event != SOLVED:
            raise_if_interrupted(self.interrupts)
            event = self._pursue(goal, limit, event if n_steps < _MOST_STEPS or event == ATOMS else LAST)
            if event == ATOMS:
                if self.bounds.n_scanned() - begun >= self.most_scanned:
                    self.is_spent = self.was_spent = True
                    return
                self._admit_best()
            elif event != SOLVED:
                n_steps += 1
                self._minimise_next(goal, is_fresh=event == FRESH_MODEL)

    def _foresee(self, goal: Goal, limit: float) -> None:
        """Minimise the last model for the next target, with a gradient that foresees how the curvature changes."""
        point, weight = self.point, self.history.weight(goal)
        now, before = (point.x, point.correlation), (point.before, point.correlation_before)
        foresee(point.model.G, *now, *before, weight, point.saved, self.n_atoms)
        self.history.append(goal)
        self._minimise_model(goal, point.saved, _MODEL * limit)

    def _minimise_next(self, goal: Goal, *, is_fresh: bool) -> None:
        """Minimise the model at x, with the curvature there if it has to be fresh or if the old one costs too much."""
        if is_fresh or self.spent >= _PATIENCE * self.curvature.work(self.search.atoms):
            self._renew_curvature()
            self.history.renew(goal)
            self.spent = 0.0
        self.spent += self.search.work
        self._minimise_model(goal, self.point.correlation, model_tolerance(self.point))

    def _arrange_search(self) -> None:
        """Make a search for the present working set."""
        if self.search.point is not self.point or self.search.size != self.n_atoms:
            self.search = SmoothSearch(self.point)

    def _pursue(self, goal: Goal, limit: float, event: int) -> int:
        """Search on until something is needed; return what."""
        self._arrange_search()
        found = self.search.pursue(self.oracle, goal, limit, _INNER * limit, self.falling**_STEPS_AHEAD, event)
        self.search.add_up()
        return found

    def _minimise_model(self, goal: Goal, correlation: np.ndarray, tol: float) -> None:
        """Minimise the model with these correlations at x; one with a penalty has no gap, and is solved exactly."""
        model = self.point.model
        recentre(model, self.point.x, correlation)
        tol = -np.inf if goal.is_penalised else tol
        solve_model(model, 0.0, goal.is_penalised, goal.target, tol, 1000 + 20 * self.n_atoms)
        if not model.is_symmetric:
            np.maximum(model.x, 0.0, out=model.x)  # rounding may leave what is zero just below it

    def zero(self, goal: Goal | None = None) -> PathPoint:
        """Return the point w = 0 where it is the solution; without a goal, where rounding cannot change that."""
        rounding = 0.0 if goal is None else self._found(goal).rounding
        return PathPoint(np.empty(0, np.int64), np.empty(0), 0.0, self.largest, 0.0, rounding, *self._at_zero)

    # The working set.

    def _admit_best(self) -> None:
        """Admit the features with the largest correlations that the last scan has found."""
        found = self.search.found
        most = max(_BATCH, int(np.count_nonzero(self.point.x)) // 4)
        self._admit(found.features[np.argsort(-found.sizes, kind="stable")[:most]])

    def _admit(self, new: np.ndarray) -> None:
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
        self._arrange_search()
        self.curvature.fill(self.point.model.G, self.search.atoms, self.point.features[:size], first)
        self.search.correlate()

    def _prune(self) -> None:
        """Drop the atoms without a coefficient where there are many of them."""
        point, size = self.point, self.n_atoms
        if size <= _IDLE:
            return
        is_kept = (point.x[:size] != 0.0) | point.model.is_in[:size]
        if size <= 2 * np.count_nonzero(is_kept) + _IDLE:
            return
        left = np.flatnonzero(~is_kept)
        self.bounds.set_known(point.features[left], self.columns.size(point.correlation[left]))
        self.point = part_of_point(point, np.flatnonzero(is_kept), point.x.size)

    def _renew_curvature(self) -> None:
        """Make the model of the curvatures of the present point."""
        point, model = self.point, self.point.model
        self.curvature.take(point.d, self.n_atoms, point.numbers[QUALITY], was_fresh=was_fresh(point))
        self.curvature.fill(model.G, self.search.atoms, point.features[: self.n_atoms], 0)
        forget_support(model, self.n_atoms)
        factor(model, np.flatnonzero(point.x[: self.n_atoms]))

    # What is known about the point.

    def _gap(self, goal: Goal) -> float:
        largest = max(float(self.point.numbers[LEVEL]), float(self.bounds.largest()))
        return float(gap_at(goal.is_penalised, goal.target, self.point.numbers, self.point.totals, largest))

    def _found(self, goal: Goal) -> PathPoint:
        """Return the present point with its certificate."""
        point, facts = self.point, facts_of(self.point)
        (used,) = point.x[: self.n_atoms].nonzero()
        features, x = point.features[used], point.x[used]
        largest = max(facts.level, float(self.bounds.largest()))
        rounding = self._rounding(goal, facts, features, x, largest)
        is_false = goal.is_penalised and facts.totals.value < self.floor - rounding  # the floor is not what it says
        gap = math.inf if is_false else max(self._gap(goal), 0.0)
        return PathPoint(features, x, facts.norm, largest, gap, rounding, facts.totals.value, facts.b)

    def _rounding(self, goal: Goal, facts: Facts, features: np.ndarray, x: np.ndarray, largest: float) -> float:
        """Return a bound of what rounding does to the gap; the reasoning is that of :mod:`condgrad.linalg.rounding`."""
        totals, norm, n_terms = facts.totals, facts.norm, x.size
        # A penalised optimum has a norm of at most (F(x) - floor) / alpha + ||x||.
        radius = abs(totals.value - self.floor) / goal.target + norm if goal.is_penalised else goal.target
        sizes = totals.sizes
        away = self._away(radius) if self.problem.has_intercept else 0.0
        norm_of_w = norm if self.gauge.weights is None else float(np.abs(x) @ self.columns.scale[features])
        samples = self.problem.samples
        size = norm_of_w * self.data.largest_entry + abs(facts.b)  # of a prediction, at most
        delta, one = samples.prediction_errors(sizes, n_terms, norm * self.largest_column, size)
        found = bounds(
            sizes,
            n_samples=self.problem.n_samples,
            reach=2.0 * radius * self.largest_column + away,
            free_reach=away,
            delta=delta,
            slope_error=totals.slope_error(samples.loss, delta, one),
        )
        of_gap = found.gap + gamma(n_terms + 8) * largest * norm + 8.0 * UNIT * radius * largest
        return of_gap + found.objective if goal.is_penalised else of_gap

    def _away(self, radius: float) -> float:
        """Return how far apart two best intercepts can be over the ball of that radius."""
        known, low, high = self._range
        if radius > known:
            samples = self.problem.samples
            reach = 2.0 * radius * self.largest_column  # of a ball of twice the radius, for points to come
            low, high = samples.intercept_range(np.zeros(samples.y.size), self._null_intercept, reach)
            self._range = (2.0 * radius, low, high)
        return high - low
