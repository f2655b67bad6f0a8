"""The ball of the group lasso with one weight per group, also without negative entries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._groups import features_of, members_by_label
from condgrad.constraints._parameters import as_labels, as_reals, shown
from condgrad.constraints._protocol import best_vertex, constraint_set
from condgrad.constraints._rounding import shortfall
from condgrad.constraints.sparse.weighted_l1_ball import WeightedL1Ball
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.selection import largest
from condgrad.linalg.settings import check_positive


@constraint_set
class WeightedGroupBall(NamedTuple):
    """The ball {w : sum_g weights_g ||w_g||_2 <= radius}, or its part w >= 0: groups with prices.

    Each extreme point is nonzero on one group only. The oracle takes the group with the largest ||r_g||_2 / weights_g
    and returns -(radius / weights_g) r_g / ||r_g||_2 there; without negative entries, only the negative entries of r
    count, and the oracle returns 0 where there are none.

    Parameters
    ----------
    groups : array of int, of shape (n_features,)
        A label for each feature; features with the same label form a group, wherever they are.
    radius : float
        The budget.
    weights : array of shape (n_groups,)
        The positive price of each group, in the order of their labels.
    is_nonnegative : bool
        Whether all entries of w must be at least 0.
    members, offsets : leave out
        Computed from ``groups``: group g holds the features members[offsets[g]:offsets[g + 1]].

    Examples
    --------
    >>> ball = WeightedGroupBall(groups=[0, 1, 0], radius=5.0, weights=[1.0, 2.0])
    >>> ball.contains([3.0, 0.0, 4.0]), ball.contains([0.0, 5.0, 0.0])
    (True, False)
    """

    groups: ArrayLike
    radius: float
    weights: ArrayLike
    is_nonnegative: bool = False
    members: np.ndarray | None = None
    offsets: np.ndarray | None = None

    has_absolute_values = True
    vertex = SparseVertex
    has_projection = True

    def __repr__(self):
        fields = f"groups={shown(self.groups)}, radius={self.radius!r}, weights={shown(self.weights)}"
        return f"WeightedGroupBall({fields}{', is_nonnegative=True' if self.is_nonnegative else ''})"

    @property
    def n_features(self):
        """The number of labels."""
        return self.groups.size

    @property
    def is_symmetric(self):
        """Whether entries may have both signs."""
        return not self.is_nonnegative

    def prepare(self):
        """Return the fields with the members of each group."""
        if self.members is not None:
            return self
        groups = as_labels("WeightedGroupBall", "groups", self.groups)
        weights = as_reals("WeightedGroupBall", "weights", self.weights)
        return groups, self.radius, weights, bool(self.is_nonnegative), *members_by_label(groups)

    def check(self):
        """Raise unless the radius and all weights are positive and finite."""
        check_positive("WeightedGroupBall", "radius", self.radius)
        n_groups = self.offsets.size - 1
        if self.weights.size != n_groups:
            raise ValueError(
                f"weights of WeightedGroupBall must be {n_groups} numbers, one per group; got {self.weights.size}."
            )
        if self.weights.min() <= 0.0:
            raise ValueError(f"weights of WeightedGroupBall must be positive; got {float(self.weights.min())!r}.")

    def lmo(self, r):
        """Return -(radius / weights_g) r_g / ||r_g||_2 on the group with the largest ||r_g||_2 / weights_g."""
        scale = abs(r.at(r.argmax_abs()))
        best, g = 0.0, 0
        if scale > 0.0:
            for h in range(self.offsets.shape[0] - 1):
                squares = 0.0
                for k in range(self.offsets[h], self.offsets[h + 1]):
                    x = r.at(self.members[k]) / scale
                    if x < 0.0 or not self.is_nonnegative:
                        squares += x * x
                gain = np.sqrt(squares) / self.weights[h]
                if gain > best:
                    best, g = gain, h
        if best == 0.0:
            value = 0.0 if self.is_nonnegative else self.radius / self.weights[0]
            return SparseVertex(self.members[:1].copy(), np.full(1, value))
        first, last = self.offsets[g], self.offsets[g + 1]
        indices, values = np.empty(last - first, np.int64), np.empty(last - first)
        length = self.radius / (best * self.weights[g] * self.weights[g])
        for k in range(first, last):
            j = self.members[k]
            x = r.at(j) / scale
            indices[k - first] = j
            values[k - first] = -length * x if x < 0.0 or not self.is_nonnegative else 0.0
        return SparseVertex(indices, values)

    def norms(self, w):
        """Return ||w_g||_2 of each group."""
        return np.sqrt(np.add.reduceat(np.square(w)[self.members], self.offsets[:-1]))

    def gains(self, r):
        """Return ||r_g||_2 / weights_g of each group, of the negative entries of r alone where w >= 0."""
        return self.norms(np.minimum(r, 0.0) if self.is_nonnegative else r) / self.weights

    def best_vertices(self, r, count):
        """Return the extreme points on the ``count`` groups with the largest gains."""
        chosen = []
        for g in largest(self.gains(r), count):
            alone = np.zeros(r.size)
            indices = self.members[self.offsets[g] : self.offsets[g + 1]]
            alone[indices] = r[indices]
            chosen.append(best_vertex(self, alone))
        return chosen

    def best_features(self, r, count, most):
        """Return the features of the groups with the largest gains, as far as these are worth it."""
        gains = self.gains(r)
        chosen = largest(gains, max(1, count * gains.size // r.size))
        is_worth = -self.radius * gains[chosen] <= most
        is_worth[0] = True
        return features_of(chosen[is_worth], self.members, self.offsets)

    def restricted(self, features):
        """Return the ball of the chosen features alone, which hold whole groups."""
        is_left = np.isin(np.unique(self.groups), self.groups[features])
        return WeightedGroupBall(self.groups[features], self.radius, self.weights[is_left], self.is_nonnegative)

    def related(self, features, is_chosen):
        """Return which of the ``features`` are in a group with a chosen one."""
        return np.isin(self.groups[features], self.groups[features[is_chosen]])

    def oracle_rounding(self, r, s):
        """Return radius times the largest gain, plus <r, s>, rounded up."""
        return shortfall(lambda x: self.radius * self.gains(x).max(), r, s)

    def violation(self, w):
        """Return sum_g weights_g ||w_g||_2 - radius, or the largest -w_j where it is larger and w >= 0 is asked for."""
        over = float(self.weights @ self.norms(w) - self.radius)
        return max(over, -float(w.min())) if self.is_nonnegative else over

    def diameter(self, order=2, n_features=None):
        """Return twice the largest norm of a vertex; for w >= 0 the bound 2^(1/order) times it."""
        sizes = np.diff(self.offsets).astype(float) ** max(1.0 / order - 0.5, 0.0)
        longest = self.radius * float((sizes / self.weights).max())
        return longest * (2.0 ** (1.0 / order) if self.is_nonnegative else 2.0)

    def decompose(self, w):
        """Return one extreme point per nonzero group; the remaining weight belongs to 0, or to two opposite points."""
        norms = self.norms(w)
        parts = []
        for g in np.flatnonzero(norms):
            indices = self.members[self.offsets[g] : self.offsets[g + 1]]
            share = float(self.weights[g] * norms[g] / self.radius)
            parts.append((share, SparseVertex(indices, w[indices] / share)))
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            s = self.start(w.size)
            parts += [(rest, s)] if self.is_nonnegative else [(rest / 2, s), (rest / 2, s.scaled(-1.0))]
        return parts

    def project(self, w):
        """Return the point of the ball nearest to ``w``: group norms shrink by theta weights_g."""
        point = np.maximum(w, 0.0) if self.is_nonnegative else np.array(w)
        norms = self.norms(point)
        shrunk = WeightedL1Ball(self.radius, self.weights).project(norms)
        factors = np.divide(shrunk, norms, out=np.zeros_like(norms), where=norms > 0.0)
        point[self.members] *= np.repeat(factors, np.diff(self.offsets))
        return point
