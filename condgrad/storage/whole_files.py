"""Files that are complete or absent: written under a temporary name, flushed to the disk, and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

UNFINISHED = ".part"  # suffix of temporary names


def write_whole(path: Path, pieces: Iterable[bytes | memoryview], mark: str = "") -> None:
    """Write the pieces of a file; if that is interrupted, an older file of this name stays unchanged.

    ``mark`` is part of the temporary name: processes that write the same file at once need different ones.
    """
    beside = path.with_name(path.name + mark + UNFINISHED)
    try:
        with open(beside, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make sure that the names of the files of a folder are on the disk, too."""
    if os.name != "posix":  # other systems cannot open a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
