"""AtomRows: the entries of a sparse working set by samples, so that its Gram matrices cost no more than their products.

A Gram matrix is a sum of outer products of rows. Of new atoms, only rows matter in which they have entries, and only
the entries of atoms are there to be multiplied: in texts, a small part of all.
"""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.paths.working_set import Atoms

_SPARE = 4  # entries for which a row gets room, beside twice those that it has
_GROWTH = 4  # factor by which there is more memory than is needed: what nothing fills is not given by the system
_BLOCK = 32  # rows and columns of a block of a matrix that is reflected


class AtomRows:
    """The atoms' entries of each sample, in the order of the atoms, with room for some more.

    It follows the working set by itself: new atoms are appended, and where others have gone all are taken anew.

    Parameters
    ----------
    n_samples : int
    """

    def __init__(self, n_samples: int) -> None:
        self._n_samples = n_samples
        self._features, self._is_used = np.empty(0, np.int64), False

    def _forget(self) -> None:
        self._features, self._is_used = np.empty(0, np.int64), True
        # Row i has used_i entries from begin_i on, and room for as many as room_i. One that needs more goes to the end.
        self._begin, self._used, self._room = (np.zeros(self._n_samples, np.uint64) for _ in range(3))
        self._places, self._values = np.empty(0, np.uint32), np.empty(0)
        self._tail = 0

    def fill(self, G: np.ndarray, atoms: Atoms, features: np.ndarray, h: np.ndarray, first: int) -> None:
        """Compute the rows and columns of G = Z' diag(h) Z that belong to the atoms from ``first`` on.

        ``features`` tells one atom from another; their entries are those of ``atoms``, in the same order.
        """
        self._follow(atoms, features)
        size, n_new = features.size, features.size - first
        new = self._used if first == 0 else _count_by_rows(atoms.columns, atoms.features[first:], h.size)
        parts = self._begin, self._used, new, self._places, self._values, h, first
        work = n_new / size * atoms.n_stored * atoms.n_stored / h.size - 4.0 * size * n_new  # another sum per thread
        borders = threads.cut(h.size, max(0.0, work))
        sums = [G[first:size, :size], *(np.zeros((n_new, size)) for _ in borders[2:])]
        of_range = dict(zip(borders[:-1].tolist(), sums, strict=True))
        threads.run(lambda start, stop: _add_outer(*parts, of_range[start], start, stop), borders)
        for other in sums[1:]:
            sums[0] += other
        _reflect(G, first, size)

    def _follow(self, atoms: Atoms, features: np.ndarray) -> None:
        """Take in the atoms that are new."""
        known = self._features.size
        if not self._is_used or known > features.size or (features[:known] != self._features).any():
            self._forget()
            known = 0
        if known == features.size:
            return
        new = atoms.features[known:]
        self._make_room(_count_by_rows(atoms.columns, new, self._n_samples))
        _append(atoms.columns, new, known, self._begin, self._used, self._places, self._values)
        self._features = features.copy()

    def _make_room(self, more: np.ndarray) -> None:
        """Let every row have room for so many more entries."""
        rows = self._begin, self._used, self._room, more, self._tail
        end = self._tail + int(_move_rows(*rows, self._places, self._values, False))
        if end > self._places.size:
            places, values = np.empty(_GROWTH * end, np.uint32), np.empty(_GROWTH * end)
            places[: self._tail], values[: self._tail] = self._places[: self._tail], self._values[: self._tail]
            self._places, self._values = places, values
        _move_rows(*rows, self._places, self._values, True)
        self._tail = end


@kernel
def _count_by_rows(columns, features, n_samples):
    """Return how many entries the features have in each row."""
    counts, slices = np.zeros(n_samples, np.uint64), columns.slices
    for q in range(features.shape[0]):
        for m in range(slices.indptr[features[q]], slices.indptr[features[q] + 1]):
            counts[slices.indices[m]] += np.uint64(1)
    return counts


@kernel
def _move_rows(begin, used, room, more, tail, places, values, is_meant):
    """Move rows with too little room to the ``tail`` of the memory, if that is meant; return how much they need there.

    A row gets room for twice as many entries as it needs, and some.
    """
    needed = np.uint64(0)
    for i in range(used.shape[0]):
        size = used[i] + more[i]
        if size > room[i]:
            size, to = np.uint64(2) * size + np.uint64(_SPARE), np.uint64(tail) + needed
            needed = needed + size
            if is_meant:
                for m in range(used[i]):
                    places[to + m] = places[begin[i] + m]
                    values[to + m] = values[begin[i] + m]
                begin[i], room[i] = to, size
    return needed


@kernel
def _append(columns, features, place, begin, used, places, values):
    """Append the entries of features, the first of which is the atom ``place``, to the rows."""
    slices = columns.slices
    for q in range(features.shape[0]):
        scale = columns.scale[features[q]]
        for m in range(slices.indptr[features[q]], slices.indptr[features[q] + 1]):
            i = slices.indices[m]
            at = begin[i] + used[i]
            places[at] = place + q
            values[at] = scale * slices.data[m]
            used[i] += np.uint64(1)


@kernel
def _add_outer(begin, used, new, places, values, h, first, G, start, stop):
    """Fill the rows of G, which begin with the atom ``first``, left of the diagonal and on it, by a range of samples.

    The last ``new`` entries of a row belong to these atoms.
    """
    for q in range(G.shape[0]):
        for k in range(first + q + 1):
            G[q, k] = 0.0
    offset, one = np.uint64(first), np.uint64(1)
    for i in range(start, stop):
        if new[i] > 0 and h[i] != 0.0:
            end = begin[i] + used[i]
            for a in range(end - new[i], end):
                scaled, q = h[i] * values[a], places[a] - offset
                for b in range(begin[i], a + one):
                    G[q, places[b]] += scaled * values[b]


@kernel
def _reflect(G, first, size):
    """Make G symmetric from its lower triangle, in the rows from ``first`` on."""
    for top in range(first, size, _BLOCK):
        for left in range(0, top + _BLOCK, _BLOCK):
            for b in range(left, min(left + _BLOCK, size)):
                for a in range(max(top, b + 1), min(top + _BLOCK, size)):
                    G[b, a] = G[a, b]
