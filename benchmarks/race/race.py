"""Which Frank-Wolfe method, in 2026? Every stochastic and every full-pass solver of the library on the papers' data.

    python benchmarks/race/race.py [--minutes 18] [--seeds 5] [--only NAME ...] [--out race.json]
    python benchmarks/race/race.py --report race.json [--plot race.png]

The time is divided equally among all runs that are not in the file yet, so that an interrupted race continues where it
was. A run ends at a relative gap of 1e-6 or with its share of the time. The gap is exact, from full passes that the
clock and the counter of gradients do not count. It is relative to F(0). The report has, for each target, what every
method needed (the median over the seeds) by single-sample gradients and by seconds, as multiples of the best method on
the same data, who wins where, and performance profiles: the share of problems solved within a factor of the best.

Solvers of full passes are deterministic and run once. Kernels are compiled before the clock of a run starts, and the
time for that comes on top.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from benchmark_utils import FULL_PASS, PROBLEMS, STOCHASTIC, new, problem

import condgrad as cg

TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
FACTORS = (1, 2, 4, 8, 16, 64)
MEASURES = ("gradients", "seconds")


def main() -> int:
    """Race, or report."""
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=18.0, help="time for all runs together (18)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each stochastic solver on each problem (5)")
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), help="these problems only")
    parser.add_argument("--out", default="race.json", help="where the results go; runs that it has are not repeated")
    parser.add_argument("--report", help="print the tables of a file and race no more")
    parser.add_argument("--plot", help="draw the profiles into this file")
    options = parser.parse_args()
    if options.report is None:
        race(options.only, options.seeds, 60.0 * options.minutes, pathlib.Path(options.out))
    report(json.loads(pathlib.Path(options.report or options.out).read_text()), options.plot)
    return 0


def race(names: list[str], n_seeds: int, seconds: float, out: pathlib.Path) -> None:
    """Make all runs that the file does not have, and write the file after each of them."""
    results = json.loads(out.read_text()) if out.exists() else {"runs": [], "missing": {}}
    made = {(run["problem"], run["method"], run["seed"]) for run in results["runs"]}
    wanted = [(name, method, seed) for name in names for method, seed in entrants(n_seeds)]
    left = [run for run in wanted if run not in made]
    end, current = time.monotonic() + seconds, None
    for k, (name, method, seed) in enumerate(left):
        if current is None or current[0] != name:
            current = (name, load(name, results))
        if current[1] is None:
            continue
        end += compile_kernels(current[1], method)
        share = max((end - time.monotonic()) / (len(left) - k), 0.05)
        results["runs"].append(measure(current[1], name, method, seed, share))
        out.write_text(json.dumps(results))
        if seed == 0:
            print(f"{name:20s} {method:18s} {results['runs'][-1]['relative_gap']:.0e}")


def entrants(n_seeds: int) -> list[tuple[str, int]]:
    """Return the pairs of method and seed for one problem."""
    return [(method, 0) for method in FULL_PASS] + [(method, seed) for method in STOCHASTIC for seed in range(n_seeds)]


def load(name: str, results: dict[str, Any]) -> cg.Problem | None:
    """Return the problem, or None if its data are missing, which the results say."""
    try:
        return problem(name)
    except FileNotFoundError as error:
        results["missing"][name] = str(error)
        print(f"{name}: skipped. {error}")
        return None


def compile_kernels(F: cg.Problem, method: str) -> float:
    """Make a few steps, and return the seconds that they took; only the first run of a method takes any."""
    start = time.monotonic()
    cg.minimize(F, new(method, F.n_samples), max_steps=3, tol=0.0, random_state=0)
    return time.monotonic() - start


def measure(F: cg.Problem, name: str, method: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return what one run needed to reach each target (None: it did not)."""
    solver, start = new(method, F.n_samples), F.objective([0.0] * F.n_features)
    run = cg.minimize(F, solver, tol=TARGETS[-1] * start, max_time=seconds, max_epochs=10**7, random_state=seed)
    needed: dict[str, list[float | None]] = {measure: [] for measure in MEASURES}
    for target in TARGETS:
        reached = [k for k, gap in enumerate(run.trace.gap) if gap <= target * start]
        needed["gradients"].append(float(run.trace.gradient_evaluations[reached[0]]) if reached else None)
        needed["seconds"].append(float(run.trace.seconds[reached[0]]) if reached else None)
    return {"problem": name, "method": method, "seed": seed, "relative_gap": run.gap / start, "limit": seconds} | needed


# The report ------------------------------------------------------------------------------------------------------


def report(results: dict[str, Any], plot: str | None) -> None:
    """Print the tables."""
    for name, sentence in results["missing"].items():
        print(f"Skipped {name}: {sentence}")
    for group, methods in (("stochastic", STOCHASTIC), ("full passes", FULL_PASS)):
        for measure in MEASURES:
            costs = medians(results["runs"], methods, measure)
            print(f"\nSolvers: {group}; by {measure}. Share of the problems solved within a factor of the best")
            for target in (1e-3, 1e-6):
                print_profile(costs, methods, TARGETS.index(target), target)
            print_winners(costs)
    if plot is not None:
        draw(results["runs"], plot)


def medians(runs: list[dict[str, Any]], methods: tuple[str, ...], measure: str) -> dict[str, dict[str, list[float]]]:
    """Return for each problem and method the median over the seeds of what each target needed (inf: not reached)."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for run in runs:
        if run["method"] in methods:
            needed = [math.inf if value is None else value for value in run[measure]]
            found.setdefault(run["problem"], {}).setdefault(run["method"], []).append(needed)
    return {
        name: {method: [statistics.median(column) for column in zip(*rows)] for method, rows in table.items()}
        for name, table in found.items()
    }


def shares(costs: dict[str, dict[str, list[float]]], method: str, k: int, factors: tuple[float, ...]) -> list[float]:
    """Return which share of the problems, of those that any method solved, this one solved within each factor."""
    ratios = []
    for table in costs.values():
        best = min(row[k] for row in table.values())
        if best < math.inf:
            mine = table[method][k] if method in table else math.inf
            ratios.append(mine / best if best > 0.0 else (1.0 if mine == 0.0 else math.inf))
    return [sum(ratio <= factor for ratio in ratios) / len(ratios) if ratios else 0.0 for factor in factors]


def print_profile(costs: Any, methods: tuple[str, ...], k: int, target: float) -> None:
    """Print one table of a performance profile, the best method first."""
    print(f"\n| relative gap {target:.0e} | " + " | ".join(f"{factor}x" for factor in FACTORS) + " |")
    print("|---" * (1 + len(FACTORS)) + "|")
    rows = {method: shares(costs, method, k, FACTORS) for method in methods}
    for method, row in sorted(rows.items(), key=lambda item: [-value for value in item[1]]):
        print(f"| {method} | " + " | ".join(f"{value:.0%}" for value in row) + " |")


def print_winners(costs: Any) -> None:
    """Print who wins where: for each problem and target, the best method."""
    print("\n| who wins | " + " | ".join(f"{target:.0e}" for target in TARGETS) + " |")
    print("|---" * (1 + len(TARGETS)) + "|")
    for name, table in costs.items():
        cells = []
        for k in range(len(TARGETS)):
            method, row = min(table.items(), key=lambda item: item[1][k])
            cells.append(method if row[k] < math.inf else "none")
        print(f"| {name} | " + " | ".join(cells) + " |")


def draw(runs: list[dict[str, Any]], path: str) -> None:
    """Draw the profiles at 1e-3 of both groups by both measures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    factors = tuple(2.0 ** (k / 4) for k in range(33))
    figure, panels = pyplot.subplots(2, 2, figsize=(12, 8), sharex=True, sharey=True)
    for row, (group, methods) in zip(panels, (("stochastic", STOCHASTIC), ("full passes", FULL_PASS))):
        for panel, measure in zip(row, MEASURES):
            costs = medians(runs, methods, measure)
            for number, method in enumerate(methods):
                style = ("-", "--", ":")[number // 7]
                panel.plot(factors, shares(costs, method, TARGETS.index(1e-3), factors), style, label=method)
            panel.set(
                xscale="log", title=f"{group}, by {measure}", xlabel="factor of the best", ylabel="share of problems"
            )
        row[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    sys.exit(main())
