"""Run a compiled kernel over ranges of a long loop on all cores.

Kernels release the interpreter lock, so plain threads serve: they survive ``fork`` (the child starts its own), need
no threading layer of numba, and cost about 20 microseconds to hand work to.
"""

import concurrent.futures
import os
from collections.abc import Callable

import numpy as np
from numba import config

from condgrad.compiled import is_importing

_MIN_WORK = 100_000  # multiply-adds a thread should have before handing work to it pays

_pool: concurrent.futures.ThreadPoolExecutor | None = None


def n_threads() -> int:
    """Return the number of threads that passes over the data may use (NUMBA_NUM_THREADS sets it)."""
    return int(config.NUMBA_NUM_THREADS)


def cut(n: int, work: float, offsets: np.ndarray | None = None) -> np.ndarray:
    """Return the borders of ranges of ``range(n)`` that share ``work`` evenly, as many as threads are worth it.

    ``offsets`` (an ``indptr``) says where the work of each item begins; without it all items cost the same.
    """
    parts = max(1, min(n_threads(), n, int(work // _MIN_WORK)))
    if parts == 1:
        return np.array([0, n])
    if offsets is None:
        return np.linspace(0, n, parts + 1).astype(np.int64)
    wanted = np.linspace(float(offsets[0]), float(offsets[-1]), parts + 1)[1:-1]
    return np.concatenate(([0], np.searchsorted(offsets, wanted), [n])).astype(np.int64)


def run(task: Callable, borders: np.ndarray) -> list:
    """Return ``[task(start, stop), ...]`` over the ranges, run side by side."""
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
        _pool = concurrent.futures.ThreadPoolExecutor(max(1, n_threads() - 1), "condgrad")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
