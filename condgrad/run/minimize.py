"""minimize: checks what is asked for, finds the solver, and runs it to the end."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable

from condgrad import solvers
from condgrad.linalg.device.failures import explained, failures_explained, is_failure
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.interrupts import Interrupts, PassInterruptedError
from condgrad.linalg.settings import RandomState
from condgrad.problems.base import BaseProblem, Feature
from condgrad.run.checkpoint import Checkpoint
from condgrad.run.limits import Limits
from condgrad.run.loop import Run
from condgrad.run.membership import feasible_start
from condgrad.run.progress import check_callback, show
from condgrad.run.result import Result
from condgrad.run.trace import Progress
from condgrad.solvers.auto import choose
from condgrad.solvers.base import Solver, missing


def minimize(
    problem: BaseProblem,
    solver: object = "auto",
    *,
    w0: IterateLike | Result | None = None,
    max_epochs: float = 10_000,
    max_steps: int | None = None,
    tol: float = 1e-6,
    relative_tol: float = 0.0,
    max_time: float | None = None,
    evaluate_every: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    random_state: RandomState = None,
    verbose: bool = False,
) -> Result:
    """Minimise ``problem`` and certify the result.

    Parameters
    ----------
    problem : Problem, GeneralProblem, SoftmaxProblem, MultiOutputProblem, CompletionProblem, or one of your own
        Any subclass of :class:`condgrad.problems.base.BaseProblem`.
    solver : str or solver object
        A registered name (see :func:`condgrad.solvers.by_name`), an object such as
        ``solvers.FrankWolfe(step_size=OpenLoop())``, or "auto": corrective over sets of single-feature vertices, group
        balls and linear constraints in few features; over other sets the solver with the least estimated work of
        corrective, bpcg or fw, and sfw (:mod:`condgrad.solvers.auto`). For a GeneralProblem "auto" is tufw if the
        problem is convex with second derivatives and d is moderate, else fw; for a CompletionProblem it is low-rank.
        ``result.solver`` gives the reason.
    w0 : array of shape (n_features,) or Result, optional
        The start: any point of the set, or the result of an earlier run.
    max_epochs : float
        Stop after this many epochs; an epoch is n evaluations of a single-sample gradient.
    max_steps : int, optional
        Stop after this many steps.
    tol, relative_tol : float
        Stop when the exact Frank-Wolfe gap, plus a bound of its rounding error, is at most
        max(tol, relative_tol * first gap): ``tol`` is in units of the objective, ``relative_tol`` is relative to the
        gap at the start.
    max_time : float, optional
        Stop after this many seconds. A pass over rows on disk or on a cluster is given up within about one chunk, and
        the best iterate that was certified so far is returned; only the pass that certifies the first iterate is
        always finished.
    evaluate_every : float, optional
        The number of epochs between two records. By default records become less frequent: every epoch at first, then
        each time the number of epochs has grown by a tenth, so that recording costs little of a long run; for steps
        over chunks on disk, each time it has doubled, because a record reads all chunks once more. Convergence
        is also detected between records: solvers have their own value of the gap, exact or an estimate, and a fresh
        pass certifies it.
    callback : callable, optional
        Called with a :class:`~condgrad.Progress` at every record; a true return value stops the run.
    checkpoint : str, Path or Checkpoint, optional
        A file in which the run is saved from time to time, and at its end. If it exists, the run resumes from it, bit
        for bit as if it had never stopped (``w0`` and ``random_state`` then have no effect); limits may be raised. A
        file of another problem or solver is refused.
    random_state : int, numpy Generator or None
        Seeds the solvers that draw samples; deterministic solvers draw nothing.
    verbose : bool
        Show progress on the terminal.

    Returns
    -------
    Result
        ``result.gap`` is always the exact gap at ``result.w``, from a fresh pass, up to ``result.rounding``. Ctrl-C
        returns the best iterate so far, with the status INTERRUPTED whatever its gap; a second Ctrl-C aborts. If Ctrl-C
        comes in the last step, when there is nothing left to stop, the signal is sent to the previous handler, which
        usually raises KeyboardInterrupt, so that a loop over runs ends. A process that ignores Ctrl-C, as one that was
        started by ``nohup``, goes on ignoring it.

        ``result.w`` is tested against the set once, by the set's ``violation``. If it lies outside by more than
        rounding (1e-7 of its size), as only a wrong set or solver of your own can make it, the status is OUTSIDE, gap
        and rounding are inf, the lower bound is -inf, and a warning says by how much. A point that is outside by less
        is brought back, up to a few units of rounding, where the set has a projection, an inner point or few linear
        rows, and certified there. A set that has an oracle and no formula for ``violation`` is tested by five calls of
        the oracle: they find what makes F too small, but not everything.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> result = cg.minimize(problem, "pairwise", tol=1e-8)
    >>> result.w, result.status.name
    (array([0., 1.]), 'CONVERGED')
    """
    if not isinstance(problem, BaseProblem):
        raise TypeError(
            "problem must be a condgrad.Problem, GeneralProblem, SoftmaxProblem, MultiOutputProblem or "
            "CompletionProblem, or a class of your own based on condgrad.problems.base.BaseProblem; "
            f"got {type(problem).__name__}."
        )
    limits = Limits(tol, relative_tol, max_epochs, max_steps, max_time, evaluate_every)
    solver, description = _resolve(solver, problem, limits)
    check_callback(callback)
    w0 = None if w0 is None else feasible_start(problem, w0)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    with Interrupts() as interrupts, show(callback, verbose, limits) as report:
        began, n_reads = time.perf_counter(), problem.n_reads  # passes over the data at the start count
        try:
            with failures_explained():
                state = solver.init(problem, w0, random_state)
                run = Run(problem, solver, state, limits, checkpoint, began, n_reads, interrupts, w0 is not None)
        except PassInterruptedError:
            raise KeyboardInterrupt from None  # there is no iterate yet
        try:
            return run.result(run.to_the_end(report), description)
        except PassInterruptedError:
            return run.interrupted_result(description)
        except Exception as error:
            if not is_failure(error):
                raise
            return run.result_without_device(description, explained(error))
        finally:
            run.state.release()


def _resolve(solver: object, problem: BaseProblem, limits: Limits) -> tuple[Solver, str]:
    """Return the solver object, and its description for the Result."""
    if isinstance(solver, str) and solver == "auto":
        chosen, why = choose(problem, limits.tol, limits.relative_tol)
        return chosen, f"{chosen!r} (auto: {why})"
    if isinstance(solver, str):
        solver = solvers.by_name(solver)()
    elif isinstance(solver, type):
        raise TypeError(f"solver must be an object, not a class; use {solver.__name__}(...).")
    elif not isinstance(solver, Solver):
        raise TypeError(f"solver must be a registered name or a solver object; got {solver!r}.")
    if lacks := missing(solver, problem):
        raise TypeError(_refusal(solver, problem, lacks))
    if problem.bytes_of_pass > 0 and isinstance(solver, solvers.PassSolver):
        warnings.warn(
            f"{type(solver).__name__} reads all {problem.bytes_of_pass / 1e9:.3g} GB of the data several times in "
            "every step, and needs hundreds of steps; 'corrective' needs 3 to 10 reads in all.",
            stacklevel=3,
        )
    return solver, repr(solver)


def _refusal(solver: Solver, problem: BaseProblem, lacks: list[Feature]) -> str:
    """Return an error message: the features that a problem does not offer, remedies, and solvers that fit."""
    wanted = " and ".join(feature.value for feature in lacks)
    remedies = "".join(f" ({problem.remedies[feature]})" for feature in lacks if feature in problem.remedies)
    others = ", ".join(repr(name) for name, cls in solvers.REGISTERED.items() if not missing(cls, problem))
    return (
        f"{type(solver).__name__} requires {wanted}, which this {type(problem).__name__} does not offer{remedies}; "
        f"use one of {others}."
    )
