"""What every solver answers to the loop, and what solvers of full passes share."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.problems.active_set import ActiveSet
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.linear import Problem
from condgrad.solvers.step_sizes import ExactLineSearch, StepSize


class State:
    """Where a solver of full passes stands: its point, its step size rule, its active set where it keeps one."""

    deadline = np.inf  # by time.perf_counter: what takes long within a step may end there

    def __init__(self, point: Any, rule: StepSize, active: Any = None) -> None:
        self.point = point
        self.rule = rule
        self.active = active  # None for a solver that keeps none

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        return self.point.w

    @property
    def known_gap(self) -> float:
        """The gap as the solver knows it (inf: not known at this moment)."""
        return self.point.gap

    @property
    def gap_estimate(self) -> float:
        """The gap on which to ask for a certificate."""
        return self.point.gap

    @property
    def is_still(self) -> bool:
        """Whether the last step left the iterate where it was."""
        return self.point.is_still

    @property
    def gradient_evaluations(self) -> int:
        """How many gradients of single samples were taken so far."""
        return self.point.gradient_evaluations

    @property
    def lmo_calls(self) -> int:
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


class PassSolver:
    """A solver whose step sees the gradient of the whole objective.

    Parameters
    ----------
    step_size : a rule of :mod:`condgrad.step_sizes`
    """

    needs_atoms = False  # whether it keeps an active set
    needs_predictions = False  # whether it works with predictions x_i'w, which a GeneralProblem does not have
    takes_factors = False  # whether it works with matrices in factors, the iterates of a CompletionProblem
    needs_factors = False  # whether it works with nothing else

    def __init__(self, step_size: StepSize | None = None) -> None:
        self.step_size = ExactLineSearch() if step_size is None else step_size
        if not (hasattr(self.step_size, "begin") and hasattr(self.step_size, "at")):
            raise TypeError(
                f"step_size must be a rule of condgrad.solvers.step_sizes such as OpenLoop(); got {step_size!r}."
            )

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: Any = None) -> Any:
        """Return the state at ``w0``, or at the set's own start; nothing here is random."""
        if w0 is None:
            w0, parts = problem.start()
        elif self.needs_atoms:
            parts = problem.constraint.decompose(w0)
        active = ActiveSet(parts) if self.needs_atoms else None
        return State(problem.point(w0), self.step_size.begin(problem), active)

    def step(self, problem: Problem, state: Any, t: int) -> None:
        """Make iteration ``t`` = 0, 1, 2, ...: the algorithm itself."""
        raise NotImplementedError

    def advance(self, problem: Problem, state: Any, t: int, max_steps: float, max_epochs: float) -> int:
        """Make one step and return how many were made: a full pass is long enough for the loop to look after it."""
        self.step(problem, state, t)
        return 1

    def refresh(self, problem: Problem, state: State) -> None:
        """Compute all that is kept anew: called when rounding has pulled the state away from the truth."""
        w = state.w if state.active is None else state.active.combination(problem.n_features)
        state.point.reset(w)

    def evaluate(self, problem: Problem, state: State) -> Evaluation:
        """Return what is known of the iterate."""
        return state.point.evaluate()
