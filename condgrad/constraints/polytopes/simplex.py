"""The simplex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._blocks import SingleFeatures
from condgrad.constraints._capped import project_capped
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints.linear_rows import LinearRows
from condgrad.constraints.vertices import Atom
from condgrad.linalg.max_tree import NegativeScore
from condgrad.linalg.selection import largest
from condgrad.linalg.settings import check_positive


@constraint_set
class Simplex(NamedTuple):
    """The simplex {w >= 0 : sum_j w_j = radius}: mixtures, portfolios, probabilities.

    Its vertices are the d points radius e_j, and the oracle takes the smallest entry of r.

    Parameters
    ----------
    radius : float
        The sum of the entries.

    Examples
    --------
    >>> Simplex().contains([0.25, 0.75]), Simplex().contains([0.25, 0.25])
    (True, False)
    """

    radius: float = 1.0

    vertex = Atom
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("Simplex", "radius", self.radius)

    def lmo(self, r):
        """Return radius e_j for the smallest r_j."""
        return Atom(r.argmin(), self.radius)

    def best_atoms(self, r, count):
        """Return the vertices on the ``count`` features with the best scores."""
        features = largest(-r, count)
        return features, np.full(features.size, self.radius)

    def score(self):
        """Return the score -r_j."""
        return NegativeScore()

    def blocks(self, n_features):
        """Return one block per feature."""
        return SingleFeatures(n_features)

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies the radius."""
        return 0.0

    def linear_rows(self, n_features):
        """Return the equation sum_j w_j = radius, with 0 <= w_j <= radius."""
        size = np.full(n_features, self.radius)
        return LinearRows(np.zeros(n_features), size, A_eq=np.ones((1, n_features)), b_eq=np.array([self.radius]))

    def violation(self, w):
        """Return the larger of |sum_j w_j - radius| and the largest -w_j."""
        return float(np.maximum(abs(w.sum() - self.radius), -w.min()))

    def diameter(self, order=2, n_features=None):
        """Return 2^(1/order) radius: the distance of any two vertices (with one feature: 0)."""
        return 0.0 if n_features == 1 else self.radius * 2.0 ** (1.0 / order)

    def decompose(self, w):
        """Return one vertex per positive entry of ``w``."""
        return [(float(w[j]) / self.radius, Atom(int(j), self.radius)) for j in np.flatnonzero(w > 0.0)]

    def project(self, w):
        """Return the point of the simplex nearest to ``w``."""
        return project_capped(w, self.radius, self.radius)
