"""Device: what the library needs of an accelerator; its arrays, its kernels, and the texts they are compiled from."""

from __future__ import annotations

import abc
import functools
import importlib.resources
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

DeviceArray: TypeAlias = Any  # an array of the device's array module
Argument: TypeAlias = Any  # of a kernel: a DeviceArray, a NumPy scalar of the type that the kernel declares, or None

STAGES = ("EXPAND", "EXPAND_AT", "PREDICT", "COMBINE", "MEASURE")  # what a kernel over rows does
_ROOM = 0.9  # share of the free memory of a device that data may take
N_SUMS = 9  # the sums over samples that kernels return: the fields of Totals, and the sum of the curvatures

_NO_LOSS = "\n".join(
    f"__device__ __forceinline__ double {name}(const double*, double, double) {{ return 0.0; }}"
    for name in ("value", "derivative", "second_derivative")
)


class Lane(abc.ABC):
    """Memory on the host and on the device through which arrays are sent: filled, used, released, and filled again."""

    @abc.abstractmethod
    def fill(self, arrays: Sequence[np.ndarray]) -> None:
        """Copy arrays of the host and begin to send them; they may change as soon as this returns.

        It may be called in another thread than the other methods.
        """

    @abc.abstractmethod
    def arrays(self) -> tuple[DeviceArray, ...]:
        """Return the arrays on the device; what is launched from now on waits until they are there."""

    @abc.abstractmethod
    def release(self) -> None:
        """Allow the lane to be filled again, after what has been launched so far."""

    @abc.abstractmethod
    def close(self) -> None:
        """Wait until nothing is being sent any more."""


class Device(abc.ABC):
    """An accelerator.

    Attributes
    ----------
    name : str
    xp : module
        Its array module, with the functions of NumPy.
    sparse : module
        Its sparse matrices, with the classes of scipy.sparse.
    most_bytes : float
        Data of the host that are larger than this are streamed, even if more memory is free.
    """

    name: str
    xp: Any
    sparse: Any
    most_bytes: float = math.inf

    @abc.abstractmethod
    def launch(
        self, text: str, name: str, grid: tuple[int, int], n_threads: int, shared_bytes: int, args: Sequence[Argument]
    ) -> None:
        """Run the kernel ``name`` of a text in CUDA C on a grid of blocks."""

    @abc.abstractmethod
    def n_blocks(self, text: str, name: str, n_threads: int, shared_bytes: int) -> int:
        """Return how many blocks of a kernel the device can run at the same time."""

    @abc.abstractmethod
    def to_host(self, array: DeviceArray) -> np.ndarray:
        """Return a copy of an array in the memory of the host."""

    @abc.abstractmethod
    def to_device(self, array: np.ndarray) -> DeviceArray:
        """Return a copy of an array in the memory of the device."""

    @abc.abstractmethod
    def free_bytes(self) -> int:
        """Return how much memory of the device is free."""

    @abc.abstractmethod
    def lane(self) -> Lane:
        """Return a new lane."""

    def holds(self, n_bytes: int) -> bool:
        """Tell whether data of this size fit into the memory of the device, beside what passes need."""
        return n_bytes <= min(self.most_bytes, _ROOM * self.free_bytes())

    def zeros(self, *shape: int) -> DeviceArray:
        """Return an array of zeros in float64."""
        return self.xp.zeros(shape)

    def empty(self, *shape: int) -> DeviceArray:
        """Return an array in float64 without values."""
        return self.xp.empty(shape)


class Losses(NamedTuple):
    """The losses of all samples, for kernels.

    Attributes
    ----------
    formulas : str
        Value and derivatives of the loss in CUDA C; see :mod:`condgrad.linalg.device.formulas`.
    theta : array or None
        The parameters of the loss.
    y : array or None
        The targets.
    v : array or None
        The weights of the samples, which sum to one; None if all are ``v0``.
    v0 : float
    o : array or None
        The offsets of the predictions.
    """

    formulas: str
    theta: DeviceArray
    y: DeviceArray
    v: DeviceArray | None
    v0: float
    o: DeviceArray | None = None

    def part(self, place: slice) -> Losses:
        """Return consecutive samples, with the weights as they are; the arrays are shared."""
        y, v, o = (None if each is None else each[place] for each in (self.y, self.v, self.o))
        return self._replace(y=y, v=v, o=o)

    def chosen(self, rows: DeviceArray | slice) -> Losses:
        """Return copies of some samples, with the weights as they are."""
        y, v, o = (None if each is None else each[rows].copy() for each in (self.y, self.v, self.o))
        return self._replace(y=y, v=v, o=o)


def weights_alone(v: DeviceArray) -> Losses:
    """Return the weights of samples without a loss, for what does not depend on one."""
    return Losses(_NO_LOSS, None, None, v, 0.0)


def text_of(file: str, losses: Losses | None, **macros: object) -> str:
    """Return the text of a kernel: its macros, the formulas of a loss, and the file."""
    macros |= {name: number for number, name in enumerate(STAGES)}
    macros["HAS_OFFSET"] = int(losses is not None and losses.o is not None)
    defined = "\n".join(f"#define {name} {value}" for name, value in macros.items())
    return "\n".join([defined, _NO_LOSS if losses is None else losses.formulas, _file("samples.cuh"), _file(file)])


@functools.cache
def _file(name: str) -> str:
    """Return the text of a file, with the files that it includes."""
    text = importlib.resources.files("condgrad.linalg.device").joinpath("cuda", name).read_text(encoding="utf-8")
    return re.sub(r'#include "(\w+\.cuh)"', lambda found: _file(found[1]), text)


def expand_samples(device: Device, losses: Losses, p: DeviceArray | None, b: float, *, wants: bool) -> Expanded:
    """Return the sums over all samples at the predictions p + b (None: b alone), with derivatives where wanted."""
    text, n = text_of("samples.cu", losses), losses.y.size
    n_threads, shared = 256, 8 * 8 * N_SUMS
    n_blocks = max(1, min(device.n_blocks(text, "expand_samples", n_threads, shared), -(-n // n_threads)))
    out = device.empty(n_blocks, N_SUMS)
    alpha, D = (device.empty(n), device.empty(n)) if wants else (None, None)
    args: tuple[Argument, ...] = (np.int64(n), p, np.float64(b), losses.y, losses.v, np.float64(losses.v0), losses.o)
    args += (losses.theta, alpha, D, out)
    device.launch(text, "expand_samples", (n_blocks, 1), n_threads, shared, args)
    return Expanded(device.to_host(out).sum(axis=0), alpha, D)


class Expanded(NamedTuple):
    """The sums over samples, and derivatives and curvatures of all samples, if they were wanted."""

    sums: np.ndarray
    alpha: DeviceArray | None
    D: DeviceArray | None
