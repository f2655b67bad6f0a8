"""Files that are complete or absent: written under a temporary name, flushed to the disk, and renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

UNFINISHED = ".part"  # suffix of temporary names
_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit of the sizes of files (ulimit -f)",
    errno.ENOENT: "make its folder",
    errno.EACCES: "make its folder writable",
    errno.EPERM: "make its folder writable",
    errno.EROFS: "make its folder writable",
}


def write_whole(path: Path, pieces: Iterable[bytes | memoryview], *, is_new: bool = False) -> None:
    """Write the pieces of a file; if that is interrupted, an older file of this name stays unchanged.

    A file that is replaced keeps its mode; a link is replaced itself, as nobody may have meant what it leads to. With
    ``is_new`` a file that exists, even since a moment ago, raises FileExistsError.
    """
    is_older = path.is_file() and not path.is_symlink()
    mode = 0o600 if is_older else 0o666  # who may not read the older file must not read this one half written
    # Nobody can guess this name, and neither a file nor a link that has it already is opened: that is what "x" says.
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if is_older:
                with contextlib.suppress(OSError):  # the older file is gone, or there are no modes
                    shutil.copymode(path, beside)
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _name_new(beside, path)
        else:
            os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_named(path: Path, pieces: Iterable[bytes | memoryview], *, is_new: bool = False) -> None:
    """Write a file whose name a user has given, and make sure that it has this name on the disk, too.

    Where the name is a link, the file that it leads to is written; devices and pipes stay what they are.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as device:
            device.writelines(pieces)
        return
    path = Path(os.path.realpath(path))
    write_whole(path, pieces, is_new=is_new)
    sync_folder(path.parent)


def _name_new(beside: Path, path: Path) -> None:
    """Give a file its name if no other file has it; FileExistsError otherwise."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: whoever makes the empty file may replace it
        open(path, "xb").close()
        os.replace(beside, path)


def remedy(error: OSError) -> str:
    """Return what to do about a file that could not be written, as a part of a sentence."""
    return _REMEDIES.get(error.errno or 0, "choose another place")


def sync_folder(folder: Path) -> None:
    """Make sure that the names of the files of a folder are on the disk, too."""
    if os.name != "posix":  # other systems cannot open a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
