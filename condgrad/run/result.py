"""Result: the return value of minimize; Status: the reason why it stopped, as a sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.constraints import ConstraintSet, Multipliers
from condgrad.linalg.named_enum import NamedEnum
from condgrad.problems.gradient import OutsideGradient, whole
from condgrad.run.trace import Trace, count_nonzero


class Status(NamedEnum):
    """The reason why a run stopped; the value is the sentence that users read."""

    CONVERGED = "The Frank-Wolfe gap fell below tol."
    ROUNDING = (
        "The gap is as small as its rounding error, which is above tol (inf: it has no bound); scale the columns of X "
        "and y to ordinary sizes, use a smaller set, or raise tol."
    )
    MAX_EPOCHS = "The limit max_epochs was reached; raise it, raise tol, or try solver='auto'."
    MAX_STEPS = "The limit max_steps was reached; raise it to continue."
    MAX_TIME = "The limit max_time was reached; raise it, or continue a run with w0=result."
    SMALL_STEP = "A step changed no coefficient by more than the solver's step_tol; the gap shows how good w is."
    STALLED = "No further progress is possible in floating point; the gap is as small as rounding allows."
    STOPPED = "The callback asked to stop."
    INTERRUPTED = "The run was interrupted; this is the best iterate so far."
    DEVICE_FAILED = "The GPU failed or was lost; this is the best iterate so far, in the memory of the host."
    OUTSIDE = "w lies outside the constraint set, so nothing is certified; the set or the solver is wrong."

    def __str__(self) -> str:
        return self.value


class Result(NamedTuple):
    """The result of :func:`condgrad.minimize`, with its certificate.

    Attributes
    ----------
    w : array, or Factored for a CompletionProblem
        The best iterate that was certified: the one with the smallest gap.
    objective, gap : float
        F(w) and the exact Frank-Wolfe gap at w, from one fresh pass over the data; the gap is never negative, and
        infinite where w lies outside the set.
    rounding : float
        A bound of the rounding error of the gap, from the sums that were computed: for a convex loss
        F(w) - F* <= gap + rounding, always; inf where the sums overflow, or vanish, and no bound is known. CONVERGED
        means that gap + rounding is at most the tolerance, whatever else has ended the run, except for Ctrl-C.
    lower_bound : float
        The largest lower bound of F* found during the run, minus its rounding error, or the least value of the loss
        where that is larger, so also F(w) - F* <= objective - lower_bound (often tighter than gap, which is always that
        of Frank-Wolfe), up to the rounding of the objective; -inf for a non-convex loss.
    intercept : float
        The best intercept for w (0 for a problem without intercept); for a CompletionProblem its Biases, or None.
    status : Status
    n_steps, n_epochs, n_lmo, seconds : steps, epochs (n single-sample gradients each), oracle calls, solver time
    solver : str
        The solver that ran; with ``solver="auto"``, also the reason for its choice.
    random_iterate : array or None
        For stochastic solvers on a non-convex loss: an iterate drawn uniformly from all iterates of the run;
        convergence theorems for such losses are about this iterate.
    trace : Trace
    state : object
        The solver's own state at the end.
    r : array or OutsideGradient
        The gradient of F at w, of the same pass, where it lies; ``gradient`` is the array.
    constraint : ConstraintSet
        The set of the problem.
    n_reads : float
        For data on disk: how often all rows were read, apart from small subsamples; 0 for data in memory.
    """

    w: Any
    objective: float
    gap: float
    rounding: float
    lower_bound: float
    intercept: Any
    status: Status
    n_steps: int
    n_epochs: float
    n_lmo: int
    seconds: float
    solver: str
    random_iterate: np.ndarray | None
    trace: Trace
    state: Any
    r: np.ndarray | OutsideGradient
    constraint: ConstraintSet
    n_reads: float = 0.0

    @property
    def gradient(self) -> np.ndarray:
        """The gradient of F at w, of the same pass; one that is with the workers of a cluster is fetched from them."""
        return whole(self.r)

    @property
    def multipliers(self) -> Multipliers | None:
        """The Lagrange multipliers at w of the linear rows and bounds of the set; None for sets without them.

        See :class:`condgrad.constraints.Multipliers` for their signs. They are computed when they are asked for, by one
        linear program, and as accurate as the gap is small: their products with the slacks of w sum to the gap.
        """
        return self.constraint.multipliers(self.gradient)

    def __repr__(self) -> str:
        nonzero = count_nonzero(self.w)
        return (
            f"Result(objective={self.objective:.6g}, gap={self.gap:.3g}, {nonzero} of {self.w.size} nonzero, "
            f"{self.n_steps} steps, {self.seconds:.3g} s, status={self.status.name}: {self.status})"
        )
