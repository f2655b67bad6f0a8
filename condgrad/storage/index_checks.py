"""Checks of the numbers in files that are places in other arrays: kernels would read, and write, other memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.linalg.one_hot_slices import WIDTHS
from condgrad.storage.regular_files import REMEDY

_TOGETHER = 64  # rows whose codes are compared with those of other rows at once: NumPy is slow along short rows


def check_indptr(indptr: np.ndarray, file: object) -> None:
    """Raise OSError unless the rows of a sparse matrix begin one after the other; ``file`` is the one that has this."""
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise OSError(f"{file} has rows that end before they begin; {REMEDY}")


def check_indices(X: Any, length: int, file: object, what: str) -> None:
    """Raise OSError unless the indices of a CSR or CSC matrix, whose indptr is right, ascend and are below ``length``.

    ``what`` is what an index is the number of: "feature" or "sample".
    """
    indices = X.indices
    is_full = X.indptr[1:] > X.indptr[:-1]
    if not is_full.any():
        return
    low, high = indices[X.indptr[:-1][is_full]].min(), indices[X.indptr[1:][is_full] - 1].max()
    if X.has_canonical_format and low >= 0 and high < length:  # each row ascends, so its ends tell enough
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= length:
        raise OSError(f"{file} names {what} {low if low < 0 else high}, which does not exist; {REMEDY}")
    raise OSError(f"{file} has indices that do not ascend; {REMEDY}")


def check_codes(X: OneHotMatrix, files: Mapping[str, object]) -> None:
    """Raise OSError unless every code of one-hot rows is that of a feature of its own field."""
    borders = np.sort(np.concatenate([*X.firsts, [np.uint64(X.shape[1])]]))
    for width, codes, firsts in zip(WIDTHS, X.codes, X.firsts, strict=True):
        sizes = borders[np.searchsorted(borders, firsts) + 1] - firsts
        if (sizes >= 256**width).all():  # whatever the codes are
            continue
        largest = _largest_of_columns(codes)
        if (largest >= sizes).any():
            q = int((largest >= sizes).argmax())
            raise OSError(
                f"{files[f'codes{width}']} has the code {largest[q]} of a field of {sizes[q]} features; {REMEDY}"
            )


def _largest_of_columns(codes: np.ndarray) -> np.ndarray:
    """Return the largest entry of each column of an array in C order."""
    n, width = codes.shape
    whole = n - n % _TOGETHER
    parts = [codes[whole:].max(axis=0, initial=0)]
    if whole:
        parts.append(codes[:whole].reshape(-1, _TOGETHER * width).max(axis=0).reshape(_TOGETHER, width).max(axis=0))
    return np.maximum.reduce(parts)
