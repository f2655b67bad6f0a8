"""Files of NumPy: .npy files in C order are read a few rows at a time, those in Fortran order are mapped."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from condgrad.storage.array_files import ArrayFile, Buffer
from condgrad.storage.sources.arrays import Arrays
from condgrad.storage.sources.base import Source
from condgrad.storage.sources.text import file_identity


def npy_source(path: pathlib.Path, target: Any = None, weight: Any = None, offset: Any = None) -> Source:
    """Return the rows of an .npy file; target, weight and offset are names of .npy files, or arrays."""
    identity = {**file_identity(path), "format": "npy", "y": None, "weight": None}
    parts: dict[str, Any] = {"y": None, "weight": None, "offset": None}
    for what, given in (("y", target), ("weight", weight), ("offset", offset)):
        if isinstance(given, str | pathlib.Path):
            identity[what], parts[what] = file_identity(pathlib.Path(given)), load_npy(pathlib.Path(given))
        elif given is not None and given is not False:
            identity, parts[what] = {}, given
    X = load_npy(path)
    X = NpyRows(path) if X.flags.c_contiguous else X
    return Arrays(X, **parts, name=path.name, identity=identity or None)


class NpyRows:
    """The rows of an .npy file in C order; unlike a mapped file they take no memory but that of the rows asked for."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file = ArrayFile.of_user(path)
        self.shape, self.dtype = self._file.shape, self._file.dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        return self._file.read(Buffer(), start, stop, check=False)


def load_npy(path: pathlib.Path) -> np.ndarray:
    """Return the array of an .npy file, mapped."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path.name} could not be read as an .npy file: {str(error).rstrip('.')}.") from None
