"""What conversions to rows and to columns share: the folder that they write to, their options, their progress."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.storage import folder_lock
from condgrad.storage import manifest as manifests
from condgrad.storage.row_writer import ConversionProgress, Report, own_files, remove_files

_DTYPES = ("float32", "float64")


@contextlib.contextmanager
def prepared(folder: Path, overwrite: bool) -> Iterator[None]:
    """Make the folder that a conversion writes to, or make sure that nothing in it is lost; hold its lock meanwhile."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file; give the name of a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with folder_lock.locked(folder):
        _prepare(folder, overwrite)
        yield


def _prepare(folder: Path, overwrite: bool) -> None:
    if (folder / manifests.NAME).exists():
        if not overwrite:
            raise FileExistsError(f"{str(folder)!r} has data already; use overwrite=True to replace them.")
        remove_files(folder)
    own = {path.name for path in own_files(folder)} | {folder_lock.NAME}
    strange = sorted({path.name for path in folder.iterdir()} - own)
    if strange:
        raise FileExistsError(
            f"{str(folder)!r} has files that are no converted data, such as {strange[0]!r}; give a new folder."
        )


def as_dtype(dtype: Any) -> np.dtype | None:
    """Return the dtype in which X is stored, None to leave it to the data."""
    if dtype is None:
        return None
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.name not in _DTYPES:
        raise ValueError(f"dtype must be 'float32', 'float64' or None; got {dtype!r}.")
    return found


def reporter(callback: Report | None, verbose: bool) -> Report:
    """Return a function that reports progress to the callback, and to the terminal once a second."""
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
