"""Summary: what a manifest tells about the columns of X, the targets and the weights, added up chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.storage.row_batch import RowBatch

_MOST_CLASSES = 100
_BLOCK = 2**20  # entries of X that are converted to float64 at a time


class Summary:
    """Sums over all samples: of the columns of X, of y and of the weights.

    The chunks are added in their order, so that a conversion that was interrupted gives the same digits.
    """

    def __init__(self) -> None:
        self._columns = np.zeros((3, 0))  # sum, sum of squares, largest size; it grows with the features
        self._n = 0
        self._low, self._high, self._total = np.inf, -np.inf, 0.0
        self._classes: dict[float, int] | None = {}
        self._weight: float | None = None

    def add(self, chunk: RowBatch, fields: dict[str, list[int]] | None) -> None:
        """Add the samples of a chunk; ``fields`` has the first features of one-hot fields."""
        self._n += len(chunk)
        if chunk.X is not None:
            self._add_sparse(chunk.X.data.astype(np.float64), chunk.X.indices)
        elif "X" in chunk.of_samples:
            self._add_dense(chunk.of_samples["X"])
        for role, firsts in (fields or {}).items():
            self._add_codes(chunk.of_samples[role], firsts)
        if "y" in chunk.of_samples:
            self._add_targets(chunk.of_samples["y"])
        if "weight" in chunk.of_samples:
            self._weight = (self._weight or 0.0) + float(chunk.of_samples["weight"].sum())

    def columns_of(self, n_features: int) -> np.ndarray:
        """Return sum, sum of squares and largest size of the entries of each column."""
        self._grow(n_features)
        return self._columns

    def _grow(self, n_features: int) -> None:
        missing = max(0, n_features - self._columns.shape[1])
        self._columns = np.pad(self._columns, ((0, 0), (0, missing))) if missing else self._columns

    def _add_dense(self, X: np.ndarray) -> None:
        self._grow(X.shape[1])
        step = max(1, _BLOCK // X.shape[1])
        for start in range(0, X.shape[0], step):
            block = X[start : start + step].astype(np.float64)
            self._columns[0] += block.sum(axis=0)
            np.abs(block, out=block)
            np.maximum(self._columns[2], block.max(axis=0), out=self._columns[2])
            np.square(block, out=block)
            self._columns[1] += block.sum(axis=0)

    def _add_sparse(self, data: np.ndarray, indices: np.ndarray) -> None:
        self._grow(int(indices.max(initial=-1)) + 1)
        d = self._columns.shape[1]
        self._columns[0] += np.bincount(indices, data, d)
        self._columns[1] += np.bincount(indices, data * data, d)
        np.maximum.at(self._columns[2], indices, np.abs(data))

    def _add_codes(self, codes: np.ndarray, firsts: list[int]) -> None:
        for q, first in enumerate(firsts):
            counts = np.bincount(codes[:, q])
            self._grow(first + counts.size)
            features = slice(first, first + counts.size)
            self._columns[:2, features] += counts
            np.maximum(self._columns[2, features], counts > 0, out=self._columns[2, features])

    def _add_targets(self, y: np.ndarray) -> None:
        self._low, self._high = min(self._low, float(y.min())), max(self._high, float(y.max()))
        self._total += float(y.sum(dtype=np.float64))
        if self._classes is None:
            return
        values, counts = np.unique(y, return_counts=True)
        for value, count in zip(values[: _MOST_CLASSES + 1].tolist(), counts.tolist()):
            self._classes[float(value)] = self._classes.get(float(value), 0) + count
        if len(self._classes) > _MOST_CLASSES:
            self._classes = None

    def facts(self) -> dict[str, Any]:
        """Return the statistics of y and the total weight, None where there are none."""
        y: dict[str, Any] | None = None
        if self._low <= self._high:
            y = {"min": self._low, "max": self._high, "mean": self._total / self._n, "classes": None}
            if self._classes is not None:
                y["classes"] = [{"value": value, "count": count} for value, count in sorted(self._classes.items())]
        return {"y": y, "total_weight": self._weight}
