"""Shifted sets."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_reals, shown
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints._rounding import trusted
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.constraints.vertices import DenseVertex


@constraint_set
class Shift(NamedTuple):
    """The set {w + offset : w in constraint}: models near a given one.

    Parameters
    ----------
    constraint : a constraint set
    offset : array of shape (n_features,)

    Examples
    --------
    >>> from condgrad.constraints import L1Ball
    >>> Shift(L1Ball(1.0), offset=[5.0, 5.0]).contains([5.5, 4.5])
    True
    """

    constraint: object
    offset: ArrayLike

    vertex = DenseVertex

    def __repr__(self):
        return f"Shift(constraint={self.constraint!r}, offset={shown(self.offset)})"

    def prepare(self):
        """Return the fields with ``constraint`` as a constraint set and ``offset`` as an array of floats."""
        return as_constraint_set(self.constraint), as_reals("Shift", "offset", self.offset)

    def check(self):
        """Raise unless the set has vectors of the length of the offset."""
        self.constraint.check_features(self.offset.size)

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
        """The length of the offset."""
        return self.offset.size

    def lmo(self, r):
        """Return the set's vertex for r, plus the offset."""
        values = self.constraint.lmo(r).to_dense(self.offset.shape[0])
        for j in range(values.shape[0]):
            values[j] += self.offset[j]
        return DenseVertex(values)

    def oracle_rounding(self, r, s):
        """Return the set's bound, plus the rounding of the sum with the offset."""
        moved = DenseVertex(s.values - self.offset)
        sizes = DenseVertex(abs(s.values) + abs(moved.values))
        return self.constraint.oracle_rounding(r, moved) + trusted(r, sizes, 4)

    def reach(self, c):
        """Return the set's reach: as exact as that."""
        return self.constraint.reach(c)

    def violation(self, w):
        """Return the set's violation at w - offset."""
        return self.constraint.violation(w - self.offset)

    @property
    def is_violation_searched(self):
        """Whether the set's is a search."""
        return self.constraint.is_violation_searched

    def diameter(self, order=2, n_features=None):
        """Return the set's diameter: as exact as that."""
        return self.constraint.diameter(order, self.n_features)

    def decompose(self, w):
        """Return the vertices of the set's own decomposition, shifted."""
        parts = self.constraint.decompose(w - self.offset)
        return [(weight, DenseVertex(s.to_dense(self.n_features) + self.offset)) for weight, s in parts]

    def project(self, w):
        """Return the point nearest to ``w``, if the set has a projection."""
        return self.constraint.project(w - self.offset) + self.offset
