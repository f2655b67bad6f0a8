"""ColumnChunk: consecutive columns of X on disk, dense in one file, or sparse in three, and some of them in memory."""

from __future__ import annotations

import abc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from condgrad.linalg.matrix import Matrix
from condgrad.storage.array_files import Buffer, read_array
from condgrad.storage.column_files import ColumnFile
from condgrad.storage.file_entries import Chunk
from condgrad.storage.index_checks import check_indices, check_indptr
from condgrad.storage.regular_files import REMEDY


class Piece(NamedTuple):
    """What one reader reads at once: chosen columns of a chunk, or the range in which they lie.

    Attributes
    ----------
    chunk : int
        Which chunk it is.
    columns : array
        The chosen columns of the chunk, ascending.
    is_range : bool
        Whether the columns between them are read, too.
    check : bool
        Whether these are all columns, and their checksums are compared.
    """

    chunk: int
    columns: np.ndarray
    is_range: bool
    check: bool = False

    @property
    def runs(self) -> np.ndarray:
        """The runs of adjacent columns that are read: the first one of each, and the one after its last."""
        columns = self.columns
        if self.is_range:
            return np.array([[columns[0], columns[-1] + 1]])
        breaks = np.flatnonzero(np.diff(columns) != 1)
        return np.stack([columns[np.append(0, breaks + 1)], columns[np.append(breaks, columns.size - 1)] + 1], axis=1)

    @property
    def places(self) -> np.ndarray:
        """The places of the chosen columns among those that are read."""
        return self.columns - self.columns[0] if self.is_range else np.arange(self.columns.size)


class ColumnChunk(abc.ABC):
    """Consecutive columns, of which any can be read.

    Attributes
    ----------
    path : Path
        The file that errors name.
    n_columns : int
    dtype : numpy dtype
    offsets : array of n_columns + 1 numbers
        How many bytes the columns before each one have.
    has_checksum : bool
        Whether a manifest says what the checksums should be.
    """

    path: Path
    n_columns: int
    dtype: np.dtype
    offsets: np.ndarray
    has_checksum: bool

    @abc.abstractmethod
    def read(self, piece: Piece, buffer: Buffer, stopped: Callable[[], bool]) -> Matrix:
        """Return the columns of a piece in memory of ``buffer``; ``stopped`` is asked between two reads."""

    def n_bytes(self, piece: Piece) -> int:
        """Return the number of bytes that are read for a piece."""
        runs = piece.runs
        return int((self.offsets[runs[:, 1]] - self.offsets[runs[:, 0]]).sum())


class DenseChunk(ColumnChunk):
    """Dense columns in one file."""

    def __init__(self, file: ColumnFile) -> None:
        self.file, self.path, self.n_columns, self.dtype = file, file.path, file.n_columns, file.dtype
        self.offsets = np.arange(file.n_columns + 1) * file.column_bytes
        self.has_checksum = file.has_checksum

    def read(self, piece: Piece, buffer: Buffer, stopped: Callable[[], bool]) -> Matrix:
        """Return the columns of a piece."""
        buffer.reserve(self.n_bytes(piece))
        into = _filled(self.file, piece, piece.runs, buffer, stopped)
        return Matrix(np.frombuffer(into, self.dtype).reshape(-1, self.file.n_samples).T)


class SparseChunk(ColumnChunk):
    """Sparse columns: their entries, the samples of these, and where each column begins, which stays in memory."""

    def __init__(self, folder: Path, chunk: Chunk, n_samples: int) -> None:
        self._data, self._indices = (ColumnFile.of(folder, chunk.files[role]) for role in ("data", "indices"))
        self.path, self.n_columns, self.dtype = self._data.path, chunk.size, self._data.dtype
        self.n_samples = n_samples
        entry = chunk.files["indptr"]
        self.indptr, name = read_array(folder, entry), repr(str(folder / entry.name))
        check_indptr(self.indptr, name)
        if self.indptr[-1] != self._data.n_columns:
            raise OSError(f"{name} does not fit to its columns; {REMEDY}")
        self.offsets = self.indptr * (self._data.column_bytes + self._indices.column_bytes)
        self.has_checksum = True

    def read(self, piece: Piece, buffer: Buffer, stopped: Callable[[], bool]) -> Matrix:
        """Return the columns of a piece."""
        runs = piece.runs
        buffer.reserve(self.n_bytes(piece) + 128)
        data, indices = (
            np.frombuffer(_filled(file, piece, self.indptr[runs], buffer, stopped), file.dtype)
            for file in (self._data, self._indices)
        )
        sizes = np.concatenate([np.diff(self.indptr[first : stop + 1]) for first, stop in runs.tolist()])
        indptr = np.append(0, np.cumsum(sizes))
        shape = (self.n_samples, sizes.size)
        X = scipy.sparse.csc_matrix((data, indices, indptr), shape=shape, copy=False)
        check_indices(X, self.n_samples, self._indices, "sample")
        return Matrix(X)


def _filled(
    file: ColumnFile, piece: Piece, runs: np.ndarray, buffer: Buffer, stopped: Callable[[], bool]
) -> memoryview:
    """Return memory of the buffer with runs of the columns, or of the entries, of a file."""
    into = buffer.take(int((runs[:, 1] - runs[:, 0]).sum()) * file.column_bytes)
    with file.opened(is_scattered=not piece.is_range) as opened:
        file.read_runs(opened, into, runs, stopped)
    if piece.check:
        file.compare(into)
    return into
