"""GeneralPoint: the iterate of a solver of full passes on a general problem, and F along lines from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from condgrad.linalg.vectors import inner
from condgrad.problem import Evaluation, gap_at
from condgrad.segment import Segment

if TYPE_CHECKING:
    from condgrad.general_problem import GeneralProblem

_SAVED = ("gap", "is_still", "gradient_evaluations", "lmo_calls")  # by a checkpoint


class GeneralPoint:
    """A feasible w with its gradient ``r``, the vertex ``s`` that minimises <r, s>, and ``gap``.

    It answers as :class:`~condgrad.point.Point` does; a move costs one pass over the terms.
    """

    def __init__(self, problem: GeneralProblem, w: np.ndarray) -> None:
        self.problem = problem
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False  # whether the last move had no length
        self.reset(w)

    def reset(self, w: np.ndarray) -> None:
        """Go to ``w`` and compute everything there."""
        self.w = np.array(w, dtype=np.float64)
        self.r: Any = None  # None: out of date
        self.look()

    def segment(self, **course: Any) -> GeneralSegment:
        """Return F along a line from here."""
        return GeneralSegment(self, **course)

    def move(self, line: Segment, gamma: float, *, look: bool = True) -> None:
        """Go to w + gamma d along a segment that starts here; ``look=False`` leaves r, s and gap unknown."""
        line.add_to(self.w, gamma)
        self.is_still = gamma == 0.0
        self.r, self.gap = None, np.inf
        if look:
            self.look()

    def look(self) -> None:
        """Compute r where it is out of date, then the best vertex and the gap."""
        if self.r is None:
            self.r = self.gradient_at(self.w)
        self.s = self.problem.lmo(self.r)
        self.gap = gap_at(self.r, self.w, self.s)
        self.lmo_calls += 1

    def gradient_at(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of F at ``w``, and count it."""
        self.gradient_evaluations += self.problem.n_samples
        return self.problem.gradient(w)

    def along(self) -> float:
        """Return <r, w>."""
        return inner(self.r, self.w)

    def evaluate(self) -> Evaluation:
        """Return what is known of w; the objective costs one pass of values, the rest nothing."""
        if self.r is None:
            self.look()
        return Evaluation(self.problem.objective(self.w), self.r, self.gap, self.s, 0.0)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that is kept, as numbers and as arrays."""
        known = {} if self.r is None else {"r": self.r}
        return {name: getattr(self, name) for name in _SAVED}, {"w": self.w} | known

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        for name in _SAVED:
            setattr(self, name, numbers[name])
        self.w, self.r = arrays["w"], arrays.get("r")
        self.s = None if self.r is None else self.problem.lmo(self.r)


class GeneralSegment(Segment):
    """A segment of a general problem: each value or slope of phi costs a pass over the terms."""

    def __init__(self, point: GeneralPoint, **course: Any) -> None:
        super().__init__(point, **course)
        self.d = self.direction()
        self._values: dict[float, float] = {}
        self._slopes = {0.0: self.slope}

    def minimiser(self) -> float:
        """Return a step where phi' = 0, or the largest one where phi falls all the way.

        For terms that are not convex, the step is halved until phi is lower there than at the start.
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
        """Return L ||d||^2 with the terms' own L; inf where they do not tell it."""
        return self.point.problem.terms.smoothness() * inner(self.d, self.d)

    def _at(self, gamma: float) -> np.ndarray:
        return self.point.w + gamma * self.d

    def _value(self, gamma: float) -> float:
        if gamma not in self._values:
            self._values[gamma] = self.point.problem.objective(self._at(gamma))
        return self._values[gamma]

    def _slope(self, gamma: float) -> float:
        if gamma not in self._slopes:
            self._slopes[gamma] = inner(self.point.gradient_at(self._at(gamma)), self.d)
        return self._slopes[gamma]
