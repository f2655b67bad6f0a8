"""What a command writes: refused before any work where it would destroy something, then written in one step."""

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
    """Raise where a file could not be written, or would replace one without ``force``."""
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
    """Raise where a picture could not be drawn."""
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
    """Say something beside the results, unless --quiet."""
    if not args.quiet:
        print(text, file=sys.stderr, flush=True)


def show(args: argparse.Namespace, rows: Mapping[str, object], data: dict[str, object]) -> None:
    """Print results: ``rows`` of words for people, or ``data`` with --json."""
    if args.json:
        print(json.dumps(_plain(data), allow_nan=False))
        return
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")


def print_table(columns: list[str], rows: list[tuple[str, ...]]) -> None:
    """Print rows of words under their headings, numbers to the right."""
    widths = [max(len(row[k]) for row in [tuple(columns), *rows]) for k in range(len(columns))]
    for row in [tuple(columns), *rows]:
        print("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)))


@contextlib.contextmanager
def telling(args: argparse.Namespace, n_parts: int) -> Iterator[Callable[[int, str, bool], None]]:
    """Yield a function that tells how many parts of the work are done, how, and how long the others may take.

    Its last argument says whether that is worth a line of its own; on a terminal, one line shows all. --quiet: none.
    """
    if args.quiet:
        yield lambda n_done, how, is_worth: None
        return
    from condgrad.run.progress import line_writer

    with line_writer() as (write, is_live):
        began = time.perf_counter()

        def tell(n_done: int, how: str, is_worth: bool) -> None:
            if is_live or is_worth:
                passed = time.perf_counter() - began
                write(f"{how}  {passed:.1f} s  {passed * (n_parts / n_done - 1.0):.1f} s left")

        yield tell


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: no numpy, and null for nan and infinities."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
