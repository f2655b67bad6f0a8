"""Selection of the smallest entries inside kernels."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel


@kernel
def smallest(keys, k):
    """Return the places of the ``k`` smallest entries of ``keys`` in increasing order, the first ones among equals.

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


def largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the ``count`` largest scores, the best first."""
    if count < scores.size:
        chosen = np.argpartition(-scores, count)[:count]
    else:
        chosen = np.arange(scores.size)
    return chosen[np.argsort(-scores[chosen], kind="stable")]
