"""The ball of the latent group lasso, whose groups overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._blocks import FeatureGroups
from condgrad.constraints._groups import members_of_lists
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints._rounding import shortfall
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.settings import check_positive


@constraint_set
class LatentGroupBall(NamedTuple):
    """The convex hull of the balls {w : ||w||_2 <= radius, w zero outside g} over groups g: nonzero on few groups.

    Groups may overlap: w is a sum of vectors, each on one group, and radius bounds the sum of their norms. (In the
    group lasso the zeros are a union of groups, here the nonzeros are.) The oracle takes the group with the largest
    ||r_g||_2 and returns -radius r_g / ||r_g||_2 there, in O(sum of the sizes of the groups).

    Parameters
    ----------
    groups : list of lists of int
        The features of each group; every feature is in at least one. The lists are stored in one array.
    radius : float
        The budget: the largest sum of norms of the parts.
    offsets : leave out
        Computed from ``groups``: where each list begins.

    References
    ----------
    Jacob, Obozinski, Vert (2009). Group lasso with overlap and graph lasso.

    Examples
    --------
    >>> ball = LatentGroupBall(groups=[[0, 1], [1, 2]], radius=5.0)
    >>> ball.contains([3.0, 4.0, 0.0]), ball.contains([3.0, 0.0, 4.0])
    (True, False)
    """

    groups: ArrayLike
    radius: float
    offsets: np.ndarray | None = None

    is_symmetric = True
    has_absolute_values = True
    vertex = SparseVertex

    def __repr__(self):
        return f"LatentGroupBall(<{self.offsets.size - 1} groups, {self.n_features} features>, radius={self.radius!r})"

    @property
    def n_features(self):
        """The number of features in all groups together."""
        return int(self.groups.max()) + 1

    def prepare(self):
        """Return the fields with the groups in one array."""
        if self.offsets is not None:
            return self
        members, offsets = members_of_lists("LatentGroupBall", self.groups)
        return members, self.radius, offsets

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("LatentGroupBall", "radius", self.radius)

    def lmo(self, r):
        """Return -radius r_g / ||r_g||_2 on the group with the largest norm, or radius e_j for r = 0."""
        g = r.best_group(self.groups, self.offsets)
        return FeatureGroups(self.groups, self.offsets).opposite(r, g, self.radius)

    def oracle_rounding(self, r, s):
        """Return radius max_g ||r_g||_2 + <r, s>, rounded up."""

        def top(x):
            return self.radius * np.sqrt(np.add.reduceat(np.square(x)[self.groups], self.offsets[:-1]).max())

        return shortfall(top, r, s)

    def diameter(self, order=2, n_features=None):
        """Return 2 radius for order >= 2 and 2 radius m^(1/order - 1/2) below, m the largest group's size: exact."""
        return 2.0 * self.radius * float(np.diff(self.offsets).max()) ** max(1.0 / order - 0.5, 0.0)
