"""Partition: consecutive samples with a worker of a Dask cluster, in its memory or on its GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import scipy.sparse

from condgrad.linalg import convert
from condgrad.linalg.device.arrays import device_by_name, is_on_device, matrix_on_device, on_host
from condgrad.linalg.device.base import Device, DeviceArray
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.digest import digest
from condgrad.linalg.device.failures import DeviceMemoryError, failures_explained
from condgrad.linalg.device.matrices import DeviceMatrix
from condgrad.linalg.device.streamed import StreamedMatrix
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.matrix import Matrix

FindDevice: TypeAlias = Callable[[], Device]  # finds the device of the process that calls it

_TILE = 2**27  # bytes of the rows that are summed at a time on a device


def find_gpu() -> Device:
    """Return the GPU of this process."""
    return device_by_name("cuda")


class PartOfX(Protocol):
    """The rows of a partition, wherever they are."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    @property
    def n_bytes(self) -> int:
        """The number of bytes of the rows."""

    @property
    def kind(self) -> str:
        """Their kind: "dense" or "sparse"."""

    def moments(self) -> np.ndarray:
        """Return sum and sum of squares of the entries of each column of dense rows."""

    def head(self, count: int) -> Any:
        """Return the first rows in the memory of the host: an array or a CSR matrix."""

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W."""

    def checksum(self) -> str:
        """Return what identifies the data."""


class HostPart(NamedTuple):
    """Rows in the memory of a worker: a dense array with contiguous rows, or a CSR matrix."""

    X: Any

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        n_rows, n_features = self.X.shape
        return n_rows, n_features

    @property
    def n_bytes(self) -> int:
        """The number of bytes of the rows."""
        return Matrix(self.X).n_bytes

    @property
    def kind(self) -> str:
        """Their kind: "dense" or "sparse"."""
        return "sparse" if scipy.sparse.issparse(self.X) else "dense"

    def moments(self) -> np.ndarray:
        """Return sum and sum of squares of the entries of each column of dense rows."""
        X = self.X
        return np.array([X.sum(axis=0, dtype=np.float64), np.einsum("ij,ij->j", X, X, dtype=np.float64)])

    def head(self, count: int) -> Any:
        """Return the first rows."""
        return self.X[:count]

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W."""
        return Matrix(self.X).dot_each(W)

    def checksum(self) -> str:
        """Return what identifies the data."""
        X = self.X
        return fingerprint_of((X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,))


class DevicePart:
    """Rows on the GPU of a worker, with the numbers of its samples there.

    On its way to another worker, the part is brought to the host, and sent to the GPU of that worker.
    """

    def __init__(self, matrix: DeviceMatrix, find_device: FindDevice) -> None:
        self.matrix, self._find_device = matrix, find_device
        self.shape, self.n_bytes = matrix.shape, matrix.n_bytes
        self.kind = "dense" if isinstance(matrix, DenseOnDevice) else "sparse"
        self._sent: dict[str, tuple[np.ndarray, DeviceArray]] = {}

    @classmethod
    def of(cls, X: Any, find_device: FindDevice) -> Self:
        """Send rows to the GPU of this process, or take those that are there."""
        with failures_explained():
            device = find_device()
            matrix = matrix_on_device(device, X)
            if isinstance(matrix, StreamedMatrix):
                raise DeviceMemoryError(
                    f"a partition of {matrix.n_bytes / 1e9:.3g} GB does not fit into the free memory of "
                    f"{device.name}; use more workers with GPUs, or leave device out."
                )
        return cls(matrix, find_device)

    def __reduce__(self) -> tuple[Any, ...]:
        return DevicePart.of, (self.head(self.shape[0]), self._find_device)

    def moments(self) -> np.ndarray:
        """Return sum and sum of squares of the entries of each column of dense rows."""
        n, d = self.shape
        total, height = np.zeros((2, d)), max(1, _TILE // (8 * d))
        for top in range(0, n, height):
            X = self.matrix.chosen(slice(top, min(n, top + height)), None)
            total += self.matrix.device.to_host(self.matrix.device.xp.stack([X.sum(axis=0), (X * X).sum(axis=0)]))
        return total

    def head(self, count: int) -> Any:
        """Return the first rows, in the memory of the host."""
        return self.matrix.fetched(slice(0, min(count, self.shape[0])))

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W."""
        return np.array([self.matrix.device.to_host(self.matrix.predict(np.ascontiguousarray(w))) for w in W])

    def checksum(self) -> str:
        """Return what identifies the data."""
        return fingerprint_of((self.shape, digest(self.matrix.device, self.matrix.arrays)))

    def sent(self, name: str, values: np.ndarray | None) -> DeviceArray | None:
        """Return numbers of the samples on the device, which keeps the last ones of each name."""
        if values is None:
            return None
        known = self._sent.get(name)
        if known is None or known[0] is not values:
            known = self._sent[name] = values, self.matrix.device.to_device(values)
        return known[1]


class Partition(NamedTuple):
    """The rows of a partition at their worker, with targets, weights and offsets (None: there are none)."""

    rows: PartOfX
    y: np.ndarray | None
    weight: np.ndarray | None
    offset: np.ndarray | None = None
    shift: np.ndarray | None = None  # what is subtracted from each column

    @property
    def numbers(self) -> tuple[np.ndarray | None, ...]:
        """Targets, weights and offsets."""
        return self.y, self.weight, self.offset


class Outline(NamedTuple):
    """What a partition is like."""

    n_samples: int
    n_features: int
    n_bytes: int
    is_on_device: bool
    kind: str
    has_targets: bool
    has_weights: bool
    has_offsets: bool


# The tasks of workers -------------------------------------------------------------------------------------------------


def make_partition(X: Any, *numbers: Any) -> Partition:
    """Return a partition from arrays, those of NumPy, CuPy or SciPy, or from data frames."""
    rows: PartOfX = DevicePart.of(X, find_gpu) if is_on_device(X) else HostPart(_as_rows(X))
    count = rows.shape[0]
    checked = (None if each is None else convert.as_targets(np.asarray(on_host(each)), count) for each in numbers)
    return Partition(rows, *checked)


def _as_rows(X: Any) -> Any:
    X = convert.as_data(X)
    return X.tocsr() if scipy.sparse.issparse(X) else np.ascontiguousarray(X)


def to_device(part: Partition, find_device: FindDevice) -> Partition:
    """Return the partition with its rows on the GPU of the worker."""
    if isinstance(part.rows, DevicePart):
        return part
    return part._replace(rows=DevicePart.of(part.rows.head(part.rows.shape[0]), find_device))


def with_samples(part: Partition, *numbers: np.ndarray | None) -> Partition:
    """Return the partition with other targets, weights and offsets; None leaves them."""
    y, weight, offset = (old if each is None else each for each, old in zip(numbers, part.numbers, strict=True))
    return part._replace(y=y, weight=weight, offset=offset)


def with_shift(part: Partition, shift: np.ndarray) -> Partition:
    """Return the partition with another shift of its columns."""
    return part._replace(shift=shift)


def outline(part: Partition) -> Outline:
    """Return what the partition is like."""
    rows = part.rows
    is_on_device = isinstance(rows, DevicePart)
    return Outline(*rows.shape, rows.n_bytes, is_on_device, rows.kind, *(each is not None for each in part.numbers))


def numbers_of(part: Partition) -> tuple[np.ndarray | None, ...]:
    """Return targets, weights and offsets."""
    return part.numbers


def moments(part: Partition) -> np.ndarray:
    """Return sum and sum of squares of the entries of each column."""
    return part.rows.moments()


def head(part: Partition, count: int) -> Any:
    """Return the first rows."""
    return part.rows.head(count)


def head_of_all(part: Partition, count: int) -> tuple[Any, ...]:
    """Return the first rows, and their targets, weights and offsets."""
    return (part.rows.head(count), *(None if values is None else values[:count] for values in part.numbers))


def dot_each(part: Partition, W: Any) -> np.ndarray:
    """Return X w_c for every row w_c of a sparse W."""
    with failures_explained():
        return part.rows.dot_each(W.toarray())


def checksum(part: Partition) -> str:
    """Return what identifies the rows."""
    return part.rows.checksum()
