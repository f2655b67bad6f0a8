"""FileEntry and Chunk: what a manifest says about files, read from JSON of which nothing is believed."""

from __future__ import annotations

import dataclasses
import re
import reprlib
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

_NAME = re.compile(r"(chunk-\d+|piece-\d+|shared)[.-][A-Za-z0-9-]+\.npy")  # as conversions give them: inside the folder
_DTYPES = {np.dtype(name).str for name in ("f4", "f8", "i1", "i4", "i8", "u1", "u2", "u4")}  # in native byte order
_LARGEST = 2**62  # numbers of bytes and of entries stay below it


@dataclasses.dataclass(frozen=True)
class FileEntry:
    """One .npy file: its name in the folder, dtype and shape of its array, and size and CRC-32 of all its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    n_bytes: int
    crc32: int

    @classmethod
    def from_dict(cls, entry: Any) -> FileEntry:
        """Return the entry as it stands in a manifest."""
        name, dtype, shape = take(entry, "name", str), take(entry, "dtype", str), take(entry, "shape", list)
        n_bytes, crc32 = take(entry, "n_bytes", int), take(entry, "crc32", int)
        if not _NAME.fullmatch(name):
            raise ValueError(f"{reprlib.repr(name)} is no name that a conversion gives to a file of its folder")
        if dtype not in _DTYPES:
            raise ValueError(f"the dtype {reprlib.repr(dtype)} of {name!r} is none of {', '.join(sorted(_DTYPES))}")
        if len(shape) not in (1, 2) or not all(is_size(size) for size in shape):
            raise ValueError(f"the shape {reprlib.repr(shape)} of {name!r} is not that of an array of numbers")
        if not (is_size(n_bytes) and 0 <= crc32 < 2**32):
            raise ValueError(f"size or checksum of {name!r} are impossible")
        return cls(name, dtype, tuple(shape), n_bytes, crc32)


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive rows, or columns, of the data: how many, and their files by role ("X", "y", "indptr", ...)."""

    size: int
    files: dict[str, FileEntry]

    @classmethod
    def from_dict(cls, chunk: Any) -> Chunk:
        """Return the chunk as it stands in a manifest."""
        size = take(chunk, "size", int)
        if not 0 < size < _LARGEST:
            raise ValueError(f"the size {reprlib.repr(size)} of a chunk is impossible")
        return cls(size, entries_of(take(chunk, "files", dict)))


def entries_of(files: dict[str, Any]) -> dict[str, FileEntry]:
    """Return files by role."""
    return {role: FileEntry.from_dict(entry) for role, entry in files.items()}


def take(content: Any, name: str, kind: type[T]) -> T:
    """Return a field of a JSON object, or raise ValueError if it is missing or of another kind."""
    if not isinstance(content, dict):
        raise ValueError(f"there is {reprlib.repr(content)} where an object should be")
    if name not in content:
        raise ValueError(f"{name!r} is missing")
    value = content[name]
    if type(value) is not kind:  # True is no integer here
        raise ValueError(f"{name!r} is {reprlib.repr(value)}, which is not of type {kind.__name__}")
    return value


def is_size(value: Any) -> bool:
    """Return whether a value can be a number of bytes or of entries."""
    return type(value) is int and 0 <= value < _LARGEST
