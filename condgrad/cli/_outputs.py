"""What commands print: messages and progress on standard error, results on standard output."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from condgrad.linalg.names import visible
from condgrad.storage.whole_files import remedy

if TYPE_CHECKING:
    import argparse


def note(args: argparse.Namespace, text: str) -> None:
    """Print a message to standard error, unless --quiet."""
    if not args.quiet:
        print(visible(text), file=sys.stderr, flush=True)


def complain(args: argparse.Namespace, sentence: str) -> None:
    """Print what went wrong to standard error, as one sentence."""
    print(f"condgrad {args.command}: {visible(' '.join(sentence.split()))}", file=sys.stderr)


def write_text(text: str) -> None:
    """Write text to standard output at once; where that is not possible, raise OSError with a sentence."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        close_output()
        raise OSError(f"standard output could not be written ({error.strerror}): {remedy(error)}.") from None


def close_output() -> None:
    """Drop what standard output has not written: Python would try it once more at the end, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(args: argparse.Namespace, rows: Mapping[str, object], data: dict[str, object]) -> None:
    """Print results: ``rows`` as text, or ``data`` with --json."""
    if args.json:
        write_text(json.dumps(_plain(data), allow_nan=False) + "\n")
        return
    width = max(map(len, rows))
    write_text("".join(f"{name:<{width}}  {visible(value)}\n" for name, value in rows.items()))


def print_table(columns: list[str], rows: list[tuple[str, ...]]) -> None:
    """Print rows of text under their headings, aligned to the right, and an empty line."""
    lines = [tuple(map(visible, line)) for line in (columns, *rows)]
    widths = [max(len(row[k]) for row in lines) for k in range(len(columns))]
    aligned = ("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)) for row in lines)
    write_text("\n".join(aligned) + "\n\n")


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
