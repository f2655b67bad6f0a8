"""Polyhedra: the sets between bounds and sides of linear rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Polyhedron(NamedTuple):
    """The set {x : low <= x <= high, row_low <= A x <= row_high}; A may be sparse, and may have no rows."""

    low: np.ndarray
    high: np.ndarray
    A: Any
    row_low: np.ndarray
    row_high: np.ndarray

    @property
    def size(self) -> float:
        """The largest absolute value of all finite sides: a size of the set."""
        sides = np.concatenate([self.low, self.high, self.row_low, self.row_high])
        return float(np.abs(sides[np.isfinite(sides)]).max(initial=0.0))

    def scaled(self, factor: float) -> Polyhedron:
        """Return the set of all factor x, for a positive factor."""
        low, high, A, row_low, row_high = self
        return Polyhedron(factor * low, factor * high, A, factor * row_low, factor * row_high)

    def violation(self, x: np.ndarray) -> float:
        """Return the largest amount by which x is outside of a bound or a row; at most 0 if it is not."""
        products = self.A @ x
        excess = (self.low - x, x - self.high, self.row_low - products, products - self.row_high)
        return max(float(each.max(initial=-np.inf)) for each in excess)
