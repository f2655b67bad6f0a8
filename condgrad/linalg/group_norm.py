"""GroupNorm: the norm of a group of coefficients, its dual norm, and what its penalty makes of a point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel


@compiled
class GroupNorm(NamedTuple):
    """The norm ||x_g||_2 + l1_weight ||x_g||_1 of a group; with ``is_nonnegative`` all entries are at least 0.

    A group is a range of places of an array. The norm of a vector is the sum of the norms of its groups.
    """

    l1_weight: float = 0.0
    is_nonnegative: bool = False

    def of(self, x, first, last):
        """Return the norm of the entries of x from ``first`` to before ``last``."""
        total, squares = 0.0, 0.0
        for k in range(first, last):
            total += abs(x[k])
            squares += x[k] * x[k]
        return np.sqrt(squares) + self.l1_weight * total

    def rest(self, c, threshold):
        """Return what is left of the size of an entry above a threshold; a negative one has none where x >= 0."""
        return max((c if self.is_nonnegative else abs(c)) - threshold, 0.0)

    def dual(self, c, first, last):
        """Return the largest <c, s> over all s with a norm of at most 1, on these entries.

        It is the t with ||(|c| - l1_weight t)_+||_2 = t. The left side minus the right one is convex and decreasing in
        t: Newton's method from 0 increases t to the root, and ends when t no longer grows because of rounding.
        """
        t = 0.0
        while True:
            total, squares = 0.0, 0.0
            for k in range(first, last):
                rest = self.rest(c[k], self.l1_weight * t)
                total += rest
                squares += rest * rest
            length = np.sqrt(squares)
            if not length > t:
                return t
            following = t + (length - t) / (1.0 + self.l1_weight * total / length)
            if not following > t:
                return t
            t = following

    def shrink(self, x, first, last, theta):
        """Overwrite the entries of x by the minimiser z of ||z - x||^2 / 2 + theta times the norm of z."""
        squares = 0.0
        for k in range(first, last):
            rest = self.rest(x[k], self.l1_weight * theta)
            squares += rest * rest
        length = np.sqrt(squares)
        factor = 1.0 - theta / length if length > theta else 0.0
        for k in range(first, last):
            rest = self.rest(x[k], self.l1_weight * theta)
            x[k] = factor * (rest if x[k] > 0.0 else -rest)

    def dual_rounding(self, size):
        """Return the relative error of :meth:`dual` for a group of this size, in units of rounding."""
        return (size + 8.0) * (2.0 + self.l1_weight * np.sqrt(size))


@kernel
def norm_of(norm, offsets, x):
    """Return the norm of x, whose group g is the range from offsets[g] to offsets[g + 1]."""
    total = 0.0
    for g in range(offsets.shape[0] - 1):
        total += norm.of(x, offsets[g], offsets[g + 1])
    return total


@kernel
def dual_norms(norm, offsets, c):
    """Return the dual norm of every group of c."""
    out = np.empty(offsets.shape[0] - 1)
    for g in range(out.shape[0]):
        out[g] = norm.dual(c, offsets[g], offsets[g + 1])
    return out
