"""Matrices on a device: dense rows, sparse rows and codes of categories, with the passes that a look needs."""

from __future__ import annotations

import abc
import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.linalg.device.base import N_SUMS, Argument, Device, DeviceArray, Losses, expand_samples, text_of

_NONE = (None, None, np.float64(0.0), None, None)  # the arguments of kernels that belong to losses, without any
_GATHERED = 2**28  # bytes of a dense copy of some rows and columns: larger ones are made in pieces


class Swept(NamedTuple):
    """The results of one pass: sums over the samples, the gradient, and the curvatures of all samples."""

    sums: np.ndarray
    r: np.ndarray
    D: DeviceArray


class DeviceMatrix(abc.ABC):
    """X on a device; vectors over features come from the host and go back there, those over samples stay.

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

    @abc.abstractmethod
    def chosen(self, rows: DeviceArray | slice, index: np.ndarray | None) -> DeviceArray:
        """Return the entries of some rows in the columns ``index`` (None: all) as a dense array in float64."""

    @abc.abstractmethod
    def fetched(self, every: int) -> Any:
        """Return every ``every``-th row in the memory of the host: an array or a CSR matrix."""

    @property
    @abc.abstractmethod
    def arrays(self) -> tuple[DeviceArray, ...]:
        """The arrays that hold the entries."""

    def along_shift(self, w: np.ndarray) -> float:
        """Return <shift, w> for what is subtracted from each row: 0 where nothing is."""
        return 0.0

    @abc.abstractmethod
    def thinned(self, every: int) -> DeviceMatrix:
        """Return every ``every``-th row."""

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
        height, n = max(1, _GATHERED // (8 * max(1, width))), c.size
        scale = None if value is None else self.device.to_device(value)
        for top in range(0, n, height):
            part = slice(top, min(top + height, n))
            Z = self.chosen(part if rows is None else rows[part], index)
            Z = Z * scale if V is None else Z @ V
            weighted = c[part, None] * Z
            H += weighted.T @ Z
            u += weighted.sum(axis=0)
        return self.device.to_host(H), self.device.to_host(u)


class DenseOnDevice(DeviceMatrix):
    """A dense array of float32, float64, or the bits of bfloat16 in uint16; ``shift`` is subtracted from each row."""

    _THREADS = 64
    _REGISTERS = 96  # of a lane, for the rows of a group in float64
    _MOST_GROUP = 8
    _MOST_ENTRIES = 32  # of a row that a lane holds; longer rows are read twice
    _WIDEST_LOAD = 16  # bytes

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
        p = self.device.empty(self.shape[0])
        if self._is_wide:
            text, n_threads = self._wide(), 256
            grid = self.device.n_blocks(text, "predict_wide", n_threads, 0), 1
            args = (self.X, *self._sizes, self.shift, self.device.to_device(w), p)
            self.device.launch(text, "predict_wide", grid, n_threads, 0, args)
        else:
            self._sweep("PREDICT", None, w=w, p_out=p)
        return p

    def expand(self, w: np.ndarray, b: float, p: DeviceArray | None, losses: Losses) -> Swept:
        """Return sums, gradient and curvatures at w, in one read unless rows are long."""
        if self._is_wide:
            sums, alpha, D = expand_samples(self.device, losses, self.predict(w) if p is None else p, b, wants=True)
            return Swept(sums, self.combine(alpha), D)
        D = self.device.empty(self.shape[0])
        sums, r = self._sweep("EXPAND" if p is None else "EXPAND_AT", losses, w=w, b=b, given=p, D=D)
        return Swept(sums.sum(axis=0), r, D)

    def combine(self, alpha: DeviceArray) -> np.ndarray:
        """Return X' alpha."""
        if self._is_wide:
            return self._sum_wide(alpha, 0.0)[0]
        return self._sweep("COMBINE", None, given=alpha)[1]

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

    def fetched(self, every: int) -> np.ndarray:
        """Return every ``every``-th row as an array."""
        X = self.X[::every]
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
        """Return every ``every``-th row."""
        part = DenseOnDevice(self.device, self.device.xp.ascontiguousarray(self.X[::every]))
        part.shift = self.shift
        return part

    @property
    def _sizes(self) -> tuple[np.int64, np.int32]:
        return np.int64(self.shape[0]), np.int32(self.shape[1])

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
        """Launch the kernel of one stage; return what the blocks have stored, and the sum of their gradients."""
        device, (n, d) = self.device, self.shape
        text = text_of(
            "dense.cu",
            losses,
            ELEMENT=self.element,
            VEC=self._load,
            PACKS=self._packs,
            GROUP=self._group,
            THREADS=self._THREADS,
            CENTRED=int(self.shift is not None),
            STAGE=stage,
        )
        shared = 8 * (
            32 * self._packs * self._load * (2 if self.shift is not None else 1) + self._THREADS // 32 * N_SUMS
        )
        most = -(-n // (self._THREADS // 32 * self._group))
        n_blocks = max(1, min(device.n_blocks(text, "dense_rows", self._THREADS, shared), most))
        out = R = None
        if stage != "PREDICT":
            out, R = device.empty(n_blocks, N_SUMS), device.empty(n_blocks, d)
        of_samples = _NONE if losses is None else (losses.y, losses.v, np.float64(losses.v0), losses.o, losses.theta)
        w_there = None if w is None else device.to_device(w)
        args: tuple[Argument, ...] = (self.X, *self._sizes, self.shift, w_there, np.float64(b))
        args += (*of_samples, p_out, given, out, R, D)
        device.launch(text, "dense_rows", (n_blocks, 1), self._THREADS, shared, args)
        if R is None:
            return np.empty(0), np.empty(0)
        return device.to_host(out), device.to_host(R.sum(axis=0))

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
        args = (self.X, *self._sizes, self.shift, alpha, np.float64(alpha0), np.int64(strip), R, largest)
        device.launch(text, "combine_wide", (n_columns, n_strips), n_threads, 0, args)
        return device.to_host(R.sum(axis=0)), 0.0 if largest is None else float(largest.max())


class _ByFrequency(DeviceMatrix):
    """Sparse rows whose features are numbered by frequency: the sums of frequent ones stay in shared memory."""

    _HOT = 6144  # frequent features
    _THREADS = 256
    is_one_hot: bool

    def __init__(self, device: Device, shape: tuple[int, int], index: DeviceArray, order: DeviceArray) -> None:
        self.device, self.shape = device, shape
        self.index = index  # the features of the entries, by their new numbers
        self.order = order  # the features as the user numbers them, the most frequent one first

    @abc.abstractmethod
    def _entries(self) -> tuple[DeviceArray | None, DeviceArray, DeviceArray | None, np.int64, np.int32]:
        """Return the first arguments of the kernel: offsets, numbers of features, values, rows, fields."""

    def predict(self, w: np.ndarray) -> DeviceArray:
        """Return X w."""
        p = self.device.empty(self.shape[0])
        self._sweep("PREDICT", None, w=w, p_out=p)
        return p

    def expand(self, w: np.ndarray, b: float, p: DeviceArray | None, losses: Losses) -> Swept:
        """Return sums, gradient and curvatures at w, in one pass over the entries."""
        D = self.device.empty(self.shape[0])
        sums, r = self._sweep("EXPAND" if p is None else "EXPAND_AT", losses, w=w, b=b, given=p, D=D)
        return Swept(sums.sum(axis=0), r, D)

    def combine(self, alpha: DeviceArray) -> np.ndarray:
        """Return X' alpha."""
        return self._sweep("COMBINE", None, given=alpha)[1]

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
        device, (n, d) = self.device, self.shape
        hot = min(self._HOT, d)
        text = text_of("sparse.cu", losses, HOT=hot, STAGE=stage, **self._macros())
        shared = 8 * (hot + self._THREADS // 32 * N_SUMS) if stage != "PREDICT" else 0
        most = -(-n // (self._THREADS if self.is_one_hot else 8))
        n_blocks = max(1, min(device.n_blocks(text, "sparse_rows", self._THREADS, shared), most))
        out = R = None
        if stage != "PREDICT":
            out, R = device.empty(n_blocks, N_SUMS), device.zeros(d)
        of_samples = _NONE if losses is None else (losses.y, losses.v, np.float64(losses.v0), losses.o, losses.theta)
        w_there = None if w is None else self._sent(w)
        args = (*self._entries(), w_there, np.float64(b), *of_samples, p_out, given, out, R, D)
        device.launch(text, "sparse_rows", (n_blocks, 1), self._THREADS, shared, args)
        if R is None:
            return np.empty(0), np.empty(0)
        r = device.empty(d)
        r[self.order] = R
        return device.to_host(out), device.to_host(r)

    def _sent(self, w: np.ndarray) -> DeviceArray:
        """Return w on the device, in the order of the new numbers; of a sparse w the nonzero entries travel alone."""
        used = np.flatnonzero(w != 0.0)
        there = self.device.zeros(self.shape[1])
        there[self._numbers[self.device.to_device(used)]] = self.device.to_device(w[used])
        return there

    @abc.abstractmethod
    def _macros(self) -> dict[str, object]:
        """Return what the text of the kernel needs to know about the entries."""

    @functools.cached_property
    def _numbers(self) -> DeviceArray:
        """The new number of each feature."""
        new = self.device.xp.empty(self.shape[1], dtype=np.int32)
        new[self.order] = self.device.xp.arange(self.shape[1], dtype=np.int32)
        return new


class SparseOnDevice(_ByFrequency):
    """A CSR matrix of float32 or float64."""

    is_one_hot = False
    _LONG = 24  # entries of a row, on average, for which a whole warp takes it

    def __init__(self, device: Device, X: DeviceArray, order: DeviceArray | None = None) -> None:
        self.X = X  # as the user numbers the features
        if order is None:
            order = device.xp.argsort(-device.xp.bincount(X.indices, minlength=X.shape[1]), kind="stable")
        super().__init__(device, X.shape, X.indices, order)
        self.index = self._numbers[X.indices]
        self.indptr = X.indptr.astype(np.int64)
        self.n_stored, self.n_bytes = X.nnz, X.data.nbytes + X.indices.nbytes + X.indptr.nbytes

    def _entries(self) -> tuple[DeviceArray | None, DeviceArray, DeviceArray | None, np.int64, np.int32]:
        return self.indptr, self.index, self.X.data, np.int64(self.shape[0]), np.int32(0)

    def _macros(self) -> dict[str, object]:
        lanes = 32 if self.n_stored >= self._LONG * self.shape[0] else 8
        element = {"float32": "float", "float64": "double"}[str(self.X.data.dtype)]
        return {"IS_ONE_HOT": 0, "LANES": lanes, "ELEMENT": element}

    def measure(self, losses: Losses) -> tuple[np.ndarray, float]:
        """Return the weighted squares of the columns, and the largest absolute entry."""
        largest = float(self.device.xp.abs(self.X.data).max()) if self.n_stored else 0.0
        return self._sweep("MEASURE", losses)[1], largest

    def chosen(self, rows: DeviceArray | slice, index: np.ndarray | None) -> DeviceArray:
        """Return the entries of some rows and columns as a dense array in float64."""
        X = self.X[rows]
        if index is not None:
            X = X[:, self.device.to_device(index)]
        return X.toarray().astype(np.float64)

    def fetched(self, every: int) -> Any:
        """Return every ``every``-th row as a CSR matrix."""
        part = self.X[self.device.xp.arange(0, self.shape[0], every)]
        parts = (self.device.to_host(each) for each in (part.data, part.indices, part.indptr))
        return scipy.sparse.csr_matrix(tuple(parts), shape=part.shape)

    @property
    def arrays(self) -> tuple[DeviceArray, ...]:
        """The arrays of the CSR matrix."""
        return self.X.data, self.X.indices, self.X.indptr

    def thinned(self, every: int) -> SparseOnDevice:
        """Return every ``every``-th row."""
        rows = self.device.xp.arange(0, self.shape[0], every)
        return SparseOnDevice(self.device, self.X[rows], self.order)


class OneHotOnDevice(_ByFrequency):
    """Codes of categories: row i has a one in the column codes[q, i] for every field q, none where that is -1."""

    is_one_hot = True

    def __init__(self, device: Device, codes: DeviceArray, n_features: int, order: DeviceArray | None = None) -> None:
        n_fields, n_samples = codes.shape
        xp = device.xp
        is_new = order is None
        if order is None:
            count = xp.zeros(n_features, dtype=np.int64)
            for field in codes:
                count += xp.bincount(field[field >= 0], minlength=n_features)
            order = xp.argsort(-count, kind="stable")
        super().__init__(device, (n_samples, n_features), codes, order)
        if is_new:
            self.index = xp.empty_like(codes)
            for q, field in enumerate(codes):
                self.index[q] = xp.where(field < 0, -1, self._numbers[field])
        self.n_fields = n_fields
        self.n_stored, self.n_bytes = codes.size, codes.nbytes

    def _entries(self) -> tuple[DeviceArray | None, DeviceArray, DeviceArray | None, np.int64, np.int32]:
        return None, self.index, None, np.int64(self.shape[0]), np.int32(self.n_fields)

    def _macros(self) -> dict[str, object]:
        return {"IS_ONE_HOT": 1, "LANES": 1, "ELEMENT": "float"}

    def measure(self, losses: Losses) -> tuple[np.ndarray, float]:
        """Return the weights of the samples of each feature, and the largest entry: one."""
        return self._sweep("MEASURE", losses)[1], 1.0

    def chosen(self, rows: DeviceArray | slice, index: np.ndarray | None) -> DeviceArray:
        """Return the entries of some rows and columns as a dense array in float64."""
        xp, codes = self.device.xp, self.index[:, rows]
        if index is None:
            index = np.arange(self.shape[1])
        place = xp.full(self.shape[1] + 1, len(index), dtype=np.int32)  # the last one is that of no entry
        place[self._numbers[self.device.to_device(index)]] = xp.arange(len(index), dtype=np.int32)
        Z = self.device.zeros(codes.shape[1], len(index) + 1)
        samples = xp.broadcast_to(xp.arange(codes.shape[1]), codes.shape)
        Z[samples, place[codes]] = 1.0  # no feature occurs twice in a row
        return Z[:, :-1]

    def fetched(self, every: int) -> Any:
        """Return every ``every``-th row as a CSR matrix."""
        codes = self.device.to_host(self.device.xp.ascontiguousarray(self.index[:, ::every])).T
        is_entry = codes >= 0
        features = self.device.to_host(self.order)[codes[is_entry]]
        ends = np.concatenate([[0], np.cumsum(is_entry.sum(axis=1))])
        X = scipy.sparse.csr_matrix(
            (np.ones(features.size, np.float32), features, ends), shape=(codes.shape[0], self.shape[1])
        )
        X.sort_indices()
        return X

    @property
    def arrays(self) -> tuple[DeviceArray, ...]:
        """The codes, and what they mean."""
        return self.index, self.order

    def thinned(self, every: int) -> OneHotOnDevice:
        """Return every ``every``-th row."""
        codes = self.device.xp.ascontiguousarray(self.index[:, ::every])
        return OneHotOnDevice(self.device, codes, self.shape[1], self.order)
