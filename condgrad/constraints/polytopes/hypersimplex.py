"""The hypersimplex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._capped import project_capped, systematic_sample
from condgrad.constraints._parameters import as_positive_integer, check_at_most_features
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.selection import smallest
from condgrad.linalg.settings import check_positive


@constraint_set
class Hypersimplex(NamedTuple):
    """The hypersimplex {w in [0, radius]^d : sum_j w_j = k radius}: choose k of d features.

    Its vertices have k entries equal to radius and zeros elsewhere; the oracle takes the k smallest entries of r, in
    O(d log k).

    Parameters
    ----------
    k : int
        The number of nonzeros of a vertex, at most n_features.
    radius : float
        The value of the nonzeros.

    Examples
    --------
    >>> Hypersimplex(k=2).contains([1.0, 0.5, 0.5]), Hypersimplex(k=2).contains([2.0, 0.0, 0.0])
    (True, False)
    """

    k: int
    radius: float = 1.0

    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def prepare(self):
        """Return the fields with ``k`` as an int."""
        return as_positive_integer("Hypersimplex", "k", self.k), self.radius

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("Hypersimplex", "radius", self.radius)

    def check_features(self, n_features):
        """Raise ValueError where k is larger than ``n_features``: then the set is empty."""
        check_at_most_features("Hypersimplex", self.k, n_features)

    def lmo(self, r):
        """Return radius at the k smallest entries of r."""
        keys = np.empty(r.size())
        for j in range(r.size()):
            keys[j] = r.at(j)
        indices = smallest(keys, self.k)
        values = np.empty(indices.shape[0])
        for q in range(indices.shape[0]):
            values[q] = self.radius
        return SparseVertex(indices, values)

    def restricted(self, features):
        """Return the hypersimplex of the chosen features alone."""
        return self

    def best_features(self, r, count, most):
        """Return the features with the smallest r_j, at least those of the best vertex."""
        return smallest(r, max(count, self.k))

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies the radius."""
        return 0.0

    def linear_rows(self, n_features):
        """Return the equation sum_j w_j = k radius, with 0 <= w_j <= radius."""
        total, size = np.array([self.k * self.radius]), np.full(n_features, self.radius)
        return LinearRows(np.zeros(n_features), size, A_eq=np.ones((1, n_features)), b_eq=total)

    def violation(self, w):
        """Return the largest of |sum_j w_j - k radius|, -w_j and w_j - radius."""
        return float(np.max([abs(w.sum() - self.k * self.radius), -w.min(), w.max() - self.radius]))

    def diameter(self, order=2, n_features=None):
        """Return radius (2 min(k, d - k))^(1/order); without ``n_features`` the bound for d >= 2k."""
        n_moved = self.k if n_features is None else min(self.k, n_features - self.k)
        return self.radius * (2.0 * n_moved) ** (1.0 / order) if n_moved > 0 else 0.0

    def decompose(self, w):
        """Return at most d + 1 vertices, drawn as in systematic sampling."""
        return [
            (weight, SparseVertex(taken, np.full(self.k, self.radius)))
            for weight, taken in systematic_sample(w / self.radius, self.k)
        ]

    def project(self, w):
        """Return the point of the hypersimplex nearest to ``w``."""
        return project_capped(w, self.radius, self.k * self.radius)
