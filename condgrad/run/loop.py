"""Run: the loop that all solvers share. It makes steps, records, certifies and stops."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad import solvers
from condgrad.compiled import Stopwatch
from condgrad.constraints import ConstraintSet
from condgrad.linalg.callers import level_of_user
from condgrad.linalg.device.failures import DeviceError
from condgrad.linalg.factored import Factored, Iterate, from_arrays, sizes, to_arrays
from condgrad.linalg.interrupts import Interrupts, PassInterruptedError, end_of_time
from condgrad.linalg.saved import check_numbers, take_column
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import Evaluation
from condgrad.run.checkpoint import Checkpoint
from condgrad.run.limits import Limits
from condgrad.run.membership import brought_inside, is_outside, violation_found
from condgrad.run.result import Result, Status
from condgrad.run.trace import Progress, Trace, count_nonzero
from condgrad.solvers.base import Solver, State

_SAVED = (  # attributes of a run that a checkpoint saves
    "t", "seconds", "first_epoch", "next_record", "lower_bound", "promise", "rounding", "best_gap", "was_still"
)  # fmt: skip
_WORTH = 0.01  # fraction of objective - lower_bound by which a better lower bound must reduce it to be worth a pass
_SURELY = 0.9  # share of the target that an inexact gap must reach, so that the run ends there


class Run:
    """One run of a solver: its state, its clock, its records, and the best iterate that was certified."""

    def __init__(
        self,
        problem: BaseProblem,
        solver: Solver,
        state: State,
        limits: Limits,
        checkpoint: Checkpoint | None,
        began: float,
        n_reads: float,
        interrupts: Interrupts,
        start_is_given: bool,
    ) -> None:
        self.problem, self.solver, self.state, self.limits = problem, solver, state, limits
        self.checkpoint, self.interrupts, self.start_is_given = checkpoint, interrupts, start_is_given
        self.trace = Trace()
        self.t = 0
        self.began, self.reads_before = began, n_reads
        state.deadline = min(self.began + limits.max_time, end_of_time())
        self.seconds = 0.0
        self.first_epoch = self.epoch
        self.next_record = 0.0
        self.lower_bound = problem.least_value() if problem.is_convex else -np.inf  # the best certified one of F*
        self.promise, self.promising_w = -np.inf, state.w  # the best uncertified lower bound of F*, and its iterate
        self.best_gap, self.best_w = np.inf, state.w.copy()
        self.best_evaluation: Evaluation | None = None  # the evaluation of best_w if it is certified
        self.last_evaluation: Evaluation | None = None
        self.rounding = 0.0  # rounding bound of the last certificate
        self.was_still = False
        self.before_step: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None
        self.is_stepping = False  # whether the state is in the middle of a step
        saved = None if checkpoint is None else checkpoint.open(problem, repr(solver))
        if checkpoint is not None and saved is not None:
            with checkpoint.refusing():
                self._restore(*saved)

    @property
    def epoch(self) -> float:
        return self.state.gradient_evaluations / self.problem.n_samples

    def to_the_end(self, report: Callable[[Progress], bool]) -> Status:
        """Make steps until there is a reason to stop, and return the reason."""
        if self.trace:  # a run that resumes; the pass of its last record may have been given up
            wants_to_stop = self.epoch >= self.next_record and self.record(report)
        elif self.limits.relative_tol > 0.0:  # needs the gap at the start, even if it costs a pass
            evaluation = self.state.evaluate_start() or self._full_evaluation()
            wants_to_stop = report(self._record_with(evaluation))
        else:
            wants_to_stop = self.record(report)
        target = self._target()
        while True:
            # The solver has its gap up to rounding, or an estimate. A certificate is worth a pass if it would end the
            # run: if the gap is below the target minus the last rounding bound, or below the rounding bound itself.
            if not self._is_certified() and self.state.gap_estimate <= max(target - self.rounding, self.rounding):
                self._refresh()
                wants_to_stop = self.record(report) or wants_to_stop
            if (status := self._certified_end(target)) is not None:
                return status
            if wants_to_stop:
                return Status.STOPPED
            if self.interrupts.heard():
                return Status.INTERRUPTED
            if (status := self._limit_reached()) is not None:
                return status
            self.state.goal = _SURELY * max(0.0, target - self.rounding)
            self._step()
            if self.epoch >= self.next_record:
                wants_to_stop = self.record(report)
            if self.checkpoint is not None and self.checkpoint.is_due():
                self._save()

    def _certified_end(self, target: float) -> Status | None:
        """Return the status if a certified evaluation of this iterate ends the run, else None."""
        evaluation = self.last_evaluation
        if evaluation is None or not self._is_certified():
            return None
        is_converged = evaluation.gap + evaluation.rounding <= target
        if not is_converged and evaluation.gap > evaluation.rounding:
            return None
        # Return the certified iterate: the gap of an earlier record may be smaller only by rounding.
        self._keep(evaluation)
        return Status.CONVERGED if is_converged else Status.ROUNDING

    def _target(self) -> float:
        """Return the gap at which the run may end."""
        if self.limits.relative_tol == 0.0:
            return self.limits.tol
        if not self.trace:
            return self.limits.tol
        first = float(self.trace.gap[0] + np.nan_to_num(self.trace.rounding[0]))
        return max(self.limits.tol, self.limits.relative_tol * first)

    def _is_recorded(self) -> bool:
        return len(self.trace) > 0 and self.trace.last.step == self.t

    def _is_certified(self) -> bool:
        """Return whether the last evaluation is that of this iterate, from a fresh pass."""
        return self.last_evaluation is not None and self.last_evaluation.is_certified and self._is_recorded()

    def _full_evaluation(self) -> Evaluation:
        """Return the solver's evaluation of the iterate, or the result of a separate pass."""
        return self.solver.evaluate(self.problem, self.state) or self.problem.evaluate(self.state.w)

    def record(self, report: Callable[[Progress], bool]) -> bool:
        """Record and report the iterate if the solver has an evaluation; return whether the user wants to stop."""
        evaluation = self.solver.evaluate(self.problem, self.state)
        return False if evaluation is None else report(self._record_with(evaluation))

    def _record_with(self, evaluation: Evaluation) -> Progress:
        """Add a record to the trace, store the iterate if it is the best one, and return the record."""
        w, self.last_evaluation = self.state.w, evaluation
        if evaluation.is_certified:
            self.lower_bound, self.rounding = max(self.lower_bound, evaluation.lower_bound), evaluation.rounding
        elif self.problem.is_convex and evaluation.objective - evaluation.gap > self.promise:
            self.promise, self.promising_w = evaluation.objective - evaluation.gap, w.copy()
        if evaluation.gap <= self.best_gap:
            self._keep(evaluation)
        progress = Progress(
            step=self.t,
            epoch=self.epoch,
            gradient_evaluations=self.state.gradient_evaluations,
            lmo_calls=self.state.lmo_calls,
            seconds=self.seconds,
            objective=evaluation.objective,
            gap=evaluation.gap,
            rounding=evaluation.rounding if evaluation.is_certified else np.nan,
            gap_estimate=self.state.known_gap,
            n_nonzero=count_nonzero(w),
            lower_bound=self.lower_bound,
            w=w,
        )
        self.trace.append(progress)
        self.next_record = self.limits.next_record(self.epoch, self.state.record_growth)
        return progress

    def _keep(self, evaluation: Evaluation) -> None:
        self.best_gap, self.best_w = evaluation.gap, self.state.w.copy()
        self.best_evaluation = evaluation if evaluation.is_certified else None
        if self.t > 0 or self.start_is_given:  # there is something to return
            self.interrupts.end_passes_at(self.state.deadline)

    def result(self, status: Status, solver: str) -> Result:
        """Return the best iterate with a certificate from one fresh pass."""
        if self.checkpoint is not None:  # before the last record, which an uninterrupted run would not make
            self._save()
        if not self._is_recorded():
            self._record_with(self._full_evaluation())
        evaluation = self.best_evaluation or self.problem.evaluate(self.best_w)
        self.lower_bound = max(self.lower_bound, evaluation.lower_bound)
        if self.promise > self.lower_bound + _WORTH * (evaluation.objective - self.lower_bound):
            self.lower_bound = max(self.lower_bound, self.problem.evaluate(self.promising_w).lower_bound)
        return self._result_with(evaluation, status, solver)

    def interrupted_result(self, solver: str) -> Result:
        """Return the best iterate so far if a long pass was given up.

        If the time was over and that iterate has no certificate yet, one pass is made for it. After Ctrl-C none is
        made, and if no pass has been finished before, objective and gap are not known.
        """
        if self.checkpoint is not None and (self.before_step is not None or not self.is_stepping):
            self._save(self.before_step)
        if self.best_evaluation is None and not self.interrupts.heard():
            self._certify_best()
        status = Status.INTERRUPTED if self.interrupts.heard() else Status.MAX_TIME
        evaluation = self.best_evaluation
        if evaluation is None:
            self.best_w = self.state.w.copy()
            unknown = np.full(self.problem.n_coordinates, np.nan)
            start = self.problem.constraint.start(self.problem.n_coordinates)
            evaluation = Evaluation(np.nan, unknown, np.inf, start, 0.0)
        return self._result_with(evaluation, status, solver)

    def result_without_device(self, solver: str, error: DeviceError) -> Result:
        """Return the best iterate so far after the failure of a device, if it has a certificate; else raise."""
        if self.best_evaluation is None:
            raise error
        if self.checkpoint is not None and (self.before_step is not None or not self.is_stepping):
            self._save(self.before_step)
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)
        return self._result_with(self.best_evaluation, Status.DEVICE_FAILED, solver)

    def _certify_best(self) -> None:
        """Make a pass at the best iterate, whose numbers were updated from step to step, unless Ctrl-C ends it."""
        self.interrupts.end_passes_at(np.inf)
        with contextlib.suppress(PassInterruptedError):
            self.best_evaluation = self.problem.evaluate(self.best_w)
            self.lower_bound = max(self.lower_bound, self.best_evaluation.lower_bound)

    def _result_with(self, evaluation: Evaluation, status: Status, solver: str) -> Result:
        if evaluation.gap < np.inf:
            constraint = self.problem.constraint
            violation = violation_found(constraint, self.best_w, evaluation.r)
            if is_outside(constraint, self.best_w, violation):
                warnings.warn(_complaint(constraint, violation), RuntimeWarning, stacklevel=level_of_user())
                status, self.lower_bound = Status.OUTSIDE, -np.inf
                evaluation = evaluation._replace(gap=np.inf, rounding=np.inf)
            else:
                evaluation = self._inside(evaluation, violation)
        status = self._final(status, evaluation)
        return Result(
            w=self.best_w,
            objective=evaluation.objective,
            gap=evaluation.gap,
            rounding=evaluation.rounding,
            lower_bound=min(self.lower_bound, evaluation.objective),
            intercept=evaluation.intercept,
            status=status,
            n_steps=self.t,
            n_epochs=self.epoch,
            n_lmo=self.state.lmo_calls,
            seconds=self.seconds,
            solver=solver,
            random_iterate=self.state.random_iterate,
            trace=self.trace,
            state=self.state,
            r=evaluation.r,
            constraint=self.problem.constraint,
            n_reads=self.problem.n_reads - self.reads_before,
        )

    def _inside(self, evaluation: Evaluation, violation: float) -> Evaluation:
        """Bring the best iterate back into the set from a little outside, and return the evaluation of that point."""
        inside = brought_inside(self.problem.constraint, self.best_w, violation)
        if inside is self.best_w:
            return evaluation
        with contextlib.suppress(PassInterruptedError):
            evaluation = self.problem.evaluate(inside)
            self.best_w, self.lower_bound = inside, max(self.lower_bound, evaluation.lower_bound)
        return evaluation

    def _final(self, status: Status, evaluation: Evaluation) -> Status:
        """Return the status that the certificate of the result asks for: CONVERGED wherever it reaches the target.

        INTERRUPTED alone remains: whoever makes several runs has no other way to hear of Ctrl-C.
        """
        if status is Status.INTERRUPTED:
            return status
        if evaluation.gap + evaluation.rounding <= self._target():
            return Status.CONVERGED
        if evaluation.gap < np.inf == evaluation.rounding:
            return Status.ROUNDING  # whatever ended the run: its certificate says nothing, and the sentence says why
        return Status.STALLED if status is Status.CONVERGED else status  # the way into the set has cost more

    def _refresh(self) -> None:
        self.is_stepping = True
        self.solver.refresh(self.problem, self.state)
        self.is_stepping = False

    def _step(self) -> None:
        makes_passes = isinstance(self.solver, solvers.FullPassSolver) and self.problem.bytes_of_pass > 0
        if self.checkpoint is not None and makes_passes:  # a step that ends within a pass is made again
            numbers, arrays = self.state.snapshot()
            self.before_step = numbers, {name: array.copy() for name, array in arrays.items()}
        self.was_still = self.state.is_still
        steps = self.limits.max_steps - self.t
        last_epoch = self.first_epoch + self.limits.max_epochs
        epochs = min(self.next_record, last_epoch) - self.epoch
        self.state.most_evaluations = last_epoch * self.problem.n_samples
        self.is_stepping = True
        with Stopwatch() as watch:
            self.t += self.solver.advance(self.problem, self.state, self.t, steps, epochs)
        self.seconds += watch.seconds
        self.before_step, self.is_stepping = None, False

    def _save(self, snapshot: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None) -> None:
        assert self.checkpoint is not None
        numbers, arrays = self.state.snapshot() if snapshot is None else snapshot
        own = {name: getattr(self, name) for name in _SAVED}
        table = {f"trace.{name}": column for name, column in self.trace.to_dict().items()}
        iterates = to_arrays(self.best_w, "best_w") | to_arrays(self.promising_w, "promising_w")
        self.checkpoint.save(numbers | {"run": own}, arrays | table | iterates)

    def _restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        fresh = {name: getattr(self, name) for name in _SAVED}
        check_numbers(numbers, self.state.snapshot()[0] | {"run": fresh})
        for name in _SAVED:
            setattr(self, name, numbers["run"][name])
        self.best_w, self.promising_w = (from_arrays(arrays, name, self.best_w) for name in ("best_w", "promising_w"))
        self.trace = Trace({name: take_column(arrays, f"trace.{name}") for name in Trace.columns})
        self.state.restore(numbers, arrays)
        for w in (self.state.w, self.best_w, self.promising_w):
            self._check_restored(w)
        if self.first_epoch > self.epoch or not 0.0 <= self.seconds < np.inf:
            raise ValueError("it begins after its own end")
        # A file cannot put off what looks at the gap: without it a run would not end.
        self.next_record = min(self.next_record, self.limits.next_record(self.epoch, self.state.record_growth))

    def _check_restored(self, w: Iterate) -> None:
        """Raise ValueError unless an iterate of a file lies in the set; a set without a formula is not searched."""
        constraint: Any = self.problem.constraint  # its iterates are of one kind
        if not np.isfinite(sizes(w)).all():
            raise ValueError("an iterate is not finite")
        is_searched = not isinstance(w, Factored) and constraint.is_violation_searched
        if not is_searched and is_outside(constraint, w, float(constraint.violation(w))):
            raise ValueError(f"an iterate lies outside {constraint!r}")

    def _limit_reached(self) -> Status | None:
        if self.was_still and self.state.is_still:
            return Status.STALLED
        if self.state.is_done:  # the solver's own stopping rule, which certifies nothing
            return Status.SMALL_STEP
        if self.t >= self.limits.max_steps:
            return Status.MAX_STEPS
        if self.epoch - self.first_epoch >= self.limits.max_epochs:
            return Status.MAX_EPOCHS
        if time.perf_counter() >= self.state.deadline:
            return Status.MAX_TIME
        return None


def _complaint(constraint: ConstraintSet, violation: float) -> str:
    """Return the warning that a solver has left the set."""
    return (
        f"w lies outside {constraint!r} by {violation:.3g}, so nothing is certified; the set or the solver is wrong: "
        "try condgrad.testing.check_constraint_set and check_solver."
    )
