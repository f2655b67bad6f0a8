"""Open the text that a command reads, and show how far its reading is."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from condgrad.storage.sources.text import Text, TextFile

if TYPE_CHECKING:
    import argparse

_PATIENCE = 1.0  # seconds of reading before it is shown
_LOG_SECONDS = 10.0  # between two lines in a log


def open_text(file: str) -> Text:
    """Return a text file, or for "-" all of standard input, which some formats read twice; an empty one is refused."""
    if file == "-":
        content = sys.stdin.buffer.read()
        text, size = Text("standard input", io.BytesIO(content)), len(content)
    else:
        text = TextFile(Path(file))
        size = text.identity["size"]
    if size == 0:
        raise ValueError(f"{text.name} is empty.")
    return text


@contextlib.contextmanager
def reading(args: argparse.Namespace, name: str) -> Iterator[Callable[[int, float | None], None]]:
    """Yield a function that shows the number of samples so far, and the share of the file; --quiet: it shows nothing.

    On a terminal one line is updated; elsewhere a line is printed every ten seconds.
    """
    if args.quiet:
        yield lambda n_samples, share: None
        return
    from condgrad.run.progress import line_writer

    began = last = time.perf_counter()
    with line_writer() as (write, is_live):

        def report(n_samples: int, share: float | None) -> None:
            nonlocal last
            now = time.perf_counter()
            if now - began >= _PATIENCE and now - last >= (0.1 if is_live else _LOG_SECONDS):
                last = now
                shown = "" if share is None else f"  {share:.0%}"
                left = f"  {(now - began) * (1.0 / share - 1.0):.0f} s left" if share else ""
                write(f"reading {name}  {n_samples:,} samples{shown}  {now - began:.0f} s{left}")

        yield report
