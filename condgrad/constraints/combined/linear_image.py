"""Images of sets under a linear map."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_reals
from condgrad.constraints._protocol import ConstraintSet, as_array, best_vertex
from condgrad.constraints._rounding import inner_with_error, rounded_up, shortfall
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.rounding import UNIT
from condgrad.linalg.vectors import Vector


class LinearImage(ConstraintSet):
    """The set {A u : u in constraint}: models that are simple in other coordinates, like wavelets or cumulative sums.

    The oracle returns A times the set's vertex at A'r. It is not compiled itself, but it calls a compiled oracle of the
    set where it can. Every vertex of the image is the image of a vertex.

    Parameters
    ----------
    A : array of shape (n_features, m)
        The map; it may be sparse.
    constraint : a constraint set
        A set of vectors of length m.

    Examples
    --------
    >>> from condgrad.constraints import Simplex
    >>> ramps = LinearImage([[1.0, 0.0], [1.0, 1.0]], Simplex())
    >>> ramps.contains([0.4, 1.0]), ramps.contains([0.4, 0.9])
    (True, False)
    """

    vertex = DenseVertex

    def __init__(self, A: ArrayLike, constraint: object) -> None:
        if scipy.sparse.issparse(A):
            A = scipy.sparse.csr_array(A)
            as_reals("LinearImage", "A", A.data if A.nnz else [0.0])
            self.A = A.astype(np.float64)
        else:
            self.A = as_reals("LinearImage", "A", A, n_dims=2)
        self.constraint = as_constraint_set(constraint)
        self.constraint.check_features(self.A.shape[1])
        self.n_features: int = self.A.shape[0]
        self.is_polytope = bool(self.constraint.is_polytope)
        self.is_symmetric = bool(self.constraint.is_symmetric)

    def __repr__(self) -> str:
        return f"LinearImage(<{self.A.shape[0]} x {self.A.shape[1]}>, {self.constraint!r})"

    def lmo(self, r: Vector) -> DenseVertex:
        """Return A s for the set's vertex s at A'r."""
        entries = as_array(r)
        largest = np.abs(entries).max()
        s = best_vertex(self.constraint, self.A.T @ (entries / largest if largest > 0.0 else entries))
        return DenseVertex(self.A @ s.to_dense(self.A.shape[1]))

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus the set's lowest value at A'r, with the rounding of that product."""

        def top(x: np.ndarray) -> np.floating:
            entries = x.astype(np.float64)
            image = self.A.T @ entries
            v = best_vertex(self.constraint, image)
            value, error = inner_with_error(image.astype(np.longdouble), v)
            # A'x is off by at most unit * sizes: its product with w differs from that with v by as much times |w - v|.
            unit = 2.0 * (x.size + 4) * UNIT
            sizes = abs(self.A).T @ np.abs(entries)
            missed = unit * (sizes @ np.abs(v.to_dense(image.size)) + self._unit_reach)
            return missed + error - value + self.constraint.oracle_rounding(image, v)

        return shortfall(top, r, s)

    def reach(self, c: np.ndarray) -> float:
        """Return the reach of the set at |A|'c: a bound."""
        return float(self.constraint.reach(rounded_up(1.0, c.size) * (abs(self.A).T @ c)))

    @functools.cached_property
    def _unit_reach(self) -> float:
        return self.reach(np.ones(self.n_features))

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the set's diameter times a bound of the norm of A, for any order from 1 to inf: a bound."""
        sizes = abs(self.A)
        by_columns, by_rows = float(sizes.sum(axis=0).max()), float(sizes.sum(axis=1).max())
        norm = by_columns ** (1.0 / order) * by_rows ** (1.0 - 1.0 / order)  # Riesz and Thorin
        return norm * float(self.constraint.diameter(order, self.A.shape[1]))
