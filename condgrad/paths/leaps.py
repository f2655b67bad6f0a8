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
from typing import NamedTuple

import numpy as np

from condgrad.paths.engine import ExactEngine, PathPoint
from condgrad.paths.least_squares import Goal, Residual

_ENDS = 0.5  # share of the tolerance that the ends of a leap of several points may use up
_ORDER = 3.0  # power of the distance between two ends with which the gap between them grows at least
_LONGER = 2.0  # most times that a leap may be longer than the last one
_SHORTER = 0.25  # least times that a leap may be longer than the last one
_FIRST = 1e-2  # share of the last radius that the first leap from zero takes, where no points are given
_SHORTEST = 1e-6  # share of the last radius that a later leap takes at least
_CLOSEST = 1e-9  # share of the radius below which the distance of two ends leaves no point between them


class End(NamedTuple):
    """A solved point with its residual; ``point.alpha`` is the largest correlation that was proved there."""

    target: float
    point: PathPoint
    residual: Residual


class Line(NamedTuple):
    """The line between two ends: their coefficients on the features of both."""

    left: End
    right: End
    features: np.ndarray
    x_left: np.ndarray
    x_right: np.ndarray

    @classmethod
    def between(cls, left: End, right: End) -> Line:
        """Return the line from one end to the other."""
        features = np.union1d(left.point.features, right.point.features)
        x_left, x_right = np.zeros((2, features.size))
        x_left[np.searchsorted(features, left.point.features)] = left.point.x
        x_right[np.searchsorted(features, right.point.features)] = right.point.x
        return cls(left, right, features, x_left, x_right)


class Leaps:
    """Solves targets in their order, from sparse to dense, with the engine's points as ends of leaps.

    Where the engine's solver is not exact, a point next to the last one costs less than one further away, and leaps
    would win nothing.
    """

    def __init__(self, engine: ExactEngine, is_penalised: bool, tol: float) -> None:
        self.engine, self.is_penalised, self.tol = engine, is_penalised, tol
        self.end = End(engine.largest if is_penalised else 0.0, engine.zero(), engine.residual.copy())
        self.length = 1.0
        self.falls_short = False  # whether rounding has left a line without a certificate

    def advance(self, targets: np.ndarray) -> list[PathPoint]:
        """Return the solutions for the first one of the targets, or for the first few."""
        count = min(int(self.length), targets.size)
        right = self._solve(float(targets[count - 1]), self.tol if count == 1 else _ENDS * self.tol)
        line = Line.between(self.end, right)
        points = [*self._fill(line, targets[: count - 1]), right.point]
        self.length = max(1.0, count * self._growth(line)) if self.engine.solver.is_exact else 1.0
        self.end = right
        return points

    def cover(self, radius: float) -> Iterator[End]:
        """Yield ends up to a radius such that the lines between neighbours have a gap of at most tol all along."""
        step = _FIRST * radius
        while self.end.target < radius:
            left, right = self.end, self._solve(min(self.end.target + step, radius), _ENDS * self.tol)
            yield from self._split(left, right)
            self.end = right
            growth = self._growth(Line.between(left, right))
            step = max((right.target - left.target) * growth, _SHORTEST * radius)

    def _solve(self, target: float, tol: float) -> End:
        point = self.engine.solve(Goal(target, self.is_penalised), tol)
        return End(target, point, self.engine.residual.copy())

    def _fill(self, line: Line, targets: np.ndarray) -> list[PathPoint]:
        """Return the points between two ends; where the line does not serve, the middle one is solved."""
        points = [self._point_on(line, target) for target in targets.tolist()]
        if all(point.certified_gap <= self.tol * self.engine.scale for point in points):
            return points
        half = targets.size // 2
        middle = self._solve(float(targets[half]), self.tol)
        before = self._fill(Line.between(line.left, middle), targets[:half])
        return [*before, middle.point, *self._fill(Line.between(middle, line.right), targets[half + 1 :])]

    def _split(self, left: End, right: End) -> list[End]:
        """Return the right end, and ends before it where one line does not serve."""
        gap, limit = self._largest_gap(Line.between(left, right)), self.tol * self.engine.scale
        rounding = right.point.rounding
        if gap + rounding <= limit:
            return [right]
        is_close = right.target - left.target <= _CLOSEST * right.target
        if is_close or gap <= rounding or max(left.point.certified_gap, right.point.certified_gap) > limit:
            self.falls_short = True  # no point between the two would help
            return [right]
        middle = self._solve(0.5 * (left.target + right.target), _ENDS * self.tol)
        return [*self._split(left, middle), *self._split(middle, right)]

    def _largest_gap(self, line: Line) -> float:
        """Return the largest gap on the line between two radii: it is a quadratic function of t, concave or not."""
        first, middle, last = line.left.point.gap, self._middle_gap(line), line.right.point.gap
        bend, slope = 2.0 * (first + last - 2.0 * middle), 4.0 * middle - 3.0 * first - last
        if bend < 0.0 and 0.0 < slope < -2.0 * bend:
            return first - slope**2 / (4.0 * bend)
        return max(first, last)

    def _middle_gap(self, line: Line) -> float:
        return self._point_on(line, 0.5 * (line.left.target + line.right.target)).gap

    def _point_on(self, line: Line, target: float) -> PathPoint:
        """Return the point on the line between the ends, with its gap."""
        left, right, features, x_left, x_right = line
        way = right.target - left.target
        t = (target - left.target) / way if way != 0.0 else 1.0  # the same target may be given twice
        x = (1.0 - t) * x_left + t * x_right
        if not x.all():
            features, x = features[x != 0.0], x[x != 0.0]
        sums = self.engine.objective.between(left.residual, right.residual, t, x)
        largest = (1.0 - t) * left.point.alpha + t * right.point.alpha
        return self.engine.point_at(Goal(target, self.is_penalised), features, x, sums, largest)

    def _growth(self, line: Line) -> float:
        """Return how many times longer than the last leap the next one should be, by the gap in the middle."""
        bend = self._middle_gap(line) - 0.5 * (line.left.point.gap + line.right.point.gap)
        limit = (1.0 - _ENDS) * self.tol * self.engine.scale
        factor = (limit / bend) ** (1.0 / _ORDER) if bend > 0.0 else _LONGER
        return float(min(max(factor, _SHORTER), _LONGER))
