"""Arrays of Dask, computed block by block."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import numpy as np

from condgrad.storage.sources.base import Batch, Place, Source


class DaskArray(Source):
    """X and numbers of the samples of Dask, or in memory; all blocks of the same rows are computed together."""

    name = "X"

    def __init__(self, X: Any, y: Any = None, weight: Any = None, offset: Any = None) -> None:
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions (samples, features); got shape {X.shape}.")
        self._X, self._numbers = X, (y, weight, offset)
        sizes = X.chunks[0]
        is_known = not np.isnan(sizes).any()
        self._starts = np.cumsum([0, *sizes]) if is_known else None
        for name, part in (("y", y), ("weight", weight), ("offset", offset)):
            if part is not None:
                self._check(name, part)

    def _check(self, name: str, part: Any) -> None:
        """Raise if y, the weights or the offsets cannot be cut like X."""
        if self._starts is not None:
            if len(part) != self._starts[-1]:
                raise ValueError(f"{name} must have one entry per sample: X has {self._starts[-1]} rows, {name} has "
                                 f"{len(part)}.")  # fmt: skip
        elif not is_dask(part) or part.numblocks[0] != self._X.numblocks[0]:
            raise ValueError(
                f"the sizes of the blocks of X are not known; call X.compute_chunk_sizes(), or make {name} an array of "
                "Dask with the same blocks."
            )

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield the blocks of rows."""
        from dask.base import compute

        for k in range(0 if place is None else place[0], self._X.numblocks[0]):
            X, y, weight, offset = compute(self._X.blocks[k], *(self._block(part, k) for part in self._numbers))
            if X.shape[0]:
                yield Batch(X, y, weight, (k,), offset)

    def _block(self, part: Any, k: int) -> Any:
        """Return the numbers of the samples of block k."""
        if part is None:
            return None
        if self._starts is not None:
            return part[self._starts[k] : self._starts[k + 1]]
        return part.blocks[k]

    def n_bytes(self, dtype: np.dtype | None) -> int | None:
        """Return how many bytes X will have if its blocks are dense arrays; None if their sizes are not known."""
        itemsize = 4 if (dtype or self._X.dtype) == np.float32 else 8
        is_dense = isinstance(self._X._meta, np.ndarray)
        return None if self._starts is None or not is_dense else itemsize * int(self._starts[-1]) * self._X.shape[1]

    def share(self, place: Place) -> float:
        """Return which share of the blocks lies before a place."""
        return place[0] / self._X.numblocks[0]


def is_dask(X: Any) -> bool:
    """Return whether X is an array of Dask, without importing Dask."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(X, dask.Array)
