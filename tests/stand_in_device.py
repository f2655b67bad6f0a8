"""A device that is the processor: arrays are those of NumPy, kernels are compiled from their CUDA text for the host."""

import ctypes
import functools
import hashlib
import pathlib
import shutil
import subprocess
import tempfile
import threading

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg.device.base import Device, Lane

COMPILER = shutil.which("g++") or shutil.which("clang++")
ONE_AT_A_TIME = threading.Lock()  # the threads of a block are variables of the compiled text
HEADER = pathlib.Path(__file__).with_name("cuda_on_host.h")


@functools.cache
def folder():
    return tempfile.TemporaryDirectory(prefix="condgrad-kernels-")


@functools.cache
def compiled(text, name):
    place = pathlib.Path(folder().name) / hashlib.sha256((text + name).encode()).hexdigest()[:20]
    launch = (
        f'extern "C" void launch(void** args, unsigned x, unsigned y, unsigned n)'
        f" {{ host::run_of<{name}>({name}, args, x, y, n); }}"
    )
    place.with_suffix(".cpp").write_text(f'#include "{HEADER}"\n{text}\n{launch}\n', encoding="utf-8")
    command = [COMPILER, "-std=c++17", "-O0", "-w", "-shared", "-fPIC", "-o", place.with_suffix(".so")]
    subprocess.run([*command, place.with_suffix(".cpp")], check=True)
    return ctypes.CDLL(str(place.with_suffix(".so"))).launch


class StandIn(Device):
    """Runs everything on the processor, kernels included."""

    name = "the processor"
    xp = np
    sparse = scipy.sparse
    n_processors = 2

    def n_blocks(self, text, name, n_threads, shared_bytes):
        return 3

    def launch(self, text, name, grid, n_threads, shared_bytes, args):
        assert shared_bytes <= 8 * 2**16
        pointers = [np.uintp(0) if arg is None else np.uintp(arg.ctypes.data) if arg.ndim else arg for arg in args]
        boxes = [np.array(value) for value in pointers]  # a kernel reads its arguments from here
        places = (ctypes.c_void_p * len(boxes))(*(box.ctypes.data for box in boxes))
        with ONE_AT_A_TIME:
            compiled(text, name)(places, *grid, n_threads)

    def to_host(self, array):
        return np.array(array)

    def to_device(self, array):
        return np.array(array)

    def free_bytes(self):
        return 2**30

    def lane(self):
        return HostLane()


class HostLane(Lane):
    """Copies of arrays, which are overwritten as soon as they are released."""

    def __init__(self):
        self._arrays, self.is_open, self.is_free = (), True, True

    def fill(self, arrays):
        assert self.is_open
        assert self.is_free
        self._arrays, self.is_free = tuple(np.array(array, order="C") for array in arrays), False

    def arrays(self):
        assert not self.is_free
        return self._arrays

    def release(self):
        for array in self._arrays:
            array.view(np.uint8)[...] = 0xFF
        self.is_free = True

    def close(self):
        self.is_open = False


def devices():
    """Return the devices on which tests can run, as parameters of a test."""
    no_compiler = pytest.mark.skipif(
        COMPILER is None, reason="needs a C++ compiler, which runs the kernels in place of a GPU"
    )
    found = [pytest.param(StandIn, id="stand-in", marks=no_compiler)]
    try:
        from condgrad.linalg.device.cuda_device import CudaDevice

        CudaDevice()
    except Exception as error:  # no CuPy, no driver, or no GPU: whatever it is, the tests say so
        reason = f"needs CuPy and a GPU ({type(error).__name__})"
        return [*found, pytest.param(None, id="cuda", marks=pytest.mark.skip(reason=reason))]
    return [*found, pytest.param(CudaDevice, id="cuda")]
