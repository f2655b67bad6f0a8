"""Seconds for a whole Lasso path of 100 points at certified relative gaps of 1e-3 and 1e-6: condgrad beside its peers.

All solve (1/2n) ||y - Xw||^2 + alpha ||w||_1 for the same 100 penalties, evenly spaced in their logarithm between
lambda_max and lambda_max / 100, without intercept, on features of unit length and centred targets.

    python benchmarks/peers/lasso_path.py [--quick] [--only NAME] [--peers NAME,NAME] [--threads 1,2] [--limit SECONDS]
                                          [--cpu]

How the comparison is kept fair:

* One function judges every method, outside the clock: the largest duality gap of the path relative to (1/2n) ||y||^2,
  with the residual, scaled to be feasible, as dual point. Each peer climbs a ladder of its own tolerances, and a target
  counts with the fastest run that reached it.
* Dense data are in Fortran order and sparse data CSC, which all of them want; kernels are warm.
* Every method runs in processes with one and with two threads (--quick: one) and counts with the better time; a run
  that takes longer than the limit is ended. On a busy machine, ``--cpu`` counts processor time (with one thread).
* The memory is the peak of the process, Python and libraries included, less the bytes of X, at the end of the first
  run; it is written to the file of ``--json``.
* The excess is the largest difference of the objective from the best one that any run found, relative to the same
  scale: a method can be much closer to the optimum than its gap tells. So there is a race to an excess, too, in which
  condgrad climbs a ladder of tolerances as its peers do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import glmnet_path
import numpy as np
import scipy.sparse
from lasso_problems import PROBLEMS

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

TARGETS = (1e-3, 1e-6)
MEASURES = ("gap", "excess")
LADDER = tuple(10.0**-k for k in range(2, 17))
PEERS = ("scikit-learn", "celer", "skglm", "adelie", "glmnet")
MODULES = {"scikit-learn": "sklearn", "celer": "celer", "skglm": "skglm", "adelie": "adelie"}
THREAD_VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
N_POINTS, EPS = 100, 1e-2
_JUDGED = 50_000  # columns that the judge multiplies with all residuals at a time


def main() -> int:
    """Measure and print one table per problem."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="duke and dorothea, one thread, 10 s a method")
    parser.add_argument("--only", choices=PROBLEMS, action="append", help="this problem (may be given several times)")
    parser.add_argument("--peers", default=",".join(PEERS), help="the peers to run, separated by commas")
    parser.add_argument("--threads", help="numbers of threads to try, separated by commas (default 1,2)")
    parser.add_argument("--limit", type=float, help="seconds that a method may take in all for a problem (default 300)")
    parser.add_argument("--cpu", action="store_true", help="CPU time of one thread instead of wall-clock time")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    add_option(parser)
    options = parser.parse_args()
    if options.cpu and options.threads not in (None, "1"):
        parser.error("--cpu counts the time of one thread: leave out --threads.")
    if options.worker:
        return work(*json.loads(options.worker), is_cpu=options.cpu)
    limit = options.limit or (10.0 if options.quick else 300.0)
    peers = [name for name in options.peers.split(",") if name]
    for name in peers:
        if not is_installed(name):
            print(f"{name}: skipped, because it is not installed.")
    peers = [name for name in peers if is_installed(name)]
    threads = [int(count) for count in (options.threads or ("1" if options.quick or options.cpu else "1,2")).split(",")]
    report = Report(__file__, "How long does a Lasso path of 100 points take?", MODULES.values())
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or (("duke", "dorothea") if options.quick else PROBLEMS):
            compare(name, peers, threads, limit, options.cpu, folder, report)
    report.write(options.json)
    return 0


def is_installed(peer: str) -> bool:
    """Tell whether a peer can be run here."""
    return glmnet_path.is_installed() if peer == "glmnet" else importlib.util.find_spec(MODULES[peer]) is not None


def compare(
    name: str, peers: list[str], threads: list[int], limit: float, is_cpu: bool, folder: str, report: Report
) -> None:
    """Run all methods on one problem in processes of their own and print its table."""
    try:
        X, y = PROBLEMS[name]()
    except FileNotFoundError as error:
        print(f"{name}: skipped, because {error}\n")
        return
    save(folder, X, y)
    stored = X.nnz if scipy.sparse.issparse(X) else X.size
    caption = f"{name}: {X.shape[0]} x {X.shape[1]}, {stored} stored entries; limit {limit:g} s a method"
    caption += ", processor time of one thread" * is_cpu
    print(caption)
    del X
    runs = {method: [] for method in ("condgrad", *peers)}
    for count in threads:
        for method in runs:
            runs[method] += measure(method, count, limit, is_cpu, folder)
    best = np.min([run["objectives"] for found in runs.values() for run in found], axis=0)
    scale = best[0]  # at lambda_max the solution is zero
    for run in (run for found in runs.values() for run in found):
        run["excess"] = float(np.max(np.array(run["objectives"]) - best) / scale)
    races = [(measured, target) for measured in MEASURES for target in TARGETS]
    columns = [f"{measured} {target:g}" for measured, target in races]
    print(f"  {'':<14}" + "".join(f"{column:>40}" for column in columns))
    rows = []
    for method, found in runs.items():
        cells = [cell(method, runs, peers, *goal) for goal in races]
        print(f"  {method:<14}" + "".join(f"{text:>40}" for text in cells))
        rows.append([method, *cells])
        rows[-1].append(f"+{found[0]['above'] / 1e9:.2f} GB" if found else "")
    print("  In brackets: time of the fastest peer over this time.\n")
    report.table(caption, ["method", *columns, "memory"], rows, "In brackets: time of the fastest peer over this time.")


def cell(method: str, runs: dict[str, list[dict]], peers: list[str], measured: str, target: float) -> str:
    """Return when a method reached a gap or an excess of the target, and what the other one was then."""
    seconds, run = times(runs[method], measured, target)
    if run is None:
        return f"> {seconds:.3g} s, {measured} {min((other[measured] for other in runs[method]), default=math.inf):.0e}"
    ratio = f" ({lead(runs, peers, measured, target)}x)" if method == "condgrad" and peers else ""
    other = next(name for name in MEASURES if name != measured)
    return f"{seconds:.3g} s{ratio}, {other} {run[other]:.0e}"


def lead(runs: dict[str, list[dict]], peers: list[str], measured: str, target: float) -> str:
    """Return the time of the fastest peer over that of condgrad, or a lower bound of it where none was there."""
    found = [times(runs[peer], measured, target) for peer in peers]
    reached = [seconds for seconds, run in found if run is not None]
    own = times(runs["condgrad"], measured, target)[0]
    if reached:
        return f"{min(reached) / own:.1f}"
    return f">= {min(seconds for seconds, _ in found) / own:.1f}"


def times(found: list[dict], measured: str, target: float) -> tuple[float, dict | None]:
    """Return the time of the fastest run whose gap or excess reached the target, and the run.

    Where there is none, return the time of the most accurate run: it would have taken more.
    """
    reached = [run for run in found if run[measured] <= target]
    run = min(reached, key=lambda run: run["seconds"], default=None)
    if run is None:
        return min(found, key=lambda run: run[measured], default={"seconds": 0.0})["seconds"], None
    return run["seconds"], run


def measure(method: str, threads: int, limit: float, is_cpu: bool, folder: str) -> list[dict]:
    """Return what a worker told before its time was over."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    command = [sys.executable, __file__, "--worker", json.dumps([method, threads, limit, folder])]
    command += ["--cpu"] * is_cpu
    with tempfile.TemporaryFile("w+") as output:
        worker = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.PIPE, text=True)
        try:
            errors = worker.communicate(timeout=2 * limit + 120)[1]  # loading and judging take time too
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.communicate()
            errors = ""
        if worker.returncode not in (0, -9):
            print(f"  {method} with {threads} threads failed: {errors.strip().splitlines()[-1]}")
        output.seek(0)
        return [json.loads(line) for line in output if line.startswith("{")]


def work(method: str, threads: int, limit: float, folder: str, is_cpu: bool) -> int:
    """Run one method up its ladder and print a line of JSON for each run."""
    warnings.simplefilter("ignore")
    X, y = restore(folder)
    stored = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if scipy.sparse.issparse(X) else X.nbytes
    alphas = np.abs(X.T @ y).max() / y.size * np.geomspace(1.0, EPS, N_POINTS)
    solve = METHODS[method]
    part = slice(0, min(X.shape[1], 200))
    small = X[:, part].tocsc() if scipy.sparse.issparse(X) else np.asfortranarray(X[:, part])
    top = np.abs(small.T @ y).max() / y.size
    solve(small, y, top * np.geomspace(1.0, 0.1, 5), 1e-3, threads)  # compiles, fills caches
    if method == "condgrad":  # which kernels it needs depends on the size of the problem
        solve(X, y, alphas, 1e-2, threads)
    clock, own_clock = (time.process_time, "cpu_seconds") if is_cpu else (time.perf_counter, "seconds")
    # Without the judge's time; the first run's peak is without the judge's memory too.
    spent, peak, above = 0.0, 0, None
    for tol in LADDER:
        for _ in range(3 if method == "condgrad" else 1):
            start = clock()
            coefs = solve(X, y, alphas, tol, threads)
            seconds = getattr(coefs, own_clock, clock() - start)  # R's own clock leaves out the files
            peak = max(peak, peak_memory() - stored)
            spent += seconds
            above = peak if above is None else above
            gaps, objectives = judge(X, y, alphas, coefs)
            line = {"seconds": seconds, "gap": float(gaps.max()), "objectives": objectives.tolist(), "above": above}
            print(json.dumps(line), flush=True)
            if seconds > 5.0:
                break
        if gaps.max() <= TARGETS[-1] or spent > limit:
            break
    return 0


def peak_memory() -> int:
    """Return the most bytes that this process has held; the usual count would have its parent's too."""
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def judge(X, y, alphas, coefs) -> tuple[np.ndarray, np.ndarray]:
    """Return relative duality gaps and objectives of all points."""
    n = y.size
    coefs = scipy.sparse.csc_matrix(coefs)
    R = y[:, None] - np.asarray((X @ coefs).todense() if scipy.sparse.issparse(X) else X @ coefs)
    squared_r, y_r, largest = (R * R).sum(axis=0), y @ R, np.zeros(alphas.size)
    for start in range(0, X.shape[1], _JUDGED):
        products = np.abs(X[:, start : start + _JUDGED].T @ R)
        np.maximum(largest, products.max(axis=0) / n, out=largest)
    objectives = 0.5 * squared_r / n + alphas * np.asarray(np.abs(coefs).sum(axis=0)).ravel()
    share = np.clip(y_r / squared_r, -alphas / largest, alphas / largest)
    gaps = objectives - (share * y_r - 0.5 * share**2 * squared_r) / n
    return gaps / (0.5 * (y @ y) / n), objectives


def run_condgrad(X, y, alphas, tol, threads):
    import condgrad as cg

    return cg.lasso_path(X, y, alphas=alphas, tol=tol)[1]


def run_sklearn(X, y, alphas, tol, threads):
    from sklearn.linear_model import lasso_path

    return lasso_path(X, y, alphas=alphas, tol=tol, max_iter=100_000, precompute=False)[1]


def run_celer(X, y, alphas, tol, threads):
    from celer import celer_path

    return celer_path(X, y, "lasso", alphas=alphas, tol=tol, max_iter=100, max_epochs=100_000)[1]


def run_skglm(X, y, alphas, tol, threads):
    from skglm.datafits import Quadratic
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    solver = AndersonCD(max_iter=100, max_epochs=100_000, tol=tol, fit_intercept=False)
    datafit, penalty = compiled_clone(Quadratic()), compiled_clone(L1(alphas[0]))
    return solver.path(X, y, datafit, penalty, alphas)[1]


def run_adelie(X, y, alphas, tol, threads):
    import adelie

    kind = adelie.matrix.sparse if scipy.sparse.issparse(X) else adelie.matrix.dense
    state = adelie.grpnet(
        X=kind(X, method="naive", n_threads=threads), glm=adelie.glm.gaussian(y=y), lmda_path=alphas, intercept=False,
        tol=tol, early_exit=False, progress_bar=False, n_threads=threads, max_iters=10**8,
    )  # fmt: skip
    return scipy.sparse.csc_matrix(state.betas.T)


def run_glmnet(X, y, alphas, tol, threads):
    return glmnet_path.l1_path(X, y, alphas, tol, "gaussian")


METHODS = {
    "condgrad": run_condgrad,
    "scikit-learn": run_sklearn,
    "celer": run_celer,
    "skglm": run_skglm,
    "adelie": run_adelie,
    "glmnet": run_glmnet,
}


def save(folder: str, X, y) -> None:
    """Keep a problem for the workers."""
    np.save(os.path.join(folder, "y.npy"), y)
    if scipy.sparse.issparse(X):
        scipy.sparse.save_npz(os.path.join(folder, "X.npz"), X, compressed=False)
    else:
        np.save(os.path.join(folder, "X.npy"), X)
        pathlib.Path(folder, "X.npz").unlink(missing_ok=True)


def restore(folder: str):
    """Return the problem that was kept last."""
    y = np.load(os.path.join(folder, "y.npy"))
    if os.path.exists(os.path.join(folder, "X.npz")):
        X = scipy.sparse.load_npz(os.path.join(folder, "X.npz"))
        X.indices, X.indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)
        return X, y
    return np.load(os.path.join(folder, "X.npy")), y


if __name__ == "__main__":
    sys.exit(main())
