"""Rows that tie two entries to each other, x_i - x_j = b, as those of monotone coefficients: many of them are cheap.

On a face with many ties, the entries that are tied together move together. So the minimiser solves a system of one
unknown for each group, and one for each other row, instead of one for each entry and each row.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from condgrad.linalg.face_system import Factor, System, dense

_FEWEST = 60  # ties from which on groups take less time


class Ties:
    """The rows of A that have the entries c and -c and no others."""

    def __init__(self, A: scipy.sparse.csr_array) -> None:
        rows = np.flatnonzero(np.diff(A.indptr) == 2)
        first = A.indptr[rows]
        is_tie = (A.data[first] == -A.data[first + 1]) & (A.data[first] != 0.0)
        self.first, self.second = A.indices[first[is_tie]], A.indices[first[is_tie] + 1]
        self.place = np.full(A.shape[0], -1)  # of each row among the ties
        self.place[rows[is_tie]] = np.arange(self.first.size)

    @classmethod
    def among(cls, A: Any) -> Self | None:
        """Return the ties among the rows of A, or None if they are few."""
        if A.shape[0] < _FEWEST:
            return None
        ties = cls(scipy.sparse.csr_array(A))
        return ties if ties.first.size >= _FEWEST else None

    def on(self, free: np.ndarray, rows: np.ndarray) -> Groups | None:
        """Return the groups into which the ties among some rows put free entries; None if that saves nothing."""
        place = self.place[rows]
        where = np.full(max(self.first.max(), self.second.max(), free.max(initial=0)) + 1, -1)
        where[free] = np.arange(free.size)
        ends = where[self.first[place]], where[self.second[place]]
        is_tie = (place >= 0) & (ends[0] >= 0) & (ends[1] >= 0)
        count = int(np.count_nonzero(is_tie))
        if count < _FEWEST:
            return None
        from scipy.sparse.csgraph import connected_components  # here, because few sets need it

        graph = scipy.sparse.coo_array(
            (np.ones(count), (ends[0][is_tie], ends[1][is_tie])), shape=(free.size, free.size)
        )
        n_groups, labels = connected_components(graph, directed=False)
        return Groups(labels, n_groups, is_tie) if free.size - n_groups == count else None  # no tie depends on others


class Groups(NamedTuple):
    """The group of each free entry, the number of groups, and which of the rows are ties."""

    labels: np.ndarray
    n_groups: int
    is_tie: np.ndarray


class TiedSystem:
    """The equations H x + A'y = p, A x = q for some rows of A, many of which are independent ties."""

    def __init__(self, H: np.ndarray, A: Any, rows: np.ndarray, groups: Groups) -> None:
        from scipy.sparse.linalg import splu  # here, because the import is slow

        size, self.H, self.is_tie = groups.labels.size, H, groups.is_tie
        self.ties, self.others = A[rows[self.is_tie]], dense(A[rows[~self.is_tie]])
        self.factor = splu(scipy.sparse.csc_array(self.ties @ self.ties.T))
        places = groups.labels, np.arange(size)
        self.sums = scipy.sparse.csr_array((np.ones(size), places), shape=(groups.n_groups, size))  # over each group
        small = Factor(self.sums @ (self.sums @ H).T, (self.sums @ self.others.T).T)
        self.system = System(small, np.arange(self.others.shape[0]))

    def solve(self, p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y."""
        shift = self.ties.T @ self.factor.solve(q[self.is_tie])
        z, other = self.system.solve(self.sums @ (p - self.H @ shift), q[~self.is_tie] - self.others @ shift)
        x = self.sums.T @ z + shift
        y = np.empty(q.size)
        y[~self.is_tie] = other
        y[self.is_tie] = self.factor.solve(self.ties @ (p - self.H @ x - self.others.T @ other))
        return x, y
