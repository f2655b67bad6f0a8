"""LazyOracle: proves which correlations are below a threshold while it looks at few columns.

From one residual R to the next R', with beta = <R, R'> / ||R||^2,

    |<z_j, R'>| <= |beta| |<z_j, R>| + ||z_j|| ||R' - beta R||,

so an upper bound of every correlation is one affine map B key_j + D ||z_j|| of a stored number. Only columns whose bound
exceeds the threshold are looked at, and their keys then give the value itself.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.paths.columns import Columns

_BLOCK = 128  # bounds compared at a time: counting those above the threshold vectorises
_ROUNDING = 1e-14  # relative error that bounds allow a computed correlation


class Look(NamedTuple):
    """What a look told: the largest correlation seen, and the columns seen whose correlation exceeds a level."""

    largest: float
    features: np.ndarray
    sizes: np.ndarray


class LazyOracle:
    """Bounds for all correlations with a residual that moves; starts at the residual ``R``, with every column unseen."""

    def __init__(self, columns: Columns, n_stored: int, R: np.ndarray) -> None:
        self.columns = columns
        n_features = columns.norm.shape[0]
        self.borders = threads.cut(n_features, n_stored, getattr(columns.slices, "indptr", None))
        self.n_looked = 0
        self.key = np.full(n_features, np.inf)
        self.B, self.D = 1.0, 0.0
        self.R = R.copy()

    def move(self, R: np.ndarray) -> None:
        """Go to the residual R, centred where an intercept is fitted."""
        beta, distance, size = _compare(self.columns.weight, self.R, R)
        self.B, self.D = beta * self.B, beta * self.D + distance + _ROUNDING * size
        self.R[:] = R
        if self.B < 1e-9:
            self.key *= self.B
            self.B = 1.0

    def look(self, a: np.ndarray, mu: float, threshold: float, level: float) -> Look:
        """Look at every column whose bound exceeds ``threshold``; tell those above ``level``."""
        task = functools.partial(_look, self.columns, a, mu, self.key, self.B, self.D, threshold, level)
        parts = threads.run(task, self.borders)
        self.n_looked += sum(part[3] for part in parts)
        if len(parts) == 1:
            return Look(*parts[0][:3])
        features = np.concatenate([part[1] for part in parts])
        return Look(max(part[0] for part in parts), features, np.concatenate([part[2] for part in parts]))


@kernel
def _compare(weight, old, new):
    """Return beta, ||new - beta old|| and ||new||."""
    product, squared, squared_new = 0.0, 0.0, 0.0
    for i in range(weight.shape[0]):
        product += weight[i] * old[i] * new[i]
        squared += weight[i] * old[i] * old[i]
        squared_new += weight[i] * new[i] * new[i]
    beta = abs(product) / squared if squared > 0.0 else 0.0
    signed = np.copysign(beta, product)
    distance = 0.0
    for i in range(weight.shape[0]):
        distance += weight[i] * (new[i] - signed * old[i]) ** 2
    return beta, math.sqrt(distance), math.sqrt(squared_new)


@kernel
def _look(columns, a, mu, key, B, D, threshold, level, start, stop):
    features, sizes = np.empty(64, np.int64), np.empty(64)
    largest, n_above, n_looked = 0.0, 0, 0
    for block in range(start, stop, _BLOCK):
        end = min(block + _BLOCK, stop)
        n_exceed = 0
        for j in range(block, end):
            n_exceed += B * key[j] + D * columns.norm[j] > threshold
        if n_exceed == 0:
            continue
        for j in range(block, end):
            if B * key[j] + D * columns.norm[j] > threshold:
                value = abs(columns.correlation(j, a, mu))
                key[j] = (value - D * columns.norm[j]) / B
                n_looked += 1
                largest = max(largest, value)
                if value > level:
                    if n_above == features.shape[0]:
                        features = np.append(features, np.empty(n_above, np.int64))
                        sizes = np.append(sizes, np.empty(n_above))
                    features[n_above] = j
                    sizes[n_above] = value
                    n_above += 1
    return largest, features[:n_above], sizes[:n_above], n_looked
