"""Announce that kernels are being compiled, if that takes longer than a second."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from condgrad.compiled import store

_PATIENCE = 1.0  # seconds of compilation before it is announced


class _Listener:
    """Writes one line when the compilations recorded have taken a second together, once for each combination."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write
        self.seconds = 0.0
        self.said: set[str] = set()
        self.losses: dict[str, None] = {}  # in the order of their first compilation
        self.sets: dict[str, None] = {}

    def record(self, classes: Iterable[type]) -> None:
        """Record the losses and sets that a kernel is compiled for."""
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
            until = "in every new process, as no cache folder can be written (set NUMBA_CACHE_DIR to one that can)"
        self.write(f"compiling kernels{what and f' for {what}'}, {until} ...")


_listeners = [_Listener(logging.getLogger("condgrad").info)]  # only the last one is active


@contextlib.contextmanager
def announce_to(write: Callable[[str], None]) -> Iterator[None]:
    """Pass the line to ``write`` within the block, not to the logger "condgrad"."""
    listener = _Listener(write)
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def announced(classes: Iterable[type]) -> Iterator[None]:
    """Announce the compilation in the block if it takes long; ``classes`` are those of the kernel's arguments."""
    listener = _listeners[-1]
    listener.record(classes)
    began = time.perf_counter()
    alarm = threading.Timer(max(0.0, _PATIENCE - listener.seconds), listener.say)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()
        listener.seconds += time.perf_counter() - began
