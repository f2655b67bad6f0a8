"""Arrays in .npy files: written whole under a checksum, and read in parts by ``pread``."""

from __future__ import annotations

import io
import itertools
import math
import mmap
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np

from condgrad.storage.file_entries import FileEntry
from condgrad.storage.regular_files import REMEDY, open_regular, status_of
from condgrad.storage.whole_files import write_whole

NO_CHECKSUM = -1
_PIECE = 2**24  # bytes that one call reads or writes; between two pieces a reader hears that it should stop


class StoppedError(Exception):
    """A reader was told to stop; nobody waits for what it reads."""


def write_array(folder: Path, name: str, array: np.ndarray) -> FileEntry:
    """Write an array under a temporary name, flush it to the disk, and rename it; return its entry."""
    array = np.ascontiguousarray(array)
    head = make_head(array.dtype, array.shape)
    body = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
    crc = zlib.crc32(body, zlib.crc32(head))
    pieces = (body[start : start + _PIECE] for start in range(0, len(body), _PIECE))
    write_whole(folder / name, itertools.chain([head], pieces))
    return FileEntry(name, array.dtype.str, array.shape, len(head) + len(body), crc)


def read_array(folder: Path, entry: FileEntry) -> np.ndarray:
    """Return a whole array, its checksum verified."""
    file = ArrayFile.of(folder, entry)
    return file.read(Buffer(), 0, file.shape[0], check=True)


def read_head(path: Path) -> tuple[bytes, tuple[int, ...], bool, np.dtype]:
    """Return the header of an .npy file of the user, and what it says: shape, whether in Fortran order, dtype."""
    with open_regular(path, follow=True) as file:
        try:
            shape, is_fortran, dtype = read_header(file)
            if min(shape, default=0) < 0:
                raise ValueError(f"it has the shape {shape}")
        except ValueError as error:
            raise ValueError(f"{str(path)!r} is not an .npy file ({error}).") from None
        length = file.tell()
        file.seek(0)
        return file.read(length), shape, is_fortran, dtype


class Buffer:
    """Memory that is used again for one chunk after the other: fresh memory would cost a page fault every 4 KB."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._used = 0

    def clear(self) -> None:
        """Let the next arrays overwrite the present ones."""
        self._used = 0

    def reserve(self, n_bytes: int) -> None:
        """Make room for ``n_bytes`` in all; call it before the first array is taken."""
        if n_bytes > len(self._memory):
            self._memory = _memory_of(n_bytes)

    def take(self, n_bytes: int) -> memoryview:
        """Return the next ``n_bytes`` of the memory, aligned for any dtype."""
        start = self._used
        if start + n_bytes > len(self._memory):
            self._memory, start = _memory_of(max(n_bytes, mmap.PAGESIZE)), 0
        self._used = -(-(start + n_bytes) // 64) * 64
        return memoryview(self._memory)[start : start + n_bytes]


def _memory_of(n_bytes: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, n_bytes)
    except (OSError, ValueError, OverflowError):
        raise OSError(
            f"there is no memory for a chunk of {n_bytes:,} bytes; convert the data again, with smaller chunks."
        ) from None


class ArrayFile:
    """An array in C order in an .npy file: the entry of a manifest, or a file of the user, which has no checksum."""

    def __init__(self, path: Path, entry: FileEntry, head: bytes, rows: slice | None = None) -> None:
        self.path, self.entry, self._head = path, entry, head
        self._first, stop, _ = (rows or slice(None)).indices(entry.shape[0])
        self.dtype, self.shape = np.dtype(entry.dtype), (stop - self._first, *entry.shape[1:])
        self.row_bytes = self.dtype.itemsize * math.prod(self.shape[1:])
        self._is_of_user = entry.crc32 == NO_CHECKSUM

    @classmethod
    def of(cls, folder: Path, entry: FileEntry) -> ArrayFile:
        """Return the file that a manifest names."""
        return cls(folder / entry.name, entry, head_of(folder, entry))

    @classmethod
    def of_user(cls, path: Path) -> ArrayFile:
        """Return an .npy file that was written by NumPy."""
        head, shape, is_fortran, dtype = read_head(path)
        if is_fortran or dtype.hasobject:
            what = "is stored by columns" if is_fortran else "holds Python objects"
            raise ValueError(f"{str(path)!r} {what}; convert it with condgrad.rows.convert.")
        n_bytes = len(head) + dtype.itemsize * math.prod(shape)
        file = cls(path, FileEntry(path.name, dtype.str, shape, n_bytes, NO_CHECKSUM), head)
        file.stamp()  # its size is that of the array
        return file

    def part(self, rows: slice) -> ArrayFile:
        """Return some rows of the file, as if they were a file of their own."""
        return ArrayFile(self.path, self.entry, self._head, rows)

    @property
    def n_bytes(self) -> int:
        """The number of bytes of the array."""
        return self.shape[0] * self.row_bytes

    def stamp(self) -> tuple[int, ...]:
        """Return what changes when the file does; raise OSError if it is no file, or has another size."""
        try:
            status = status_of(self.path, follow=self._is_of_user)
        except OSError as error:
            raise self._explained(error) from None
        self._check_size(status.st_size)
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns

    def read(
        self, buffer: Buffer, start: int, stop: int, *, check: bool, stopped: Callable[[], bool] = bool
    ) -> np.ndarray:
        """Return entries ``start`` to ``stop`` along the first axis, in memory of ``buffer``.

        With ``check``, which needs the whole array, the checksum is compared. A file that is short, long, missing or
        different raises one sentence that names it. ``stopped`` is asked between two pieces.
        """
        if not 0 <= start <= stop <= self.shape[0]:  # where rows begin and end is the content of another file
            raise OSError(f"{self} has {self.shape[0]:,} entries, not those from {start:,} to {stop:,}; {REMEDY}")
        crc, check = zlib.crc32(self._head), check and not self._is_of_user
        try:
            with open_regular(self.path, follow=self._is_of_user) as file:
                self._check_size(os.fstat(file.fileno()).st_size)
                into = buffer.take((stop - start) * self.row_bytes)
                if file.read(len(self._head)) != self._head:
                    raise OSError(f"{self} holds another array than its manifest says; {REMEDY}")
                file.seek(len(self._head) + (self._first + start) * self.row_bytes)
                for begin in range(0, len(into), _PIECE):
                    if stopped():
                        raise StoppedError
                    piece = into[begin : begin + _PIECE]
                    fill(file, piece, self)
                    crc = zlib.crc32(piece, crc) if check else crc
        except OSError as error:
            raise self._explained(error) from None
        if check and self.entry.crc32 != crc:
            raise OSError(f"{self} is damaged: its checksum is {crc:08x}, not {self.entry.crc32:08x}; {REMEDY}")
        return np.frombuffer(into, self.dtype).reshape(stop - start, *self.shape[1:])

    def _explained(self, error: OSError) -> OSError:
        """Return the error as one sentence that names the file."""
        if error.strerror is None:  # one of our own sentences
            return error
        return OSError(f"{self} could not be read ({error.strerror}); {REMEDY}")

    def _check_size(self, size: int) -> None:
        if size != self.entry.n_bytes:
            raise OSError(f"{self} has {size:,} bytes instead of {self.entry.n_bytes:,}; {REMEDY}")

    def __str__(self) -> str:
        return repr(str(self.path))


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of an .npy file: shape, whether the order is that of Fortran, and dtype."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def fill(file: io.FileIO, into: memoryview, name: object) -> None:
    """Fill ``into`` with the next bytes of a file; ``name`` is for the sentence about a file that ends too early."""
    done = 0
    while done < len(into):
        count = file.readinto(into[done:])
        if not count:
            raise OSError(f"{name} ended while it was read; {REMEDY}")
        done += count


def head_of(folder: Path, entry: FileEntry) -> bytes:
    """Return the header of a file that a manifest names, whose size must be that of its array."""
    dtype = np.dtype(entry.dtype)
    head = make_head(dtype, entry.shape)
    wanted = len(head) + dtype.itemsize * math.prod(entry.shape)
    if entry.n_bytes != wanted:
        path = repr(str(folder / entry.name))
        raise ValueError(f"{path} has {wanted:,} bytes, not the {entry.n_bytes:,} that its manifest says; {REMEDY}")
    return head


def make_head(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the header of an .npy file."""
    text = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(text, {"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    return text.getvalue()
