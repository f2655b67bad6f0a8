"""Seconds for a path of l1 logistic regression, 100 points at relative gaps of 1e-3 and 1e-6: condgrad beside celer.

    CONDGRAD_DATA=<folder> python benchmarks/peers/logistic_path.py [--only NAME] [--limit SECONDS] [--repeats N]

celer solves the penalised problem for 100 penalties from lambda_max to a hundredth of it, without intercept. condgrad
solves the constrained problem for the l1 norms of these solutions: both have the same solutions.

How the comparison is kept fair: one function judges every solution, outside the clock, by the Frank-Wolfe gap on the
ball of its own l1 norm, relative to log 2. celer climbs a ladder of tolerances, and a target counts with the fastest
run that reached it; condgrad is given half of the target. Both get CSC or Fortran-ordered data, one thread and warm
kernels; each counts with the best of several repeats. `corrective` is condgrad's own solver, radius after radius. The
data marked "held out" played no part in the choice of constants.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import os
import time
import warnings
from collections.abc import Callable

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402

import condgrad as cg  # noqa: E402
from condgrad import datasets  # noqa: E402

TUNED = ("phishing", "a9a", "duke")
HELD_OUT = ("svmguide3", "w8a", "ijcnn1", "news20-binary", "texts")
TARGETS = (1e-3, 1e-6)
LADDER = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TUNED + HELD_OUT, help="one data set")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which celer climbs no further")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    has_celer = importlib.util.find_spec("celer") is not None
    if not has_celer:
        print("celer is not installed: only condgrad is timed.")
    print(f"{'':28}{'gap':>7}{'condgrad':>12}{'passes':>8}{'corrective':>12}{'celer':>10}{'ratio':>8}")
    for name in (options.only,) if options.only else TUNED + HELD_OUT:
        try:
            X, y = load(name)
        except (OSError, LookupError, ValueError) as problem:
            print(f"{name}: skipped, {str(problem).splitlines()[0]}")
            continue
        race(name, X, y, options, has_celer)


def load(name: str) -> tuple[object, np.ndarray]:
    """Return the data of a name, by columns, with targets of -1 and 1."""
    if name == "texts":
        data = datasets.simulate_text(10_000, 100_000, 100, random_state=0)
        y = np.where(data.y > np.median(data.y), 1.0, -1.0)
    else:
        data = datasets.load(name)
        y = np.where(data.y > 0, 1.0, -1.0)
    sparse = scipy.sparse.issparse(data.X)
    return (scipy.sparse.csc_matrix(data.X) if sparse else np.asfortranarray(data.X)), y


def race(name: str, X: object, y: np.ndarray, options: argparse.Namespace, has_celer: bool) -> None:
    n = y.size
    largest = np.abs(X.T @ y).max() / (2 * n)
    alphas = largest * np.logspace(0, -2, 100)
    reference = cg.radius_path(X, y, n_radii=100, tol=1e-6)
    radii = radii_of(reference, alphas)
    climbed = climb(X, y, alphas, options) if has_celer else []
    for target in TARGETS:
        path = functools.partial(cg.radius_path, X, y, radii=radii, tol=0.5 * target)
        ours = fastest(path, options.repeats)
        plain = fastest(functools.partial(path, solver="corrective"), 1)
        info = path()
        worst = max(judge(X, y, np.asarray(w.todense()).ravel()) for w in by_column(info[1]))
        reached = [seconds for seconds, gap in climbed if gap <= target]
        peer = min(reached, default=math.nan)  # nan: not within the limit
        label = f"{name} {X.shape[0]} x {X.shape[1]}" + (" (held out)" if name in HELD_OUT else "")
        note = "" if worst <= target else f"  our worst gap: {worst:.1e}"
        beside = f"{peer:10.3f}{peer / ours:8.1f}" if reached else "  not reached"
        print(f"{label:28}{target:7.0e}{ours:12.3f}{info[2].passes:8.1f}{plain:12.3f}{beside}{note}", flush=True)


def radii_of(reference: tuple, alphas: np.ndarray) -> np.ndarray:
    """Return the radii whose multipliers are the penalties, from those of a certified path."""
    radii, _, info = reference
    order = np.argsort(-info.alpha)
    return np.maximum(np.interp(-alphas, -info.alpha[order], radii[order]), 0.0)


def climb(X: object, y: np.ndarray, alphas: np.ndarray, options: argparse.Namespace) -> list[tuple[float, float]]:
    """Return seconds and worst gap of celer for each tolerance of the ladder."""
    from celer import celer_path

    found = []
    for tol in LADDER:

        def run(tol: float = tol) -> np.ndarray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return celer_path(X, y, "logreg", alphas=alphas, tol=tol, max_iter=200, prune=1)[1]

        seconds = fastest(run, 1)
        if seconds < 0.1 * options.limit:
            seconds = min(seconds, fastest(run, options.repeats - 1))
        found.append((seconds, max(judge(X, y, w) for w in run().T)))
        if seconds > options.limit or found[-1][1] <= TARGETS[-1]:
            break
    return found


def judge(X: object, y: np.ndarray, w: np.ndarray) -> float:
    """Return the Frank-Wolfe gap of w on the ball of its own l1 norm, relative to log 2."""
    margin = y * (X @ w)
    gradient = X.T @ (-y * 0.5 * (1.0 - np.tanh(0.5 * margin))) / y.size
    return float(gradient @ w + np.abs(w).sum() * np.abs(gradient).max()) / math.log(2.0)


def by_column(coefs: scipy.sparse.csc_matrix) -> list[scipy.sparse.csc_matrix]:
    return [coefs[:, [k]] for k in range(coefs.shape[1])]


def fastest(run: Callable[[], object], repeats: int) -> float:
    seconds = [math.inf]
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
