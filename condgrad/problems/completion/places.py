"""The places of observed entries as users give them, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def as_places(
    rows: ArrayLike, columns: ArrayLike, shape: tuple[int, int] | None
) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Return the places of the entries as arrays and the shape of the matrix, or raise if they are not valid."""
    places = []
    for name, given in (("rows", rows), ("columns", columns)):
        array = np.asarray(given)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must be a one-dimensional array of whole numbers, at least one; "
                f"got {array.dtype} of shape {array.shape}."
            )
        if array.min() < 0:
            raise ValueError(f"{name} must count from 0; got {array.min()}.")
        places.append(array)
    rows, columns = places
    if rows.size != columns.size:
        raise ValueError(f"rows and columns must have equal lengths; got {rows.size} and {columns.size}.")
    needed = int(rows.max()) + 1, int(columns.max()) + 1
    if shape is None:
        shape = needed
    is_pair = isinstance(shape, tuple | list) and len(shape) == 2
    if not (is_pair and all(isinstance(size, int | np.integer) for size in shape)):
        raise ValueError(f"shape must be a pair of whole numbers (rows, columns); got {shape!r}.")
    shape = int(shape[0]), int(shape[1])
    if shape[0] < needed[0] or shape[1] < needed[1]:
        raise ValueError(f"shape {shape} is too small for entries up to row {needed[0] - 1}, column {needed[1] - 1}.")
    _refuse_duplicates(rows, columns, shape)
    return rows, columns, shape


def _refuse_duplicates(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> None:
    place = np.sort(rows.astype(np.int64) * shape[1] + columns)
    repeats = np.flatnonzero(place[1:] == place[:-1])
    if repeats.size:
        i, j = divmod(int(place[repeats[0]]), shape[1])
        raise ValueError(
            f"the entry at row {i}, column {j} is given more than once ({repeats.size} repeats in all); "
            "give each place once, with the mean of its values."
        )
