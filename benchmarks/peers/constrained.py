"""Time to the optimum of regressions with linear constraints: condgrad side by side with glum, cvxpy and c-lasso.

Four sets, on simulated data of 10,000 x 50, 100,000 x 50 and 1,000 x 500, for the logistic and the squared loss:

    monotone       w_1 <= w_2 <= ... <= w_d, with -10 <= w_j <= 10
    sum to zero    sum_j w_j = 0, with -10 <= w_j <= 10
    log-contrast   sum_j w_j = 0, with ||w||_1 <= radius
    portfolio      sum_j w_j = total, with w_j >= 0

    python benchmarks/peers/constrained.py [--only SET] [--size NxD] [--loss LOSS] [--limit SECONDS] [--repeats N]

How the comparison is kept fair: every method starts from the data and returns coefficients; building its own
structures, such as condgrad's set or cvxpy's problem, belongs to its time. It runs with a ladder of tolerances, and a
target counts with the fastest run that reached it. One function judges all answers, outside the clock: F(w) - F*, plus
twice the multipliers of the constraints times the violations, relative to F(0); the second part is there because some
answers are a little outside of the set. All use one thread, whose processor time is measured, and take turns; each
counts with the best of several repeats; the first one compiles and warms up. The bounds of 10 are not tight at the
optimum, and the peers do not get them. glum takes either rows or bounds, so bounds are rows there, and equations are
two rows. c-lasso solves the penalised problem with the same solution. "by hand" is cvxpy with X'X and X'y, computed by
the user: for the squared loss that is another, small problem, so it is not counted among the peers, but its ratio is
printed. What is not installed is skipped, and the script says so. Logistic regression with sum_j w_j = 0 on 1,000 x
500 is left out: the classes are separable, and without a bound it has no solution.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

import condgrad as cg  # noqa: E402
from condgrad.constraints import Box, L1Ball, LinearlyConstrained, Polytope  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option  # noqa: E402

SIZES = ((10_000, 50), (100_000, 50), (1_000, 500))
SETS = ("monotone", "sum to zero", "log-contrast", "portfolio")
LOSSES = ("logistic", "squared")
TARGETS = (1e-3, 1e-5, 1e-7)
LADDER = tuple(10.0**-k for k in range(-1, 11))
BOUND = 10.0
LONG = 2.0  # seconds
BY_HAND = "cvxpy by hand, Clarabel"
PEERS = ("glum", "cvxpy", "clarabel", "classo")

Method = Callable[[float], np.ndarray]


class Task(NamedTuple):
    """The data, the name of the set, and its size: the l1 norm, or the sum of the coefficients."""

    X: np.ndarray
    y: np.ndarray
    loss: str
    kind: str
    total: float

    def make_set(self) -> cg.constraints.ConstraintSet:
        """Return condgrad's set."""
        d = self.X.shape[1]
        if self.kind == "monotone":
            return LinearlyConstrained(Box(-BOUND, BOUND), A_ub=steps(d), b_ub=np.zeros(d - 1))
        if self.kind == "portfolio":
            return Polytope(A_eq=np.ones((1, d)), b_eq=[self.total], bounds=(0.0, None))
        inner = Box(-BOUND, BOUND) if self.kind == "sum to zero" else L1Ball(self.total)
        return LinearlyConstrained(inner, A_eq=np.ones((1, d)), b_eq=[0.0])

    def make_problem(self) -> cg.Problem:
        """Return condgrad's problem."""
        loss = cg.losses.Logistic() if self.loss == "logistic" else cg.losses.Squared()
        return cg.Problem(self.X, self.y, loss, self.make_set())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SETS, help="one set")
    parser.add_argument("--size", choices=[f"{n}x{d}" for n, d in SIZES], help="one size of the data")
    parser.add_argument("--loss", choices=LOSSES, help="one loss")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a method climbs no further")
    parser.add_argument("--repeats", type=int, default=4)
    add_option(parser)
    options = parser.parse_args()
    report = Report(__file__, "How long do regressions with linear constraints take to equal accuracy?", PEERS)
    warnings.simplefilter("ignore")  # peers warn where a rung of the ladder is too tight for them
    missing = [peer for peer in PEERS if importlib.util.find_spec(peer) is None]
    if missing:
        print(f"not installed, and skipped: {', '.join(missing)}")
    ratios = []
    sizes = [(n, d) for n, d in SIZES if options.size in (None, f"{n}x{d}")]
    losses = LOSSES if options.loss is None else (options.loss,)
    for (n, d), loss, kind in itertools.product(sizes, losses, SETS if options.only is None else (options.only,)):
        if (d, loss, kind) != (500, "logistic", "sum to zero"):
            ratios += race(simulate(n, d, loss, kind), options, report)
    if ratios:
        ahead = sum(ratio >= 10.0 for ratio in ratios)
        print(f"\nthe fastest peer takes 10 times as long or longer in {ahead} of {len(ratios)} cells")
    report.write(options.json)


def simulate(n: int, d: int, loss: str, kind: str) -> Task:
    """Return correlated data whose true coefficients are close to the set, but outside."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    w = rng.standard_normal(d) / np.sqrt(d)
    if kind == "monotone":
        w = np.sort(w) + 0.2 * rng.standard_normal(d) / np.sqrt(d)
    elif kind == "portfolio":
        w = np.maximum(w, 0.0)
    elif kind == "log-contrast":
        w = np.where(np.arange(d) < 10, 3.0 * w, 0.0)
    p = X @ w
    if loss == "logistic":
        y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-p)), 1.0, -1.0)
    else:
        y = p + rng.standard_normal(n)
    return Task(X, y, loss, kind, 0.8 * float(np.abs(w).sum()))


def steps(d: int) -> np.ndarray:
    """Return the rows of w_j - w_(j+1) <= 0."""
    return np.eye(d)[:-1] - np.eye(d)[1:]


def race(task: Task, options: argparse.Namespace, report: Report) -> list[float]:
    """Time all methods, print milliseconds and ratios, and return the ratios of the fastest peer to condgrad."""
    judge = Judge(task)
    n, d = task.X.shape
    print(f"\n{task.kind}, {task.loss}, {n} x {d}: {judge.n_tight} constraints tight at the optimum")
    print(f"{'milliseconds to the excess':28}" + "".join(f"{target:>12.0e}" for target in TARGETS))
    methods = methods_for(task, judge)
    times: dict[str, dict[float, float]] = {name: {} for name in methods}
    for repeat in range(options.repeats):
        for name, method in methods.items():
            best = times[name]
            if repeat == 0 or max(best.values(), default=np.inf) < LONG:  # long runs are not repeated
                for target, seconds in climb(method, judge, options.limit).items():
                    best[target] = min(seconds, best.get(target, np.inf))
    for name, row in times.items():
        print(f"{name:28}" + "".join(f"{1e3 * row[t]:12.1f}" if t in row else f"{'-':>12}" for t in TARGETS))
    report.table(
        f"{task.kind}, {task.loss}, {n} x {d}",
        ["milliseconds to the excess", *(f"{target:.0e}" for target in TARGETS)],
        [[name, *(1e3 * row[t] if t in row else None for t in TARGETS)] for name, row in times.items()],
    )
    ours, by_hand = times.pop("condgrad"), times.pop(BY_HAND, {})
    print_ratios("by hand / condgrad", ours, by_hand)
    fastest = {
        t: min(row[t] for row in times.values() if t in row) for t in TARGETS if any(t in r for r in times.values())
    }
    return print_ratios("fastest peer / condgrad", ours, fastest)


def print_ratios(title: str, ours: dict[float, float], theirs: dict[float, float]) -> list[float]:
    """Print and return the ratios for the targets that both have reached."""
    ratios = {target: theirs[target] / ours[target] for target in ours if target in theirs}
    if ratios:
        print(f"{title:28}" + "".join(f"{ratios.get(t, float('nan')):11.1f}x" for t in TARGETS))
    return list(ratios.values())


class Judge:
    """The optimum of a task, and how far other answers are from it."""

    def __init__(self, task: Task) -> None:
        self.task, self.problem = task, task.make_problem()
        best = cg.minimize(self.problem, tol=1e-12)
        self.optimum, self.multipliers = best.objective, best.multipliers
        self.at_zero = self.problem.objective(np.zeros(task.X.shape[1]))
        sizes = np.concatenate([np.abs(part) for part in self.multipliers[:4]])
        self.n_tight = int(np.count_nonzero(sizes > 1e-6 * sizes.max()))
        self.price = float(np.abs(best.gradient).max())  # the multiplier of the l1 norm is at most this

    def excess(self, w: np.ndarray) -> float:
        """Return F(w) - F* and the price of the violations, relative to F(0)."""
        task, found = self.task, self.multipliers
        if task.kind == "monotone":
            outside = found.ub @ np.maximum(steps(w.size) @ w, 0.0)
        else:
            outside = abs(found.eq[0]) * abs(w.sum() - (task.total if task.kind == "portfolio" else 0.0))
        if task.kind == "portfolio":
            outside += found.lower @ np.maximum(-w, 0.0)
        if task.kind == "log-contrast":
            outside += self.price * max(np.abs(w).sum() - task.total, 0.0)
        return (self.problem.objective(w) - self.optimum + 2.0 * float(outside)) / self.at_zero


def climb(method: Method, judge: Judge, limit: float) -> dict[float, float]:
    """Return the seconds of the fastest run of a method to each target."""
    best: dict[float, float] = {}
    for tol in LADDER:
        start = time.process_time()
        try:
            w = method(tol)
        except Exception as problem:
            print(f"    failed at {tol:.0e}: {str(problem).splitlines()[0]}")
            break
        seconds = time.process_time() - start
        excess = judge.excess(w)
        for target in TARGETS:
            if excess <= target:
                best[target] = min(seconds, best.get(target, np.inf))
        if seconds > limit or excess <= TARGETS[-1]:
            break
    return best


def methods_for(task: Task, judge: Judge) -> dict[str, Method]:
    """Return all methods that are installed and can solve the task, as functions of a tolerance."""
    methods: dict[str, Method] = {"condgrad": functools.partial(by_condgrad, task, judge.at_zero)}
    if importlib.util.find_spec("glum") and task.kind != "log-contrast":
        methods["glum"] = functools.partial(by_glum, task)
    if importlib.util.find_spec("cvxpy") and importlib.util.find_spec("clarabel"):
        methods["cvxpy, Clarabel"] = functools.partial(by_cvxpy, task)
        if task.loss == "squared":
            methods[BY_HAND] = functools.partial(by_cvxpy, task, uses_gram=True)
    if importlib.util.find_spec("classo") and task.kind == "log-contrast" and task.loss == "squared":
        methods["c-lasso"] = functools.partial(by_classo, task, float(np.abs(judge.multipliers.normal).max()))
    return methods


def by_condgrad(task: Task, scale: float, tol: float) -> np.ndarray:
    """Solve by solver="auto"."""
    w: np.ndarray = cg.minimize(task.make_problem(), tol=tol * scale).w
    return w


def by_glum(task: Task, tol: float) -> np.ndarray:
    """Solve by glum, whose rows need scipy's trust-constr."""
    from glum import GeneralizedLinearRegressor

    d = task.X.shape[1]
    ones = np.ones((1, d))
    settings: dict[str, object] = {}
    if task.kind == "monotone":
        settings = {"A_ineq": steps(d), "b_ineq": np.zeros(d - 1)}
    elif task.kind == "sum to zero":
        settings = {"A_ineq": np.vstack([ones, -ones]), "b_ineq": np.zeros(2)}
    else:
        sides = np.concatenate([[task.total, -task.total], np.zeros(d)])
        settings = {"A_ineq": np.vstack([ones, -ones, -np.eye(d)]), "b_ineq": sides}
    family = "binomial" if task.loss == "logistic" else "normal"
    y = (task.y > 0).astype(float) if task.loss == "logistic" else task.y
    model = GeneralizedLinearRegressor(
        alpha=0.0, family=family, fit_intercept=False, gradient_tol=tol, max_iter=1000, **settings
    )
    w: np.ndarray = model.fit(task.X, y).coef_
    return w


def by_cvxpy(task: Task, tol: float, uses_gram: bool = False) -> np.ndarray:
    """Solve by cvxpy with Clarabel."""
    import cvxpy as cp

    (n, d), X, y = task.X.shape, task.X, task.y
    w = cp.Variable(d)
    if task.loss == "logistic":
        F = cp.sum(cp.logistic(cp.multiply(-y, X @ w))) / n
    elif uses_gram:
        F = cp.quad_form(w, cp.psd_wrap(X.T @ X / n)) / 2 - (X.T @ y / n) @ w
    else:
        F = cp.sum_squares(X @ w - y) / (2 * n)
    if task.kind == "monotone":
        limits = [cp.diff(w) >= 0]
    elif task.kind == "sum to zero":
        limits = [cp.sum(w) == 0]
    elif task.kind == "log-contrast":
        limits = [cp.sum(w) == 0, cp.norm1(w) <= task.total]
    else:
        limits = [cp.sum(w) == task.total, w >= 0]
    problem = cp.Problem(cp.Minimize(F), limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
    value: np.ndarray = w.value
    return value


def by_classo(task: Task, penalty: float, tol: float) -> np.ndarray:
    """Solve ||X w - y||^2 + lambda ||w||_1 with sum_j w_j = 0 by the path algorithm of c-lasso, which is exact."""
    vars(np)["infty"] = np.inf  # c-lasso 1.0 uses this name, which NumPy 2 has removed
    from classo import classo_problem

    n, d = task.X.shape
    problem = classo_problem(task.X, task.y, np.ones((1, d)))
    problem.formulation.concomitant = False
    problem.model_selection.StabSel = False
    problem.model_selection.LAMfixed = True
    problem.model_selection.LAMfixedparameters.rescaled_lam = False
    problem.model_selection.LAMfixedparameters.lam = 2.0 * n * penalty
    problem.solve()
    w: np.ndarray = np.asarray(problem.solution.LAMfixed.beta)
    return w


if __name__ == "__main__":
    main()
