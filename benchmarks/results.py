"""Results of benchmarks as JSON: a script prints its tables, and ``--json FILE`` writes them for the site, too.

Every file in benchmarks/results/ becomes a section of the page "Benchmarks" (docs/benchmarks.md), with the command that
made it, its date and its machine. Two files of the same benchmark can be compared number by number.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
ALWAYS = ("condgrad", "numpy", "scipy", "numba", "scikit-learn")
Cell = str | float | None


class Report:
    """The tables of one run of a benchmark, and what is needed to run it again.

    Parameters
    ----------
    script : str
        ``__file__`` of the benchmark.
    question : str
        What it measures, as one sentence.
    peers : names of packages
        Their versions are recorded where they are installed.
    """

    def __init__(self, script: str, question: str, peers: Iterable[str] = ()) -> None:
        self.script = Path(script).resolve()
        self.question = question
        self.peers = tuple(peers)
        self.tables: list[dict[str, object]] = []

    def table(self, caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], note: str = "") -> None:
        """Add a table. A cell is a word, a number, or None for what was not reached or not run."""
        shown = [[_plain(cell) for cell in row] for row in rows]
        wrong = [row for row in shown if len(row) != len(columns)]
        if wrong:
            raise ValueError(f"a row of {caption!r} has {len(wrong[0])} cells for {len(columns)} columns: {wrong[0]}.")
        self.tables.append({"caption": caption, "columns": list(columns), "rows": shown, "note": note})

    def write(self, path: Path | None) -> None:
        """Write the file; without a path or a table do nothing."""
        if path is None or not self.tables:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.content(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def content(self) -> dict[str, object]:
        """Return what the file says."""
        name = self.script.relative_to(ROOT).as_posix()
        arguments = [word for word in sys.argv[1:] if word != "--json" and not word.endswith(".json")]
        return {
            "benchmark": name,
            "question": self.question,
            "command": shlex.join(["python", name, *arguments]),
            "date": datetime.date.today().isoformat(),
            "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.system()},
            "versions": {"python": platform.python_version(), **_versions((*ALWAYS, *self.peers))},
            "tables": self.tables,
        }


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json FILE`` to the options of a benchmark."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables as JSON, too")


def processor() -> str:
    """Return the model of the processor, as far as the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def _plain(cell: Cell) -> Cell:
    """Return a number as Python's float with four digits, and what is not a number as None."""
    if cell is None or isinstance(cell, str):
        return cell
    return float(f"{float(cell):.4g}") if abs(float(cell)) < float("inf") else None


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
