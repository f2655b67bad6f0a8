"""DrawTree: a vector from which entries are drawn with chances that are exponential in their values."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel

_SHIFT = 3  # a leaf has 2**3 entries


@compiled
class DrawTree(NamedTuple):
    """A vector r with a tree of sums, which draws a sign and an entry: chances grow with exp(sign factor r_j).

    It is the sibling of :class:`~condgrad.linalg.max_tree.MaxTree` whose nodes hold logarithms of sums in place of
    maxima: ``tree[k]`` is the logarithm of the sum of exp(factor r_j) + exp(-factor r_j) over the entries below node k.
    Adding to an entry costs O(log d), and so does a draw. Logarithms cannot overflow, and a sum is always made anew
    from its parts, never by differences, so that errors do not accumulate.
    """

    values: np.ndarray
    tree: np.ndarray
    factor: float

    def add_at(self, j, delta):
        """Add ``delta`` to entry ``j``."""
        self.values[j] += delta
        half = np.int64(self.tree.shape[0] // 2)
        k = half + (np.int64(j) >> _SHIFT)
        self.tree[k] = self.leaf_sum(k - half)
        while k > 1:
            k >>= 1
            self.tree[k] = log_of_sum(self.tree[2 * k], self.tree[2 * k + 1])

    def leaf_sum(self, leaf):
        """Return the logarithm of the sum over the entries of a leaf."""
        start = leaf << _SHIFT
        stop = min(start + (1 << _SHIFT), self.values.shape[0])
        total = -np.inf
        for j in range(start, stop):
            total = log_of_sum(total, log_of_sum(self.factor * self.values[j], -self.factor * self.values[j]))
        return total

    def rebuild(self):
        """Compute all sums, in O(d)."""
        half = np.int64(self.tree.shape[0] // 2)
        for k in range(half, 2 * half):
            self.tree[k] = self.leaf_sum(k - half)
        for k in range(half - 1, 0, -1):
            self.tree[k] = log_of_sum(self.tree[2 * k], self.tree[2 * k + 1])

    def draw(self, uniforms):
        """Return an entry and a sign, from one uniform number of [0, 1) for each level, and two for the leaf."""
        half = np.int64(self.tree.shape[0] // 2)
        k, level = np.int64(1), 0
        while k < half:  # go left with the left child's share of the sum
            k <<= 1
            if uniforms[level] >= share(self.tree[k], self.tree[k + 1]):
                k += 1
            level += 1
        left, total = uniforms[level], self.tree[k]
        start = (k - half) << _SHIFT
        stop = min(start + (1 << _SHIFT), self.values.shape[0])
        j = stop - 1
        for m in range(start, stop):
            left -= math.exp(log_of_sum(self.factor * self.values[m], -self.factor * self.values[m]) - total)
            if left < 0.0:
                j = np.int64(m)
                break
        is_positive = uniforms[level + 1] < share(self.factor * self.values[j], -self.factor * self.values[j])
        return j, 1.0 if is_positive else -1.0


@kernel
def log_of_sum(a, b):
    """Return log(exp(a) + exp(b))."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@kernel
def share(a, b):
    """Return exp(a) / (exp(a) + exp(b)); b may be -inf."""
    return 1.0 / (1.0 + math.exp(min(b - a, 700.0)))


def draw_tree(values: np.ndarray, factor: float) -> DrawTree:
    """Return a tree over ``values``, which are not copied."""
    n_leaves = -(-values.size // (1 << _SHIFT))
    half = 1 << max(0, n_leaves - 1).bit_length()
    tree = DrawTree(values, np.empty(2 * half), float(factor))
    rebuild(tree)
    return tree


def n_uniforms(tree: DrawTree) -> int:
    """Return the number of uniform numbers that a draw uses."""
    return (tree.tree.size // 2).bit_length() + 1


@kernel
def rebuild(tree):
    """Compute all sums of the tree."""
    tree.rebuild()


@kernel
def draw(tree, uniforms):
    """Return an entry and a sign."""
    return tree.draw(uniforms)
