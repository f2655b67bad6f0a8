"""partial_fit: one epoch of a stochastic solver over each batch, started at the solution of the last batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad import solvers
from condgrad.compiled import compiled
from condgrad.linalg.settings import RandomState
from condgrad.problems.base import BaseProblem
from condgrad.run.minimize import minimize
from condgrad.run.result import Result
from condgrad.solvers.step_sizes import KernelRule, StepSize


class Continued(StepSize):
    """A step-size rule that counts the steps of earlier batches too: step t has the size of step ``t + n_steps``.

    A rule that restarted with each batch would begin with a full step, which discards all earlier batches.
    """

    def __init__(self, rule: StepSize, n_steps: int) -> None:
        self.rule, self.n_steps = rule, n_steps

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return the same rule for kernels."""
        return _ContinuedInKernel(self.rule.on_estimates(problem, batch_size), float(self.n_steps))


@compiled
class _ContinuedInKernel(NamedTuple):
    rule: KernelRule
    n_steps: float

    def at(self, t, estimate):
        return self.rule.at(t + self.n_steps, estimate)


def supports_partial_fit(estimator: Any) -> bool:
    """Return True if the estimator has ``partial_fit``; raise AttributeError with the reason if not."""
    if not estimator.learns_in_batches:
        raise AttributeError(f"{type(estimator).__name__} has no partial_fit: it needs all data at once.")
    solver: Any = estimator.solver
    if isinstance(solver, str):
        solver = solvers.REGISTERED.get(solver)
    fields = getattr(solver, "_fields", ())
    if {"batch_size", "step_size"} <= set(fields) and not solver.batches_grow:
        return True
    raise AttributeError(
        "partial_fit needs a solver with a fixed batch size and a step size, such as solver='sfw'; "
        f"got {estimator.solver!r}."
    )


def one_epoch(
    problem: BaseProblem, solver: object, w: np.ndarray | None, before: Result | None, random_state: RandomState
) -> Result:
    """Return the result of one epoch over the samples of ``problem``, started at ``w``.

    Its ``w`` is the last iterate, not the one with the smallest gap, which on a small batch is often an earlier one.
    Objective and gap are exact, for the samples of this batch. Steps and epochs are counted over all batches.
    """
    chosen: Any = solvers.by_name(solver)() if isinstance(solver, str) else solver
    n_steps, n_epochs = (0, 0.0) if before is None else (before.n_steps, before.n_epochs)
    settings: dict[str, Any] = {"step_size": Continued(chosen.step_size, n_steps)}
    # Fill a table of derivatives at w: steps are short by now, and with a table of zeros the first ones would go wrong.
    # In the first batch steps are long, and derivatives at the start would soon be stale.
    if w is not None and "warm" in chosen._fields:
        settings["warm"] = True
    result = minimize(problem, chosen._replace(**settings), w0=w, max_epochs=1, tol=0.0, random_state=random_state)
    last = result.state.w
    exact = problem.evaluate(last)
    return result._replace(
        w=last,
        objective=exact.objective,
        gap=exact.gap,
        rounding=exact.rounding,
        lower_bound=exact.lower_bound,
        n_steps=n_steps + result.n_steps,
        n_epochs=n_epochs + 1.0,
        solver=repr(solver),
    )
