"""PackedColumns: the dense columns of a working set side by side, so that its Gram matrix grows by single products."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.columns import Columns

_MOST_ENTRIES = 2e7  # entries up to which columns are copied: 160 MB


class PackedColumns:
    """The columns of a working set, centred if there is an intercept, times the roots of fixed curvatures.

    Parameters
    ----------
    columns : Columns
    h : array
        The curvatures of the samples, multiples of the weights of which the means of columns are made.
    """

    def __init__(self, columns: Columns, h: np.ndarray) -> None:
        self.columns, self._root = columns, np.sqrt(h)
        self._memory = np.empty((0, h.size))

    def has_room(self, size: int) -> bool:
        """Return whether so many columns may be copied."""
        return size * self._root.size <= _MOST_ENTRIES

    def fill(self, G: np.ndarray, features: np.ndarray, first: int) -> None:
        """Take in the features from ``first`` on, and compute the rows and columns of G that belong to them."""
        if features.size > len(self._memory):
            memory = np.empty((max(features.size, 2 * len(self._memory)), self._root.size))
            memory[:first] = self._memory[:first]
            self._memory = memory
        _pack(self.columns, features[first:], self._root, self._memory[first : features.size])
        np.matmul(self._memory[first : features.size], self._memory[: features.size].T, out=G[first:])
        G[:first, first:] = G[first:, :first].T

    def keep(self, places: np.ndarray) -> None:
        """Keep the columns at these places alone."""
        self._memory = self._memory[places]


@kernel
def _pack(columns, features, root, out):
    """Fill every row of ``out`` by one of the features, less its mean, times the roots."""
    for q in range(features.shape[0]):
        j, row = features[q], out[q]
        for i in range(row.shape[0]):
            row[i] = 0.0
        columns.add(j, 1.0, DenseVector(row))
        mean = columns.scale[j] * columns.mean[j]
        for i in range(row.shape[0]):
            row[i] = (row[i] - mean) * root[i]
