"""The k-sparse polytope."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._capped import project_capped, systematic_sample
from condgrad.constraints._parameters import as_positive_integer, check_at_most_features
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints.linear_rows import split_rows
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.selection import smallest
from condgrad.linalg.settings import check_positive


@constraint_set
class KSparsePolytope(NamedTuple):
    """The k-sparse polytope: the convex hull of the vectors with at most k nonzeros, all of them +-radius.

    It is {w : max_j |w_j| <= radius, sum_j |w_j| <= k radius}; the oracle takes the k largest entries of |r|, in
    O(d log k).

    Parameters
    ----------
    k : int
        The number of nonzeros of a vertex, at most n_features.
    radius : float
        The absolute value of the nonzeros.

    Examples
    --------
    >>> polytope = KSparsePolytope(k=2, radius=1.0)
    >>> polytope.contains([1.0, -0.5, 0.5]), polytope.contains([1.0, -1.0, 0.5])
    (True, False)
    """

    k: int
    radius: float

    is_symmetric = True
    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def prepare(self):
        """Return the fields with ``k`` as an int."""
        return as_positive_integer("KSparsePolytope", "k", self.k), self.radius

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("KSparsePolytope", "radius", self.radius)

    def check_features(self, n_features):
        """Raise ValueError where k is larger than ``n_features``."""
        remedy = " Use LinfBall where every entry may be nonzero."
        check_at_most_features("KSparsePolytope", self.k, n_features, remedy)

    def lmo(self, r):
        """Return -radius sign(r_j) at the k largest entries of |r|."""
        keys = np.empty(r.size())
        for j in range(r.size()):
            keys[j] = -abs(r.at(j))
        indices = smallest(keys, self.k)
        values = np.empty(indices.shape[0])
        for q in range(indices.shape[0]):
            values[q] = -self.radius if r.at(indices[q]) > 0.0 else self.radius
        return SparseVertex(indices, values)

    def restricted(self, features):
        """Return the polytope of the chosen features alone."""
        return self

    def best_features(self, r, count, most):
        """Return the features with the largest |r_j|, at least those of the best vertex."""
        return smallest(-np.abs(r), max(count, self.k))

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies +-radius."""
        return 0.0

    def linear_rows(self, n_features):
        """Return the row sum_j |w_j| <= k radius, with |w_j| <= radius."""
        return split_rows(np.ones(n_features), self.k * self.radius, np.full(n_features, self.radius))

    def violation(self, w):
        """Return the larger of max_j |w_j| - radius and sum_j |w_j| - k radius."""
        sizes = np.abs(w)
        return float(np.maximum(sizes.max() - self.radius, sizes.sum() - self.k * self.radius))

    def diameter(self, order=2, n_features=None):
        """Return 2 radius k^(1/order), the distance of opposite vertices."""
        return 2.0 * self.radius * self.k ** (1.0 / order)

    def decompose(self, w):
        """Return at most 2d + 1 vertices, drawn as in systematic sampling."""
        t = np.clip(w / self.radius, -1.0, 1.0)
        sizes = np.abs(t)
        # s_j >= |t_j| with sum k: the weight of the vertices with feature j; (s_j + t_j) / 2 of it has +radius there.
        free = sizes.size - sizes.sum()
        s = sizes + (1.0 - sizes) * max(self.k - sizes.sum(), 0.0) / free if free > 0.0 else sizes
        shares = np.column_stack([(s + t) / 2, (s - t) / 2]).ravel()
        return [
            (weight, SparseVertex(taken // 2, np.where(taken % 2 == 0, self.radius, -self.radius)))
            for weight, taken in systematic_sample(shares, self.k)
        ]

    def project(self, w):
        """Return the point of the polytope nearest to ``w``."""
        sizes = np.minimum(np.abs(w), self.radius)
        if sizes.sum() > self.k * self.radius:
            sizes = project_capped(np.abs(w), self.radius, self.k * self.radius)
        return np.copysign(sizes, w)
