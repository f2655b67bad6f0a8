"""MaxTree: a vector that knows which of its entries an oracle wants, without looking at all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.compiled import compiled, fill_in, kernel


@compiled
class MaxTree(NamedTuple):
    """A vector under a tournament of scores; ``tree[k]`` is the best score among the leaves below node k.

    Adding to an entry renews the scores above it until one does not change: O(log d) at most, a few nodes as a rule.
    What the scores are (|v_j|, -v_j, a group's sum of squares) is the ``score`` object's to say; the oracle of the set
    that the score was made for finds the winner by walking down.
    """

    values: Any
    tree: Any
    score: Any

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
        best = self.score.renewed(self.tree[k], old, new, j)
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
        """Compute all scores anew, in O(d)."""
        half = self.tree.shape[0] // 2
        for k in range(half, 2 * half):
            self.tree[k] = -np.inf
        for g in range(self.score.n_leaves(self.values.shape[0])):
            self.tree[half + g] = 0.0
        for j in range(self.values.shape[0]):
            k = half + self.score.leaf(j)
            self.tree[k] = self.score.renewed(self.tree[k], 0.0, self.values[j], j)
        for k in range(half - 1, 0, -1):
            self.tree[k] = max(self.tree[2 * k], self.tree[2 * k + 1])

    def set_to(self, v):
        """Make this the vector ``v``."""
        self.values[:] = v
        _rebuild(self)

    def to_array(self):
        """Return the vector as an array of its own."""
        return self.values.copy()

    def dot_slice(self, X, k):
        """Return the inner product with slice ``k`` of ``X``."""
        return X.dot_slice(k, self.values)

    def winner(self):
        """Return the first leaf with the best score."""
        half = np.uint64(self.tree.shape[0] // 2)
        k = np.uint64(1)
        while k < half:
            k <<= np.uint64(1)
            if self.tree[k] < self.tree[k + np.uint64(1)]:
                k += np.uint64(1)
        return np.int64(k - half)

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
    """How a tree scores entries: one leaf an entry, unless a score says otherwise."""

    def leaf(self, j):
        """Return the leaf of entry ``j``."""
        return j

    def n_leaves(self, d):
        """Return the number of leaves for ``d`` entries."""
        return d

    def renewed(self, score, old, new, j):
        """Return the score of the leaf of entry ``j``, which went from ``old`` to ``new``."""
        raise NotImplementedError


def score(cls: type) -> Any:
    """Make a NamedTuple class a score of :class:`MaxTree`."""
    return compiled(fill_in(cls, Score))


@score
class AbsScore(NamedTuple):
    """Scores |v_j|, for the l1 ball."""

    def renewed(self, score, old, new, j):
        """Return |new|."""
        return abs(new)


@score
class NegativeScore(NamedTuple):
    """Scores -v_j, for the simplex and the non-negative l1 ball."""

    def renewed(self, score, old, new, j):
        """Return -new."""
        return -new


@score
class WeightedScore(NamedTuple):
    """Scores |v_j| / weights_j, for the weighted l1 ball."""

    weights: Any

    def renewed(self, score, old, new, j):
        """Return |new| / weights_j."""
        return abs(new) / self.weights[j]


@score
class GroupScore(NamedTuple):
    """Scores sum of v_j^2 over each group, for the group ball; ``group_of[j]`` is the group of entry j."""

    group_of: Any
    n_groups: int

    def leaf(self, j):
        """Return the group of entry ``j``."""
        return self.group_of[j]

    def n_leaves(self, d):
        """Return the number of groups."""
        return self.n_groups

    def renewed(self, score, old, new, j):
        """Return the group's sum of squares, kept from falling below zero by rounding."""
        return max(0.0, score + (new - old) * (new + old))


def max_tree(values: np.ndarray, score: Any) -> MaxTree:
    """Return ``values`` under a tree of scores."""
    n_leaves = int(score.n_leaves(values.size))
    half = 1 << max(0, n_leaves - 1).bit_length()
    tree = MaxTree(values, np.empty(2 * half), score)
    _rebuild(tree)
    return tree


@kernel
def _rebuild(tree):
    tree.rebuild()
