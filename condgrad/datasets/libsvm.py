"""LIBSVM files, read strictly."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.storage.sources.libsvm import read_samples
from condgrad.storage.sources.libsvm_copy import read_with_copy
from condgrad.storage.sources.text import TextFile


def read_libsvm(
    path: str | os.PathLike[str],
    n_features: int | None = None,
    *,
    cache: bool = False,
    callback: Callable[[int, float | None], object] | None = None,
) -> tuple[Any, np.ndarray]:
    """Return the CSR matrix and the targets of a LIBSVM file, plain or compressed (.bz2, .gz, .xz).

    Indices start at 1 in this format, whatever the first line looks like, and ``n_features`` fixes the width: two
    parts of one data set can then never be shifted against each other. Anything else than plain numbers at increasing
    indices is an error that names its line: also what ``float`` or scikit-learn would take, such as ``nan``, ``1_0``,
    an index 0 or a query id. Where both read a file, both return the same bits. Compiled kernels parse it on all cores,
    and memory holds the result and a few blocks of text.

    Parameters
    ----------
    path : str or path
    n_features : int, optional
        The number of columns; an index above it is an error. By default it is the largest index of the file, which
        may be at most 100,000,000.
    cache : bool
        Whether to keep a binary copy beside the file, as ``path`` with ``.condgrad`` added, and to read that the next
        time, if the file still has its size and date.
    callback : callable, optional
        Called now and then with the number of samples so far, and with the share of the file that has been read, from
        0 to 1 (None where that is not known).
    """
    file = TextFile(pathlib.Path(path))
    return read_with_copy(file, n_features, callback) if cache else read_samples(file, n_features, callback)
