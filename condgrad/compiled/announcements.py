"""Say that kernels are being compiled where that takes longer than people wait without asking."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from condgrad.compiled import store

_PATIENCE = 1.0  # seconds


class _Listener:
    """Tells one line when the compilations that it heard of have taken a second together; once for each kind."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write
        self.seconds = 0.0
        self.said: set[str] = set()
        self.losses: dict[str, None] = {}  # in the order in which they were met
        self.sets: dict[str, None] = {}

    def hear(self, classes: Iterable[type]) -> None:
        """Take note of what a kernel is compiled for."""
        for cls in classes:
            name = cls.__qualname__.rpartition(".")[2]
            if hasattr(cls, "lmo"):
                self.sets[name] = None
            elif hasattr(cls, "second_derivative"):
                self.losses[name] = None

    def say(self) -> None:
        """Write the line, unless it was written before."""
        what = " over ".join(", ".join(names) for names in (self.losses, self.sets) if names)
        if what in self.said:
            return
        self.said.add(what)
        if store.can_write():
            until = "once on this machine"
        else:
            until = "in every new process, as no cache folder can be written (NUMBA_CACHE_DIR names another)"
        self.write(f"compiling kernels{what and f' for {what}'}, {until} ...")


_listeners = [_Listener(logging.getLogger("condgrad").info)]  # the last one hears


@contextlib.contextmanager
def announce_to(write: Callable[[str], None]) -> Iterator[None]:
    """Within the block, hand the line to ``write`` and not to the logger "condgrad"."""
    listener = _Listener(write)
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def announced(classes: Iterable[type]) -> Iterator[None]:
    """Say so if what is compiled in the block makes people wait; ``classes`` are those of its arguments."""
    listener = _listeners[-1]
    listener.hear(classes)
    began = time.perf_counter()
    alarm = threading.Timer(max(0.0, _PATIENCE - listener.seconds), listener.say)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
        listener.seconds += time.perf_counter() - began
