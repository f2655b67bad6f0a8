"""A binary copy beside LIBSVM text: it is read in place of the text as long as the text has its size and date."""

from __future__ import annotations

import io
import json
import pathlib
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.storage.sources.libsvm import Report, check_width, read_samples
from condgrad.storage.sources.text import TextFile
from condgrad.storage.whole_files import write_whole

SUFFIX = ".condgrad"
_VERSION = 1
_NAMES = ("data", "indices", "indptr", "y")  # of the arrays, in their order
_PIECE = 2**24  # bytes of an array that are read and checked at a time


def read_with_copy(
    file: TextFile, n_features: int | None = None, report: Report | None = None
) -> tuple[Any, np.ndarray]:
    """Return the CSR matrix and the targets of a file of LIBSVM text, from its copy if there is a valid one.

    Else the text is read, and the copy is written; a folder that cannot be written gives a warning.
    """
    path = file.path.with_name(file.path.name + SUFFIX)
    check_width(n_features)
    found = _read(path, _identity(file))
    if found is not None and (n_features is None or found[0].shape[1] <= n_features):
        X, y = found
        if n_features is not None:
            X.resize(X.shape[0], n_features)
        return X, y
    X, y = read_samples(file, n_features, report)
    try:
        write_whole(path, _pieces(X, y, _identity(file)))
    except OSError as error:
        warnings.warn(f"the copy {str(path)!r} could not be written: {error.strerror}.", stacklevel=3)
    return X, y


def _identity(file: TextFile) -> dict[str, int]:
    return {"version": _VERSION, "size": file.identity["size"], "date": file.identity["date"]}


def _arrays(X: Any, y: np.ndarray) -> dict[str, np.ndarray]:
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": y}


def _pieces(X: Any, y: np.ndarray, identity: dict[str, int]) -> Iterator[bytes | memoryview]:
    """Yield the file: a line of JSON, and the bytes of the arrays one after the other."""
    arrays, crc = _arrays(X, y), 0
    for array in arrays.values():
        crc = zlib.crc32(array.view(np.uint8).data, crc)
    width = int(X.indices.max(initial=-1)) + 1  # of the text itself, whatever n_features is
    kinds = {name: [array.dtype.str, array.size] for name, array in arrays.items()}
    yield json.dumps({**identity, "width": width, "crc32": crc, "arrays": kinds}).encode() + b"\n"
    for array in arrays.values():
        yield array.view(np.uint8).data


def _read(path: pathlib.Path, identity: dict[str, int]) -> tuple[Any, np.ndarray] | None:
    """Return what a copy holds; None if there is none, if it is damaged, or if the text has changed since."""
    try:
        with open(path, "rb") as file:
            head = json.loads(file.readline(2**16))
            if any(head[key] != value for key, value in identity.items()):
                return None
            arrays, crc = {}, 0
            for name in _NAMES:
                dtype, size = head["arrays"][name]
                arrays[name] = array = np.empty(size, dtype)
                crc = _fill(file, array, crc)
            if crc != head["crc32"] or file.read(1):
                return None
        return _checked(arrays, head["width"])
    except Exception:  # absent, or not written by us: the text is read
        return None


def _checked(arrays: dict[str, np.ndarray], width: int) -> tuple[Any, np.ndarray] | None:
    """Return the matrix and the targets; None if they cannot be those of a text."""
    y = arrays.pop("y")
    kinds = [array.dtype.str[1:] for array in arrays.values()]
    X = scipy.sparse.csr_matrix(tuple(arrays.values()), shape=(y.size, width))
    X.check_format(full_check=True)  # raises where an index lies outside
    is_fit = kinds in (["f8", "i4", "i4"], ["f8", "i8", "i8"]) and y.dtype == np.float64
    is_whole = X.indptr[-1] == X.data.size and width == int(X.indices.max(initial=-1)) + 1
    return (X, y) if is_fit and is_whole and X.has_canonical_format else None


def _fill(file: io.BufferedReader, array: np.ndarray, crc: int) -> int:
    """Read an array, and return the checksum of all arrays up to it."""
    body = array.view(np.uint8).data
    for start in range(0, len(body), _PIECE):
        piece = body[start : start + _PIECE]
        if file.readinto(piece) != len(piece):
            raise ValueError("the file is too short")
        crc = zlib.crc32(piece, crc)
    return crc
