"""Products of sets over blocks of features."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from condgrad.constraints._parameters import as_positive_integer
from condgrad.constraints._protocol import ConstraintSet, as_array, best_vertex
from condgrad.constraints._rounding import rounded_up
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.constraints.vertices import DenseVertex, SparseVertex, Vertex
from condgrad.linalg.vectors import Vector


class Product(ConstraintSet):
    """The product C_1 x C_2 x ... of sets over consecutive blocks of features.

    The oracle joins the vertices of all sets. It is not compiled itself, but it calls compiled oracles of the sets
    where it can.

    Parameters
    ----------
    sets : sequence of constraint sets
    sizes : sequence of int
        The number of features of each set.

    Examples
    --------
    >>> from condgrad.constraints import L1Ball, Simplex
    >>> product = Product([Simplex(), L1Ball(2.0)], sizes=[2, 3])
    >>> product.contains([0.5, 0.5, -1.0, 1.0, 0.0])
    True
    """

    def __init__(self, sets: Sequence[object], sizes: Sequence[int]) -> None:
        if not (isinstance(sets, Sequence) and isinstance(sizes, Sequence | np.ndarray)) or hasattr(sets, "lmo"):
            raise TypeError(
                f"sets and sizes of Product must be lists; got {type(sets).__name__} and {type(sizes).__name__}."
            )
        if len(sets) != len(sizes) or not len(sets):
            raise ValueError(f"Product needs one size per set; got {len(sets)} sets and {len(sizes)} sizes.")
        self.sets = [as_constraint_set(block) for block in sets]
        self.sizes = [as_positive_integer("Product", "each of the sizes", size) for size in sizes]
        for block, size in zip(self.sets, self.sizes):
            block.check_features(size)
        self._ends = np.cumsum(self.sizes)
        self.n_features = int(self._ends[-1])
        self.is_polytope = all(block.is_polytope for block in self.sets)
        self.has_projection = all(block.has_projection for block in self.sets)
        self.vertex = DenseVertex if any(block.vertex is DenseVertex for block in self.sets) else SparseVertex

    def __repr__(self) -> str:
        return f"Product({self.sets!r}, sizes={self.sizes!r})"

    def split(self, w: np.ndarray) -> list[np.ndarray]:
        """Return the blocks of ``w``."""
        return np.split(np.asarray(w, dtype=np.float64), self._ends[:-1])

    def lmo(self, r: Vector) -> Vertex:
        """Return the vertex joined from the vertices of all sets."""
        return self._join([best_vertex(block, part) for block, part in zip(self.sets, self.split(as_array(r)))])

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return the sum over the blocks."""
        parts = zip(self.sets, self.split(r), self.split(s.to_dense(r.size)))
        return rounded_up(sum(block.oracle_rounding(part, DenseVertex(v)) for block, part, v in parts), len(self.sets))

    def reach(self, c: np.ndarray) -> float:
        """Return the sum over the blocks: as exact as they are."""
        return rounded_up(sum(block.reach(part) for block, part in zip(self.sets, self.split(c))), len(self.sets))

    def violation(self, w: np.ndarray) -> float:
        """Return the largest violation of a block."""
        return float(np.max([block.violation(part) for block, part in zip(self.sets, self.split(w))]))

    @property
    def is_violation_searched(self) -> bool:
        """Whether that of a block is a search."""
        return any(block.is_violation_searched for block in self.sets)

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the l_order norm of the diameters of the blocks: as exact as they are."""
        return float(np.linalg.norm([block.diameter(order, n) for block, n in zip(self.sets, self.sizes)], order))

    def decompose(self, w: np.ndarray) -> list[tuple[float, Vertex]]:
        """Return vertices joined from those of the blocks, at most as many as the blocks have together.

        Lay the weights of each block one after another on [0, 1]: between two neighbouring ends, of any block, the
        vertex of every block is the same.
        """
        parts = [block.decompose(part) for block, part in zip(self.sets, self.split(w))]
        ends = [np.cumsum([weight for weight, _ in part]) for part in parts]
        # Merge ends that differ by rounding only.
        cuts = np.unique(np.concatenate([[0.0, 1.0], *(np.round(end / end[-1], 14) for end in ends)]))
        combined = []
        for low, high in itertools.pairwise(cuts):
            places = [np.searchsorted(end / end[-1], (low + high) / 2) for end in ends]
            combined.append((float(high - low), self._join([part[k][1] for part, k in zip(parts, places)])))
        return combined

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return the point nearest to ``w``, block by block."""
        return np.concatenate([block.project(part) for block, part in zip(self.sets, self.split(w))])

    def _join(self, vertices: list[Vertex]) -> Vertex:
        # A decomposition may hold a dense point among the sparse vertices of a set.
        if self.vertex is DenseVertex or any(isinstance(s, DenseVertex) for s in vertices):
            return DenseVertex(np.concatenate([s.to_dense(n) for s, n in zip(vertices, self.sizes)]))
        supports = [s.support() for s in vertices]
        firsts = self._ends - self.sizes
        indices = np.concatenate([first + indices for first, (indices, _) in zip(firsts, supports)])
        return SparseVertex(indices, np.concatenate([values for _, values in supports]))
