"""The protocol of solvers: the methods that the loop calls, and the features that a solver requires of a problem."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from condgrad.linalg.factored import Iterate
from condgrad.linalg.settings import RandomState
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation


class State:
    """The state of a run of a solver; the loop reads these attributes, and a checkpoint saves and restores them."""

    deadline = np.inf  # in the time of time.perf_counter: long computations within a step may stop then
    goal = 0.0  # the gap at which the run can end, once it is known: a smaller one need not be known exactly
    most_evaluations = np.inf  # number of single-sample gradients at which the run ends: a long step ends there, too
    is_done = False  # whether the solver's own stopping rule has ended the run, which certifies nothing
    random_iterate: np.ndarray | None = (
        None  # an iterate drawn at random from all iterates, for solvers whose theorem is about it
    )

    record_growth = 0.1  # by which part the number of epochs grows, by default, from one record to the next

    @property
    def w(self) -> Iterate:
        """The iterate."""
        raise NotImplementedError

    @property
    def known_gap(self) -> float:
        """The solver's own value of the gap (inf: not known now)."""
        raise NotImplementedError

    @property
    def gap_estimate(self) -> float:
        """The gap that decides when a certificate is computed."""
        return self.known_gap

    is_still: bool  # whether the last step did not change the iterate
    gradient_evaluations: int  # number of single-sample gradients so far
    lmo_calls: int  # number of oracle calls so far

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        raise NotImplementedError

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot, which a stranger may have written: take arrays by :mod:`condgrad.linalg.saved`."""
        raise NotImplementedError

    def evaluate_start(self) -> Evaluation | None:
        """Return the evaluation of the start if the next step can use its pass; None: it is evaluated separately."""
        return None

    def release(self) -> None:
        """Give back threads and memory that only steps need; called at the end of a run, which may be continued."""


class Requiring(Protocol):
    """The attribute of a solver, or of its class, that is compared with a problem."""

    requires: frozenset[Feature]  # features that the problem must offer


@runtime_checkable
class Solver(Protocol):
    """The methods of a solver that :func:`condgrad.minimize` calls.

    The problem always offers the features that the solver requires, and the state was returned by its ``init``.
    """

    requires: frozenset[Feature]  # features that the problem must offer

    def init(self, problem: Any, w0: Any, random_state: RandomState = None) -> State:
        """Return the state at ``w0``, or at the solver's own start if ``w0`` is None."""

    def advance(self, problem: Any, state: Any, t: int, max_steps: float, max_epochs: float) -> int:
        """Make some steps, the first of them iteration ``t``; return the number of steps."""

    def refresh(self, problem: Any, state: Any) -> None:
        """Recompute values with accumulated rounding errors; called before a certificate is computed."""

    def evaluate(self, problem: Any, state: Any) -> Evaluation | None:
        """Return the evaluation of the iterate; None if it would cost a pass that the solver does not need."""


def missing(solver: Requiring, problem: BaseProblem) -> list[Feature]:
    """Return the features that a solver (or its class) requires and a problem does not offer, ordered as in Feature."""
    lacking = solver.requires - problem.offers
    return [feature for feature in Feature if feature in lacking] if lacking else []
