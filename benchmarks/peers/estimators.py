"""What the estimators cost beside bare `minimize`, and cross-validation beside scikit-learn and celer.

    python benchmarks/peers/estimators.py [--quick] [--limit SECONDS] [--target GAP]

Three tables:

* fit-time overhead on small data: the median time of `fit` less that of `Problem` and `minimize` on the same arrays;
* cross-validated Lasso: ConstrainedLassoCV, LassoCV of scikit-learn, celer;
* cross-validated l1 logistic regression: ConstrainedLogisticRegressionCV, LogisticRegressionCV of scikit-learn
  (liblinear), celer.

celer runs as its path function in every fold, with a last fit on all data: it has no CV class for logistic regression,
and its LassoCV (0.7.4) does not go with scikit-learn 1.9.

How the comparison is kept fair: all use the same five folds and no intercept (celer's logistic regression has none).
The peers get a grid of penalties from lambda_max to a hundredth of it; condgrad gets the radii that are the l1 norms of
the same solutions on all data, so that everybody solves the same models there. A method counts with the first run whose
models, of all folds and all points of the grid, have duality gaps of at most the target, relative to the loss of zero:
the peers climb a ladder of tolerances, each run in a process that is ended at the limit; condgrad is given the target.
One function judges the penalised models, outside the clock, with the residual, scaled to be feasible, as dual point.
The gaps of condgrad are those that it certifies, of the constrained problem, and one pass each checks them here.
Kernels are warm; everything runs on one job.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import math
import multiprocessing
import pathlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV, LogisticRegressionCV, lasso_path
from sklearn.model_selection import KFold, StratifiedKFold

import condgrad as cg
from condgrad import datasets

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

LADDER = tuple(10.0**-k for k in range(2, 13))
N_POINTS, EPS, N_FOLDS = 30, 1e-2, 5


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small simulated data only")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which a method climbs no further")
    parser.add_argument("--target", type=float, default=1e-6, help="gap relative to the loss of zero")
    add_option(parser)
    options = parser.parse_args()
    report = Report(__file__, "How long does cross-validation take?", ["celer"])
    warnings.simplefilter("ignore")
    show_overhead()
    for name, data in regression_data(options.quick):
        compare(f"cross-validated Lasso, {name}", data, LASSO, options, report)
    for name, data in classification_data(options.quick):
        compare(f"cross-validated l1 logistic regression, {name}", data, LOGISTIC, options, report)
    report.write(options.json)
    return 0


# Overhead


def show_overhead() -> None:
    """Print the time of fits and of the bare calls on small data."""
    print("fit on 100 x 20: milliseconds (median of 100)")
    regression = datasets.simulate_regression(100, 20, n_informative=5, noise=0.5, random_state=0)
    classification = datasets.simulate_classification(100, 20, n_informative=5, random_state=0)
    cases = (
        (cg.ConstrainedLasso(radius=3.0), regression, cg.losses.Squared()),
        (cg.ConstrainedLogisticRegression(radius=3.0), classification, cg.losses.Logistic()),
    )
    for model, data, loss in cases:
        model.fit(data.X, data.y)
        tol = 1e-6 * cg.Problem(data.X, data.y, loss, cg.constraints.L1Ball(3.0), intercept=True).objective(
            np.zeros(20)
        )

        def bare(data: Any = data, loss: Any = loss, tol: float = tol) -> None:
            problem = cg.Problem(data.X, data.y, loss, cg.constraints.L1Ball(3.0), intercept=True)
            cg.minimize(problem, tol=tol)

        fit, alone = median_time(lambda model=model, data=data: model.fit(data.X, data.y)), median_time(bare)
        name = type(model).__name__
        print(f"  {name:<32} fit {1e3 * fit:6.2f}   minimize {1e3 * alone:6.2f}   overhead {1e3 * (fit - alone):6.2f}")
    print()


def median_time(call: Callable[[], Any]) -> float:
    """Return the median time of 100 calls, in seconds."""
    seconds = []
    for _ in range(100):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


# Data


def regression_data(quick: bool) -> Iterator[tuple[str, tuple[Any, np.ndarray]]]:
    """Yield names and data, Fortran-ordered or CSC, with centred targets."""
    sizes = [(100, 200)] if quick else [(200, 2000), (500, 10_000)]
    for n, d in sizes:
        data = datasets.simulate_regression(n, d, n_informative=20, noise=0.5, random_state=0)
        yield f"simulated {n} x {d}", (np.asfortranarray(data.X), data.y - data.y.mean())


def classification_data(quick: bool) -> Iterator[tuple[str, tuple[Any, np.ndarray]]]:
    """Yield names and data with targets -1 and 1; files are taken from CONDGRAD_DATA where they are."""
    n, d = (200, 50) if quick else (2000, 200)
    data = datasets.simulate_classification(n, d, n_informative=10, random_state=0)
    yield f"simulated {n} x {d}", (np.asfortranarray(data.X), np.where(data.y > 0, 1.0, -1.0))
    if quick:
        return
    for name in ("a9a", "w8a"):
        try:
            data = datasets.load(name)
        except FileNotFoundError as error:
            print(f"{name}: skipped, because {error}\n")
            continue
        yield name, (data.X.tocsc(), data.y)


# The comparison


class Task:
    """A loss with all that judging and running need of it."""

    def __init__(self, loss: Any, is_classifier: bool) -> None:
        self.loss, self.is_classifier = loss, is_classifier

    def folds(self, X: Any, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the folds."""
        return list((StratifiedKFold if self.is_classifier else KFold)(N_FOLDS).split(X, y))

    def alphas(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Return the grid of penalties."""
        largest = np.abs(X.T @ self.loss.derivative(np.zeros(y.size), y)).max() / y.size
        return largest * np.geomspace(1.0, EPS, N_POINTS + 1)[1:]  # at lambda_max itself the radius would be 0

    def relative_gap(self, X: Any, y: np.ndarray, w: np.ndarray, alpha: float) -> float:
        """Return the duality gap of mean loss + alpha ||w||_1, relative to the loss of zero."""
        p = X @ w
        theta = -self.loss.derivative(p, y)
        theta = theta * min(1.0, alpha * y.size / max(np.abs(X.T @ theta).max(), 1e-300))
        primal = np.mean(self.loss.value(p, y)) + alpha * np.abs(w).sum()
        if self.is_classifier:  # -sum_i f*(-theta_i), with u = y theta in [0, 1]
            u = np.clip(y * theta, 0.0, 1.0)
            dual = -np.mean(xlogx(u) + xlogx(1.0 - u))
        else:
            dual = np.mean(theta * y - 0.5 * theta**2)
        return float(primal - dual) / float(np.mean(self.loss.value(0.0 * y, y)))


def xlogx(u: np.ndarray) -> np.ndarray:
    """Return u log u, 0 at 0."""
    return np.where(u > 0.0, u * np.log(np.where(u > 0.0, u, 1.0)), 0.0)


LASSO, LOGISTIC = Task(cg.losses.Squared(), False), Task(cg.losses.Logistic(), True)


def compare(title: str, data: tuple[Any, np.ndarray], task: Task, options: Any, report: Report) -> None:
    """Run all methods on one data set and print the table."""
    X, y = data
    alphas, folds = task.alphas(X, y), task.folds(X, y)
    radii = norms_of_solutions(X, y, alphas, task)
    print(f"{title}: {N_POINTS} models in {N_FOLDS} folds, relative gaps of at most {options.target:g}")
    rows = {"condgrad": condgrad_run(X, y, radii, folds, task, options.target)}
    for name, run in peers(task).items():
        rows[name] = climb(lambda tol, run=run: run(X, y, alphas, folds, tol), X, y, folds, task, options)
    for name, (seconds, worst) in rows.items():
        shown = f"{seconds:8.3f} s   largest gap {worst:.1e}" if math.isfinite(seconds) else "not reached"
        print(f"  {name:<14}{shown}")
    report.table(title, ["method", "seconds", "largest gap"], [[name, *row] for name, row in rows.items()])
    fastest = min((seconds for name, (seconds, _) in rows.items() if name != "condgrad"), default=math.inf)
    if math.isfinite(fastest):
        print(f"  fastest peer over condgrad: {fastest / rows['condgrad'][0]:.1f}")
    print()


def norms_of_solutions(X: Any, y: np.ndarray, alphas: np.ndarray, task: Task) -> np.ndarray:
    """Return the l1 norms of the penalised solutions on all data, which are the radii of condgrad's grid."""
    if not task.is_classifier:
        return np.unique(cg.lasso_path(X, y, alphas=alphas, tol=1e-9)[2].radius)
    share = alphas / (alphas[0] / np.geomspace(1.0, EPS, N_POINTS + 1)[1])
    found = [cg.radius_max(X, y, loss="logistic", eps=float(s), fit_intercept=False) for s in share]
    return np.unique(found)


def condgrad_run(X: Any, y: np.ndarray, radii: Any, folds: Any, task: Task, target: float) -> tuple[float, float]:
    """Return the time of the CV estimator, and the largest relative gap of its models."""
    make = cg.ConstrainedLogisticRegressionCV if task.is_classifier else cg.ConstrainedLassoCV
    model = make(radii=radii, cv=folds, fit_intercept=False, tol=target)
    seconds = math.inf
    for _ in range(3):
        start = time.perf_counter()
        model.fit(X, y)
        seconds = min(seconds, time.perf_counter() - start)
    worst = 0.0
    for train, _ in folds:  # the same runs again, for their gaps
        problem = cg.Problem(X[train], y[train], task.loss, cg.constraints.L1Ball(1.0))
        scale, w = problem.objective(np.zeros(X.shape[1])), None
        path = None if task.is_classifier else cg.lasso_path(X[train], y[train], radii=radii, tol=target)[1]
        for k, radius in enumerate(radii):
            part = problem.over(cg.constraints.L1Ball(radius))
            w = cg.minimize(part, w0=w, tol=target * scale).w if path is None else path[:, [k]].toarray()[:, 0]
            worst = max(worst, part.gap(w) / scale)
    return seconds, worst


def climb(run: Any, X: Any, y: np.ndarray, folds: Any, task: Task, options: Any) -> tuple[float, float]:
    """Return the time of the first tolerance of the ladder that reaches the target, and the largest gap."""

    def work(tol: float, answers: Any) -> None:
        start = time.perf_counter()
        models = run(tol)
        answers.send(time.perf_counter() - start)
        worst = max(  # outside the clock
            task.relative_gap(X[train], y[train], w, alpha)
            for (train, _), (used, path) in zip(folds, models() if callable(models) else models, strict=True)
            for w, alpha in zip(path, used, strict=True)
        )
        answers.send(worst)

    context, left = multiprocessing.get_context("fork"), options.limit
    for tol in LADDER:
        here, there = context.Pipe()
        process = context.Process(target=work, args=(tol, there))
        process.start()
        there.close()
        try:
            if not here.poll(left):
                break
            seconds, worst = here.recv(), here.recv()
        except EOFError:  # it failed, and has said why
            break
        finally:
            process.kill()
            process.join()
        if worst <= options.target:
            return seconds, worst
        left -= seconds
        if left <= 0.0:
            break
    return math.inf, math.inf


# The peers: each returns penalties and models (n_points, n_features) per fold, or a function that computes them again.


def peers(task: Task) -> dict[str, Any]:
    """Return the peers that are there."""
    found = {"scikit-learn": sklearn_logistic if task.is_classifier else sklearn_lasso}
    if importlib.util.find_spec("celer") is None:
        print("celer: skipped, because it is not installed.")
    else:
        found["celer"] = celer_logistic if task.is_classifier else celer_lasso
    return found


def sklearn_lasso(X: Any, y: np.ndarray, alphas: np.ndarray, folds: Any, tol: float) -> Any:
    """LassoCV does not keep the models of its folds: lasso_path, which it runs, computes them again."""
    LassoCV(alphas=alphas, cv=folds, fit_intercept=False, tol=tol, max_iter=100_000).fit(X, y)
    return lambda: [
        (alphas, lasso_path(X[train], y[train], alphas=alphas, tol=tol, max_iter=100_000)[1].T) for train, _ in folds
    ]


def sklearn_logistic(X: Any, y: np.ndarray, alphas: np.ndarray, folds: Any, tol: float) -> Any:
    """LogisticRegressionCV by liblinear; its C is for the sum of losses, so that folds differ a little in alpha."""
    n_train = len(folds[0][0])
    settings: dict[str, Any] = {"Cs": 1.0 / (alphas * n_train), "cv": folds, "fit_intercept": False, "tol": tol}
    known = inspect.signature(LogisticRegressionCV).parameters
    settings |= {"l1_ratios": (1.0,)} if "use_legacy_attributes" in known else {"penalty": "l1"}
    settings |= {"use_legacy_attributes": True} if "use_legacy_attributes" in known else {}
    model = LogisticRegressionCV(solver="liblinear", max_iter=100_000, **settings).fit(X, y)
    coefs = model.coefs_paths_[1.0] if isinstance(model.coefs_paths_, dict) else model.coefs_paths_
    models = np.reshape(coefs, (len(folds), len(alphas), X.shape[1]))
    return [(alphas * n_train / len(train), path) for (train, _), path in zip(folds, models, strict=True)]


def celer_lasso(X: Any, y: np.ndarray, alphas: np.ndarray, folds: Any, tol: float) -> Any:
    """Paths of celer; its objective is that of scikit-learn."""
    return celer_cv("lasso", X, y, alphas, folds, tol)


def celer_logistic(X: Any, y: np.ndarray, alphas: np.ndarray, folds: Any, tol: float) -> Any:
    """Paths of celer; its objective is a sum of losses."""
    return celer_cv("logreg", X, y, alphas, folds, tol)


def celer_cv(kind: str, X: Any, y: np.ndarray, alphas: np.ndarray, folds: Any, tol: float) -> Any:
    """A path in every fold with its scores, and the best model on all data."""
    import celer

    def solve(rows: Any, grid: np.ndarray) -> np.ndarray:
        is_logistic = kind == "logreg"
        scale = y[rows].size if is_logistic else 1
        settings = {"tol": tol, "max_iter": 200, "use_PN": is_logistic}  # what its classes set
        return celer.celer_path(X[rows], y[rows], pb=kind, alphas=grid * scale, **settings)[1].T

    losses, models = [], []
    for train, test in folds:
        path = solve(train, alphas)
        p = X[test] @ path.T
        errors = np.logaddexp(0.0, -y[test][:, None] * p) if kind == "logreg" else (y[test][:, None] - p) ** 2
        losses.append(errors.mean(axis=0))
        models.append((alphas, path))
    best = alphas[int(np.mean(losses, axis=0).argmin())]
    solve(slice(None), np.array([best]))
    return models


if __name__ == "__main__":
    raise SystemExit(main())
