"""Tables 3 and 4 of Xiong & Freund in a stated time: one piece for each data set, table and method."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import tables
from clock import use_processor_time
from night import Night
from results import Report

import condgrad as cg
from condgrad.datasets import load


def run(hours: float, found: pathlib.Path, json: pathlib.Path | None) -> None:
    """Measure as much as the time allows, and print both tables with the paper's column."""
    methods = {3: list(tables.convex_methods(100)), 4: [*tables.non_convex_methods(1), "corrective"]}
    use_processor_time()
    names = (*tables.QUICK, *(name for name in tables.ALL if name not in tables.QUICK))
    pieces = [f"{name}/radius" for name in names]
    pieces += [f"{name}/{table}/{label}" for table, labels in methods.items() for name in names for label in labels]
    night, data = Night(hours, found, pieces), dict[str, Any]()
    for piece, seconds in night:
        name, part, *method = piece.split("/")
        if name not in data:
            data.clear()  # one data set at a time
            try:
                data[name] = load(name)[:2]
            except (OSError, ValueError) as error:
                data[name] = None
                print(f"{name}: skipped ({error})")
        if data[name] is None:
            continue
        if part == "radius":
            night.store(piece, tables.cross_validated_radius(*data[name]))
        elif f"{name}/radius" in night.found:
            night.store(piece, measure(*data[name], night.found[f"{name}/radius"], int(part), method[0], seconds))
    report(night.found, methods, hours, json)


def measure(X: Any, y: np.ndarray, radius: float, table: int, label: str, seconds: float) -> dict[str, float | None]:
    """Return the seconds to each target; None where the share of the time was not enough."""
    ball = cg.constraints.L1Ball(radius)
    if table == 3:
        problem = cg.Problem(X, y, cg.losses.Logistic(), ball)
        solver = tables.convex_methods(problem.n_samples)[label]
        cg.minimize(problem, solver, max_steps=30)  # compile
        trials = n_trials(seconds) if label in tables.RANDOM else 1
        runs = [tables.run(problem, solver, seconds / trials, seed) for seed in range(trials)]
        times = {t: np.mean([tables.first_time(trace, t) for trace in runs]) for t in tables.CONVEX_TARGETS}
    else:
        problem = cg.Problem(X, (y + 1) / 2, cg.losses.SigmoidSquared(), ball)
        if label == "corrective":
            trace = cg.minimize(problem, label, tol=1e-8, max_time=seconds, max_steps=1000).trace
            times = {t: tables.first_time(trace, t) for t in tables.NON_CONVEX_TARGETS}
        else:
            # Runs of K = 10, 40, 160, ... steps: the last of them takes most of the time.
            times = tables.non_convex_times(problem, label, seconds / (2.0 * n_trials(seconds)), n_trials(seconds))
    return {f"{target:.0e}": None if np.isnan(value) else float(value) for target, value in times.items()}


def n_trials(seconds: float) -> int:
    """Return the number of runs of what is random: three, as in the paper, if there is time for them."""
    return 3 if seconds >= 30.0 else 1


def report(found: dict[str, Any], methods: dict[int, list[str]], hours: float, json: pathlib.Path | None) -> None:
    """Print seconds by target, the speed-up of the better TUFW over the best rival, and that of the paper."""
    out = Report(
        str(pathlib.Path(__file__).with_name("tables.py")), "Xiong & Freund, Tables 3 and 4: seconds to a gap."
    )
    for table, labels in methods.items():
        targets = tables.CONVEX_TARGETS if table == 3 else tables.NON_CONVEX_TARGETS
        paper = tables.PAPER_3 if table == 3 else tables.PAPER_4
        rows = []
        for name in tables.ALL:
            times = {label: found.get(f"{name}/{table}/{label}") for label in labels}
            if any(cells is None for cells in times.values()):
                continue
            for target in targets:
                row = [_or_inf(times[label][f"{target:.0e}"]) for label in labels]  # type: ignore[index]
                ours, rivals = (
                    min(value for label, value in zip(labels, row) if label in group)
                    for group in (("SBD", "DBD"), tables.RIVALS)
                )
                speed = rivals / ours if max(rivals, ours) < np.inf else None
                rows.append([name, f"{target:.0e}", *row, speed, paper.get((name, target))])
        columns = ["data", "gap", *labels, "speed-up", "paper"]
        note = f"{hours:g} hours divided among all pieces; blank: not within the share of the time, or no such cell. "
        note += "Seconds are processor time."
        out.table(f"Table {table}: seconds", columns, rows, note)
        print(f"\nTable {table}\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
        for row in rows:
            print("| " + " | ".join(_shown(cell) for cell in row) + " |")
    out.write(json)


def _or_inf(value: float | None) -> float:
    return np.inf if value is None else value


def _shown(cell: Any) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    return f"{cell:.3g}" if cell < np.inf else ""
