"""Text, plain or compressed, from a file or a stream: as a whole, or in blocks of whole lines."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import pathlib
import zlib
from collections.abc import Generator, Iterator
from typing import IO, Any, NamedTuple

from condgrad.storage.sources.base import BATCH_BYTES, Place

_OPENERS: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
_DAMAGES = (EOFError, lzma.LZMAError, zlib.error, OSError)
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
    except (*_DAMAGES, ValueError) as error:
        raise ValueError(f"{path.name} could not be read, it may be incomplete: {error}.") from None


def suffix_of(name: str) -> str:
    """Return the suffix of a file in small letters, without that of its compression.

    >>> suffix_of("ratings.CSV.gz")
    '.csv'
    """
    path = pathlib.Path(name)
    return (path.with_suffix("") if path.suffix in PACKED else path).suffix.lower()


class Block(NamedTuple):
    """Some lines of a text: their bytes, the offset of the first one in the text, and its number, counted from 1.

    ``share`` is how much of the file has been read once they are, None if that is not known.
    """

    text: bytes
    offset: int
    line: int
    share: float | None = None

    @property
    def place(self) -> Place:
        """Where the block begins."""
        return self.offset, self.line


class Text:
    """A text that is read in blocks of whole lines: a stream, called ``name`` in errors.

    One that cannot go back, such as a pipe, can be read once.
    """

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self.name, self._stream = name, stream
        self._begin = stream.tell() if stream.seekable() else None
        self.identity: dict[str, Any] = {}

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], IO[bytes] | None]]:
        """Yield the text, and the file whose position tells how much of it has been read."""
        if self._begin is not None:
            self._stream.seek(self._begin)
        yield self._stream, None

    def blocks(
        self, place: Place | None = None, quote: bytes | None = None, n_bytes: int | None = None
    ) -> Generator[Block, None, None]:
        """Yield the lines from a place on, about 16 MB at a time; no block ends between two ``quote`` characters."""
        offset, line = place or (0, 1)
        n_bytes = n_bytes or BATCH_BYTES
        try:
            with self._open() as (file, raw):
                if offset:
                    file.seek(offset)
                size = 0 if raw is None else os.fstat(raw.fileno()).st_size
                while text := file.read(n_bytes) + file.readline():
                    while quote and text.count(quote) % 2 and (more := file.readline()):
                        text += more
                    share = None if raw is None else raw.tell() / max(1, size)
                    yield Block(text, offset, line, share)
                    offset, line = offset + len(text), line + text.count(b"\n")
        except _DAMAGES as error:
            raise ValueError(f"{self.name} could not be read, it may be incomplete: {error}.") from None

    def share(self, place: Place) -> float | None:
        """Return which share of the text lies before a place, None if that is not known."""
        return None


class TextFile(Text):
    """A text file, plain or compressed; ``identity`` changes when the file changes."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.name = path, path.name
        self.identity = file_identity(path)

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        with open(self.path, "rb") as raw:
            if self.path.suffix not in PACKED:
                yield raw, raw
                return
            with _OPENERS[self.path.suffix](raw, "rb") as file:
                yield file, raw

    def share(self, place: Place) -> float | None:
        """Return which share of the bytes lies before a place, None for a compressed file."""
        return None if self.path.suffix in PACKED else place[0] / max(1, self.identity["size"])


def file_identity(path: pathlib.Path) -> dict[str, Any]:
    """Return what tells whether a file is still the same: its path, size and date."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; give a file.")
    return {"path": str(path.resolve()), "size": found.st_size, "date": found.st_mtime_ns}
