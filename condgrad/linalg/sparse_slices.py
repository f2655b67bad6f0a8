"""SparseSlices: the rows of a CSR matrix or the columns of a CSC matrix, with stored entries or with ones."""

from typing import Any, NamedTuple

import numpy as np

from condgrad.compiled import compiled, fill_in
from condgrad.linalg.slices import OneByOne

_SHORT = 20  # mean number of entries of a slice, below which slices are short


class SparseMethods(OneByOne):
    """Methods that sparse slices share, written with ``stored_at(m)``: the classes below only define that."""

    indices: np.ndarray
    indptr: np.ndarray

    def stored_at(self, m):
        """Return the entry that is stored at place ``m``."""
        raise NotImplementedError

    def dot_slice(self, k, v):
        """Return ``<slice k, v>`` for an array ``v``, accumulated in float64."""
        total = 0.0
        for m in range(self.indptr[k], self.indptr[k + 1]):
            total += self.stored_at(m) * v[self.indices[m]]
        return total

    def add_slice(self, k, c, out):
        """Add ``c`` times slice ``k`` to the vector ``out``."""
        for m in range(self.indptr[k], self.indptr[k + 1]):
            out.add_at(self.indices[m], c * self.stored_at(m))

    def add_scaled(self, k, c, scale, out):
        """Add ``c`` times slice ``k``, each entry j times ``scale_j``, to the array ``out``."""
        for m in range(self.indptr[k], self.indptr[k + 1]):
            j = self.indices[m]
            out[j] += c * scale[j] * self.stored_at(m)

    def dot_slices(self, first, v, out):
        """Set ``out`` to the products of ``v`` with the slices ``first``, ``first`` + 1, ....

        A processor does not foresee where a short slice ends. One loop over the entries of all slices takes a fifth
        less time then. All slices decide, not those of the range, so that a product is the same in every range.
        """
        start, size, one = np.uint64(first), np.uint64(out.shape[0]), np.uint64(1)
        n_slices = np.uint64(self.indptr.shape[0]) - one
        if self.indptr[n_slices] >= _SHORT * n_slices:
            for k in range(size):
                out[k] = self.dot_slice(start + k, v)
            return
        k, total, end = np.uint64(0), 0.0, self.indptr[start + min(one, size)]
        for m in range(self.indptr[start], self.indptr[start + size]):
            while m == end:  # of this slice; the next one may be empty
                out[k] = total
                k, total = k + one, 0.0
                end = self.indptr[start + k + one]
            total += self.stored_at(m) * v[self.indices[m]]
        while k < size:  # the last slice with entries, and empty ones after it
            out[k] = total
            k, total = k + one, 0.0

    def add_outer(self, k, c, H):
        """Add ``c`` times the outer product of slice ``k`` with itself to the array ``H``."""
        for a in range(self.indptr[k], self.indptr[k + 1]):
            scaled = c * self.stored_at(a)
            for b in range(self.indptr[k], self.indptr[k + 1]):
                H[self.indices[a], self.indices[b]] += scaled * self.stored_at(b)

    def add_squares(self, k, c, out):
        """Add ``c`` times the squares of the entries of slice ``k`` to the vector ``out``."""
        for m in range(self.indptr[k], self.indptr[k + 1]):
            out.add_at(self.indices[m], c * self.stored_at(m) * self.stored_at(m))

    def sum_squares(self, k, weights):
        """Return the sum of ``weights_j`` times the square of entry j of slice ``k``."""
        total = 0.0
        for m in range(self.indptr[k], self.indptr[k + 1]):
            total += weights[self.indices[m]] * self.stored_at(m) * self.stored_at(m)
        return total

    def dot_and_squares(self, k, v, weights):
        """Return ``dot_slice(k, v)`` and ``sum_squares(k, weights)``, with one read of the indices."""
        total, squares = 0.0, 0.0
        for m in range(self.indptr[k], self.indptr[k + 1]):
            j = self.indices[m]
            total += v[j] * self.stored_at(m)
            squares += weights[j] * self.stored_at(m) * self.stored_at(m)
        return total, squares

    def moments(self, k, weights):
        """Return mean, root mean square and standard deviation of slice ``k`` under ``weights`` that sum to one."""
        mean, square, spread, stored = 0.0, 0.0, 0.0, 0.0
        for m in range(self.indptr[k], self.indptr[k + 1]):
            mean += weights[self.indices[m]] * self.stored_at(m)
            square += weights[self.indices[m]] * self.stored_at(m) * self.stored_at(m)
            stored += weights[self.indices[m]]
        for m in range(self.indptr[k], self.indptr[k + 1]):
            spread += weights[self.indices[m]] * (self.stored_at(m) - mean) ** 2
        spread += max(0.0, 1.0 - stored) * mean * mean
        return mean, np.sqrt(square), np.sqrt(spread)

    def entry(self, k, j):
        """Return entry ``j`` of slice ``k``, found by bisection."""
        low, high = np.int64(self.indptr[k]), np.int64(self.indptr[k + 1])
        end = high
        while low < high:
            middle = (low + high) // 2
            if self.indices[middle] < j:
                low = middle + 1
            else:
                high = middle
        if low < end and self.indices[low] == j:
            return float(self.stored_at(low))
        return 0.0

    def n_stored(self, k):
        """Return how many entries of slice ``k`` are stored."""
        return self.indptr[k + 1] - self.indptr[k]

    def add_weighted(self, k, weights, c, other, out):
        """Add ``c * sum_i weights_i x_i y_i`` to ``out``: x is slice ``k``, y_i are the slices of ``other``."""
        for m in range(self.indptr[k], self.indptr[k + 1]):
            i = self.indices[m]
            other.add_slice(i, c * weights[i] * self.stored_at(m), out)


def stored_slices(cls: type) -> type:
    """Make a NamedTuple class with ``indices``, ``indptr`` and ``stored_at`` a class of sparse slices."""
    return compiled(fill_in(cls, SparseMethods))


@stored_slices
class SparseSlices(NamedTuple):
    """The rows of a CSR matrix, or the columns of a CSC matrix; ``indices`` are unsigned and sorted."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    def stored_at(self, m):
        """Return the entry that is stored at place ``m``."""
        return self.data[m]


@stored_slices
class SparseOnes(NamedTuple):
    """Sparse slices whose stored entries are all 1, as those of categories and of sets: only their places are read."""

    indices: np.ndarray
    indptr: np.ndarray

    def stored_at(self, m):
        """Return 1."""
        return 1.0


def slices_of(X: Any) -> SparseSlices:
    """Return the rows of a CSR matrix, or the columns of a CSC matrix, without a copy."""
    # Unsigned indices spare kernels the test for negative ones: half the time of a pass.
    return SparseSlices(X.data, _unsigned(X.indices), _unsigned(X.indptr))


def _unsigned(indices: np.ndarray) -> np.ndarray:
    return indices.view(np.uint32 if indices.dtype.itemsize == 4 else np.uint64)
