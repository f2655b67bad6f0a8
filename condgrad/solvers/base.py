"""What every solver answers to the loop, and says that it needs of a problem."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from condgrad.linalg.factored import Iterate
from condgrad.linalg.settings import RandomState
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation


class State:
    """Where a run of a solver stands; the loop reads these, and a checkpoint saves and restores it."""

    deadline = np.inf  # by time.perf_counter: what takes long within a step may end there
    is_done = False  # whether a rule of the solver's own has ended the run, which certifies nothing
    random_iterate: np.ndarray | None = (
        None  # an iterate that was drawn from all of them, where a paper's theorem is about that
    )

    @property
    def w(self) -> Iterate:
        """The iterate."""
        raise NotImplementedError

    @property
    def known_gap(self) -> float:
        """The gap as the solver knows it (inf: not known at this moment)."""
        raise NotImplementedError

    @property
    def gap_estimate(self) -> float:
        """The gap on which to ask for a certificate."""
        return self.known_gap

    is_still: bool  # whether the last step left the iterate where it was
    gradient_evaluations: int  # of single samples, so far
    lmo_calls: int  # how many times the oracle was asked so far

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        raise NotImplementedError

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        raise NotImplementedError


class Requiring(Protocol):
    """A solver, or its class, as far as it is compared with a problem."""

    requires: frozenset[Feature]  # of the problem


@runtime_checkable
class Solver(Protocol):
    """What :func:`condgrad.minimize` asks of a solver.

    It is given no problem but one that offers what it requires, and no state but one that its ``init`` has returned.
    """

    requires: frozenset[Feature]  # of the problem

    def init(self, problem: Any, w0: Any, random_state: RandomState = None) -> State:
        """Return the state at ``w0``, or where the solver starts by itself."""

    def advance(self, problem: Any, state: Any, t: int, max_steps: float, max_epochs: float) -> int:
        """Make some steps from iteration ``t`` on; return how many."""

    def refresh(self, problem: Any, state: Any) -> None:
        """Compute anew what rounding has worn: a certificate is asked for next."""

    def evaluate(self, problem: Any, state: Any) -> Evaluation | None:
        """Return what is known of the iterate; None where only a pass that the solver does not need would tell."""


def missing(solver: Requiring, problem: BaseProblem) -> list[Feature]:
    """Return what a solver (or its class) requires and a problem does not offer, in the order of Feature."""
    return [feature for feature in Feature if feature in solver.requires - problem.offers]
