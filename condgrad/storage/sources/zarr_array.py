"""Arrays of zarr, in groups of rows that are stored together."""

from __future__ import annotations

import pathlib
from typing import Any

from condgrad.storage.sources.arrays import Arrays
from condgrad.storage.sources.base import Source
from condgrad.storage.sources.npy_file import load_npy


def zarr_source(path: pathlib.Path, target: Any = None, weight: Any = None, offset: Any = None) -> Source:
    """Return the rows of an array of zarr, or of member X of a group, which may have members y, weight and offset."""
    try:
        import zarr
    except ImportError:
        raise ImportError("arrays of zarr need zarr: pip install condgrad[zarr].") from None
    try:
        found = zarr.open(path, mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path.name} could not be read as an array of zarr: {str(error).rstrip('.')}.") from None
    parts = {role: _given(part) for role, part in (("y", target), ("weight", weight), ("offset", offset))}
    members: dict[str, Any] = dict(found.arrays()) if isinstance(found, zarr.Group) else {"X": found}
    if "X" not in members:
        raise ValueError(f"{path.name} is a group of zarr without an array X; it has {', '.join(sorted(members))}.")
    for role in parts:
        if parts[role] is None and role in members:
            parts[role] = members[role][:]
    X = members["X"]
    return Arrays(X, **parts, name=path.name, identity=folder_identity(path), n_rows_together=X.chunks[0])


def folder_identity(path: pathlib.Path) -> dict[str, Any]:
    """Return what tells whether a folder is still the same: its path, and the number, sizes and last date of files."""
    found = [file.stat() for file in path.rglob("*") if file.is_file()]
    size, date = sum(file.st_size for file in found), max((file.st_mtime_ns for file in found), default=0)
    return {"path": str(path.resolve()), "format": "zarr", "n_files": len(found), "size": size, "date": date}


def _given(part: Any) -> Any:
    """Return an array, or that of an .npy file."""
    if isinstance(part, str | pathlib.Path):
        return load_npy(pathlib.Path(part))
    return None if part is False else part
