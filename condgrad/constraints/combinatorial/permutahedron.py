"""The convex hull of the permutations of a vector."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._isotonic import nearest_increasing
from condgrad.constraints._parameters import as_reals, shown
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.selection import sorted_places


@constraint_set
class Permutahedron(NamedTuple):
    """The permutahedron: the convex hull of all permutations of a vector, for rankings.

    It is the set of the vectors whose k largest entries sum to no more than the k largest values, for each k, with
    equality for k = d. The oracle assigns the smallest value to the largest entry of r, and so on, in O(d log d).

    Parameters
    ----------
    values : array of shape (n_features,)
        The vector, in any order.

    Examples
    --------
    >>> ranks = Permutahedron([1.0, 2.0, 3.0])
    >>> ranks.contains([2.0, 2.5, 1.5]), ranks.contains([3.0, 3.0, 0.0])
    (True, False)
    """

    values: ArrayLike

    vertex = DenseVertex
    is_polytope = True
    has_projection = True

    def __repr__(self):
        return f"Permutahedron(values={shown(self.values)})"

    @property
    def n_features(self):
        """The length of ``values``."""
        return self.values.size

    def prepare(self):
        """Return the field as a sorted array of floats."""
        return (np.sort(as_reals("Permutahedron", "values", self.values)),)

    def lmo(self, r):
        """Return the permutation in the order of -r."""
        keys = np.empty(r.size())
        for j in range(r.size()):
            keys[j] = -r.at(j)
        order = sorted_places(keys)
        values = np.empty(r.size())
        for q in range(r.size()):
            values[order[q]] = self.values[q]
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies values."""
        return 0.0

    def violation(self, w):
        """Return the largest excess of a sum of the k largest entries; for k = d, its absolute value."""
        excess = np.cumsum(np.sort(w)[::-1] - self.values[::-1])
        return float(np.append(excess, -excess[-1]).max())

    def diameter(self, order=2, n_features=None):
        """Return the distance between the values and the values in reverse order: exact."""
        return float(np.linalg.norm(self.values - self.values[::-1], order))

    def project(self, w):
        """Return the point of the set nearest to ``w``: sorted, w minus the isotonic regression of w - values."""
        order = np.argsort(w, kind="stable")
        point = np.empty(w.size)
        # In increasing order of w, the amount that is subtracted must not decrease.
        point[order] = w[order] - nearest_increasing(w[order] - self.values)
        return point
