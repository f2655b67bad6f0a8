"""ColumnFile: consecutive columns of X in one file, each contiguous, read all at once or in runs of adjacent ones."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from condgrad.storage.array_files import NO_CHECKSUM, StoppedError, fill, head_of, read_head
from condgrad.storage.file_entries import FileEntry
from condgrad.storage.regular_files import REMEDY, open_regular, status_of

_PIECE = 2**24  # bytes that one call reads at most; between two pieces a reader hears that it should stop
_CHANGED = "changed after it was opened; open the columns again."


class ColumnFile:
    """A dense array of shape (columns, samples) in C order, which is X of shape (samples, columns) in Fortran order.

    The entries of sparse columns are a file of columns with one number each.

    Parameters
    ----------
    path : Path
    dtype : numpy dtype
        float32 or float64, in native byte order.
    shape : (int, int)
        Numbers of columns and of samples.
    offset : int
        Where the first column begins.
    head : bytes
        With which bytes the file begins; empty if the offset is all that is known.
    crc32 : int
        The checksum of all bytes of the file.
    n_bytes : int, optional
        The size of the file, if a manifest says it.
    """

    def __init__(
        self,
        path: Path,
        dtype: np.dtype,
        shape: tuple[int, int],
        *,
        offset: int,
        head: bytes = b"",
        crc32: int = NO_CHECKSUM,
        n_bytes: int | None = None,
    ) -> None:
        self.path, self.dtype, self.offset = path, dtype, offset
        self.n_columns, self.n_samples = shape
        self.column_bytes = self.n_samples * dtype.itemsize
        self.crc32 = crc32
        self._head, self._n_bytes = head, n_bytes
        self._stamp: tuple[int, int] | None = None  # size and time of the last change, as they were at first

    @classmethod
    def of(cls, folder: Path, entry: FileEntry) -> ColumnFile:
        """Return the file that a manifest names, which has the size that it says."""
        dtype, head = np.dtype(entry.dtype), head_of(folder, entry)
        n_columns, n_samples = (*entry.shape, 1)[:2]
        shape, path = (n_columns, n_samples), folder / entry.name
        file = cls(path, dtype, shape, offset=len(head), head=head, crc32=entry.crc32, n_bytes=entry.n_bytes)
        with file._explained():
            file._check_size(status_of(path).st_size)
        return file

    @classmethod
    def of_npy(cls, path: Path) -> ColumnFile:
        """Return an .npy file of the user, in Fortran order."""
        head, shape, is_fortran, dtype = read_head(path)
        if len(shape) != 2:
            raise ValueError(f"{str(path)!r} must hold an array of two dimensions; it has the shape {shape}.")
        if not (is_fortran or 1 in shape) or dtype not in (np.float32, np.float64) or not dtype.isnative:
            what = f"holds {dtype}" if is_fortran else "is stored by rows (in C order)"
            raise ValueError(f"{str(path)!r} {what}; convert it with condgrad.columns.convert.")
        return cls._begun(cls(path, dtype, shape[::-1], offset=len(head), head=head))

    @classmethod
    def of_memmap(cls, X: np.memmap) -> ColumnFile:
        """Return the file, or the part of a file, that a memory map in Fortran order shows."""
        path, mapped = X.filename, X._mmap  # type: ignore[attr-defined]
        if X.ndim != 2 or not X.flags.f_contiguous or path is None or X.mode == "c":
            raise ValueError(
                "a memory map of columns must have two dimensions, Fortran order, and a file that holds what it shows; "
                f"got shape {X.shape} and mode {X.mode!r}. Use condgrad.columns.convert."
            )
        if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
            raise ValueError(f"a memory map of columns must hold float32 or float64; got {X.dtype}.")
        # A part of a memory map has the offset of the whole, so the place in the file follows from the address.
        begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
        offset = begin + X.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
        X.flush()
        return cls._begun(cls(Path(path), X.dtype, X.shape[::-1], offset=offset))

    @staticmethod
    def _begun(file: ColumnFile) -> ColumnFile:
        """Return a file whose present size and time are those that it has to keep."""
        with file.opened():
            return file

    @property
    def n_bytes(self) -> int:
        """The number of bytes of the columns."""
        return self.n_columns * self.column_bytes

    @property
    def has_checksum(self) -> bool:
        """Whether a manifest says what the checksum should be."""
        return self.crc32 != NO_CHECKSUM

    @contextlib.contextmanager
    def opened(self, *, is_scattered: bool = False) -> Iterator[io.FileIO]:
        """Open the file, check that it is the same as before, and turn errors into one sentence that names it."""
        with self._explained(), open_regular(self.path, follow=not self.has_checksum) as file:
            self._check(file)
            if is_scattered and sys.platform == "linux":  # a system that reads ahead would read far too much
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            yield file

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.strerror is None:  # one of our own sentences
                raise
            raise OSError(f"{self} could not be read ({error.strerror}); {REMEDY}") from None

    def _check(self, file: io.FileIO) -> None:
        status = os.fstat(file.fileno())
        stamp = status.st_size, status.st_mtime_ns
        if self._stamp is not None:
            if stamp != self._stamp:
                raise OSError(f"{self} {_CHANGED}")
            return
        self._check_size(status.st_size)
        if file.read(len(self._head)) != self._head:
            raise OSError(f"{self} holds another array than its manifest says; {REMEDY}")
        self._stamp = stamp

    def _check_size(self, size: int) -> None:
        wanted = self.offset + self.n_bytes if self._n_bytes is None else self._n_bytes
        if size < wanted or (self._n_bytes is not None and size != wanted):
            raise OSError(f"{self} has {size:,} bytes instead of {wanted:,}; {REMEDY}")

    def read_range(self, file: io.FileIO, into: memoryview, first: int, stopped: Callable[[], bool]) -> None:
        """Fill ``into`` with the columns from ``first`` on."""
        file.seek(self.offset + first * self.column_bytes)
        for begin in range(0, len(into), _PIECE):
            if stopped():
                raise StoppedError
            fill(file, into[begin : begin + _PIECE], self)

    def read_runs(self, file: io.FileIO, into: memoryview, runs: np.ndarray, stopped: Callable[[], bool]) -> None:
        """Fill ``into`` with runs of adjacent columns, each given by its first column and the one after its last."""
        end = 0
        for first, stop in runs.tolist():
            begin, end = end, end + (stop - first) * self.column_bytes
            self.read_range(file, into[begin:end], first, stopped)

    def compare(self, body: memoryview) -> None:
        """Raise unless the checksum of all columns, as they were read, is that of the manifest."""
        crc = zlib.crc32(body, zlib.crc32(self._head))
        if self.crc32 not in (crc, NO_CHECKSUM):
            raise OSError(f"{self} is damaged: its checksum is {crc:08x}, not {self.crc32:08x}; {REMEDY}")

    def __str__(self) -> str:
        return repr(str(self.path))
