r"""Leaps: points between two solved ones are taken from the line between them, which has a certificate of its own.

The path of the Lasso is made of lines, so a line between two of its points is a good guess in between. Let x_0 with
residual R_0 and largest correlation L_0 solve the problem at one end and x_1, R_1, L_1 at the other. Then
x_t = (1 - t) x_0 + t x_1 has the residual R_t = (1 - t) R_0 + t R_1, no correlation of which exceeds
(1 - t) L_0 + t L_1: its gap needs no look at the data. With exact solutions at both ends it is at most

    t (1 - t) ((L_0 - L_1) (||x_1||_1 - ||x_0||_1) - ||R_0 - R_1||^2),

for every t between 0 and 1, and zero as long as no feature enters or leaves. So a piecewise linear path with a gap of
at most eps everywhere takes few solutions (Giesen, Jaggi & Laue 2012).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.paths.engine import ExactEngine, Point

_ENDS = 0.5  # share of the tolerance that the ends of a leap of several points may use up
_ORDER = 3.0  # the gap between two ends grows with their distance to this power or faster
_LONGER = 2.0  # times the last leap that the next one may be at most
_SHORTER = 0.25


class End(NamedTuple):
    """A solved point with its residual, and the largest correlation that was proved there."""

    target: float
    point: Point
    R: np.ndarray
    largest: float


class Leaps:
    """Solves targets in their order, from sparse to dense, with the engine's points as ends of leaps.

    Where the engine's solver is not exact, a point next to the last one costs less than one further away, and leaps
    would win nothing.
    """

    def __init__(self, engine: ExactEngine, is_penalised: bool, tol: float) -> None:
        self.engine, self.is_penalised, self.tol = engine, is_penalised, tol
        zero = Point(np.empty(0, np.int64), np.empty(0), 0.0, engine.largest, 0.0, engine.scale)
        self.end = End(engine.largest if is_penalised else 0.0, zero, engine.y, engine.largest)
        self.length = 1.0

    def advance(self, targets: np.ndarray) -> list[Point]:
        """Return the solutions for the first one of the targets, or for the first few."""
        count = min(int(self.length), targets.size)
        right = self._solve(float(targets[count - 1]), self.tol if count == 1 else _ENDS * self.tol)
        points = [*self._fill(self.end, right, targets[: count - 1]), right.point]
        self.length = self._next_length(count, self.end, right) if self.engine.solver.is_exact else 1.0
        self.end = right
        return points

    def _solve(self, target: float, tol: float) -> End:
        engine = self.engine
        point = engine.solve(target, is_penalised=self.is_penalised, tol=tol)
        return End(target, point, engine.R.copy(), engine.largest_now)

    def _fill(self, left: End, right: End, targets: np.ndarray) -> list[Point]:
        """Return the points between two ends; where the line does not serve, the middle one is solved."""
        points = [self._between(left, right, float(target)) for target in targets]
        if all(point.gap <= self.tol * self.engine.scale for point in points):
            return points
        half = targets.size // 2
        middle = self._solve(float(targets[half]), self.tol)
        before, after = self._fill(left, middle, targets[:half]), self._fill(middle, right, targets[half + 1 :])
        return [*before, middle.point, *after]

    def _between(self, left: End, right: End, target: float) -> Point:
        """Return the point on the line between the ends, with its gap."""
        t = (target - left.target) / (right.target - left.target)
        features = np.union1d(left.point.features, right.point.features)
        x = np.zeros(features.size)
        x[np.searchsorted(features, left.point.features)] = (1.0 - t) * left.point.x
        x[np.searchsorted(features, right.point.features)] += t * right.point.x
        used = x != 0.0
        R = (1.0 - t) * left.R + t * right.R
        largest = (1.0 - t) * left.largest + t * right.largest
        return self.engine.point_at(features[used], x[used], R, largest, target, self.is_penalised)

    def _next_length(self, count: int, left: End, right: End) -> float:
        """Return how many points the next leap should have, by the gap in the middle of the last one."""
        if left.target == right.target:
            return 1.0
        ends = 0.5 * (left.point.gap + right.point.gap)
        bend = self._between(left, right, 0.5 * (left.target + right.target)).gap - ends
        limit = (1.0 - _ENDS) * self.tol * self.engine.scale
        factor = (limit / bend) ** (1.0 / _ORDER) if bend > 0.0 else _LONGER
        return max(1.0, count * min(max(factor, _SHORTER), _LONGER))
