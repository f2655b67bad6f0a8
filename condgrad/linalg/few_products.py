"""Products of many dense vectors with a few others, which a BLAS rearranges for longer than it multiplies them."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads

_MOST = 16  # others up to which this is faster; one alone is a product of a matrix and a vector
_SPEED = 5.0  # multiply-adds here that take as long as one of a pass over data
_BLOCK = 512  # entries of a vector that are read at a time: those of the few stay in the cache of a core


def are_few(count: int) -> bool:
    """Tell whether the products with so many others are computed faster here than by a BLAS."""
    return 1 < count <= _MOST


def fill_products(vectors: np.ndarray, few: np.ndarray, first: int, G: np.ndarray) -> None:
    """Compute the columns of the symmetric G from ``first`` on, and its rows: <vector a, few q> is in column first + q.

    Both are rows of arrays of one precision, in which blocks of their entries are summed up.
    """
    size, length = vectors.shape
    work = size * len(few) * length / _SPEED
    threads.run(functools.partial(fill_range, vectors, few, first, G), threads.cut(size, work))


@kernel
def fill_range(vectors, few, first, G, start, stop):
    """Compute the entries for a range of vectors, but those below the diagonal: their mirror images are copied."""
    n_few, length = few.shape[0], vectors.shape[1]
    for a in range(start, stop):
        for q in range(n_few):
            if a <= first + q:
                G[a, first + q] = 0.0
    found = np.empty((2, 4))
    for begin in range(0, length, _BLOCK):
        end = min(begin + _BLOCK, length)
        for a in range(start, stop, 2):
            for q in range(0, n_few, 4):
                _multiply_block(vectors, few, a, min(a + 1, stop - 1), q, n_few - 1, begin, end, found)
                for s in range(min(2, stop - a)):
                    for t in range(min(4, n_few - q)):
                        if a + s <= first + q + t:
                            G[a + s, first + q + t] += found[s, t]
    for a in range(start, stop):
        for q in range(n_few):
            if a <= first + q:
                G[first + q, a] = G[a, first + q]


@kernel
def _multiply_block(vectors, few, a, b, q, last, begin, end, out):
    """Fill in the products of some entries of the vectors a and b with those of four others, up to the last one.

    A number that is read is used more than once, and all sums fit into the registers of any processor.
    """
    a, b = np.uint64(a), np.uint64(b)
    j, k, m, o = np.uint64(q), np.uint64(min(q + 1, last)), np.uint64(min(q + 2, last)), np.uint64(min(q + 3, last))
    zero = vectors.dtype.type(0.0)
    aj, ak, am, ao, bj, bk, bm, bo = zero, zero, zero, zero, zero, zero, zero, zero
    for i in range(np.uint64(begin), np.uint64(end)):
        u, v = vectors[a, i], vectors[b, i]
        aj += u * few[j, i]
        ak += u * few[k, i]
        am += u * few[m, i]
        ao += u * few[o, i]
        bj += v * few[j, i]
        bk += v * few[k, i]
        bm += v * few[m, i]
        bo += v * few[o, i]
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = aj, ak, am, ao
    out[1, 0], out[1, 1], out[1, 2], out[1, 3] = bj, bk, bm, bo
