"""A sweep of coordinate descent over a working set.

It minimises ||R||^2/2 + alpha ||x||_1 over one coefficient after the other, at the cost of the stored entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg.vectors import DenseVector


@compiled
class WeightedVector(NamedTuple):
    """A vector that takes v_i times what is added to entry i."""

    values: np.ndarray
    weight: np.ndarray

    def add_at(self, i, delta):
        """Add weight_i delta to entry i."""
        self.values[i] += self.weight[i] * delta


@kernel
def sweep(columns, features, clusters, only_used, x, alpha, l2, accuracy, a, mu, common):
    """Minimise over one block of coefficients after the other; return the sum of weighted residuals.

    With ``only_used``, blocks without a coefficient that is not zero are left out. Correlations within a block are
    exact up to ``accuracy``. ``common`` is the weight that all samples have, or 0 where they differ.
    """
    weighted, plain = WeightedVector(a, columns.weight), DenseVector(a)
    total = np.array([mu])
    correlation, before = np.empty(features.shape[0]), np.empty(features.shape[0])
    for b in range(clusters.starts.shape[0] - 1):
        first, size = clusters.starts[b], clusters.starts[b + 1] - clusters.starts[b]
        is_used = False
        for i in range(size):
            before[i] = x[first + i]
            is_used |= before[i] != 0.0
        if only_used and not is_used:
            continue
        for i in range(size):
            correlation[i] = columns.correlation(features[first + i], a, total[0]) - l2 * before[i]
        if clusters.minimise(b, x, alpha, accuracy, correlation):
            for i in range(size):
                change = x[first + i] - before[i]
                if change != 0.0:
                    j = features[first + i]
                    if common > 0.0:
                        columns.add(j, -common * change, plain)
                    else:
                        columns.add(j, -change, weighted)
                    total[0] -= change * columns.scale[j] * columns.mean[j]
    return total[0]
