"""Segment: F along a line from the current point, from which step sizes are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypedDict, Unpack, cast

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.factored import Iterate, RankOne
from condgrad.linalg.vectors import inner
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.parabola import Parabola


class Course(TypedDict):
    """The direction of a segment, d = sum_k c_k v_k - pull w, with its slope and the largest feasible step."""

    pull: float
    parts: Sequence[tuple[float, Any]]  # pairs (c_k, v_k), with v_k of the kind that the point uses: array or rank one
    slope: float
    max_step: float


class PointLike(Protocol):
    """The attributes and methods of the iterate that solvers along lines use."""

    is_still: bool
    gradient_evaluations: int
    lmo_calls: int
    gap: float

    @property
    def w(self) -> Iterate:
        """The iterate."""

    @property
    def s(self) -> Vertex | RankOne:
        """The vertex that the oracle returned last."""

    @property
    def problem(self) -> Sized:
        """The problem."""

    def segment(self, **course: Unpack[Course]) -> Segment:
        """Return F along a line from here."""

    def evaluate(self) -> Evaluation:
        """Return the evaluation at w."""

    def reset(self, w: Any) -> None:
        """Go to ``w``, an iterate of this problem, and compute everything anew."""

    def move(self, line: Any, gamma: float) -> None:
        """Go to w + gamma d along a segment returned by ``segment`` of this point."""

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the whole state of the point, as numbers and as arrays."""

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""


class Sized(Protocol):
    """The attribute of a problem that a segment uses."""

    n_features: int


class Segment:
    """phi(gamma) = F(w + gamma d) for 0 <= gamma <= max_step, with d = sum_k c_k v_k - pull w.

    Attributes
    ----------
    slope : float
        phi'(0) = <grad F(w), d>, negative for a direction of descent.
    max_step : float
        The largest feasible step.
    """

    def __init__(self, point: PointLike, **course: Unpack[Course]) -> None:
        self.point = point
        self.pull = course["pull"]
        self.parts = course["parts"]
        self.slope = course["slope"]
        self.max_step = course["max_step"]

    def add_to(self, w: np.ndarray, gamma: float) -> None:
        """Set w to w + gamma d."""
        if self.pull != 0.0:
            w *= 1.0 - gamma * self.pull
        for c, v in self.parts:
            indices, values = v.support()
            if indices is None:
                w += gamma * c * values
            else:
                w[indices] += gamma * c * values

    def change(self, gamma: float) -> float:
        """Return phi(gamma) - phi(0)."""
        return self._value(gamma) - self._value(0.0)

    def turn(self, gamma: float) -> float:
        """Return phi'(gamma) - phi'(0)."""
        return self._slope(gamma) - self._slope(0.0)

    def minimiser(self) -> float:
        """Return the step that minimises phi; for a non-convex loss, a step where phi' = 0 and phi is lower."""
        raise NotImplementedError

    def short_step(self) -> float:
        """Return the step that minimises the quadratic bound phi(0) + gamma slope + gamma^2 curvature / 2."""
        return self.step_for(self.curvature())

    def step_for(self, curvature: float) -> float:
        """Return the minimiser of phi(0) + gamma slope + gamma^2 curvature / 2 over [0, max_step]."""
        return Parabola(-self.slope, curvature).minimiser(self.max_step)

    def is_below(self, gamma: float, curvature: float) -> bool:
        """Return whether phi(gamma) <= phi(0) + gamma slope + gamma^2 curvature / 2.

        Close to the optimum the two sides differ by less than the rounding error of phi. There the slopes decide:
        whether phi'(gamma) <= phi'(0) + gamma curvature.
        """
        start, end = self._value(0.0), self._value(gamma)
        excess = end - start - gamma * self.slope - 0.5 * gamma * gamma * curvature
        if abs(excess) > 1e-12 * max(abs(start), abs(end)):
            return excess <= 0.0
        return self.turn(gamma) <= gamma * curvature

    def curvature(self) -> float:
        """Return a bound of phi'' over the segment."""
        raise NotImplementedError

    def direction(self) -> np.ndarray:
        """Return d as an array."""
        d = np.zeros(self.point.problem.n_features)
        self.add_to(d, 1.0)  # adds sum_k c_k v_k only: the pull multiplies zeros
        d -= self.pull * cast("np.ndarray", self.point.w)
        return d

    def squared_length(self) -> float:
        """Return ||d||_2^2."""
        d = self.direction()
        return inner(d, d)

    def _value(self, gamma: float) -> float:
        raise NotImplementedError

    def _slope(self, gamma: float) -> float:
        raise NotImplementedError


def towards(point: PointLike, s: Vertex | RankOne, gap: float) -> Segment:
    """Return the segment from w to the vertex s, where gap = <r, w - s>."""
    return point.segment(pull=1.0, parts=[(1.0, s)], slope=-gap, max_step=1.0)


def away_from(point: PointLike, v: Vertex, slope: float, weight: float) -> Segment:
    """Return the segment from w away from the atom v, up to the step where the weight of v is 0."""
    return point.segment(pull=-1.0, parts=[(-1.0, v)], slope=slope, max_step=weight / (1.0 - weight))


def between(point: PointLike, v: Vertex, s: Vertex, slope: float, weight: float) -> Segment:
    """Return the segment that moves weight from the atom v to the vertex s, up to the whole weight of v."""
    return point.segment(pull=0.0, parts=[(1.0, s), (-1.0, v)], slope=slope, max_step=weight)
