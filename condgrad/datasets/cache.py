"""The cache folder of downloaded data sets, each with the SHA-256 of its first download in a second file."""

from __future__ import annotations

import hashlib
import os
import pathlib

_VARIABLE = "CONDGRAD_CACHE"


def folder() -> pathlib.Path:
    """Return the folder that the environment variable CONDGRAD_CACHE names, or ``~/.cache/condgrad``."""
    named = os.environ.get(_VARIABLE)
    return pathlib.Path(named) if named else pathlib.Path.home() / ".cache" / "condgrad"


def find(file: str) -> pathlib.Path | None:
    """Return the path of a downloaded file, or None; raise if the file has changed since."""
    path = folder() / file
    saved = _checksum_file(path)
    if not (path.is_file() and saved.is_file()):  # a download without its checksum is incomplete
        return None
    if saved.read_text(encoding="ascii").strip() != checksum(path):
        raise ValueError(
            f"{str(path)!r} has changed since it was downloaded: its SHA-256 differs. Delete it, and load the "
            "data set with download=True."
        )
    return path


def fetch(url: str, file: str) -> pathlib.Path:
    """Download ``url`` into the cache as ``file``, save its checksum, and return its path.

    If it was downloaded before, it must have the same checksum as then.
    """
    try:
        import pooch
    except ImportError:
        raise ImportError(
            'downloads need pooch: pip install "condgrad[data]"; or put the file yourself into the folder that '
            "CONDGRAD_DATA names."
        ) from None
    saved = _checksum_file(folder() / file)
    first = saved.read_text(encoding="ascii").strip() if saved.is_file() else None
    (folder() / file).unlink(missing_ok=True)  # what is left of an unfinished download
    path = pathlib.Path(pooch.retrieve(url, known_hash=None, fname=file, path=folder()))
    found = checksum(path)
    if first not in (None, found):
        path.unlink()
        raise ValueError(
            f"{url} is not the file that it was at the first download: its SHA-256 is {found}, and was {first}. Delete "
            f"{str(saved)!r} to accept it."
        )
    saved.write_text(found, encoding="ascii")
    return path


def checksum(path: pathlib.Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum_file(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(path.name + ".sha256")
