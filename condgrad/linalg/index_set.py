"""IndexSet: some of the numbers 0, ..., n - 1; Touched: a vector that records which of its entries were changed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled


@compiled
class IndexSet(NamedTuple):
    """The numbers ``listed[:count[0]]``, in the order in which they were added."""

    listed: np.ndarray
    is_in: np.ndarray
    count: np.ndarray  # type: ignore[assignment]

    def size(self):
        """Return how many numbers there are."""
        return self.count[0]

    def row(self, k):
        """Return the number at place ``k``."""
        return self.listed[k]

    def add(self, i):
        """Add ``i``, unless it is a member already."""
        if not self.is_in[i]:
            self.is_in[i] = True
            self.listed[self.count[0]] = i
            self.count[0] += 1

    def clear(self):
        """Remove all numbers, in time proportional to their count."""
        for k in range(self.count[0]):
            self.is_in[self.listed[k]] = False
        self.count[0] = 0

    def is_sound(self):
        """Return whether the numbers are different ones below n, and those that are marked as members."""
        n, count = self.is_in.shape[0], self.count[0]
        if not 0 <= count <= n or np.count_nonzero(self.is_in) != count:
            return False
        members = self.listed[:count]
        is_inside = (members >= 0) & (members < n)
        return bool(is_inside.all() and self.is_in[members].all() and np.unique(members).size == count)


@compiled
class Touched(NamedTuple):
    """A vector with the list of its changed entries, ``support``: clearing it sets only these to zero."""

    values: np.ndarray
    support: IndexSet

    def add_at(self, i, delta):
        """Add ``delta`` to entry ``i``."""
        self.support.add(i)
        self.values[i] += delta

    def clear(self):
        """Make all entries zero."""
        for k in range(self.support.size()):
            self.values[self.support.row(k)] = 0.0
        self.support.clear()


def index_set(n: int, members: np.ndarray | None = None) -> IndexSet:
    """Return a set of numbers below ``n``: empty, or with the given members."""
    found = IndexSet(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_), np.zeros(1, dtype=np.int64))
    if members is not None:
        found.listed[: members.size] = members
        found.is_in[members] = True
        found.count[0] = members.size
    return found


def touched(n: int) -> Touched:
    """Return a vector of ``n`` zeros."""
    return Touched(np.zeros(n), index_set(n))
