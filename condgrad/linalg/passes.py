"""Passes over slices: loops over rows or columns, cut into ranges that run on all cores."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import DenseVector

_BLOCK = 256  # slices that are put in the order of their lengths together
_SHORT = 20  # mean number of entries of a slice from which on it does not matter where it ends
_ALIKE = 0.3  # share of slices that differ in length from the one before, below which ends are foreseen
_LONGEST = 64  # slices with so many entries or more have no order


def offsets(slices: Slices) -> np.ndarray | None:
    """Return where the entries of each slice begin; None if all slices have the same number of entries."""
    return getattr(slices, "indptr", None)


def dot_all(slices: Slices, n: int, n_stored: int, v: np.ndarray) -> np.ndarray:
    """Return the products of n slices, which store ``n_stored`` entries, with v."""
    out = np.empty(n)

    def dot_own(start: int, stop: int) -> None:
        dot_slices(slices, start, v, out[start:stop])

    threads.run(dot_own, threads.cut(n, n_stored, offsets(slices)))
    return out


def add_all(slices: Slices, shape: tuple[int, int], n_stored: int, c: np.ndarray) -> np.ndarray:
    """Return the sum of c_k times slice k over all slices; ``shape`` is the length of a slice and their number."""
    n, length = shape[1], shape[0]
    # Each thread adds into its own vector: this pays if the slices hold more entries than those vectors.
    borders = threads.cut(n, n_stored if n_stored > 4 * length else 0, offsets(slices))

    def add_own(start: int, stop: int) -> np.ndarray:
        out = np.zeros(length)
        add_slices(slices, start, c[start:stop], DenseVector(out))
        return out

    return functools.reduce(np.add, threads.run(add_own, borders))


@kernel
def dot_slices(slices, first, v, out):
    """Set ``out`` to the products of ``v`` with the slices ``first``, ``first`` + 1, ...."""
    slices.dot_slices(first, v, out)


@kernel
def dot_entries(slices, first, features, v, out):
    """Do what :func:`dot_slices` does for a vector that is zero but for the entries ``v`` at some ``features``."""
    for k in range(out.shape[0]):
        total = 0.0
        for q in range(np.uint64(features.shape[0])):
            total += slices.entry(first + k, features[q]) * v[q]
        out[k] = total


@kernel
def add_slices(slices, first, c, out):
    """Add the slices from ``first`` on, each times its entry of ``c``, to the vector ``out``."""
    slices.add_slices(first, c, out)


# A processor does not foresee where a short slice ends, unless the slices before it are as long. So slices of different
# lengths are used in the order of their lengths, within blocks whose entries stay in the cache.


def order_of_lengths(indptr: np.ndarray) -> np.ndarray | None:
    """Return the order in which passes should use sparse slices; None: as they lie, for they are long or alike."""
    n, lengths = indptr.size - 1, np.diff(indptr.view(f"i{indptr.itemsize}"))
    if n < _BLOCK or indptr[-1] >= _SHORT * n or np.count_nonzero(lengths[1:] != lengths[:-1]) < _ALIKE * n:
        return None
    order: np.ndarray = _order(lengths)
    return order


@kernel
def _order(lengths):
    order, counts = np.empty(lengths.shape[0], np.uint32), np.empty(_LONGEST + 2, np.int64)
    for top in range(0, lengths.shape[0], _BLOCK):
        end = min(top + _BLOCK, lengths.shape[0])
        counts[:] = 0
        for k in range(top, end):
            counts[min(lengths[k], _LONGEST) + 1] += 1
        for q in range(_LONGEST):
            counts[q + 1] += counts[q]
        for k in range(top, end):
            q = min(lengths[k], _LONGEST)
            order[top + counts[q]] = k
            counts[q] += 1
    return order


@kernel
def dot_in_order(slices, order, first, v, out):
    """Do what :func:`dot_slices` does, in an order of :func:`order_of_lengths`."""
    start, low, high = _whole_blocks(first, out.shape[0], order.shape[0])
    for q in range(start, start + np.uint64(out.shape[0])):
        k = np.uint64(order[q]) if low <= q < high else q  # one loop, so that a product is the same in every range
        out[k - start] = slices.dot_slice(k, v)


@kernel
def add_in_order(slices, order, first, c, out):
    """Do what :func:`add_slices` does, in an order of :func:`order_of_lengths`."""
    start, low, high = _whole_blocks(first, c.shape[0], order.shape[0])
    for q in range(start, start + np.uint64(c.shape[0])):
        k = np.uint64(order[q]) if low <= q < high else q
        if c[k - start] != 0.0:
            slices.add_slice(k, c[k - start], out)


@kernel
def _whole_blocks(first, size, n):
    """Return where a range of slices begins, and where the blocks begin and end that lie within it: unsigned."""
    stop = first + size
    low = -(-first // _BLOCK) * _BLOCK
    return np.uint64(first), np.uint64(low), np.uint64(stop if stop == n else stop // _BLOCK * _BLOCK)


@kernel
def square_range(slices, weight, out, start, stop):
    """Set entries of ``out`` to the sums of squares of slices, weighted."""
    for k in range(start, stop):
        out[k] = slices.sum_squares(k, weight)


@kernel
def add_square_range(slices, weight, out, start, stop):
    """Add the squares of the entries of slices, each slice times its weight, to ``out``."""
    for k in range(start, stop):
        slices.add_squares(k, weight[k], out)


@kernel
def dot_chosen(slices, chosen, v):
    """Return the products of the chosen slices with v."""
    out = np.empty(chosen.shape[0])
    for q in range(chosen.shape[0]):
        out[q] = slices.dot_slice(chosen[q], v)
    return out


@kernel
def add_chosen(slices, chosen, c, out):
    """Add the chosen slices, each times its entry of ``c``, to ``out``."""
    for q in range(chosen.shape[0]):
        slices.add_slice(chosen[q], c[q], out)


@kernel
def count_chosen(slices, chosen):
    """Return how many entries the chosen slices store."""
    total = 0
    for q in range(chosen.shape[0]):
        total += int(slices.n_stored(chosen[q]))
    return total
