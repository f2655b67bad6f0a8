"""A strict reader of LIBSVM files: scikit-learn parses them, and this module rejects what it should not accept."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pathlib
import re
import zlib
from typing import Any

import numpy as np

_OPENERS: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
_LARGEST = 100_000_000  # largest index if n_features is not given: a larger one is more likely an error than a feature
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LINE = re.compile(rf"{_NUMBER}(?:\s+\d+:{_NUMBER})*")


def read_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> tuple[Any, np.ndarray]:
    """Return the CSR matrix and the targets of a LIBSVM file, plain or compressed (.bz2, .gz, .xz).

    Indices start at 1 in this format, whatever the first line looks like, and ``n_features`` fixes the width: two
    parts of one data set can then never be shifted against each other. Anything else than plain numbers at increasing
    indices is an error that names its line.

    Parameters
    ----------
    path : str or path
    n_features : int, optional
        The number of columns; an index above it is an error. By default it is the largest index of the file, which
        may be at most 100,000,000.
    """
    path = pathlib.Path(path)
    return parse_libsvm(read_bytes(path), path.name, n_features)


def parse_libsvm(text: bytes, name: str, n_features: int | None = None) -> tuple[Any, np.ndarray]:
    """Return the CSR matrix and the targets of a text in LIBSVM format; ``name`` is its name in errors."""
    from sklearn.datasets import load_svmlight_file

    is_known, n_features = n_features is not None, _LARGEST if n_features is None else n_features
    if not isinstance(n_features, int | np.integer) or isinstance(n_features, bool) or n_features < 1:
        raise ValueError(f"n_features must be an integer of at least 1; got {n_features!r}.")
    # scikit-learn would read 1_0 as 10, and would ignore a query id.
    if b"_" in text or b"qid:" in text:
        _complain(name, text, n_features)
    try:
        X, y = load_svmlight_file(io.BytesIO(text), n_features=int(n_features), zero_based=False)
    except (ValueError, OverflowError, IndexError) as error:
        _complain(name, text, n_features)
        raise ValueError(f"{name} is not a LIBSVM file: {error}.") from None
    if y.size == 0:
        raise ValueError(f"{name} holds no samples.")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        _complain(name, text, n_features)
    if not is_known:
        if X.nnz == 0:
            raise ValueError(f"{name} holds no entries, so its number of features is unknown; give n_features.")
        X = type(X)((X.data, X.indices, X.indptr), shape=(y.size, int(X.indices.max()) + 1))
    return X, y


def read_bytes(path: pathlib.Path) -> bytes:
    """Return the content of a file, unpacked if its suffix is that of a compressed file."""
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    except IsADirectoryError:
        raise ValueError(f"{str(path)!r} is a folder; give a file.") from None
    except (EOFError, lzma.LZMAError, zlib.error, OSError, ValueError) as error:
        raise ValueError(f"{path.name} could not be read, it may be incomplete: {error}.") from None


def _complain(name: str, text: bytes, n_features: int) -> None:
    """Raise for the first line that breaks the format; return if there is none."""
    for number, raw in enumerate(text.split(b"\n"), start=1):
        fault = _fault(raw.decode("utf-8", "replace").split("#", 1)[0].strip(), n_features)
        if fault:
            raise ValueError(f"{name}, line {number}: {fault}.")


def _fault(line: str, n_features: int) -> str | None:
    if not line:
        return None
    label, *entries = line.split()
    if not re.fullmatch(_NUMBER, label) or not np.isfinite(float(label)):
        return f"the target must be a finite number; got {label[:40]!r}"
    if not _LINE.fullmatch(line):
        bad = next(entry for entry in entries if not re.fullmatch(rf"\d+:{_NUMBER}", entry))
        return f"an entry must be index:value with a finite number; got {bad[:40]!r}"
    previous = 0
    for entry in entries:
        place, value = entry.split(":")
        if not np.isfinite(float(value)):
            return f"an entry must be index:value with a finite number; got {entry[:40]!r}"
        if int(place) == 0:
            return "indices start at 1; got 0"
        if int(place) <= previous:
            return f"indices must increase; got {place} after {previous}"
        if int(place) > n_features:
            return f"index {place} is beyond the {n_features} features"
        previous = int(place)
    return None
