"""Files of compiled kernels: a file that is incomplete or damaged counts as missing.

The name of a file depends on everything that its content depends on, so there is no index to update. Files are written
under another name and then renamed, and processes that write one file at the same time write the same content.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import tempfile
import uuid
import zlib
from collections.abc import Iterator

from numba import config
from numba.misc.appdirs import AppDirs

PREBUILT = pathlib.Path(__file__).parents[1] / "prebuilt_kernels"  # filled by the build step of a wheel
_MAGIC = b"condgrad kernel 1\n"
_ENDING = ".kernel"
_MOST_BYTES = 1 << 30  # largest size of a folder: beyond, the least recently used files are deleted


def load(folder: pathlib.Path, name: str) -> bytes | None:
    """Return what was saved under ``name``; None if there is no such file, or if it is damaged."""
    path = folder / (name + _ENDING)
    try:
        content = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    body = content[head:]
    if content[:head] != _MAGIC + hashlib.sha256(body).digest():
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # mark it as used
    return zlib.decompress(body)


def save(folder: pathlib.Path, name: str, data: bytes) -> bool:
    """Save ``data`` under ``name``; return whether that was possible."""
    body = zlib.compress(data, 6)
    path = folder / (name + _ENDING)
    aside = folder / f"{uuid.uuid4().hex}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(aside, "xb") as file:  # a new file: neither a file nor a link of another is written
            file.write(_MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(aside, path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        return False
    _tidy(folder)
    return True


def user_folders() -> Iterator[pathlib.Path]:
    """Yield the folders of this user's own kernels, the best first: if one cannot be written, the next may be."""
    own = pathlib.Path(config.CACHE_DIR or AppDirs("condgrad", appauthor=False).user_cache_dir)
    if config.CACHE_DIR or own.is_absolute():  # it is relative if the user has no home
        yield own / "kernels"
    yield pathlib.Path(__file__).parent / "__pycache__"


@functools.cache
def can_write() -> bool:
    """Return whether one of the user's folders can be written."""
    for folder in user_folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return True
    return False


@functools.cache
def _tidy(folder: pathlib.Path) -> None:
    """Delete the least recently used files if they take too much space; once in a process."""
    files = []
    for path in folder.glob(f"*{_ENDING}"):
        with contextlib.suppress(OSError):  # another process may delete files as well
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    excess = sum(size for _, size, _ in files) - _MOST_BYTES
    for _, size, path in sorted(files):
        if excess <= 0:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            excess -= size
