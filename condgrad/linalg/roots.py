"""Bracket: the interval in which an increasing function has its root, and a safeguarded Newton step within it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled


@compiled
class Bracket(NamedTuple):
    """An interval around the root of an increasing function f: f(low) < 0 <= f(high).

    A side is open, -inf or inf, until an x on that side of the root is known. (For a decreasing function take -f.)

    Examples
    --------
    >>> Bracket(-np.inf, np.inf).after(2.0, -6.0, 1.0, 1.0, 3.0)  # a step to 8, which is too far
    (Bracket(low=2.0, high=inf), 3.0)
    >>> Bracket(0.0, 4.0).after(2.0, -6.0, 1.0, 1.0, 3.0)  # it would leave the bracket
    (Bracket(low=2.0, high=4.0), 3.0)
    """

    low: float
    high: float

    def is_closed(self) -> bool:
        """Return whether both sides are known."""
        return self.low > -np.inf and self.high < np.inf

    def after(self, x: float, value: float, slope: float, least: float, most: float) -> tuple[Bracket, float]:
        """Return the bracket once f(x) = value and f'(x) = slope are known, and the next x to try.

        The next x is that of a Newton step. Far out, where f is flat, such a step can be huge, and where the slope is
        not positive there is none: while a side is open, the next x is clipped to [least, most]. If a step would leave
        a closed bracket, the next x is the middle of the bracket.
        """
        low, high = self.low, self.high
        if value < 0.0:
            low = x
        else:
            high = x
        if slope > 0.0:
            new = x - value / slope
        else:
            new = np.inf if value < 0.0 else -np.inf
        if low == -np.inf or high == np.inf:
            new = min(max(new, least), most)
        elif new <= low or new >= high:
            new = 0.5 * (low + high)
        return Bracket(low, high), new

    def inside(self, x: float, margin: float) -> float:
        """Return x, or the nearest point to it whose distance to both ends is at least ``margin`` times the width."""
        width = self.high - self.low
        return min(max(x, self.low + margin * width), self.high - margin * width)
