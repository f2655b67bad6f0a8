"""DeviceMatrix: X on a device, with the passes that a look needs; dense and sparse are files of their own.

SweptMatrix is what it has in common with data that are only sent there for a pass, KernelMatrix what dense and sparse
data have in common.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import numpy as np

from condgrad.linalg.device.base import N_SUMS, Argument, Device, DeviceArray, Losses

GATHERED = 2**28  # bytes of a dense copy of some rows and columns: larger ones are made in pieces


class Swept(NamedTuple):
    """The results of one pass: sums over the samples, the gradient, and the curvatures of all samples."""

    sums: np.ndarray
    r: np.ndarray
    D: DeviceArray


def arguments_of(losses: Losses | None) -> tuple[Argument, ...]:
    """Return the arguments of a kernel that belong to losses."""
    if losses is None:
        return None, None, np.float64(0.0), None, None
    return losses.y, losses.v, np.float64(losses.v0), losses.o, losses.theta


class SweptMatrix(abc.ABC):
    """A matrix whose passes run on a device; vectors over features come from the host and go back there, others stay.

    Attributes
    ----------
    shape : (int, int)
    n_stored : int
        The number of entries.
    n_bytes : int
    """

    device: Device
    shape: tuple[int, int]
    n_stored: int
    n_bytes: int

    @abc.abstractmethod
    def predict(self, w: np.ndarray) -> DeviceArray:
        """Return X w."""

    @abc.abstractmethod
    def expand(self, w: np.ndarray, b: float, p: DeviceArray | None, losses: Losses) -> Swept:
        """Return sums, gradient and curvatures at w; p, if given, is X w, which is not computed again then."""

    @abc.abstractmethod
    def combine(self, alpha: DeviceArray) -> np.ndarray:
        """Return X' alpha."""

    @abc.abstractmethod
    def measure(self, losses: Losses) -> tuple[np.ndarray, float]:
        """Return sum_i v_i x_ij^2 of every column, and the largest absolute entry."""

    def along_shift(self, w: np.ndarray) -> float:
        """Return <shift, w> for what is subtracted from each row: 0 where nothing is."""
        return 0.0


class DeviceMatrix(SweptMatrix):
    """X in the memory of a device."""

    @abc.abstractmethod
    def chosen(self, rows: DeviceArray | slice, index: np.ndarray | None) -> DeviceArray:
        """Return the entries of some rows in the columns ``index`` (None: all) as a dense array in float64."""

    @abc.abstractmethod
    def fetched(self, rows: DeviceArray | slice) -> Any:
        """Return some rows in the memory of the host: an array or a CSR matrix."""

    @property
    @abc.abstractmethod
    def arrays(self) -> tuple[DeviceArray, ...]:
        """The arrays that hold the entries."""

    @abc.abstractmethod
    def thinned(self, every: int) -> DeviceMatrix:
        """Return one of every ``every`` rows, those of :func:`~condgrad.linalg.spread.spread_rows`."""

    def gram(
        self, index: np.ndarray, value: np.ndarray, c: DeviceArray, rows: DeviceArray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_i c_i z_i z_i' and sum_i c_i z_i over the rows (None: all), for z_i = value * x_i[index]."""
        return self._gram_of(c, rows, index, None, value)

    def gram_of_products(
        self, V: np.ndarray, c: DeviceArray, rows: DeviceArray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_i c_i z_i z_i' and sum_i c_i z_i over the rows (None: all), for z_i = V'x_i."""
        return self._gram_of(c, rows, None, self.device.to_device(V), None)

    def _gram_of(
        self,
        c: DeviceArray,
        rows: DeviceArray | None,
        index: np.ndarray | None,
        V: DeviceArray | None,
        value: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        k = V.shape[1] if V is not None else len(index)  # type: ignore[arg-type]
        width = self.shape[1] if index is None else k
        H, u = self.device.zeros(k, k), self.device.zeros(k)
        height, n = max(1, GATHERED // (8 * max(1, width))), c.size
        scale = None if value is None else self.device.to_device(value)
        for top in range(0, n, height):
            part = slice(top, min(top + height, n))
            Z = self.chosen(part if rows is None else rows[part], index)
            Z = Z * scale if V is None else Z @ V
            weighted = c[part, None] * Z
            H += weighted.T @ Z
            u += weighted.sum(axis=0)
        return self.device.to_host(H), self.device.to_host(u)


class Kernel(NamedTuple):
    """A kernel over rows, and how it is launched: threads of a block, bytes that they share, and useful blocks."""

    text: str
    name: str
    n_threads: int
    shared_bytes: int
    most_blocks: int


class KernelMatrix(DeviceMatrix):
    """X in the memory of a device, whose passes are the stages of one kernel, each in one read of the entries."""

    def predict(self, w: np.ndarray) -> DeviceArray:
        """Return X w."""
        p = self.device.empty(self.shape[0])
        self._sweep("PREDICT", None, w=w, p_out=p)
        return p

    def expand(self, w: np.ndarray, b: float, p: DeviceArray | None, losses: Losses) -> Swept:
        """Return sums, gradient and curvatures at w, in one read of the entries."""
        D = self.device.empty(self.shape[0])
        sums, r = self._sweep("EXPAND" if p is None else "EXPAND_AT", losses, w=w, b=b, given=p, D=D)
        return Swept(sums.sum(axis=0), r, D)

    def combine(self, alpha: DeviceArray) -> np.ndarray:
        """Return X' alpha."""
        return self._sweep("COMBINE", None, given=alpha)[1]

    @abc.abstractmethod
    def _kernel(self, stage: str, losses: Losses | None) -> Kernel:
        """Return the kernel of a stage."""

    @abc.abstractmethod
    def _entries(self) -> tuple[Argument, ...]:
        """Return the first arguments of the kernel, which hold the entries."""

    @abc.abstractmethod
    def _sent(self, w: np.ndarray) -> DeviceArray:
        """Return w on the device, as the kernel takes it."""

    @abc.abstractmethod
    def _room_for_sums(self, n_blocks: int) -> DeviceArray:
        """Return the array to which the blocks of the kernel add their sums over rows."""

    @abc.abstractmethod
    def _added(self, R: DeviceArray) -> DeviceArray:
        """Return the sum over all rows, from what the blocks have added."""

    def _sweep(
        self,
        stage: str,
        losses: Losses | None,
        *,
        w: np.ndarray | None = None,
        b: float = 0.0,
        p_out: DeviceArray | None = None,
        given: DeviceArray | None = None,
        D: DeviceArray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Launch the kernel of one stage; return what the blocks have stored, and the sum over rows."""
        device, (text, name, n_threads, shared, most) = self.device, self._kernel(stage, losses)
        n_blocks = max(1, min(device.n_blocks(text, name, n_threads, shared), most))
        out = R = None
        if stage != "PREDICT":
            out, R = device.empty(n_blocks, N_SUMS), self._room_for_sums(n_blocks)
        args = (*self._entries(), None if w is None else self._sent(w), np.float64(b), *arguments_of(losses))
        device.launch(text, name, (n_blocks, 1), n_threads, shared, (*args, p_out, given, out, R, D))
        if R is None:
            return np.empty(0), np.empty(0)
        return device.to_host(out), device.to_host(self._added(R))
