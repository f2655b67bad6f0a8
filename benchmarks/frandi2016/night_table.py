"""Tables 4 and 5 of Frandi et al. in a stated time: one piece for each data set, method and repetition."""

from __future__ import annotations

import pathlib
import time
from typing import Any

import numpy as np
import paths
import tables
from night import Night
from results import Report

FIELDS = ("seconds", "iterations", "products", "active")
RUNS = 10  # of what is random, as in the paper
NAMES = ("pyrim", "triazines", "imdb")
FRANK_WOLFE = tuple(f"FW {share:.0%}" for share in tables.SHARES)


def run(hours: float, found: pathlib.Path, json: pathlib.Path | None, count: int) -> None:
    """Do the pieces of the first repetition, then those of the others; one that would not fit is left out."""
    methods = (*paths.BASELINES, *FRANK_WOLFE)
    pieces = [f"{name}/{method}/0" for name in NAMES for method in methods]
    pieces += [f"{name}/{method}/{seed}" for seed in range(1, RUNS) for name in NAMES for method in FRANK_WOLFE]
    night, held = Night(hours, found, pieces), dict[str, Any]()
    for piece, _ in night:
        name, method, seed = piece.split("/")
        # A path cannot be cut short. Its time is known once the method has run on these data.
        if night.found.get(f"{name}/{method}/0", {}).get("wall", 0.0) > night.end - time.monotonic():
            continue
        if name not in held:
            held.clear()  # one data set at a time: Triazines has a gigabyte
            try:
                data = tables.read(name, quick=False)
                held[name] = data, paths.grids(data, count)[0]
            except FileNotFoundError as error:
                held[name] = None
                print(f"{name} is left out: {error}")
        if held[name] is not None:
            night.store(piece, measure(*held[name], method, int(seed)))
    report(night.found, hours, json, count)


def measure(data: Any, parameters: paths.Grids, method: str, seed: int) -> dict[str, float]:
    """Return what the path of a method took."""
    start = time.perf_counter()
    if method in paths.BASELINES:
        path = paths.baseline(method, data, parameters, seed)
    else:
        share = dict(zip(FRANK_WOLFE, tables.SHARES))[method]
        path = paths.randomized(data, parameters.radii, share, seed, patience=0.0)
    return {field: float(getattr(path, field)) for field in FIELDS} | {"wall": time.perf_counter() - start}


def report(found: dict[str, Any], hours: float, json: pathlib.Path | None, count: int) -> None:
    """Print each table with the paper's columns beside ours."""
    out = Report(
        str(pathlib.Path(__file__).with_name("tables.py")), "Frandi et al. (2016), Tables 4 and 5: whole paths."
    )
    for name in NAMES:
        rows = []
        for method in (*paths.BASELINES, *FRANK_WOLFE):
            runs = [found[f"{name}/{method}/{k}"] for k in range(RUNS) if f"{name}/{method}/{k}" in found]
            if runs:
                printed = tables.PAPER.get(name, {}).get(method, (None,) * 4)
                ours = [float(np.mean([run[field] for run in runs])) for field in FIELDS]
                rows.append([method, len(runs), *(cell for pair in zip(ours, printed) for cell in pair)])
        columns = ["method", "runs", *(word for field in FIELDS for word in (field, f"{field} (paper)"))]
        if rows:
            out.table(f"{name}, {count} parameters", columns, rows, f"{hours:g} hours divided among all pieces.")
            print(f"\n{name}, {count} parameters\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
            for row in rows:
                print("| " + " | ".join(f"{c:.4g}" if isinstance(c, float | int) else c or "" for c in row) + " |")
    out.write(json)
