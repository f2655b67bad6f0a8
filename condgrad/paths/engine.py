"""ExactEngine: one certified point of the path after another, from a working set and a lazy oracle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from condgrad.linalg.interrupts import Interrupts
from condgrad.paths.columns import Columns
from condgrad.paths.gram_solver import GramSolver
from condgrad.paths.least_squares import Goal, Quadratic, Residual, Sums
from condgrad.paths.oracle import LazyOracle, Oracle, Scan
from condgrad.paths.points import raise_if_interrupted
from condgrad.paths.working_set import WorkingSet

_IDLE = 150  # atoms without a coefficient that the working set keeps, or as many as those with one
_INNER = 0.6  # share of the tolerance that the working set's own gap may use up
_AHEAD = 0.1  # share of the last gap that the working set's own gap may have while atoms are missing
_FIRST = 0.9  # share of the largest correlation that the first atoms have at least
_NEAR = 0.9  # share of the largest correlation from which on a feature counts as nearby in later rounds
_BATCH = 30  # atoms that are admitted at most at a time, or a quarter of those with a coefficient if that is more
_INSIDE = 4e-16  # share of a radius by which a scaled point is inside of the ball, so that rounding is too
_MOST_IDLE = 5  # rounds without a new atom, each ten times as accurate as the last, after which rounding has won


class PathPoint(NamedTuple):
    """A certified point: its nonzero coefficients (of scaled features) and what is known about it."""

    features: np.ndarray
    x: np.ndarray
    norm: float
    alpha: float
    gap: float
    rounding: float
    objective: float
    offset: float = 0.0  # the best intercept of a loss that is not quadratic

    @property
    def certified_gap(self) -> float:
        """The gap with all that rounding may have done to it."""
        return self.gap + self.rounding


Mark = TypeVar("Mark")  # what an engine keeps of a solved point: its residual, and what belongs to it


class End(NamedTuple, Generic[Mark]):
    """A solved point with its residual; ``point.alpha`` is the largest correlation that was proved there."""

    target: float
    point: PathPoint
    residual: Mark

    def share_of(self, right: End[Mark], target: float) -> float:
        """Return which share of the way to another end leads to the target."""
        way = right.target - self.target
        return (target - self.target) / way if way != 0.0 else 1.0  # the same target may be given twice


class WorkingSetSolver(Protocol):
    """What minimises over a working set, whose coefficients and residual it changes."""

    is_exact: bool  # whether the cost of a solution does not depend on its accuracy
    alpha: float  # the penalty of the last solution

    def minimise(self, goal: Goal, tol: float) -> None:
        """Minimise over the working set to a gap of at most ``tol``."""

    def admit(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the working set."""

    def support(self) -> np.ndarray:
        """Return the places of the atoms that must stay."""

    def keep(self, places: np.ndarray) -> None:
        """Follow the working set, which has kept the atoms at these places alone."""

    def successor(self, tol: float, largest: float, interrupts: Interrupts | None) -> WorkingSetSolver:
        """Return the solver for the next round: this one, or a faster one where the working set has outgrown it."""


class Accuracy(NamedTuple):
    """How accurately a working set is solved: roughly while atoms are missing, and then to ``finest``."""

    now: float
    finest: float

    @property
    def is_rough(self) -> bool:
        """Whether the working set could be solved better than it is."""
        return self.now > self.finest

    def after(self, gap: float, has_new: bool) -> Accuracy:
        """Return the accuracy of the next round: that of a smaller gap, or the finest where no atoms were missing."""
        return self._replace(now=max(self.finest, min(self.now, _AHEAD * gap)) if has_new else self.finest)

    def refined(self) -> Accuracy:
        """Return an accuracy that is ten times finer."""
        return Accuracy(0.1 * self.finest, 0.1 * self.finest)


def oracle_in_memory(working: WorkingSet) -> Oracle:
    """Return the oracle of columns that are in memory."""
    objective = working.objective
    return LazyOracle(cast("Columns", objective.columns), objective.n_stored, working.residual.R)


class ExactEngine:
    """Solves points one after the other, each from where the last one ended.

    Parameters
    ----------
    objective : Quadratic
    interrupts : Interrupts, optional
        Where Ctrl-C is heard: then :class:`~condgrad.paths.points.InterruptedPathError` is raised.
    make_oracle : callable
        Makes the oracle that stands at the residual of a working set.

    Attributes
    ----------
    working : WorkingSet
    largest : float
        The largest correlation at zero, which is the smallest penalty whose solution is zero.
    n_scans : int
        Scans that proved the largest of all correlations.
    """

    def __init__(
        self,
        objective: Quadratic,
        interrupts: Interrupts | None = None,
        make_oracle: Callable[[WorkingSet], Oracle] = oracle_in_memory,
    ) -> None:
        self.objective, self.interrupts = objective, interrupts
        self.working = WorkingSet(objective)
        self.solver: WorkingSetSolver = GramSolver(self.working)
        self.oracle = make_oracle(self.working)
        self._at_zero = self.working.sums.value
        self.largest = self.oracle.begin(self.working.residual.a, self.working.sums.mu)
        self.bound = self.largest  # no correlation with the residual exceeds it, as far as was asked
        self.level = _FIRST * self.largest  # the largest correlation of an atom
        self.nearby, self.nearby_level = Scan(self.largest, np.empty(0, np.int64), np.empty(0)), 0.0
        self.n_scans = 0
        self.max_epochs = math.inf  # most rounds, and passes over the columns, for one point
        self.was_spent = False  # whether that has ended the search for any point

    @property
    def scale(self) -> float:
        """The objective at zero: what relative gaps are relative to."""
        return self.objective.scale

    @property
    def is_exact(self) -> bool:
        """Whether the cost of a point does not depend on its accuracy."""
        return self.solver.is_exact

    @property
    def residual(self) -> Residual:
        """The residual of the last point, in memory that the next point overwrites."""
        return self.working.residual

    def solve(self, goal: Goal, tol: float) -> PathPoint:
        """Return the point at a positive radius, or penalty, with a gap of at most ``tol * scale``, rounding included.

        The gap is exact: the oracle proves the largest correlation. It exceeds the limit only where rounding does not
        let it fall any further, or where ``max_epochs`` ends the search.
        """
        limit = tol * self.scale
        gap, rounding = self._gap(goal), self._rounding(goal)
        if gap + rounding <= limit:  # the last point serves for this one too
            return self._point(gap, rounding)
        limit = max(limit - rounding, rounding)  # where rounding is more than half of it, that much is the best
        accuracy = Accuracy(np.inf, _INNER * limit).after(gap, has_new=gap < np.inf)
        if goal.is_penalised and not self.solver.is_exact:
            self._admit_ahead(goal.target, tol)
        n_idle, n_rounds, begun = 0, 0, self.oracle.n_scanned
        while True:
            self._fit(goal, accuracy.now)
            missing = self._ask_nearby()
            gap, n_rounds = self._gap(goal), n_rounds + 1
            n_passes = (self.oracle.n_scanned - begun) / self.objective.columns.norm.size
            is_spent = max(n_rounds, n_passes) >= self.max_epochs
            can_wait = missing.features.size > 0 or accuracy.is_rough  # no need yet to ask about all columns
            if gap > limit and can_wait and not is_spent:
                self._admit(missing, tol)
                accuracy = accuracy.after(gap, has_new=missing.features.size > 0)
                continue
            missing = self._ask_all()
            n_idle = 0 if missing.features.size else n_idle + 1
            gap = self._gap(goal)
            self.was_spent |= is_spent and gap > limit
            if gap <= limit or is_spent or n_idle > _MOST_IDLE:
                point = self._point(gap, self._rounding(goal))
                self._prune()
                return point
            if missing.features.size:
                self._admit(missing, tol)
            else:
                accuracy = accuracy.refined()
                self._change_solver(tol)

    def present(self, goal: Goal) -> PathPoint:
        """Return the present point, inside of the ball, with its certificate."""
        working = self.working
        norm = float(np.abs(working.x).sum())
        if not goal.is_penalised and norm > goal.target:
            working.x = working.x * (goal.target / norm * (1.0 - _INSIDE))
        working.renew()
        if working.features.size:
            self.level = working.correlate(np.empty(working.features.size))
        self.bound = self.level
        self._ask_all()
        return self._point(self._gap(goal), self._rounding(goal))

    def mark_of_zero(self) -> Residual:
        """Return the residual at zero, in memory of its own."""
        return self.objective.residual()[0]

    def mark(self) -> Residual:
        """Return the residual of the last point, in memory of its own."""
        return self.residual.copy()

    def between(
        self, left: End[Residual], right: End[Residual], targets: np.ndarray, is_penalised: bool
    ) -> list[PathPoint]:
        """Return the points on the line between two ends, with their gaps; beyond the ends nothing is certified."""
        features = np.union1d(left.point.features, right.point.features)
        first, last = np.zeros((2, features.size))
        first[np.searchsorted(features, left.point.features)] = left.point.x
        last[np.searchsorted(features, right.point.features)] = right.point.x
        points = []
        for target in targets.tolist():
            t, goal = left.share_of(right, target), Goal(target, is_penalised)
            x = (1.0 - t) * first + t * last
            used = x != 0.0
            sums = self.objective.between(left.residual, right.residual, t, x[used])
            largest = (1.0 - t) * left.point.alpha + t * right.point.alpha
            gap = self.objective.gap(goal, sums, largest) if 0.0 <= t <= 1.0 else math.inf
            rounding = self.objective.rounding(goal, sums, int(np.count_nonzero(used)), largest)
            points.append(_certified(features[used], x[used], sums, largest, gap, rounding))
        return points

    def zero(self, goal: Goal | None = None) -> PathPoint:
        """Return the point w = 0 where it is the solution; without a goal, where rounding cannot change that."""
        rounding = 0.0 if goal is None else self.objective.rounding(goal, self.working.sums, 0, 0.0)
        return PathPoint(np.empty(0, np.int64), np.empty(0), 0.0, self.largest, 0.0, rounding, self._at_zero)

    # The phases of a round.

    def _fit(self, goal: Goal, tol: float) -> None:
        """Minimise over the working set."""
        raise_if_interrupted(self.interrupts)
        self.solver.minimise(goal, tol)
        if self.working.features.size:  # with the residual itself, not with what a model of it holds
            self.level = self.working.correlate(np.empty(self.working.features.size))

    def _ask_nearby(self) -> Scan:
        """Return the features above all atoms among those that were close to them in the last scan of all columns."""
        nearby = self.nearby.features[self.working.lacks(self.nearby.features)]
        sizes = np.abs(self.working.correlations_of(nearby))
        self.oracle.count(nearby.size)
        is_above = sizes > self.level
        self.bound = float(sizes.max(initial=self.level))
        return Scan(self.bound, nearby[is_above], sizes[is_above])

    def _ask_all(self) -> Scan:
        """Return the features above all atoms, whose correlations are proved to be the largest ones."""
        self.n_scans += 1
        a, mu = self.working.residual.a, self.working.sums.mu
        scan = self.oracle.move_and_scan(self.residual.R, a, mu, self.level, _NEAR * self.level)
        self.nearby, self.nearby_level = scan, self.level
        is_new = (scan.sizes > self.level) & self.working.lacks(scan.features)
        features, sizes = scan.features[is_new], scan.sizes[is_new]
        self.bound = max(self.bound, float(sizes.max(initial=self.level)))
        return Scan(self.bound, features, sizes)

    def _admit(self, found: Scan, tol: float) -> None:
        """Add the features with the largest correlations to the working set."""
        if found.features.size == 0:
            return
        count = max(_BATCH, self.working.n_used // 4)
        new = found.features[np.argsort(-found.sizes, kind="stable")[:count]]
        self.working.admit(new)
        self.solver.admit(new.size)
        self._change_solver(tol)

    def _admit_ahead(self, penalty: float, tol: float) -> None:
        """Add the features that a smaller penalty will want, if correlations fall no faster than the penalty does.

        This is the strong rule of Tibshirani et al. (2012), for the features that were close in the last scan.
        """
        near = self.nearby
        is_wanted = (near.sizes >= 2.0 * penalty - self.nearby_level) & self.working.lacks(near.features)
        self._admit(Scan(near.largest, near.features[is_wanted], near.sizes[is_wanted]), tol)

    def _change_solver(self, tol: float) -> None:
        self.solver = self.solver.successor(tol, self.largest, self.interrupts)

    def _prune(self) -> None:
        """Drop the atoms that the solver does not need where there are many of them."""
        support = self.solver.support()
        if self.working.features.size > 2 * support.size + _IDLE:
            self.working.keep(support)
            self.solver.keep(support)

    # What is known about the point.

    def _gap(self, goal: Goal) -> float:
        return self.objective.gap(goal, self.working.sums, self.bound)

    def _rounding(self, goal: Goal) -> float:
        return self.objective.rounding(goal, self.working.sums, self.working.n_used, self.bound)

    def _point(self, gap: float, rounding: float) -> PathPoint:
        working = self.working
        used = np.flatnonzero(working.x)
        return _certified(working.features[used], working.x[used], working.sums, self.bound, gap, rounding)


def _certified(
    features: np.ndarray, x: np.ndarray, sums: Sums, largest: float, gap: float, rounding: float
) -> PathPoint:
    return PathPoint(features, x, sums.norm, largest, max(gap, 0.0), rounding, sums.value)
