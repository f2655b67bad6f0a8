"""DenseOnDevice: dense rows on a device, read once for a look."""

from __future__ import annotations

import numpy as np

from condgrad.linalg.device.base import N_SUMS, Argument, Device, DeviceArray, Losses, expand_samples, text_of
from condgrad.linalg.device.matrices import Kernel, KernelMatrix, Swept
from condgrad.linalg.spread import spread_rows

_LEAST_COPY = 4  # bytes of an asynchronous copy


class DenseOnDevice(KernelMatrix):
    """A dense array of float32, float64, or the bits of bfloat16 in uint16; ``shift`` is subtracted from each row."""

    _REGISTERS = 96  # of a lane, for the rows of a group in float64
    _MOST_GROUP = 8
    _MOST_ENTRIES = 32  # of a row that a lane holds; longer rows are read twice
    _WIDEST_LOAD = 16  # bytes
    # Measured on an H200. A group of short rows is too few bytes to keep the memory busy: if the next one waits in
    # shared memory, more warps have room. Groups of longer rows wait in registers, which saves a copy.
    _SHORT_ROW = 800  # bytes of a row up to which the next rows wait in shared memory; those of bfloat16 always do
    _LONG_ROW = 1600  # bytes of a row above which a block has four warps, and not two

    def __init__(self, device: Device, X: DeviceArray, shift: np.ndarray | None = None) -> None:
        self.device, self.X = device, X
        self.shape = X.shape
        self.n_stored, self.n_bytes = X.size, X.nbytes
        self.shift = None if shift is None else device.to_device(shift)
        self.element = {"float32": "float", "float64": "double", "uint16": "unsigned short"}[str(X.dtype)]

    def with_shift(self, shift: np.ndarray | None) -> DenseOnDevice:
        """Return the same data with other means subtracted."""
        return DenseOnDevice(self.device, self.X, shift)

    def predict(self, w: np.ndarray) -> DeviceArray:
        """Return X w."""
        if not self._is_wide:
            return super().predict(w)
        p, text, n_threads = self.device.empty(self.shape[0]), self._wide(), 256
        grid = self.device.n_blocks(text, "predict_wide", n_threads, 0), 1
        self.device.launch(text, "predict_wide", grid, n_threads, 0, (*self._entries(), self._sent(w), p))
        return p

    def expand(self, w: np.ndarray, b: float, p: DeviceArray | None, losses: Losses) -> Swept:
        """Return sums, gradient and curvatures at w, in one read unless rows are long."""
        if not self._is_wide:
            return super().expand(w, b, p, losses)
        sums, alpha, D = expand_samples(self.device, losses, self.predict(w) if p is None else p, b, wants=True)
        return Swept(sums, self.combine(alpha), D)

    def combine(self, alpha: DeviceArray) -> np.ndarray:
        """Return X' alpha."""
        return self._sum_wide(alpha, 0.0)[0] if self._is_wide else super().combine(alpha)

    def measure(self, losses: Losses) -> tuple[np.ndarray, float]:
        """Return the weighted squares of the columns, and the largest absolute entry."""
        if self._is_wide:
            return self._sum_wide(losses.v, losses.v0, squares=True)
        found, squares = self._sweep("MEASURE", losses)
        return squares, float(found.ravel()[: found.shape[0]].max(initial=0.0))

    def chosen(self, rows: DeviceArray | slice, index: np.ndarray | None) -> DeviceArray:
        """Return the entries of some rows and columns as a dense array in float64."""
        X = self.X[rows]
        if index is not None:
            X = X[:, self.device.to_device(index)]
        if self.element == "unsigned short":
            X = (X.astype(np.uint32) << np.uint32(16)).view(np.float32)
        X = X.astype(np.float64)
        if self.shift is None:
            return X
        return X - (self.shift if index is None else self.shift[self.device.to_device(index)])

    def fetched(self, rows: DeviceArray | slice) -> np.ndarray:
        """Return some rows as an array, without the shift."""
        X = self.X[rows]
        if self.element == "unsigned short":
            X = (X.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return self.device.to_host(self.device.xp.ascontiguousarray(X))

    @property
    def arrays(self) -> tuple[DeviceArray, ...]:
        """The array."""
        return (self.X,)

    def along_shift(self, w: np.ndarray) -> float:
        """Return <shift, w>."""
        return 0.0 if self.shift is None else float(self.device.to_host(self.shift) @ w)

    def thinned(self, every: int) -> DenseOnDevice:
        """Return one of every ``every`` rows."""
        rows = self.device.to_device(spread_rows(self.shape[0], every))
        part = DenseOnDevice(self.device, self.device.xp.ascontiguousarray(self.X[rows]))
        part.shift = self.shift
        return part

    def _entries(self) -> tuple[Argument, ...]:
        return self.X, np.int64(self.shape[0]), np.int32(self.shape[1]), self.shift

    def _sent(self, w: np.ndarray) -> DeviceArray:
        return self.device.to_device(w)

    # Rows of a length that a warp can hold.

    @property
    def _load(self) -> int:
        """How many entries a load brings: rows must begin at multiples of its size."""
        most = self._WIDEST_LOAD // self.X.dtype.itemsize
        return next(count for count in (8, 4, 2, 1) if count <= most and self.shape[1] % count == 0)

    @property
    def _packs(self) -> int:
        return -(-self.shape[1] // (32 * self._load))

    @property
    def _is_wide(self) -> bool:
        return self._packs * self._load > self._MOST_ENTRIES

    @property
    def _group(self) -> int:
        registers = 2 * self._packs * self._load
        group = self._MOST_GROUP
        while group > 1 and group * registers > self._REGISTERS:
            group //= 2
        return group

    @property
    def _waits_in_shared(self) -> bool:
        """Whether the next rows wait in shared memory; asynchronous copies have a least size."""
        itemsize = self.X.dtype.itemsize
        is_short = itemsize == 2 or self.shape[1] * itemsize <= self._SHORT_ROW
        return is_short and self._load * itemsize >= _LEAST_COPY

    def _kernel(self, stage: str, losses: Losses | None) -> Kernel:
        n_threads = 128 if self.shape[1] * self.X.dtype.itemsize > self._LONG_ROW else 64
        is_centred, warps = self.shift is not None, n_threads // 32
        text = text_of(
            "dense.cu",
            losses,
            ELEMENT=self.element,
            VEC=self._load,
            PACKS=self._packs,
            GROUP=self._group,
            THREADS=n_threads,
            CENTRED=int(is_centred),
            IN_SHARED=int(self._waits_in_shared),
            STAGE=stage,
        )
        load_bytes = self._load * self.X.dtype.itemsize
        slots = 2 * self._group * self._packs * n_threads * load_bytes if self._waits_in_shared else 0
        shared = slots + 8 * (32 * self._packs * self._load * (2 if is_centred else 1) + warps * N_SUMS)
        return Kernel(text, "dense_rows", n_threads, shared, -(-self.shape[0] // (warps * self._group)))

    def _room_for_sums(self, n_blocks: int) -> DeviceArray:
        return self.device.empty(n_blocks, self.shape[1])

    def _added(self, R: DeviceArray) -> DeviceArray:
        return R.sum(axis=0)

    # Longer rows.

    def _wide(self, **macros: int) -> str:
        macros = {"SQUARES": 0, "CENTRED": int(self.shift is not None), **macros}
        return text_of("wide.cu", None, ELEMENT=self.element, **macros)

    def _sum_wide(self, alpha: DeviceArray | None, alpha0: float, *, squares: bool = False) -> tuple[np.ndarray, float]:
        device, (n, d) = self.device, self.shape
        text, n_threads = self._wide(SQUARES=int(squares)), 128
        n_columns = -(-d // n_threads)
        n_strips = max(1, min(n, 4 * device.n_blocks(text, "combine_wide", n_threads, 0) // n_columns, 65535))
        strip = -(-n // n_strips)
        R, largest = device.empty(n_strips, d), device.empty(n_strips, d) if squares else None
        args = (*self._entries(), alpha, np.float64(alpha0), np.int64(strip), R, largest)
        device.launch(text, "combine_wide", (n_columns, n_strips), n_threads, 0, args)
        return device.to_host(R.sum(axis=0)), 0.0 if largest is None else float(largest.max())
