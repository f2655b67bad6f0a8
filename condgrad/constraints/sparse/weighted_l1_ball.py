"""The l1 ball with one weight per feature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._blocks import SingleFeatures
from condgrad.constraints._parameters import as_reals, shown
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints.linear_rows import split_rows
from condgrad.constraints.vertices import Atom
from condgrad.linalg.max_tree import WeightedScore
from condgrad.linalg.rounding import UNIT
from condgrad.linalg.selection import largest
from condgrad.linalg.settings import check_positive


@constraint_set
class WeightedL1Ball(NamedTuple):
    """The weighted l1 ball {w : sum_j weights_j |w_j| <= radius}: sparse models where some features cost more.

    Its vertices are the 2d points +-(radius / weights_j) e_j, and the oracle takes the largest |r_j| / weights_j.

    Parameters
    ----------
    radius : float
        The budget.
    weights : array of shape (n_features,)
        The positive price of each feature.

    Examples
    --------
    >>> ball = WeightedL1Ball(radius=2.0, weights=[1.0, 4.0])
    >>> ball.contains([2.0, 0.0]), ball.contains([0.0, 2.0])
    (True, False)
    """

    radius: float
    weights: ArrayLike

    is_symmetric = True
    vertex = Atom
    is_polytope = True
    has_absolute_values = True
    has_projection = True

    def __repr__(self):
        return f"WeightedL1Ball(radius={self.radius!r}, weights={shown(self.weights)})"

    @property
    def n_features(self):
        """The length of ``weights``."""
        return self.weights.size

    def prepare(self):
        """Return the fields with ``weights`` as an array of floats."""
        return self.radius, as_reals("WeightedL1Ball", "weights", self.weights)

    def check(self):
        """Raise unless the radius and all weights are positive and finite."""
        check_positive("WeightedL1Ball", "radius", self.radius)
        if self.weights.min() <= 0.0:
            raise ValueError(
                f"weights of WeightedL1Ball must be positive; got {float(self.weights.min())!r}. "
                "LimitedL1Ball takes features of weight 0, with limits."
            )
        if self.radius / float(self.weights.min()) == np.inf:
            raise ValueError(
                f"radius / weights of WeightedL1Ball must be finite; got the weight {float(self.weights.min())!r}."
            )

    def lmo(self, r):
        """Return -(radius / weights_j) sign(r_j) e_j for the largest |r_j| / weights_j."""
        j = r.argmax_weighted(self.weights)
        value = self.radius / self.weights[j]
        return Atom(j, -value if r.at(j) > 0.0 else value)

    def best_atoms(self, r, count):
        """Return the vertices on the ``count`` features with the best scores."""
        features = largest(np.abs(r) / self.weights, count)
        return features, np.where(r[features] > 0.0, -1.0, 1.0) * self.radius / self.weights[features]

    def score(self):
        """Return the score |r_j| / weights_j."""
        return WeightedScore(self.weights)

    def blocks(self, n_features):
        """Return one block per feature."""
        return SingleFeatures(n_features)

    def oracle_rounding(self, r, s):
        """Return a bound of the effect of rounding on radius / weights_j and the quotients |r_j| / weights_j."""
        size = 8.0 * UNIT * abs(float(r[s.index])) * abs(s.value)
        return float(np.nextafter(size, np.inf)) if r[s.index] else 0.0  # must not underflow to 0

    def linear_rows(self, n_features):
        """Return the row sum_j weights_j |w_j| <= radius."""
        return split_rows(self.weights, self.radius, self.radius / self.weights)

    def violation(self, w):
        """Return sum_j weights_j |w_j| - radius."""
        return float((self.weights * np.abs(w)).sum() - self.radius)

    def diameter(self, order=2, n_features=None):
        """Return 2 radius / min(weights): the distance of the two farthest vertices, in every l_order norm."""
        return 2.0 * self.radius / float(self.weights.min())

    def decompose(self, w):
        """Return one vertex per nonzero of ``w``; the remaining weight is split over two opposite ones."""
        ends = self.radius / self.weights
        parts = [(abs(w[j]) / ends[j], Atom(int(j), float(np.copysign(ends[j], w[j])))) for j in np.flatnonzero(w)]
        rest = 1.0 - sum(weight for weight, _ in parts)
        if rest > 0.0:
            parts += [(rest / 2, Atom(0, float(ends[0]))), (rest / 2, Atom(0, -float(ends[0])))]
        return parts

    def project(self, w):
        """Return the point of the ball nearest to ``w``: |w_j| shrinks by theta weights_j."""
        if self.violation(w) <= 0.0:
            return np.array(w)
        ratios = np.abs(w) / self.weights
        order = np.argsort(-ratios)
        spent = np.cumsum((self.weights * np.abs(w))[order]) - self.radius
        thetas = spent / np.cumsum(self.weights[order] ** 2)
        theta = thetas[np.flatnonzero(ratios[order] > thetas)[-1]]
        return np.sign(w) * np.maximum(np.abs(w) - theta * self.weights, 0.0)
