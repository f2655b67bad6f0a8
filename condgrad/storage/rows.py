"""Samples on disk, by rows, for data that are larger than memory.

:func:`convert` writes a folder once, from files of several formats, arrays, or batches that you make. :func:`open`
returns its samples, to be passed in place of X.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.linalg.settings import RandomState, as_flag, as_generator
from condgrad.storage import manifest as manifests
from condgrad.storage.row_writer import ConversionProgress, Report, Settings, own_files, remove_files, write_rows
from condgrad.storage.sources.arrays import Arrays, Batches, Table, parts_of
from condgrad.storage.sources.base import Source
from condgrad.storage.stored_rows import StoredRows

__all__ = ["ConversionProgress", "StoredRows", "convert", "open"]

_DTYPES = ("float32", "float64")


def convert(
    source: Any,
    folder: str | os.PathLike[str],
    *,
    chunk_bytes: int = 2**27,
    shuffle: bool = True,
    overwrite: bool = False,
    dtype: Any = None,
    random_state: RandomState = 0,
    callback: Report | None = None,
    verbose: bool = False,
) -> StoredRows:
    """Write samples to a folder in chunks of rows, and return them opened."""
    folder = Path(folder)
    settings = Settings(_as_bytes(chunk_bytes), _seed(shuffle, random_state), _as_dtype(dtype))
    samples = _source_of(source)
    _prepare(folder, as_flag(overwrite, "overwrite"))
    write_rows(folder, samples, settings, _reporter(callback, as_flag(verbose, "verbose")))
    return StoredRows.of_folder(folder)


def open(folder: str | os.PathLike[str]) -> StoredRows:
    """Return the samples of a folder that :func:`convert` has written."""
    return StoredRows.of_folder(Path(folder))


def _source_of(source: Any) -> Source:
    if isinstance(source, tuple):
        return Arrays(*parts_of(source))
    if isinstance(source, Table) and not isinstance(source, list):
        return Arrays(source)
    if isinstance(source, Iterable):
        return Batches(source)
    raise TypeError(f"source must be a path, X, (X, y), (X, y, weight), or batches of these; got {source!r}.")


def _prepare(folder: Path, overwrite: bool) -> None:
    """Make the folder, or make sure that nothing in it is lost."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file; give the name of a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / manifests.NAME).exists():
        if not overwrite:
            raise FileExistsError(f"{str(folder)!r} has data already; use overwrite=True to replace them.")
        remove_files(folder)
    strange = sorted({path.name for path in folder.iterdir()} - {path.name for path in own_files(folder)})
    if strange:
        raise FileExistsError(
            f"{str(folder)!r} has files that are no converted data, such as {strange[0]!r}; give a new folder."
        )


def _seed(shuffle: bool, random_state: RandomState) -> int | None:
    """Return the seed of the random order, None if the order is kept."""
    return int(as_generator(random_state).integers(2**62)) if as_flag(shuffle, "shuffle") else None


def _as_bytes(chunk_bytes: object) -> int:
    if not isinstance(chunk_bytes, int | np.integer) or isinstance(chunk_bytes, bool) or chunk_bytes < 1:
        raise ValueError(f"chunk_bytes must be a positive integer; got {chunk_bytes!r}.")
    return int(chunk_bytes)


def _as_dtype(dtype: Any) -> np.dtype | None:
    if dtype is None:
        return None
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.name not in _DTYPES:
        raise ValueError(f"dtype must be 'float32', 'float64' or None; got {dtype!r}.")
    return found


def _reporter(callback: Report | None, verbose: bool) -> Report:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable with one argument, a ConversionProgress; got {callback!r}.")
    last = -math.inf

    def report(progress: ConversionProgress) -> None:
        nonlocal last
        if callback is not None:
            callback(progress)
        if verbose and time.monotonic() - last > 1.0:
            last = time.monotonic()
            print(progress, file=sys.stderr, flush=True)

    return report
