"""Text files, plain or compressed: as a whole, or in blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pathlib
import zlib
from collections.abc import Generator
from typing import Any, NamedTuple

from condgrad.storage.sources.base import BATCH_BYTES, Place

_OPENERS: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
PACKED = tuple(_OPENERS)


def read_bytes(path: pathlib.Path) -> bytes:
    """Return the content of a file, unpacked if its suffix is that of a compressed file."""
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    except IsADirectoryError:
        raise ValueError(f"{str(path)!r} is a folder; give a file.") from None
    except (EOFError, lzma.LZMAError, zlib.error, OSError, ValueError) as error:
        raise ValueError(f"{path.name} could not be read, it may be incomplete: {error}.") from None


class Block(NamedTuple):
    """Some lines of a text: their bytes, the offset of the first one in the text, and its number, counted from 1."""

    text: bytes
    offset: int
    line: int

    @property
    def place(self) -> Place:
        """Where the block begins."""
        return self.offset, self.line


class TextFile:
    """A text file that is read in blocks of whole lines; ``identity`` changes when the file changes."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.identity = file_identity(path)

    def blocks(self, place: Place | None = None, quote: bytes | None = None) -> Generator[Block, None, None]:
        """Yield the lines from a place on, about 16 MB at a time; no block ends between two ``quote`` characters."""
        offset, line = place or (0, 1)
        try:
            with _OPENERS.get(self.path.suffix, open)(self.path, "rb") as file:
                file.seek(offset)
                while text := file.read(BATCH_BYTES) + file.readline():
                    while quote and text.count(quote) % 2 and (more := file.readline()):
                        text += more
                    yield Block(text, offset, line)
                    offset, line = offset + len(text), line + text.count(b"\n")
        except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
            raise ValueError(f"{self.path.name} could not be read, it may be incomplete: {error}.") from None

    def share(self, place: Place) -> float | None:
        """Return which share of the bytes lies before a place, None for a compressed file."""
        return None if self.path.suffix in PACKED else place[0] / max(1, self.identity["size"])


def file_identity(path: pathlib.Path) -> dict[str, Any]:
    """Return what tells whether a file is still the same: its path, size and date."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    return {"path": str(path.resolve()), "size": found.st_size, "date": found.st_mtime_ns}
