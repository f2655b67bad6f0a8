"""StoredColumns: the features of X on disk, each column contiguous, of which only those that are asked for are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from condgrad.linalg.convert import check_magnitude
from condgrad.storage.array_files import Buffer, read_array
from condgrad.storage.column_files import ColumnFile
from condgrad.storage.manifest import Manifest
from condgrad.storage.read_ahead import read_ahead

N_READERS = 8  # a disk serves scattered columns eight at a time several times faster than one by one
SHARE = 1.0 / 3.0  # share of the columns of a range above which the whole range is read: long reads are faster
_RANGE = 2**23  # bytes of a range of adjacent columns that is read at once
_BUFFERED = 2**28  # bytes of all buffers, if one of them can be smaller
_SCATTERED = 2**22  # bytes of scattered columns that one reader reads at once


class ColumnBlock(NamedTuple):
    """Some columns in memory.

    Attributes
    ----------
    columns : array of k numbers
        Which columns of X these are, in ascending order.
    values : array of shape (m, n_samples)
        These columns, and perhaps others between them that were read along.
    places : array of k numbers
        In which row of ``values`` each of the columns is.
    """

    columns: np.ndarray
    values: np.ndarray
    places: np.ndarray


class _Piece(NamedTuple):
    """What one reader reads at once: chosen columns of a file, or a range that they lie in."""

    file: int
    columns: np.ndarray  # within the file
    is_range: bool
    check: bool = False

    @property
    def n_read(self) -> int:
        return int(self.columns[-1] - self.columns[0]) + 1 if self.is_range else self.columns.size


class StoredColumns:
    """The columns of an .npy file in Fortran order, of a memory map, or of a folder.

    Make it with :func:`condgrad.columns.open`, and pass it to :func:`condgrad.lasso_path` in place of X.

    Attributes
    ----------
    path : Path
        The file or the folder.
    shape : (int, int)
        Samples and features.
    dtype : numpy dtype
    n_bytes : int
        The number of bytes of X.
    bytes_read : int
        How many bytes of columns have been read so far.
    n_reads : float
        The same in units of all of X.
    y : array or None
        The targets, if they were given or lie in the folder.
    """

    def __init__(self, path: Path, files: list[ColumnFile], y: np.ndarray | None = None) -> None:
        self.path, self._files, self.y = path, files, y
        self._firsts = np.concatenate(([0], np.cumsum([file.n_columns for file in files])))
        self.shape = (files[0].n_samples, int(self._firsts[-1]))
        self.dtype = files[0].dtype
        self.n_bytes = sum(file.n_bytes for file in files)
        self.bytes_read = 0
        self._lock = threading.Lock()  # several readers count
        self._is_checked = [False] * len(files)

    @classmethod
    def of_folder(cls, folder: Path) -> StoredColumns:
        """Return the columns of a folder with a manifest, and its targets."""
        manifest = Manifest.read(folder, "columns")
        if manifest.kind != "dense":
            raise ValueError(f"{str(folder)!r} holds {manifest.kind} columns; only dense columns are read from disk.")
        files = [ColumnFile.of(folder, chunk.files["X"]) for chunk in manifest.chunks]
        entry = manifest.shared.get("y")
        return cls(folder, files, None if entry is None else read_array(folder, entry).copy())

    @property
    def n_reads(self) -> float:
        """How often all of X has been read so far; single columns count by their share."""
        return self.bytes_read / max(1, self.n_bytes)

    @property
    def column_bytes(self) -> int:
        """The number of bytes of one column."""
        return self._files[0].column_bytes

    def file_of(self, column: int) -> Path:
        """Return the file in which a column lies."""
        return self._files[int(np.searchsorted(self._firsts, column, side="right")) - 1].path

    def read_chosen(self, columns: np.ndarray) -> np.ndarray:
        """Return the chosen columns in the order given: an array of shape (n_samples, k), in Fortran order.

        Columns are read one by one, by several readers at once, and adjacent ones together.
        """
        columns = np.asarray(columns, dtype=np.int64)
        if columns.size and (columns.min() < 0 or columns.max() >= self.shape[1]):
            raise IndexError(
                f"columns must be between 0 and {self.shape[1] - 1}; got {columns.min()}, {columns.max()}."
            )
        out = np.empty((columns.size, self.shape[0]), self.dtype)
        ascending, inverse = np.unique(columns, return_inverse=True)
        for block in self.blocks(ascending):
            begin = int(np.searchsorted(ascending, block.columns[0]))
            is_here = (inverse >= begin) & (inverse < begin + block.columns.size)
            out[is_here] = block.values[block.places[inverse[is_here] - begin]]
        return out.T

    def blocks(self, columns: np.ndarray | None = None) -> Iterator[ColumnBlock]:
        """Yield the chosen columns, which are ascending, or all of them, in blocks that are read ahead.

        A yielded block is valid until the next one: its memory is used again. Checksums are compared when a file is
        read as a whole for the first time.
        """
        pieces = list(self._pieces(columns))
        largest = self.column_bytes * max((piece.n_read for piece in pieces), default=1)
        yield from read_ahead(pieces, self._read, max(1, min(N_READERS, _BUFFERED // largest - 1)))

    def _pieces(self, columns: np.ndarray | None) -> Iterator[_Piece]:
        """Yield what to read: whole ranges where many of their columns are chosen, and single columns elsewhere."""
        n_chosen = self.shape[1] if columns is None else columns.size
        few = max(1, min(_SCATTERED // self.column_bytes, -(-n_chosen // (2 * N_READERS))))
        for k, (file, first) in enumerate(zip(self._files, self._firsts.tolist(), strict=False)):
            if columns is None:
                chosen = np.arange(file.n_columns)
                if not self._is_checked[k] and file.has_checksum:
                    yield _Piece(k, chosen, is_range=True, check=True)
                    continue
            else:
                begin, end = np.searchsorted(columns, [first, first + file.n_columns])
                chosen = columns[begin:end] - first
            yield from _cut(k, chosen, max(1, _RANGE // self.column_bytes), few)

    def _read(self, piece: _Piece, buffer: Buffer, stopped: Callable[[], bool]) -> ColumnBlock:
        file, columns = self._files[piece.file], piece.columns
        n_bytes = piece.n_read * file.column_bytes
        buffer.reserve(n_bytes)
        into = buffer.take(n_bytes)
        with file.opened(is_scattered=not piece.is_range) as opened:
            if piece.is_range:
                file.read_range(opened, into, int(columns[0]), stopped)
            else:
                file.read_columns(opened, into, columns, stopped)
        if piece.check:
            file.compare(into)
        with self._lock:
            self.bytes_read += n_bytes
            self._is_checked[piece.file] |= piece.check
        values = np.frombuffer(into, self.dtype).reshape(piece.n_read, -1)
        places = columns - columns[0] if piece.is_range else np.arange(columns.size)
        return ColumnBlock(columns + int(self._firsts[piece.file]), values, places)

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError("columns on disk are no array: pass them to condgrad.lasso_path, or use their read_chosen")

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{n:,} x {d:,} {self.dtype} columns in {str(self.path)!r}>"


def check_columns(values: np.ndarray, first: int, source: str) -> None:
    """Raise one sentence if an entry of the columns ``first``, ... is not finite, or too large."""
    low, high = float(values.min()), float(values.max())  # a nan or an inf in any entry appears in one of them
    if np.isfinite(low) and np.isfinite(high):
        check_magnitude(np.array([low, high]), source)
        return
    k, i = np.argwhere(~np.isfinite(values))[0].tolist()
    raise ValueError(
        f"column {first + k} of {source} has an entry that is not finite, the first one in row {i}: {values[k, i]}. "
        "Remove or impute such entries and write the data again."
    )


def _cut(file: int, columns: np.ndarray, width: int, few: int) -> Iterator[_Piece]:
    """Yield pieces of the chosen columns of a file: ranges of ``width`` columns, or up to ``few`` single ones."""
    if columns.size == 0:
        return
    borders = np.searchsorted(columns, np.arange(0, int(columns[-1]) + width + 1, width))
    is_range = np.diff(borders) > SHARE * width
    changes = np.flatnonzero(np.diff(is_range)) + 1
    for group in np.split(np.arange(is_range.size), changes):
        if is_range[group[0]]:
            for r in group.tolist():
                yield _Piece(file, columns[borders[r] : borders[r + 1]], is_range=True)
        else:
            scattered = columns[borders[group[0]] : borders[group[-1] + 1]]
            for begin in range(0, scattered.size, few):
                yield _Piece(file, scattered[begin : begin + few], is_range=False)
