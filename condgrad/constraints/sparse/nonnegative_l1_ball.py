"""The part of the l1 ball without negative entries."""

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
class NonnegativeL1Ball(NamedTuple):
    """The set {w >= 0 : sum_j w_j <= radius}: sparse models without negative coefficients.

    Its vertices are 0 and the d points radius e_j, and the oracle takes the smallest entry of r.

    Parameters
    ----------
    radius : float
        The budget: the largest sum a model may have.

    Examples
    --------
    >>> ball = NonnegativeL1Ball(radius=2.0)
    >>> ball.contains([1.0, 0.5]), ball.contains([1.0, -0.5])
    (True, False)
    """

    radius: float

    vertex = Atom
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("NonnegativeL1Ball", "radius", self.radius)

    def lmo(self, r):
        """Return radius e_j for the smallest r_j, or 0 where no r_j is negative."""
        j = r.argmin()
        if r.at(j) < 0.0:
            return Atom(j, self.radius)
        return Atom(0, 0.0)

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
        """Return the row sum_j w_j <= radius, with 0 <= w_j <= radius."""
        size = np.full(n_features, self.radius)
        return LinearRows(np.zeros(n_features), size, A_ub=np.ones((1, n_features)), b_ub=np.array([self.radius]))

    def violation(self, w):
        """Return the larger of sum_j w_j - radius and the largest -w_j."""
        return float(np.maximum(w.sum() - self.radius, -w.min()))

    def diameter(self, order=2, n_features=None):
        """Return 2^(1/order) radius: the distance of two vertices other than 0 (with one feature: radius)."""
        return self.radius * (1.0 if n_features == 1 else 2.0 ** (1.0 / order))

    def decompose(self, w):
        """Return one vertex per positive entry of ``w``; the remaining weight is that of the vertex 0."""
        parts = [(float(w[j]) / self.radius, Atom(int(j), self.radius)) for j in np.flatnonzero(w > 0.0)]
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            parts.append((rest, Atom(0, 0.0)))
        return parts

    def project(self, w):
        """Return the point of the set nearest to ``w``."""
        clipped = np.maximum(w, 0.0)
        return clipped if clipped.sum() <= self.radius else project_capped(w, self.radius, self.radius)
