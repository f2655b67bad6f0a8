"""Isotonic regression: the nearest monotone vector."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel


@kernel
def nearest_increasing(v):
    """Return the vector x_1 <= x_2 <= ... nearest to ``v``: neighbours that break the order are pooled, in O(d).

    >>> nearest_increasing(np.array([1.0, 3.0, 2.0, 4.0]))
    array([1. , 2.5, 2.5, 4. ])
    """
    d = v.shape[0]
    means = np.empty(d)
    sizes = np.empty(d, np.int64)
    n_pools = 0
    for j in range(d):
        mean, size = v[j], 1
        while n_pools > 0 and means[n_pools - 1] >= mean:
            n_pools -= 1
            mean = (sizes[n_pools] * means[n_pools] + size * mean) / (sizes[n_pools] + size)
            size += sizes[n_pools]
        means[n_pools] = mean
        sizes[n_pools] = size
        n_pools += 1
    x = np.empty(d)
    j = 0
    for q in range(n_pools):
        for _ in range(sizes[q]):
            x[j] = means[q]
            j += 1
    return x
