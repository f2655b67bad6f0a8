"""Slices: the rows of X, or its columns as the rows of X'.

Solvers need two operations on data, whatever the storage: the dot product of a slice with a vector, and adding a
multiple of a slice to a vector. The classes below offer them for rows and columns, dense and sparse.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from condgrad.compiled import compiled, fill_in, kernel

_SHORT = 20  # mean number of entries of a slice, below which slices are short
_LONG = 4096  # entries of dense slices, from which on a sum of them does not stay in the first cache


class Sink(Protocol):
    """A vector to which slices can be added."""

    def add_at(self, j: int, delta: float) -> None:
        """Add ``delta`` to entry ``j``."""


class SliceRanges(Protocol):
    """The methods of a pass: they use consecutive slices, in the order in which their storage is read fastest."""

    def dot_slices(self, first: int, v: np.ndarray, out: np.ndarray) -> None:
        """Set ``out`` to the products of ``v`` with the slices ``first``, ``first`` + 1, ...."""

    def add_slices(self, first: int, c: np.ndarray, out: Sink) -> None:
        """Add the slices from ``first`` on, each times its entry of ``c``, to the vector ``out``."""


class Slices(Protocol):
    """The methods of every kind of slices that can be used one at a time."""

    def dot_slice(self, k: int, v: np.ndarray) -> float:
        """Return ``<slice k, v>`` for an array ``v``, accumulated in float64."""

    def add_slice(self, k: int, c: float, out: Sink) -> None:
        """Add ``c`` times slice ``k`` to the vector ``out``."""

    def add_outer(self, k: int, c: float, H: np.ndarray) -> None:
        """Add ``c`` times the outer product of slice ``k`` with itself to the array ``H``."""

    def entry(self, k: int, j: int) -> float:
        """Return entry ``j`` of slice ``k``."""


class OneByOne:
    """The methods of a pass for slices that are used one after the other."""

    def dot_slice(self, k, v):
        """Return ``<slice k, v>`` for an array ``v``, accumulated in float64."""
        raise NotImplementedError

    def add_slice(self, k, c, out):
        """Add ``c`` times slice ``k`` to the vector ``out``."""
        raise NotImplementedError

    def dot_slices(self, first, v, out):
        """Set ``out`` to the products of ``v`` with the slices ``first``, ``first`` + 1, ...."""
        start = np.uint64(first)
        for k in range(np.uint64(out.shape[0])):
            out[k] = self.dot_slice(start + k, v)

    def add_slices(self, first, c, out):
        """Add the slices from ``first`` on, each times its entry of ``c``, to the vector ``out``."""
        start = np.uint64(first)
        for k in range(np.uint64(c.shape[0])):
            if c[k] != 0.0:
                self.add_slice(start + k, c[k], out)

    def dot_some(self, chosen, start, stop, v, out):
        """Set ``out[q]`` to the product of ``v`` with slice ``chosen[q]``, for q from ``start`` to ``stop`` - 1."""
        for q in range(start, stop):
            out[q] = self.dot_slice(chosen[q], v)

    def add_some(self, chosen, start, stop, c, scale, out):
        """Add slice ``k = chosen[q]``, times ``c[q]`` and ``scale[k]``, to the vector ``out``, for the same q."""
        for q in range(start, stop):
            if c[q] != 0.0:
                self.add_slice(chosen[q], c[q] * scale[chosen[q]], out)


class DenseMethods(OneByOne):
    """Methods that dense slices share, written with ``entry(k, j)``: the classes below only define ``entry``."""

    values: np.ndarray

    def entry(self, k, j):
        """Return entry ``j`` of slice ``k``."""
        raise NotImplementedError

    def dot_slice(self, k, v):
        """Return ``<slice k, v>`` for an array ``v``, accumulated in float64."""
        total = 0.0
        for j in range(self.values.shape[1]):
            total += self.entry(k, j) * v[j]
        return total

    def add_slice(self, k, c, out):
        """Add ``c`` times slice ``k`` to the vector ``out``."""
        for j in range(self.values.shape[1]):
            out.add_at(j, c * self.entry(k, j))

    def dot_some(self, chosen, start, stop, v, out):
        """Do the same with four slices at a time: ``v`` is read once for them, and memory brings them side by side."""
        whole = stop - (stop - start) % 4
        for q in range(start, whole, 4):
            out[q], out[q + 1], out[q + 2], out[q + 3] = self.dot_four(
                np.uint64(chosen[q]), np.uint64(chosen[q + 1]), np.uint64(chosen[q + 2]), np.uint64(chosen[q + 3]), v
            )
        for q in range(whole, stop):
            out[q] = self.dot_slice(chosen[q], v)

    def dot_four(self, j, k, m, o, v):
        """Return the products of ``v`` with four slices."""
        of_j, of_k, of_m, of_o = 0.0, 0.0, 0.0, 0.0
        for i in range(np.uint64(self.values.shape[1])):
            of_j += self.entry(j, i) * v[i]
            of_k += self.entry(k, i) * v[i]
            of_m += self.entry(m, i) * v[i]
            of_o += self.entry(o, i) * v[i]
        return of_j, of_k, of_m, of_o

    def add_some(self, chosen, start, stop, c, scale, out):
        """Do the same with four slices at a time: ``out`` is read and written once for them."""
        q = next_used(c, start, stop)
        while q < stop:
            r = next_used(c, q + 1, stop)
            s = next_used(c, r + 1, stop)
            t = next_used(c, s + 1, stop)
            if t < stop:
                j, k, m, o = np.uint64(chosen[q]), np.uint64(chosen[r]), np.uint64(chosen[s]), np.uint64(chosen[t])
                of_j, of_k, of_m, of_o = c[q] * scale[j], c[r] * scale[k], c[s] * scale[m], c[t] * scale[o]
                self.add_four(j, k, m, o, of_j, of_k, of_m, of_o, out)
                q = next_used(c, t + 1, stop)
            else:
                self.add_slice(chosen[q], c[q] * scale[chosen[q]], out)
                q = r

    def add_slices(self, first, c, out):
        """Add the slices from ``first`` on, each times its entry of ``c``, to ``out``: long ones four at a time."""
        start, is_long, four, count = np.uint64(first), self.values.shape[1] >= _LONG, np.empty(4, np.uint64), 0
        for k in range(np.uint64(c.shape[0])):
            if c[k] != 0.0 and is_long:
                four[count] = k
                count += 1
                if count == 4:
                    j, k, m, o = four[0], four[1], four[2], four[3]
                    self.add_four(start + j, start + k, start + m, start + o, c[j], c[k], c[m], c[o], out)
                    count = 0
            elif c[k] != 0.0:
                self.add_slice(start + k, c[k], out)
        for q in range(count):
            self.add_slice(start + four[q], c[four[q]], out)

    def add_four(self, j, k, m, o, of_j, of_k, of_m, of_o, out):
        """Add four slices, each times its number, to ``out``."""
        for i in range(np.uint64(self.values.shape[1])):
            two = of_j * self.entry(j, i) + of_k * self.entry(k, i)
            out.add_at(i, two + (of_m * self.entry(m, i) + of_o * self.entry(o, i)))

    def add_scaled(self, k, c, scale, out):
        """Add ``c`` times slice ``k``, each entry j times ``scale_j``, to the array ``out``, in its precision."""
        c = out.dtype.type(c)
        for j in range(self.values.shape[1]):
            out[j] += c * scale[j] * self.entry(k, j)

    def add_outer(self, k, c, H):
        """Add ``c`` times the outer product of slice ``k`` with itself to the array ``H``."""
        for a in range(self.values.shape[1]):
            scaled = c * self.entry(k, a)
            for b in range(self.values.shape[1]):
                H[a, b] += scaled * self.entry(k, b)

    def add_squares(self, k, c, out):
        """Add ``c`` times the squares of the entries of slice ``k`` to the vector ``out``."""
        for j in range(self.values.shape[1]):
            out.add_at(j, c * self.entry(k, j) * self.entry(k, j))

    def sum_squares(self, k, weights):
        """Return the sum of ``weights_j`` times the square of entry j of slice ``k``."""
        total = 0.0
        for j in range(self.values.shape[1]):
            total += weights[j] * self.entry(k, j) * self.entry(k, j)
        return total

    def dot_and_squares(self, k, v, weights):
        """Return ``dot_slice(k, v)`` and ``sum_squares(k, weights)``: in two loops, as each vectorises by itself."""
        return self.dot_slice(k, v), self.sum_squares(k, weights)

    def moments(self, k, weights):
        """Return mean, root mean square and standard deviation of slice ``k`` under ``weights`` that sum to one."""
        mean, square, spread = 0.0, 0.0, 0.0
        for j in range(self.values.shape[1]):
            mean += weights[j] * self.entry(k, j)
            square += weights[j] * self.entry(k, j) * self.entry(k, j)
        for j in range(self.values.shape[1]):
            spread += weights[j] * (self.entry(k, j) - mean) ** 2
        return mean, np.sqrt(square), np.sqrt(spread)

    def n_stored(self, k):
        """Return how many entries of slice ``k`` are stored."""
        return self.values.shape[1]

    def add_weighted(self, k, weights, c, other, out):
        """Add ``c * sum_i weights_i x_i y_i`` to ``out``: x is slice ``k``, y_i are the slices of ``other``."""
        for i in range(self.values.shape[1]):
            other.add_slice(i, c * weights[i] * self.entry(k, i), out)


@kernel
def next_used(c, q, stop):
    """Return the first place from q on where ``c`` is not zero; ``stop`` or more where there is none before that."""
    while q < stop and c[q] == 0.0:
        q += 1
    return q


def dense_slices(cls: type) -> type:
    """Make a NamedTuple class with ``values`` and ``entry`` a class of dense slices."""
    return compiled(fill_in(cls, DenseMethods))


@dense_slices
class DenseSlices(NamedTuple):
    """The rows of a two-dimensional array (of its transpose, for columns)."""

    values: np.ndarray

    def entry(self, k, j):
        """Return entry ``j`` of slice ``k``."""
        return self.values[k, j]


@dense_slices
class CentredRows(NamedTuple):
    """The rows of an array with ``shift_j`` subtracted from each column j, by formula: no copy of the data."""

    values: np.ndarray
    shift: np.ndarray

    def entry(self, k, j):
        """Return entry ``j`` of row ``k`` minus the shift of its column."""
        return self.values[k, j] - self.shift[j]


@dense_slices
class CentredColumns(NamedTuple):
    """The columns of an array, as the rows of its transpose, with ``shift_k`` subtracted from column k."""

    values: np.ndarray
    shift: np.ndarray

    def entry(self, k, j):
        """Return entry ``j`` of column ``k`` minus its shift."""
        return self.values[k, j] - self.shift[k]


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


def sparse_slices(cls: type) -> type:
    """Make a NamedTuple class with ``dot_slice`` and ``add_slice`` a class of slices that passes can use."""
    return compiled(fill_in(cls, OneByOne))


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
