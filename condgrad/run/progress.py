"""Show the records of a run: the user's callback, a progress line on the terminal, or both."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from condgrad.compiled import announce_to
from condgrad.linalg.names import visible
from condgrad.run.trace import Progress


class Limits(Protocol):
    """The limits at which a run stops."""

    tol: float
    relative_tol: float
    max_epochs: float
    max_steps: float
    max_time: float


def check_callback(callback: object) -> None:
    """Raise if ``callback`` is neither None nor callable."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable with one argument, a Progress; got {callback!r}.")


@contextlib.contextmanager
def show(
    callback: Callable[[Progress], object] | None, verbose: bool, limits: Limits | None = None
) -> Iterator[Callable[[Progress], bool]]:
    """Yield a function that shows a record, calls ``callback`` with it, and returns whether to stop.

    With ``limits`` (its ``tol``, ``relative_tol``, ``max_epochs``, ``max_steps``, ``max_time``) it also shows the
    remaining time.
    """
    with contextlib.ExitStack() as stack:
        listeners = [] if callback is None else [callback]
        if verbose:
            listeners.append(stack.enter_context(_progress_line(limits)))

        def report(progress: Progress) -> bool:
            return any([listener(progress) for listener in listeners])  # a list, so that all are called

        yield report


@contextlib.contextmanager
def _progress_line(limits: Limits | None) -> Iterator[Callable[[Progress], None]]:
    """Yield a callback that shows a record as a line."""
    pace, last = Pace(limits), None
    with line_writer() as (write, _):

        def listen(progress: Progress) -> None:
            nonlocal last
            if (progress.step, progress.gap) != last:  # a certificate repeats the record that it confirms
                last = progress.step, progress.gap
                write(_line(progress, pace))

        yield listen


@contextlib.contextmanager
def line_writer() -> Iterator[tuple[Callable[[str], None], bool]]:
    """Yield a function that shows a line, and whether the line is live.

    A live line is updated in place on a terminal; elsewhere each line is printed below the last. The compilation of
    kernels is announced by a line too.
    """
    with _lines() as (write, is_live), announce_to(write):
        yield write, is_live


@contextlib.contextmanager
def _lines() -> Iterator[tuple[Callable[[str], None], bool]]:
    try:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        yield _print_line, False
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _print_line, False
        return
    with Live(console=console, refresh_per_second=8) as live:
        yield lambda line: live.update(Text(visible(line))), True


def _print_line(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)


class Pace:
    """Steps per second and the remaining time of a run, by extrapolation of its gaps or from the nearest limit.

    The gaps of a run decrease like a power of the time (sublinear rates) or exponentially (linear rates). Both are
    extrapolated from the record at half the time and the last one; the shorter remaining time is used.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits
        self.began = 0.0  # time of the first record: compilation and the first pass come before it
        self.first_step: int | None = None  # not 0 if the run resumes from a checkpoint
        self.first_epoch = 0.0
        self.target = 0.0
        self.history: list[tuple[float, float]] = []  # seconds, best gap so far

    def add(self, progress: Progress) -> None:
        """Add a record to the history."""
        if self.first_step is None:
            self.began = time.perf_counter()
            self.first_step, self.first_epoch = progress.step, progress.epoch
            if self.limits is not None:
                self.target = max(self.limits.tol, self.limits.relative_tol * progress.gap)
        best = min(progress.gap, self.history[-1][1]) if self.history else progress.gap
        self.history.append((time.perf_counter() - self.began, best))

    def steps_per_second(self, progress: Progress) -> float:
        """Return the number of steps per second, 0 at the start."""
        seconds = self.history[-1][0]
        return (progress.step - (self.first_step or 0)) / seconds if seconds > 0.0 else 0.0

    def seconds_left(self, progress: Progress) -> float:
        """Return the remaining seconds, inf if they cannot be estimated yet."""
        if self.limits is None or progress.gap <= self.target:
            return 0.0 if self.limits is not None else math.inf
        now, by_gaps = self.history[-1][0], self._by_gaps()
        left = [by_gaps, max(0.0, self.limits.max_time - now)]
        if by_gaps < math.inf or self.target == 0.0:  # else the default limits would give hours after one step
            for done, first, most in (
                (progress.step, self.first_step or 0, self.limits.max_steps),
                (progress.epoch, self.first_epoch, self.limits.max_epochs),
            ):
                if done > first:
                    left.append(max(0.0, now * (most - done) / (done - first)))
        return min(left)

    def _by_gaps(self) -> float:
        (now, gap), target = self.history[-1], self.target
        earlier = [record for record in self.history if 0.0 < record[0] <= 0.5 * now]
        if not earlier or target <= 0.0 or not earlier[-1][1] > gap:
            return math.inf
        then, gap_then = earlier[-1]
        fallen, to_fall = math.log(gap_then / gap), math.log(gap / target)
        by_exponential = (now - then) * to_fall / fallen
        exponent = to_fall / fallen * math.log(now / then)
        by_power = now * math.expm1(exponent) if exponent < 50.0 else math.inf
        return min(by_exponential, by_power)


def _line(progress: Progress, pace: Pace) -> str:
    pace.add(progress)
    left = pace.seconds_left(progress)
    return (
        f"step {progress.step:>8}  epoch {progress.epoch:>8.1f}  objective {progress.objective:<12.8g}  "
        f"gap {progress.gap:<9.3g}  nonzero {progress.n_nonzero:>6}  {progress.seconds:>7.2f} s"
        f"  {_short(pace.steps_per_second(progress)):>5} steps/s" + (f"  {_duration(left)} left" if left < 1e7 else "")
    )


def _short(number: float) -> str:
    """Return a number in five characters or less."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def _duration(seconds: float) -> str:
    """Return a time in a readable form: 3.2 s, 4:05, 2:03:59."""
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
