"""Manifest: the table of contents of a folder of data, with the size and the checksum of every file, and its own.

A folder is valid from the moment its ``manifest.json`` exists: it is written last, so that a conversion that was
interrupted is never taken for data.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from condgrad.storage.file_entries import Chunk, FileEntry, entries_of, is_size, take
from condgrad.storage.layouts import check_columns, check_facts, check_rows
from condgrad.storage.sealed_json import read_sealed, sealed

NAME = "manifest.json"
_FORMAT = "condgrad"
_PLAIN, _WITH_OFFSETS = 1, 2  # versions: one that does not know offsets must not read data that have them


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
        return sealed({"format": _FORMAT, "format_version": version, **dataclasses.asdict(self)})

    @classmethod
    def read(cls, folder: Path, layout: str) -> Manifest:
        """Return the manifest of a folder, or raise one sentence if it has none or another layout.

        What it says about the files is consistent: files with these shapes can be used without further looks at them,
        except for numbers that are places in other arrays.
        """
        path = repr(str(folder / NAME))
        try:
            content = read_sealed(folder / NAME)
            found, version = (content.pop(name, None) for name in ("format", "format_version"))
        except FileNotFoundError:
            raise FileNotFoundError(_absent(folder)) from None
        except (OSError, ValueError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or error
            raise ValueError(f"{path} cannot be read as a manifest of condgrad: {reason}") from None
        if found != _FORMAT or version not in (_PLAIN, _WITH_OFFSETS):
            raise ValueError(
                f"{path} has version {version!r} of its format, and this condgrad reads versions "
                f"{_PLAIN} and {_WITH_OFFSETS}; convert the data again, or use the condgrad that wrote them."
            )
        try:
            manifest = cls._from_dict(content)
        except ValueError as error:
            raise ValueError(f"{path} is not a manifest of condgrad: {error}; convert the data again.") from None
        if manifest.layout != layout:
            raise ValueError(
                f"{str(folder)!r} holds data by {manifest.layout}, not by {layout}; open it with "
                f"condgrad.{manifest.layout}.open, or convert the data with "
                f"`condgrad convert{' --columns' if layout == 'columns' else ''}`."
            )
        return manifest

    @classmethod
    def _from_dict(cls, content: dict[str, Any]) -> Manifest:
        layout, kind = take(content, "layout", str), take(content, "kind", str)
        shape = take(content, "shape", list)
        if len(shape) != 2 or not all(is_size(size) and size > 0 for size in shape):
            raise ValueError("'shape' must be two positive integers")
        chunks = tuple(map(Chunk.from_dict, take(content, "chunks", list)))
        shared, facts = entries_of(take(content, "shared", dict)), take(content, "facts", dict)
        if layout not in ("rows", "columns"):
            raise ValueError("'layout' must be 'rows' or 'columns'")
        if sum(chunk.size for chunk in chunks) != shape[layout == "columns"]:
            raise ValueError("the sizes of the chunks do not add up to the shape")
        check_facts(facts, shape[1], kind)
        check = check_rows if layout == "rows" else check_columns
        check(kind, shape, chunks, shared, facts)
        return cls(layout, kind, (shape[0], shape[1]), chunks, shared, facts)


def _absent(folder: Path) -> str:
    if not folder.exists():
        return f"there is no folder {str(folder)!r}."
    if not os.path.isdir(folder):
        return f"{str(folder)!r} is a file, not a folder of converted data; use `condgrad convert` to make one."
    return (
        f"{str(folder)!r} has no {NAME}: it is not a folder of converted data, or its conversion was not finished; "
        "run the conversion again."
    )
