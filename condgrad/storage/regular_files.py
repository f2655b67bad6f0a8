"""Files that strangers may have made: only regular ones are opened, so that no read waits or leads elsewhere."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

REMEDY = "copy it from a backup, or convert the data again."
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # an open of a pipe would wait for a writer
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}


def status_of(path: Path, *, follow: bool = False) -> os.stat_result:
    """Return the status of a regular file, or raise OSError with one sentence; links count only with ``follow``."""
    status = os.stat(path, follow_symlinks=follow)
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
        raise OSError(f"{str(path)!r} is {kind}, not a file; {REMEDY}")
    return status


def open_regular(path: Path, *, follow: bool = False) -> io.FileIO:
    """Open a regular file for reading; ``follow`` is for a file that the user has named, which may be a link."""
    status_of(path, follow=follow)
    return open(path, "rb", buffering=0, opener=None if follow else open_here)


def open_here(path: str, flags: int) -> int:
    """Open a file as the ``opener`` of ``open``, unless it has become a link, and without waiting at a pipe."""
    return os.open(path, flags | _NO_WAIT | _NO_LINK, 0o666)
