"""A lock of a folder, so that two conversions do not write into it at once."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

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
        file = open(path, "a+", encoding="ascii", opener=_open_no_link)  # noqa: SIM115 (closed below, once removed)
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


def _open_no_link(name: str, flags: int) -> int:
    """Open a file, but not one to which a link of this name leads: its content is lost."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise FileExistsError(f"{str(name)!r} is a link, not a lock of a conversion; remove it.") from None
