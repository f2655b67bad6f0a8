"""Files of compiled kernels: each whole and unharmed, or as good as not there.

A file is found by a name that says all that its content depends on, so that there is no index to keep in step: files
are written aside and moved into place, and processes that write the same one at the same time write the same.
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

PREBUILT = pathlib.Path(__file__).parents[1] / "prebuilt_kernels"  # the build step of a wheel fills it
_MAGIC = b"condgrad kernel 1\n"
_ENDING = ".kernel"
_MOST_BYTES = 1 << 30  # files that were not used for longest are deleted where there are more


def load(folder: pathlib.Path, name: str) -> bytes | None:
    """Return what was saved under ``name``; None where there is no such file, or not as it was written."""
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
        os.utime(path)  # it was used
    return zlib.decompress(body)


def save(folder: pathlib.Path, name: str, data: bytes) -> bool:
    """Save ``data`` under ``name``; return whether that was possible."""
    body = zlib.compress(data, 6)
    path = folder / (name + _ENDING)
    aside = folder / f"{uuid.uuid4().hex}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)
        os.replace(aside, path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        return False
    _tidy(folder)
    return True


def user_folders() -> Iterator[pathlib.Path]:
    """Yield the folders of this user's own kernels, the best first: where one cannot be written, the next may be."""
    own = pathlib.Path(config.CACHE_DIR or AppDirs("condgrad", appauthor=False).user_cache_dir)
    if config.CACHE_DIR or own.is_absolute():  # it is not where the user has no home
        yield own / "kernels"
    yield pathlib.Path(__file__).parent / "__pycache__"


@functools.cache
def can_write() -> bool:
    """Tell whether one of the user's folders can be written."""
    for folder in user_folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return True
    return False


@functools.cache
def _tidy(folder: pathlib.Path) -> None:
    """Delete the files that were not used for longest if there are too many; once in a process."""
    files = []
    for path in folder.glob(f"*{_ENDING}"):
        with contextlib.suppress(OSError):  # another process may tidy up as well
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    excess = sum(size for _, size, _ in files) - _MOST_BYTES
    for _, size, path in sorted(files):
        if excess <= 0:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            excess -= size
