"""Convex hulls of several sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condgrad.constraints._protocol import ConstraintSet, as_array, best_vertex, lowest
from condgrad.constraints._rounding import rounded_up, shortfall
from condgrad.constraints._several import as_sets, common_vertex
from condgrad.constraints.vertices import DenseVertex, SparseVertex, Vertex
from condgrad.linalg.vectors import DenseVector, Vector


class ConvexHullOfUnion(ConstraintSet):
    """The convex hull of the union of several sets: mixtures of models of different kinds.

    The oracle takes the best of the vertices of all sets. It is not compiled itself, but it calls compiled oracles of
    the sets where it can.

    Parameters
    ----------
    sets : sequence of constraint sets

    Examples
    --------
    >>> from condgrad.constraints import L1Ball, LinfBall
    >>> hull = ConvexHullOfUnion([L1Ball(2.0), LinfBall(1.2)])
    >>> hull.contains([1.6, 0.6]), hull.contains([1.6, 1.2])
    (True, False)
    """

    def __init__(self, sets: Sequence[object]) -> None:
        self.sets, self.n_features = as_sets("ConvexHullOfUnion", sets)
        self.is_polytope = all(one.is_polytope for one in self.sets)
        self.is_symmetric = all(one.is_symmetric for one in self.sets)
        self.vertex = common_vertex(self.sets)

    def __repr__(self) -> str:
        return f"ConvexHullOfUnion({self.sets!r})"

    def check_features(self, n_features: int) -> None:
        """Raise ValueError where one of the sets does not fit data with ``n_features`` columns."""
        for one in self.sets:
            one.check_features(n_features)

    def lmo(self, r: Vector) -> Vertex:
        """Return the best of the vertices of all sets, the first among equals."""
        entries = as_array(r)
        largest = np.abs(entries).max()
        scaled = DenseVector(entries / largest if largest > 0.0 else entries)
        s = min((best_vertex(one, entries) for one in self.sets), key=lambda vertex: vertex.inner(scaled))
        if isinstance(s, self.vertex):
            return s
        indices, values = s.support()
        if self.vertex is SparseVertex and indices is not None:
            return SparseVertex(indices, values)
        return DenseVertex(s.to_dense(entries.size))

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus the lowest value over all sets, each with its own rounding."""
        return shortfall(lambda x: -min(lowest(one, x) for one in self.sets), r, s)

    def reach(self, c: np.ndarray) -> float:
        """Return the largest reach of a set if all are symmetric, else a bound by paths through a vertex of each."""
        reaches = [one.reach(c) for one in self.sets]
        if self.is_symmetric:
            return max(reaches)
        starts = [one.start(c.size).to_dense(c.size) for one in self.sets]
        ways = [own + c @ np.abs(start - starts[0]) for own, start in zip(reaches, starts)]
        return rounded_up(2.0 * max(ways), c.size)

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the largest diameter of a set if all are symmetric, else the diagonal of the smallest box around."""
        if self.is_symmetric:
            return float(max(one.diameter(order, n_features) for one in self.sets))
        return super().diameter(order, n_features)
