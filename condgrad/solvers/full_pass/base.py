"""What solvers of full passes share: a step for each advance, and for most of them a point that moves along lines."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from condgrad.linalg.factored import Iterate
from condgrad.linalg.settings import RandomState
from condgrad.problems.active_set import ActiveSet
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.point import Point
from condgrad.problems.segment import PointLike
from condgrad.solvers.base import State
from condgrad.solvers.step_sizes import ExactLineSearch, LineRule


class PointState(State):
    """A point that moves along lines, its step size rule, and its active set where the solver keeps one."""

    def __init__(self, point: PointLike, rule: LineRule, active: ActiveSet | None = None) -> None:
        self.point = point
        self.rule = rule
        self.active = active  # None for a solver that keeps none

    @property
    def w(self) -> Iterate:
        """The iterate."""
        return self.point.w

    @property
    def known_gap(self) -> float:
        """The gap as the solver knows it (inf: not known at this moment)."""
        return self.point.gap

    @property
    def is_still(self) -> bool:  # type: ignore[override]
        """Whether the last step left the iterate where it was."""
        return self.point.is_still

    @property
    def gradient_evaluations(self) -> int:  # type: ignore[override]
        """How many gradients of single samples were taken so far."""
        return self.point.gradient_evaluations

    @property
    def lmo_calls(self) -> int:  # type: ignore[override]
        """How many times the oracle was asked so far."""
        return self.point.lmo_calls

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        numbers, arrays = self.point.snapshot()
        numbers["rule"] = {name: getattr(self.rule, name) for name in self._memory()}
        return numbers, arrays | ({} if self.active is None else self.active.snapshot())

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        for name in self._memory():
            setattr(self.rule, name, numbers["rule"][name])
        self.point.restore(numbers, arrays)
        if self.active is not None:
            self.active.restore(arrays)

    def _memory(self) -> list[str]:
        """Return the names of what the rule remembers from step to step: its private attributes."""
        return [name for name in vars(self.rule) if name.startswith("_")]


class ActiveState(PointState):
    """A point among arrays, its step size rule, and its active set."""

    point: Point
    active: ActiveSet

    def __init__(self, point: Point, rule: LineRule, active: ActiveSet) -> None:
        super().__init__(point, rule, active)


class FullPassSolver:
    """A solver whose step sees the gradient of the whole objective."""

    requires: frozenset[Feature]

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"

    def step(self, problem: Any, state: Any, t: int) -> None:
        """Make iteration ``t`` = 0, 1, 2, ...: the algorithm itself."""
        raise NotImplementedError

    def advance(self, problem: Any, state: Any, t: int, max_steps: float, max_epochs: float) -> int:
        """Make one step and return how many were made: a full pass is long enough for the loop to look after it."""
        self.step(problem, state, t)
        return 1


class PassSolver(FullPassSolver):
    """A solver whose iterate is a point that moves along lines.

    Parameters
    ----------
    step_size : a rule of :mod:`condgrad.step_sizes`
    """

    requires = frozenset({Feature.LOOK, Feature.POINT})
    keeps_atoms = False  # whether it keeps an active set, which takes a problem that offers VERTICES

    def __init__(self, step_size: LineRule | None = None) -> None:
        self.step_size = ExactLineSearch() if step_size is None else step_size
        if not isinstance(self.step_size, LineRule):
            raise TypeError(f"step_size must be a rule of condgrad.step_sizes such as OpenLoop(); got {step_size!r}.")

    def init(self, problem: BaseProblem, w0: Any, random_state: RandomState = None) -> PointState:
        """Return the state at ``w0``, or at the set's own start; nothing here is random."""
        if w0 is None:
            w0, parts = problem.start()
        elif self.keeps_atoms:
            parts = problem.constraint.decompose(w0)
        point, rule = problem.point(w0), self.step_size.begin(problem)
        if not self.keeps_atoms:
            return PointState(point, rule)
        return ActiveState(cast("Point", point), rule, ActiveSet(parts))

    def refresh(self, problem: BaseProblem, state: PointState) -> None:
        """Compute all that is kept anew: called when rounding has pulled the state away from the truth."""
        w = state.w if state.active is None else state.active.combination(problem.n_features)
        state.point.reset(w)

    def evaluate(self, problem: BaseProblem, state: PointState) -> Evaluation:
        """Return what is known of the iterate."""
        return state.point.evaluate()
