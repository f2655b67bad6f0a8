"""Lazy Frank-Wolfe: ask the oracle only where no vertex seen before is good enough."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from condgrad.constraints import Atom
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.convert import as_number
from condgrad.linalg.settings import RandomState
from condgrad.problems.active_set import AtomStack, Stack, VertexStack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.point import Point
from condgrad.problems.segment import towards
from condgrad.solvers.full_pass.base import PassSolver, PointState
from condgrad.solvers.step_sizes import LineRule, StepSize


class LazyFrankWolfe(PassSolver):
    r"""Lazy Frank-Wolfe, for sets whose oracle is expensive: linear programs, say, or a user's own.

    Phi estimates the gap from above. A vertex v that the oracle has returned before serves again where
    <grad F(w), w - v> >= Phi / K; only where none does is the oracle asked, and where the gap itself is below Phi / K,
    Phi is lowered to it. F(w_t) - F* = O(1/t), as without laziness. A step costs one gradient, and its products with
    the vertices seen so far, all of which are kept.

    Parameters
    ----------
    step_size : OpenLoop, ShortStep, ExactLineSearch (default) or Backtracking
    accuracy : float
        K, at least 1: how much worse than Phi a vertex may be. A large one spares more calls, for shorter steps.

    References
    ----------
    Braun, Pokutta & Zink (2019), "Lazifying conditional gradient algorithms", the parameter-free form.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "lazy").w
    array([2.])
    """

    requires = PassSolver.requires | {Feature.VERTICES}

    def __init__(self, step_size: StepSize | None = None, accuracy: float = 2.0) -> None:
        super().__init__(step_size)
        self.accuracy = as_number(accuracy, "accuracy of LazyFrankWolfe", low=1.0, what="a number of at least 1")

    def init(self, problem: BaseProblem, w0: np.ndarray | None, random_state: RandomState = None) -> LazyState:
        """Return the state at ``w0``; Phi starts at half the first gap."""
        state = super().init(problem, w0)
        seen: Stack = AtomStack() if problem.constraint.vertex is Atom else VertexStack()
        return LazyState(cast("Point", state.point), state.rule, state.point.gap / 2, seen)

    def step(self, problem: BaseProblem, state: LazyState, t: int) -> None:
        """Move towards a vertex that is good enough, or find that there is none."""
        point, seen = state.point, state.seen
        point.differentiate()  # grad F(w), without a call of the oracle
        gaps = point.along() - seen.inner_products(point.r)  # <grad F(w), w - v> for every v seen
        k = int(gaps.argmax())
        v, gap = seen.vertex(k), float(gaps[k])
        if gap < state.phi / self.accuracy:  # none is good enough
            if point.gap == np.inf:  # not known: the oracle has not been asked at this w
                point.ask_oracle()
            if point.gap < state.phi / self.accuracy:
                # The box halves Phi once an iteration, without moving, until it is low enough. The gap is known here
                # and tells where that ends, so the iteration makes its step.
                state.phi = min(state.phi / 2, point.gap)
            v, gap = point.s, point.gap
            state.keep(v)
        line = towards(point, v, gap)
        gamma = state.rule.at(t, line)
        point.move(line, gamma, asks=False)


class LazyState(PointState):
    """The state of a pass solver with the estimate Phi of the gap and the vertices that the oracle has returned."""

    point: Point

    def __init__(self, point: Point, rule: LineRule, phi: float, seen: Stack) -> None:
        super().__init__(point, rule)
        self.phi = phi
        self.seen = seen
        self._keys: set[Hashable] = set()
        self.keep(point.s)

    def keep(self, s: Vertex) -> None:
        """Keep the vertex ``s``, unless it is there."""
        if s.key() not in self._keys:
            self._keys.add(s.key())
            self.seen.append(s)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        numbers, arrays = super().snapshot()
        return numbers | {"phi": self.phi}, arrays | {f"atoms.{name}": a for name, a in self.seen.to_arrays().items()}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        super().restore(numbers, arrays)
        self.phi = numbers["phi"]
        self.seen = type(self.seen).from_arrays(arrays)
        self._keys = {self.seen.vertex(k).key() for k in range(len(self.seen))}
