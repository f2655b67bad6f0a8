"""Passes over slices: loops over rows or columns, cut into ranges that run on all cores."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import DenseVector


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
def add_slices(slices, first, c, out):
    """Add the slices from ``first`` on, each times its entry of ``c``, to the vector ``out``."""
    slices.add_slices(first, c, out)


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
