"""The report of the race: profiles, who wins where, what each method needed, and a picture."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from benchmark_utils.methods import FULL_PASS, STOCHASTIC

TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
SHOWN = (1e-1, 1e-2, 1e-3)  # profiles in tables; few methods reach smaller gaps in the small form
FACTORS = (1, 2, 4, 8, 16, 64)
MEASURES = ("gradients", "seconds")
GROUPS = {"stochastic": STOCHASTIC, "full passes": FULL_PASS}
Costs = dict[str, dict[str, list[float]]]  # problem, method: what each target needed, inf where it was not reached
Table = tuple[str, list[str], list[list[Any]], str]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """Yield the tables as caption, columns, rows and note."""
    runs = results["runs"]
    for group, methods in GROUPS.items():
        for measure in MEASURES:
            costs = medians(runs, methods, measure)
            for target in SHOWN:
                yield profile(costs, methods, target, group, measure)
            yield winners(costs, group, measure)
    for measure in MEASURES:
        yield winners(medians(runs, STOCHASTIC + FULL_PASS, measure), "all", measure)


def all_needs(results: dict[str, Any]) -> Iterator[Table]:
    """Yield two long tables: what every method needed on every problem."""
    for measure in MEASURES:
        yield needed(medians(results["runs"], STOCHASTIC + FULL_PASS, measure), results["runs"], measure)


def medians(runs: list[dict[str, Any]], methods: tuple[str, ...], measure: str) -> Costs:
    """Return for each problem and method the median over the seeds of what each target needed (inf: not reached)."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for run in runs:
        if run["method"] in methods:
            values = [math.inf if value is None else value for value in run[measure]]
            found.setdefault(run["problem"], {}).setdefault(run["method"], []).append(values)
    return {
        name: {method: [statistics.median(column) for column in zip(*rows)] for method, rows in table.items()}
        for name, table in found.items()
    }


def shares(costs: Costs, method: str, k: int, factors: tuple[float, ...]) -> list[float]:
    """Return which share of the problems, of those that any method solved, this one solved within each factor."""
    ratios = []
    for table in costs.values():
        best = min(row[k] for row in table.values())
        if best < math.inf:
            mine = table[method][k] if method in table else math.inf
            ratios.append(mine / best if best > 0.0 else (1.0 if mine == 0.0 else math.inf))
    return [sum(ratio <= factor for ratio in ratios) / len(ratios) if ratios else 0.0 for factor in factors]


def profile(costs: Costs, methods: tuple[str, ...], target: float, group: str, measure: str) -> Table:
    """Return one table of a performance profile, the best method first."""
    k = TARGETS.index(target)
    rows = {method: shares(costs, method, k, FACTORS) for method in methods}
    n_solved = sum(min(row[k] for row in table.values()) < math.inf for table in costs.values())
    best_first = sorted(rows.items(), key=lambda item: [-value for value in item[1]])
    return (
        f"Solvers: {group}; by {measure}; to a relative gap of {target:.0e}",
        ["method", *(f"within {factor}x" for factor in FACTORS)],
        [[method, *(f"{value:.0%}" for value in row)] for method, row in best_first if any(row)],
        f"Share of the {n_solved} problems that any method of the group solved. Methods that solved none are left out.",
    )


def winners(costs: Costs, group: str, measure: str) -> Table:
    """Return who wins where: for each problem and target, the best method."""
    rows: list[list[Any]] = []
    for name, table in costs.items():
        cells: list[str | None] = []
        for k in range(len(TARGETS)):
            method, row = min(table.items(), key=lambda item: item[1][k])
            cells.append(method if row[k] < math.inf else None)
        rows.append([name, *cells])
    columns = ["problem", *(f"{target:.0e}" for target in TARGETS)]
    return f"Who wins where: {group}, by {measure}", columns, rows, "The columns are relative gaps."


def needed(costs: Costs, runs: list[dict[str, Any]], measure: str) -> Table:
    """Return what every method needed on every problem: epochs or seconds, to each target."""
    sizes = {run["problem"]: run["n_samples"] for run in runs}
    unit = "epochs" if measure == "gradients" else "seconds"
    rows = [
        [name, method, *(None if c == math.inf else c / (sizes[name] if unit == "epochs" else 1.0) for c in row)]
        for name, table in costs.items()
        for method, row in table.items()
    ]
    columns = ["problem", "method", *(f"{target:.0e}" for target in TARGETS)]
    return f"What each method needed, in {unit}", columns, rows, "An epoch is one gradient of every sample."


def draw(runs: list[dict[str, Any]], path: str) -> None:
    """Draw the profiles at 1e-2 of both groups by both measures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    factors = tuple(2.0 ** (k / 4) for k in range(33))
    figure, panels = pyplot.subplots(2, 2, figsize=(11, 7.5), sharex=True, sharey=True)
    for row, (group, methods) in zip(panels, GROUPS.items()):
        # The colours are few: only the methods that solved most are drawn, the same ones in both panels.
        solved = {m: shares(medians(runs, methods, "gradients"), m, 1, (256.0,))[0] for m in methods}
        shown = sorted(methods, key=lambda method: -solved[method])[:10]
        for panel, measure in zip(row, MEASURES):
            costs = medians(runs, methods, measure)
            for number, method in enumerate(shown):
                values = shares(costs, method, TARGETS.index(1e-2), factors)
                panel.plot(factors, values, ("-", "--")[number // 5], color=f"C{number}", label=method)
            panel.set(xscale="log", title=f"{group}, by {measure}", ylim=(0.0, 1.02))
        row[0].set_ylabel("share of problems")
        row[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    for panel in panels[1]:
        panel.set_xlabel("factor of the best")
    figure.tight_layout()
    figure.savefig(path, dpi=80)
