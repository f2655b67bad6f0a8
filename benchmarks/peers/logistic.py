"""Time to F(w) - F* of 1e-3, 1e-5, 1e-7, 1e-9: `corrective` side by side with other solvers of l1 logistic regression.

l1 logistic regression without intercept. The peers solve the penalised problem with lambda = lambda_max / 100, condgrad
the constrained one whose radius is the l1 norm of that solution: both have the same solutions, and the excess of the
objective over the optimum (penalised there, constrained here) is on the same scale.

    python benchmarks/peers/logistic.py [--quick] [--cpu] [--only NAME]

The peers are scikit-learn (liblinear, saga), celer, skglm, snapml, glum and cyanure; those that are not installed are
left out. How the comparison is kept fair: every method runs with a ladder of tolerances, from the data as it likes them
(CSC for celer and skglm, CSR for the others) to its answer, building of its own structures included; a target counts
with the fastest run that reached it, scored by one function outside the clock. Kernels are warm; methods take turns;
each cell is the best of several repeats in processes with one and with two threads. On a busy machine, ``--cpu`` counts
the CPU time of one thread instead.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

TARGETS = (1e-3, 1e-5, 1e-7, 1e-9)
NAMES = (
    "svmguide3", "phishing", "a9a", "w8a", "ijcnn1", "covtype-subset", "news20-binary", "duke", "few-samples", "dense"
)  # fmt: skip
PEERS = ("celer", "skglm", "snapml", "glum", "cyanure")
SIMULATED = {"few-samples": (62, 2000), "dense": (2000, 500)}
LADDER = tuple(10.0**-k for k in range(1, 13))
THREAD_VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> int:
    """Measure and print one table per data set."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one repeat, one thread")
    parser.add_argument("--cpu", action="store_true", help="CPU time of one thread instead of wall-clock time")
    parser.add_argument("--only", choices=NAMES, help="one data set")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a method climbs no further")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    add_option(parser)
    options = parser.parse_args()
    if options.worker:
        clock = time.process_time if options.cpu else time.perf_counter
        print(json.dumps(measure(options.worker, 1 if options.quick else 3, options.limit, clock)))
        return 0
    wins = []
    written = Report(__file__, "How long do solvers of l1 logistic regression take to an excess F(w) - F*?", PEERS)
    for name in [options.only] if options.only else NAMES:
        times: dict[str, dict[str, float]] = {}
        for threads in ("1",) if options.quick or options.cpu else ("1", "2"):
            command = [sys.executable, __file__, "--worker", name, "--limit", str(options.limit)]
            command += ["--quick"] * options.quick + ["--cpu"] * options.cpu
            environment = os.environ | dict.fromkeys(THREAD_VARIABLES, threads)
            answer = subprocess.run(command, env=environment, capture_output=True, text=True)
            if answer.returncode:
                print(f"{name}: skipped ({answer.stderr.strip().splitlines()[-1]})")
                break
            report = json.loads(answer.stdout.splitlines()[-1])
            for method, row in report["times"].items():
                best = times.setdefault(method, {})
                for target, seconds in row.items():
                    best[target] = min(seconds, best.get(target, float("inf")))
        else:
            wins += show(report, times, written)
    if wins:
        twice, four = sum(ratio >= 2 for ratio in wins), sum(ratio >= 4 for ratio in wins)
        print(f"\nthe fastest peer takes 2 times as long or longer in {twice} of {len(wins)} cells, 4 times in {four}")
    written.write(options.json)
    return 0


def show(report: dict, times: dict[str, dict[str, float]], written: Report) -> list[float]:
    """Print milliseconds and ratios; return the ratios of the fastest peer to corrective."""
    head = f"{report['name']}: {report['n']} x {report['d']}, radius {report['radius']:.4g}, "
    head += f"{report['nonzero']} nonzeros"
    print(f"\n{head}\n{'milliseconds to F - F*':24}" + "".join(f"{target:>12.0e}" for target in TARGETS))
    for method, row in times.items():
        print(f"{method:24}" + "".join(f"{1e3 * row.get(str(t), float('nan')):12.1f}" for t in TARGETS))
    ratios = []
    for target in TARGETS:
        peers = [row[str(target)] for method, row in times.items() if method != "corrective" and str(target) in row]
        ours = times["corrective"].get(str(target))
        ratios.append(min(peers) / ours if peers and ours else float("nan"))
    print(f"{'fastest peer / corrective':24}" + "".join(f"{ratio:11.1f}x" for ratio in ratios))
    columns = ["milliseconds to F - F*", *(f"{target:.0e}" for target in TARGETS)]
    rows = [[method, *(1e3 * row.get(str(t), float("nan")) for t in TARGETS)] for method, row in times.items()]
    written.table(head, columns, [*rows, ["fastest peer / corrective", *ratios]])
    print(f"certified gap of corrective's last answer: {report['gap']:.1e}; of the peers': {report['peer_gaps']}")
    return [ratio for ratio in ratios if ratio == ratio]


def data(name: str):
    """Return X and y of a data set: dense, or CSR with the 32-bit indices that liblinear needs."""
    import numpy as np

    from condgrad.datasets import load

    if name in SIMULATED:
        n, d = SIMULATED[name]
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
        return X, np.where(X[:, :20] @ rng.standard_normal(20) + 3.0 * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    X, y, *_ = load(name)
    if not hasattr(X, "tocsr"):
        return np.ascontiguousarray(X), y
    X = X.tocsr()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def measure(name: str, repeats: int, limit: float, clock) -> dict:
    """Run every method on one data set."""
    import numpy as np

    import condgrad as cg

    warnings.simplefilter("ignore")  # peers warn where a rung of the ladder is too tight for them
    X, y = data(name)
    n, d = X.shape
    strength = float(np.abs(X.T @ y).max()) / (2 * n) / 100
    radius, w_star = solution(X, y, strength)
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius))
    best = problem.objective(w_star)
    best_penalised = best + strength * np.abs(w_star).sum()

    def excess(method, w):
        value = problem.objective(w)
        return value - best if method == "corrective" else value + strength * np.abs(w).sum() - best_penalised

    methods = solvers(X, y, strength, radius)
    for method in methods.values():  # compile and warm up
        method(1e-1)
    times: dict[str, dict[str, float]] = {method: {} for method in methods}
    answers = {}
    for _ in range(repeats):
        for label, method in methods.items():
            for tol in LADDER:
                start = clock()
                w = method(tol)
                seconds = clock() - start
                error = excess(label, w)
                answers[label] = w
                for target in TARGETS:
                    if error <= target:
                        times[label][str(target)] = min(seconds, times[label].get(str(target), float("inf")))
                if seconds > limit or error <= TARGETS[-1]:
                    break
    ball = cg.constraints.L1Ball
    gaps = {
        label: f"{cg.Problem(X, y, cg.losses.Logistic(), ball(max(np.abs(w).sum(), 1e-12))).gap(w):.0e}"
        for label, w in answers.items()
        if label != "corrective"
    }
    return {
        "name": name,
        "n": n,
        "d": d,
        "radius": radius,
        "nonzero": int(np.count_nonzero(w_star)),
        "times": times,
        "gap": problem.gap(answers["corrective"]),
        "peer_gaps": gaps,
    }


def solution(X, y, strength):
    """Return the radius at which the dual norm of the gradient is ``strength``, and the solution there."""
    import numpy as np

    import condgrad as cg

    def solve(radius, w0=None, tol=1e-9):
        problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius))
        w = cg.minimize(problem, "corrective", w0=w0, tol=tol, max_steps=500).w
        return w, float(np.abs(problem.gradient(w)).max())

    low, high = 0.0, 1.0
    while solve(high)[1] > strength:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if solve(middle)[1] > strength else (low, middle)
        if high - low <= 1e-10 * high:
            break
    return high, solve(high, tol=1e-13)[0]


def solvers(X, y, strength, radius):
    """Return functions of a tolerance that return coefficients."""
    import condgrad as cg

    n = X.shape[0]

    def corrective(tol):
        problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius))
        return cg.minimize(problem, "corrective", tol=tol, max_steps=500).w

    methods = {"corrective": corrective}
    from sklearn.linear_model import LogisticRegression

    def scikit(solver):
        def fit(tol):
            settings = {"C": 1 / (strength * n), "fit_intercept": False, "max_iter": 100_000, "random_state": 0}
            return LogisticRegression(l1_ratio=1.0, solver=solver, tol=tol, **settings).fit(X, y).coef_[0]

        return fit

    methods |= {"liblinear": scikit("liblinear"), "saga": scikit("saga")}
    columns = X.tocsc() if hasattr(X, "tocsc") else X.copy(order="F")
    if importlib.util.find_spec("celer"):
        import celer

        def fit_celer(tol):
            model = celer.LogisticRegression(C=1 / (strength * n), tol=tol, fit_intercept=False, max_iter=500)
            return model.fit(columns, y).coef_[0]

        methods["celer"] = fit_celer
    if importlib.util.find_spec("skglm"):
        import skglm

        def fit_skglm(tol):
            model = skglm.SparseLogisticRegression(alpha=strength, tol=tol, fit_intercept=False, max_iter=500)
            return model.fit(columns, y).coef_[0]

        methods["skglm"] = fit_skglm
    if importlib.util.find_spec("snapml"):
        import snapml

        def fit_snapml(tol):
            settings = {"penalty": "l1", "dual": False, "fit_intercept": False, "max_iter": 10_000}
            return snapml.LogisticRegression(regularizer=strength * n, tol=tol, **settings).fit(X, y).coef_.ravel()

        methods["snapml"] = fit_snapml
    if importlib.util.find_spec("glum") and X.shape[1] <= 10_000:  # it stores a matrix of all pairs of features
        import glum

        def fit_glum(tol):
            settings = {"family": "binomial", "l1_ratio": 1.0, "fit_intercept": False, "max_iter": 500}
            model = glum.GeneralizedLinearRegressor(alpha=strength, gradient_tol=tol, **settings)
            return model.fit(columns, (y > 0.0).astype(float)).coef_

        methods["glum"] = fit_glum
    if importlib.util.find_spec("cyanure"):
        from cyanure.estimators import Classifier

        def fit_cyanure(tol):
            settings = {"loss": "logistic", "penalty": "l1", "fit_intercept": False, "max_iter": 10_000}
            model = Classifier(lambda_1=strength, tol=tol, verbose=False, **settings)
            return model.fit(X, y).coef_.ravel()

        methods["cyanure"] = fit_cyanure
    return methods


if __name__ == "__main__":
    sys.exit(main())
