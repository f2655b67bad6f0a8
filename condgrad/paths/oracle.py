"""LazyOracle: proves which correlations are below a threshold while it computes few of them.

From one residual R to the next R', with beta = <R, R'> / ||R||^2 and E = R' - beta R,

    |<z_j, R'>| <= |beta| |<z_j, R>| + ||x_j|| ||E||_L,

where ||E||_L^2 is the sum of the L largest v_i E_i^2 if x_j stores L entries: a word that stands in ten texts of many
thousands meets a small part of what has changed. (R and E are centred where the features are, so that the mean of x_j
drops out; for columns with entries in most samples ||z_j|| ||E|| is smaller.) L is rounded up to a power of two. So an
upper bound of every correlation is one affine map B key_j + D_c reach_j of a stored number, with D_c for the lengths of
class c. Only correlations whose bound exceeds the threshold are computed, and the keys then give their values.

Where coefficients are at least 0, a correlation counts with its sign instead of its size, and the same map bounds it:
where <R, R'> is negative, beta is taken as 0.
"""

from __future__ import annotations

import abc
import functools
import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import bits_of, compiled, float_of, kernel
from condgrad.linalg import threads
from condgrad.linalg.rounding import UNIT, gamma
from condgrad.paths.columns import Columns, Features

_BLOCK = 128  # number of bounds compared at a time: counting those above the threshold vectorises
_WORTH_THREADS = 600_000  # least multiply-adds of a scan that is shared by several threads
_BUCKET = 49  # bits of a float that are left out where changes are counted in buckets: these are 12% wide
_BUCKETS = 256  # number of buckets: changes of 32 orders of two
_LANES = 4  # number of counts of every bucket
_SUMS = 8  # operations of a correlation beside its products


class Scan(NamedTuple):
    """What a scan found: the largest correlation computed, and the columns whose correlation exceeds a level."""

    largest: float
    features: np.ndarray
    sizes: np.ndarray


_NONE, _NO_SIZES = np.empty(0, np.int64), np.empty(0)
_B, _LARGEST, _FOUND, _SCANNED, _SCANS = range(5)  # places in LazyBounds.numbers


@compiled
class LazyBounds(NamedTuple):
    """The bounds of all correlations with a residual R that moves.

    A feature whose correlation is known elsewhere can be left out: its key is -inf then.
    """

    key: np.ndarray
    D: np.ndarray
    length_class: np.ndarray
    most: np.ndarray  # how many entries the columns of a class store at most
    reach: np.ndarray
    R: np.ndarray
    rounding: float  # relative error that bounds allow a computed correlation
    found: np.ndarray  # the columns that the last scan has found
    sizes: np.ndarray  # and their correlations
    numbers: np.ndarray  # numbers that change while the bounds stay

    def largest(self):
        """Return the largest correlation that the last scan computed."""
        return self.numbers[_LARGEST]

    def n_found(self):
        """Return how many columns the last scan has found."""
        return np.int64(self.numbers[_FOUND])

    def n_scanned(self):
        """Return how many correlations were computed in all."""
        return np.int64(self.numbers[_SCANNED])

    def n_scans(self):
        """Return the number of scans."""
        return np.int64(self.numbers[_SCANS])

    def upper(self):
        """Return an upper bound for the size of every correlation with the residual, as the columns count it."""
        return self.numbers[_B] * self.key + self.D[self.length_class] * self.reach

    def move(self, weight, R):
        """Go to the residual R, centred where an intercept is fitted."""
        changes = np.empty(R.shape[0])
        beta, size = _compare(weight, self.R, R, changes)
        sums = _largest_sums(changes, self.most)
        for c in range(self.D.shape[0]):
            self.D[c] = beta * self.D[c] + math.sqrt(sums[c]) + self.rounding * size
        for i in range(R.shape[0]):
            self.R[i] = R[i]
        self.numbers[_B] *= beta
        if self.numbers[_B] < 1e-9:
            for j in range(self.key.shape[0]):
                if abs(self.key[j]) < np.inf:
                    self.key[j] *= self.numbers[_B]
            self.numbers[_B] = 1.0

    def scan(self, columns, a, mu, threshold, level):
        """Compute every correlation whose bound exceeds ``threshold``; list those above ``level``."""
        largest, n_found, n_scanned = scan_range(columns, a, mu, self, threshold, level, 0, self.key.shape[0])
        self.record(largest, n_found, n_scanned)

    def count(self, n_columns):
        """Count correlations that were computed elsewhere."""
        self.numbers[_SCANNED] += n_columns

    def record(self, largest, n_found, n_scanned):
        """Note what a scan has found."""
        self.numbers[_LARGEST], self.numbers[_FOUND] = largest, n_found
        self.numbers[_SCANNED] += n_scanned
        self.numbers[_SCANS] += 1.0

    def set_known(self, features, sizes):
        """Take up features that were left out, whose correlations are known."""
        self.key[features] = (sizes - self.D[self.length_class[features]] * self.reach[features]) / self.numbers[_B]

    def lower(self, upper):
        """Take up other upper bounds of the correlations of all features, where these are smaller."""
        away = self.D[self.length_class] * self.reach
        rounding = 4.0 * UNIT * (np.abs(upper) + away)  # of the key, and of the bound that is made of it again
        np.fmin(self.key, (upper + rounding - away) / self.numbers[_B], out=self.key)  # a bound that is nan is none

    def list_above(self, threshold):
        """Return the features whose bound exceeds ``threshold``."""
        parts = self.reach, self.length_class, self.key, self.numbers[_B], self.D, threshold, self.found
        return self.found[: above(*parts, 0, self.key.shape[0])].astype(np.int64)


def lazy_bounds(columns: Features, R: np.ndarray) -> LazyBounds:
    """Return bounds that start at the residual R, when no correlation is known."""
    n_features = columns.norm.shape[0]
    length_class, most = _length_classes(columns)
    reach = columns.norm
    if most.size > 1:
        is_long = length_class == most.size - 1
        reach = np.where(is_long, columns.norm, np.hypot(columns.norm, columns.scale * columns.mean))
    numbers = np.zeros(5)
    numbers[_B] = 1.0
    # The columns of a scan and their correlations: fresh memory for each would cost more than many a scan itself.
    found, sizes = np.empty(n_features, np.uint64), np.empty(n_features)
    key, rounding = np.full(n_features, np.inf), 2.0 * gamma(R.size + _SUMS)
    return LazyBounds(key, np.zeros(most.size), length_class, most, reach, R.copy(), rounding, found, sizes, numbers)


class Oracle(abc.ABC):
    """The bounds, and scans of the columns that they do not rule out; they start at ``R``, with nothing known."""

    def __init__(self, columns: Features, R: np.ndarray) -> None:
        self.weight, self.bounds = columns.weight, lazy_bounds(columns, R)

    @property
    def n_scanned(self) -> int:
        """The number of correlations that were computed in all."""
        return int(self.bounds.n_scanned())

    def count(self, n_columns: int) -> None:
        """Count correlations that were computed elsewhere."""
        self.bounds.count(n_columns)

    def move(self, R: np.ndarray) -> None:
        """Go to the residual R, centred where an intercept is fitted."""
        move(self.bounds, self.weight, R)

    def move_and_scan(self, R: np.ndarray, a: np.ndarray, mu: float, threshold: float, level: float) -> Scan:
        """Go to the residual R, and scan there."""
        self.move(R)
        return self.scan(a, mu, threshold, level)

    @property
    def works_alone(self) -> bool:
        """Whether the next scan is one call of a kernel."""
        return False

    @abc.abstractmethod
    def begin(self, a: np.ndarray, mu: float) -> float:
        """Learn every correlation at the start; return the largest."""

    @abc.abstractmethod
    def scan(self, a: np.ndarray, mu: float, threshold: float, level: float) -> Scan:
        """Compute every correlation whose bound exceeds ``threshold``; return those above ``level``."""


class LazyOracle(Oracle):
    """The oracle of columns in memory, which scans them on all cores."""

    def __init__(self, columns: Columns, n_stored: int, R: np.ndarray) -> None:
        super().__init__(columns, R)
        self.columns = columns
        n_features = columns.norm.shape[0]
        self.apart = threads.cut(n_features, n_stored, columns.offsets())
        self.alone = np.array([0, n_features])
        self.work = n_stored / n_features  # of a column, on average
        self.last_scanned = n_features

    def begin(self, a: np.ndarray, mu: float) -> float:
        """Compute every correlation at the start; return the largest."""
        if not self.works_alone:
            return self.scan(a, mu, -1.0, np.inf).largest
        return self.move_and_scan(
            self.bounds.R, a, mu, -1.0, np.inf
        ).largest  # it stands there: one kernel for small data

    def scan(self, a: np.ndarray, mu: float, threshold: float, level: float) -> Scan:
        """Compute every correlation whose bound exceeds ``threshold``; return those above ``level``."""
        self.last_scanned = -self.n_scanned
        scan(self.bounds, self.columns, a, mu, threshold, level, self.alone if self.works_alone else self.apart)
        return self._found()

    def move_and_scan(self, R: np.ndarray, a: np.ndarray, mu: float, threshold: float, level: float) -> Scan:
        """Go to the residual R, and scan there: in one call where one thread is enough."""
        if not self.works_alone:
            return super().move_and_scan(R, a, mu, threshold, level)
        self.last_scanned = -self.n_scanned
        move_and_scan(self.bounds, self.weight, R, self.columns, a, mu, threshold, level)
        return self._found()

    @property
    def works_alone(self) -> bool:
        """Whether there is one thread, or a scan of as many columns as last time is not worth several."""
        return len(self.apart) == 2 or self.last_scanned * self.work + 0.1 * self.bounds.key.size <= _WORTH_THREADS

    def _found(self) -> Scan:
        """Return what the scan has found."""
        bounds = self.bounds
        self.last_scanned += self.n_scanned
        return found_by(bounds)


def found_by(bounds: LazyBounds) -> Scan:
    """Return what the last scan has found."""
    n_found, largest = int(bounds.n_found()), float(bounds.largest())
    if n_found == 0:
        return Scan(largest, _NONE, _NO_SIZES)
    return Scan(largest, bounds.found[:n_found].astype(np.int64), bounds.sizes[:n_found].copy())


def scan(
    bounds: LazyBounds, columns: Columns, a: np.ndarray, mu: float, threshold: float, level: float, borders: np.ndarray
) -> None:
    """Compute every correlation whose bound exceeds ``threshold``, on all cores; list those above ``level``."""
    parts = threads.run(functools.partial(scan_range, columns, a, mu, bounds, threshold, level), borders)
    count = 0
    for start, (_, n_above, _) in zip(borders.tolist(), parts, strict=False):  # what each range has found, side by side
        bounds.found[count : count + n_above] = bounds.found[start : start + n_above]
        bounds.sizes[count : count + n_above] = bounds.sizes[start : start + n_above]
        count += n_above
    bounds.record(max(part[0] for part in parts), count, sum(part[2] for part in parts))


def _length_classes(columns: Features) -> tuple[np.ndarray, np.ndarray]:
    """Return the class of every column, and how many entries those of a class have at most; the last one has all."""
    n_samples, n_features = columns.weight.size, columns.norm.size
    offsets = columns.offsets()
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
    beta = max(product, 0.0) / squared if squared > 0.0 else 0.0
    for i in range(weight.shape[0]):
        changes[i] = weight[i] * (new[i] - beta * old[i]) ** 2
    return beta, math.sqrt(squared_new)


@kernel
def _largest_sums(changes, most):
    """Return upper bounds of the sums of the ``most[c]`` largest of the changes, for each class c; the last has all.

    The changes are counted in buckets of nearly equal ones, by the first bits of the float: no order within a bucket is
    needed for a bound that is a few percent too large, and sorting would take most of the time of a scan.
    """
    sums = np.zeros(most.shape[0])
    total, largest = 0.0, np.int64(0)
    for i in range(changes.shape[0]):
        total += changes[i]
    for i in range(changes.shape[0]):
        largest = max(largest, bits_of(changes[i]))  # no change is negative: their bits are in the same order
    sums[-1] = total
    if most.shape[0] == 1 or not total < np.inf:
        sums[:] = total
        return sums
    # The last bucket is that of the largest change, the first has all that is much smaller. Neighbours count in
    # different lanes: where many changes are equal, each addition would have to wait for the last one.
    first = max((largest >> _BUCKET) - (_BUCKETS - 1), 0)
    counts, inside = np.zeros(_LANES * _BUCKETS, np.int64), np.zeros(_LANES * _BUCKETS)
    for i in range(np.uint64(changes.shape[0])):
        bucket = max((bits_of(changes[i]) >> _BUCKET) - first, 0)
        at = np.uint64(bucket) + (i % np.uint64(_LANES)) * np.uint64(_BUCKETS)
        counts[at] += 1
        inside[at] += changes[i]
    above, size, c = 0.0, 0, 0  # sum and number of the changes in larger buckets
    for k in range(_BUCKETS):
        bucket = _BUCKETS - 1 - k
        count, part = 0, 0.0
        for lane in range(_LANES):
            count += counts[bucket + lane * _BUCKETS]
            part += inside[bucket + lane * _BUCKETS]
        if count > 0:
            edge = float_of((first + bucket + 1) << _BUCKET)
            while c < most.shape[0] - 1 and most[c] <= size + count:
                sums[c] = above + min(part, (most[c] - size) * edge)
                c += 1
            above = above + part
            size = size + count
    return sums


@kernel
def move(bounds, weight, R):
    """Let bounds go to the residual R, from Python."""
    bounds.move(weight, R)


@kernel
def move_and_scan(bounds, weight, R, columns, a, mu, threshold, level):
    """Let bounds go to the residual R, and scan there, from Python."""
    bounds.move(weight, R)
    bounds.scan(columns, a, mu, threshold, level)


@kernel
def scan_range(columns, a, mu, bounds, threshold, level, start, stop):
    """Compute the correlations of a range of columns whose bounds exceed ``threshold``.

    Return the largest of them, how many exceed ``level`` (listed from ``bounds.found[start]`` on), and their number.
    """
    B, D, length_class, reach = bounds.numbers[_B], bounds.D, bounds.length_class, bounds.reach
    key, found, sizes = bounds.key, bounds.found, bounds.sizes
    n_found = above(reach, length_class, key, B, D, threshold, found, start, stop)
    columns.correlations(found, start, start + n_found, a, mu, sizes)
    largest, n_above = 0.0, 0
    for k in range(start, start + n_found):
        j = found[k]
        sizes[k] = columns.size(sizes[k])
        largest = max(largest, sizes[k])
        key[j] = (sizes[k] - D[length_class[j]] * reach[j]) / B
        if sizes[k] > level:  # what has been read may be overwritten
            found[start + n_above] = j
            sizes[start + n_above] = sizes[k]
            n_above += 1
    return largest, n_above, n_found


@kernel
def above(reach, length_class, key, B, D, threshold, found, start, stop):
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
