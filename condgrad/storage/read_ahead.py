"""read_ahead: the next chunks are read by a few threads while the present one is worked on."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from condgrad.storage.array_files import Buffer

N_READERS = 2  # a disk serves two requests faster than one; more readers would take time from the kernels

Item = TypeVar("Item")
T = TypeVar("T")


Read: TypeAlias = Callable[[Item, Buffer, Callable[[], bool]], T]  # (item, buffer, stopped) -> what was read


def read_ahead(items: Sequence[Item], read: Read[Item, T], n_readers: int = N_READERS) -> Iterator[T]:
    """Yield ``read(item, buffer, stopped)`` for all items in order; a yielded value is valid until the next one.

    One buffer is worked on while each of the readers fills another one.

    A read raises :class:`~condgrad.storage.array_files.StoppedError` soon after ``stopped()`` becomes true. The readers
    end with the iteration, also if it is left early or if a read fails: no thread stays behind.
    """
    if len(items) == 1:
        yield read(items[0], Buffer(), bool)
        return
    stop = threading.Event()
    buffers = [Buffer() for _ in range(min(n_readers + 1, len(items)))]
    readers = concurrent.futures.ThreadPoolExecutor(n_readers, "condgrad-reader")

    def begin(k: int) -> concurrent.futures.Future[T]:
        buffer = buffers[k % len(buffers)]
        buffer.clear()
        return readers.submit(read, items[k], buffer, stop.is_set)

    try:
        waiting = [begin(k) for k in range(len(buffers))]
        for k in range(len(items)):
            yield waiting.pop(0).result()
            if k + len(buffers) < len(items):
                waiting.append(begin(k + len(buffers)))
    finally:
        stop.set()
        readers.shutdown(wait=True, cancel_futures=True)
