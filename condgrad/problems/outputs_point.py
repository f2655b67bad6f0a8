"""OutputsPoint: the iterate of a solver that moves along lines, with the scores of all outputs, and F along lines."""

from __future__ import annotations

from typing import Any, Protocol, Unpack

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.saved import take_like
from condgrad.problems.look_point import LookPoint, LookSegment
from condgrad.problems.point import Whole
from condgrad.problems.segment import Course, Segment


class Scoring(Whole, Protocol):
    """The methods of a problem with several linear predictions per sample that a point uses."""

    n_outputs: int

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return S, one row for each output."""

    def vertex_scores(self, s: Vertex) -> np.ndarray:
        """Return the scores of a vertex."""

    def value_of(self, S: np.ndarray) -> float:
        """Return F for the scores S."""

    def derivatives_of(self, S: np.ndarray) -> np.ndarray:
        """Return the derivatives of F with respect to the scores S."""

    def gradient_of(self, A: np.ndarray) -> np.ndarray:
        """Return the gradient of F for the derivatives A."""

    def intercept_for(self, w: np.ndarray, S: np.ndarray) -> Any:
        """Return the best intercepts for w and its scores S."""

    def curvature_along(self, Q: np.ndarray) -> float:
        """Return a bound of the second derivative of F along a line on which the scores change at the rate Q."""


class OutputsPoint(LookPoint):
    """A point with its scores ``S``, which are updated after each move: F along a line takes no pass over X.

    ``reset`` computes the scores anew, which bounds the rounding error.
    """

    problem: Scoring
    arrays = (*LookPoint.arrays, "S")

    def segment(self, **course: Unpack[Course]) -> OutputsSegment:
        """Return F along a line from here."""
        return OutputsSegment(self, **course)

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot; snapshots of older versions contain no scores."""
        if "S" not in arrays:
            arrays = arrays | {"S": self.problem.scores(take_like(arrays, "w", self.w))}
        super().restore(numbers, arrays)

    def _arrive(self) -> None:
        self.S = self.problem.scores(self.w)

    def _update(self, line: Segment, gamma: float) -> None:
        assert isinstance(line, OutputsSegment)
        self.S += gamma * line.Q
        self.r = None

    def _gradient(self) -> np.ndarray:
        self.gradient_evaluations += self.problem.n_samples
        return self.problem.gradient_of(self.problem.derivatives_of(self.S))

    def _objective(self) -> float:
        return self.problem.value_of(self.S)

    def _intercept(self) -> Any:
        return self.problem.intercept_for(self.w, self.S)


class OutputsSegment(LookSegment):
    """F along a line, on which the scores change at the rate ``Q``."""

    point: OutputsPoint

    def __init__(self, point: OutputsPoint, **course: Unpack[Course]) -> None:
        super().__init__(point, **course)
        self.Q = -self.pull * point.S
        for c, v in self.parts:
            self.Q += c * point.problem.vertex_scores(v)

    def curvature(self) -> float:
        """Return a bound of phi'' over the segment, from the scores."""
        return self.point.problem.curvature_along(self.Q)

    def _value(self, gamma: float) -> float:
        if gamma not in self._values:
            self._values[gamma] = self.point.problem.value_of(self.point.S + gamma * self.Q)
        return self._values[gamma]

    def _slope(self, gamma: float) -> float:
        if gamma not in self._slopes:
            A = self.point.problem.derivatives_of(self.point.S + gamma * self.Q)
            self._slopes[gamma] = float(np.vdot(A, self.Q))
        return self._slopes[gamma]
