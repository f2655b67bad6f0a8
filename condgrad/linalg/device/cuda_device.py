"""CudaDevice: a GPU of NVIDIA, through CuPy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from condgrad.linalg.device.base import Argument, Device, DeviceArray

_SMALL = 2**18  # bytes below which a copy to ordinary memory costs no more than one to pinned memory
_PLAIN_SHARED = 48 * 1024  # bytes of shared memory that a block has without asking for more


class CudaDevice(Device):
    """The current GPU of CuPy."""

    def __init__(self) -> None:
        import cupy
        import cupyx.scipy.sparse

        self.xp, self.sparse, self._empty_pinned = cupy, cupyx.scipy.sparse, cupyx.empty_pinned
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.name = properties["name"].decode()
        self.n_processors = int(properties["multiProcessorCount"])

    @functools.cache  # noqa: B019  there is one device for the life of the process
    def _kernel(self, text: str, name: str, shared_bytes: int) -> Any:
        kernel = self.xp.RawKernel(text, name, options=("-std=c++17",))
        if shared_bytes > _PLAIN_SHARED:
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        return kernel

    def launch(
        self, text: str, name: str, grid: tuple[int, int], n_threads: int, shared_bytes: int, args: Sequence[Argument]
    ) -> None:
        """Run a kernel; CuPy compiles each text once and keeps it on disk."""
        there = tuple(np.uintp(0) if arg is None else arg for arg in args)
        self._kernel(text, name, shared_bytes)(grid, (n_threads,), there, shared_mem=shared_bytes)

    @functools.cache  # noqa: B019
    def n_blocks(self, text: str, name: str, n_threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a kernel the device can run at the same time."""
        function = self._kernel(text, name, shared_bytes).kernel
        driver = self.xp.cuda.driver
        each = driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, n_threads, shared_bytes)
        return max(1, int(each)) * self.n_processors

    def to_host(self, array: DeviceArray) -> np.ndarray:
        """Return a copy of an array in the memory of the host."""
        if array.nbytes < _SMALL:
            host: np.ndarray = self.xp.asnumpy(array)
            return host
        pinned: np.ndarray = self._empty_pinned(array.shape, array.dtype)
        self.xp.asnumpy(array, out=pinned)
        return pinned

    def to_device(self, array: np.ndarray) -> DeviceArray:
        """Return a copy of an array in the memory of the device."""
        return self.xp.asarray(array)

    def free_bytes(self) -> int:
        """Return how much memory of the device is free."""
        return int(self.xp.cuda.runtime.memGetInfo()[0]) + int(self.xp.get_default_memory_pool().free_bytes())
