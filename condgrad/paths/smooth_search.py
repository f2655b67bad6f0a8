"""SmoothSearch: the steps by which a point of a smooth loss is minimised over the working set.

The Taylor model at x is F(x) + g'(z - x) + (z - x)'G(z - x)/2, with the curvature G = Z' diag(h) Z of the atoms (less
the part of an intercept). :func:`~condgrad.linalg.gram_model.solve_model` finds its minimiser exactly. The gradient g
is that of x, always; the curvatures h may be those of an earlier point, and are asked for again where a step did not
make the gap much smaller.
"""

from __future__ import annotations

import functools

import numpy as np

from condgrad.linalg import threads
from condgrad.paths.least_squares import Goal
from condgrad.paths.oracle import Oracle, Scan
from condgrad.paths.smooth_point import (
    ACCEPTED,
    FAILED,
    FELL,
    GAP,
    GOOD,
    IDLE,
    IS_FRESH,
    IS_TOTAL,
    LEVEL,
    MU,
    NORM,
    QUALITY,
    TOL,
    B,
    SmoothPoint,
    blend,
    compare,
    copy,
    gap_at,
    settle,
    take_residual,
)
from condgrad.paths.working_set import Atoms
from condgrad.problems.samples import derive_block, expand_block, total_block

_FAST = 0.3  # share of the gap above which a step that leaves so much of it asks for fresh curvatures
_INNER = 0.05  # share of the gap to which a model is minimised
_ROUNDING = 1e-14  # share of F that rounding may add to it
_SUFFICIENT = 1e-3  # share of the model's slope by which F must fall, where a step has not halved the gap
_GOOD = 0.1  # share of the model's slope by which F falls in a good step
_SHORTER = 0.3  # factor by which a step is shortened as long as F does not fall
_SHORTEST = 1e-3  # length of a step below which it is given up
_AHEAD = 0.01  # share of the last gap that the working set's own gap may have while atoms are missing
_MOST_IDLE = 5  # rounds without a new atom, each ten times as accurate as the last, after which rounding has won
_CALLS = 100_000.0  # work of the calls of one step, in multiply-adds
_SMALL = 1500  # samples up to which another call costs more than totals that may not be needed
_WORK_PER_SAMPLE = 20  # cost of a sample in multiply-adds: that of a loss with an exponential, about

ZERO, START, SOLVED, ATOMS, MODEL, FRESH_MODEL, LAST = range(7)  # how a search begins, and why it stops


class SmoothSearch:
    """The search from a point, whose arrays it changes; passes run on all cores where the data are large."""

    def __init__(self, point: SmoothPoint) -> None:
        self.point, self.numbers, self.totals, self.model = point, point.numbers, point.totals, point.model
        self.x, self.saved, self.correlation = point.x, point.saved, point.correlation
        self.p, self.saved_p = point.p, point.saved_p
        self.borders = threads.cut(self.p.size, _WORK_PER_SAMPLE * self.p.size)
        self.is_small = self.p.size <= _SMALL
        self.size = int(self.model.n_atoms())
        self.atoms, self._zeros = Atoms(*point.columns.chosen(point.features[: self.size])), np.zeros(self.size)
        self.found = Scan(0.0, np.empty(0, np.int64), np.empty(0))  # the features that the last scan has found

    @property
    def work(self) -> float:
        """How much work a step is, in multiply-adds."""
        return _CALLS + 2.0 * self.atoms.n_stored + _WORK_PER_SAMPLE * self.p.size

    # The passes over the atoms or over the samples.

    def arrive(self, wants_totals: bool) -> None:
        """Compute everything that belongs to x; the totals only where they are wanted."""
        self.atoms.predict(self.x, self.p)
        if self.point.has_intercept:
            self.numbers[B] = self.point.samples.best_intercept(self.p, self.numbers[B])
        if self.is_small:
            self.totals[:] = 0.0
            expand_block(self.point.samples, 0, self.p, self.numbers[B], self.point.a, self.point.d, self.totals)
        else:
            threads.run(self._derive, self.borders)
        weight, p, a, R = self.point.columns.weight, self.p, self.point.a, self.point.R
        if self.atoms.is_whole:  # one call for what follows
            atoms = self.atoms.columns, self.atoms.features
            settle(*atoms, weight, p, self.x, self._zeros, a, R, self.correlation, self.numbers, self.size)
        else:
            take_residual(weight, p, self.x, a, R, self.numbers, self.size)
            self.correlate()
        if self.is_small:
            self.numbers[IS_TOTAL] = 1.0
        elif wants_totals:
            self.add_up()

    def _derive(self, start: int, stop: int) -> None:
        part, point = slice(start, stop), self.point
        derive_block(point.samples, start, self.p[part], self.numbers[B], point.a[part], point.d[part])

    def add_up(self) -> None:
        """Compute the totals, unless they are there."""
        if self.numbers[IS_TOTAL] > 0.0:
            return
        self.totals[:] = functools.reduce(np.add, threads.run(self._total, self.borders))
        self.numbers[IS_TOTAL] = 1.0

    def _total(self, start: int, stop: int) -> np.ndarray:
        part, point, totals = slice(start, stop), self.point, np.zeros(self.totals.size)
        total_block(point.samples, start, self.p[part], self.numbers[B], point.a[part], point.d[part], totals)
        return totals

    def value_before(self, b: float) -> float:
        """Return F at ``saved_p`` with the intercept b."""
        return self.point.samples.value(self.saved_p, b)

    def correlate(self) -> None:
        """Compute the correlations of the atoms."""
        out = self.correlation[: self.size]
        self.numbers[LEVEL] = self.atoms.correlate(self.point.a, self.numbers[MU], self._zeros, 0.0, out)

    def ask(self, oracle: Oracle, level: float) -> None:
        """Let the oracle find the features whose correlations exceed a level."""
        self.found = oracle.move_and_scan(self.point.R, self.point.a, self.numbers[MU], level, level)

    # The search.

    def pursue(self, oracle: Oracle, goal: Goal, limit: float, finest: float, near: float, event: int) -> int:
        """Search for the minimiser over all features until something is needed; return what.

        That is the minimiser of a Taylor model (MODEL, or FRESH_MODEL with the curvature of x), features that the
        working set lacks (ATOMS), or nothing (SOLVED). ``event`` is ZERO for the point x = 0, START for the next one,
        LAST for no more than the certificate of the present one, or what was needed last. The working set is minimised
        to the gap ``finest``, roughly while atoms are missing; ``limit`` is what the gap over all features shall be.
        ``oracle`` finds all features whose correlation is at least ``near`` times that of the atoms.
        """
        numbers, is_penalised, target = self.numbers, goal.is_penalised, goal.target
        if event == ZERO:
            self.arrive(True)
            oracle.begin(self.point.a, numbers[MU])
            return ATOMS
        if event == LAST:  # no more steps: only the certificate
            self.ask(oracle, numbers[LEVEL])
            return SOLVED
        if event in (START, ATOMS):
            numbers[GAP], numbers[IS_FRESH] = np.inf, 0.0
        if event == START:
            numbers[QUALITY] = GOOD
            self.guess(is_penalised, target)
            gap = gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL])
            numbers[TOL], numbers[IDLE] = max(finest, _AHEAD * gap) if gap < np.inf else finest, 0.0
        has_moved = True
        if event in (MODEL, FRESH_MODEL):
            has_moved = self.step(is_penalised, target)
            numbers[IS_FRESH] = 1.0 if event == FRESH_MODEL else 0.0
        needed = max(limit, numbers[TOL]) if event == START else numbers[TOL]
        while True:
            gap, last = gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL]), numbers[GAP]
            has_gained = has_moved and (gap < last or numbers[FELL] > 0.0)
            is_stuck = numbers[IS_FRESH] > 0.0 and not has_gained  # rounding has won
            if gap > needed and not is_stuck:
                numbers[GAP] = gap
                return MODEL if has_moved and gap <= _FAST * last else FRESH_MODEL
            self.ask(oracle, near * numbers[LEVEL])
            gap = gap_at(is_penalised, target, numbers, self.totals, max(numbers[LEVEL], self.found.largest))
            if gap <= limit:
                return SOLVED
            if self.found.largest > numbers[LEVEL]:
                numbers[TOL], numbers[IDLE] = max(finest, min(numbers[TOL], _AHEAD * gap)), 0.0
                return ATOMS
            is_rough = numbers[TOL] > finest
            numbers[TOL] = finest if is_rough else 0.1 * numbers[TOL]
            numbers[IDLE] += 0.0 if is_rough else 1.0
            if numbers[IDLE] > _MOST_IDLE:
                return SOLVED
            numbers[GAP], numbers[IS_FRESH], has_moved = np.inf, 0.0, True
            needed = numbers[TOL]

    def guess(self, is_penalised: bool, target: float) -> None:
        """Go to the minimiser of the model, unless that makes the gap larger."""
        numbers, n = self.numbers, self.model.n_atoms()
        gap = gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL])  # inf: x is outside of a smaller ball
        copy(self.saved, self.x, 1.0 if gap < np.inf else target / numbers[NORM], n)
        copy(self.x, self.model.x, 1.0, n)
        for _ in range(2):
            self.arrive(is_penalised)
            if gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL]) <= gap:
                return
            copy(self.x, self.saved, 1.0, n)
            gap = np.inf

    def step(self, is_penalised: bool, target: float) -> bool:
        """Go to the minimiser of the model if that halves the gap, or as far towards it as F falls.

        Return whether it helped.
        """
        model, numbers, n = self.model, self.numbers, self.model.n_atoms()
        b, penalty, norm = numbers[B], target if is_penalised else 0.0, numbers[NORM]
        slope, farther = compare(self.x, model.x, self.correlation, n)
        if not abs(slope) < np.inf or farther == np.inf:
            return False
        numbers[QUALITY] = FAILED
        copy(self.saved, self.x, 1.0, n)
        copy(self.saved_p, self.p, 1.0, self.p.shape[0])
        copy(self.x, model.x, 1.0, n)
        before, length = 0.0, 1.0
        while True:
            self.arrive(is_penalised)
            if length == 0.0:
                return False
            if length == 1.0:
                if gap_at(is_penalised, target, numbers, self.totals, numbers[LEVEL]) <= 0.5 * numbers[GAP]:
                    numbers[FELL], numbers[QUALITY] = 1.0, GOOD
                    return True
                before = self.value_before(b) + penalty * norm
                slope += penalty * farther
            self.add_up()
            slack = _ROUNDING * abs(before)  # close to the optimum a step changes the gap, and F by less than rounding
            needed = _SUFFICIENT * length * min(slope, 0.0)
            gain = before - (self.totals[0] + penalty * numbers[NORM])
            if slope <= slack and gain + needed + slack >= 0.0:
                numbers[FELL] = 1.0 if gain > slack else 0.0
                numbers[QUALITY] = GOOD if length == 1.0 and gain + _GOOD * slope >= 0.0 else ACCEPTED
                return True
            if slope <= slack and length > _SHORTEST:
                blend(self.x, self.saved, _SHORTER, n)
                length *= _SHORTER
            else:
                copy(self.x, self.saved, 1.0, n)
                length = 0.0


def model_tolerance(point: SmoothPoint) -> float:
    """Return the gap to which the next model is minimised."""
    return float(max(point.numbers[TOL], _INNER * point.numbers[GAP]))
