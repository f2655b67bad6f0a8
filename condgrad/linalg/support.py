"""The samples whose predictions a step changes: all of them, or those where a sparse column has entries."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import compiled, kernel


class Support(Protocol):
    """Some of the samples, in a form that kernels read."""

    def size(self) -> int:
        """Return the number of samples."""

    def row(self, k: int) -> int:
        """Return the sample at place ``k``."""


@compiled
class AllRows(NamedTuple):
    """Every sample: place k is row k."""

    n: int

    def size(self):
        """Return the number of samples."""
        return self.n

    def row(self, k):
        """Return the sample at place ``k``."""
        return k


@compiled
class SomeRows(NamedTuple):
    """The samples listed in ``rows``."""

    rows: np.ndarray

    def size(self):
        """Return the number of samples."""
        return self.rows.shape[0]

    def row(self, k):
        """Return the sample at place ``k``."""
        return self.rows[k]


def support_of(rows: np.ndarray | None, n: int) -> Support:
    """Return the samples ``rows`` in a form that kernels read; None stands for all ``n``."""
    return AllRows(n) if rows is None else SomeRows(rows)


def merge(rows_a: np.ndarray, a: np.ndarray, rows_b: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of two sparse columns, each given by sorted rows and values, in the same form."""
    rows = np.empty(rows_a.size + rows_b.size, rows_a.dtype)
    values = np.empty(rows.size)
    k = _merge(rows_a, a, rows_b, b, rows, values)
    return rows[:k], values[:k]


@kernel
def _merge(rows_a, a, rows_b, b, rows, values):
    i, j, k = 0, 0, 0
    while i < rows_a.shape[0] or j < rows_b.shape[0]:
        if j == rows_b.shape[0] or (i < rows_a.shape[0] and rows_a[i] < rows_b[j]):
            rows[k] = rows_a[i]
            values[k] = a[i]
            i += 1
        elif i == rows_a.shape[0] or rows_b[j] < rows_a[i]:
            rows[k] = rows_b[j]
            values[k] = b[j]
            j += 1
        else:
            rows[k] = rows_a[i]
            values[k] = a[i] + b[j]
            i += 1
            j += 1
        k += 1
    return k
