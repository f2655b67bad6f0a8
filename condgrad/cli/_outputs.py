"""Output of commands. Files are checked before any work, so that none is lost, and written in one step."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import argparse

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_PICTURES = (".png", ".pdf", ".svg")


def check_outputs(*files: str | None, force: bool) -> None:
    """Raise if a file could not be written, or exists and ``force`` is not set."""
    given = [Path(file) for file in files if file is not None]
    for k, path in enumerate(given):
        if str(path) == "-":
            raise ValueError("'-' stands for standard input; give the name of a file to write.")
        if path.is_dir():
            raise ValueError(f"{str(path)!r} is a folder; give the name of a file.")
        if not path.parent.is_dir():
            raise ValueError(f"the folder of {str(path)!r} does not exist; create it first.")
        if path.exists() and not force:
            raise ValueError(f"{str(path)!r} exists; use --force to overwrite it.")
        if path.resolve() in [other.resolve() for other in given[:k]]:
            raise ValueError(f"{str(path)!r} is asked for twice; use two names.")


def check_plot(file: str | None) -> None:
    """Raise if a picture could not be drawn."""
    if file is None:
        return
    if Path(file).suffix.lower() not in _PICTURES:
        raise ValueError(f"--plot writes {', '.join(_PICTURES)}; got {file!r}.")
    try:
        import matplotlib
    except ImportError:
        raise ImportError("--plot needs matplotlib: pip install condgrad[plot].") from None
    matplotlib.use("agg")


def save_plot(ax: Axes, file: str) -> None:
    """Write the figure of ``ax`` and close it."""
    import matplotlib.pyplot as plt

    from condgrad.run.sealed_file import write_file

    buffer = io.BytesIO()
    figure = cast("Figure", ax.figure)
    figure.savefig(buffer, format=Path(file).suffix[1:].lower(), dpi=150)
    plt.close(figure)
    write_file(file, buffer.getbuffer())


def note(args: argparse.Namespace, text: str) -> None:
    """Print a message to standard error, unless --quiet."""
    if not args.quiet:
        print(text, file=sys.stderr, flush=True)


def show(args: argparse.Namespace, rows: Mapping[str, object], data: dict[str, object]) -> None:
    """Print results: ``rows`` as text, or ``data`` with --json."""
    if args.json:
        print(json.dumps(_plain(data), allow_nan=False))
        return
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")


def print_table(columns: list[str], rows: list[tuple[str, ...]]) -> None:
    """Print rows of text under their headings, aligned to the right."""
    widths = [max(len(row[k]) for row in [tuple(columns), *rows]) for k in range(len(columns))]
    for row in [tuple(columns), *rows]:
        print("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)))


@contextlib.contextmanager
def progress_of(args: argparse.Namespace, n_parts: int) -> Iterator[Callable[[int, str, bool], None]]:
    """Yield a function that reports progress: its number of finished parts, a text, and the time that may be left.

    Its last argument says whether to print a line in a log; on a terminal, one line is updated. --quiet: no report.
    """
    if args.quiet:
        yield lambda n_done, text, is_line: None
        return
    from condgrad.run.progress import line_writer

    with line_writer() as (write, is_live):
        began = time.perf_counter()

        def report(n_done: int, text: str, is_line: bool) -> None:
            if is_live or is_line:
                passed = time.perf_counter() - began
                write(f"{text}  {passed:.1f} s  {passed * (n_parts / n_done - 1.0):.1f} s left")

        yield report


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: no numpy types, and None for nan and infinities."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
