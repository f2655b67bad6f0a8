"""ArrowRows: the rows of an uncompressed Arrow file, read where they lie.

In such a file every column of a record batch is an array of numbers. pyarrow finds where it begins; from then on plain
reads bring the columns of some rows to memory, where they are put side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condgrad.storage.array_files import Buffer, StoppedError, fill
from condgrad.storage.regular_files import REMEDY
from condgrad.storage.sources.arrow import open_arrow

SUFFIXES = (".arrow", ".feather")
_REMEDY = "convert the file with condgrad.rows.convert or `condgrad convert`."
_TOGETHER = 1024  # rows that are put side by side at once, so that they stay in the cache


class BatchPart(NamedTuple):
    """Some rows of a record batch: where each of their columns begins in the file."""

    n_rows: int
    offsets: tuple[int, ...]

    def rows(self, start: int, stop: int, sizes: Sequence[int]) -> BatchPart:
        """Return some of these rows; ``sizes`` has the bytes of a number of each column."""
        offsets = (offset + start * size for offset, size in zip(self.offsets, sizes, strict=True))
        return BatchPart(stop - start, tuple(offsets))


class ArrowRows:
    """Consecutive rows of an Arrow file, as the file of a chunk.

    Parameters
    ----------
    path : Path
    dtypes : sequence of numpy dtypes
        Those of the columns.
    parts : sequence of BatchPart
    """

    def __init__(self, path: Path, dtypes: Sequence[np.dtype], parts: Sequence[BatchPart]) -> None:
        self.path, self._dtypes, self._parts = path, tuple(dtypes), tuple(parts)
        self.dtype = np.dtype(np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64)
        self.shape = (sum(part.n_rows for part in parts), len(self._dtypes))
        self._stamp = _stamp_of(path)

    @property
    def n_bytes(self) -> int:
        """The number of bytes of the rows in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def stamp(self) -> tuple[int, ...]:
        """Return size and time of the last change, as they were when the file was opened."""
        return self._stamp

    def read(
        self, buffer: Buffer, start: int, stop: int, *, check: bool = False, stopped: Callable[[], bool] = bool
    ) -> np.ndarray:
        """Return the rows from ``start`` to ``stop`` in memory of ``buffer``; there are no checksums to ``check``."""
        out = np.frombuffer(buffer.take((stop - start) * self.shape[1] * self.dtype.itemsize), self.dtype)
        out = out.reshape(stop - start, self.shape[1])
        try:
            with open(self.path, "rb", buffering=0) as file:
                if _stamp_of(file.fileno()) != self._stamp:
                    raise OSError(f"{str(self.path)!r} changed after it was opened; open the rows again.")
                end = 0
                for part in self._cut(start, stop):
                    begin, end = end, end + part.n_rows
                    self._put(file, part, out[begin:end], stopped)
        except OSError as error:
            if error.strerror is None:  # one of our own sentences
                raise
            raise OSError(f"{str(self.path)!r} could not be read ({error.strerror}); {REMEDY}") from None
        return out

    def _cut(self, start: int, stop: int) -> Iterator[BatchPart]:
        """Yield the parts of some rows."""
        sizes, first = [dtype.itemsize for dtype in self._dtypes], 0
        for part in self._parts:
            begin, end = max(start - first, 0), min(stop - first, part.n_rows)
            if begin < end:
                yield part.rows(begin, end, sizes)
            first += part.n_rows

    def _put(self, file: Any, part: BatchPart, out: np.ndarray, stopped: Callable[[], bool]) -> None:
        """Read the columns of a part and put them side by side."""
        columns = np.empty((len(self._dtypes), part.n_rows), self.dtype)
        for column, dtype, offset in zip(columns, self._dtypes, part.offsets, strict=True):
            if stopped():
                raise StoppedError
            own = column if dtype == self.dtype else np.empty(part.n_rows, dtype)
            file.seek(offset)
            fill(file, own.view(np.uint8).data, repr(str(self.path)))
            column[:] = own
        for begin in range(0, part.n_rows, _TOGETHER):
            out[begin : begin + _TOGETHER] = columns[:, begin : begin + _TOGETHER].T


class ArrowColumns(NamedTuple):
    """The columns of numbers of an Arrow file: names, dtypes, and where they begin in each record batch."""

    path: Path
    names: list[str]
    dtypes: list[np.dtype]
    batches: list[BatchPart]

    def only(self, names: Sequence[str]) -> ArrowColumns:
        """Return some of the columns."""
        places = [self.names.index(name) for name in names]
        parts = [BatchPart(part.n_rows, tuple(part.offsets[k] for k in places)) for part in self.batches]
        return ArrowColumns(self.path, list(names), [self.dtypes[k] for k in places], parts)

    def chunks(self, n_bytes: int) -> Iterator[ArrowRows]:
        """Yield the rows, about so many bytes at a time."""
        sizes = [dtype.itemsize for dtype in self.dtypes]
        height = max(1, n_bytes // (8 * len(sizes)))
        waiting: list[BatchPart] = []
        for part in self.batches:
            for start in range(0, part.n_rows, height):
                here = part.rows(start, min(start + height, part.n_rows), sizes)
                if waiting and sum(other.n_rows for other in waiting) + here.n_rows > height:
                    yield ArrowRows(self.path, self.dtypes, waiting)
                    waiting = []
                waiting.append(here)
        yield ArrowRows(self.path, self.dtypes, waiting)

    def whole(self) -> ArrowRows:
        """Return all rows."""
        return ArrowRows(self.path, self.dtypes, self.batches)


def arrow_columns(path: Path) -> ArrowColumns:
    """Return the columns of an uncompressed Arrow file of numbers; raise one sentence for any other one."""
    (file, begin), name, n_bytes = open_arrow(path), repr(str(path)), path.stat().st_size
    titles = list(file.schema.names)
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice is not None:
        raise ValueError(f"{name} has two columns named {twice!r}; rename one of them.")
    dtypes = [_dtype_of(kind, title, name) for title, kind in zip(titles, file.schema.types, strict=True)]
    parts = []
    for k in range(file.num_record_batches):
        batch = file.get_batch(k)
        if batch.num_rows == 0:
            continue
        missing = [title for title, column in zip(titles, batch.columns, strict=True) if column.null_count]
        if missing:
            raise ValueError(f"{name} has no value in some rows of the column {missing[0]!r}; fill them in.")
        offsets = tuple(column.buffers()[1].address - begin for column in batch.columns)
        if min(offsets) < 0 or max(offsets) >= n_bytes:  # they lie in other memory, where they were unpacked
            raise ValueError(f"{name} is compressed, so its rows cannot be read where they lie; {_REMEDY}")
        parts.append(BatchPart(batch.num_rows, offsets))
    if not parts or not dtypes:
        raise ValueError(f"{name} must hold samples and features.")
    return ArrowColumns(path, titles, dtypes, parts)


def _dtype_of(kind: Any, title: str, name: str) -> np.dtype:
    """Return the dtype of a column as it lies in the file."""
    try:
        dtype = np.dtype(kind.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        dtype = np.dtype(object)
    if dtype.kind not in "iuf":  # a boolean takes one bit
        raise ValueError(f"{name} has the column {title!r} of {kind}, not of numbers; {_REMEDY}")
    return dtype


def _stamp_of(file: Path | int) -> tuple[int, int]:
    """Return size and time of the last change."""
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns
