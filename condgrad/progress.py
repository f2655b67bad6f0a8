"""Show the records of a run: the user's callback, a progress line on the terminal, or both."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from condgrad.trace import Progress


def check_callback(callback: Any) -> None:
    """Raise unless ``callback`` can be called."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable with one argument, a Progress; got {callback!r}.")


@contextlib.contextmanager
def show(callback: Callable[[Progress], Any] | None, verbose: bool) -> Iterator[Callable[[Progress], bool]]:
    """Yield a function that shows a record, calls ``callback`` with it, and returns whether to stop."""
    with contextlib.ExitStack() as stack:
        listeners = [] if callback is None else [callback]
        if verbose:
            listeners.append(stack.enter_context(_progress_line()))

        def report(progress: Progress) -> bool:
            return any([listener(progress) for listener in listeners])  # all are told, even if the first says stop

        yield report


@contextlib.contextmanager
def _progress_line() -> Iterator[Callable[[Progress], None]]:
    """Yield a listener that keeps one live line on a terminal, or writes a line per record elsewhere."""
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        yield lambda progress: print(_line(progress), file=sys.stderr)
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda progress: print(_line(progress), file=sys.stderr)
        return
    with Live(console=console, refresh_per_second=8) as live:
        yield lambda progress: live.update(_line(progress))


def _line(progress: Progress) -> str:
    return (
        f"step {progress.step:>8}  epoch {progress.epoch:>8.1f}  objective {progress.objective:<12.8g}  "
        f"gap {progress.gap:<9.3g}  nonzero {progress.n_nonzero:>6}  {progress.seconds:>7.2f} s"
    )
