"""The paths of a graph without cycles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse.csgraph
from numpy.typing import ArrayLike

from condgrad.compiled import kernel
from condgrad.constraints._edges import as_edges
from condgrad.constraints._parameters import as_integer, shown
from condgrad.constraints._protocol import best_vertex, constraint_set
from condgrad.constraints._rounding import WIDE_EPS, shortfall
from condgrad.constraints.vertices import SparseVertex

_NOTHING = 1e-13  # flow up to which what is left is rounding


@constraint_set
class FlowPolytope(NamedTuple):
    """The flows of size 1 from source to sink in a directed graph without cycles: w has one entry per edge.

    Its vertices are the paths; the oracle finds the one with the smallest sum of r, edge by edge in topological order,
    in O(number of edges). Entries of r may be negative.

    Parameters
    ----------
    edges : array of int, of shape (n_edges, 2)
        Where each edge begins and ends; nodes are numbered from 0.
    source, sink : int
        The nodes where paths begin and end.
    order, n_nodes : leave out
        Computed from ``edges``: the edges in topological order, and the number of nodes.

    Examples
    --------
    >>> flows = FlowPolytope(edges=[[0, 1], [0, 2], [1, 2]], source=0, sink=2)
    >>> flows.contains([0.4, 0.6, 0.4]), flows.contains([0.4, 0.6, 0.0])
    (True, False)
    """

    edges: ArrayLike
    source: int
    sink: int
    order: np.ndarray | None = None
    n_nodes: int | None = None

    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True

    def __repr__(self):
        about = f"<{self.edges.shape[0]} edges, {self.n_nodes} nodes>"
        return f"FlowPolytope({about}, source={self.source}, sink={self.sink})"

    @property
    def n_features(self):
        """The number of edges."""
        return self.edges.shape[0]

    def prepare(self):
        """Return the fields with the edges in topological order."""
        if self.order is not None:
            return self
        edges = as_edges("FlowPolytope", self.edges)
        source, sink = (as_integer("FlowPolytope", name, getattr(self, name)) for name in ("source", "sink"))
        n_nodes = int(edges.max()) + 1
        return edges, source, sink, np.argsort(_ranks(edges, n_nodes)[edges[:, 0]], kind="stable"), n_nodes

    def check(self):
        """Raise unless there is a path from source to sink."""
        for name, node in (("source", self.source), ("sink", self.sink)):
            if not 0 <= node < self.n_nodes:
                raise ValueError(
                    f"{name} of FlowPolytope must be one of the nodes 0 to {self.n_nodes - 1}; got {node}."
                )
        if self.source == self.sink:
            raise ValueError(f"source and sink of FlowPolytope must differ; got {self.source} twice.")
        graph = scipy.sparse.coo_array((np.ones(len(self.edges)), self.edges.T), (self.n_nodes, self.n_nodes))
        reached = scipy.sparse.csgraph.breadth_first_order(graph.tocsr(), self.source, return_predecessors=False)
        if self.sink not in reached:
            raise ValueError(f"FlowPolytope is empty: no path leads from {self.source} to {self.sink}. Add edges.")

    def lmo(self, r):
        """Return the path with the smallest sum of entries of r."""
        largest = abs(r.at(r.argmax_abs()))
        scale = largest if largest > 0.0 else 1.0
        lengths = np.empty(r.size())
        for e in range(r.size()):
            lengths[e] = r.at(e) / scale
        _, arrival = shortest_paths(self.edges, self.order, self.source, self.n_nodes, lengths)
        size, node = 0, self.sink
        while node != self.source:
            size += 1
            node = self.edges[arrival[node], 0]
        indices = np.empty(size, np.int64)
        node = self.sink
        for q in range(size - 1, -1, -1):
            indices[q] = arrival[node]
            node = self.edges[arrival[node], 0]
        return SparseVertex(indices, np.ones(size))

    def oracle_rounding(self, r, s):
        """Return a bound by the distances of all nodes from the source, plus <r, s>, rounded up.

        The length of a path is the difference of the distances of its ends, plus the excess of each edge: its length
        minus the difference of the distances of its nodes. An excess is negative only by rounding, and a path has fewer
        edges than there are nodes.
        """

        def top(x):
            lengths = x.astype(np.float64)
            distance, arrival = shortest_paths(self.edges, self.order, self.source, self.n_nodes, lengths)
            tails, heads = self.edges.T
            is_reached = (arrival[tails] >= 0) | (tails == self.source)
            at = distance.astype(np.longdouble)
            shorter = np.maximum(at[heads] - at[tails] - x, 0.0)[is_reached]
            rounding = 8 * WIDE_EPS * (1.0 + np.abs(distance).max()) * (self.n_nodes - 1)
            return rounding + min(shorter.sum(), shorter.max() * (self.n_nodes - 1)) - at[self.sink]

        return shortfall(top, r, s)

    def violation(self, w):
        """Return the largest of -w_e and of the differences of inflow and outflow at a node."""
        balance = np.bincount(self.edges[:, 1], w, self.n_nodes) - np.bincount(self.edges[:, 0], w, self.n_nodes)
        balance[self.source] += 1.0
        balance[self.sink] -= 1.0
        return float(np.maximum(-w.min(), np.abs(balance).max()))

    def diameter(self, order=2, n_features=None):
        """Return the bound by two paths as long as the longest one, without a common edge."""
        longest = best_vertex(self, -np.ones(self.n_features)).n_entries()
        return float(min(2 * longest, self.n_features)) ** (1.0 / order)

    def decompose(self, w):
        """Return at most as many paths as edges: repeatedly subtract one with the largest possible weight."""
        rest = np.array(w, dtype=np.float64)
        leaving = [np.flatnonzero(self.edges[:, 0] == node) for node in range(self.n_nodes)]
        parts = []
        for _ in range(rest.size):
            path, node = [], self.source
            while node != self.sink and leaving[node].size:
                path.append(leaving[node][rest[leaving[node]].argmax()])
                node = self.edges[path[-1], 1]
            weight = float(rest[path].min())
            if node != self.sink or weight <= _NOTHING:
                break
            rest[path] -= weight
            parts.append((weight, SparseVertex(np.array(path), np.ones(len(path)))))
        total = sum(weight for weight, _ in parts)
        return [(weight / total, s) for weight, s in parts]


@kernel
def shortest_paths(edges, order, source, n_nodes, lengths):
    """Return the lengths of the shortest paths from the source to all nodes, and their last edges, -1 for no path."""
    distance = np.zeros(n_nodes)
    arrival = np.full(n_nodes, -1)
    for e in order:
        tail, head = edges[e, 0], edges[e, 1]
        if tail == source or arrival[tail] >= 0:
            length = distance[tail] + lengths[e]
            if arrival[head] < 0 or length < distance[head]:
                distance[head] = length
                arrival[head] = e
    return distance, arrival


def _ranks(edges: np.ndarray, n_nodes: int) -> np.ndarray:
    """Return for each node its place in a topological order, or raise where there is a cycle."""
    n_waiting = np.bincount(edges[:, 1], minlength=n_nodes)
    by_tail = np.argsort(edges[:, 0], kind="stable")
    heads = np.split(edges[by_tail, 1], np.cumsum(np.bincount(edges[:, 0], minlength=n_nodes))[:-1])
    ready = np.flatnonzero(n_waiting == 0).tolist()
    ranks = np.full(n_nodes, -1)
    for rank in range(n_nodes):
        if not ready:
            left = np.flatnonzero(ranks < 0)
            raise ValueError(f"edges of FlowPolytope must not form a cycle; got one among the nodes {shown(left)}.")
        node = ready.pop()
        ranks[node] = rank
        for head in heads[node].tolist():
            n_waiting[head] -= 1
            if n_waiting[head] == 0:
                ready.append(head)
    return ranks
