"""Ctrl-C as a flag: the loop stops between two blocks of steps, where its state is consistent; the end of max_time."""

from __future__ import annotations

import contextlib
import contextvars
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from condgrad.linalg import convert

# When the time of the present call is over, in the time of time.perf_counter; each thread has its own value.
_end: contextvars.ContextVar[float] = contextvars.ContextVar("end", default=math.inf)

# When long passes of the present run are given up, in the time of time.perf_counter; each thread has its own value.
_deadline: contextvars.ContextVar[float] = contextvars.ContextVar("deadline", default=math.inf)


def as_seconds(max_time: float | None) -> float:
    """Return the setting ``max_time`` as a number of seconds, inf for None."""
    if max_time is None:
        return math.inf
    return convert.as_number(max_time, "max_time", low=0.0, what="a number of at least 0, or None")


@contextlib.contextmanager
def at_most(max_time: float | None) -> Iterator[None]:
    """Let all that runs in this context end after ``max_time`` seconds, and with the contexts around it.

    Runs, paths and searches look at the clock themselves (:func:`time_is_over`, :func:`end_of_time`), and return what
    they have found. What other threads do in the context must be told them.
    """
    end = time.perf_counter() + as_seconds(max_time)
    before = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(before)


def end_of_time() -> float:
    """Return when the time of the present call is over, in the time of time.perf_counter; inf without a limit."""
    return _end.get()


def time_left(share: float = 1.0) -> float | None:
    """Return this share of the seconds that the present call still has, None without a limit."""
    return None if _end.get() == math.inf else share * max(0.0, _end.get() - time.perf_counter())


def time_is_over() -> bool:
    """Return whether the time of the present call is over."""
    return time.perf_counter() >= _end.get()


class PassInterruptedError(Exception):
    """A long pass over the data was given up: Ctrl-C came, or the time was over."""


class Interrupts:
    """A context in which the first Ctrl-C only sets a flag (``heard``); a second Ctrl-C raises KeyboardInterrupt.

    Nested contexts share one flag, so that it ends a run, the path to which the run belongs and the folds to which the
    path belongs, whichever of them reads it first. Runs in other threads read the same flag. If nobody reads the flag
    after Ctrl-C (it came in the last step of a run), the signal is sent again at the end of the outermost context, to
    the previous handler: in a plain program that raises KeyboardInterrupt. A process that ignores Ctrl-C, as those do
    that a shell starts by ``nohup`` or, in a script, by ``&``, goes on ignoring it.

    A run also sets here when its long passes end because its time is over (``end_passes_at``). Each context has its own
    deadline, which ends with it: runs inside of runs, or in other threads, have limits of their own.
    """

    _outermost: Interrupts | None = None  # the outermost context, which installed the signal handler

    def __init__(self) -> None:
        self._is_requested = self._is_acted_on = False
        self._previous: Callable[[int, FrameType | None], object] | int | None = None

    def __enter__(self) -> Interrupts:
        self._before = _deadline.set(math.inf)
        # Python runs handlers only in the main thread, and can restore only handlers that were installed from Python.
        is_ours = Interrupts._outermost is None and _is_main_thread()
        if is_ours and signal.getsignal(signal.SIGINT) not in (None, signal.SIG_IGN):
            self._previous = signal.signal(signal.SIGINT, self._request)
            Interrupts._outermost = self
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        _deadline.reset(self._before)
        if Interrupts._outermost is not self:
            return
        Interrupts._outermost = None
        signal.signal(signal.SIGINT, self._previous)
        is_ending = kind is not None and issubclass(kind, KeyboardInterrupt)
        if self._is_requested and not (self._is_acted_on or is_ending):
            signal.raise_signal(signal.SIGINT)

    def heard(self) -> bool:
        """Return whether Ctrl-C was pressed; if so, the caller must stop, as the signal is not sent again."""
        holder = Interrupts._outermost
        if holder is None or not self.is_waiting():
            return False
        # Only a reader in the main thread counts: it is not known here how another thread reacts.
        holder._is_acted_on = holder._is_acted_on or _is_main_thread()
        return True

    @staticmethod
    def is_waiting() -> bool:
        """Return whether Ctrl-C was pressed; the caller need not stop."""
        holder = Interrupts._outermost
        return holder is not None and holder._is_requested

    def end_passes_at(self, deadline: float) -> None:
        """Let long passes end at this time, in the time of time.perf_counter, as they do after Ctrl-C."""
        _deadline.set(deadline)

    @staticmethod
    def end_pass() -> None:
        """Raise PassInterruptedError if Ctrl-C was pressed or the time is over; long passes call this now and then."""
        if Interrupts.is_waiting() or time.perf_counter() >= _deadline.get():
            raise PassInterruptedError

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self._is_requested:
            raise KeyboardInterrupt
        self._is_requested = True


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
