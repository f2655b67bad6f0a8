"""History: where the last solutions of a path were found, and how much its model will miss on the way to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled

_FARTHEST = 4.0  # how many times as much as on the last way the model may miss on the next one: beyond, it is not known

_FIRST, _SECOND, _CURVED, _START = range(4)  # what History.places has; nan: it is not known


@compiled
class History(NamedTuple):
    """The places on the path of the last two solutions and of the curvature: radii, or minus logarithms of penalties.

    The first curvature is that of zero, where a path of penalties begins at ``start``, the place of the largest one.
    """

    places: np.ndarray

    def append(self, place):
        """Note the next solution."""
        self.places[_FIRST] = self.places[_SECOND]
        self.places[_SECOND] = place

    def renew(self, place):
        """Note where the curvature was computed."""
        self.places[_CURVED] = place

    def forget(self, start):
        """Begin a path at a place."""
        self.places[_FIRST] = np.nan
        self.places[_SECOND] = np.nan
        self.places[_CURVED] = start

    def weight(self, third):
        """Return how many times as much as on the way between the last two solutions the model misses on the next one.

        The curvature changes about linearly along the path. So a model with the curvature of one place misses on a
        way, in the gradient, about the length of that way times the distance of its middle from that place.
        """
        first, second, curved = self.places[_FIRST], self.places[_SECOND], self.places[_CURVED]
        if not first < second < third:  # nan is not
            return 0.0
        ratio = (second + third - 2.0 * curved) / (first + second - 2.0 * curved)
        weight = ratio * (third - second) / (second - first)
        return weight if abs(weight) <= _FARTHEST else 0.0


def new_history() -> History:
    """Return a history in which nothing has happened yet."""
    return History(np.full(_START, np.nan))
