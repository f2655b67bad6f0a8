"""GroupEngine: one certified point over a ball of groups after another, by Newton steps on a working set of groups.

It does for groups what :mod:`~condgrad.paths.smooth_engine` does for single features: on the working set F is replaced
by its Taylor model, whose minimiser is found by :mod:`~condgrad.linalg.group_model`; the gradient is always that of the
present point, the curvature is kept while it serves; bounds prove which other groups need no look.
"""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.group_model import GroupModel, minimise_over_ball, minimise_penalised
from condgrad.linalg.interrupts import Interrupts, end_of_time
from condgrad.paths.engine import End, PathPoint
from condgrad.paths.group_bounds import GroupBounds
from condgrad.paths.group_data import Arrival, LinearGroups
from condgrad.paths.group_gauge import GroupGauge
from condgrad.paths.group_lines import points_between
from condgrad.paths.group_set import GroupSet
from condgrad.paths.leaps import Leaps
from condgrad.paths.least_squares import Goal
from condgrad.paths.points import raise_if_interrupted
from condgrad.paths.smooth_engine import OutgrownError
from condgrad.paths.smooth_history import new_history, place_of
from condgrad.paths.smooth_point import ACCEPTED, FAILED, GOOD, penalised_gap
from condgrad.problems.linear import Problem

_IDLE = 40  # groups without coefficients that the working set keeps, or half as many as those with some
_INNER = 0.6  # share of the tolerance that the working set's own gap may use up
_AHEAD = 0.01  # share of the last gap that the working set's own gap may have while groups are missing
_FIRST = 0.9  # share of the largest dual norm that the first groups have at least
_BATCH = 10  # groups that are admitted at most at a time, or a quarter of those with coefficients if that is more
_MOST_STEPS = 300  # most Newton steps for one point
_MOST_FEATURES = 3000  # most features of a working set: their curvature takes 72 MB
_STEPS_AHEAD = 2  # number of points ahead at which a group would enter that is admitted now
_STEPS_AHEAD_LARGE = 0.5  # the same where the working set has more features than there are samples
_MODEL = 0.3  # share of the tolerance to which models are minimised: the loss, which is no quadratic, takes the rest
_STEP = 0.02  # share of the gap to which they are, before the last steps
_FAST = 0.2  # share of the gap above which a step that leaves so much of it asks for fresh curvatures
_SUFFICIENT = 1e-3  # share of the model's slope by which F must fall, where a step has not halved the gap
_GOOD = 0.1  # share of the model's slope by which F falls in a good step
_SHORTER = 0.3  # factor by which a step is shortened as long as F does not fall
_SHORTEST = 1e-3  # length of a step below which it is given up
_MOST_IDLE = 5  # rounds without a new group, each ten times as accurate as the last, after which rounding has won
_ROUNDING = 1e-14  # share of F that rounding may add to it
_OUTSIDE = 1e-12  # relative slack: rounding may push a norm this far beyond the radius
_PATIENCE = 3.0  # work of steps with an old curvature after which it is renewed, over the work of renewing it
_WORK_PER_SAMPLE = 20  # cost of a sample in multiply-adds: that of a loss with an exponential, about
_CALLS = 100_000.0  # work of the calls of one step, in multiply-adds


class GroupEngine:
    """Solves points one after the other, each from where the last ones lead.

    Parameters
    ----------
    problem : Problem
        Of a convex loss over a ball of the gauge, of any radius, in memory.
    gauge : GroupGauge
    interrupts : Interrupts, optional
        Where Ctrl-C is heard: then :class:`~condgrad.paths.points.InterruptedPathError` is raised.

    Attributes
    ----------
    scale : float
        The mean size of the loss at zero: what relative gaps are relative to.
    largest : float
        The largest dual norm at zero, which is the smallest penalty whose solution is zero.
    floor : float
        A lower bound of the loss over all predictions.
    """

    def __init__(self, problem: Problem, gauge: GroupGauge, interrupts: Interrupts | None = None) -> None:
        self.problem, self.gauge, self.interrupts = problem, gauge, interrupts
        self.data = LinearGroups(problem, gauge.form)
        self.columns, self.scale, self.floor = self.data.columns, self.data.scale, self.data.floor
        self.most_scanned = np.inf  # most columns that may be scanned for one point
        self.restart()

    def restart(self) -> None:
        """Go back to zero."""
        data = self.data
        data.forget()
        self.set, self.atoms = GroupSet(self.gauge.form), data.atoms(np.empty(0, np.int64))
        self.at, self.norm, self.level = data.zero, 0.0, 0.0
        self.bounds = GroupBounds(self.columns.weight, data.reach, data.spread, self.at.R, data.of_dual)
        self.outside, self._found = 0.0, (np.empty(0, np.int64), np.empty(0))
        self._scan(-1.0)
        self.largest = self.outside
        self.falling, self.last_alpha, self.model_alpha = _FIRST, 0.0, -1.0
        self._alpha_before = -1.0
        self._last_rounding = 0.0
        self.is_spent = self.was_spent = False  # whether most_scanned has ended the search for the last point, for any
        self.history = new_history()
        self._leaps: Leaps[Arrival] | None = None
        self._front = False, -math.inf  # the farthest place of the path that was solved, and whether it is a penalty's
        self.spent = 0.0  # work of the steps since the curvature was computed

    def present(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of the working set and their coefficients where the search stands."""
        return self.set.features, self.set.x

    # A point.

    def advance(self, targets: np.ndarray, is_penalised: bool, tol: float) -> list[PathPoint]:
        """Return the point at the first one of the targets; of a quadratic loss, the points at the first few."""
        if not self.problem.is_quadratic:
            return [self.solve(Goal(float(targets[0]), is_penalised), tol)]
        if self._leaps is None or (self._leaps.is_penalised, self._leaps.tol) != (is_penalised, tol):
            self._leaps = Leaps(self, is_penalised, tol)
        return self._leaps.advance(targets)

    def mark_of_zero(self) -> Arrival:
        """Return what belongs to zero."""
        return self.data.zero

    def mark(self) -> Arrival:
        """Return what belongs to the last point."""
        return self.at

    def between(
        self, left: End[Arrival], right: End[Arrival], targets: np.ndarray, is_penalised: bool
    ) -> list[PathPoint]:
        """Return the points on the line between two ends, with their gaps."""
        return points_between(self.data, left, right, targets, is_penalised)

    def solve(self, goal: Goal, tol: float) -> PathPoint:
        """Return the point at a positive radius, or penalty, with a gap of at most ``tol * scale``, rounding included.

        The gap is exact: the bounds prove the largest dual norm. It exceeds the limit only where rounding does not let
        it fall any further, or where ``most_scanned`` ends the search.
        """
        allowed, self.is_spent = tol * self.scale, False
        if self._gap(goal, max(self.level, self.outside)) + self._last_rounding <= allowed:
            found = self._point(goal)  # the last point may serve for this one too
            if found.certified_gap <= allowed:
                return found
        if self.set.size == 0:
            self._admit(_FIRST * self.largest)
        begun, is_new = self.bounds.n_scanned(), True
        self.data.curvature.relax(1)
        while True:
            rounding = 2.0 * self._last_rounding  # it grows with the radius
            limit = max(allowed - rounding, rounding)  # where rounding is more than half of it, that much is the best
            if is_new:
                self._guess(goal, limit)
            self._search(goal, limit, begun)
            found = self._point(goal)
            self._last_rounding, is_new = found.rounding, False
            if self.is_spent or not (found.certified_gap > allowed and found.rounding > rounding):
                break
        if self.last_alpha > 0.0:
            self.falling = min(1.0, max(_FIRST, found.alpha / self.last_alpha))
        self.last_alpha = found.alpha
        kind, farthest = self._front
        if goal.is_penalised is not kind or place_of(goal) >= farthest:  # points before it need fewer groups
            self._front = goal.is_penalised, place_of(goal)
            self._prune()
        return found

    def _search(self, goal: Goal, limit: float, begun: int) -> None:
        """Go to the point with a gap of at most ``limit``, or as close to it as rounding and limits of work allow."""
        finest, gap = _INNER * limit, self._gap(goal, self.level)
        tol = max(finest, _AHEAD * gap) if gap < math.inf else finest
        needed, last, is_fresh, has_gained, n_idle, n_steps = max(limit, tol), math.inf, False, True, 0, 0
        least = math.inf  # gap at which a step has begun
        while True:
            raise_if_interrupted(self.interrupts)
            gap = self._gap(goal, self.level)
            is_stuck = is_fresh and not (has_gained or gap < last)  # rounding has won
            if gap > needed and not is_stuck and n_steps < _MOST_STEPS:
                is_fresh = not (has_gained and gap <= _FAST * last)
                self._arrange_curvature(goal, is_fresh, last)
                n_steps, last, least = n_steps + 1, gap, min(least, gap)
                has_gained = self._step(goal, least, max(_MODEL * tol, _STEP * gap))
                continue
            self._scan(self._ahead())
            gap = self._gap(goal, max(self.level, self.outside))
            self.is_spent = gap > limit and self.bounds.n_scanned() - begun >= self.most_scanned
            self.was_spent |= self.is_spent
            if gap <= limit or self.is_spent or n_idle > _MOST_IDLE or n_steps >= _MOST_STEPS:
                return
            if self.outside > self.level:
                self._admit(0.0)
                tol, n_idle = max(finest, min(tol, _AHEAD * gap)), 0
            else:
                n_idle += 0 if tol > finest else 1
                tol = finest if tol > finest else 0.1 * tol
            needed, last, least, is_fresh, has_gained = tol, math.inf, math.inf, False, True

    def _guess(self, goal: Goal, limit: float) -> None:
        """Go to the minimiser of the last model for the next target, unless that makes the gap larger."""
        gap, before = self._gap(goal, self.level), (self.at, self.set.x, self.set.correlation, self.norm, self.level)
        self.history.take_up(goal.is_penalised, self.largest)
        place = place_of(goal)
        ratio = self.history.ratio(place, goal.is_penalised)
        start, alpha = self.set.ahead(ratio), self.model_alpha + ratio * (self.model_alpha - self._alpha_before)
        foreseen = self.set.foresee(self.history.weight(place))
        self.history.append(place)
        self.model_alpha, self._alpha_before = max(alpha, 0.5 * self.model_alpha), self.model_alpha
        self._go(self._minimiser(goal, foreseen, _MODEL * limit, start))
        if gap < self._gap(goal, self.level):
            self.at, self.set.x, self.set.correlation, self.norm, self.level = before
        elif self._gap(goal, self.level) == math.inf:  # outside of a smaller ball
            self._go(self.set.x * (goal.target / self.norm))

    def _step(self, goal: Goal, least: float, tol: float) -> bool:
        """Go to the minimiser of the model if that halves the least gap, or as far as F falls; tell whether it did."""
        penalty, x = goal.target if goal.is_penalised else 0.0, self.set.x
        z, value = self._minimiser(goal, self.set.correlation, tol), self.at.totals.value + penalty * self.norm
        slope = penalty * (self.set.norm(z) - self.norm) - float(self.set.correlation @ (z - x))
        slack = _ROUNDING * abs(value)  # close to the optimum a step changes the gap, and F by less than rounding
        self.quality, length = FAILED, 1.0
        while math.isfinite(slope) and length > _SHORTEST:
            self._go(x + length * (z - x) if length < 1.0 else z)
            if length == 1.0 and self._gap(goal, self.level) <= 0.5 * least:
                self.quality = GOOD
                return True
            gain = value - (self.at.totals.value + penalty * self.norm)
            if slope <= slack and gain + _SUFFICIENT * length * min(slope, 0.0) + slack >= 0.0:
                self.quality = GOOD if length == 1.0 and gain + _GOOD * slope >= 0.0 else ACCEPTED
                return gain > slack
            if slope > slack:
                break
            length *= _SHORTER
        self._go(x)
        return False

    def _minimiser(
        self, goal: Goal, correlation: np.ndarray, tol: float, start: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the minimiser of the model with these correlations at x, from ``start`` on (None: x)."""
        own = self.set
        start = own.x if start is None else start
        model = GroupModel(own.form.norm, own.offsets, own.G, correlation, own.x)
        if goal.is_penalised:
            return minimise_penalised(model, start, goal.target, tol, end_of_time()).x
        found = minimise_over_ball(model, start, goal.target, tol, self.model_alpha, end_of_time())
        self.model_alpha = found.alpha
        return found.x

    def _go(self, x: np.ndarray) -> None:
        """Go to the coefficients x."""
        own, data = self.set, self.data
        own.x, self.at = x, data.arrive(self.atoms, x, self.at.b)
        self.norm = own.norm(x)
        self._correlate()

    def _correlate(self) -> None:
        self.set.correlation = self.data.correlate(self.at, self.atoms)
        self.level = float(self.set.dual_norms().max(initial=0.0))

    def zero(self, goal: Goal | None = None) -> PathPoint:
        """Return the point w = 0 where it is the solution; without a goal, where rounding cannot change that."""
        at, nothing = self.data.zero, (np.empty(0, np.int64), np.empty(0))
        rounding = 0.0 if goal is None else self.data.rounding(at, goal, *nothing, 0.0, self.largest)
        return PathPoint(*nothing, 0.0, self.largest, 0.0, rounding, at.totals.value, at.b)

    # The working set.

    def _scan(self, threshold: float) -> None:
        """Find the groups outside of the working set whose dual norms exceed the threshold, and the largest of all."""
        self.bounds.move(self.at.R)
        groups = self.bounds.above(threshold)
        sizes = self.data.dual_norms(self.at, groups)
        self.bounds.set_known(groups, sizes)
        self.bounds.count(int(self.data.sizes[groups].sum()))
        self.outside, self._found = float(sizes.max(initial=0.0)), (groups, sizes)

    def _ahead(self) -> float:
        """Return the dual norm from which on a group is likely to enter soon; a large working set is dear."""
        is_large = self.set.size > self.problem.n_samples
        return float(self.falling ** (_STEPS_AHEAD_LARGE if is_large else _STEPS_AHEAD)) * self.level

    def _admit(self, least: float) -> None:
        """Admit the groups with the largest dual norms that the last scan has found, of at least this size."""
        groups, sizes = self._found
        own = self.set
        n_used = int(own.has_coefficients().sum()) if own.size > 0 else 0
        order = np.argsort(-sizes, kind="stable")[: max(_BATCH, n_used // 4)]
        new = groups[order[sizes[order] >= max(least, self._ahead())]]
        if own.size + int(self.data.sizes[new].sum()) > _MOST_FEATURES:
            raise OutgrownError
        first = own.admit(new)
        self.bounds.leave_out(new)
        self.atoms = self.data.atoms(own.features)
        self.data.fill(own.G, self.atoms, own.features, first)
        self._correlate()
        self.outside = float(np.delete(sizes, order).max(initial=0.0))

    def _prune(self) -> None:
        """Drop the groups without coefficients where there are many of them."""
        own = self.set
        is_used = own.has_coefficients()
        if own.groups.size <= 1.5 * np.count_nonzero(is_used) + _IDLE:
            return
        self.bounds.move(self.at.R)
        sizes = own.dual_norms()
        order = np.argsort(np.where(is_used, -np.inf, -sizes), kind="stable")
        is_kept = np.zeros(is_used.size, bool)
        is_kept[order[: np.count_nonzero(is_used) + _IDLE // 2]] = True
        self.bounds.set_known(own.groups[~is_kept], sizes[~is_kept])
        self.data.keep(own.keep(is_kept))
        self.atoms = self.data.atoms(own.features)

    def _arrange_curvature(self, goal: Goal, is_fresh: bool, last: float) -> None:
        """Take the curvatures of the present point if they have to be fresh or if the old ones cost too much."""
        own, curvature = self.set, self.data.curvature
        if not self.problem.is_quadratic and (is_fresh or self.spent >= _PATIENCE * curvature.work(self.atoms)):
            curvature.take(self.at.d, own.size, self.quality, was_fresh=self.was_fresh and last < math.inf)
            curvature.fill(own.G, self.atoms, own.features, 0)
            self.history.renew(place_of(goal))
            self.spent = 0.0
        self.was_fresh = is_fresh
        self.spent += _CALLS + 2.0 * self.atoms.n_stored + _WORK_PER_SAMPLE * self.problem.n_samples

    is_exact = True  # points of a quadratic loss far from the last one cost little more than those next to it
    quality, was_fresh = GOOD, False  # how the last step went, and whether its curvature was fresh

    # What is known about the point.

    def _gap(self, goal: Goal, largest: float) -> float:
        """Return the gap if no dual norm exceeds ``largest``; inf where x is outside the ball."""
        if goal.is_penalised:
            value = self.at.totals.value
            return float(penalised_gap(goal.target, value, self.at.along, self.norm, largest, self.floor))
        is_inside = self.norm <= goal.target * (1.0 + _OUTSIDE)
        return goal.target * largest - self.at.along if is_inside else math.inf

    def _point(self, goal: Goal) -> PathPoint:
        """Return the present point with its certificate."""
        (used,) = self.set.x.nonzero()
        features, x = self.set.features[used], self.set.x[used]
        largest, value = max(self.level, self.outside), self.at.totals.value
        rounding = self.data.rounding(self.at, goal, features, x, self.norm, largest)
        is_false = goal.is_penalised and value < self.floor - rounding  # the floor is not what it says
        gap = math.inf if is_false else max(self._gap(goal, largest), 0.0)
        return PathPoint(features, x, self.norm, largest, gap, rounding, value, self.at.b)
