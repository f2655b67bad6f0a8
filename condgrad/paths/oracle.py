"""LazyOracle: proves which correlations are below a threshold while it computes few of them.

From one residual R to the next R', with beta = <R, R'> / ||R||^2 and E = R' - beta R,

    |<z_j, R'>| <= |beta| |<z_j, R>| + ||x_j|| ||E||_L,

where ||E||_L^2 is the sum of the L largest v_i E_i^2 if x_j stores L entries: a word that stands in ten texts of many
thousands meets a small part of what has changed. (R and E are centred where the features are, so that the mean of x_j
drops out; for columns with entries in most samples ||z_j|| ||E|| is smaller.) L is rounded up to a power of two. So an
upper bound of every correlation is one affine map B key_j + D_c reach_j of a stored number, with D_c for the lengths of
class c. Only correlations whose bound exceeds the threshold are computed, and the keys then give their values.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import bits_of, float_of, kernel
from condgrad.linalg import threads
from condgrad.linalg.rounding import gamma
from condgrad.paths.columns import Columns, offsets_of

_BLOCK = 128  # number of bounds compared at a time: counting those above the threshold vectorises
_WORTH_THREADS = 600_000  # least multiply-adds of a scan that is shared by several threads
_BUCKET = 49  # bits of a float that are left out where changes are counted in buckets: these are 12% wide
_SUMS = 8  # operations of a correlation beside its products


class Scan(NamedTuple):
    """What a scan found: the largest correlation computed, and the columns whose correlation exceeds a level."""

    largest: float
    features: np.ndarray
    sizes: np.ndarray


class LazyOracle:
    """Bounds for all correlations with a residual that moves; it starts at ``R``, when no correlation is known."""

    def __init__(self, columns: Columns, n_stored: int, R: np.ndarray) -> None:
        self.columns = columns
        n_features = columns.norm.shape[0]
        self.rounding = 2.0 * gamma(R.size + _SUMS)  # relative error that bounds allow a computed correlation
        self.apart = threads.cut(n_features, n_stored, offsets_of(columns))
        self.alone = np.array([0, n_features])
        self.work = n_stored / n_features  # of a column, on average
        self.n_scanned, self.last_scanned = 0, n_features
        self.key = np.full(n_features, np.inf)
        self.length_class, self.most = _length_classes(columns)
        is_long = self.length_class == self.most.size - 1
        self.reach = np.where(is_long, columns.norm, np.hypot(columns.norm, columns.scale * columns.mean))
        # The columns of a scan and their correlations: fresh memory for each would cost more than many a scan itself.
        self.found, self.sizes = np.empty(n_features, np.uint64), np.empty(n_features)
        self.B, self.D = 1.0, np.zeros(self.most.size)
        self.R = R.copy()

    def move(self, R: np.ndarray) -> None:
        """Go to the residual R, centred where an intercept is fitted."""
        changes = np.empty(R.size)
        beta, size = _compare(self.columns.weight, self.R, R, changes)
        distances = np.sqrt(_largest_sums(changes, self.most))
        self.B, self.D = beta * self.B, beta * self.D + distances + self.rounding * size
        self.R[:] = R
        if self.B < 1e-9:
            self.key *= self.B
            self.B = 1.0

    def bounds(self) -> np.ndarray:
        """Return an upper bound for the size of every correlation with the residual."""
        return self.B * self.key + self.D[self.length_class] * self.reach

    def largest_near(self, bounds: np.ndarray, off: np.ndarray) -> float:
        """Return a bound of all correlations with a residual that is ``off`` one whose correlations have ``bounds``."""
        changes = self.columns.weight * off * off
        distances = np.sqrt(_largest_sums(changes, self.most))
        return float((bounds + distances[self.length_class] * self.reach).max(initial=0.0))

    def scan(self, a: np.ndarray, mu: float, threshold: float, level: float) -> Scan:
        """Compute every correlation whose bound exceeds ``threshold``; return those above ``level``."""
        task = functools.partial(
            _scan,
            self.columns,
            a,
            mu,
            self.key,
            self.B,
            self.D,
            self.length_class,
            self.reach,
            threshold,
            level,
            self.found,
            self.sizes,
        )
        expected = self.last_scanned * self.work + 0.1 * self.key.size  # as many as last time
        parts = threads.run(task, self.apart if expected > _WORTH_THREADS else self.alone)
        self.last_scanned = sum(part[3] for part in parts)
        self.n_scanned += self.last_scanned
        if len(parts) == 1:
            return Scan(*parts[0][:3])
        features = np.concatenate([part[1] for part in parts])
        return Scan(max(part[0] for part in parts), features, np.concatenate([part[2] for part in parts]))


def _length_classes(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return the class of every column, and how many entries those of a class have at most; the last one has all."""
    n_samples, n_features = columns.weight.size, columns.norm.size
    offsets = offsets_of(columns)
    if offsets is None:
        return np.zeros(n_features, np.uint8), np.array([n_samples])
    most = 2 ** np.arange(math.ceil(math.log2(n_samples)) + 1)
    most[-1] = n_samples
    return np.searchsorted(most, np.diff(offsets)).astype(np.uint8), most


@kernel
def _compare(weight, old, new, changes):
    """Return beta and ||new||; fill in v_i (new_i - beta old_i)^2."""
    product, squared, squared_new = 0.0, 0.0, 0.0
    for i in range(weight.shape[0]):
        product += weight[i] * old[i] * new[i]
        squared += weight[i] * old[i] * old[i]
        squared_new += weight[i] * new[i] * new[i]
    beta = abs(product) / squared if squared > 0.0 else 0.0
    signed = np.copysign(beta, product)
    for i in range(weight.shape[0]):
        changes[i] = weight[i] * (new[i] - signed * old[i]) ** 2
    return beta, math.sqrt(squared_new)


@kernel
def _largest_sums(changes, most):
    """Return upper bounds of the sums of the ``most[c]`` largest of the changes, for each class c; the last has all.

    The changes are counted in buckets of nearly equal ones, by the first bits of the float: no order within a bucket is
    needed for a bound that is a few percent too large, and sorting would take most of the time of a scan.
    """
    sums = np.zeros(most.shape[0])
    total = 0.0
    for i in range(changes.shape[0]):
        total += changes[i]
    sums[-1] = total
    if most.shape[0] == 1:
        return sums
    n_buckets = np.int64(1) << (63 - _BUCKET)
    counts, inside = np.zeros(n_buckets, np.int64), np.zeros(n_buckets)
    for i in range(changes.shape[0]):
        bucket = bits_of(changes[i]) >> _BUCKET
        counts[bucket] += 1
        inside[bucket] += changes[i]
    above, size, c = 0.0, 0, 0  # sum and number of the changes in larger buckets
    for k in range(n_buckets):
        bucket = n_buckets - 1 - k
        if counts[bucket] > 0:
            edge = float_of((bucket + 1) << _BUCKET)
            while c < most.shape[0] - 1 and most[c] <= size + counts[bucket]:
                sums[c] = above + min(inside[bucket], (most[c] - size) * edge)
                c += 1
            above = above + inside[bucket]
            size = size + counts[bucket]
    return sums


@kernel
def _scan(columns, a, mu, key, B, D, length_class, reach, threshold, level, found, sizes, start, stop):
    n_found = _above(reach, length_class, key, B, D, threshold, found, start, stop)
    for k in range(start, start + n_found):
        sizes[k] = abs(columns.correlation(found[k], a, mu))
    largest, n_above = 0.0, 0
    for k in range(start, start + n_found):
        j = found[k]
        largest = max(largest, sizes[k])
        key[j] = (sizes[k] - D[length_class[j]] * reach[j]) / B
        if sizes[k] > level:  # what has been read may be overwritten
            found[start + n_above] = j
            sizes[start + n_above] = sizes[k]
            n_above += 1
    above = slice(start, start + n_above)
    return largest, found[above].astype(np.int64), sizes[above].copy(), n_found


@kernel
def _above(reach, length_class, key, B, D, threshold, found, start, stop):
    """List the columns whose bound exceeds the threshold; return how many they are."""
    n_found = np.uint64(start)
    block, last = np.uint64(start), np.uint64(stop)
    while block < last:
        end = min(block + np.uint64(_BLOCK), last)
        n_exceed = 0
        for j in range(block, end):
            n_exceed += B * key[j] + D[length_class[j]] * reach[j] > threshold
        if n_exceed > 0:
            for j in range(block, end):  # without a branch, which would be mispredicted at every second hit
                found[min(n_found, last - np.uint64(1))] = j
                n_found = n_found + np.uint64(B * key[j] + D[length_class[j]] * reach[j] > threshold)
        block = end
    return np.int64(n_found) - start
