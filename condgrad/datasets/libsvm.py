"""LIBSVM files, read strictly."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np

from condgrad.storage.sources.libsvm import parse_libsvm
from condgrad.storage.sources.text import read_bytes


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
