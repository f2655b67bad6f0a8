"""The l1 ball."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._blocks import SingleFeatures
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints.linear_rows import split_rows
from condgrad.constraints.vertices import Atom
from condgrad.linalg.max_tree import AbsScore
from condgrad.linalg.selection import largest
from condgrad.linalg.settings import check_positive


@constraint_set
class L1Ball(NamedTuple):
    """The l1 ball {w : ||w||_1 <= radius}: sparse models.

    Its vertices are the 2d points +-radius e_j, and the oracle takes the largest entry of |r|.

    Parameters
    ----------
    radius : float
        The budget: the largest l1 norm a model may have.

    Examples
    --------
    >>> L1Ball(radius=2.0).contains([1.0, -1.0])
    True
    """

    radius: float

    is_symmetric = True
    vertex = Atom
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("L1Ball", "radius", self.radius)

    def lmo(self, r):
        """Return -radius sign(r_j) e_j for the largest |r_j|."""
        j = r.argmax_abs()
        return Atom(j, -self.radius if r.at(j) > 0.0 else self.radius)

    def far_vertices(self, n_features):
        """Return two opposite vertices: all are equally large."""
        return Atom(0, self.radius), Atom(0, -self.radius)

    def best_atoms(self, r, count):
        """Return the vertices on the ``count`` features with the best scores."""
        features = largest(np.abs(r), count)
        return features, np.where(r[features] > 0.0, -self.radius, self.radius)

    def atom_sizes(self, n_features):
        """Return the radius for every feature."""
        return np.full(n_features, self.radius)

    def score(self):
        """Return the score |r_j|."""
        return AbsScore()

    def blocks(self, n_features):
        """Return one block per feature."""
        return SingleFeatures(n_features)

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies +-radius."""
        return 0.0

    def linear_rows(self, n_features):
        """Return the row sum_j |w_j| <= radius."""
        return split_rows(np.ones(n_features), self.radius, np.full(n_features, self.radius))

    def violation(self, w):
        """Return ||w||_1 - radius."""
        return float(np.abs(w).sum() - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return 2 radius: the distance of opposite vertices, in every l_order norm."""
        return 2.0 * self.radius

    def decompose(self, w):
        """Return one vertex per nonzero of ``w``; the remaining weight is split over two opposite ones."""
        support = np.flatnonzero(w)
        parts = [(abs(w[j]) / self.radius, Atom(int(j), float(np.copysign(self.radius, w[j])))) for j in support]
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            parts += [(rest / 2, Atom(0, self.radius)), (rest / 2, Atom(0, -self.radius))]
        return parts

    def project(self, w):
        """Return the point of the ball nearest to ``w``."""
        if np.abs(w).sum() <= self.radius:
            return np.array(w)
        sizes = np.sort(np.abs(w))[::-1]
        excess = (np.cumsum(sizes) - self.radius) / np.arange(1, sizes.size + 1)
        threshold = excess[np.flatnonzero(sizes > excess)[-1]]
        return np.sign(w) * np.maximum(np.abs(w) - threshold, 0.0)
