"""Which Frank-Wolfe method, in 2026? Every stochastic and every full-pass solver of the library on the papers' data.

    CONDGRAD_DATA=<folder> python benchmarks/race/race.py [--minutes 12] [--seeds 5] [--only NAME ...] [--runs FILE]
    python benchmarks/race/race.py --report [--runs FILE] [--json FILE] [--needs FILE] [--plot FILE]

The time is divided equally among all runs that are not in the file yet, so that an interrupted race continues where it
was. A run ends at a gap of 1e-6 of F(0), or with its share of the time. The gap is exact, from full passes
that neither the clock nor the counter of gradients counts. Seconds are processor time of one thread. The report has,
for each target, what every method needed (the median over the seeds), as multiples of the best method on the same
data, who wins where, and performance profiles: the share of problems solved within a factor of the best.

Solvers of full passes are deterministic and run once. Kernels are compiled before the clock of a run starts, and the
time for that comes on top. README.md in this folder says what is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time
from typing import Any

import condgrad as cg

sys.path.append(str(pathlib.Path(__file__).parent))
sys.path.append(str(pathlib.Path(__file__).parents[1]))
from benchmark_utils import FULL_PASS, PROBLEMS, STOCHASTIC, TARGETS, all_needs, draw, new, problem, tables
from benchmark_utils.problems import value_at_zero
from clock import use_processor_time
from results import Report

HERE = pathlib.Path(__file__).parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
LEAST = 0.02  # seconds of a run, however many are left


def main() -> int:
    """Race, or report."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=12.0, help="time for all runs together (12)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each stochastic solver on each problem (5)")
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), help="these problems only")
    parser.add_argument(
        "--runs", type=pathlib.Path, default=HERE / "outputs" / "runs.json", metavar="FILE",
        help="where the runs go; those that it has are not repeated (outputs/runs.json)",
    )  # fmt: skip
    parser.add_argument("--report", action="store_true", help="print the tables of the runs, and race no more")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the tables as JSON, too")
    parser.add_argument(
        "--needs", type=pathlib.Path, metavar="FILE", help="write what every method needed as JSON, too"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the profiles into this file")
    options = parser.parse_args()
    if not options.report:
        race(options.only, options.seeds, 60.0 * options.minutes, options.runs)
    results = json.loads(options.runs.read_text())
    question = "Which Frank-Wolfe method needs the fewest gradients, or seconds, on the papers' data?"
    for file, made in ((options.json, tables(results)), (options.needs, all_needs(results))):
        report = Report(__file__, question)
        for table in made:
            report.table(*table)
            show(*table)
        report.write(file)
    if options.plot is not None:
        draw(results["runs"], options.plot)
    return 0


def show(caption: str, columns: list[str], rows: list[list[Any]], note: str) -> None:
    """Print a table in Markdown."""
    print(f"\n{caption}\n\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for row in rows:
        print("| " + " | ".join(_shown(cell) for cell in row) + " |")
    print(f"\n{note}")


def _shown(cell: Any) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else f"{cell:.3g}"


def race(names: list[str], n_seeds: int, seconds: float, out: pathlib.Path) -> None:
    """Make all runs that the file does not have, and write the file after each problem."""
    use_processor_time()
    out.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(out.read_text()) if out.exists() else {"runs": [], "missing": {}, "refused": {}}
    made = {(run["problem"], run["method"], run["seed"]) for run in results["runs"]}
    entrants = [(m, 0) for m in FULL_PASS] + [(m, seed) for m in STOCHASTIC for seed in range(n_seeds)]
    n_left = len(names) * len(entrants) - sum((n, *e) in made for n in names for e in entrants)
    end = time.monotonic() + seconds
    for name in names:
        wanted = [entrant for entrant in entrants if (name, *entrant) not in made]
        F = load(name, results) if wanted else None
        compiled = set()
        for method, seed in wanted if F is not None else ():
            if name in results["refused"] and method in results["refused"][name]:
                n_left -= 1
                continue
            if method not in compiled:
                end += compile_kernels(F, name, method, results)
                compiled.add(method)
            if method not in results["refused"].get(name, {}):
                share = max((end - time.monotonic()) / n_left, LEAST)
                results["runs"].append(measure(F, name, method, seed, share))
            n_left -= 1
        n_left -= len(wanted) if F is None else 0
        out.write_text(json.dumps(results))
        best = {run["method"]: run["relative_gap"] for run in results["runs"] if run["problem"] == name}
        print(f"{name:20s} {len(best)} methods; smallest relative gap {min(best.values(), default=1.0):.0e}")


def load(name: str, results: dict[str, Any]) -> Any:
    """Return the problem, or None if its data are missing, which the results say."""
    try:
        return problem(name)
    except FileNotFoundError as error:
        results["missing"][name] = str(error)
        print(f"{name}: skipped. {error}")
        return None


def compile_kernels(F: Any, name: str, method: str, results: dict[str, Any]) -> float:
    """Make a few steps, and return the seconds that they took; if the solver refuses the problem, note its reason."""
    start = time.monotonic()
    try:
        cg.minimize(F, new(method, F.n_samples), max_steps=3, tol=0.0, random_state=0)
    except (TypeError, ValueError) as error:
        results["refused"].setdefault(name, {})[method] = str(error)
    return time.monotonic() - start


def measure(F: Any, name: str, method: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return what one run needed to reach each target (None: it did not)."""
    start = value_at_zero(F)
    run = cg.minimize(
        F, new(method, F.n_samples), tol=TARGETS[-1] * start, max_time=seconds, max_epochs=10**7, random_state=seed
    )
    trace = run.trace
    reached = [next((k for k, gap in enumerate(trace.gap) if gap <= target * start), None) for target in TARGETS]
    return {
        "problem": name, "method": method, "seed": seed, "relative_gap": float(trace.gap.min() / start),
        "limit": round(seconds, 3), "n_samples": F.n_samples,
        "gradients": [None if k is None else float(trace.gradient_evaluations[k]) for k in reached],
        "seconds": [None if k is None else float(trace.seconds[k]) for k in reached],
    }  # fmt: skip


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):  # these are read when numpy and numba are imported
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(THREADS, "1"))
    sys.exit(main())
