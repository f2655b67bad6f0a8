"""partial_fit: one epoch of a stochastic solver over each batch, which goes on where the last batch ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import solvers
from condgrad.estimators._batch import Batch, Memory, Slopes
from condgrad.linalg.settings import RandomState
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.linear import Problem
from condgrad.run.minimize import minimize
from condgrad.run.result import Result
from condgrad.solvers.stochastic._state import StepState
from condgrad.solvers.stochastic.base import StepSolver


def supports_partial_fit(estimator: Any) -> bool:
    """Return True if the estimator has ``partial_fit``; raise AttributeError with the reason if not."""
    if not estimator.learns_in_batches:
        raise AttributeError(f"{type(estimator).__name__} has no partial_fit: it needs all data at once.")
    solver: Any = estimator.solver
    if isinstance(solver, str):
        solver = solvers.REGISTERED.get(solver)
    fields = getattr(solver, "_fields", ())
    if {"batch_size", "step_size"} <= set(fields) and not (solver.batches_grow or solver.tosses_coins):
        return True
    raise AttributeError(
        "partial_fit needs a solver with a fixed batch size, a step size and no full passes, such as solver='sfw'; "
        f"got {estimator.solver!r}."
    )


class Continued:
    """A stochastic solver whose run began on earlier batches: it knows their steps, and what they say of the gradient.

    A run that restarted with each batch would begin with a full step, which discards all earlier batches; and one that
    knew the gradient of a small batch alone would move to a vertex that is best for its noise, however short the step.
    """

    def __init__(self, solver: StepSolver, batch: Batch, before: Result | None) -> None:
        self.solver, self.batch, self.requires = solver, batch, solver.requires
        self.n_steps, self.kept = (0, None) if before is None else (before.n_steps, before.random_iterate)

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: RandomState = None) -> StepState:
        """Return the state at ``w0``, with the estimate of the gradient there."""
        state = self.solver.init(problem, w0, random_state)
        known = self.batch.begin(state.space.w0)
        if known is not None:
            self.solver.go_on_from(state.space, state.arrays, *known)
        if self.kept is not None:
            state.kept.t = self.n_steps
            state.kept.replace(self.kept)
        return state

    def advance(self, problem: Problem, state: StepState, t: int, max_steps: float, max_epochs: float) -> int:
        """Make steps, counted from the first batch on."""
        return self.solver.advance(problem, state, self.n_steps + t, max_steps, max_epochs)

    def refresh(self, problem: Problem, state: StepState) -> None:
        """Delay the next certificate."""
        self.solver.refresh(problem, state)

    def evaluate(self, problem: Problem, state: StepState) -> Evaluation:
        """Return objective and gap on this batch."""
        return self.solver.evaluate(problem, state)


def memory_of_fit(result: Result, n_samples: int) -> Memory:
    """Return what a fit to all data tells later batches: by its intercept the derivative is 0."""
    return Memory(n_samples, Slopes(result.gradient, 0.0))


def one_epoch(
    batch: Batch, solver: object, w: np.ndarray | None, before: Result | None, random_state: RandomState
) -> tuple[Result, Memory]:
    """Return the result of one epoch over the samples of a batch, started at ``w``, and what is known after it.

    Its ``w`` is the last iterate, not the one with the smallest gap, which on a small batch is often an earlier one.
    Objective and gap are exact, for the samples of this batch and the intercept of the result. Steps and epochs are
    counted over all batches.
    """
    chosen: Any = solvers.by_name(solver)() if isinstance(solver, str) else solver
    run = minimize(
        batch.problem, Continued(chosen, batch, before), w0=w, max_epochs=1, tol=0.0, random_state=random_state
    )
    problem, intercept, memory = batch.end(run.state.w)
    exact = problem.evaluate(run.state.w)
    result = run._replace(
        w=run.state.w,
        intercept=intercept,
        objective=exact.objective,
        gap=exact.gap,
        rounding=exact.rounding,
        lower_bound=exact.lower_bound,
        n_steps=run.n_steps + (0 if before is None else before.n_steps),
        n_epochs=1.0 + (0.0 if before is None else before.n_epochs),
        solver=repr(solver),
        r=exact.r,
    )
    return result, memory
