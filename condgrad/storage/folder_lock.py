"""A lock of a folder, so that two conversions do not write into it at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from condgrad.storage.regular_files import open_here

NAME = "conversion.lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, or raise BlockingIOError if another conversion has it.

    The lock is that of the operating system on a file, which ends with its process, however that ends. The file holds
    the number of the process. Where there are no such locks, nothing is locked.
    """
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    path = folder / NAME
    while True:
        if path.is_symlink():  # it would lead to a file of somebody else
            raise FileExistsError(f"{str(path)!r} is a link, not a lock of a conversion; remove it.")
        file = open(path, "a+", encoding="ascii", opener=open_here)  # noqa: SIM115 (closed after it is removed)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "another one"
            file.close()
            raise BlockingIOError(
                f"{str(folder)!r} is being converted by process {owner}; wait until it ends, or use another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        if os.fstat(file.fileno()).st_nlink > 0:
            break
        file.close()  # its last owner has just removed it
    try:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()
