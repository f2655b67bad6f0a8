"""The ball of the sparse group lasso."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import kernel
from condgrad.constraints._groups import features_of, members_by_label
from condgrad.constraints._parameters import as_labels, shown
from condgrad.constraints._protocol import best_vertex, constraint_set
from condgrad.constraints._rounding import WIDE_EPS, inner_with_error, norm, shortfall
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.group_norm import GroupNorm, dual_norms
from condgrad.linalg.selection import largest
from condgrad.linalg.settings import check_positive
from condgrad.linalg.vectors import inner


@constraint_set
class SparseGroupBall(NamedTuple):
    """The ball {w : l1_weight ||w||_1 + sum_g ||w_g||_2 <= radius}: few groups, and few features in each.

    An extreme point is nonzero on one group only. The dual norm of group g is the t with
    ||(|r_g| - l1_weight t)_+||_2 = t, found by Newton's method; the oracle takes the group with the largest one and
    returns a multiple of -sign(r_g) (|r_g| - l1_weight t)_+ there. The cost is O(d) times a few Newton steps.

    Parameters
    ----------
    groups : array of int, of shape (n_features,)
        A label for each feature; features with the same label form a group, wherever they are.
    radius : float
        The budget.
    l1_weight : float
        The weight of the l1 norm relative to the sum of group norms; GroupBall is the case of 0.
    members, offsets : leave out
        Computed from ``groups``: group g holds the features members[offsets[g]:offsets[g + 1]].

    References
    ----------
    Simon, Friedman, Hastie, Tibshirani (2013). A sparse-group lasso.

    Examples
    --------
    >>> ball = SparseGroupBall(groups=[0, 1, 0], radius=12.0, l1_weight=1.0)
    >>> ball.contains([3.0, 0.0, 4.0]), ball.contains([3.0, 4.0, 0.0])
    (True, False)
    """

    groups: ArrayLike
    radius: float
    l1_weight: float = 1.0
    members: np.ndarray | None = None
    offsets: np.ndarray | None = None

    is_symmetric = True
    has_absolute_values = True
    vertex = SparseVertex
    has_projection = True

    def __repr__(self):
        return f"SparseGroupBall(groups={shown(self.groups)}, radius={self.radius!r}, l1_weight={self.l1_weight!r})"

    @property
    def n_features(self):
        """The number of labels."""
        return self.groups.size

    def prepare(self):
        """Return the fields with the members of each group."""
        if self.members is not None:
            return self
        groups = as_labels("SparseGroupBall", "groups", self.groups)
        return groups, self.radius, self.l1_weight, *members_by_label(groups)

    def check(self):
        """Raise unless the radius and the weight are positive and finite."""
        check_positive("SparseGroupBall", "radius", self.radius)
        check_positive("SparseGroupBall", "l1_weight", self.l1_weight)

    def lmo(self, r):
        """Return a multiple of -sign(r_g) (|r_g| - l1_weight t)_+ on the group with the largest dual norm t."""
        largest = abs(r.at(r.argmax_abs()))
        if largest == 0.0:
            return SparseVertex(np.zeros(1, np.int64), np.full(1, self.radius / (1.0 + self.l1_weight)))
        sizes = np.empty(r.size())
        for k in range(r.size()):
            sizes[k] = abs(r.at(self.members[k])) / largest
        best, g = -1.0, 0
        for h in range(self.offsets.shape[0] - 1):
            t = GroupNorm(self.l1_weight, False).dual(sizes, self.offsets[h], self.offsets[h + 1])
            if t > best:
                best, g = t, h
        count = 0
        for k in range(self.offsets[g], self.offsets[g + 1]):
            count += 1 if sizes[k] > self.l1_weight * best else 0
        indices = np.empty(count, np.int64)
        values = np.empty(count)
        q = 0
        for k in range(self.offsets[g], self.offsets[g + 1]):
            if sizes[k] > self.l1_weight * best:
                indices[q] = self.members[k]
                values[q] = sizes[k] - self.l1_weight * best
                q += 1
        length = self.radius / (self.l1_weight * values.sum() + np.sqrt(inner(values, values)))
        for q in range(count):
            values[q] *= -length if r.at(indices[q]) > 0.0 else length
        return SparseVertex(indices, values)

    def norms(self, w):
        """Return l1_weight ||w_g||_1 + ||w_g||_2 of each group."""
        squares = np.add.reduceat(np.square(w)[self.members], self.offsets[:-1])
        return self.l1_weight * np.add.reduceat(np.abs(w)[self.members], self.offsets[:-1]) + np.sqrt(squares)

    def best_vertices(self, r, count):
        """Return the extreme points on the ``count`` groups with the largest Euclidean norms: likely the best ones."""
        squares = np.add.reduceat(np.square(r)[self.members], self.offsets[:-1])
        chosen = [best_vertex(self, r)]
        for g in largest(squares, count):
            alone = np.zeros(r.size)
            indices = self.members[self.offsets[g] : self.offsets[g + 1]]
            alone[indices] = r[indices]
            if alone.any() and not np.isin(chosen[0].indices, indices).all():
                chosen.append(best_vertex(self, alone))
        return chosen[:count]

    def best_features(self, r, count, most):
        """Return the features of groups with large Euclidean norms of r, as far as their dual norms are worth it."""
        sizes = np.abs(r)[self.members]
        squares = np.add.reduceat(np.square(sizes), self.offsets[:-1])
        chosen = largest(squares, max(1, count * squares.size // r.size))
        slopes = -self.radius * dual_norms(GroupNorm(self.l1_weight), self.offsets, sizes)[chosen]
        best = np.flatnonzero(self.groups == self.groups[best_vertex(self, r).indices[0]])
        return np.union1d(best, features_of(chosen[slopes <= most], self.members, self.offsets))

    def restricted(self, features):
        """Return the ball of the chosen features alone."""
        return SparseGroupBall(self.groups[features], self.radius, self.l1_weight)

    def related(self, features, is_chosen):
        """Return which of the ``features`` are in a group with a chosen one."""
        return np.isin(self.groups[features], self.groups[features[is_chosen]])

    def oracle_rounding(self, r, s):
        """Return radius times a bound of the dual norm of r, plus <r, s>, rounded up.

        For each group, ||(|r_g| - l1_weight t)_+||_2 decreases as t grows: if it is larger than t, it is an upper bound
        of the dual norm.
        """

        def top(x):
            t = -inner_with_error(x, s)[0] / self.radius
            rests = np.maximum(np.abs(x) - self.l1_weight * t, 0.0)
            lengths = np.sqrt(np.add.reduceat(np.square(rests)[self.members], self.offsets[:-1]))
            rounding = 8 * (x.size + 8) * WIDE_EPS * norm(x)
            return self.radius * (max(t, lengths.max()) + rounding)

        return shortfall(top, r, s)

    def violation(self, w):
        """Return l1_weight ||w||_1 + sum_g ||w_g||_2 - radius."""
        return float(self.norms(w).sum() - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return the distance of +-spikes, or of +-constants on the largest group: exact for orders 1 and >= 2."""
        largest_group = float(np.diff(self.offsets).max())
        return 2.0 * self.radius / (self.l1_weight + largest_group ** min(0.5 - 1.0 / order, 0.0))

    def decompose(self, w):
        """Return one extreme point per nonzero group; the remaining weight is split over two opposite ones."""
        norms = self.norms(w)
        parts = []
        for g in np.flatnonzero(norms):
            indices = self.members[self.offsets[g] : self.offsets[g + 1]]
            parts.append((float(norms[g]) / self.radius, SparseVertex(indices, self.radius * w[indices] / norms[g])))
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            s = self.start(w.size)
            parts += [(rest / 2, s), (rest / 2, s.scaled(-1.0))]
        return parts

    def shrunk(self, w, theta):
        """Return the minimiser of ||x - w||^2 / 2 + theta times the norm of x: entries shrink, then groups."""
        x = np.sign(w) * np.maximum(np.abs(w) - self.l1_weight * theta, 0.0)
        lengths = np.sqrt(np.add.reduceat(np.square(x)[self.members], self.offsets[:-1]))
        factors = np.maximum(1.0 - theta / np.maximum(lengths, theta), 0.0)
        x[self.members] *= np.repeat(factors, np.diff(self.offsets))
        return x

    def project(self, w):
        """Return the point of the ball nearest to ``w``: shrunk by the theta at which the norm is the radius."""
        if self.violation(w) <= 0.0:
            return np.array(w)
        low, high = 0.0, float(np.abs(w).max()) / self.l1_weight  # the norm falls from above the radius to 0
        sizes = np.abs(w)[self.members]
        while low < (middle := (low + high) / 2) < high:
            is_outside = shrunk_norm(sizes, self.offsets, self.l1_weight, middle) > self.radius
            low, high = (middle, high) if is_outside else (low, middle)
        return self.shrunk(w, high)


@kernel
def shrunk_norm(sizes, offsets, l1_weight, theta):
    """Return the norm of a vector of absolute values, in the order of the groups, after it was shrunk by theta."""
    norm = 0.0
    for g in range(offsets.shape[0] - 1):
        total, squares = 0.0, 0.0
        for k in range(offsets[g], offsets[g + 1]):
            rest = max(sizes[k] - l1_weight * theta, 0.0)
            total += rest
            squares += rest * rest
        length = np.sqrt(squares)
        if length > theta:
            norm += (1.0 - theta / length) * (l1_weight * total + length)
    return norm
