"""Ctrl-C as a flag: the loop stops between two blocks of steps, where its state is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


class Interrupts:
    """While entered, the first Ctrl-C is a request that ``heard`` tells of; a second one raises KeyboardInterrupt.

    Inside each other they share one request, so that it ends a run, the path that the run is a point of and the folds
    that the path belongs to, whoever looks first. Runs in other threads hear it too. A request that came too late for
    anybody to act on (in the last step of a run) is passed on, when the outermost one is left, to the handler that was
    there before: in a plain program that raises KeyboardInterrupt.
    """

    _outermost: Interrupts | None = None  # the one that holds the handler of the signal

    def __init__(self) -> None:
        self._is_requested = self._is_acted_on = False
        self._previous: Callable[[int, FrameType | None], object] | int | None = None

    def __enter__(self) -> Interrupts:
        # Python runs handlers in the main thread alone, and can put back those alone that it has installed.
        if Interrupts._outermost is None and _is_main_thread() and signal.getsignal(signal.SIGINT) is not None:
            self._previous = signal.signal(signal.SIGINT, self._request)
            Interrupts._outermost = self
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if Interrupts._outermost is not self:
            return
        Interrupts._outermost = None
        signal.signal(signal.SIGINT, self._previous)
        is_ending = kind is not None and issubclass(kind, KeyboardInterrupt)
        if self._is_requested and not (self._is_acted_on or is_ending):
            signal.raise_signal(signal.SIGINT)

    def heard(self) -> bool:
        """Tell whether Ctrl-C was pressed; who asks has to stop then, as the request goes no further."""
        holder = Interrupts._outermost
        if holder is None or not holder._is_requested:
            return False
        # What another thread does about it is not known here, where the handler may be waited for.
        holder._is_acted_on = holder._is_acted_on or _is_main_thread()
        return True

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self._is_requested:
            raise KeyboardInterrupt
        self._is_requested = True


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
