r"""Leaps: points between two solved ones are taken from the line between them, which has a certificate of its own.

The path of the Lasso is made of lines, so a line between two of its points is a good guess in between. Let x_0 with
residual R_0 and largest correlation L_0 solve the problem at one end and x_1, R_1, L_1 at the other. Then
x_t = (1 - t) x_0 + t x_1 has the residual R_t = (1 - t) R_0 + t R_1, no correlation of which exceeds
(1 - t) L_0 + t L_1: its gap needs no pass over the data. With exact solutions at both ends it is at most

    t (1 - t) ((L_0 - L_1) (||x_1||_1 - ||x_0||_1) - ||R_0 - R_1||^2),

for every t between 0 and 1, and zero as long as no feature enters or leaves. So a piecewise linear path with a gap of
at most eps everywhere takes few solutions (Giesen, Jaggi & Laue 2012).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol

import numpy as np

from condgrad.paths.engine import End, Mark, PathPoint
from condgrad.paths.least_squares import Goal

_ENDS = 0.5  # share of the tolerance that the ends of a leap of several points may use up
_ORDER = 3.0  # power of the distance between two ends with which the gap between them grows at least
_LONGER = 2.0  # most times that a leap may be longer than the last one
_SHORTER = 0.25  # least times that a leap may be longer than the last one
_HOPELESS = 0.9  # length of the next leap, in points, below which lines are left alone for a while
_PAUSE = 5  # points in a row that are then solved before the next look at a line
_FIRST = 1e-2  # share of the last radius that the first leap from zero takes, where no points are given
_SHORTEST = 1e-6  # share of the last radius that a later leap takes at least
_CLOSEST = 1e-9  # share of the radius below which the distance of two ends leaves no point between them


class LeapingEngine(Protocol[Mark]):
    """What solves the ends of leaps, and knows the lines between them."""

    largest: float

    @property
    def scale(self) -> float:
        """What relative gaps are relative to."""

    @property
    def is_exact(self) -> bool:
        """Whether a point far from the last one costs about as much as one next to it."""

    def zero(self) -> PathPoint:
        """Return the point w = 0."""

    def solve(self, goal: Goal, tol: float) -> PathPoint:
        """Return the point with a gap of at most ``tol * scale``."""

    def mark_of_zero(self) -> Mark:
        """Return what belongs to w = 0."""

    def mark(self) -> Mark:
        """Return what belongs to the last point, in memory that later points leave alone."""

    def between(self, left: End[Mark], right: End[Mark], targets: np.ndarray, is_penalised: bool) -> list[PathPoint]:
        """Return the points on the line between two ends, with their gaps."""


class Leaps(Generic[Mark]):
    """Solves targets in their order, from sparse to dense, with the engine's points as ends of leaps.

    Where the engine's solver is not exact, a point next to the last one costs less than one further away, and leaps
    would win nothing.
    """

    def __init__(self, engine: LeapingEngine[Mark], is_penalised: bool, tol: float) -> None:
        self.engine, self.is_penalised, self.tol = engine, is_penalised, tol
        self.end = End(engine.largest if is_penalised else 0.0, engine.zero(), engine.mark_of_zero())
        self.length = 1.0
        self._pause = 0  # points that are left before the next line is looked at
        self.falls_short = False  # whether rounding has left a line without a certificate

    def advance(self, targets: np.ndarray) -> list[PathPoint]:
        """Return the solutions for the first one of the targets, or for the first few."""
        count = min(int(self.length), self._n_ahead(targets))
        right = self._solve(float(targets[count - 1]), self.tol if count == 1 else _ENDS * self.tol)
        if count == 1 and (self._pause > 0 or not self.engine.is_exact):
            self._pause, self.end = self._pause - 1, right
            return [right.point]
        *line, middle = self._between(self.end, right, targets[: count - 1])
        points = [*self._fill(self.end, right, targets[: count - 1], line), right.point]
        length = count * self._growth(self.end, right, middle.gap) if self.engine.is_exact else 1.0
        self.length, self._pause = max(1.0, length), _PAUSE if length <= _HOPELESS else 0
        self.end = right
        return points

    def _n_ahead(self, targets: np.ndarray) -> int:
        """Return how many of the first targets lie one behind the other, from the last end on; 1 at least."""
        ways = np.diff(targets, prepend=self.end.target)
        (turns,) = np.nonzero(ways > 0.0 if self.is_penalised else ways < 0.0)
        return max(1, int(turns[0])) if turns.size else targets.size

    def cover(self, radius: float) -> Iterator[End[Mark]]:
        """Yield ends up to a radius such that the lines between neighbours have a gap of at most tol all along."""
        step = _FIRST * radius
        while self.end.target < radius:
            left, right = self.end, self._solve(min(self.end.target + step, radius), _ENDS * self.tol)
            yield from self._split(left, right)
            self.end = right
            factor = self._growth(left, right, self._middle_gap(left, right))
            step = max((right.target - left.target) * factor, _SHORTEST * radius)

    def _solve(self, target: float, tol: float) -> End[Mark]:
        point = self.engine.solve(Goal(target, self.is_penalised), tol)
        return End(target, point, self.engine.mark())

    def _between(self, left: End[Mark], right: End[Mark], targets: np.ndarray) -> list[PathPoint]:
        """Return the points on the line between two ends at the targets, and then the one in its middle."""
        middle = 0.5 * (left.target + right.target)
        return self.engine.between(left, right, np.append(targets, middle), self.is_penalised)

    def _fill(self, left: End[Mark], right: End[Mark], targets: np.ndarray, line: list[PathPoint]) -> list[PathPoint]:
        """Return the points between two ends, those of the line if it serves; else the middle one is solved."""
        if all(point.certified_gap <= self.tol * self.engine.scale for point in line):
            return line
        half = targets.size // 2
        middle = self._solve(float(targets[half]), self.tol)
        before, after = targets[:half], targets[half + 1 :]
        return [
            *self._fill(left, middle, before, self._between(left, middle, before)[:-1]),
            middle.point,
            *self._fill(middle, right, after, self._between(middle, right, after)[:-1]),
        ]

    def _split(self, left: End[Mark], right: End[Mark]) -> list[End[Mark]]:
        """Return the right end, and ends before it where one line does not serve."""
        gap, limit = self._largest_gap(left, right), self.tol * self.engine.scale
        rounding = right.point.rounding
        if gap + rounding <= limit:
            return [right]
        is_close = right.target - left.target <= _CLOSEST * right.target
        if is_close or gap <= rounding or max(left.point.certified_gap, right.point.certified_gap) > limit:
            self.falls_short = True  # no point between the two would help
            return [right]
        middle = self._solve(0.5 * (left.target + right.target), _ENDS * self.tol)
        return [*self._split(left, middle), *self._split(middle, right)]

    def _largest_gap(self, left: End[Mark], right: End[Mark]) -> float:
        """Return the largest gap on the line between two radii: it is a quadratic function of t, concave or not."""
        first, middle, last = left.point.gap, self._middle_gap(left, right), right.point.gap
        bend, slope = 2.0 * (first + last - 2.0 * middle), 4.0 * middle - 3.0 * first - last
        if bend < 0.0 and 0.0 < slope < -2.0 * bend:
            return first - slope**2 / (4.0 * bend)
        return max(first, last)

    def _middle_gap(self, left: End[Mark], right: End[Mark]) -> float:
        return self._between(left, right, np.empty(0))[0].gap

    def _growth(self, left: End[Mark], right: End[Mark], middle_gap: float) -> float:
        """Return how many times longer than the last leap the next one should be, by the gap in the middle.

        Where that gap is nothing but rounding, shorter leaps would not make it smaller.
        """
        bend = middle_gap - 0.5 * (left.point.gap + right.point.gap)
        limit = (1.0 - _ENDS) * self.tol * self.engine.scale
        factor = (limit / bend) ** (1.0 / _ORDER) if bend > right.point.rounding else _LONGER
        return float(min(max(factor, _SHORTER), _LONGER))
