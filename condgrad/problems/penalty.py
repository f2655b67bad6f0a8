"""Penalty: l2 ||w||_2^2 / 2, its gradient, and what both add to the rounding of a certificate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._protocol import ConstraintSet
from condgrad.linalg.rounding import UNIT, Bounds, gamma
from condgrad.linalg.vectors import inner


class Penalty(NamedTuple):
    """The penalty l2 ||w||_2^2 / 2; with l2 = 0 there is none."""

    l2: float

    def value(self, w: np.ndarray) -> float:
        """Return the penalty at w."""
        return 0.5 * self.l2 * inner(w, w) if self.l2 > 0.0 else 0.0

    def gradient(self, w: np.ndarray) -> np.ndarray | None:
        """Return the gradient l2 w of the penalty, or None where there is none."""
        return self.l2 * w if self.l2 > 0.0 else None

    def added_to(self, r: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the gradient r plus the gradient l2 w of the penalty."""
        return r + self.l2 * w if self.l2 > 0.0 else r

    def with_rounding(
        self, found: Bounds, value: float, w: np.ndarray, r: np.ndarray, constraint: ConstraintSet
    ) -> Bounds:
        """Return the bounds of a loss with this value, with the rounding that the penalty adds.

        It is that of a product and a sum in each entry of the gradient r, and of a sum of squares in the objective.
        """
        if self.l2 == 0.0:
            return found
        sizes = np.abs(r) + self.l2 * np.abs(w)
        of_gradient = 4.0 * UNIT * float(constraint.reach(sizes))
        apart = 4.0 * UNIT * float(sizes @ np.abs(w))  # for a point outside the set
        of_value = gamma(w.size + 4) * self.value(w) + 2.0 * UNIT * abs(value)
        return Bounds(found.gap + of_gradient + apart, found.objective + of_value)
