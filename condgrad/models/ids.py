"""Ids of rows and columns, as users name them, and their places in the matrix."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

Ids: TypeAlias = tuple[Hashable, ...] | None  # in the order of their places; None: there are no ids


def as_ids(given: object) -> list[Hashable] | None:
    """Return ids as a list, or None where ``given`` are whole numbers, which are places themselves.

    >>> as_ids(["ann", 3]), as_ids([("ann", 1)]), as_ids([0, 1])
    (['ann', 3], [('ann', 1)], None)
    """
    if hasattr(given, "__array__"):
        array = np.asarray(given)
        if array.ndim != 1 or array.dtype.kind in "iu":
            return None
        # tolist() would turn dates into plain numbers.
        given = list(array) if array.dtype.kind in "mM" else array.tolist()
    elif isinstance(given, str) or not np.iterable(given):
        return None
    ids = list(given)
    return None if all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in ids) else ids


def learn(given: object, name: str) -> tuple[ArrayLike, Ids]:
    """Return the places of ids, and the different ids in the order of their places (None: places were given)."""
    ids = as_ids(given)
    if ids is None:
        return cast("ArrayLike", given), None
    try:
        known = list(dict.fromkeys(ids))
    except TypeError:
        raise ValueError(f"{name} must be whole numbers, or ids that can be hashed, such as words.") from None
    if any(x != x for x in known):  # nan differs from itself and would not be found again
        raise ValueError(f"{name} must not hold nan: it is not a valid id.")
    with contextlib.suppress(TypeError):  # ids of several kinds stay in the order of their first appearance
        known.sort()  # type: ignore[call-arg]
    return places_of(ids, known), tuple(known)


def places_of(ids: Sequence[Hashable], known: Sequence[Hashable]) -> np.ndarray:
    """Return the places of ids among the known ones; an unknown id has the place after the last."""
    place = {label: k for k, label in enumerate(known)}
    return np.array([place.get(label, len(known)) for label in ids], dtype=np.int64)
