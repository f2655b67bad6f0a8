"""Run a compiled kernel over ranges of a long loop on all cores.

Kernels release the interpreter lock, so plain threads are enough: they survive ``fork`` (the child starts its own),
need no threading layer of numba, and cost about 20 microseconds per task.
"""

import concurrent.futures
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numba import config
from numba.np.ufunc import parallel

from condgrad.compiled import is_importing

_MIN_WORK = 300_000  # multiply-adds per thread, below which one more thread does not pay on a busy machine

_pool: concurrent.futures.ThreadPoolExecutor | None = None
_own = threading.local()  # .most: the number of threads that passes started by this thread may use

T = TypeVar("T")


def n_threads() -> int:
    """Return the number of threads that passes over the data may use.

    NUMBA_NUM_THREADS sets it (joblib sets it to the share of each of its processes). It is at most the number given to
    ``numba.set_num_threads``, the limit of OpenMP (by threadpoolctl or OMP_NUM_THREADS), and that of :func:`at_most`.
    """
    most = min(int(config.NUMBA_NUM_THREADS), getattr(_own, "most", sys.maxsize))
    if most > 1 and getattr(parallel, "_is_initialized", False):  # else nobody has asked numba for fewer
        most = min(most, int(parallel.get_num_threads()))
    if most > 1 and "threadpoolctl" in sys.modules:  # else nobody has asked it for fewer
        most = min(most, _left_by_threadpoolctl())
    return max(1, most)


@contextlib.contextmanager
def at_most(count: int) -> Iterator[None]:
    """Let the passes of this thread use at most ``count`` threads: its share while others run, too."""
    before = getattr(_own, "most", sys.maxsize)
    _own.most = min(before, max(1, count))
    try:
        yield
    finally:
        _own.most = before


class _OneBlasThread:
    """The number of blocks of code that want BLAS on one thread, and how to end that: it is a limit of the process."""

    def __init__(self) -> None:
        self.lock, self.count, self.end = threading.Lock(), 0, contextlib.ExitStack()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            self.count += 1
            if self.count == 1:
                self.end.enter_context(_controller().limit(limits=1, user_api="blas"))
        try:
            yield
        finally:
            with self.lock:
                self.count -= 1
                if self.count == 0:
                    self.end.close()


# For factors of matrices of some hundred rows: more threads of BLAS save little there, and on a busy machine each call
# waits until all of them have had their turn.
one_blas_thread = _OneBlasThread()


@functools.lru_cache(maxsize=1)
def _controller() -> Any:
    """Return the controller of the thread pools; the search for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 (its BLAS should be among them)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _left_by_threadpoolctl() -> int:
    """Return the threads that OpenMP may use in this thread, or BLAS where OpenMP is not loaded."""
    pools = _pools("sklearn" in sys.modules)  # sklearn loads OpenMP
    kinds = [[pool for pool in pools if pool.user_api == api] for api in ("openmp", "blas")]
    chosen = kinds[0] or kinds[1]
    return min((int(pool.num_threads or sys.maxsize) for pool in chosen), default=sys.maxsize)


@functools.lru_cache(maxsize=2)
def _pools(has_openmp: bool) -> list[Any]:
    """Return the libraries that threadpoolctl finds; the search takes milliseconds, reading their limits does not."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().lib_controllers)


def cut(n: int, work: float, offsets: np.ndarray | None = None) -> np.ndarray:
    """Return the borders of ranges that divide ``range(n)`` into equal shares of ``work``, one per useful thread.

    The work of item i is ``offsets[i + 1] - offsets[i]`` (an ``indptr``); without it all items cost the same.
    """
    parts = min(n, int(work // _MIN_WORK))
    parts = max(1, min(parts, n_threads())) if parts > 1 else 1
    if parts == 1:
        return np.array([0, n])
    if offsets is None:
        return np.linspace(0, n, parts + 1).astype(np.int64)
    wanted = np.linspace(float(offsets[0]), float(offsets[-1]), parts + 1)[1:-1]
    return np.concatenate(([0], np.searchsorted(offsets, wanted), [n])).astype(np.int64)


def run(task: Callable[[int, int], T], borders: np.ndarray) -> list[T]:
    """Return ``[task(start, stop), ...]`` over the ranges, run in parallel."""
    if len(borders) == 2:
        return [task(int(borders[0]), int(borders[1]))]
    ranges = list(zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True))
    if is_importing():
        return [task(start, stop) for start, stop in ranges]
    futures = [_executor().submit(task, start, stop) for start, stop in ranges[1:]]
    first = task(*ranges[0])  # the calling thread works too
    return [first, *(future.result() for future in futures)]


def _executor() -> concurrent.futures.ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = concurrent.futures.ThreadPoolExecutor(max(1, int(config.NUMBA_NUM_THREADS) - 1), "condgrad")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
