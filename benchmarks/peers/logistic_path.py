"""Seconds for a path of l1 logistic regression, 100 points at relative gaps of 1e-3 and 1e-6: condgrad and its peers.

    CONDGRAD_DATA=<folder> python benchmarks/peers/logistic_path.py [--only NAME] [--peers NAME,NAME] [--limit SECONDS]
                                                           [--cpu]

The peers solve the penalised problem for 100 penalties from lambda_max to a hundredth of it, without intercept.
condgrad solves the constrained problem for the l1 norms of these solutions: all have the same solutions.

How the comparison is kept fair:

* One function judges every solution, outside the clock, by the Frank-Wolfe gap on the ball of its own l1 norm, relative
  to log 2. Each peer climbs a ladder of its own tolerances, and a target counts with the fastest run whose gaps and
  excess reached it; condgrad, whose gaps are certified, is given the target itself. A peer climbs no further after a
  run that took longer than the limit.
* All get CSC or Fortran-ordered data (snapml makes a copy by rows), one thread and warm kernels; each counts with the
  best of several repeats. snapml and skglm solve one penalty after the other, skglm from the last solution. A peer
  is not repeated where it takes longer than a second, nor is R, whose start takes longer than most runs. On a busy
  machine, ``--cpu`` counts processor time.
* The excess is the largest difference of the penalised objective from that of condgrad at a gap of 1e-8, relative to
  log 2: a method can be much closer to the optimum than its gap tells, and w = 0 has a gap of zero on its own ball.
* `corrective` is condgrad's own solver, radius after radius. The data marked "held out" played no part in the choice of
  constants.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import glmnet_path  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402

import condgrad as cg  # noqa: E402
from condgrad import datasets  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option  # noqa: E402

TUNED = ("svmguide3", "duke", "a9a", "w8a", "news20-binary")
HELD_OUT = ("phishing", "ijcnn1", "breast-cancer", "dorothea", "dense", "texts")
TARGETS = (1e-3, 1e-6)
_LONG = 1.0  # seconds of a run of a peer that is not repeated
LADDER = tuple(10.0**-k for k in range(2, 15))


class Run(NamedTuple):
    """One run of a peer: its seconds, its worst gap and its worst excess."""

    seconds: float
    gap: float
    excess: float


def main() -> None:
    """Measure and print one line per data set, target and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TUNED + HELD_OUT, action="append", help="a data set (may be repeated)")
    parser.add_argument("--peers", default=",".join(PEERS), help="the peers to run, separated by commas")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a peer climbs no further")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="CPU time instead of wall-clock time")
    add_option(parser)
    options = parser.parse_args()
    report = Report(__file__, "How long does a path of l1 logistic regression of 100 points take?", PEERS)
    peers = []
    for name in filter(None, options.peers.split(",")):
        if is_installed(name):
            peers.append(name)
        else:
            print(f"{name}: skipped, because it is not installed.")
    for name in options.only or TUNED + HELD_OUT:
        try:
            X, y = load(name)
        except (OSError, LookupError, ValueError) as problem:
            print(f"{name}: skipped, {str(problem).splitlines()[0]}")
            continue
        race(name, X, y, peers, options, report)
        report.write(options.json)  # what is done stays


def load(name: str) -> tuple[object, np.ndarray]:
    """Return the data of a name, by columns, with targets of -1 and 1."""
    if name == "dense":
        rng = np.random.default_rng(0)
        X = np.asfortranarray(rng.standard_normal((2000, 500)) @ (np.eye(500) + 0.05 * rng.standard_normal((500, 500))))
        return X, np.where(X[:, :40] @ rng.standard_normal(40) + 3.0 * rng.standard_normal(2000) > 0.0, 1.0, -1.0)
    if name == "texts":
        data = datasets.simulate_text(10_000, 100_000, 100, random_state=0)
        y = np.where(data.y > np.median(data.y), 1.0, -1.0)
    else:
        data = datasets.load(name)
        y = np.where(data.y > np.min(data.y), 1.0, -1.0)
    sparse = scipy.sparse.issparse(data.X)
    return (scipy.sparse.csc_matrix(data.X) if sparse else np.asfortranarray(data.X)), y


def race(name: str, X: object, y: np.ndarray, peers: list[str], options: argparse.Namespace, report: Report) -> None:
    """Run all methods on one data set and print its table."""
    alphas = np.abs(X.T @ y).max() / (2 * y.size) * np.logspace(0, -2, 100)
    radii = radii_of(cg.radius_path(X, y, n_radii=100, tol=1e-6), alphas)
    best = cg.radius_path(X, y, radii=radii, tol=1e-8)[2].objective + alphas * radii
    kind = " (held out)" if name in HELD_OUT else ""
    print(f"{name} {X.shape[0]} x {X.shape[1]}{kind}", flush=True)
    climbed = {peer: climb(peer, X, y, alphas, best, options) for peer in peers}
    rows: list[list[str | float | None]] = []
    for target in TARGETS:
        path = functools.partial(cg.radius_path, X, y, radii=radii, tol=target)
        clock = time.process_time if options.cpu else time.perf_counter
        ours = fastest(path, options.repeats, clock)
        plain = fastest(functools.partial(path, solver="corrective"), 1, clock)
        _, coefs, info = path()
        gap, excess = judge(X, y, coefs, alphas, best)
        print(f"  gap {target:.0e}  condgrad {ours:8.3f} s  gap {gap:.0e}  excess {excess:.0e}"
              f"  {info.passes:.1f} passes  (corrective {plain:.3f} s)")  # fmt: skip
        rows.append([f"{target:.0e}", "condgrad", ours, gap, 1.0])
        for peer, runs in climbed.items():
            reached = [run for run in runs if max(run.gap, run.excess) <= target]
            if reached:
                first = min(reached, key=lambda run: run.seconds)
                rows.append([f"{target:.0e}", peer, first.seconds, first.gap, first.seconds / ours])
                print(f"            {peer:9}{first.seconds:8.3f} s  gap {first.gap:.0e}  excess {first.excess:.0e}"
                      f"  ratio {first.seconds / ours:.1f}", flush=True)  # fmt: skip
            else:
                last = min(runs, key=lambda run: run.gap, default=Run(math.nan, math.nan, math.nan))
                print(f"            {peer:9}> {last.seconds:.3g} s  gap {last.gap:.0e}", flush=True)
                rows.append([f"{target:.0e}", peer, f"> {last.seconds:.3g}", last.gap, None])
    seconds = "CPU seconds" if options.cpu else "seconds"
    report.table(f"{name}, {X.shape[0]} x {X.shape[1]}{kind}", ["target", "method", seconds, "gap", "ratio"], rows)


def radii_of(reference: tuple, alphas: np.ndarray) -> np.ndarray:
    """Return the radii whose multipliers are the penalties, from those of a certified path."""
    radii, _, info = reference
    order = np.argsort(-info.alpha)
    return np.maximum(np.interp(-alphas, -info.alpha[order], radii[order]), 0.0)


def climb(
    peer: str, X: object, y: np.ndarray, alphas: np.ndarray, best: np.ndarray, options: argparse.Namespace
) -> list[Run]:
    """Return the runs of a peer, one for each tolerance of the ladder."""
    found: list[Run] = []
    for tol in LADDER:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not found:
                PEERS[peer](X, y, alphas, tol)  # kernels compile
            seconds = math.inf
            for _ in range(options.repeats):
                coefs, taken = timed(peer, X, y, alphas, tol, options.cpu)
                seconds = min(seconds, taken)
                if taken > _LONG or peer == "glmnet":
                    break
        found.append(Run(seconds, *judge(X, y, scipy.sparse.csc_matrix(coefs), alphas, best)))
        if seconds > options.limit or max(found[-1].gap, found[-1].excess) <= TARGETS[-1]:
            break
    return found


def timed(
    peer: str, X: object, y: np.ndarray, alphas: np.ndarray, tol: float, is_cpu: bool
) -> tuple[scipy.sparse.csc_matrix | np.ndarray, float]:
    """Return the answer of a peer and the seconds that it took; one in another process tells them itself."""
    clock = time.process_time if is_cpu else time.perf_counter
    began = clock()
    coefs = PEERS[peer](X, y, alphas, tol)
    taken = clock() - began
    return coefs, getattr(coefs, "cpu_seconds" if is_cpu else "seconds", taken)


def judge(
    X: object, y: np.ndarray, coefs: scipy.sparse.csc_matrix, alphas: np.ndarray, best: np.ndarray
) -> tuple[float, float]:
    """Return the worst Frank-Wolfe gap on the balls of the solutions' own l1 norms, and the worst excess."""
    norms = np.asarray(np.abs(coefs).sum(axis=0)).ravel()
    gaps, excesses = [], []
    for k, norm in enumerate(norms):
        w = coefs[:, [k]].toarray().ravel()
        margin = y * (X @ w)
        gradient = X.T @ (-y * 0.5 * (1.0 - np.tanh(0.5 * margin))) / y.size
        gaps.append(float(gradient @ w + norm * np.abs(gradient).max()))
        excesses.append(float(np.mean(np.logaddexp(0.0, -margin)) + alphas[k] * norm - best[k]))
    return max(gaps) / math.log(2.0), max(0.0, *excesses) / math.log(2.0)


def fastest(run: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    """Return the time of the fastest of several runs."""
    seconds = [math.inf]
    for _ in range(repeats):
        start = clock()
        run()
        seconds.append(clock() - start)
    return min(seconds)


def run_glmnet(X, y, alphas, tol):
    return glmnet_path.l1_path(X, np.where(y > 0.0, 1.0, 0.0), alphas, tol, "binomial")


def run_celer(X, y, alphas, tol):
    from celer import celer_path

    return celer_path(X, y, "logreg", alphas=alphas, tol=tol, max_iter=50, prune=1)[1]


def run_skglm(X, y, alphas, tol):
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(fit_intercept=False, warm_start=True, tol=tol)
    return np.column_stack([model.set_params(alpha=alpha).fit(X, y).coef_.ravel().copy() for alpha in alphas])


def run_adelie(X, y, alphas, tol):
    import adelie

    kind = adelie.matrix.sparse if scipy.sparse.issparse(X) else adelie.matrix.dense
    state = adelie.grpnet(
        X=kind(X, method="naive", n_threads=1), glm=adelie.glm.binomial(y=np.where(y > 0.0, 1.0, 0.0)),
        lmda_path=alphas, intercept=False, tol=tol, early_exit=False, progress_bar=False, n_threads=1,
    )  # fmt: skip
    return scipy.sparse.csc_matrix(state.betas.T)


def run_snapml(X, y, alphas, tol):
    import snapml

    rows = X.tocsr() if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
    settings = {"penalty": "l1", "dual": False, "fit_intercept": False, "max_iter": 10_000, "tol": tol}
    fits = (snapml.LogisticRegression(regularizer=alpha * y.size, **settings).fit(rows, y) for alpha in alphas)
    return np.column_stack([fit.coef_.ravel() for fit in fits])


PEERS = {
    "glmnet": run_glmnet, "celer": run_celer, "skglm": run_skglm, "adelie": run_adelie, "snapml": run_snapml
}  # fmt: skip


def is_installed(peer: str) -> bool:
    """Tell whether a peer can be run here."""
    return glmnet_path.is_installed() if peer == "glmnet" else importlib.util.find_spec(peer) is not None


if __name__ == "__main__":
    main()
