"""Clusters: sparse features that are nearly equal, whose small Gram matrices make a preconditioner.

Among words that few texts have there are many pairs that stand in the same texts. Their differences are directions in
which the objective hardly bends, and conjugate gradients and coordinate descent spend most of their time on these. A
cluster is a set of features with few entries that are linked by correlations above a half or so; its block of the Gram
matrix is small and is solved exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel

_FEW = 64  # most entries of a feature that may be in a cluster
_CROWD = 256  # most such features in a sample from which links are drawn; more tell nothing about each other
_LINK = 0.4  # least correlation that links two features
_LARGEST = 24  # most features in a cluster
_RIDGE = 3e-3  # share of the diagonal that is added to it, so that equal features have a factor
_MOST_CYCLES = 50  # most cycles of coordinate descent within a cluster


@compiled
class Clusters(NamedTuple):
    """The blocks of the Gram matrix, one after the other; features without a cluster are blocks of one.

    Features are in the order of their blocks: those of block b from ``starts_b`` on. ``gram`` holds the blocks row by
    row, block b from ``offsets_b`` on.
    """

    starts: np.ndarray
    gram: np.ndarray
    offsets: np.ndarray

    def labels(self):
        """Return the number of its block for every feature."""
        return np.repeat(np.arange(self.starts.shape[0] - 1), np.diff(self.starts))

    def minimise(self, b, x, alpha, accuracy, correlation):
        """Minimise over the coefficients of block b, with the others as they are; return whether any has changed.

        It ends when correlations change by no more than ``accuracy``. ``correlation`` has those of the block's
        features, in its order, and is kept up to date.
        """
        first, size, at = self.starts[b], self.starts[b + 1] - self.starts[b], self.offsets[b]
        has_changed = False
        for _ in range(_MOST_CYCLES if size > 1 else 1):
            largest = 0.0
            for i in range(size):
                k, curvature = first + i, self.gram[at + i * size + i]
                if curvature > 0.0:
                    free = correlation[i] + curvature * x[k]
                    new = max(abs(free) - alpha, 0.0) / curvature
                    new = new if free > 0.0 else -new
                    change = new - x[k]
                    if change != 0.0:
                        x[k] = new
                        has_changed = True
                        largest = max(largest, abs(change) * curvature)
                        for q in range(size):
                            correlation[q] -= change * self.gram[at + i * size + q]
            if largest <= accuracy:
                break
        return has_changed


@compiled
class Factors(NamedTuple):
    """Cholesky factors of the blocks, laid out as the blocks of :class:`Clusters` are: a preconditioner."""

    starts: np.ndarray
    factors: np.ndarray
    offsets: np.ndarray

    def solve(self, v, out):
        """Fill ``out`` with the solution of (block-diagonal matrix) out = v."""
        for b in range(self.starts.shape[0] - 1):
            first, size, at = self.starts[b], self.starts[b + 1] - self.starts[b], self.offsets[b]
            for i in range(size):
                total = v[first + i]
                for k in range(i):
                    total -= self.factors[at + i * size + k] * out[first + k]
                out[first + i] = total / self.factors[at + i * size + i]
            for r in range(size):
                i = size - 1 - r
                total = out[first + i]
                for k in range(i + 1, size):
                    total -= self.factors[at + k * size + i] * out[first + k]
                out[first + i] = total / self.factors[at + i * size + i]


@kernel
def factor(clusters, is_used):
    """Return the factors of the blocks with the used features alone; places are those among the used ones."""
    n_used = 0
    for k in range(is_used.shape[0]):
        n_used += is_used[k]
    starts, offsets = np.zeros(n_used + 1, np.int64), np.zeros(n_used + 1, np.int64)
    factors = np.zeros(clusters.offsets[-1])
    n_blocks = n_placed = 0
    among = np.empty(_LARGEST, np.int64)
    for b in range(clusters.starts.shape[0] - 1):
        first, width, at = clusters.starts[b], clusters.starts[b + 1] - clusters.starts[b], clusters.offsets[b]
        count = 0
        for i in range(width):
            if is_used[first + i]:
                among[count] = i
                count += 1
        if count > 0:
            to = offsets[n_blocks]
            for i in range(count):
                for q in range(count):
                    factors[to + i * count + q] = clusters.gram[at + among[i] * width + among[q]]
            _cholesky(factors[to : to + count * count], count)
            n_placed += count
            n_blocks += 1
            starts[n_blocks], offsets[n_blocks] = n_placed, to + count * count
    return Factors(starts[: n_blocks + 1].copy(), factors, offsets)


@kernel
def _cholesky(block, size):
    """Replace the block by its lower Cholesky factor, with a small ridge."""
    for i in range(size):
        block[i * size + i] *= 1.0 + _RIDGE
        pivot = block[i * size + i]
        for k in range(i):
            total = block[i * size + k]
            for q in range(k):
                total -= block[i * size + q] * block[k * size + q]
            block[i * size + k] = total / block[k * size + k]
        total = pivot
        for q in range(i):
            total -= block[i * size + q] ** 2
        block[i * size + i] = np.sqrt(max(total, 0.1 * _RIDGE * pivot))


@compiled
class EntryList(NamedTuple):
    """A list that takes what is added to a vector: the samples, and what each would get."""

    samples: np.ndarray
    values: np.ndarray
    length: np.ndarray  # one number

    def add_at(self, i, delta):
        """Append the pair."""
        at = self.length[0]
        self.samples[at] = i
        self.values[at] = delta
        self.length[0] = at + 1


@compiled
class ShortFeatures(NamedTuple):
    """The chosen features with few entries: that of number r is at ``places_r``, its entries are from ``begins_r`` on.

    ``number`` has the number of every chosen feature, -1 for those with many entries.
    """

    places: np.ndarray
    number: np.ndarray
    begins: np.ndarray
    samples: np.ndarray
    values: np.ndarray


@compiled
class DisjointSets(NamedTuple):
    """Sets of places, each a tree: ``parent`` leads to its root, which ``members`` counts the places of."""

    parent: np.ndarray
    members: np.ndarray

    def root(self, k):
        """Return the root of the set of place k; the way to it becomes shorter."""
        while self.parent[k] != k:
            self.parent[k] = self.parent[self.parent[k]]
            k = self.parent[k]
        return k

    def join(self, j, k):
        """Make one set of those of two places, unless it would be too large for a cluster."""
        a, b = self.root(j), self.root(k)
        if a != b and self.members[a] + self.members[b] <= _LARGEST:
            self.parent[a] = b
            self.members[b] += self.members[a]


@compiled
class SampleIndex(NamedTuple):
    """The short features by sample: those of sample i that were added are from ``starts_i`` to before ``ends_i``."""

    starts: np.ndarray
    ends: np.ndarray
    who: np.ndarray
    value: np.ndarray

    def is_crowded(self, i):
        """Tell whether so many short features have sample i that it says nothing about them."""
        return self.starts[i + 1] - self.starts[i] > _CROWD

    def add(self, r, short):
        """Add the feature with number r."""
        for m in range(short.begins[r], short.begins[r + 1]):
            i = short.samples[m]
            self.who[self.ends[i]] = r
            self.value[self.ends[i]] = short.values[m]
            self.ends[i] += 1


@compiled
class Products(NamedTuple):
    """Inner products of one short feature with those that share a sample with it, a list of which is ``met``."""

    total: np.ndarray
    met: np.ndarray
    met_by: np.ndarray  # the feature that met a feature last

    def add_sample(self, r, n_met, index, i, value):
        """Add the part of sample i, where feature r has a weighted value; return the new length of the list."""
        for e in range(index.starts[i], index.ends[i]):
            other = index.who[e]
            if self.met_by[other] != r:
                self.met_by[other] = r
                self.met[n_met] = other
                self.total[other] = 0.0
                n_met += 1
            self.total[other] += value * index.value[e]
        return n_met


@kernel
def find_clusters(columns, features, l2, label):
    """Return the places of the chosen features in the order of their clusters, and the clusters of G + l2 I.

    ``label`` has the clusters of the first features, in ascending order. They stay together, and the others join them.
    """
    size, n_old = features.shape[0], label.shape[0]
    short = _short_features(columns, features)
    label = _link(columns, features, n_old, _old_sets(label, size), short)
    order = np.argsort(label, kind="mergesort")
    starts, n_blocks = np.zeros(size + 1, np.int64), 0
    for q in range(size):
        if q == 0 or label[order[q]] != label[order[q - 1]]:
            starts[n_blocks] = q
            n_blocks += 1
    starts[n_blocks] = size
    starts = starts[: n_blocks + 1].copy()
    offsets = np.zeros(n_blocks + 1, np.int64)
    for b in range(n_blocks):
        offsets[b + 1] = offsets[b] + (starts[b + 1] - starts[b]) ** 2
    gram, dense = np.zeros(offsets[-1]), np.zeros(columns.weight.shape[0])
    for b in range(n_blocks):
        members = order[starts[b] : starts[b + 1]]
        block = gram[offsets[b] : offsets[b + 1]]
        _multiply(columns, features, members, short, block, dense)
        for i in range(members.shape[0]):
            block[i * members.shape[0] + i] += l2
    return order, Clusters(starts, gram, offsets)


@kernel
def _old_sets(label, size):
    """Return sets of the places with equal labels, which stand side by side; places without a label are alone."""
    parent, members = np.arange(size), np.zeros(size, np.int64)
    for k in range(1, label.shape[0]):
        if label[k] == label[k - 1]:
            parent[k] = parent[k - 1]
    for k in range(size):
        members[parent[k]] += 1
    return DisjointSets(parent, members)


@kernel
def _short_features(columns, features):
    """Return the features with few entries."""
    number, n_short = np.full(features.shape[0], -1), 0
    begins = np.zeros(features.shape[0] + 1, np.int64)
    for k in range(features.shape[0]):
        stored = np.int64(columns.n_stored(features[k]))
        if stored <= _FEW:
            number[k] = n_short
            begins[n_short + 1] = begins[n_short] + stored
            n_short += 1
    places, begins = np.empty(n_short, np.int64), begins[: n_short + 1]
    entries = EntryList(np.empty(begins[-1], np.int64), np.empty(begins[-1]), np.zeros(1, np.int64))
    for k in range(features.shape[0]):
        if number[k] >= 0:
            columns.add(features[k], 1.0, entries)
            places[number[k]] = k
    return ShortFeatures(places, number, begins, entries.samples, entries.values)


@kernel
def _empty_index(short, n_samples):
    """Return an index with room for the features of every sample."""
    starts = np.zeros(n_samples + 1, np.int64)
    for m in range(short.samples.shape[0]):
        starts[short.samples[m] + 1] += 1
    for i in range(n_samples):
        starts[i + 1] += starts[i]
    room = short.samples.shape[0]
    return SampleIndex(starts, starts[:-1].copy(), np.empty(room, np.int64), np.empty(room))


@kernel
def _link(columns, features, n_old, sets, short):
    """Join the sets of features that correlate, one of the two not among the first ``n_old``; return all roots."""
    n_short = short.places.shape[0]
    index = _empty_index(short, columns.weight.shape[0])
    products = Products(np.zeros(n_short), np.empty(n_short, np.int64), np.full(n_short, -1))
    for r in range(n_short):
        place = short.places[r]
        if place >= n_old:
            n_met = _multiply_with_earlier(columns, short, index, r, products)
            for q in range(n_met):
                other = short.places[products.met[q]]
                norms = columns.norm[features[place]] * columns.norm[features[other]]
                if abs(products.total[products.met[q]]) > _LINK * norms:
                    sets.join(place, other)
        index.add(r, short)
    label = np.empty(features.shape[0], np.int64)
    for k in range(features.shape[0]):
        label[k] = sets.root(k)
    return label


@kernel
def _multiply_with_earlier(columns, short, index, r, products):
    """Multiply short feature r with those of the index that share a sample with it; return how many they are."""
    n_met = 0
    for m in range(short.begins[r], short.begins[r + 1]):
        i = short.samples[m]
        if not index.is_crowded(i):
            n_met = products.add_sample(r, n_met, index, i, columns.weight[i] * short.values[m])
    return n_met


@kernel
def _multiply(columns, features, members, short, block, dense):
    """Fill in one block of the Gram matrix; ``dense`` holds zeros before and after."""
    size = members.shape[0]
    for i in range(size):
        j = features[members[i]]
        block[i * size + i] = columns.norm[j] * columns.norm[j]
        if size > 1:
            r = short.number[members[i]]
            for m in range(short.begins[r], short.begins[r + 1]):
                dense[short.samples[m]] = columns.weight[short.samples[m]] * short.values[m]
            for k in range(i):
                j_k = features[members[k]]
                means = columns.scale[j] * columns.mean[j] * columns.scale[j_k] * columns.mean[j_k]
                product = _dot(short, short.number[members[k]], dense) - means
                block[i * size + k] = product
                block[k * size + i] = product
            for m in range(short.begins[r], short.begins[r + 1]):
                dense[short.samples[m]] = 0.0


@kernel
def _dot(short, r, dense):
    """Return the inner product of short feature r with a vector."""
    total = 0.0
    for m in range(short.begins[r], short.begins[r + 1]):
        total += dense[short.samples[m]] * short.values[m]
    return total
