"""The time that a computation takes, without the time in which its kernels are compiled or loaded."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

_lock = threading.Lock()
_running: list[Stopwatch] = []
_depth = threading.local()  # a kernel that is compiled may compile another


class Stopwatch:
    """Measures a ``with`` block; compilation in a thread without its own stopwatch is excluded from all running ones.

    (Passes over the data run on threads of ours, which compile for the thread that started the pass.)

    >>> with Stopwatch() as watch:
    ...     total = sum(range(10))
    >>> 0.0 <= watch.seconds < 1.0
    True
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread = threading.get_ident()
        self._compiling = 0  # how many threads compile for this block at the moment
        self._excluded = 0.0
        self._since = 0.0

    def __enter__(self) -> Stopwatch:
        with _lock:
            _running.append(self)
        self._began = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        ended = time.perf_counter()
        with _lock:
            _running.remove(self)
            if self._compiling:
                self._excluded += ended - self._since
        self.seconds = max(0.0, ended - self._began - self._excluded)

    def _begin(self) -> None:
        if self._compiling == 0:
            self._since = time.perf_counter()
        self._compiling += 1

    def _end(self) -> None:
        self._compiling -= 1
        if self._compiling == 0:
            self._excluded += time.perf_counter() - self._since


@contextlib.contextmanager
def compiling() -> Iterator[bool]:
    """Stop the watches of this thread, or all if it has none; yield whether this is the outermost compilation."""
    if getattr(_depth, "value", 0):
        yield False
        return
    _depth.value = 1
    thread = threading.get_ident()
    with _lock:
        own = [watch for watch in _running if watch._thread == thread]
        stopped = own or list(_running)
        for watch in stopped:
            watch._begin()
    try:
        yield True
    finally:
        _depth.value = 0
        with _lock:
            for watch in stopped:
                watch._end()
