"""Time to a Frank-Wolfe gap of 1e-3, 1e-6 and 1e-9: condgrad side by side with C-OPT.

Logistic regression over the l1 ball, on a9a, w8a and simulated sparse data of 10,000 x 50,000; each radius binds and
leaves tens of nonzeros. Both libraries start at w = 0.

    python benchmarks/peers/deterministic.py [--quick | --full]

How the comparison is kept fair:

* One function computes the gap for both, in float64 with scipy, outside the clock. A target counts as reached at the
  first iterate whose gap by that function is below it.
* C-OPT runs its own logistic loss and l1 ball as its examples do (CSR data, objective and gradient in one call), with
  each of its step sizes: "DR" with the exact Lipschitz constant, computed outside the clock, and "backtracking"; and
  its pairwise variant, which starts at a vertex because it needs one. An iterate is charged up to the moment at which
  its gradient is known. The clock stands still in callbacks.
* condgrad runs as `minimize` does by default. Kernels are compiled, and both libraries warmed up, before the clock
  starts.
* Each problem is run in a process with one thread and in a process with two (--quick: one), the methods take turns,
  and each method counts with its best time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from results import Report, add_option

TARGETS = (1e-3, 1e-6, 1e-9)
OURS = ("fw", "away", "pairwise", "bpcg")
THREAD_VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# Data set -> radius. The constraint binds, and the optimum has 18, 40 and 19 nonzeros.
RADIUS = {"a9a": 10.0, "w8a": 20.0, "sparse": 60.0}


class Effort(NamedTuple):
    """How long to measure."""

    seconds: float  # limit of one run
    repeats: int
    threads: tuple[int, ...]
    peers: tuple[str, ...]


QUICK = Effort(6.0, 1, (1,), ("DR", "backtracking"))
NORMAL = Effort(30.0, 1, (1, 2), ("DR", "backtracking", "pairwise"))
FULL = Effort(300.0, 3, (1, 2), ("DR", "backtracking", "pairwise"))


def main() -> int:
    """Measure and print the tables."""
    sys.stdout.reconfigure(line_buffering=True)  # a table as soon as it is there, also in a log file
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", dest="effort", action="store_const", const=QUICK, help="less than two minutes")
    effort.add_argument("--full", dest="effort", action="store_const", const=FULL, help="hours, for a quiet machine")
    parser.add_argument("--only", choices=RADIUS, help="one problem instead of three")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    add_option(parser)
    parser.set_defaults(effort=NORMAL)
    options = parser.parse_args()
    if options.worker:
        name, *settings = json.loads(options.worker)
        return measure(name, Effort(*settings))
    if importlib.util.find_spec("copt") is None:
        print("Skipped: the comparison needs C-OPT. Run `make bench`, or pip install 'condgrad[bench]'.")
        return 0
    report = Report(__file__, "How long do deterministic solvers take to an exact gap, beside C-OPT?", ["copt"])
    for name in [options.only] if options.only else RADIUS:
        compare(name, options.effort, report)
    report.write(options.json)
    return 0


def compare(name: str, effort: Effort, report: Report) -> None:
    """Run one problem in processes of their own and print its table."""
    best: dict[str, list[float]] = {}
    facts = None
    for threads in effort.threads:
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
        command = [sys.executable, __file__, "--worker", json.dumps([name, *effort])]
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            print(f"{name}: the run with {threads} threads failed; see the message above.\n")
            return
        answer = json.loads(run.stdout.splitlines()[-1])
        if "skipped" in answer:
            print(f"{name}: skipped, because {answer['skipped']}\n")
            return
        facts = answer["facts"]
        for method, seconds in answer["seconds"]:
            times = [math.inf if s is None else s for s in seconds]
            best[method] = [min(pair) for pair in zip(best.get(method, [math.inf] * len(TARGETS)), times, strict=True)]
    show(name, facts, best, effort)
    n, d = facts["shape"]
    columns = ["seconds", *(f"gap {target:g}" for target in TARGETS)]
    caption = f"{name}, {n} x {d}, l1 radius {RADIUS[name]:g}; limit {effort.seconds:g} s a run"
    report.table(caption, columns, [[method, *times] for method, times in best.items()])


def show(name: str, facts: dict, best: dict[str, list[float]], effort: Effort) -> None:
    """Print seconds to each target, and how many times longer the best of C-OPT takes."""
    n, d = facts["shape"]
    print(f"{name}: {n} x {d}, {facts['stored']} stored entries, l1 radius {RADIUS[name]:g}; ", end="")
    print(f"{facts['nonzero']} nonzeros at the end; limit {effort.seconds:g} s a run")
    peer = [min(times[k] for method, times in best.items() if method.startswith("copt")) for k in range(len(TARGETS))]
    print(f"  {'':<20}" + "".join(f"{f'gap {target:g}':>24}" for target in TARGETS))
    for method, times in best.items():
        cells = [seconds_text(seconds, effort) for seconds in times]
        if not method.startswith("copt"):
            cells = [
                f"{cell} {ratio_text(seconds, other, effort):>11}"
                for cell, seconds, other in zip(cells, times, peer, strict=True)
            ]
        else:
            cells = [f"{cell} {'':>11}" for cell in cells]
        print(f"  {method:<20}" + "".join(f"{cell:>24}" for cell in cells))
    print("  In brackets: time of the fastest C-OPT method over this time; >= where C-OPT did not get there.\n")


def seconds_text(seconds: float, effort: Effort) -> str:
    """Return a time, or the limit that it exceeds."""
    return f"> {effort.seconds:g} s" if seconds == math.inf else f"{seconds:.3g} s"


def ratio_text(ours: float, peer: float, effort: Effort) -> str:
    """Return how many times faster, as a lower bound where the peer did not reach the target."""
    if ours == math.inf:
        return ""
    return f"(>= {effort.seconds / ours:.3g}x)" if peer == math.inf else f"({peer / ours:.3g}x)"


def measure(name: str, effort: Effort) -> int:
    """Run all methods on one problem, taking turns, and print the times as one line of JSON."""
    import numpy as np

    from condgrad import datasets

    try:
        data = (
            datasets.simulate_sparse(10_000, 50_000, 100, random_state=0) if name == "sparse" else datasets.load(name)
        )
    except FileNotFoundError as error:
        print(json.dumps({"skipped": str(error)}))
        return 0
    bench = Bench(data.X, data.y, RADIUS[name])
    methods = [(f"copt {step}", lambda limit, step=step: bench.run_copt(step, limit)) for step in effort.peers]
    methods += [
        (f"condgrad {solver}", lambda limit, solver=solver: bench.run_condgrad(solver, limit)) for solver in OURS
    ]
    for _, method in methods:
        method(0.05)  # compiles, fills caches
    times = [(label, method(effort.seconds)) for _ in range(effort.repeats) for label, method in methods]
    facts = {
        "shape": data.X.shape,
        "stored": data.X.nnz,
        "nonzero": int(np.count_nonzero(np.abs(bench.best_w) > 1e-9 * RADIUS[name])),
    }
    print(json.dumps({"facts": facts, "seconds": times}))
    return 0


class Bench:
    """One problem in the form that each library wants, and the gap that judges both."""

    def __init__(self, X, y, radius: float) -> None:
        import copt
        import numpy as np

        import condgrad as cg

        self.X, self.y, self.radius = X, y, radius
        self.problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius))
        self.loss = copt.loss.LogLoss(X, (y + 1.0) / 2.0)
        self.ball = copt.constraint.L1Ball(radius)
        self.lipschitz = float(self.loss.lipschitz)
        self.best_w = np.zeros(X.shape[1])

    def gap(self, w) -> float:
        """Return the exact Frank-Wolfe gap at w: the same function for both libraries."""
        import numpy as np
        from scipy.special import expit

        r = self.X.T @ (-self.y * expit(-self.y * (self.X @ w))) / self.y.size
        return float(r @ w + self.radius * np.abs(r).max())

    def run_condgrad(self, solver: str, limit: float) -> list[float | None]:
        """Return seconds to each target with one of our solvers."""
        import numpy as np

        import condgrad as cg

        watch = Watch(self, limit)
        cg.minimize(
            self.problem, solver, w0=np.zeros(self.X.shape[1]), tol=0.5 * TARGETS[-1], max_epochs=1e12,
            evaluate_every=0.5, callback=lambda progress: watch.see(progress.w, progress.gap, progress.seconds),
        )  # fmt: skip
        return watch.reached

    def run_copt(self, step: str, limit: float) -> list[float | None]:
        """Return seconds to each target with C-OPT's minimize_frank_wolfe."""
        import copt
        import numpy as np

        is_pairwise = step == "pairwise"
        x0 = np.zeros(self.X.shape[1])
        x0[0] = self.radius if is_pairwise else 0.0
        watch = Watch(self, limit)
        settings = {
            "variant": "pairwise" if is_pairwise else "vanilla",
            "lmo": self.ball.lmo_pairwise if is_pairwise else self.ball.lmo,
            "x0_rep": (1.0, 0) if is_pairwise else None,
            "step": "DR" if step == "DR" else "backtracking",
            "lipschitz": self.lipschitz if step == "DR" else None,
        }
        began = time.perf_counter()
        paused, known_at = 0.0, 0.0

        def callback(inside: dict):
            nonlocal paused, known_at
            now = time.perf_counter()
            # The gradient at x was known when this function was last left: later work belongs to the next iterate.
            # C-OPT's pairwise certificate is that of its direction, at least as large as the gap.
            is_over = watch.see(inside["x"], inside["certificate"], known_at, is_bound=is_pairwise)
            known_at = now - began - paused
            paused += time.perf_counter() - now
            return not is_over

        # It prints its first Lipschitz estimate, and its pairwise variant divides by zero after steps of length zero.
        with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            copt.minimize_frank_wolfe(
                self.loss.f_grad, x0, jac=True, tol=0, max_iter=10**9, callback=callback, **settings
            )
        return watch.reached


class Watch:
    """Notes when the gap of a run first falls below each target."""

    def __init__(self, bench: Bench, limit: float) -> None:
        self.bench, self.limit = bench, limit
        self.reached: list[float | None] = [None] * len(TARGETS)
        self.seen = 0

    def see(self, w, claimed_gap: float, seconds: float, *, is_bound: bool = False) -> bool:
        """Note the iterate and return whether the run is over; a claim is believed only when the judge agrees."""
        self.seen += 1
        k = sum(time is not None for time in self.reached)
        looks = claimed_gap <= TARGETS[k] or (is_bound and self.seen % 50 == 0)
        if seconds <= self.limit and looks:
            gap = self.bench.gap(w)
            while k < len(TARGETS) and gap <= TARGETS[k]:
                self.reached[k] = seconds
                k += 1
        if k == len(TARGETS):
            self.bench.best_w = w.copy()
        return k == len(TARGETS) or seconds > self.limit


if __name__ == "__main__":
    sys.exit(main())
