"""CudaDevice: a GPU of NVIDIA, through CuPy; CudaLane: pinned memory through which arrays are sent to it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from condgrad.linalg import threads
from condgrad.linalg.device.base import Argument, Device, DeviceArray, Lane

_SMALL = 2**18  # bytes below which a copy to ordinary memory costs no more than one to pinned memory
_ALIGNED = 256  # bytes: arrays that are sent together begin at multiples of it
_WORK_PER_BYTE = 0.25  # cost of a copy in multiply-adds
_PLAIN_SHARED = 48 * 1024  # bytes of shared memory that a block has without asking for more


class CudaDevice(Device):
    """The current GPU of CuPy."""

    def __init__(self) -> None:
        import cupy
        import cupyx.scipy.sparse

        self.xp, self.sparse, self._empty_pinned = cupy, cupyx.scipy.sparse, cupyx.empty_pinned
        self.number = int(cupy.cuda.Device().id)
        properties = cupy.cuda.runtime.getDeviceProperties(self.number)
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

    def lane(self) -> CudaLane:
        """Return a new lane."""
        return CudaLane(self)

    @functools.cached_property
    def sending(self) -> Any:
        """The stream on which lanes send, beside that of the kernels."""
        return self.xp.cuda.Stream(non_blocking=True)

    def empty_pinned(self, n_bytes: int) -> np.ndarray:
        """Return memory of the host from which the device can copy by itself."""
        pinned: np.ndarray = self._empty_pinned((n_bytes,), np.uint8)
        return pinned


class CudaLane(Lane):
    """Pinned memory of the host, and as much memory of a GPU."""

    def __init__(self, device: CudaDevice) -> None:
        self.device, self.xp = device, device.xp
        self._pinned, self._there = device.empty_pinned(0), device.xp.empty(0, dtype=np.uint8)
        self._copied, self._used = (device.xp.cuda.Event(disable_timing=True) for _ in range(2))
        self._parts: list[tuple[int, np.ndarray]] = []  # where each array begins, and its copy in pinned memory

    def fill(self, arrays: Sequence[np.ndarray]) -> None:
        """Copy arrays to pinned memory, on all cores, and begin to send it."""
        with self.xp.cuda.Device(self.device.number):
            self._copied.synchronize()  # the last arrays have left the pinned memory
            begins = np.cumsum([0, *(-(-array.nbytes // _ALIGNED) * _ALIGNED for array in arrays)]).tolist()
            self._reserve(begins[-1])
            self._parts = []
            for begin, array in zip(begins[:-1], arrays, strict=True):
                copy = self._pinned[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
                copy_on_all_cores(array, copy)
                self._parts.append((begin, copy))
            stream = self.device.sending
            stream.wait_event(self._used)
            self._there.data.copy_from_host_async(self._pinned.ctypes.data, begins[-1], stream)
            self._copied.record(stream)

    def _reserve(self, n_bytes: int) -> None:
        if n_bytes > self._pinned.size:
            self._pinned, self._there = self.device.empty_pinned(n_bytes), self.xp.empty(n_bytes, dtype=np.uint8)
            self.xp.cuda.Device().synchronize()  # kernels may still use memory that was given back and is taken here

    def arrays(self) -> tuple[DeviceArray, ...]:
        """Return the arrays on the device; what is launched from now on waits until they are there."""
        self.xp.cuda.get_current_stream().wait_event(self._copied)
        parts = ((self._there[begin : begin + copy.nbytes], copy) for begin, copy in self._parts)
        return tuple(there.view(copy.dtype).reshape(copy.shape) for there, copy in parts)

    def release(self) -> None:
        """Allow the lane to be filled again, after what has been launched so far."""
        self._used.record(self.xp.cuda.get_current_stream())

    def close(self) -> None:
        """Wait until nothing is being sent any more."""
        self._copied.synchronize()


def copy_on_all_cores(array: np.ndarray, to: np.ndarray) -> None:
    """Copy an array on all cores."""
    borders = threads.cut(array.shape[0], _WORK_PER_BYTE * array.nbytes)
    threads.run(lambda start, stop: np.copyto(to[start:stop], array[start:stop]), borders)
