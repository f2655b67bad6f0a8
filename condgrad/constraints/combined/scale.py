"""Multiples of a set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints._rounding import rounded_up, trusted
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.linalg.vectors import Vector


@compiled
class Opposite(NamedTuple):
    """The vector -r, as a view."""

    r: Vector

    def size(self):
        """Return the number of entries."""
        return self.r.size()

    def at(self, j):
        """Return entry ``j``."""
        return -self.r.at(j)

    def argmax_abs(self):
        """Return the first index of the largest absolute value."""
        return self.r.argmax_abs()

    def argmin(self):
        """Return the first index of the smallest value."""
        best, where_best = self.at(0), 0
        for j in range(1, self.size()):
            if self.at(j) < best:
                best, where_best = self.at(j), j
        return where_best

    def argmax_weighted(self, weights):
        """Return the first index of the largest ``|v_j| / weights_j``."""
        return self.r.argmax_weighted(weights)

    def best_group(self, members, offsets):
        """Return the first group with the largest sum of squares."""
        return self.r.best_group(members, offsets)

    def inner(self, v):
        """Return the inner product with the array ``v``."""
        return -self.r.inner(v)


@constraint_set
class Scale(NamedTuple):
    """The set {factor w : w in constraint}, larger, smaller or mirrored.

    Parameters
    ----------
    constraint : a constraint set
    factor : float
        Any number but 0; a negative one mirrors the set at the origin.

    Examples
    --------
    >>> from condgrad.constraints import Simplex
    >>> Scale(Simplex(), -2.0).contains([-1.5, -0.5])
    True
    """

    constraint: object
    factor: float

    def prepare(self):
        """Return the fields with ``constraint`` as a constraint set."""
        return as_constraint_set(self.constraint), self.factor

    def check(self):
        """Raise unless the factor is finite and not zero."""
        if not np.isfinite(self.factor) or self.factor == 0.0:
            raise ValueError(f"factor of Scale must be finite and not 0; got {self.factor!r}.")

    @property
    def vertex(self):
        """The kind of vertex, that of the set."""
        return self.constraint.vertex

    @property
    def is_polytope(self):
        """Whether the set is a polytope."""
        return self.constraint.is_polytope

    @property
    def has_projection(self):
        """Whether the set has a projection."""
        return self.constraint.has_projection

    @property
    def n_features(self):
        """The dimension of the set, where it fixes one."""
        return self.constraint.n_features

    def check_features(self, n_features):
        """Raise ValueError where the set does not fit data with ``n_features`` columns."""
        self.constraint.check_features(n_features)

    def lmo(self, r):
        """Return factor times the set's vertex for sign(factor) r."""
        if self.factor < 0.0:
            return self.constraint.lmo(Opposite(r)).scaled(self.factor)
        return self.constraint.lmo(r).scaled(self.factor)

    def score(self):
        """Return the set's own score; a mirrored set has none, as the tree of r does not score -r."""
        return self.constraint.score() if self.factor > 0.0 else None

    def blocks(self, n_features):
        """Return the set's own blocks; a mirrored set has none, as its oracle may scan all of -r."""
        return self.constraint.blocks(n_features) if self.factor > 0.0 else None

    def best_atoms(self, r, count):
        """Return factor times the set's best vertices for sign(factor) r."""
        features, values = self.constraint.best_atoms(np.sign(self.factor) * r, count)
        return features, self.factor * values

    def oracle_rounding(self, r, s):
        """Return |factor| times the set's bound at sign(factor) r, plus the rounding of the products with factor."""
        own = self.constraint.oracle_rounding(np.sign(self.factor) * r, s.scaled(1.0 / self.factor))
        return rounded_up(abs(self.factor) * own, 1) + trusted(r, s, 8)

    def reach(self, c):
        """Return |factor| times the set's reach: as exact as that."""
        return rounded_up(abs(self.factor) * self.constraint.reach(c), 1)

    def violation(self, w):
        """Return |factor| times the set's violation at w / factor."""
        return abs(self.factor) * self.constraint.violation(w / self.factor)

    @property
    def is_violation_searched(self):
        """Whether the set's is a search."""
        return self.constraint.is_violation_searched

    def diameter(self, order=2, n_features=None):
        """Return |factor| times the set's diameter: as exact as that."""
        return abs(self.factor) * self.constraint.diameter(order, n_features)

    def decompose(self, w):
        """Return the vertices of the set's own decomposition, scaled."""
        return [(weight, s.scaled(self.factor)) for weight, s in self.constraint.decompose(w / self.factor)]

    def project(self, w):
        """Return the point nearest to ``w``, if the set has a projection."""
        return self.factor * self.constraint.project(w / self.factor)
