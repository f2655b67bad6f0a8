"""MaxTree: a vector that finds the entry which an oracle needs without a scan of all entries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, fill_in, kernel

_SHIFT = 5  # a leaf has 2**5 entries


@compiled
class MaxTree(NamedTuple):
    """A vector with a tournament tree of scores; ``tree[k]`` is the best score among the leaves below node k.

    Adding to an entry updates the scores above it until one does not change: O(log d) at most, usually a few nodes.
    The ``score`` object defines the scores (|v_j|, -v_j, a group's sum of squares); the oracle of the set that the
    score was made for finds the winner by descending the tree.
    """

    values: np.ndarray
    tree: np.ndarray
    score: Score

    def size(self):
        """Return the number of entries."""
        return self.values.shape[0]

    def at(self, j):
        """Return entry ``j``."""
        return self.values[j]

    def add_at(self, j, delta):
        """Add ``delta`` to entry ``j``."""
        old = self.values[j]
        new = old + delta
        self.values[j] = new
        k = np.uint64(self.tree.shape[0] // 2) + np.uint64(self.score.leaf(j))
        best = self.score.renewed(self.tree[k], self.values, old, new, j)
        if self.tree[k] == best:
            return
        self.tree[k] = best
        while k > np.uint64(1):
            rival = self.tree[k ^ np.uint64(1)]
            if rival > best:
                best = rival
            k >>= np.uint64(1)
            if self.tree[k] == best:
                break
            self.tree[k] = best

    def add_array(self, c, v):
        """Add ``c`` times the array ``v``."""
        for j in range(self.values.shape[0]):
            self.values[j] += c * v[j]
        self.rebuild()

    def shrink(self, factor):
        """Multiply the vector by ``factor``."""
        for j in range(self.values.shape[0]):
            self.values[j] *= factor
        self.rebuild()

    def inner(self, v):
        """Return the inner product with the array ``v``."""
        total = 0.0
        for j in range(self.values.shape[0]):
            total += self.values[j] * v[j]
        return total

    def rebuild(self):
        """Compute all scores again, in O(d)."""
        half = self.tree.shape[0] // 2
        for k in range(half, 2 * half):
            self.tree[k] = -np.inf
        for j in range(self.values.shape[0]):
            k = half + np.int64(self.score.leaf(j))
            self.tree[k] = self.score.joined(self.tree[k], self.values[j], j)
        for k in range(half - 1, 0, -1):
            self.tree[k] = max(self.tree[2 * k], self.tree[2 * k + 1])

    def set_to(self, v):
        """Set all entries to those of ``v``."""
        self.values[:] = v
        _rebuild(self)

    def is_sound(self):
        """Return whether each node is the better of its children, so that no way down ends beyond the last leaf."""
        half = self.tree.shape[0] // 2
        beyond = self.tree[half + int(self.score.n_leaves(self.values.shape[0])) :]
        best = np.maximum(self.tree[2::2], self.tree[3::2])
        return bool((beyond == -np.inf).all() and (self.tree[1:half] == best).all())

    def to_array(self):
        """Return the entries as a new array."""
        return self.values.copy()

    def dot_slice(self, X, k):
        """Return the inner product with slice ``k`` of ``X``."""
        return X.dot_slice(k, self.values)

    def winner(self):
        """Return the first entry, or group, with the best score."""
        half = np.uint64(self.tree.shape[0] // 2)
        k = np.uint64(1)
        while k < half:
            k <<= np.uint64(1)
            if self.tree[k] < self.tree[k + np.uint64(1)]:
                k += np.uint64(1)
        return self.score.winner_of(np.int64(k - half), self.values, self.tree[k])

    def argmax_abs(self):
        """Return the winner, under a score of absolute values."""
        return self.winner()

    def argmin(self):
        """Return the winner, under a score of negated values."""
        return self.winner()

    def argmax_weighted(self, weights):
        """Return the winner, under a score of weighted absolute values."""
        return self.winner()

    def best_group(self, members, offsets):
        """Return the winner, under a score of sums of squares."""
        return self.winner()


class Score:
    """The score of each leaf of a tree; a leaf has 32 entries, unless a score redefines ``leaf`` and ``n_leaves``.

    A leaf stores one score, not one per entry: a single comparison shows that its best entry is still the best, as it
    nearly always is, and the entries of a leaf are contiguous in memory.
    """

    def leaf(self, j):
        """Return the leaf of entry ``j``."""
        return np.uint64(j) >> np.uint64(_SHIFT)

    def n_leaves(self, d):
        """Return the number of leaves for ``d`` entries."""
        return (d + (1 << _SHIFT) - 1) >> _SHIFT

    def of(self, value, j):
        """Return the score of entry ``j`` if it has the given value."""
        raise NotImplementedError

    def joined(self, best, value, j):
        """Return the score of a leaf that had the score ``best`` (-inf: empty) before entry ``j`` joined it."""
        return max(best, self.of(value, j))

    def renewed(self, best, values, old, new, j):
        """Return the score of the leaf of entry ``j``, ``best`` before that entry changed from ``old`` to ``new``."""
        score = self.of(new, j)
        if score >= best:
            return score
        if self.of(old, j) < best:
            return best
        start = self.leaf(j) << np.uint64(_SHIFT)
        stop = min(start + np.uint64(1 << _SHIFT), np.uint64(values.shape[0]))
        for m in range(start, stop):
            other = self.of(values[m], m)
            if other > score:
                score = other
        return score

    def winner_of(self, leaf, values, best):
        """Return the first entry of ``leaf`` that has its best score."""
        start = np.uint64(leaf) << np.uint64(_SHIFT)
        stop = min(start + np.uint64(1 << _SHIFT), np.uint64(values.shape[0]))
        for m in range(start, stop):
            if self.of(values[m], m) == best:
                return np.int64(m)
        return np.int64(start)


def score(cls: type) -> type:
    """Make a NamedTuple class a score of :class:`MaxTree`."""
    return compiled(fill_in(cls, Score))


@score
class AbsScore(NamedTuple):
    """Scores |v_j|, for the l1 ball."""

    def of(self, value, j):
        """Return |value|."""
        return abs(value)


@score
class NegativeScore(NamedTuple):
    """Scores -v_j, for the simplex and the non-negative l1 ball."""

    def of(self, value, j):
        """Return -value."""
        return -value


@score
class WeightedScore(NamedTuple):
    """Scores |v_j| / weights_j, for the weighted l1 ball."""

    weights: np.ndarray

    def of(self, value, j):
        """Return |value| / weights_j."""
        return abs(value) / self.weights[j]


@score
class GroupScore(NamedTuple):
    """Scores sum of v_j^2 over each group, for the group ball; ``group_of[j]`` is the group of entry j."""

    group_of: np.ndarray
    n_groups: int

    def leaf(self, j):
        """Return the group of entry ``j``."""
        return self.group_of[j]

    def n_leaves(self, d):
        """Return the number of groups."""
        return self.n_groups

    def joined(self, best, value, j):
        """Return the group's sum of squares with entry ``j`` added."""
        return max(0.0, best) + value * value

    def renewed(self, best, values, old, new, j):
        """Return the group's sum of squares, clipped at zero because of rounding."""
        return max(0.0, best + (new - old) * (new + old))

    def winner_of(self, leaf, values, best):
        """Return the group."""
        return leaf


def max_tree(values: np.ndarray, score: Score) -> MaxTree:
    """Return a tree over ``values``, which are not copied."""
    n_leaves = int(score.n_leaves(values.size))
    half = 1 << max(0, n_leaves - 1).bit_length()
    tree = MaxTree(values, np.zeros(2 * half), score)
    _rebuild(tree)
    return tree


@kernel
def _rebuild(tree):
    tree.rebuild()
