"""The convex hull of given points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._nearest import nearest_weights
from condgrad.constraints._parameters import as_reals
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints._rounding import rounded_up, shortfall
from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.rounding import UNIT


@constraint_set
class ConvexHull(NamedTuple):
    """The convex hull of the rows of an array.

    The oracle compares all atoms, in O(m d) for m of them. Among equally good ones it takes the first in the
    lexicographic order, which is an extreme point even where some atoms are not.

    Parameters
    ----------
    atoms : array of shape (n_atoms, n_features)
        The points; they need not be extreme, nor different.

    Examples
    --------
    >>> triangle = ConvexHull([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> triangle.contains([0.5, 0.5]), triangle.contains([0.6, 0.6])
    (True, False)
    """

    atoms: ArrayLike

    vertex = DenseVertex
    is_polytope = True
    has_fast_reach = False  # it compares all atoms

    def __repr__(self):
        return f"ConvexHull(<{self.atoms.shape[0]} atoms, {self.atoms.shape[1]} features>)"

    @property
    def n_features(self):
        """The length of an atom."""
        return self.atoms.shape[1]

    def prepare(self):
        """Return the field as a 2-D array of floats."""
        return (as_reals("ConvexHull", "atoms", self.atoms, n_dims=2),)

    def lmo(self, r):
        """Return the atom a with the smallest <r, a>."""
        largest = abs(r.at(r.argmax_abs()))
        scale = 1.0 if largest == 0.0 else largest
        d = r.size()
        cost = np.empty(d)
        for j in range(d):
            cost[j] = r.at(j) / scale
        best, k = np.inf, 0
        for i in range(self.atoms.shape[0]):
            value = 0.0
            for j in range(d):
                value += cost[j] * self.atoms[i, j]
            is_better = value < best
            if value == best:
                for j in range(d):
                    if self.atoms[i, j] != self.atoms[k, j]:
                        is_better = self.atoms[i, j] < self.atoms[k, j]
                        break
            if is_better:
                best, k = value, i
        values = np.empty(d)
        for j in range(d):
            values[j] = self.atoms[k, j]
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return <r, s> minus the smallest <r, a> over the atoms a, rounded up."""

        def top(x):
            entries = x.astype(np.float64)
            rounding = 2.0 * (x.size + 4) * UNIT * (np.abs(self.atoms) @ np.abs(entries))
            return (rounding - self.atoms @ entries).max()

        return shortfall(top, r, s)

    def reach(self, c):
        """Return twice the largest distance of an atom to the first one, or the diagonal of the box if smaller."""
        by_first = 2.0 * (np.abs(self.atoms - self.atoms[0]) @ c).max()
        return rounded_up(min(by_first, c @ np.ptp(self.atoms, axis=0)), c.size)

    def violation(self, w):
        """Return the distance from ``w`` to the hull."""
        if not np.isfinite(w).all():
            return float("inf")
        return float(np.linalg.norm(self.project(w) - w))

    @property
    def is_violation_searched(self):
        """Whether it is a search: yes, over all atoms."""
        return True

    def diameter(self, order=2, n_features=None):
        """Return the largest distance of two atoms: exact, in O(m^2 d)."""
        return float(max(np.linalg.norm(self.atoms - a, order, axis=1).max() for a in self.atoms))

    def decompose(self, w):
        """Return the atoms of the combination nearest to ``w``."""
        weights = nearest_weights(self.atoms, w)
        return [(float(weights[i]), DenseVertex(self.atoms[i].copy())) for i in np.flatnonzero(weights)]

    def project(self, w):
        """Return the point of the hull nearest to ``w``."""
        return nearest_weights(self.atoms, w) @ self.atoms
