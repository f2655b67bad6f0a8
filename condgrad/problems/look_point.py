"""LookPoint: the iterate of a solver that moves along lines, for problems that give only F and its gradient."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from condgrad.linalg.vectors import inner
from condgrad.problems.point import Point
from condgrad.problems.segment import Course, Segment


class LookPoint(Point):
    """A point of a problem that gives only objective and gradient: a move costs one pass."""

    def segment(self, **course: Unpack[Course]) -> LookSegment:
        """Return F along a line from here."""
        return LookSegment(self, **course)

    def gradient_at(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of F at ``w``, and count the evaluation."""
        self.gradient_evaluations += self.problem.n_samples
        return self.problem.gradient(w)

    def _update(self, line: Segment, gamma: float) -> None:
        assert isinstance(line, LookSegment)
        self.r = line.known_gradient(gamma)  # a step size that looked there last has paid for it

    def _gradient(self) -> np.ndarray:
        return self.gradient_at(self.w)

    def _objective(self) -> float:
        return self.problem.objective(self.w)


class LookSegment(Segment):
    """F along a line, where each value or slope of phi costs a pass."""

    point: LookPoint

    def __init__(self, point: LookPoint, **course: Unpack[Course]) -> None:
        super().__init__(point, **course)
        self.d = self.direction()
        self._values: dict[float, float] = {}
        self._slopes = {0.0: self.slope}
        self._last: tuple[float, np.ndarray] | None = None  # the last slope's step, and the gradient there

    def minimiser(self) -> float:
        """Return a step where phi' = 0, or the largest step if phi decreases up to it.

        If F is not convex, the step is halved until phi is not larger than at the start.
        """
        from scipy.optimize import brentq

        if self.slope >= 0.0:
            return 0.0
        gamma = self.max_step
        if self._slope(gamma) > 0.0:
            gamma = float(brentq(self._slope, 0.0, gamma, xtol=1e-14 * gamma, rtol=1e-8))
        while not self.point.problem.is_convex and gamma > 0.0 and self.change(gamma) > 0.0:
            gamma *= 0.5
        return gamma

    def curvature(self) -> float:
        """Return L ||d||^2 with the Lipschitz constant L of the problem; inf if L is not known."""
        return self.point.problem.lipschitz() * inner(self.d, self.d)

    def _at(self, gamma: float) -> np.ndarray:
        return self.point.w + gamma * self.d

    def _value(self, gamma: float) -> float:
        if gamma not in self._values:
            self._values[gamma] = self.point.problem.objective(self._at(gamma))
        return self._values[gamma]

    def _slope(self, gamma: float) -> float:
        if gamma not in self._slopes:
            self._last = gamma, self.point.gradient_at(self._at(gamma))
            self._slopes[gamma] = inner(self._last[1], self.d)
        return self._slopes[gamma]

    def known_gradient(self, gamma: float) -> np.ndarray | None:
        """Return the gradient at w + gamma d if the last slope was computed there, else None."""
        return self._last[1] if self._last is not None and self._last[0] == gamma else None
