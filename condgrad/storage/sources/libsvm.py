"""LIBSVM text: scikit-learn parses it, and this module rejects what it should not accept."""

from __future__ import annotations

import io
import pathlib
import re
from collections.abc import Generator
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.storage.sources.base import Batch, Place, Source
from condgrad.storage.sources.libsvm_scan import scan_libsvm
from condgrad.storage.sources.text import Block, TextFile

_LARGEST = 100_000_000  # largest index if n_features is not given: a larger one is more likely an error than a feature
_LONG = 2**26  # bytes of text from which on compiling a parser takes less time than it saves
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LINE = re.compile(rf"{_NUMBER}(?:\s+\d+:{_NUMBER})*")


class LibsvmFile(Source):
    """The samples of a file of LIBSVM text, plain or compressed."""

    def __init__(self, path: pathlib.Path, n_features: int | None = None) -> None:
        self._file, self._n_features = TextFile(path), n_features
        self.name, self.has_fixed_width = path.name, n_features is not None
        self.identity = {**self._file.identity, "format": "libsvm", "n_features": n_features}

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield the samples of some lines."""
        for block in self._file.blocks(place):
            X, y = self._samples(block)
            if y.size:
                width = self._n_features or int(X.indices.max(initial=0)) + 1
                X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(y.size, width))
                yield Batch(X, y, None, block.place)

    def _samples(self, block: Block) -> tuple[Any, np.ndarray]:
        """Return the samples of a block, or none if it has only comments."""
        n_features = self._n_features or _LARGEST
        plain = scan_libsvm(block.text, n_features) if block.offset + len(block.text) > _LONG else None
        if plain is not None:
            return plain
        if not any(line.split(b"#", 1)[0].strip() for line in block.text.splitlines()):
            return scipy.sparse.csr_matrix((0, n_features)), np.empty(0)
        return parse_libsvm(block.text, self.name, n_features, block.line)

    def share(self, place: Place) -> float | None:
        """Return which share of the bytes lies before a place."""
        return self._file.share(place)


def parse_libsvm(text: bytes, name: str, n_features: int | None = None, line: int = 1) -> tuple[Any, np.ndarray]:
    """Return the CSR matrix and the targets of a text in LIBSVM format.

    Errors call the text ``name``, and its first line ``line``.
    """
    from sklearn.datasets import load_svmlight_file

    is_known, n_features = n_features is not None, _LARGEST if n_features is None else n_features
    if not isinstance(n_features, int | np.integer) or isinstance(n_features, bool) or n_features < 1:
        raise ValueError(f"n_features must be an integer of at least 1; got {n_features!r}.")
    # scikit-learn would read 1_0 as 10, and would ignore a query id.
    if b"_" in text or b"qid:" in text:
        _complain(name, text, n_features, line)
    try:
        X, y = load_svmlight_file(io.BytesIO(text), n_features=int(n_features), zero_based=False)
    except (ValueError, OverflowError, IndexError) as error:
        _complain(name, text, n_features, line)
        raise ValueError(f"{name} is not a LIBSVM file: {error}.") from None
    if y.size == 0:
        raise ValueError(f"{name} holds no samples.")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        _complain(name, text, n_features, line)
    if not is_known:
        if X.nnz == 0:
            raise ValueError(f"{name} holds no entries, so its number of features is unknown; give n_features.")
        X = type(X)((X.data, X.indices, X.indptr), shape=(y.size, int(X.indices.max()) + 1))
    return X, y


def _complain(name: str, text: bytes, n_features: int, line: int) -> None:
    """Raise for the first line that breaks the format; return if there is none."""
    for number, raw in enumerate(text.split(b"\n"), start=line):
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
