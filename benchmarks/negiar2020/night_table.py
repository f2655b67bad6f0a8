"""Figure 1 of Negiar et al. as a table, in a stated time: one run for each task, method and seed."""

from __future__ import annotations

import pathlib
import time
from typing import Any

import numpy as np
from benchmark_utils import METHODS, SEEDS, TASKS, course, recorded_steps
from night import Night
from results import Report

import condgrad as cg

EPOCHS = (1, 10, 100, 1000, 10_000)


def run(hours: float, found: pathlib.Path, json: pathlib.Path | None) -> None:
    """Follow every run as far as its share of the time allows, and print the table."""
    pieces = [f"{task}/{method}/{seed}" for seed in SEEDS for task in TASKS for method in METHODS]
    night, problems = Night(hours, found, [*(f"{task}/optimum" for task in TASKS), *pieces]), dict[str, Any]()
    for piece, seconds in night:
        name, method, *seed = piece.split("/")
        if name not in problems:
            try:
                problems[name] = TASKS[name].problem()
            except FileNotFoundError as error:
                problems[name] = None
                print(f"Skipped {name}: {error}")
        if problems[name] is None:
            continue
        if method == "optimum":
            best = cg.minimize(problems[name], "corrective", tol=1e-12, max_time=max(seconds, 10.0))
            night.store(piece, {"low": best.lower_bound, "high": best.objective})
        else:
            night.store(piece, follow(problems[name], method, int(seed[0]), seconds))
    report(night.found, hours, json)


def follow(problem: cg.Problem, method: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return the objective after each of some epochs that the time allows, and the largest objective met."""
    list(course(problem, method, seed, [0, 3]))  # compiles
    start, epochs, objectives = time.perf_counter(), list[float](), list[float]()
    for evaluations, w in course(problem, method, seed, recorded_steps(problem, EPOCHS[-1], 80)):
        epochs.append(evaluations / problem.n_samples)
        objectives.append(problem.objective(w))
        if time.perf_counter() - start > seconds:
            break
    return {"epochs": epochs, "objectives": objectives}


def report(found: dict[str, Any], hours: float, json: pathlib.Path | None) -> None:
    """Print the relative suboptimality (F - F*) / (f_max - F*) at the epochs that all methods reached."""
    report = Report(str(pathlib.Path(__file__).with_name("figure1.py")), "Negiar et al. (2020), Figure 1, as a table.")
    for name, task in TASKS.items():
        runs = {method: [found[key] for key in _keys(found, name, method)] for method in METHODS}
        if f"{name}/optimum" not in found or not all(runs.values()):
            continue
        low = found[f"{name}/optimum"]["low"]
        width = max(max(run["objectives"]) for group in runs.values() for run in group) - low
        reached = min(run["epochs"][-1] for group in runs.values() for run in group)
        rows: list[list[Any]] = []
        for epoch in [*(epoch for epoch in EPOCHS if epoch < reached), reached]:
            row: list[Any] = [f"{epoch:.3g}"]
            for group in runs.values():
                row.append(float(np.mean([(at(run, epoch) - low) / width for run in group])))
            rows.append(row)
        n_runs = min(len(group) for group in runs.values())
        note = f"Mean of {n_runs} runs; {hours:g} hours divided among all tasks, as far as they came on one machine."
        report.table(f"{task.title()}: relative suboptimality", ["epochs", *METHODS], rows, note)
        print(f"\n{task.title()} ({n_runs} runs)\n| epochs | " + " | ".join(METHODS) + " |\n" + "|---" * 4 + "|")
        for row in rows:
            print(f"| {row[0]} | " + " | ".join(f"{value:.1e}" for value in row[1:]) + " |")
    report.write(json)


def _keys(found: dict[str, Any], name: str, method: str) -> list[str]:
    return [f"{name}/{method}/{seed}" for seed in SEEDS if f"{name}/{method}/{seed}" in found]


def at(run: dict[str, Any], epoch: float) -> float:
    """Return the objective at an epoch, from the records around it."""
    return float(np.interp(epoch, run["epochs"], run["objectives"]))
