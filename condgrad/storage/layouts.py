"""Layouts: which files a chunk of rows, or of columns, has, and the dtypes and shapes of their arrays."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from condgrad.linalg.one_hot_slices import WIDTHS
from condgrad.storage.file_entries import Chunk, FileEntry, take

OF_SAMPLES = ("y", "weight", "offset")  # roles of files with one number per sample; they stay in memory
Wanted: TypeAlias = dict[str, tuple[str, tuple[int | None, ...]]]  # dtypes and shape by role; None: any length

_FLOATS, _TARGETS = "f4 f8", "i1 f4 f8"


def check_rows(
    kind: str, shape: Sequence[int], chunks: Sequence[Chunk], shared: dict[str, FileEntry], facts: dict[str, Any]
) -> None:
    """Raise ValueError unless the chunks are rows of this kind, and the shared files are those of rows."""
    fields = facts.get("fields")
    check_chunks(chunks, [row_files(kind, chunk.size, shape[1], fields) for chunk in chunks], OF_SAMPLES)
    wanted: Wanted = {"columns": ("f8", (3, shape[1]))}
    wanted |= {take(field, "role", str): ("u1", (None,)) for field in facts.get("categories", [])}
    _check_files(shared, wanted, ())


def check_columns(
    kind: str, shape: Sequence[int], chunks: Sequence[Chunk], shared: dict[str, FileEntry], facts: dict[str, Any]
) -> None:
    """Raise ValueError unless the chunks are columns of this kind, and the shared files are those of columns."""
    check_chunks(chunks, [column_files(kind, chunk.size, shape[0]) for chunk in chunks], ())
    _check_files(shared, {"y": ("f8", (shape[0],))}, ("y",))


def row_files(kind: str, size: int, n_features: int, fields: dict[str, list[int]] | None) -> Wanted:
    """Return the files that hold ``size`` rows of X; ``fields`` has the first features of one-hot fields."""
    if kind == "one-hot":
        if not fields:
            raise ValueError("'fields' is missing, the first features of one-hot rows")
        return {role: (f"u{role.removeprefix('codes')}", (size, len(firsts))) for role, firsts in fields.items()}
    return column_files(kind, size, n_features)


def column_files(kind: str, size: int, n_samples: int) -> Wanted:
    """Return the files that hold ``size`` columns of X, with a row for each of them."""
    if kind == "dense":
        return {"X": (_FLOATS, (size, n_samples))}
    if kind == "sparse":
        return {"data": (_FLOATS, (None,)), "indices": ("i4 i8", (None,)), "indptr": ("i8", (size + 1,))}
    raise ValueError(f"'kind' is {reprlib.repr(kind)}, which is no kind of such data")


def check_chunks(chunks: Sequence[Chunk], wanted: Sequence[Wanted], optional: Sequence[str]) -> None:
    """Raise ValueError unless all chunks have the files that they should have, and are alike."""
    if not chunks:
        raise ValueError("there are no chunks")
    for chunk, own in zip(chunks, wanted, strict=True):
        of_samples: Wanted = {role: (_TARGETS, (chunk.size,)) for role in optional}
        _check_files(chunk.files, own | of_samples, optional)
        entries = {chunk.files[role].shape for role in ("data", "indices") if role in own}
        if len(entries) > 1:
            raise ValueError("'data' and 'indices' have different numbers of entries")
    if len({frozenset(chunk.files) for chunk in chunks}) > 1:
        raise ValueError("chunks have files of other roles than the first one")
    if len({chunk.files[role].dtype for chunk in chunks for role in ("X", "data") if role in chunk.files}) > 1:
        raise ValueError("chunks have entries of other dtypes than the first one")


def _check_files(files: dict[str, FileEntry], wanted: Wanted, optional: Sequence[str]) -> None:
    missing, strange = set(wanted) - set(files) - set(optional), set(files) - set(wanted)
    if missing or strange:
        what = f"is no file {min(missing)!r}" if missing else f"is a file {reprlib.repr(min(strange))} of no known role"
        raise ValueError(f"there {what}")
    for role, entry in files.items():
        dtypes, shape = wanted[role]
        fits = len(shape) == len(entry.shape) and all(a in (None, b) for a, b in zip(shape, entry.shape, strict=True))
        if not fits or entry.dtype not in {np.dtype(name).str for name in dtypes.split()}:
            found, size = (
                " x ".join("any" if k is None else f"{k:,}" for k in sizes) for sizes in (entry.shape, shape)
            )
            raise ValueError(
                f"{entry.name!r} holds {found} numbers of dtype {entry.dtype}, and should hold {size} of "
                f"{dtypes.replace(' ', ' or ')}"
            )


def check_facts(facts: dict[str, Any], n_features: int, kind: str) -> None:
    """Raise ValueError unless the facts are of the kinds that readers expect."""
    names, fields = facts.get("feature_names"), facts.get("fields")
    if names is not None and not (_are_words(names) and len(names) == n_features):
        raise ValueError("'feature_names' must be one text for each feature")
    if "date" in facts:
        raise ValueError("'date' is for files without checksums")
    if kind == "one-hot":
        check_fields(fields, n_features)
    if "numbers" in facts:
        if not (_are_words(facts["numbers"]) and (facts.get("labels") is None or _are_words(facts["labels"]))):
            raise ValueError("'numbers' and 'labels' must be lists of texts")
        for field in take(facts, "categories", list):
            take(field, "name", str)
            take(field, "role", str)
    elif "categories" in facts:
        raise ValueError("'numbers' is missing beside 'categories'")


def check_fields(fields: Any, n_features: int) -> None:
    """Raise ValueError unless one-hot fields begin at different features, for codes of known widths."""
    roles = {f"codes{width}" for width in WIDTHS}
    if not isinstance(fields, dict) or not fields or not set(fields) <= roles:
        raise ValueError("'fields' must have the first features of fields, for codes1, codes2 or codes4")
    parts = list(fields.values())
    if not all(isinstance(part, list) and part and all(type(first) is int for first in part) for part in parts):
        raise ValueError("'fields' must be lists of integers")
    firsts = [first for part in parts for first in part]
    if len(set(firsts)) < len(firsts) or min(firsts) < 0 or max(firsts) >= n_features:
        raise ValueError("'fields' must begin at different features of X")


def _are_words(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
