"""Lazy Frank-Wolfe: call the oracle only if no vertex that it returned before is good enough."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from condgrad.constraints import Atom
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.convert import as_number
from condgrad.linalg.settings import RandomState
from condgrad.problems.active_set import AtomStack, Stack, VertexStack, stack_from
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.point import Point
from condgrad.problems.segment import towards
from condgrad.solvers.full_pass.base import LazyState, PassSolver
from condgrad.solvers.step_sizes import LineRule, StepSize


class LazyFrankWolfe(PassSolver):
    r"""Lazy Frank-Wolfe, for sets whose oracle is expensive, such as linear programs or a user's own oracle.

    Phi estimates the gap from above. A vertex v that the oracle has returned before is used again if
    <grad F(w), w - v> >= Phi / K. Only if there is no such vertex, the oracle is called; if the gap itself is then
    below Phi / K, Phi is reduced to at most the gap. F(w_t) - F* = O(1/t), as without laziness. A step costs one
    gradient, and its products with all vertices returned so far, which are stored.

    Parameters
    ----------
    step_size : OpenLoop, ShortStep, ExactLineSearch (default) or Backtracking
    accuracy : float
        K, at least 1: the factor by which a vertex may be worse than Phi. A larger K saves more oracle calls, but makes
        shorter steps.

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

    def init(self, problem: BaseProblem, w0: np.ndarray | None, random_state: RandomState = None) -> SeenState:
        """Return the state at ``w0``; Phi starts at half the first gap."""
        state = super().init(problem, w0)
        seen: Stack = AtomStack() if problem.constraint.vertex is Atom else VertexStack()
        return SeenState(cast("Point", state.point), state.rule, state.point.gap / 2, seen)

    def step(self, problem: BaseProblem, state: SeenState, t: int) -> None:
        """Move towards a stored vertex that is good enough, or else towards a vertex from the oracle."""
        point, seen = state.point, state.seen
        point.differentiate()  # grad F(w), without a call of the oracle
        gaps = point.along() - seen.inner_products(point.r)  # <grad F(w), w - v> for every stored v
        k = int(gaps.argmax())
        v, gap = seen.vertex(k), float(gaps[k])
        if gap < state.phi / self.accuracy or gap <= state.goal:  # none is good enough, or the run may end here
            if point.gap == np.inf:  # not known: the oracle was not called at this w
                point.ask_oracle()
            if point.gap < state.phi / self.accuracy:
                # The paper's box halves Phi once per iteration, without moving, until it is small enough. Here the gap
                # is known, so Phi is set at once and the iteration makes its step.
                state.phi = min(state.phi / 2, point.gap)
            v, gap = point.s, point.gap
            state.keep(v)
        line = towards(point, v, gap)
        gamma = state.rule.at(t, line)
        point.move(line, gamma, asks=False)


class SeenState(LazyState):
    """The state of a pass solver with the estimate Phi of the gap and the vertices that the oracle has returned."""

    phi: float

    def __init__(self, point: Point, rule: LineRule, phi: float, seen: Stack) -> None:
        super().__init__(point, rule, phi)
        self.seen = seen
        self._keys: set[Hashable] = set()
        self.keep(point.s)

    def keep(self, s: Vertex) -> None:
        """Store the vertex ``s``, unless it is stored already."""
        if s.key() not in self._keys:
            self._keys.add(s.key())
            self.seen.append(s)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        numbers, arrays = super().snapshot()
        return numbers, arrays | {f"atoms.{name}": a for name, a in self.seen.to_arrays().items()}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""
        super().restore(numbers, arrays)
        self.seen = stack_from(arrays, self.point.problem.n_features)
        if not len(self.seen):
            raise ValueError("it has no vertices")
        self._keys = {self.seen.vertex(k).key() for k in range(len(self.seen))}
