"""The ball of the k-support norm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints._capped import systematic_sample
from condgrad.constraints._parameters import as_positive_integer, check_at_most_features
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints._rounding import norm, shortfall
from condgrad.constraints._sphere import stretch
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.selection import smallest
from condgrad.linalg.settings import check_positive


@constraint_set
class KSupportBall(NamedTuple):
    """The k-support ball: the convex hull of the vectors with at most k nonzeros and ||w||_2 <= radius.

    It is the tightest convex set around them, so tighter than the elastic net. The oracle takes the k largest entries
    of |r| and returns -radius r / ||r||_2 there, in O(d log k).

    Parameters
    ----------
    k : int
        The number of nonzeros of an extreme point, at most n_features.
    radius : float
        The Euclidean norm of an extreme point.

    References
    ----------
    Argyriou, Foygel, Srebro (2012). Sparse prediction with the k-support norm. Its proposition 2.1 is the norm.

    Examples
    --------
    >>> ball = KSupportBall(k=2, radius=5.0)
    >>> ball.contains([3.0, 4.0, 0.0]), ball.contains([3.0, 3.0, 2.0])
    (True, False)
    """

    k: int
    radius: float

    is_symmetric = True
    has_absolute_values = True
    vertex = SparseVertex

    def prepare(self):
        """Return the fields with ``k`` as an int."""
        return as_positive_integer("KSupportBall", "k", self.k), self.radius

    def check(self):
        """Raise unless the radius is positive and finite."""
        check_positive("KSupportBall", "radius", self.radius)

    def check_features(self, n_features):
        """Raise ValueError where k is larger than ``n_features``."""
        remedy = " Use L2Ball where every entry may be nonzero."
        check_at_most_features("KSupportBall", self.k, n_features, remedy)

    def lmo(self, r):
        """Return -radius r / ||r||_2 on the k largest entries of |r|."""
        keys = np.empty(r.size())
        for j in range(r.size()):
            keys[j] = -abs(r.at(j))
        indices = smallest(keys, self.k)
        values = np.empty(indices.shape[0])
        for q in range(indices.shape[0]):
            values[q] = r.at(indices[q])
        stretch(values, -self.radius)
        return SparseVertex(indices, values)

    def split(self, w):
        """Return the features by decreasing |w|, the number n_large of large ones, and the common size of the others.

        In the best decomposition of w into vectors of k nonzeros, each of these has the n_large largest entries of w
        and k - n_large others, all of one size.
        """
        order = np.argsort(-np.abs(w), kind="stable")
        sizes = np.abs(w)[order]
        tails = np.append(np.cumsum(sizes[::-1])[::-1], 0.0)
        for n_large in range(self.k - 1, 0, -1):
            common = float(tails[n_large]) / (self.k - n_large)
            if sizes[n_large - 1] > common:
                return order, n_large, common
        return order, 0, float(tails[0]) / self.k

    def norm(self, w):
        """Return the k-support norm of ``w``."""
        order, n_large, common = self.split(w)
        return float(np.hypot(np.linalg.norm(w[order[:n_large]]), common * np.sqrt(self.k - n_large)))

    def restricted(self, features):
        """Return the ball of the chosen features alone."""
        return self

    def best_features(self, r, count, most):
        """Return the features with the largest |r_j|, at least those of the best vertex."""
        return smallest(-np.abs(r), max(count, self.k))

    def oracle_rounding(self, r, s):
        """Return radius times the Euclidean norm of the k largest entries of |r|, plus <r, s>, rounded up."""
        return shortfall(lambda x: self.radius * norm(np.sort(np.abs(x))[-self.k :]), r, s)

    def violation(self, w):
        """Return the k-support norm of ``w`` minus the radius."""
        return self.norm(w) - self.radius

    def diameter(self, order=2, n_features=None):
        """Return 2 radius for order >= 2 and 2 radius k^(1/order - 1/2) below: exact."""
        return 2.0 * self.radius * self.k ** max(1.0 / order - 0.5, 0.0)

    def decompose(self, w):
        """Return at most d + 2 extreme points, drawn as in systematic sampling; the remaining weight is halved."""
        order, n_large, common = self.split(w)
        norm = self.norm(w)
        parts = []
        if norm > 0.0:
            large, others, n_drawn = order[:n_large], order[n_large:], self.k - n_large
            if common > 0.0:
                draws = systematic_sample(np.abs(w)[others] / common, n_drawn)
            else:
                draws = [(1.0, np.arange(n_drawn))]
            for weight, places in draws:
                drawn = others[places]
                values = np.concatenate([w[large], np.copysign(common, w[drawn])]) * (self.radius / norm)
                parts.append((weight * min(norm / self.radius, 1.0), SparseVertex(np.append(large, drawn), values)))
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            s = self.start(w.size)
            parts += [(rest / 2, s), (rest / 2, s.scaled(-1.0))]
        return parts
