"""OutputLossesProblem: base of problems whose F is the mean over samples of a loss of several linear predictions."""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg import convert
from condgrad.linalg.device.scored import ScoredOnDevice
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.settings import as_flag
from condgrad.problems.outputs import OutputsProblem


class OutputLossesProblem(OutputsProblem):
    r"""Minimise over W in C the mean F(W) = sum_i weight_i f(W x_i + b, y_i) of losses f of k predictions each.

    F, its value and its derivatives are those for the best intercepts b, where the problem has them.
    """

    def __init__(self, matrix: Matrix | ScoredOnDevice, sample_weight: ArrayLike | None, intercept: bool) -> None:
        self.has_intercept = as_flag(intercept, "intercept")
        super().__init__(matrix, sample_weight, is_centred=self.has_intercept)

    @abc.abstractmethod
    def best_offsets(self, S: np.ndarray) -> np.ndarray:
        """Return the best intercepts for the scores S of centred columns."""

    @abc.abstractmethod
    def bend(self) -> float:
        """Return a bound of the curvature of f in its predictions, over all points of the set (inf if unbounded)."""

    def best_intercept(self, w: IterateLike) -> np.ndarray:
        """Return the best intercepts for W, one for each output (zeros for a problem without intercepts)."""
        w = convert.as_point(w, self.n_features, "w")
        return self.intercept_for(w, self.scores(w)) if self.has_intercept else np.zeros(self.n_outputs)

    def intercept_for(self, w: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the best intercepts for W and its scores S, for the columns as given."""
        return self.intercept_at(w, self.best_offsets(S))

    def intercept_at(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Convert the intercepts b for centred columns to the intercepts for the columns as given."""
        return b if self.matrix.shift is None else b - w.reshape(self.shape) @ self.matrix.shift

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, from the trace of X' diag(weight) X."""
        trace = float(self.column_sizes @ self.column_sizes)
        return self.bend() * trace if trace > 0.0 else 0.0

    def curvature_along(self, Q: np.ndarray) -> float:
        """Return a bound of the second derivative of F along a line on which the scores change at the rate Q."""
        square = float(np.einsum("cn,cn,n->", Q, Q, self.weight))
        return self.bend() * square if square > 0.0 else 0.0
