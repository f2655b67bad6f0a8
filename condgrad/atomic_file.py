"""Files that are whole or not there: written beside their place first, then put into it in one step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def write_file(path: str | os.PathLike, content: Any) -> None:
    """Write bytes to ``path``; whatever happens meanwhile, the file is the old one or the whole new one."""
    path = Path(path)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # other systems cannot open a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
