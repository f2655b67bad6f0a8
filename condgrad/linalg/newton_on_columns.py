"""Newton's method over an l1 ball whose atoms join as they are needed, in one kernel: for small data.

Where a pass over all columns takes microseconds, it is calls from Python that would cost time between two of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import Errand, borrowed, compiled, kernel
from condgrad.linalg.newton_in_ball import newton_in_ball
from condgrad.linalg.selection import smallest

LOOK = -1  # what is asked of the columns: the derivatives by all features; k >= 0: row k of Z
ATOMS, FIRST, LOOKS = range(3)  # places in Columns.counts: atoms; those that stay; passes over all columns

FEWEST_NEW = 20  # atoms that may join at once: at least, or as many as there are
_ACCURACY = 0.1  # gap over the atoms, relative to that over all features, at which others may join
_MARGIN, _SPAN = 0.1, 5.0  # an atom joins if it is worse than the mean of those in use by so much, or so many gaps


@compiled
class Columns(NamedTuple):
    """The features, and which of them are atoms of the search."""

    errand: Errand  # sets ``slopes`` to the derivatives of the loss by all features, and fills in rows of Z
    features: np.ndarray  # of the atoms
    values: np.ndarray  # of the atoms: their only entries
    sizes: np.ndarray  # the largest coefficient of each feature in the ball
    slopes: np.ndarray  # of F towards the best vertex on each feature; 0 where there is an atom
    Z: np.ndarray  # a row of predictions for each atom
    ridge: np.ndarray
    l2: float
    counts: np.ndarray

    def look(self, x, correlation):
        """Compute the slopes at x; return that of F along x, and the gap over all features."""
        self.errand.run(LOOK)
        for j in range(self.slopes.shape[0]):
            self.slopes[j] = -abs(self.slopes[j]) * self.sizes[j]
        along, steepest = 0.0, 0.0
        for k in range(x.shape[0]):
            self.slopes[self.features[k]] = 0.0
        for k in range(x.shape[0]):
            along -= correlation[k] * x[k]
            steepest = max(steepest, abs(correlation[k]))
        for j in range(self.slopes.shape[0]):
            steepest = max(steepest, -self.slopes[j])
        return along, along + steepest

    def let_join(self, x, along, gap):
        """Replace the atoms without weight by the best other ones; return False where there is no room, or none."""
        n_atoms, n_first, n_new = self.counts[ATOMS], self.counts[FIRST], 0
        n_kept = n_first
        for k in range(n_first, n_atoms):
            n_kept += 1 if x[k] != 0.0 else 0
        threshold = min(0.0, along + min(_MARGIN * abs(along), _SPAN * gap))
        for j in range(self.slopes.shape[0]):
            n_new += 1 if self.slopes[j] < threshold else 0
        n_new = min(n_new, max(FEWEST_NEW, n_kept))
        if n_new == 0 or n_kept + n_new > x.shape[0]:
            return False
        q = n_first
        for k in range(n_first, n_atoms):
            if x[k] != 0.0:
                self.move(k, q, x)
                q += 1
        best = smallest(self.slopes, n_new)
        for m in range(n_new):
            self.features[q], self.values[q], x[q] = best[m], self.sizes[best[m]], 0.0
            self.fill_in(q)
            q += 1
        self.counts[ATOMS] = q
        return True

    def move(self, k, q, x):
        """Move atom k to place q before it."""
        self.features[q], self.values[q], self.ridge[q], x[q] = self.features[k], self.values[k], self.ridge[k], x[k]
        for i in range(self.Z.shape[1]):
            self.Z[q, i] = self.Z[k, i]

    def fill_in(self, k):
        """Fill in what the search needs to know about atom k."""
        self.ridge[k] = self.l2 * self.values[k] * self.values[k]
        self.errand.run(k)


@kernel
def newton_on_columns(search, columns, x, gap, goal, accuracy, max_rounds, most_looks):
    """Go from x, which has room for more atoms, to where the gap over all features is at most ``goal``.

    The ``gap`` there now is known; that over the atoms alone falls to ``accuracy``. It ends earlier where rounds lead
    nowhere, where atoms find no room, and after so many passes over all columns. Return whether the gap over the atoms
    fell as far as it should.
    """
    columns = borrowed(columns)
    for k in range(columns.counts[ATOMS]):
        columns.fill_in(k)
    while True:
        n_atoms, is_last = columns.counts[ATOMS], columns.counts[LOOKS] == most_looks
        wanted = accuracy if is_last else max(accuracy, _ACCURACY * gap)
        if newton_in_ball(search, x[:n_atoms], wanted, max_rounds) > wanted:
            return False
        if is_last:
            return True
        along, gap = columns.look(x[:n_atoms], search.correlation)
        columns.counts[LOOKS] += 1
        if gap <= goal:
            return True
        if not columns.let_join(x, along, gap):
            most_looks = columns.counts[LOOKS]  # what is left is to be exact over these atoms
