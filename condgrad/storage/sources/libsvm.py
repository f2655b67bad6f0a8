"""LIBSVM text: read in blocks that both cores parse, whole or batch by batch; errors name their line."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import pathlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.compiled import is_importing
from condgrad.linalg.threads import n_threads
from condgrad.storage.sources.base import Batch, Place, Source
from condgrad.storage.sources.libsvm_lines import Samples, parse_lines
from condgrad.storage.sources.libsvm_scan import scan_lines
from condgrad.storage.sources.text import Block, Text, TextFile

_LARGEST = 100_000_000  # largest index if n_features is not given: a larger one is more likely an error than a feature
_BLOCK_BYTES = 2**22  # of text that a thread parses at a time
_SHORT = 2**20  # bytes of text that Python parses sooner than kernels are loaded, or even compiled

Report = Callable[[int, float | None], object]  # called with the samples so far and the share of the file


class LibsvmFile(Source):
    """The samples of a file of LIBSVM text, plain or compressed."""

    def __init__(self, path: pathlib.Path, n_features: int | None = None) -> None:
        self._file, self._n_features = TextFile(path), n_features
        self._most = check_width(n_features)
        self.name, self.has_fixed_width = path.name, n_features is not None
        self.identity = {**self._file.identity, "format": "libsvm", "n_features": n_features}

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield the samples of some lines."""
        for block, samples in _parsed(self._file, self._most, place):
            if samples.targets.size:
                X, y = _joined([samples], self._n_features)
                yield Batch(X, y, None, block.place)

    def share(self, place: Place) -> float | None:
        """Return which share of the bytes lies before a place."""
        return self._file.share(place)


def read_samples(text: Text, n_features: int | None = None, report: Report | None = None) -> tuple[Any, np.ndarray]:
    """Return the CSR matrix and the targets of LIBSVM text.

    Memory holds the result and some blocks: the parts of the result go back to the system as they are put together.
    """
    parts, n = [], 0
    for block, samples in _parsed(text, check_width(n_features)):
        parts.append(samples)
        n += samples.targets.size
        if report is not None:
            report(n, block.share)
    if n == 0:
        raise ValueError(f"{text.name} holds no samples.")
    if n_features is None and not any(part.values.size for part in parts):
        raise ValueError(f"{text.name} holds no entries, so its number of features is unknown; give n_features.")
    return _joined(parts, n_features)


def check_width(n_features: int | None) -> int:
    """Return the largest index that a file may have."""
    if n_features is None:
        return _LARGEST
    if not isinstance(n_features, int | np.integer) or isinstance(n_features, bool) or n_features < 1:
        raise ValueError(f"n_features must be an integer of at least 1; got {n_features!r}.")
    return int(n_features)


def _parsed(text: Text, most: int, place: Place | None = None) -> Iterator[tuple[Block, Samples]]:
    """Yield the blocks of a text from a place on, and their samples."""
    blocks = text.blocks(place, n_bytes=_BLOCK_BYTES)
    first = list(itertools.islice(blocks, 2))
    is_short = len(first) < 2 and sum(len(block.text) for block in first) <= _SHORT
    parse = parse_lines if is_short else scan_lines

    def task(block: Block) -> tuple[Block, Samples]:
        return block._replace(text=b""), parse(block.text, text.name, block.line, most)

    whole = itertools.chain(first, blocks)
    del first  # the chain drops these blocks once they are yielded
    if is_short or n_threads() == 1 or is_importing():
        yield from map(task, whole)
        return
    yield from _in_threads(task, whole)


def _in_threads(
    task: Callable[[Block], tuple[Block, Samples]], blocks: Iterator[Block]
) -> Iterator[tuple[Block, Samples]]:
    """Yield ``task(block)`` of all blocks in their order; as many as there are threads are worked on at a time."""
    pool = concurrent.futures.ThreadPoolExecutor(n_threads(), "condgrad-parser")
    waiting: collections.deque[concurrent.futures.Future[tuple[Block, Samples]]] = collections.deque()
    try:
        for block in blocks:
            waiting.append(pool.submit(task, block))
            del block  # only its task needs the text
            if len(waiting) > n_threads():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _joined(parts: list[Samples], n_features: int | None) -> tuple[Any, np.ndarray]:
    """Return all samples, and empty the list: each part is dropped once it is copied."""
    n, k = sum(part.targets.size for part in parts), sum(part.values.size for part in parts)
    places = np.int32 if k < 2**31 and parts[0].indices.dtype == np.int32 else np.int64
    data, indices = np.empty(k), np.empty(k, places)
    indptr, y = np.zeros(n + 1, places), np.empty(n)
    parts.reverse()
    i = e = 0
    while parts:
        part = parts.pop()
        data[e : e + part.values.size], indices[e : e + part.values.size] = part.values, part.indices
        y[i : i + part.targets.size] = part.targets
        indptr[i + 1 : i + 1 + part.targets.size] = part.ends + e
        i, e = i + part.targets.size, e + part.values.size
    width = n_features or int(indices.max(initial=0)) + 1
    X = scipy.sparse.csr_matrix((data, indices, indptr), shape=(n, width))
    X.has_sorted_indices = X.has_canonical_format = True  # the parsers refuse any other order
    return X, y
