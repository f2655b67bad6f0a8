"""Samples in memory, and batches that the user makes."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse

from condgrad.linalg.convert import as_data, as_vector
from condgrad.storage.sources.base import BATCH_BYTES, Batch, Place, Source


@runtime_checkable
class Sliceable(Protocol):
    """What has a shape and can be cut by rows, as arrays and data frames can."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""

    def __getitem__(self, rows: slice) -> Any:
        """Return some of the rows."""


@runtime_checkable
class Typed(Protocol):
    """What has one dtype for all its entries."""

    @property
    def dtype(self) -> Any:
        """The dtype."""


@runtime_checkable
class Frame(Protocol):
    """What has names of columns, as data frames have."""

    @property
    def columns(self) -> Iterable[Any]:
        """The names."""


class Arrays(Source):
    """X and numbers of its samples that can be cut by rows: arrays in memory or mapped, data frames, zarr or HDF5."""

    def __init__(
        self, X: Any, y: Any = None, weight: Any = None, offset: Any = None, *, name: str = "X",
        identity: dict[str, Any] | None = None, n_rows_together: int = 1,
    ) -> None:  # fmt: skip
        """Keep the arrays; batches have a multiple of ``n_rows_together`` samples."""
        self.name, self.identity, self.feature_names = name, identity, _column_names(X)
        if scipy.sparse.issparse(X):
            X = as_data(X).tocsr()  # slices of an invalid matrix could read other memory
        else:
            X = X if isinstance(X, Sliceable) else np.asarray(X)
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions (samples, features); got shape {X.shape}.")
        self.X: Any = X
        n_rows = BATCH_BYTES * X.shape[0] // max(1, self.n_bytes(None))
        self._step = max(1, n_rows // n_rows_together) * n_rows_together  # samples of a batch
        self.y, self.weight, self.offset = (
            None if part is None else as_vector(np.asarray(part), name, X.shape[0])
            for name, part in (("y", y), ("weight", weight), ("offset", offset))
        )

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield rows of X, about 16 MB at a time."""
        n = self.X.shape[0]
        for start in range(0 if place is None else place[0], n, self._step):
            rows = slice(start, start + self._step)
            numbers = (self.y, self.weight, self.offset)
            y, weight, offset = (None if part is None else part[rows] for part in numbers)
            yield Batch(self.X[rows], y, weight, (start,), offset)

    def n_bytes(self, dtype: np.dtype | None) -> int:
        """Return how many bytes X will have in a dtype, or in its own."""
        own = np.dtype(self.X.dtype) if isinstance(self.X, Typed) else None
        itemsize = 4 if (dtype or own) == np.float32 else 8
        if scipy.sparse.issparse(self.X):
            return int(self.X.nnz) * (itemsize + 4) + 8 * int(self.X.shape[0])
        return itemsize * math.prod(self.X.shape)

    def share(self, place: Place) -> float:
        """Return which share of the samples lies before a place."""
        return place[0] / self.X.shape[0]


class Batches(Source):
    """An iterable of ``X``, ``(X, y)``, ``(X, y, weight)`` or ``(X, y, weight, offset)``."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        self.is_read_once = isinstance(batches, Iterator)

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield the batches of the user."""
        for k, batch in enumerate(self._batches):
            X, y, weight, offset = parts_of(batch)
            self.feature_names = _column_names(X) if k == 0 else self.feature_names
            yield Batch(X, y, weight, (k,), offset)


def parts_of(batch: Any) -> tuple[Any, Any, Any, Any]:
    """Return X, y, weights and offsets of a tuple of up to four of them, or of X alone."""
    if not isinstance(batch, tuple):
        return batch, None, None, None
    if not 1 <= len(batch) <= 4:
        raise ValueError(
            f"a batch must be X, (X, y), (X, y, weight) or (X, y, weight, offset); got a tuple of {len(batch)}."
        )
    X, y, weight, offset = (*batch, None, None, None)[:4]
    return X, y, weight, offset


def _column_names(X: Any) -> list[str] | None:
    return list(map(str, X.columns)) if isinstance(X, Frame) else None
