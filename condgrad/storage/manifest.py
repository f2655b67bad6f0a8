"""Manifest: the table of contents of a folder of data, with the size and the checksum of every file.

A folder is valid from the moment its ``manifest.json`` exists: it is written last, so that a conversion that was
interrupted is never taken for data.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

NAME = "manifest.json"
_FORMAT = "condgrad"
_PLAIN, _WITH_OFFSETS = 1, 2  # versions: one that does not know offsets must not read data that have them


@dataclasses.dataclass(frozen=True)
class FileEntry:
    """One .npy file: its name in the folder, dtype and shape of its array, and size and CRC-32 of all its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    n_bytes: int
    crc32: int

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> FileEntry:
        """Return the entry as it stands in a manifest."""
        return cls(**{**entry, "shape": tuple(entry["shape"])})


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive rows, or columns, of the data: how many, and their files by role ("X", "y", "indptr", ...)."""

    size: int
    files: dict[str, FileEntry]

    @classmethod
    def from_dict(cls, chunk: dict[str, Any]) -> Chunk:
        """Return the chunk as it stands in a manifest."""
        return cls(int(chunk["size"]), _entries(chunk["files"]))


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a folder contains.

    Attributes
    ----------
    layout : {"rows", "columns"}
        Whether a chunk holds rows or columns of X.
    kind : {"dense", "sparse", "one-hot"}
    shape : (int, int)
        Samples and features.
    chunks : tuple of Chunk
    shared : dict of FileEntry
        Files that belong to no chunk, by role: "columns", an array of shape (3, n_features) with the sum, the sum of
        squares and the largest size of the entries of each column; for columns, "y".
    facts : dict
        Further JSON values, such as ``is_shuffled``, ``feature_names`` or the statistics of y.
    """

    layout: str
    kind: str
    shape: tuple[int, int]
    chunks: tuple[Chunk, ...]
    shared: dict[str, FileEntry] = dataclasses.field(default_factory=dict)
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> str:
        """Return the text of ``manifest.json``."""
        version = _WITH_OFFSETS if any("offset" in chunk.files for chunk in self.chunks) else _PLAIN
        return json.dumps({"format": _FORMAT, "format_version": version, **dataclasses.asdict(self)}, indent=1)

    @classmethod
    def read(cls, folder: Path, layout: str) -> Manifest:
        """Return the manifest of a folder, or raise one sentence if it has none or another layout."""
        try:
            content = json.loads((folder / NAME).read_text(encoding="utf-8"))
            found, version = content.pop("format"), content.pop("format_version")
        except FileNotFoundError:
            raise FileNotFoundError(_absent(folder)) from None
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise ValueError(f"{str(folder / NAME)!r} is not a manifest of condgrad ({error}).") from None
        if found != _FORMAT or version not in (_PLAIN, _WITH_OFFSETS):
            raise ValueError(
                f"{str(folder / NAME)!r} has version {version!r} of its format, and this condgrad reads versions "
                f"{_PLAIN} and {_WITH_OFFSETS}; convert the data again, or use the condgrad that wrote them."
            )
        try:
            manifest = cls._from_dict(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{str(folder / NAME)!r} is not a manifest of condgrad ({error!r}).") from None
        if manifest.layout != layout:
            raise ValueError(
                f"{str(folder)!r} holds data by {manifest.layout}, not by {layout}; open it with "
                f"condgrad.{manifest.layout}.open, or convert the data with "
                f"`condgrad convert{' --columns' if layout == 'columns' else ''}`."
            )
        return manifest

    @classmethod
    def _from_dict(cls, content: dict[str, Any]) -> Manifest:
        chunks = tuple(map(Chunk.from_dict, content.pop("chunks")))
        n, d = content.pop("shape")
        manifest = cls(shape=(int(n), int(d)), chunks=chunks, shared=_entries(content.pop("shared")), **content)
        if sum(chunk.size for chunk in chunks) != manifest.shape[manifest.layout == "columns"]:
            raise ValueError("the sizes of the chunks do not add up to the shape")
        return manifest


def _entries(files: dict[str, dict[str, Any]]) -> dict[str, FileEntry]:
    return {role: FileEntry.from_dict(entry) for role, entry in files.items()}


def _absent(folder: Path) -> str:
    if not folder.exists():
        return f"there is no folder {str(folder)!r}."
    if not os.path.isdir(folder):
        return f"{str(folder)!r} is a file, not a folder of converted data; use `condgrad convert` to make one."
    return (
        f"{str(folder)!r} has no {NAME}: it is not a folder of converted data, or its conversion was not finished; "
        "run the conversion again."
    )
