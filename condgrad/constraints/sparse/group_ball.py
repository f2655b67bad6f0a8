"""The ball of the group lasso."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._blocks import FeatureGroups
from condgrad.constraints._capped import project_capped
from condgrad.constraints._groups import features_of, members_by_label
from condgrad.constraints._parameters import as_labels, shown
from condgrad.constraints._protocol import best_vertex, constraint_set
from condgrad.constraints._rounding import shortfall
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.max_tree import GroupScore
from condgrad.linalg.selection import largest
from condgrad.linalg.settings import check_positive


@constraint_set
class GroupBall(NamedTuple):
    """The l1/l2 ball {w : sum_g ||w_g||_2 <= radius}: whole groups of features are zero.

    Each extreme point is nonzero on one group only; the oracle takes the group with the largest ||r_g||_2 and returns
    -radius r_g / ||r_g||_2 there.

    Parameters
    ----------
    groups : array of int, of shape (n_features,)
        A label for each feature; features with the same label form a group, wherever they are.
    radius : float
        The budget: the largest sum of group norms a model may have.
    members, offsets : leave out
        Computed from ``groups``: group g holds the features members[offsets[g]:offsets[g + 1]].

    Examples
    --------
    >>> ball = GroupBall(groups=[0, 1, 0], radius=5.0)
    >>> ball.contains([3.0, 0.0, 4.0]), ball.contains([3.0, 4.0, 0.0])
    (True, False)
    """

    groups: ArrayLike
    radius: float
    members: np.ndarray | None = None
    offsets: np.ndarray | None = None

    is_symmetric = True
    has_absolute_values = True
    vertex = SparseVertex
    has_projection = True

    def __repr__(self):
        return f"GroupBall(groups={shown(self.groups)}, radius={self.radius!r})"

    @property
    def n_features(self):
        """The number of labels."""
        return self.groups.size

    def prepare(self):
        """Return the fields with the members of each group."""
        if self.members is not None:
            return self
        groups = as_labels("GroupBall", "groups", self.groups)
        return groups, self.radius, *members_by_label(groups)

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("GroupBall", "radius", self.radius)

    def lmo(self, r):
        """Return -radius r_g / ||r_g||_2 on the group with the largest norm, or radius e_j for r = 0."""
        g = r.best_group(self.members, self.offsets)
        return FeatureGroups(self.members, self.offsets).opposite(r, g, self.radius)

    def norms(self, w):
        """Return ||w_g||_2 of each group."""
        return np.sqrt(np.add.reduceat(np.square(w)[self.members], self.offsets[:-1]))

    def best_vertices(self, r, count):
        """Return the extreme points on the ``count`` groups with the largest norms."""
        chosen = []
        for g in largest(self.norms(r), count):
            alone = np.zeros(r.size)
            indices = self.members[self.offsets[g] : self.offsets[g + 1]]
            alone[indices] = r[indices]
            chosen.append(best_vertex(self, alone) if alone.any() else SparseVertex(indices, np.zeros(indices.size)))
        return chosen

    def best_features(self, r, count, most):
        """Return the features of the groups with the largest norms of r, as far as these are worth it."""
        norms = self.norms(r)
        chosen = largest(norms, max(1, count * norms.size // r.size))
        is_worth = -self.radius * norms[chosen] <= most
        is_worth[0] = True
        return features_of(chosen[is_worth], self.members, self.offsets)

    def restricted(self, features):
        """Return the ball of the chosen features alone, which hold whole groups."""
        return GroupBall(self.groups[features], self.radius)

    def related(self, features, is_chosen):
        """Return which of the ``features`` are in a group with a chosen one."""
        return np.isin(self.groups[features], self.groups[features[is_chosen]])

    def blocks(self, n_features):
        """Return the groups."""
        return FeatureGroups(self.members, self.offsets)

    def score(self):
        """Return the score sum over a group of r_j^2."""
        group_of = np.empty(self.groups.size, dtype=np.int64)
        group_of[self.members] = np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))
        return GroupScore(group_of, self.offsets.size - 1)

    def oracle_rounding(self, r, s):
        """Return radius max_g ||r_g||_2 + <r, s>, rounded up."""
        return shortfall(lambda x: self.radius * self.norms(x).max(), r, s)

    def violation(self, w):
        """Return sum_g ||w_g||_2 - radius."""
        return float(self.norms(w).sum() - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return 2 radius for order >= 2 and 2 radius m^(1/order - 1/2) below, m the largest group's size: exact."""
        if order >= 2:
            return 2.0 * self.radius
        return 2.0 * self.radius * float(np.diff(self.offsets).max()) ** (1.0 / order - 0.5)

    def decompose(self, w):
        """Return one extreme point per nonzero group; the remaining weight is split over two opposite ones."""
        norms = self.norms(w)
        parts = []
        for g in np.flatnonzero(norms):
            indices = self.members[self.offsets[g] : self.offsets[g + 1]]
            parts.append((float(norms[g]) / self.radius, SparseVertex(indices, self.radius * w[indices] / norms[g])))
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            indices = self.members[: self.offsets[1]]
            values = np.zeros(indices.size)
            values[0] = self.radius
            parts += [(rest / 2, SparseVertex(indices, values)), (rest / 2, SparseVertex(indices, -values))]
        return parts

    def project(self, w):
        """Return the point of the ball nearest to ``w``: group norms shrink by one threshold."""
        norms = self.norms(w)
        if norms.sum() <= self.radius:
            return np.array(w)
        shrunk = project_capped(norms, self.radius, self.radius)
        factors = np.divide(shrunk, norms, out=np.zeros_like(norms), where=norms > 0.0)
        point = np.empty_like(w)
        point[self.members] = w[self.members] * np.repeat(factors, np.diff(self.offsets))
        return point
