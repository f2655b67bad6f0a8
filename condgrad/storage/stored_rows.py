"""StoredRows: samples in chunks of rows on disk, read one chunk after the other."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import scipy.sparse

from condgrad.linalg.matrix import Matrix, stacked
from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.linalg.one_hot_slices import WIDTHS
from condgrad.storage.array_files import NO_CHECKSUM, ArrayFile, Buffer, read_array
from condgrad.storage.arrow_rows import ArrowColumns, ArrowRows
from condgrad.storage.file_entries import Chunk, FileEntry
from condgrad.storage.index_checks import check_codes, check_indices, check_indptr
from condgrad.storage.layouts import OF_SAMPLES
from condgrad.storage.manifest import Manifest
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.read_ahead import read_ahead
from condgrad.storage.regular_files import REMEDY
from condgrad.storage.sources.categories import Encoder

RowFile: TypeAlias = ArrayFile | ArrowRows
Stamps: TypeAlias = tuple[tuple[int, ...], ...]


@dataclasses.dataclass(frozen=True)
class _Reading:
    """How files are read: into which buffer, whether their checksums are compared, and when to stop."""

    buffer: Buffer
    check: bool
    stopped: Callable[[], bool]

    def __call__(self, file: RowFile, stop: int) -> np.ndarray:
        return file.read(self.buffer, 0, stop, check=self.check, stopped=self.stopped)


@dataclasses.dataclass(frozen=True)
class RowChunk:
    """The samples first, ..., first + n_samples - 1, in memory: their rows as a matrix."""

    first: int
    matrix: Matrix | OneHotMatrix

    @property
    def place(self) -> slice:
        """Where these samples lie among all."""
        return slice(self.first, self.first + self.matrix.shape[0])


class StoredRows(OutsideRows):
    """The samples of a folder that :func:`condgrad.rows.convert` wrote, or of an .npy or Arrow file of rows.

    Pass it to :class:`condgrad.Problem`, to the estimators or to ``predict`` in place of X. Only ``y``, ``weight`` and
    ``offset`` are kept in memory.

    Attributes
    ----------
    folder : Path
    manifest : Manifest
    shape : (int, int)
    n_reads : float
        How often all rows have been read so far; the heads of chunks, which are small, do not count.
    n_bytes, bytes_read : int
        The number of bytes of X, and of all that was read so far.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        files: Sequence[Mapping[str, RowFile]],
        given: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.folder, self.manifest, self._files = folder, manifest, files
        self._given = dict(given or {})  # numbers of the samples that are in no file
        self.shape = manifest.shape
        self.kind = manifest.kind
        sizes = [chunk.size for chunk in manifest.chunks]
        self._firsts = np.concatenate(([0], np.cumsum(sizes)))
        self._sizes = sizes
        self.n_chunks = len(sizes)
        counted = ("X", "data", "indices", *(f"codes{width}" for width in WIDTHS))
        self.n_bytes = sum(own[role].n_bytes for own in files for role in counted if role in own)
        self.bytes_read, self._whole_chunks = 0, 0
        self._lock = threading.Lock()  # several readers count
        self._checked: list[Stamps | None] = [None] * len(sizes)  # of the files that were read and found right

    @classmethod
    def of_folder(cls, folder: Path) -> StoredRows:
        """Return the rows of a folder with a manifest."""
        manifest = Manifest.read(folder, "rows")
        files = [{role: ArrayFile.of(folder, entry) for role, entry in c.files.items()} for c in manifest.chunks]
        ArrayFile.of(folder, manifest.shared["columns"]).stamp()  # so many features fit into a file at least
        return cls(folder, manifest, files)

    @classmethod
    def of_file(cls, path: Path, given: Mapping[str, np.ndarray], chunk_bytes: int) -> StoredRows:
        """Return the rows of an .npy file in C order, which is read where it lies, without checksums."""
        file = ArrayFile.of_user(path)
        if len(file.shape) != 2 or 0 in file.shape:
            raise ValueError(f"{file} must hold samples and features; its array has the shape {file.shape}.")
        if file.dtype not in (np.float32, np.float64):
            raise ValueError(f"{file} has dtype {file.dtype}, not float32 or float64; use condgrad.rows.convert.")
        n, step = file.shape[0], max(1, chunk_bytes // file.row_bytes)
        parts = [file.part(slice(start, start + step)) for start in range(0, n, step)]
        chunks = tuple(Chunk(part.shape[0], {"X": file.entry}) for part in parts)
        facts = {"is_shuffled": False, "feature_names": None, "date": path.stat().st_mtime_ns}
        manifest = Manifest("rows", "dense", (n, file.shape[1]), chunks, {}, facts)
        return cls(path, manifest, [{"X": part} for part in parts], given)

    @classmethod
    def of_arrow(cls, columns: ArrowColumns, given: Mapping[str, np.ndarray], chunk_bytes: int) -> StoredRows:
        """Return the rows of an uncompressed Arrow file, which is read where it lies, without checksums."""
        parts, path = list(columns.chunks(chunk_bytes)), columns.path
        n, d, status = sum(part.shape[0] for part in parts), len(columns.names), path.stat()
        entry = FileEntry(path.name, parts[0].dtype.str, (n, d), status.st_size, NO_CHECKSUM)
        chunks = tuple(Chunk(part.shape[0], {"X": entry}) for part in parts)
        facts = {"is_shuffled": False, "feature_names": columns.names, "date": status.st_mtime_ns}
        return cls(path, Manifest("rows", "dense", (n, d), chunks, {}, facts), [{"X": part} for part in parts], given)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @property
    def format(self) -> str:
        """What kind of rows these are, in words."""
        return f"{self.kind} rows on disk"

    @property
    def n_reads(self) -> float:
        """How often all rows have been read so far; the heads of chunks, which are small, do not count."""
        return self._whole_chunks / self.n_chunks

    @property
    def is_shuffled(self) -> bool:
        """Whether the samples are in random order, so that the head of a chunk is like the rest of it."""
        return bool(self.manifest.facts.get("is_shuffled", False))

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, if the source had names."""
        names: list[str] | None = self.manifest.facts.get("feature_names")
        return names

    @functools.cached_property
    def y(self) -> np.ndarray | None:
        """The targets in float64, or None if the folder has none."""
        return self._of_samples("y")

    @functools.cached_property
    def weight(self) -> np.ndarray | None:
        """The weights of the samples as they were given, or None."""
        return self._of_samples("weight")

    @functools.cached_property
    def offset(self) -> np.ndarray | None:
        """The offsets of the samples, or None."""
        return self._of_samples("offset")

    def _of_samples(self, role: str) -> np.ndarray | None:
        if role not in self._files[0]:
            return self._given.get(role)
        for chunk in self._files:
            chunk[role].stamp()  # there are as many samples as the manifest says
        out = np.empty(self.shape[0])
        for chunk, first, size in zip(self._files, self._firsts[:-1], self._sizes, strict=True):
            out[first : first + size] = chunk[role].read(Buffer(), 0, size, check=True)
        return out

    @functools.cached_property
    def columns(self) -> np.ndarray | None:
        """Sum, sum of squares and largest size of the entries of each column, (3, n_features); None if unknown."""
        entry = self.manifest.shared.get("columns")
        if entry is None:
            return None
        found = read_array(self.folder, entry)
        if not (np.isfinite(found).all() and found[1:].min() >= 0.0):
            raise OSError(f"{str(self.folder / entry.name)!r} has impossible sizes of columns; {REMEDY}")
        return found

    @property
    def chunk_sizes(self) -> np.ndarray:
        """The number of samples of each chunk."""
        return np.array(self._sizes)

    def chunks(self, share: float = 1.0, order: np.ndarray | None = None) -> Iterator[RowChunk]:
        """Yield the chunks in their own or a given order, read ahead; if ``share`` < 1, only the first rows of each.

        A yielded chunk is valid until the next one: its memory is used again.
        """

        def read(k: int, buffer: Buffer, stopped: Callable[[], bool]) -> RowChunk:
            return self.chunk(k, buffer, self._size_of_head(k, share), stopped)

        yield from read_ahead(list(range(self.n_chunks)) if order is None else order.tolist(), read)

    def _size_of_head(self, k: int, share: float) -> int:
        """Return the number of first rows of chunk k that are this share of it."""
        return min(self._sizes[k], max(1, round(share * self._sizes[k])))

    def chunk(self, k: int, buffer: Buffer, n_rows: int | None = None, stopped: Callable[[], bool] = bool) -> RowChunk:
        """Return chunk k, or its first ``n_rows`` samples; files are checked when they are first read as a whole."""
        size = self._sizes[k]
        n_rows = size if n_rows is None else min(n_rows, size)
        files = {role: file for role, file in self._files[k].items() if role not in OF_SAMPLES}
        stamps = tuple(file.stamp() for file in files.values())
        is_new = stamps != self._checked[k]
        check = is_new and n_rows == size
        buffer.reserve(sum(64 + file.n_bytes for file in files.values()))
        matrix = self._matrix_of(files, n_rows, _Reading(buffer, check, stopped))
        if is_new:
            self._check_content(files, matrix, int(self._firsts[k]))
        with self._lock:
            self._checked[k] = stamps if check else self._checked[k]
            self.bytes_read += matrix.n_bytes
            self._whole_chunks += n_rows == size
        return RowChunk(int(self._firsts[k]), matrix)

    def _check_content(self, files: dict[str, RowFile], matrix: Matrix | OneHotMatrix, first: int) -> None:
        """Raise unless a matrix whose files may have changed can be used: kernels do not look where entries lie."""
        if isinstance(matrix, OneHotMatrix):
            check_codes(matrix, files)
        elif matrix.is_sparse:
            check_indices(matrix.X, self.shape[1], files["indices"], "feature")
        elif "date" in self.manifest.facts:  # a file of the user, which nobody has checked
            self._check_finite(matrix, first)

    def _check_finite(self, matrix: Matrix, first: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(matrix.X.sum(dtype=np.float64)):
                return
        bad = np.argwhere(~np.isfinite(matrix.X))
        if bad.size:
            row, column = bad[0]
            raise ValueError(
                f"{str(self.folder)!r} has entries that are not finite, the first at position "
                f"({first + row}, {column}): {matrix.X[row, column]}. Remove or impute them."
            )

    def _matrix_of(self, files: dict[str, RowFile], n_rows: int, read: _Reading) -> Matrix | OneHotMatrix:
        n_features = self.shape[1]
        if self.kind == "dense":
            return Matrix(read(files["X"], n_rows))
        if self.kind == "one-hot":
            codes = {role: read(file, n_rows) for role, file in files.items()}
            return OneHotMatrix.of_fields(codes, self.manifest.facts["fields"], n_features)
        indptr = read(files["indptr"], n_rows + 1)
        check_indptr(indptr, files["indptr"])
        n_stored = int(indptr[-1])
        parts = (read(files["data"], n_stored), read(files["indices"], n_stored), indptr)
        return Matrix(scipy.sparse.csr_matrix(parts, shape=(n_rows, n_features), copy=False))

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W, in one read: an array of shape (k, n_samples)."""
        for own in self._files:
            for file in own.values():
                file.stamp()  # there are as many samples as the manifest says
        out = np.empty((W.shape[0], self.shape[0]))
        for chunk in self.chunks():
            out[:, chunk.place] = chunk.matrix.dot_each(W)
        return out

    def sample(self, share: float) -> tuple[Matrix, np.ndarray]:
        """Return this share of the rows in memory, the first ones of every chunk, and their places among all."""
        heads = [np.arange(self._size_of_head(k, share)) for k in range(self.n_chunks)]
        places = np.concatenate([first + head for first, head in zip(self._firsts[:-1], heads, strict=True)])
        if self.kind == "dense":  # one array for all heads: no second copy of them is ever in memory
            X, end = np.empty((places.size, self.shape[1]), self._files[0]["X"].dtype), 0
            for chunk in self.chunks(share):
                begin, end = end, end + chunk.matrix.shape[0]
                X[begin:end] = cast("Matrix", chunk.matrix).X
            return Matrix(X), places
        return stacked([chunk.matrix.chosen(slice(None)) for chunk in self.chunks(share)]), places

    @functools.cached_property
    def categories(self) -> dict[str, list[str]]:
        """The categories of the columns that had words, by their codes."""
        encoder = Encoder.read(self.folder, self.manifest)
        return {} if encoder is None else {field.name: field.categories for field in encoder.fields}

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the data: shape and checksums, or the date of a file without them."""
        crcs = [[entry.crc32 for entry in chunk.files.values()] for chunk in self.manifest.chunks]
        return (self.kind, self.shape, np.array(crcs, dtype=np.int64), self.manifest.facts.get("date", 0))

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<{n:,} x {d:,} {self.kind} rows in {self.n_chunks} chunks of {str(self.folder)!r}>"
