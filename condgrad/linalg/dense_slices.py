"""DenseSlices: the rows or columns of a dense array, as they are or with means subtracted."""

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, fill_in, kernel
from condgrad.linalg.slices import OneByOne

_LONG = 4096  # entries of dense slices, from which on a sum of them does not stay in the first cache


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
