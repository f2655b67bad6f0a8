"""A folder for data sets that were downloaded, each beside the checksum that it came with."""

from __future__ import annotations

import hashlib
import os
import pathlib

_VARIABLE = "CONDGRAD_CACHE"


def folder() -> pathlib.Path:
    """Return the folder: what the environment variable CONDGRAD_CACHE names, or ``~/.cache/condgrad``."""
    named = os.environ.get(_VARIABLE)
    return pathlib.Path(named) if named else pathlib.Path.home() / ".cache" / "condgrad"


def find(file: str) -> pathlib.Path | None:
    """Return the path of a downloaded file, or None; one that has changed since is refused."""
    path = folder() / file
    note = _note(path)
    if not (path.is_file() and note.is_file()):  # without its note a download did not end
        return None
    if note.read_text(encoding="ascii").strip() != checksum(path):
        raise ValueError(
            f"{str(path)!r} has changed since it was downloaded: its SHA-256 is another one. Delete it, and load the "
            "data set with download=True."
        )
    return path


def fetch(url: str, file: str) -> pathlib.Path:
    """Download ``url`` into the cache as ``file``, note its checksum, and return its path."""
    try:
        import pooch
    except ImportError:
        raise ImportError(
            'downloads need pooch: pip install "condgrad[data]"; or put the file into the folder that CONDGRAD_DATA '
            "names yourself."
        ) from None
    path = pathlib.Path(pooch.retrieve(url, known_hash=None, fname=file, path=folder()))
    _note(path).write_text(checksum(path), encoding="ascii")
    return path


def checksum(path: pathlib.Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _note(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(path.name + ".sha256")
