"""ColumnWriter: data become chunks of columns on disk, in bounded memory.

What can be cut by columns, an array in memory or a file in Fortran order, is written at once. Samples that come in
batches take two steps: they are first written in pieces of some hundred thousand samples, each by columns; then the
same columns of all pieces are put together. So the data are written twice and read once more.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.linalg.convert import as_targets
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.storage import journal as journals
from condgrad.storage import manifest as manifests
from condgrad.storage.array_files import ArrayFile, Buffer, read_array, write_array
from condgrad.storage.file_entries import Chunk
from condgrad.storage.index_checks import check_indices, check_indptr
from condgrad.storage.journal import Journal
from condgrad.storage.layouts import Wanted, check_chunks, column_files
from condgrad.storage.manifest import Manifest
from condgrad.storage.row_batch import SPARSE
from condgrad.storage.row_checks import Form
from condgrad.storage.row_writer import (
    ConversionProgress,
    Queue,
    Report,
    RowWriter,
    Settings,
    check_space,
    remove_files,
    remove_unrecorded,
)
from condgrad.storage.sources.base import Batch, Place, Source
from condgrad.storage.stored_columns import extremes_of
from condgrad.storage.whole_files import sync_folder, write_whole

_CHUNK = 2**25  # bytes of a chunk of columns
_BAND = 2**28  # bytes of the columns that are put together at once
_PIECE = 2**28  # bytes of the samples that are written by columns at once


class Bands(Protocol):
    """Columns that can be taken some at a time.

    Attributes
    ----------
    shape : (int, int)
        Samples and features.
    kind : {"dense", "sparse"}
    offsets : array of n_features + 1 numbers
        How many bytes the columns before each one have, once they are written.
    """

    shape: tuple[int, int]
    kind: str
    offsets: np.ndarray

    def band(self, first: int, stop: int) -> Any:
        """Return the columns from ``first`` to ``stop``: an array in Fortran order, or a CSC matrix."""


class ArrayBands:
    """The columns of an array in memory or mapped, or of a sparse matrix in memory."""

    def __init__(self, X: Any, dtype: np.dtype | None = None) -> None:
        self.shape, self._X = X.shape, X
        own = X.dtype.newbyteorder("=") if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self.dtype = dtype or own
        if scipy.sparse.issparse(X):
            self.kind, self.offsets = "sparse", X.indptr.astype(np.int64) * (self.dtype.itemsize + 4)
        else:
            self.kind, self.offsets = "dense", np.arange(X.shape[1] + 1) * X.shape[0] * self.dtype.itemsize

    def band(self, first: int, stop: int) -> Any:
        """Return some columns, checked."""
        X = self._X[:, first:stop]
        X = X.astype(self.dtype) if self.kind == "sparse" else np.array(X.T, dtype=self.dtype, order="C").T
        extremes_of(Matrix(X), first, "the source")
        return X


class PieceBands:
    """The columns of samples that lie in pieces, one after the other."""

    def __init__(self, folder: Path, pieces: list[Chunk], kind: str, n_features: int) -> None:
        self._files = [{role: ArrayFile.of(folder, entry) for role, entry in piece.files.items()} for piece in pieces]
        self._sizes = [piece.size for piece in pieces]
        self.shape, self.kind = (sum(self._sizes), n_features), kind
        itemsize = self._files[0]["data" if kind == "sparse" else "X"].dtype.itemsize
        if kind == "sparse":
            self._indptrs = [self._indptr_of(files["indptr"]) for files in self._files]
            self.offsets = np.sum(self._indptrs, axis=0) * (itemsize + 4)
        else:
            self.offsets = np.arange(n_features + 1) * self.shape[0] * itemsize

    def _indptr_of(self, file: ArrayFile) -> np.ndarray:
        """Return where each column begins in a piece; columns that came later than its samples have no entries."""
        indptr = file.read(Buffer(), 0, file.shape[0], check=False)
        return np.append(indptr, np.full(self.shape[1] + 1 - indptr.size, indptr[-1]))

    def band(self, first: int, stop: int) -> Any:
        """Return some columns of all pieces."""
        if self.kind == "sparse":
            return scipy.sparse.vstack([self._part(k, first, stop) for k in range(len(self._files))], format="csc")
        out, end = np.empty((stop - first, self.shape[0]), self._files[0]["X"].dtype), 0
        for files, size in zip(self._files, self._sizes, strict=True):
            begin, end = end, end + size
            out[:, begin:end] = files["X"].read(Buffer(), first, stop, check=False)
        return out.T

    def _part(self, k: int, first: int, stop: int) -> Any:
        indptr = self._indptrs[k][first : stop + 1]
        begin, end = indptr[[0, -1]].tolist()
        data, indices = (self._files[k][role].read(Buffer(), begin, end, check=False) for role in SPARSE[:2])
        return scipy.sparse.csc_matrix((data, indices, indptr - begin), shape=(self._sizes[k], stop - first))


def write_bands(
    folder: Path, bands: Bands, identity: dict[str, Any] | None, y: np.ndarray | None, report: Report
) -> None:
    """Write columns that can be taken some at a time, or those that an interrupted conversion has left to write.

    ``identity`` tells the source from others; it is None if an interrupted conversion cannot find it again.
    """
    writer = _begun(folder, identity, None, report)
    check_space(folder, int(bands.offsets[-1]), writer.journal)
    with _cleaned_up(folder, identity):
        writer.write_chunks(bands)
        writer.finish_with(bands, y, {})


def write_samples(folder: Path, source: Source, dtype: np.dtype | None, y: ArrayLike | None, report: Report) -> None:
    """Write all samples of a source by columns, or what an interrupted conversion has left to write."""
    writer = _begun(folder, source.identity, dtype, report)
    n_bytes = source.n_bytes(dtype)
    check_space(folder, None if n_bytes is None else 2 * n_bytes, writer.journal)
    with _cleaned_up(folder, source.identity):
        writer.read(_Unfolded(source))
        bands = writer.bands()
        writer.write_chunks(bands)
        writer.finish_with(bands, writer.targets() if y is None else as_targets(y, bands.shape[0]), source.facts())


def _begun(folder: Path, identity: dict[str, Any] | None, dtype: np.dtype | None, report: Report) -> ColumnWriter:
    """Return a writer that continues where an interrupted conversion of the same source stopped, or a new one."""
    plan = {"source": identity, "layout": "columns", "dtype": None if dtype is None else dtype.name, "bytes": _CHUNK}
    journal = Journal(plan) if identity is None else Journal.read(folder, plan)
    try:
        writer = ColumnWriter(folder, journal, Settings(_PIECE, None, dtype), report)
    except (OSError, ValueError):  # its files are damaged
        writer = ColumnWriter(folder, Journal(plan), Settings(_PIECE, None, dtype), report)
    remove_unrecorded(folder, writer.journal)
    return writer


@contextlib.contextmanager
def _cleaned_up(folder: Path, identity: dict[str, Any] | None) -> Iterator[None]:
    """Remove what was written if a conversion that cannot be continued ends early."""
    try:
        yield
    except BaseException:
        if identity is None:
            remove_files(folder)
        raise


class _Unfolded(Source):
    """A source whose one-hot rows come as sparse rows."""

    def __init__(self, source: Source) -> None:
        self._source, self.name, self.identity = source, source.name, source.identity
        self.has_fixed_width = source.has_fixed_width

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield the batches."""
        for batch in self._source.batches(place):
            if batch.weight is not None or batch.offset is not None:
                kind = "weights" if batch.weight is not None else "offsets"
                raise ValueError(f"{self.name} has {kind}, which columns on disk do not store; give them to the path.")
            X = batch.X
            yield batch._replace(X=X.chosen(slice(None)).X) if isinstance(X, OneHotMatrix) else batch

    def share(self, place: Place) -> float | None:
        """Return which share of the samples lies before a place."""
        return self._source.share(place)


class ColumnWriter(RowWriter):
    """Writes the pieces and the chunks of a folder, and records each in the journal when it is complete."""

    def _check_written(self) -> None:
        pieces, form = self.journal.pieces, self.journal.form
        if pieces and form is None:
            raise ValueError("the journal does not say what its pieces are like")
        if form is not None and pieces:
            check_chunks(pieces, [_files_of_piece(form, piece) for piece in pieces], ("y",))
        for chunk in self.journal.written:
            arrays = {role: read_array(self.folder, entry) for role, entry in chunk.files.items()}
            if chunk in pieces and "indptr" in arrays:
                check_indptr(arrays["indptr"], chunk.files["indptr"].name)
                parts = tuple(arrays[role] for role in SPARSE)
                X = scipy.sparse.csc_matrix(parts, shape=(chunk.size, arrays["indptr"].size - 1))
                check_indices(X, chunk.size, chunk.files["indices"].name, "sample")

    @property
    def _written(self) -> list[Chunk]:
        return self.journal.pieces

    def _write_next(self, queue: Queue, is_last: bool = False) -> None:
        rows = queue.take(math.inf if is_last else self.settings.chunk_bytes)
        self.journal.place, self.journal.n_skipped = queue.place
        self.journal.is_read = is_last
        files = _files_of(rows.of_samples["X"].T if rows.X is None else rows.X.tocsc())
        of_samples = {role: array for role, array in rows.of_samples.items() if role == "y"}
        self._write_files(f"piece-{len(self._written):05}", files | of_samples, len(rows), self._written)

    def bands(self) -> PieceBands:
        """Return the columns of all pieces."""
        return PieceBands(self.folder, self.journal.pieces, self._form.kind, self._form.n_features)

    def targets(self) -> np.ndarray | None:
        """Return the targets of all pieces."""
        parts = [read_array(self.folder, piece.files["y"]) for piece in self.journal.pieces if "y" in piece.files]
        return np.concatenate(parts) if parts else None

    def write_chunks(self, bands: Bands) -> None:
        """Write the columns that are in no chunk yet; where chunks begin does not depend on what was written before."""
        n, d = bands.shape
        chunks = self.journal.chunks
        borders = np.append(np.flatnonzero(np.diff(bands.offsets[:-1] // _CHUNK, prepend=-1)), d)
        while len(chunks) < borders.size - 1:
            first = len(chunks)
            limit = bands.offsets[borders[first]] + _BAND
            last = max(first + 1, int(np.searchsorted(bands.offsets[borders], limit, side="right")) - 1)
            begin = int(borders[first])
            X = bands.band(begin, int(borders[last]))
            for k in range(first, last):
                own = X[:, borders[k] - begin : borders[k + 1] - begin]
                files = _files_of(own if bands.kind == "sparse" else own.T)
                self._write_files(f"chunk-{k:05}", files, int(borders[k + 1] - borders[k]), chunks)
                self.report(ConversionProgress("writing columns", n, float(borders[k + 1]) / d))

    def finish_with(self, bands: Bands, y: np.ndarray | None, facts: dict[str, Any]) -> None:
        """Write the targets and the manifest, which makes the folder valid, and remove the pieces."""
        names = facts.get("feature_names")
        with self._full_disk_explained():
            shared = {} if y is None else {"y": write_array(self.folder, "shared-y.npy", y.astype(np.float64))}
            sync_folder(self.folder)
            chunks = tuple(self.journal.chunks)
            content = Manifest("columns", bands.kind, bands.shape, chunks, shared, {"feature_names": names})
            write_whole(self.folder / manifests.NAME, [content.to_json().encode()])
        (self.folder / journals.NAME).unlink(missing_ok=True)
        for path in self.folder.glob("piece-*.npy"):
            path.unlink()
        sync_folder(self.folder)


def _files_of(X: Any) -> dict[str, np.ndarray]:
    """Return the arrays of the files of columns: of a CSC matrix, or of an array with a row for each column."""
    if not scipy.sparse.issparse(X):
        return {"X": X}
    indices = X.indices.astype(np.int32, copy=False)
    return {"data": X.data, "indices": indices, "indptr": X.indptr.astype(np.int64)}


def _files_of_piece(form: Form, piece: Chunk) -> Wanted:
    """Return the files that hold samples by columns; sparse ones may have fewer columns than those of later samples."""
    indptr = piece.files.get("indptr")
    width = form.n_features if indptr is None else min(form.n_features, indptr.shape[0] - 1)
    return column_files(form.kind, width, piece.size)
