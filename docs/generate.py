"""Parts of pages that are made from the library and from results of benchmarks, so that they stay true.

A page holds a line such as ``<!-- made: solvers -->``; when Sphinx reads the page, the Markdown made here takes its
place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import condgrad as cg

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MARK = re.compile(r"^<!-- made: (\w+) -->$", flags=re.MULTILINE)


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    columns = list(columns)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def first_sentence(kind: type) -> str:
    """Return the first line of a docstring as Markdown that shows it as it is, without the roles of Sphinx."""
    line = (kind.__doc__ or "").strip().splitlines()[0]
    line = re.sub(r":\w+:`~?\.?([\w.]+)`", r"\1", line).replace("``", "")
    return re.sub(r"([\\|*_<>`$\[\]])", r"\\\1", line)


def registered(module: str) -> str:
    """Return a table of what a module has by name: the name, the class, and its first sentence."""
    kinds: dict[str, type] = getattr(cg, module).REGISTERED
    link = f"generated/condgrad.{module}."
    rows = (
        [f'`"{name}"`', f"[`{kind.__name__}`]({link}{kind.__name__})", first_sentence(kind)]
        for name, kind in kinds.items()
    )
    return table(["name", "class", "what it is"], rows)


def _cell(cell: str | float | None) -> str:
    if cell is None:
        return ""
    return cell.replace("|", "\\|") if isinstance(cell, str) else f"{cell:,.4g}"


def _section(result: dict[str, Any]) -> str:
    """Return one run of a benchmark: the question, how it was measured, and its tables."""
    machine = ", ".join(f"{value} {key}" if key == "cores" else str(value) for key, value in result["machine"].items())
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    parts = [
        f"### {result['question']}",
        f"```console\n$ {result['command']}\n```",
        f"{result['date']}; {machine}; {versions}.",
    ]
    for one in result["tables"]:
        parts += [
            f"**{one['caption']}**",
            table(one["columns"], ([_cell(cell) for cell in row] for row in one["rows"])),
            one["note"],
        ]
    return "\n\n".join(part for part in parts if part)


def results() -> str:
    """Return all results that are stored, in the order of their files."""
    return "\n\n".join(
        _section(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(RESULTS.glob("*.json"))
    )


def wishes() -> str:
    """Return a table of the wishes of docs/wishes.md, in the order of their numbers, with links."""
    text = (Path(__file__).parent / "wishes.md").read_text(encoding="utf-8")
    found = re.findall(r"^### (\d+)\. (.*)\n\n\*([a-z ]+)\.\*", text, flags=re.MULTILINE)
    return table(["", "wish", "here"], ([number, wish, how] for number, wish, how in sorted(found, key=_number)))


def _number(wish: tuple[str, str, str]) -> int:
    return int(wish[0])


MADE: dict[str, Callable[[], str]] = {
    "solvers": lambda: registered("solvers"),
    "losses": lambda: registered("losses"),
    "sets": lambda: registered("constraints"),
    "results": results,
    "wishes": wishes,
}


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put what is made in the place of its marks."""
    source[0] = MARK.sub(lambda found: MADE[found[1]](), source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
