"""Selection of the smallest and the largest entries, and sorting: inside kernels, and of arrays."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import bits_of, kernel

_FEW = 300  # scores up to which sorting all of them takes no longer
_SAMPLED, _SAMPLE = 10_000, 1000  # scores from which on a sample pays; and its size, about
_SURELY, _SURELY_MORE = 2, 16  # rank of the limit in the sample: so many times that of the last score wanted, and more
_MAGNITUDE = 0x7FFFFFFFFFFFFFFF  # all bits of an integer but its sign


@kernel
def smallest(keys, k):
    """Return the places of the ``k`` smallest entries of ``keys`` in increasing order; ties go to the first ones.

    A heap of ``k`` values finds the largest key to take: O(d log k).
    """
    d = keys.shape[0]
    k = min(k, d)
    heap = np.empty(k)  # the parent of place i is (i - 1) // 2, and not smaller
    for j in range(d):
        if j < k:  # let the new value rise
            i = j
            while i > 0 and heap[(i - 1) // 2] < keys[j]:
                heap[i] = heap[(i - 1) // 2]
                i = (i - 1) // 2
            heap[i] = keys[j]
        elif keys[j] < heap[0]:  # replace the largest and let the new value sink
            i = 0
            while 2 * i + 1 < k:
                child = 2 * i + 1
                if child + 1 < k and heap[child + 1] > heap[child]:
                    child += 1
                if heap[child] <= keys[j]:
                    break
                heap[i] = heap[child]
                i = child
            heap[i] = keys[j]
    n_equal = k
    for j in range(d):
        if keys[j] < heap[0]:
            n_equal -= 1
    places = np.zeros(k, np.int64)  # not empty: where keys are nan, some places are not found
    q = 0
    for j in range(d):
        if q < k and (keys[j] < heap[0] or (keys[j] == heap[0] and n_equal > 0)):
            if keys[j] == heap[0]:
                n_equal -= 1
            places[q] = j
            q += 1
    return places


@kernel
def sorted_places(keys):
    """Return the places of ``keys`` in increasing order, equal ones in the order of their places.

    A radix sort of the bits of floats, byte by byte, in O(d): about twice as fast on many entries as numba's own.
    """
    d = keys.shape[0]
    codes, other_codes = np.empty(d, np.int64), np.empty(d, np.int64)
    places, other_places = np.arange(d), np.empty(d, np.int64)
    for j in range(d):
        bits = bits_of(keys[j] + 0.0)  # -0.0 becomes 0.0
        codes[j] = bits if bits >= 0 else bits ^ _MAGNITUDE  # integers in the order of the floats
    for shift in range(0, 64, 8):
        sign = 128 if shift == 56 else 0  # negative numbers come first
        starts = np.zeros(257, np.int64)
        for j in range(d):
            starts[(((codes[j] >> shift) & 255) ^ sign) + 1] += 1
        if d == 0 or starts[(((codes[0] >> shift) & 255) ^ sign) + 1] == d:  # all alike
            continue
        for digit in range(256):
            starts[digit + 1] += starts[digit]
        for j in range(d):
            digit = ((codes[j] >> shift) & 255) ^ sign
            other_codes[starts[digit]] = codes[j]
            other_places[starts[digit]] = places[j]
            starts[digit] += 1
        codes, other_codes = other_codes, codes
        places, other_places = other_places, places
    return places


@kernel
def push(heap, keys, size, j):
    """Put ``j`` into a heap of ``size`` places, whose first one has the smallest key."""
    k = size
    while k > 0 and keys[heap[(k - 1) // 2]] > keys[j]:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = j


@kernel
def pop(heap, keys, size):
    """Take the first place out of a heap of ``size`` places, and put it behind those that remain."""
    first, j = heap[0], heap[size - 1]
    k = 0
    while 2 * k + 1 < size - 1:
        child = 2 * k + 1
        if child + 1 < size - 1 and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[j]:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = j
    heap[size - 1] = first


def largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the ``count`` largest scores, the best first."""
    keys = -scores
    if count >= scores.size or scores.size <= _FEW or count == 0:  # kernels have no heap of no places
        return keys.argsort(kind="stable")[:count]
    chosen = _smallest_by_sample(keys, count)
    return chosen[keys[chosen].argsort(kind="stable")]


def _smallest_by_sample(keys: np.ndarray, count: int) -> np.ndarray:
    """Return what :func:`smallest` does, for many keys among those below a limit that a sample of them suggests."""
    sample = keys[:: keys.size // _SAMPLE + 1]
    rank = _SURELY * count * sample.size // keys.size + _SURELY_MORE
    if keys.size > _SAMPLED and rank < sample.size:
        places = (keys <= np.partition(sample, rank)[rank]).nonzero()[0]
        if places.size >= count:
            found: np.ndarray = places[smallest(keys[places], count)]
            return found
    return smallest(keys, count)
