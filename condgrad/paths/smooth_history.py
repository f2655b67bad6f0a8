"""History: where the last solutions of a path were found, and how much its model will miss on the way to the next."""

from __future__ import annotations

import math

from condgrad.paths.least_squares import Goal

_FARTHEST = 4.0  # how many times as much as on the last way the model may miss on the next one: beyond, it is not known


class History:
    """The places on the path of the last two solutions and of the curvature: radii, or minus logarithms of penalties.

    ``largest`` is the smallest penalty whose solution is zero, where the path and its first curvature begin.
    """

    def __init__(self, largest: float) -> None:
        self.largest = largest
        self.first: Goal | None = None
        self.second: Goal | None = None
        self.curved: Goal | None = None

    def append(self, goal: Goal) -> None:
        """Note the next solution."""
        self.first, self.second = self.second, goal

    def renew(self, goal: Goal) -> None:
        """Note where the curvature was computed."""
        self.curved = goal

    def weight(self, goal: Goal) -> float:
        """Return how many times as much as on the way between the last two solutions the model misses on the next one.

        The curvature changes about linearly along the path. So a model with the curvature of one place misses on a
        way, in the gradient, about the length of that way times the distance of its middle from that place.
        """
        if self.first is None or self.second is None or len({self.first.is_penalised, goal.is_penalised}) == 2:
            return 0.0
        first, second, third = self._place(self.first), self._place(self.second), self._place(goal)
        if not first < second < third:
            return 0.0
        curved = self._place(self.curved or Goal(self.largest if goal.is_penalised else 0.0, goal.is_penalised))
        ratio = (second + third - 2.0 * curved) / (first + second - 2.0 * curved)
        weight = ratio * (third - second) / (second - first)
        return weight if abs(weight) <= _FARTHEST else 0.0

    def ratio(self, goal: Goal) -> float:
        """Return how long the way from the last solution to the next is, over the way between the last two.

        Coefficients change about linearly with the radius or the penalty. Where the last two say nothing, it is 0.
        """
        if self.first is None or self.second is None or len({self.first.is_penalised, goal.is_penalised}) == 2:
            return 0.0
        way = self.second.target - self.first.target
        ratio = (goal.target - self.second.target) / way if way != 0.0 else 0.0
        return ratio if 0.0 <= ratio <= _FARTHEST else 0.0

    def _place(self, goal: Goal) -> float:
        return -math.log(goal.target) if goal.is_penalised else goal.target
