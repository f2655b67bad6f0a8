"""Vectors of bounded total variation on a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._edges import as_edges
from condgrad.constraints._parameters import as_real, as_reals
from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.constraints._rounding import shortfall
from condgrad.constraints.polytopes.polytope import Polytope
from condgrad.constraints.vertices import DenseVertex, Vertex
from condgrad.linalg.settings import check_positive
from condgrad.linalg.vectors import DenseVector, Vector


class GraphTotalVariationBall(ConstraintSet):
    """The set {w : sum over edges (i, j) of weights_ij |w_i - w_j| <= radius, max_j |w_j| <= bound}: few pieces.

    Features are the nodes of a graph, and w is constant on a few connected parts of it: pixels of an image, regions of
    a map. The oracle is a linear program in d + m variables for m edges, solved by HiGHS through scipy; it is not
    compiled. On a chain, TotalVariationBall is much faster.

    Parameters
    ----------
    edges : array of int, of shape (n_edges, 2)
        The two features that each edge joins; every feature has at least one edge.
    radius : float
        The largest total variation.
    bound : float
        The largest absolute value of an entry: it makes the set compact.
    weights : array of shape (n_edges,), optional
        The positive price of a difference along each edge, by default 1.

    Examples
    --------
    >>> ball = GraphTotalVariationBall(edges=[[0, 1], [1, 2], [2, 0]], radius=2.0, bound=5.0)
    >>> ball.contains([4.0, 4.0, 5.0]), ball.contains([4.0, 3.0, 5.0])
    (True, False)
    """

    vertex = DenseVertex
    is_symmetric = True
    is_polytope = True

    def __init__(self, edges: ArrayLike, radius: float, bound: float, weights: ArrayLike | None = None) -> None:
        owner = "GraphTotalVariationBall"
        self.edges = as_edges(owner, edges)
        self.radius, self.bound = as_real(owner, "radius", radius), as_real(owner, "bound", bound)
        check_positive(owner, "radius", self.radius)
        check_positive(owner, "bound", self.bound)
        m = len(self.edges)
        self.weights = np.ones(m) if weights is None else as_reals(owner, "weights", weights)
        if self.weights.size != m or self.weights.min() <= 0.0:
            raise ValueError(
                f"weights of {owner} must be positive, one per edge, {m}; "
                f"got {self.weights.size}, the smallest {self.weights.min():g}."
            )
        self.n_features: int = int(self.edges.max()) + 1
        rows = np.repeat(np.arange(m), 2)
        signs = np.tile([1.0, -1.0], m)
        D = scipy.sparse.csr_array((signs, (rows, self.edges.ravel())), (m, self.n_features))
        self._program = self._program_of(D)

    def __repr__(self) -> str:
        about = f"<{len(self.edges)} edges, {self.n_features} features>"
        return f"GraphTotalVariationBall({about}, radius={self.radius!r}, bound={self.bound!r})"

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the set for a checkpoint: its settings, without the model of its linear program."""
        return self.edges, self.radius, self.bound, self.weights

    def lmo(self, r: Vector) -> DenseVertex:
        """Return the entries w of the solution (w, t) that the simplex method finds."""
        return DenseVertex(self._program.lmo(DenseVector(self._cost_of(as_array(r)))).values[: self.n_features].copy())

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return <r, s> minus a bound by the multipliers of the linear program, rounded up."""
        return shortfall(lambda x: -self._program.least(self._cost_of(x.astype(np.float64))), r, s)

    def violation(self, w: np.ndarray) -> float:
        """Return the larger of the total variation minus the radius and max_j |w_j| - bound."""
        steps = np.abs(w[self.edges[:, 0]] - w[self.edges[:, 1]])
        return float(np.maximum(self.weights @ steps - self.radius, np.abs(w).max() - self.bound))

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the distance of the two constant vectors +-bound: exact."""
        return float(2.0 * self.bound * self.n_features ** (1.0 / order))

    def _cost_of(self, r: np.ndarray) -> np.ndarray:
        """Return the costs of the linear program in w and t."""
        return np.append(r, np.zeros(len(self.edges)))

    def _program_of(self, D: Any) -> Polytope:
        """Return the linear program in w and t with |D w| <= t and <weights, t> <= radius."""
        m, d = D.shape
        identity = scipy.sparse.eye_array(m)
        budget = scipy.sparse.csr_array(np.append(np.zeros(d), self.weights)[None, :])
        A_ub = scipy.sparse.vstack(
            [scipy.sparse.hstack([D, -identity]), scipy.sparse.hstack([-D, -identity]), budget], "csr"
        )
        bounds = np.vstack([np.tile([-self.bound, self.bound], (d, 1)), np.tile([0.0, 2.0 * self.bound], (m, 1))])
        return Polytope(A_ub, np.append(np.zeros(2 * m), self.radius), bounds=bounds)
