"""EntryGram: products with G'G or GG', whichever is smaller, for a sparse matrix G; each reads the entries once."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.entries import Entries


class EntryGram:
    """The smaller one of G'G and GG', for the sparse matrix G with the given values at ``entries``.

    Attributes
    ----------
    is_wide : bool
        Whether G has fewer rows than columns: then it is GG', and vectors are those of rows.
    shape : (int, int)
        The shape of G, or of G' if that is meant: the second number is the length of the vectors.
    """

    def __init__(self, entries: Entries, values: np.ndarray) -> None:
        self.entries, self.values = entries, values
        self.is_wide = entries.shape[0] < entries.shape[1]
        self.shape = entries.shape[::-1] if self.is_wide else entries.shape
        self._side = entries.by_column if self.is_wide else entries.by_row
        self._sorted = values[entries.by_column.order] if self.is_wide else values

    def dot(self, x: np.ndarray) -> np.ndarray:
        """Return the product with x."""

        def add(start: int, stop: int) -> np.ndarray:
            out = np.zeros(x.size)
            _add_products(self._side.indptr, self._side.others, self._sorted, x, out, start, stop)
            return out

        borders = threads.cut(self.shape[0], 2.0 * self.entries.size, self._side.indptr)
        return functools.reduce(np.add, threads.run(add, borders))

    def triplets(self, s: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U, s, V for values s and singular vectors X of the smaller side; where s is 0, the others are 0."""
        product = self.entries.transpose_dot_each if self.is_wide else self.entries.dot_each
        others = product(self.values, X)
        lengths = np.linalg.norm(others, axis=0)
        others = np.divide(others, lengths, out=np.zeros_like(others), where=lengths > 0.0)
        return (X, s, others) if self.is_wide else (others, s, X)


@kernel
def _add_products(indptr, others, values, x, out, start, stop):
    """Add the sum of g_i (g_i'x) to ``out``, for the slices g_i of G from start to stop."""
    for i in range(np.uint64(start), np.uint64(stop)):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
        total = 0.0
        for t in range(first, last):
            total += values[t] * x[np.uint64(others[t])]
        for t in range(first, last):
            out[np.uint64(others[t])] += total * values[t]
