"""StreamedMatrix: rows of the host that do not fit into the memory of a device, and go through it in every pass.

Pieces of rows are copied to pinned memory and sent in the background, while kernels work on the piece before. The
kernels are those of data on the device.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import itertools
from collections.abc import Generator, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse

from condgrad.linalg.by_rows import ByRows
from condgrad.linalg.device.base import Device, DeviceArray, Lane, Losses
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.matrices import DeviceMatrix, Swept, SweptMatrix
from condgrad.linalg.device.sparse import OneHotOnDevice, SparseOnDevice
from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.linalg.spread import spread_rows

_LANES = 3  # one is copied to, one is being sent, and kernels work on one
_PIECE = 2**26  # bytes of a piece: sending it takes a millisecond, many times as long as beginning to work on it
_PER_FEATURE = 2**9  # bytes of a piece for each feature at least, as its gradient goes back to the host


class Piece(Protocol):
    """Consecutive rows in the memory of the host; ``first`` is the place of the first one among all."""

    @property
    def first(self) -> int:
        """The place of the first row."""

    @property
    def matrix(self) -> ByRows:
        """The rows, which are valid until the next piece."""


class HostRows(Protocol):
    """Rows that the host has in memory or reads from a disk."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    @property
    def n_bytes(self) -> int:
        """The number of bytes of all rows."""

    @property
    def kind(self) -> str:
        """Their kind: "dense", "sparse" or "one-hot"."""

    def chunks(self) -> Iterator[Piece]:
        """Yield all rows in pieces, in their order."""

    def sample(self, share: float) -> tuple[Matrix, np.ndarray]:
        """Return about this share of the rows in memory, and their places among all."""

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the data."""


class RowsOfMatrix(NamedTuple):
    """Some consecutive rows of a matrix in memory."""

    first: int
    matrix: Matrix


class MatrixRows:
    """The rows of a dense or CSR matrix in memory, in pieces of about the same size."""

    def __init__(self, matrix: Matrix) -> None:
        if matrix.is_sparse:
            matrix = Matrix(matrix.X.tocsr())
        self.matrix, self.shape, self.n_bytes = matrix, matrix.shape, matrix.n_bytes
        self.kind = "sparse" if matrix.is_sparse else "dense"

    def chunks(self) -> Iterator[RowsOfMatrix]:
        """Yield views of consecutive rows."""
        n, d = self.shape
        n_pieces = -(-self.n_bytes // max(_PIECE, _PER_FEATURE * d))
        borders = np.linspace(0, n, min(n, n_pieces) + 1).astype(np.int64).tolist()
        for start, stop in itertools.pairwise(borders):
            yield RowsOfMatrix(start, self._between(start, stop))

    def _between(self, start: int, stop: int) -> Matrix:
        X = self.matrix.X
        if not self.matrix.is_sparse:
            return Matrix(X[start:stop])
        entries = slice(int(X.indptr[start]), int(X.indptr[stop]))
        parts = X.data[entries], X.indices[entries], X.indptr[start : stop + 1] - X.indptr[start]
        return Matrix(scipy.sparse.csr_matrix(parts, shape=(stop - start, self.shape[1]), copy=False))

    def sample(self, share: float) -> tuple[Matrix, np.ndarray]:
        """Return about this share of the rows, evenly spread, and their places among all."""
        every = max(1, int(1.0 / share))
        return self.matrix.thinned(every), spread_rows(self.shape[0], every)

    def definition(self) -> tuple[object, ...]:
        """Return shape and data."""
        X = self.matrix.X
        return (self.shape, *((X.data, X.indices, X.indptr) if self.matrix.is_sparse else (X,)))


class StreamedMatrix(SweptMatrix):
    """X on the host, for a device that cannot hold it; ``shift`` is subtracted from each row of dense data."""

    def __init__(self, device: Device, source: HostRows, shift: np.ndarray | None = None) -> None:
        self.device, self.source, self.shift = device, source, shift
        self.shape, self.n_bytes = source.shape, source.n_bytes
        self.n_stored = self.n_bytes // 4  # about
        self.n_passes = 0
        self._order: DeviceArray | None = None  # the features by their frequency in the first piece of sparse rows

    def with_shift(self, shift: np.ndarray | None) -> StreamedMatrix:
        """Return the same data with other means subtracted."""
        return StreamedMatrix(self.device, self.source, shift)

    def blocks(self) -> Iterator[tuple[slice, DeviceMatrix]]:
        """Yield the places of consecutive rows, and these rows on the device, where they are until the next ones."""
        with contextlib.closing(sent_ahead(self.device, self.source.chunks())) as pieces:
            for place, arrays in pieces:
                yield place, self._on_device(place.stop - place.start, arrays)
                Interrupts.end_pass()
        self.n_passes += 1

    def _on_device(self, n_rows: int, arrays: tuple[DeviceArray, ...]) -> DeviceMatrix:
        """Return rows on the device, from the arrays of :func:`arrays_of`."""
        device, kind = self.device, self.source.kind
        if kind == "dense":
            return DenseOnDevice(device, arrays[0], self.shift)
        matrix: SparseOnDevice | OneHotOnDevice
        if kind == "sparse":
            X = device.sparse.csr_matrix(arrays, shape=(n_rows, self.shape[1]))
            matrix = SparseOnDevice(device, X, self._order)
        else:
            matrix = OneHotOnDevice(device, arrays[0], self.shape[1], self._order)
        self._order = matrix.order
        return matrix

    def predict(self, w: np.ndarray) -> DeviceArray:
        """Return X w."""
        p = self.device.empty(self.shape[0])
        for place, block in self.blocks():
            p[place] = block.predict(w)
        return p

    def expand(self, w: np.ndarray, b: float, p: DeviceArray | None, losses: Losses) -> Swept:
        """Return sums, gradient and curvatures at w."""
        sums, r, D = 0.0, np.zeros(self.shape[1]), self.device.empty(self.shape[0])
        for place, block in self.blocks():
            swept = block.expand(w, b, None if p is None else p[place], losses.part(place))
            sums, D[place] = sums + swept.sums, swept.D
            r += swept.r
        return Swept(np.asarray(sums), r, D)

    def combine(self, alpha: DeviceArray) -> np.ndarray:
        """Return X' alpha."""
        total = np.zeros(self.shape[1])
        for place, block in self.blocks():
            total += block.combine(alpha[place])
        return total

    def measure(self, losses: Losses) -> tuple[np.ndarray, float]:
        """Return the weighted squares of the columns, and the largest absolute entry."""
        squares, largest = np.zeros(self.shape[1]), 0.0
        for place, block in self.blocks():
            own, entry = block.measure(losses.part(place))
            squares += own
            largest = max(largest, entry)
        return squares, largest

    def along_shift(self, w: np.ndarray) -> float:
        """Return <shift, w>."""
        return 0.0 if self.shift is None else float(self.shift @ w)


def arrays_of(matrix: ByRows) -> tuple[np.ndarray, ...]:
    """Return the arrays that represent rows on a device: entries, data and places of CSR, or codes by their fields."""
    if isinstance(matrix, OneHotMatrix):
        return (np.ascontiguousarray(matrix.features(slice(None)).T, dtype=np.int32),)
    assert isinstance(matrix, Matrix)
    if not matrix.is_sparse:
        return (matrix.X,)
    X = matrix.X
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)


def sent_ahead(device: Device, pieces: Iterator[Piece]) -> Generator[tuple[slice, tuple[DeviceArray, ...]], None, None]:
    """Yield the places of each piece, and its arrays on the device until the next one; the next are sent meanwhile.

    Whoever leaves before the end must close it: when it would be collected otherwise depends on the version of Python.
    """

    def fill(lane: Lane) -> tuple[slice, Lane] | None:
        piece = next(pieces, None)
        if piece is None:
            return None
        lane.fill(arrays_of(piece.matrix))
        return slice(piece.first, piece.first + piece.matrix.shape[0]), lane

    free, *others = (device.lane() for _ in range(_LANES))
    with contextlib.ExitStack() as stack:
        for lane in (free, *others):
            stack.callback(lane.close)
        pool = concurrent.futures.ThreadPoolExecutor(1, "condgrad-send")  # one piece is copied at a time, on all cores
        stack.callback(pool.shutdown, cancel_futures=True)
        filled = collections.deque(pool.submit(fill, lane) for lane in others)
        while (found := filled.popleft().result()) is not None:
            filled.append(pool.submit(fill, free))
            place, free = found
            yield place, free.arrays()
            free.release()
