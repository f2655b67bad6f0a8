"""The spanning trees of a graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import kernel
from condgrad.constraints._edges import as_edges
from condgrad.constraints._protocol import constraint_set
from condgrad.constraints.vertices import SparseVertex
from condgrad.linalg.selection import sorted_places


@constraint_set
class SpanningTreePolytope(NamedTuple):
    """The convex hull of the spanning trees of a connected graph: w has one entry per edge.

    It is {w >= 0 : sum_e w_e = n - 1, at most |S| - 1 within every set S of nodes}. The oracle is Kruskal's algorithm:
    in the order of r, it takes each edge that closes no cycle, in O(m log m) for m edges.

    Parameters
    ----------
    edges : array of int, of shape (n_edges, 2)
        The two nodes of each edge; nodes are numbered from 0.
    n_nodes : leave out
        Computed from ``edges``.

    Examples
    --------
    >>> trees = SpanningTreePolytope(edges=[[0, 1], [1, 2], [0, 2]])
    >>> trees.contains([1.0, 0.5, 0.5]), trees.contains([1.2, 0.4, 0.4])
    (True, False)
    """

    edges: ArrayLike
    n_nodes: int | None = None

    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True

    def __repr__(self):
        return f"SpanningTreePolytope(<{self.edges.shape[0]} edges, {self.n_nodes} nodes>)"

    @property
    def n_features(self):
        """The number of edges."""
        return self.edges.shape[0]

    def prepare(self):
        """Return the fields with the number of nodes."""
        if self.n_nodes is not None:
            return self
        edges = as_edges("SpanningTreePolytope", self.edges)
        return edges, int(edges.max()) + 1

    def check(self):
        """Raise unless the graph is connected."""
        n_joined = lightest_forest(self.edges, np.zeros(self.edges.shape[0]), self.n_nodes).size
        if n_joined < self.n_nodes - 1:
            raise ValueError(
                f"edges of SpanningTreePolytope must connect all nodes from 0 to {self.n_nodes - 1}; "
                f"got a graph of {self.n_nodes - n_joined} parts."
            )

    def lmo(self, r):
        """Return the spanning tree with the smallest sum of entries of r."""
        costs = np.empty(r.size())
        for e in range(r.size()):
            costs[e] = r.at(e)
        indices = lightest_forest(self.edges, costs, self.n_nodes)
        return SparseVertex(indices, np.ones(indices.shape[0]))

    def oracle_rounding(self, r, s):
        """Return 0: the oracle compares entries and copies ones."""
        return 0.0

    def diameter(self, order=2, n_features=None):
        """Return the bound by two trees that have as few edges in common as their number allows."""
        n_moved = min(self.n_nodes - 1, self.n_features - self.n_nodes + 1)
        return (2.0 * n_moved) ** (1.0 / order) if n_moved > 0 else 0.0


@kernel
def lightest_forest(edges, costs, n_nodes):
    """Return the edges of a spanning forest with the smallest sum of costs, in increasing order."""
    leader = np.arange(n_nodes)  # a node of the same tree, nearer to its root
    is_chosen = np.zeros(costs.shape[0], np.bool_)
    for e in sorted_places(costs):
        a, b = edges[e, 0], edges[e, 1]
        while leader[a] != a:
            leader[a] = leader[leader[a]]  # path halving: later searches are shorter
            a = leader[a]
        while leader[b] != b:
            leader[b] = leader[leader[b]]
            b = leader[b]
        if a != b:
            leader[max(a, b)] = min(a, b)
            is_chosen[e] = True
    return np.flatnonzero(is_chosen)
