"""Source: samples that come in batches, which can begin again at a place where an interrupted conversion stopped."""

from __future__ import annotations

import abc
from collections.abc import Generator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

BATCH_BYTES = 2**24  # about how many bytes of X a source returns at a time

Place: TypeAlias = tuple[int, ...]  # where a batch begins; only its source knows what the numbers mean


class Batch(NamedTuple):
    """Consecutive samples as they come from a source, not yet checked, and the place where they begin.

    X is an array, a sparse matrix, or a :class:`~condgrad.linalg.one_hot.OneHotMatrix`.
    """

    X: Any
    y: Any
    weight: Any
    place: Place
    offset: Any = None


def joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    """Return parts as one array, and empty their list: memory holds little twice, as each part is dropped once copied.

    >>> joined([np.ones(1), np.zeros(2)], np.float64)
    array([1., 0., 0.])
    """
    whole: np.ndarray = np.empty(sum(part.size for part in parts), dtype)
    start = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[start : start + part.size] = part
        start += part.size
    return whole


class Source(abc.ABC):
    """Samples in batches.

    Attributes
    ----------
    name : str
        Its name in errors.
    identity : dict or None
        JSON values that tell this source from others, such as path, size and date of a file; None if an interrupted
        conversion cannot find the same samples again.
    feature_names : list of str or None
    has_fixed_width : bool
        Whether all batches have the same number of features; in LIBSVM text it is the largest index so far.
    """

    name = "the source"
    identity: dict[str, Any] | None = None
    feature_names: list[str] | None = None
    has_fixed_width = True

    @abc.abstractmethod
    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield the batches, from the first one or from a place on."""

    def n_bytes(self, dtype: np.dtype | None) -> int | None:
        """Return how many bytes X will have in a dtype, or in its own; None if that is not known in advance."""
        return None

    def share(self, place: Place) -> float | None:
        """Return which share of the samples lies before a place, or None if that is not known."""
        return None

    def facts(self) -> dict[str, Any]:
        """Return JSON values for the manifest, once all batches have been read."""
        return {"feature_names": self.feature_names}

    def shared_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for the folder that belong to no chunk, by role."""
        return {}
