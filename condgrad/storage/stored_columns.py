"""StoredColumns: the features of X on disk, each column contiguous, of which only those that are asked for are read."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse

from condgrad.linalg.convert import check_magnitude
from condgrad.linalg.matrix import Matrix
from condgrad.storage.array_files import Buffer, read_array
from condgrad.storage.column_chunks import ColumnChunk, DenseChunk, Piece, SparseChunk
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
    matrix : Matrix
        These columns, and perhaps others between them that were read along.
    places : array of k numbers
        In which column of ``matrix`` each of the columns is.
    """

    columns: np.ndarray
    matrix: Matrix
    places: np.ndarray

    @property
    def was_read(self) -> np.ndarray:
        """All columns that ``matrix`` has."""
        has_others = self.matrix.shape[1] > self.columns.size
        return np.arange(self.columns[0], self.columns[-1] + 1) if has_others else self.columns


class StoredColumns:
    """The columns of an .npy file in Fortran order, of a memory map, or of a folder.

    Make it with :func:`condgrad.columns.open`, and pass it to :func:`condgrad.lasso_path` or
    :func:`condgrad.radius_path` in place of X.

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
    feature_names : list of str or None
        The names of the features, if the folder has them.
    """

    def __init__(self, path: Path, chunks: Sequence[ColumnChunk], shape: tuple[int, int]) -> None:
        self.path, self._chunks, self.shape = path, chunks, shape
        self._firsts = np.concatenate(([0], np.cumsum([chunk.n_columns for chunk in chunks])))
        self.dtype = chunks[0].dtype
        self.n_bytes = int(sum(chunk.offsets[-1] for chunk in chunks))
        self.y: np.ndarray | None = None
        self.feature_names: list[str] | None = None
        self.bytes_read = 0
        self._lock = threading.Lock()  # several readers count
        self._is_checked = [False] * len(chunks)

    @classmethod
    def of_file(cls, file: ColumnFile) -> StoredColumns:
        """Return the columns of one file of dense columns, which is read where it lies."""
        return cls(file.path, [DenseChunk(file)], (file.n_samples, file.n_columns))

    @classmethod
    def of_folder(cls, folder: Path) -> StoredColumns:
        """Return the columns of a folder with a manifest, and its targets."""
        manifest = Manifest.read(folder, "columns")
        chunks: list[ColumnChunk]
        if manifest.kind == "sparse":
            chunks = [SparseChunk(folder, chunk, manifest.shape[0]) for chunk in manifest.chunks]
        else:
            chunks = [DenseChunk(ColumnFile.of(folder, chunk.files["X"])) for chunk in manifest.chunks]
        columns = cls(folder, chunks, manifest.shape)
        if (entry := manifest.shared.get("y")) is not None:
            columns.y = read_array(folder, entry).astype(np.float64)
        columns.feature_names = manifest.facts.get("feature_names")
        return columns

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @property
    def n_reads(self) -> float:
        """How often all of X has been read so far; single columns count by their share."""
        return self.bytes_read / max(1, self.n_bytes)

    @property
    def is_sparse(self) -> bool:
        """Whether only some entries are stored."""
        return isinstance(self._chunks[0], SparseChunk)

    @property
    def format(self) -> str:
        """What kind of columns these are, in words."""
        return f"{'sparse' if self.is_sparse else 'dense'} columns on disk"

    @property
    def n_chunks(self) -> int:
        """The number of files, or of groups of files, in which the columns lie."""
        return len(self._chunks)

    @functools.cached_property
    def column_bytes(self) -> np.ndarray:
        """The number of bytes of each column."""
        return np.concatenate([np.diff(chunk.offsets) for chunk in self._chunks])

    @functools.cached_property
    def entry_offsets(self) -> np.ndarray | None:
        """How many entries are stored before each column, for sparse columns."""
        if not self.is_sparse:
            return None
        sizes = [np.diff(chunk.indptr) for chunk in self._chunks if isinstance(chunk, SparseChunk)]
        return np.append(0, np.cumsum(np.concatenate(sizes)))

    @property
    def n_stored(self) -> int:
        """The number of stored entries."""
        n, d = self.shape
        return n * d if self.entry_offsets is None else int(self.entry_offsets[-1])

    def file_of(self, column: int) -> Path:
        """Return the file in which a column lies."""
        return self._chunks[int(np.searchsorted(self._firsts, column, side="right")) - 1].path

    def read_chosen(self, columns: np.ndarray) -> Any:
        """Return the chosen columns in the order given: an array in Fortran order, or a CSC matrix, with k columns.

        Columns are read one by one, by several readers at once, and adjacent ones together.
        """
        columns = np.asarray(columns, dtype=np.int64)
        if columns.size and (columns.min() < 0 or columns.max() >= self.shape[1]):
            raise IndexError(
                f"columns must be between 0 and {self.shape[1] - 1}; got {columns.min()}, {columns.max()}."
            )
        ascending, inverse = np.unique(columns, return_inverse=True)
        if self.is_sparse:
            none = scipy.sparse.csc_matrix((self.shape[0], 0), dtype=self.dtype)
            parts = [block.matrix.chosen_columns(block.places) for block in self.blocks(ascending)]
            return scipy.sparse.hstack([none, *parts], format="csc")[:, inverse]
        rows = np.empty((ascending.size, self.shape[0]), self.dtype)
        for block in self.blocks(ascending):
            begin = int(np.searchsorted(ascending, block.columns[0]))
            rows[begin : begin + block.columns.size] = block.matrix.chosen_columns(block.places).T
        return rows[inverse].T

    def blocks(self, columns: np.ndarray | None = None) -> Iterator[ColumnBlock]:
        """Yield the chosen columns, which are ascending, or all of them, in blocks that are read ahead.

        A yielded block is valid until the next one: its memory is used again. Checksums are compared when a chunk is
        read as a whole for the first time.
        """
        pieces = list(self._pieces(columns))
        largest = max((self._chunks[piece.chunk].n_bytes(piece) for piece in pieces), default=1)
        yield from read_ahead(pieces, self._read, max(1, min(N_READERS, _BUFFERED // max(1, largest) - 1)))

    def _pieces(self, columns: np.ndarray | None) -> Iterator[Piece]:
        """Yield what to read: whole ranges where many of their columns are chosen, and single columns elsewhere."""
        n_bytes = self.n_bytes if columns is None else int(self.column_bytes[columns].sum())
        few = max(1, min(_SCATTERED, -(-n_bytes // (2 * N_READERS))))
        for k, (chunk, first) in enumerate(zip(self._chunks, self._firsts.tolist(), strict=False)):
            if columns is None:
                chosen = np.arange(chunk.n_columns)
                if not self._is_checked[k] and chunk.has_checksum:
                    yield Piece(k, chosen, is_range=True, check=True)
                    continue
            else:
                begin, end = np.searchsorted(columns, [first, first + chunk.n_columns])
                chosen = columns[begin:end] - first
            if chosen.size:
                yield from _cut(k, chosen, chunk.offsets, few)

    def _read(self, piece: Piece, buffer: Buffer, stopped: Callable[[], bool]) -> ColumnBlock:
        chunk = self._chunks[piece.chunk]
        matrix = chunk.read(piece, buffer, stopped)
        with self._lock:
            self.bytes_read += chunk.n_bytes(piece)
            self._is_checked[piece.chunk] |= piece.check
        return ColumnBlock(piece.columns + int(self._firsts[piece.chunk]), matrix, piece.places)

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError(
            "columns on disk are no array: pass them to condgrad.lasso_path or radius_path, or use their read_chosen"
        )

    def __repr__(self) -> str:
        n, d = self.shape
        kind = f"sparse {self.dtype}" if self.is_sparse else str(self.dtype)
        return f"<{n:,} x {d:,} {kind} columns in {str(self.path)!r}>"


def extremes_of(matrix: Matrix, first: int, source: str) -> tuple[float, float]:
    """Return the smallest and the largest entry of the columns ``first``, ...; raise if one is not usable."""
    values = matrix.X.data if matrix.is_sparse else matrix.X
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))  # nan or inf appears in one of them
    if np.isfinite(low) and np.isfinite(high):
        check_magnitude(np.array([low, high]), source)
        return low, high
    X = scipy.sparse.coo_matrix(matrix.X)
    order = np.lexsort((X.row, X.col))
    k = order[np.argmin(np.isfinite(X.data[order]))]
    raise ValueError(
        f"column {first + X.col[k]} of {source} has an entry that is not finite, the first one in row {X.row[k]}: "
        f"{X.data[k]}. Remove or impute such entries and write the data again."
    )


def _cut(chunk: int, columns: np.ndarray, offsets: np.ndarray, few: int) -> Iterator[Piece]:
    """Yield pieces of the chosen columns of a chunk: ranges of adjacent ones, or single ones with ``few`` bytes."""
    n_bytes, place = np.diff(offsets)[columns], offsets[columns] // _RANGE
    starts = np.append(0, np.flatnonzero(np.diff(place)) + 1)
    ends = np.append(starts[1:], columns.size)
    borders = np.searchsorted(offsets[:-1], [place[starts] * _RANGE, (place[starts] + 1) * _RANGE])
    is_range = np.add.reduceat(n_bytes, starts) > SHARE * np.diff(offsets[borders], axis=0)[0]
    for group in np.split(np.arange(starts.size), np.flatnonzero(np.diff(is_range)) + 1):
        if is_range[group[0]]:
            for r in group.tolist():
                yield Piece(chunk, columns[starts[r] : ends[r]], is_range=True)
        else:
            here = slice(starts[group[0]], ends[group[-1]])
            parts = (np.cumsum(n_bytes[here]) - n_bytes[here]) // few
            for scattered in np.split(columns[here], np.flatnonzero(np.diff(parts)) + 1):
                yield Piece(chunk, scattered, is_range=False)
