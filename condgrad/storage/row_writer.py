"""RowWriter: samples become chunks of rows on disk, in their order or in random order, in bounded memory.

Random order takes two steps. The samples are first written in pieces of about the size of a chunk, each in random
order. Then every sample of a piece is given to a chunk that is drawn at random: as a piece is already in random order,
its next few samples are as good as any. The samples of a chunk are put in random order again. Every order of all
samples is then equally likely (Rao 1961, Sandelius 1962), and the data are written twice and read once more.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import math
import shutil
from collections.abc import Callable, Iterator, Set
from pathlib import Path

import numpy as np

from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.storage import journal as journals
from condgrad.storage import manifest as manifests
from condgrad.storage.array_files import ArrayFile, write_array
from condgrad.storage.file_entries import Chunk
from condgrad.storage.index_checks import check_codes, check_indices, check_indptr
from condgrad.storage.journal import Journal
from condgrad.storage.layouts import OF_SAMPLES, check_chunks, row_files
from condgrad.storage.manifest import Manifest
from condgrad.storage.row_batch import RowBatch
from condgrad.storage.row_checks import Checker, Form
from condgrad.storage.sources.base import Place, Source
from condgrad.storage.summary import Summary
from condgrad.storage.whole_files import UNFINISHED, sync_folder, write_whole

_OWN_FILES = ("chunk-*.npy", "piece-*.npy", "shared-*.npy", f"*.npy*{UNFINISHED}", f"*.json*{UNFINISHED}",
              manifests.NAME, journals.NAME)  # fmt: skip
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How rows are written: bytes of a chunk, seed of the random order (None keeps the order), dtype of X."""

    chunk_bytes: int
    seed: int | None
    dtype: np.dtype | None


@dataclasses.dataclass(frozen=True)
class ConversionProgress:
    """How far a conversion is: its step ("reading" or "shuffling"), the samples done, their share if it is known."""

    step: str
    n_samples: int
    share: float | None

    def __str__(self) -> str:
        share = "" if self.share is None else f"  {self.share:.0%}"
        return f"{self.step}  {self.n_samples:,} samples{share}"


Report = Callable[[ConversionProgress], object]


def write_rows(folder: Path, source: Source, settings: Settings, report: Report) -> None:
    """Write all samples of a source, or what an interrupted conversion has left to write."""
    plan = {"source": source.identity, "chunk_bytes": settings.chunk_bytes, "seed": settings.seed,
            "dtype": None if settings.dtype is None else settings.dtype.name}  # fmt: skip
    journal = Journal(plan) if source.identity is None else Journal.read(folder, plan)
    try:
        writer = RowWriter(folder, journal, settings, report)
    except (OSError, ValueError):  # its files are damaged
        journal = Journal(plan)
        writer = RowWriter(folder, journal, settings, report)
    remove_unrecorded(folder, journal)
    hint = "" if settings.seed is None else " (shuffle=False needs half of that)"
    n_bytes, n_copies = source.n_bytes(settings.dtype), 1 if settings.seed is None else 2
    check_space(folder, None if n_bytes is None else n_copies * n_bytes, journal, hint)
    try:
        writer.read(source)
        if settings.seed is not None:
            writer.mix()
        writer.finish(source)
    except BaseException:
        if source.identity is None:  # it cannot be continued
            remove_files(folder)
        raise


def remove_files(folder: Path, kept: Set[str] = frozenset()) -> None:
    """Remove the files that conversions write, except ``kept``; the manifest goes first, it makes the folder valid."""
    (folder / manifests.NAME).unlink(missing_ok=True)
    for path in own_files(folder):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def own_files(folder: Path) -> list[Path]:
    """Return the files of a folder that have names as conversions give them."""
    return [path for pattern in _OWN_FILES for path in folder.glob(pattern)]


def remove_unrecorded(folder: Path, journal: Journal) -> None:
    """Remove the files that conversions write, except those that the journal names."""
    kept = {entry.name for chunk in journal.written for entry in chunk.files.values()}
    remove_files(folder, kept | {journals.NAME} if kept else kept)


def check_space(folder: Path, n_bytes: int | None, journal: Journal, hint: str = "") -> None:
    """Raise one sentence if it is known in advance that the disk is too small for all that is to be written."""
    if n_bytes is None:
        return
    done = sum(entry.n_bytes for chunk in journal.written for entry in chunk.files.values())
    needed, free = n_bytes - done, shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(f"the conversion needs {_size(needed)}{hint} in {str(folder)!r}, and {_size(free)} are free.")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"


class RowWriter:
    """Writes the chunks of a folder, and records each in the journal when it is complete."""

    def __init__(self, folder: Path, journal: Journal, settings: Settings, report: Report) -> None:
        self.folder, self.journal, self.settings, self.report = folder, journal, settings, report
        self._summary = Summary()
        self._check_written()

    def _check_written(self) -> None:
        """Read what is written already: checksums and places are verified, and the chunks are summed up."""
        if written := self.journal.written:
            if (form := self.journal.form) is None:
                raise ValueError("the journal does not say what its chunks are like")
            wanted = [row_files(form.kind, chunk.size, form.n_features, form.fields) for chunk in written]
            check_chunks(written, wanted, OF_SAMPLES)
        for piece in self.journal.pieces:
            self._read_whole(piece)
        for chunk in self.journal.chunks:
            self._summary.add(self._read_whole(chunk), self._form.fields)

    @property
    def _form(self) -> Form:
        assert self.journal.form is not None  # the first batch has determined it
        return self.journal.form

    def _read_whole(self, chunk: Chunk) -> RowBatch:
        """Return the samples of a chunk, its checksums and places verified."""
        files, form = self._files(chunk), self._form
        rows = RowBatch.read(files, 0, chunk.size, check=True)
        if rows.X is not None:
            check_indptr(rows.X.indptr, files["indptr"])
            check_indices(rows.X, form.n_features, files["indices"], "feature")
        elif form.fields is not None:
            check_codes(OneHotMatrix.of_fields(rows.of_samples, form.fields, form.n_features), files)
        return rows

    # In the order of the source ---------------------------------------------------------------------------------------

    def read(self, source: Source) -> None:
        """Write what the source has, in chunks or, if they are mixed later, in pieces in random order."""
        journal = self.journal
        if journal.is_read:
            return
        checker = Checker(self.settings.dtype, source.has_fixed_width, journal.form)
        queue, n_skipped = Queue(), journal.n_skipped
        n_done = sum(chunk.size for chunk in self._written)
        with contextlib.closing(source.batches(journal.place)) as batches:
            for k, batch in enumerate(batches):
                try:
                    rows = checker.check(batch)
                except (ValueError, TypeError) as error:
                    raise type(error)(f"{source.name}, batch {k}, which begins with sample {n_done}: {error}") from None
                skipped = min(n_skipped, len(rows))  # batches may be cut at other samples than before
                n_skipped -= skipped
                n_done += len(rows) - skipped
                if skipped < len(rows):
                    queue.add(rows, batch.place, skipped)
                journal.form = checker.form
                while queue.n_bytes >= 1.5 * self.settings.chunk_bytes:  # the last chunk has half of that or more
                    self._write_next(queue)
                self.report(ConversionProgress("reading", n_done, source.share(batch.place)))
        if not queue.is_empty:
            self._write_next(queue, is_last=True)
        if not self._written:
            raise ValueError(f"{source.name} holds no samples.")
        journal.is_read = True
        journal.write(self.folder)

    @property
    def _written(self) -> list[Chunk]:
        """What is written in the order of the source."""
        return self.journal.chunks if self.settings.seed is None else self.journal.pieces

    def _write_next(self, queue: Queue, is_last: bool = False) -> None:
        rows = queue.take(math.inf if is_last else self.settings.chunk_bytes)
        self.journal.place, self.journal.n_skipped = queue.place
        self.journal.is_read = is_last
        k = len(self._written)
        if self.settings.seed is None:
            self._write(f"chunk-{k:05}", rows, self.journal.chunks)
        else:
            self._write(f"piece-{k:05}", rows.shuffled(self._random(0, k)), self.journal.pieces)

    # In random order --------------------------------------------------------------------------------------------------

    def mix(self) -> None:
        """Write chunks, each of which has random samples of all pieces, and remove the pieces."""
        if self.journal.is_mixed:
            return
        pieces, chunks = self.journal.pieces, self.journal.chunks
        n_bytes = sum(entry.n_bytes for piece in pieces for entry in piece.files.values())
        n_chunks = max(1, round(n_bytes / self.settings.chunk_bytes))
        shares = np.full(n_chunks, 1.0 / n_chunks)
        counts = np.array([self._random(1, k).multinomial(piece.size, shares) for k, piece in enumerate(pieces)])
        counts = counts[:, counts.any(axis=0)]  # of few samples, some chunks may get none
        starts = np.cumsum(np.hstack((np.zeros((len(pieces), 1), np.int64), counts)), axis=1)
        n_samples = counts.sum(axis=0)
        for c in range(len(chunks), counts.shape[1]):
            parts = [
                RowBatch.read(self._files(piece), start, start + count)
                for piece, start, count in zip(pieces, starts[:, c].tolist(), counts[:, c].tolist(), strict=True)
                if count
            ]
            self._write(f"chunk-{c:05}", RowBatch.joined(parts).shuffled(self._random(2, c)), chunks)
            done = int(n_samples[: c + 1].sum())
            self.report(ConversionProgress("shuffling", done, done / int(n_samples.sum())))
        self.journal.pieces, self.journal.is_mixed = [], True
        self.journal.write(self.folder)
        for path in self.folder.glob("piece-*.npy"):
            path.unlink()

    def _random(self, *places: int) -> np.random.Generator:
        """Return the random numbers of one piece or chunk: they do not depend on where a conversion began."""
        assert self.settings.seed is not None
        return np.random.default_rng([self.settings.seed, *places])

    # The end ----------------------------------------------------------------------------------------------------------

    def finish(self, source: Source) -> None:
        """Write what belongs to no chunk, and the manifest, which makes the folder valid."""
        chunks, form = self.journal.chunks, self._form
        arrays = {"columns": self._summary.columns_of(form.n_features), **source.shared_arrays()}
        with self._full_disk_explained():
            shared = {role: write_array(self.folder, f"shared-{role}.npy", array) for role, array in arrays.items()}
        facts = {"is_shuffled": self.settings.seed is not None, **source.facts(), **self._summary.facts()}
        if form.fields is not None:
            facts["fields"] = form.fields
        shape = sum(chunk.size for chunk in chunks), form.n_features
        manifest = Manifest("rows", form.kind, shape, tuple(chunks), shared, facts)
        sync_folder(self.folder)
        with self._full_disk_explained():
            write_whole(self.folder / manifests.NAME, [manifest.to_json().encode()])
        (self.folder / journals.NAME).unlink()
        sync_folder(self.folder)

    # Files ------------------------------------------------------------------------------------------------------------

    def _files(self, chunk: Chunk) -> dict[str, ArrayFile]:
        return {role: ArrayFile.of(self.folder, entry) for role, entry in chunk.files.items()}

    def _write(self, name: str, rows: RowBatch, written: list[Chunk]) -> None:
        """Write the files of some samples, and record them."""
        files = rows.files()
        if "y" in files:
            files = {**files, "y": _smallest(files["y"])}
        self._write_files(name, files, len(rows), written)
        if written is self.journal.chunks:
            self._summary.add(rows, self._form.fields)

    def _write_files(self, name: str, files: dict[str, np.ndarray], size: int, written: list[Chunk]) -> None:
        """Write the files of a chunk, and then record it; if a file cannot be written, none of them stays."""
        names = {role: f"{name}.{role}.npy" for role in files}
        with self._full_disk_explained():
            try:
                entries = {role: write_array(self.folder, names[role], array) for role, array in files.items()}
            except BaseException:
                for file in names.values():
                    (self.folder / file).unlink(missing_ok=True)
                raise
            written.append(Chunk(size, entries))
            self.journal.write(self.folder)

    @contextlib.contextmanager
    def _full_disk_explained(self) -> Iterator[None]:
        """Turn the error of a full disk into a sentence that says what to do."""
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise OSError(
                f"the disk of {str(self.folder)!r} is full: a chunk takes about {_size(self.settings.chunk_bytes)}, "
                f"and {_size(shutil.disk_usage(self.folder).free)} are free; free more, and convert again."
            ) from None


class Queue:
    """Samples that wait until there are enough for a chunk, and the places where their batches begin."""

    def __init__(self) -> None:
        self._batches: collections.deque[tuple[RowBatch, Place, int]] = collections.deque()
        self.n_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether no sample waits."""
        return not self._batches

    @property
    def place(self) -> tuple[Place | None, int]:
        """Where the first sample lies: the place of its batch, and how many samples of the batch are before it."""
        return self._batches[0][1:] if self._batches else (None, 0)

    def add(self, rows: RowBatch, place: Place, n_skipped: int) -> None:
        """Add a batch without its first ``n_skipped`` samples."""
        self._put(rows.part(slice(n_skipped, None)) if n_skipped else rows, place, n_skipped)

    def _put(self, rows: RowBatch, place: Place, n_skipped: int, *, first: bool = False) -> None:
        (self._batches.appendleft if first else self._batches.append)((rows, place, n_skipped))
        self.n_bytes += rows.n_bytes

    def take(self, n_bytes: float) -> RowBatch:
        """Return the first samples, as few as have ``n_bytes`` or all; where batches begin makes no difference."""
        parts = []
        while n_bytes > 0 and self._batches:
            rows, place, n_skipped = self._batches.popleft()
            self.n_bytes -= rows.n_bytes
            count = len(rows) if rows.n_bytes <= n_bytes else rows.rows_of_bytes(int(n_bytes))
            if count < len(rows):
                self._put(rows.part(slice(count, None)), place, n_skipped + count, first=True)
                rows = rows.part(slice(count))
            parts.append(rows)
            n_bytes -= rows.n_bytes
        return RowBatch.joined(parts)


def _smallest(y: np.ndarray) -> np.ndarray:
    """Return targets in the smallest dtype that has their exact values."""
    with np.errstate(over="ignore", invalid="ignore"):
        for dtype in (np.int8, np.float32):
            if np.array_equal(y.astype(dtype), y):
                return y.astype(dtype)
    return y
