"""Files of NumPy: .npy files, which are mapped into memory."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from condgrad.storage.sources.arrays import Arrays
from condgrad.storage.sources.base import Source
from condgrad.storage.sources.text import file_identity


def npy_source(path: pathlib.Path, target: Any = None, weight: Any = None) -> Source:
    """Return the rows of an .npy file; target and weight are names of .npy files, or arrays."""
    identity = {**file_identity(path), "format": "npy", "y": None, "weight": None}
    parts: dict[str, Any] = {"y": None, "weight": None}
    for what, given in (("y", target), ("weight", weight)):
        if isinstance(given, str | pathlib.Path):
            identity[what], parts[what] = file_identity(pathlib.Path(given)), load_npy(pathlib.Path(given))
        elif given is not None and given is not False:
            identity, parts[what] = {}, given
    return Arrays(load_npy(path), **parts, name=path.name, identity=identity or None)


def load_npy(path: pathlib.Path) -> np.ndarray:
    """Return the array of an .npy file, mapped."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path.name} could not be read as an .npy file: {str(error).rstrip('.')}.") from None
