"""Base classes of solvers of full passes: one step per advance, and for most of them a point that moves along lines."""

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
    """A point that moves along lines, its step size rule, and its active set if the solver uses one."""

    def __init__(self, point: PointLike, rule: LineRule, active: ActiveSet | None = None) -> None:
        self.point = point
        self.rule = rule
        self.active = active  # None for a solver without active set

    @property
    def w(self) -> Iterate:
        """The iterate."""
        return self.point.w

    @property
    def known_gap(self) -> float:
        """The solver's own value of the gap (inf: not known now)."""
        return self.point.gap

    @property
    def is_still(self) -> bool:  # type: ignore[override]
        """Whether the last step did not change the iterate."""
        return self.point.is_still

    @property
    def gradient_evaluations(self) -> int:  # type: ignore[override]
        """The number of single-sample gradients so far."""
        return self.point.gradient_evaluations

    @property
    def lmo_calls(self) -> int:  # type: ignore[override]
        """The number of oracle calls so far."""
        return self.point.lmo_calls

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        numbers, arrays = self.point.snapshot()
        numbers["rule"] = {name: getattr(self.rule, name) for name in self._memory()}
        return numbers, arrays | ({} if self.active is None else self.active.snapshot())

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""
        for name in self._memory():
            setattr(self.rule, name, numbers["rule"][name])
        self.point.restore(numbers, arrays)
        if self.active is not None:
            self.active.restore(arrays, self.point.problem.n_features)

    def _memory(self) -> list[str]:
        """Return the names of the values that the rule stores between steps: its private attributes."""
        return [name for name in vars(self.rule) if name.startswith("_")]


class ActiveState(PointState):
    """A point whose iterate is an array, its step size rule, and its active set."""

    point: Point
    active: ActiveSet

    def __init__(self, point: Point, rule: LineRule, active: ActiveSet) -> None:
        super().__init__(point, rule, active)


class LazyState(PointState):
    """A point whose steps may leave its gap unknown, and an estimate ``phi`` of it; None: all steps find it."""

    point: Point

    def __init__(self, point: Point, rule: LineRule, phi: float | None, active: ActiveSet | None = None) -> None:
        super().__init__(point, rule, active)
        self.phi = phi

    @property
    def gap_estimate(self) -> float:
        """The last gap that a step has seen: it may have moved on, and the gaps of the next steps are not known."""
        return self.point.last_gap

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        numbers, arrays = super().snapshot()
        return numbers | {"phi": self.phi, "last_gap": self.point.last_gap}, arrays

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot; files of older versions do not have the last gap."""
        super().restore(numbers, arrays)
        self.phi, self.point.last_gap = numbers["phi"], numbers.get("last_gap", np.inf)


class FullPassSolver:
    """A solver whose step uses the gradient of the whole objective."""

    requires: frozenset[Feature]

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"

    def step(self, problem: Any, state: Any, t: int) -> None:
        """Make iteration ``t`` = 0, 1, 2, ...: the algorithm itself."""
        raise NotImplementedError

    def advance(self, problem: Any, state: Any, t: int, max_steps: float, max_epochs: float) -> int:
        """Make one step and return 1: a full pass takes long enough for the loop to check its limits after it."""
        self.step(problem, state, t)
        return 1


class PassSolver(FullPassSolver):
    """A solver whose iterate is a point that moves along lines.

    Parameters
    ----------
    step_size : a rule of :mod:`condgrad.step_sizes`
    """

    requires = frozenset({Feature.LOOK, Feature.POINT})
    keeps_atoms = False  # whether it uses an active set, which requires a problem that offers VERTICES

    def __init__(self, step_size: LineRule | None = None) -> None:
        self.step_size = ExactLineSearch() if step_size is None else step_size
        if not isinstance(self.step_size, LineRule):
            raise TypeError(f"step_size must be a rule of condgrad.step_sizes such as OpenLoop(); got {step_size!r}.")

    def init(self, problem: BaseProblem, w0: Any, random_state: RandomState = None) -> PointState:
        """Return the state at ``w0``, or at the set's own start; these solvers use no random numbers."""
        if w0 is None:
            w0, parts = problem.start()
        elif self.keeps_atoms:
            parts = problem.constraint.decompose(w0)
        point, rule = problem.point(w0), self.step_size.begin(problem)
        if not self.keeps_atoms:
            return PointState(point, rule)
        return ActiveState(cast("Point", point), rule, ActiveSet(parts))

    def refresh(self, problem: BaseProblem, state: PointState) -> None:
        """Compute all stored values anew, to remove accumulated rounding errors."""
        w = state.w if state.active is None else state.active.combination(problem.n_features)
        state.point.reset(w)

    def evaluate(self, problem: BaseProblem, state: PointState) -> Evaluation:
        """Return the evaluation of the iterate."""
        return state.point.evaluate()
