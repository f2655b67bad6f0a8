"""Sums of sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condgrad.constraints._protocol import ConstraintSet, as_array, best_vertex, lowest
from condgrad.constraints._rounding import rounded_up, shortfall
from condgrad.constraints._several import as_sets, common_vertex
from condgrad.constraints.vertices import DenseVertex, SparseVertex, Vertex
from condgrad.linalg.vectors import Vector


class MinkowskiSum(ConstraintSet):
    """The set {w_1 + w_2 + ... : w_k in sets[k]}: models that are a sum of simple parts, like sparse plus smooth.

    The oracle adds the vertices of all sets. It is not compiled itself, but it calls compiled oracles of the sets where
    it can.

    Parameters
    ----------
    sets : sequence of constraint sets

    Examples
    --------
    >>> from condgrad.constraints import L1Ball, LinfBall
    >>> spiky = MinkowskiSum([L1Ball(1.0), LinfBall(0.1)])
    >>> spiky.contains([1.1, -0.1]), spiky.contains([1.1, 0.2])
    (True, False)
    """

    def __init__(self, sets: Sequence[object]) -> None:
        self.sets, self.n_features = as_sets("MinkowskiSum", sets)
        self.is_polytope = all(one.is_polytope for one in self.sets)
        self.is_symmetric = all(one.is_symmetric for one in self.sets)
        self.vertex = common_vertex(self.sets)

    def __repr__(self) -> str:
        return f"MinkowskiSum({self.sets!r})"

    def check_features(self, n_features: int) -> None:
        """Raise ValueError where one of the sets does not fit data with ``n_features`` columns."""
        for one in self.sets:
            one.check_features(n_features)

    def lmo(self, r: Vector) -> Vertex:
        """Return the sum of the vertices of all sets."""
        vertices = [best_vertex(one, as_array(r)) for one in self.sets]
        if self.vertex is DenseVertex:
            return DenseVertex(np.asarray(sum(s.to_dense(r.size()) for s in vertices)))
        supports = [s.support() for s in vertices]
        indices, places = np.unique(np.concatenate([indices for indices, _ in supports]), return_inverse=True)
        return SparseVertex(indices, np.bincount(places, np.concatenate([values for _, values in supports])))

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus the lowest values over all sets, each with its own rounding."""
        return shortfall(lambda x: -sum(lowest(one, x) for one in self.sets), r, s)

    def reach(self, c: np.ndarray) -> float:
        """Return the sum over the sets: as exact as they are."""
        return rounded_up(sum(one.reach(c) for one in self.sets), len(self.sets))

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the sum of the diameters: a bound."""
        return float(sum(one.diameter(order, n_features) for one in self.sets))
