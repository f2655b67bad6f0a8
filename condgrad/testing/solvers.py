"""check_solver: checks that a solver is feasible at every step, exact in its numbers, repeatable, and converges."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad import constraints, losses, solvers
from condgrad.problems.linear import Problem
from condgrad.run.checkpoint import Checkpoint
from condgrad.run.minimize import minimize
from condgrad.run.result import Result
from condgrad.run.trace import Progress

EVERY_STEP = 1e-9  # epochs between two records: few enough for a record after every step
ROUNDING = 1e-9  # relative tolerance for rounding errors


def check_solver(solver: object, *, max_epochs: float = 300, reduction: float = 0.2, random_state: int = 0) -> None:
    """Check a solver; raise AssertionError, with one sentence that says why, if ``minimize`` cannot rely on it.

    On tiny problems (several losses, sets and forms of data, with and without weights and intercept; the solver may
    refuse some of them with a ValueError or TypeError, but not all) it is checked that

    * the iterate lies in the set after every step, and recorded objectives and gaps are those of the iterate;
    * no lower bound lies above the optimum, which a long run of another solver has certified;
    * F(w) - F* shrinks to a given fraction of its first value within a given number of epochs;
    * ``result.gap`` is exactly ``problem.gap(result.w)``;
    * the same ``random_state`` gives the same run, and a run leaves data and warm start as they were;
    * a run that is interrupted and resumed from its checkpoint is the same to the last bit;
    * a warm start is where the run starts.

    Parameters
    ----------
    solver : str or solver object
        As :func:`condgrad.minimize` takes it.
    max_epochs : float
        The epochs within which the solver must come close to the optimum.
    reduction : float
        How close: the fraction of the first F(w) - F* that may remain after ``max_epochs``.
    random_state : int
        The seed of the data and of the runs.

    Examples
    --------
    >>> from condgrad.solvers import Pairwise
    >>> check_solver(Pairwise())
    """
    if isinstance(solver, str):
        solver = solvers.by_name(solver)()
    refusals = []
    for case in cases(random_state):
        problem = case.problem()
        try:
            minimize(problem, solver, max_steps=0, random_state=random_state)
        except (ValueError, TypeError) as error:
            refusals.append(f"{error}")
            continue
        check_on(solver, case, max_epochs, reduction, random_state)
    _require(
        len(refusals) < len(cases(random_state)),
        f"{solver!r} refuses every problem that check_solver tries; it said: {(refusals or [''])[0]}",
    )


class Case(NamedTuple):
    """The arguments of a problem."""

    X: Any
    y: np.ndarray
    loss: object
    constraint: object
    sample_weight: np.ndarray | None = None
    intercept: bool = False
    offset: np.ndarray | None = None

    def problem(self) -> Problem:
        """Return a new problem, which shares nothing with those of earlier runs."""
        return Problem(
            self.X, self.y, self.loss, self.constraint, sample_weight=self.sample_weight, offset=self.offset,
            intercept=self.intercept,
        )  # fmt: skip

    def __repr__(self) -> str:
        form = self.X.format if scipy.sparse.issparse(self.X) else "dense"
        is_given = {
            "weights": self.sample_weight is not None, "offsets": self.offset is not None, "intercept": self.intercept
        }  # fmt: skip
        extras = [name for name, has in is_given.items() if has]
        return ", ".join([repr(self.loss), repr(self.constraint), f"{form} data", *extras])


def cases(seed: int = 0, n: int = 12, d: int = 5) -> list[Case]:
    """Return a few tiny problems: every form of data, every kind of vertex, weights, offsets and intercept."""
    X, p, weight = tiny_data(seed, n, d)
    signs = np.where(p > np.median(p), 1.0, -1.0)
    loss, a_set = losses.by_name, constraints.by_name
    return [
        Case(X, p, loss("squared"), a_set("l1")(1.5)),
        Case(scipy.sparse.csr_matrix(X), signs, loss("logistic"), a_set("simplex")(2.0), weight, offset=0.5 - p / 4.0),
        Case(scipy.sparse.csc_matrix(X), p + 1.0, loss("squared"), a_set("l2")(1.0), None, True),
        Case(np.asfortranarray(X), p, loss("huber", delta=0.5), a_set("k-sparse")(2, 0.8), weight, True),
    ]


def tiny_data(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X with some zeros, noisy predictions of a model outside small sets, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.8)
    return X, X @ rng.uniform(-2.0, 2.0, d) + 0.3 * rng.standard_normal(n), rng.uniform(0.5, 2.0, n)


def check_on(
    solver: object, case: Case, max_epochs: float = 300, reduction: float = 0.2, random_state: int = 0
) -> None:
    """Raise AssertionError if the solver fails a check on one problem that it accepts."""
    about = f"{solver!r} on {case!r}"
    low, high = certified_optimum(case.problem())
    run = _runner(solver, case, random_state)

    first = check_steps(solver, case, low, high, random_state)
    second = run(max_steps=first.n_steps, evaluate_every=EVERY_STEP)
    _require(
        first.w.tobytes() == second.w.tobytes() and np.array_equal(first.trace.objective, second.trace.objective),
        f"{about}: two runs with the same random_state differ by up to {np.abs(first.w - second.w).max():g} in w.",
    )
    _check_resuming(run, second, about)
    _check_warm_start(run, case, about)

    start = float(first.trace.objective[0])
    result = run(max_epochs=max_epochs)
    left = result.objective - high
    _require(
        left <= reduction * (start - high) + ROUNDING * (1.0 + abs(high)),
        f"{about} is still {left:.3g} above the optimum after {result.n_epochs:.0f} epochs; "
        f"it began at {start - high:.3g}.",
    )
    _check_certificate(result, case.problem(), low, high, about)


def check_steps(
    solver: object, case: Case, low: float = -np.inf, high: float = np.inf, random_state: int = 0, max_steps: int = 40
) -> Result:
    """Raise AssertionError if one of the first steps is wrong; return the result of the run."""
    about = f"{solver!r} on {case!r}"
    problem = case.problem()
    given = [array.copy() for array in _arrays(case)]

    def watch(progress: Progress) -> None:
        where = f"{about}, step {progress.step}"
        w = np.asarray(progress.w)
        violation = problem.constraint.violation(w)
        _require(violation <= ROUNDING * (1.0 + np.abs(w).sum()), f"{where}: w is outside by {violation:g}.")
        exact = problem.evaluate(progress.w)
        for name, value, true in (("objective", progress.objective, exact.objective), ("gap", progress.gap, exact.gap)):
            _require(
                abs(value - true) <= ROUNDING * (abs(true) + abs(exact.objective) + 1e-3),
                f"{where}: the {name} should be {true!r}; got {value!r}.",
            )
        _require(
            progress.lower_bound <= high + ROUNDING * (1.0 + abs(high)),
            f"{where}: the lower bound {progress.lower_bound!r} is above the optimum {high!r}.",
        )
        _require(
            not problem.is_convex or exact.objective >= low - ROUNDING * (1.0 + abs(low)),
            f"{where}: the objective {exact.objective!r} is below the optimum {low!r}.",
        )

    result = minimize(
        problem, solver, max_steps=max_steps, tol=0.0, evaluate_every=EVERY_STEP, callback=watch,
        random_state=random_state,
    )  # fmt: skip
    steps = result.trace.step
    _require(
        steps[0] == 0 and (np.diff(steps) >= 1).all(),
        f"{about} should make steps between two records; they came at the steps {steps.tolist()}.",
    )
    _require((np.diff(result.trace.epoch) >= 0.0).all(), f"{about}: the count of gradient evaluations went down.")
    _require(
        all(np.array_equal(a, b) for a, b in zip(given, _arrays(case), strict=True)), f"{about} has changed its data."
    )
    _check_certificate(result, case.problem(), low, high, about)
    return result


def certified_optimum(problem: Problem) -> tuple[float, float]:
    """Return bounds of F*, proved by the gap of a long run; for a non-convex loss they are infinite."""
    if not problem.is_convex:
        return -np.inf, np.inf
    result = minimize(problem, "auto", tol=1e-9, max_epochs=3000)
    return result.lower_bound, result.objective


def _runner(solver: object, case: Case, random_state: int) -> Callable[..., Result]:
    def run(**limits: Any) -> Result:
        return minimize(case.problem(), solver, tol=limits.pop("tol", 0.0), random_state=random_state, **limits)

    return run


def _check_certificate(result: Result, problem: Problem, low: float, high: float, about: str) -> None:
    exact = problem.gap(result.w)
    scale = 1.0 + abs(result.objective)
    _require(
        abs(result.gap - exact) <= ROUNDING * scale, f"{about}: result.gap should be {exact!r}; got {result.gap!r}."
    )
    if problem.is_convex:
        _require(
            result.objective - result.gap <= high + ROUNDING * scale and low <= result.objective + ROUNDING * scale,
            f"{about}: F* is between {low!r} and {high!r}, but the result says {result!r}.",
        )


def _check_resuming(run: Callable[..., Result], whole: Result, about: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "run.npz", every=np.inf)  # saved at the end alone
        try:
            run(max_steps=whole.n_steps // 2, evaluate_every=EVERY_STEP, checkpoint=checkpoint)
            resumed = run(max_steps=whole.n_steps, evaluate_every=EVERY_STEP, checkpoint=checkpoint)
        except Exception as error:
            raise AssertionError(
                f"{about}: a run cannot be saved and resumed; {type(error).__name__}: {error}"
            ) from error
    _require(
        resumed.w.tobytes() == whole.w.tobytes() and np.array_equal(resumed.trace.objective, whole.trace.objective),
        f"{about}: a run that was interrupted and resumed differs from one that was not, by up to "
        f"{np.abs(resumed.w - whole.w).max():g} in w; what steps use must be in snapshot() and restore() of the state.",
    )


def _check_warm_start(run: Callable[..., Result], case: Case, about: str) -> None:
    problem = case.problem()
    d = problem.n_features
    ends = [problem.lmo(r).to_dense(d) for r in (np.ones(d), -np.ones(d), np.arange(d) - d / 2)]
    w0 = np.mean(ends, axis=0)
    given = w0.copy()
    result = run(w0=w0, max_steps=3, evaluate_every=EVERY_STEP)
    found, expected = float(result.trace.objective[0]), problem.objective(w0)
    _require(
        abs(found - expected) <= ROUNDING * (1.0 + abs(expected)),
        f"{about}: a warm start should begin at the objective {expected!r}; got {found!r}.",
    )
    _require(np.array_equal(w0, given), f"{about} has changed the array of its warm start.")


def _arrays(case: Case) -> Iterator[np.ndarray]:
    yield from (case.X.data, case.X.indices, case.X.indptr) if scipy.sparse.issparse(case.X) else (case.X,)
    yield case.y
    for given in (case.sample_weight, case.offset):
        if given is not None:
            yield given


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)
