"""Parabola: the quadratic bound of F along a line, whose minimiser is the short step."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled


@compiled
class Parabola(NamedTuple):
    """phi(0) - gamma descent + gamma^2 curvature / 2, for kernels and for Python."""

    descent: float
    curvature: float

    def minimiser(self, max_step: float) -> float:
        """Return the minimiser over [0, max_step]."""
        if self.descent <= 0.0:  # no descent, or less than rounding
            return 0.0
        return self.descent / self.curvature if self.descent < max_step * self.curvature else max_step
