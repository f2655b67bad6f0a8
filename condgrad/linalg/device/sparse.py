"""SparseOnDevice and OneHotOnDevice: sparse rows and codes of categories on a device, one pass over them for a look."""

from __future__ import annotations

import abc
import functools
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.linalg.device.base import N_SUMS, Argument, Device, DeviceArray, Losses, text_of
from condgrad.linalg.device.matrices import Kernel, KernelMatrix
from condgrad.linalg.spread import spread_rows


class _ByFrequency(KernelMatrix):
    """Sparse rows whose features are numbered by frequency: the sums of frequent ones stay in shared memory."""

    _HOT = 6144  # frequent features
    _THREADS = 256
    is_one_hot: bool

    def __init__(self, device: Device, shape: tuple[int, int], index: DeviceArray, order: DeviceArray) -> None:
        self.device, self.shape = device, shape
        self.index = index  # the features of the entries, by their new numbers
        self.order = order  # the features as the user numbers them, the most frequent one first

    def _kernel(self, stage: str, losses: Losses | None) -> Kernel:
        (n, d), n_threads = self.shape, self._THREADS
        hot = min(self._HOT, d)
        shared = 8 * (hot + n_threads // 32 * N_SUMS) if stage != "PREDICT" else 0
        text = text_of("sparse.cu", losses, HOT=hot, STAGE=stage, **self._macros())
        return Kernel(text, "sparse_rows", n_threads, shared, -(-n // (n_threads if self.is_one_hot else 8)))

    def _room_for_sums(self, n_blocks: int) -> DeviceArray:
        return self.device.zeros(self.shape[1])

    def _added(self, R: DeviceArray) -> DeviceArray:
        r = self.device.empty(self.shape[1])
        r[self.order] = R
        return r

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

    def _entries(self) -> tuple[Argument, ...]:
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

    def fetched(self, rows: DeviceArray | slice) -> Any:
        """Return some rows as a CSR matrix."""
        if isinstance(rows, slice):
            rows = self.device.xp.arange(*rows.indices(self.shape[0]))
        if rows.size == 0:
            return scipy.sparse.csr_matrix((0, self.shape[1]), dtype=self.X.dtype)
        part = self.X[rows]
        parts = (self.device.to_host(each) for each in (part.data, part.indices, part.indptr))
        return scipy.sparse.csr_matrix(tuple(parts), shape=part.shape)

    @property
    def arrays(self) -> tuple[DeviceArray, ...]:
        """The arrays of the CSR matrix."""
        return self.X.data, self.X.indices, self.X.indptr

    def thinned(self, every: int) -> SparseOnDevice:
        """Return one of every ``every`` rows."""
        rows = self.device.to_device(spread_rows(self.shape[0], every))
        return SparseOnDevice(self.device, self.X[rows], self.order)


class OneHotOnDevice(_ByFrequency):
    """Codes of categories: row i has a one in the column codes[q, i] for every field q, none where that is -1."""

    is_one_hot = True

    def __init__(
        self,
        device: Device,
        codes: DeviceArray,
        n_features: int,
        order: DeviceArray | None = None,
        *,
        are_numbered: bool = False,  # whether the codes are places in ``order`` already
    ) -> None:
        n_fields, n_samples = codes.shape
        xp = device.xp
        if order is None:
            count = xp.zeros(n_features, dtype=np.int64)
            for field in codes:
                count += xp.bincount(field[field >= 0], minlength=n_features)
            order = xp.argsort(-count, kind="stable")
        super().__init__(device, (n_samples, n_features), codes, order)
        if not are_numbered:
            self.index = xp.empty_like(codes)
            for q, field in enumerate(codes):
                self.index[q] = xp.where(field < 0, -1, self._numbers[field])
        self.n_fields = n_fields
        self.n_stored, self.n_bytes = codes.size, codes.nbytes

    def _entries(self) -> tuple[Argument, ...]:
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

    def fetched(self, rows: DeviceArray | slice) -> Any:
        """Return some rows as a CSR matrix."""
        codes = self.device.to_host(self.device.xp.ascontiguousarray(self.index[:, rows])).T
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
        """Return one of every ``every`` rows."""
        rows = self.device.to_device(spread_rows(self.shape[0], every))
        codes = self.device.xp.ascontiguousarray(self.index[:, rows])
        return OneHotOnDevice(self.device, codes, self.shape[1], self.order, are_numbered=True)
