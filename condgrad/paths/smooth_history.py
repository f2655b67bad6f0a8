"""History: where the last solutions of a path were found, and how much its model will miss on the way to the next."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.paths.least_squares import Goal

_FARTHEST = 4.0  # how many times as much as on the last way the model may miss on the next one: beyond, it is not known

_FIRST, _SECOND, _CURVED, _KIND = range(4)  # what History.places has (_KIND: 1 for penalties); nan: it is not known


@compiled
class History(NamedTuple):
    """The places on the path of the last two solutions and of the curvature: radii, or minus logarithms of penalties.

    The first curvature is that of zero, where a path of penalties begins at the place of the largest one.
    """

    places: np.ndarray

    def append(self, place):
        """Note the next solution."""
        self.places[_FIRST] = self.places[_SECOND]
        self.places[_SECOND] = place

    def renew(self, place):
        """Note where the curvature was computed."""
        self.places[_CURVED] = place

    def take_up(self, is_penalised, largest):
        """Go on with a path of radii or of penalties, or begin one if the last path was of the other kind."""
        if self.places[_KIND] != float(is_penalised):  # nan is neither
            self.places[_FIRST] = np.nan
            self.places[_SECOND] = np.nan
            self.places[_CURVED] = -np.log(largest) if is_penalised and largest > 0.0 else 0.0
            self.places[_KIND] = float(is_penalised)

    def weight(self, third):
        """Return how many times as much as on the way between the last two solutions the model misses on the next one.

        The curvature changes about linearly along the path. So a model with the curvature of one place misses on a
        way, in the gradient, about the length of that way times the distance of its middle from that place.
        """
        growth = self.growth(third)
        if growth == 0.0:
            return 0.0
        weight = growth * (third - self.places[_SECOND]) / (self.places[_SECOND] - self.places[_FIRST])
        return weight if abs(weight) <= _FARTHEST else 0.0

    def growth(self, third):
        """Return how many times as far as that of the last way the middle of the next is from where the curvature is.

        It is 0 where that is not known.
        """
        first, second, curved = self.places[_FIRST], self.places[_SECOND], self.places[_CURVED]
        if not first < second < third:  # nan is not
            return 0.0
        growth = (second + third - 2.0 * curved) / (first + second - 2.0 * curved)
        return growth if abs(growth) <= _FARTHEST else 0.0  # nan and inf: not known

    def ratio(self, third, is_penalised):
        """Return how long the way from the last solution to the next is, over the way between the last two.

        Coefficients change about linearly with the radius or the penalty. Where the last two say nothing, it is 0.
        """
        first, second = self.places[_FIRST], self.places[_SECOND]
        if is_penalised:
            first, second, third = np.exp(-first), np.exp(-second), np.exp(-third)
        way = second - first
        if not abs(way) > 0.0:  # nan: not known
            return 0.0
        ratio = (third - second) / way
        return ratio if 0.0 <= ratio <= _FARTHEST else 0.0


def place_of(goal: Goal) -> float:
    """Return the place of a goal on the path."""
    return -math.log(goal.target) if goal.is_penalised else goal.target


def new_history() -> History:
    """Return a history in which nothing has happened yet."""
    return History(np.full(_KIND + 1, np.nan))
