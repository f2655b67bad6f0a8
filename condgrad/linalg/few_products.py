"""Products of dense vectors with some of them, weighted: a BLAS would need copies, and rearranges what it multiplies.

A number that is read is used more than once, and the sums that are computed at a time fit into the registers of any
processor.
"""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads

_MOST = 16  # vectors up to which this is faster than copies and a BLAS, also one that uses all of the width of vectors
_SPEED = 5.0  # multiply-adds here that take as long as one of a pass over data
_BLOCK = 1024  # entries of a vector that are read at a time: those of all vectors stay in the cache of a core
_HEIGHT, _WIDTH = 3, 4  # how many vectors are multiplied by how many others at a time


def are_few(count: int) -> bool:
    """Tell whether the products with so many vectors are computed faster here than by a BLAS."""
    return count <= _MOST


def fill_products(vectors: np.ndarray, h: np.ndarray, first: int, G: np.ndarray) -> None:
    """Compute the columns of G = V diag(h) V' from ``first`` on, and its rows, for the rows of the array V.

    Blocks of entries are summed up in the precision of the array.
    """
    size, length = vectors.shape
    work = size * (size - first) * length / _SPEED
    threads.run(functools.partial(_fill_weighted, vectors, h, first, G), threads.cut(size, work))


@kernel
def _fill_weighted(vectors, h, first, G, start, stop):
    """Compute the entries for a range of vectors, but those below the diagonal: their mirror images are copied."""
    n_few, length = vectors.shape[0] - first, vectors.shape[1]
    weighted = np.empty((n_few, min(length, _BLOCK)), vectors.dtype)
    _clear(first, n_few, G, start, stop)
    for begin in range(0, length, _BLOCK):
        size = min(_BLOCK, length - begin)
        _weigh(vectors, h, first, begin, size, weighted)
        _add_block(vectors, begin, weighted, 0, size, first, G, start, stop)
    _mirror(first, n_few, G, start, stop)


@kernel
def _weigh(vectors, h, first, begin, size, out):
    """Fill in some entries of the vectors from ``first`` on, times those of h."""
    for q in range(out.shape[0]):
        for i in range(np.uint64(size)):
            k = np.uint64(begin) + i
            out[q, i] = vectors[first + q, k] * vectors.dtype.type(h[k])


@kernel
def fill_range(vectors, few, first, G, start, stop):
    """Do the same with a few vectors of their own: <vector a, few q> is in column first + q of G."""
    n_few, length = few.shape[0], vectors.shape[1]
    _clear(first, n_few, G, start, stop)
    for begin in range(0, length, _BLOCK):
        _add_block(vectors, begin, few, begin, min(_BLOCK, length - begin), first, G, start, stop)
    _mirror(first, n_few, G, start, stop)


@kernel
def _clear(first, n_few, G, start, stop):
    for a in range(start, stop):
        for q in range(n_few):
            if a <= first + q:
                G[a, first + q] = 0.0


@kernel
def _mirror(first, n_few, G, start, stop):
    for a in range(start, stop):
        for q in range(n_few):
            if a <= first + q:
                G[first + q, a] = G[a, first + q]


@kernel
def _add_block(vectors, begin, few, begin_of_few, size, first, G, start, stop):
    """Add what a block of entries adds to G."""
    found, n_few = np.empty((_HEIGHT, _WIDTH)), few.shape[0]
    for q in range(0, n_few, _WIDTH):
        for a in range(start, min(stop, first + q + _WIDTH), _HEIGHT):
            _multiply_block(vectors, begin, a, stop - 1, few, begin_of_few, q, size, found)
            for s in range(min(_HEIGHT, stop - a)):
                for t in range(min(_WIDTH, n_few - q)):
                    if a + s <= first + q + t:
                        G[a + s, first + q + t] += found[s, t]


@kernel
def _multiply_block(vectors, begin, a, last, few, begin_of_few, q, size, out):
    """Fill in the products of some entries of three vectors, up to the last one, with those of four others."""
    a, b, c = np.uint64(a), np.uint64(min(a + 1, last)), np.uint64(min(a + 2, last))
    last_few = few.shape[0] - 1
    j, k = np.uint64(q), np.uint64(min(q + 1, last_few))
    m, o = np.uint64(min(q + 2, last_few)), np.uint64(min(q + 3, last_few))
    zero, ahead, ahead_of_few = vectors.dtype.type(0.0), np.uint64(begin), np.uint64(begin_of_few)
    aj, ak, am, ao = zero, zero, zero, zero
    bj, bk, bm, bo = zero, zero, zero, zero
    cj, ck, cm, co = zero, zero, zero, zero
    for i in range(np.uint64(size)):
        u, v, w = vectors[a, ahead + i], vectors[b, ahead + i], vectors[c, ahead + i]
        to_j, to_k = few[j, ahead_of_few + i], few[k, ahead_of_few + i]
        to_m, to_o = few[m, ahead_of_few + i], few[o, ahead_of_few + i]
        aj += u * to_j
        ak += u * to_k
        am += u * to_m
        ao += u * to_o
        bj += v * to_j
        bk += v * to_k
        bm += v * to_m
        bo += v * to_o
        cj += w * to_j
        ck += w * to_k
        cm += w * to_m
        co += w * to_o
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = aj, ak, am, ao
    out[1, 0], out[1, 1], out[1, 2], out[1, 3] = bj, bk, bm, bo
    out[2, 0], out[2, 1], out[2, 2], out[2, 3] = cj, ck, cm, co
