"""Look: the results of one pass over the data at a point w, and the curvature there on demand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.factored import RankOne
from condgrad.problems.active_set import Stack
from condgrad.problems.column_part import ColumnPart
from condgrad.problems.dense_part import DensePart
from condgrad.problems.evaluation import Evaluation


class Bends(NamedTuple):
    """The second derivatives ``H`` of F at a point by some features."""

    features: np.ndarray
    H: np.ndarray


class Look:
    """The results of one pass at w. Problems that can compute the curvature of F at w return a subclass.

    Attributes
    ----------
    evaluation : Evaluation
        Objective, gradient, gap, vertex, intercept, and the bounds of their rounding.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @property
    def objective(self) -> float:
        """F(w)."""
        return self.evaluation.objective

    @property
    def gradient(self) -> np.ndarray:
        """The gradient of F at w."""
        return self.evaluation.gradient

    @property
    def gap(self) -> float:
        """The Frank-Wolfe gap."""
        return self.evaluation.gap

    @property
    def vertex(self) -> Vertex | RankOne:
        """The vertex s that minimises <gradient, s>."""
        return self.evaluation.vertex

    @property
    def intercept(self) -> Any:
        """The best intercept for w."""
        return self.evaluation.intercept

    @property
    def bends(self) -> Bends | None:
        """The second derivatives by the features that were asked for, from all samples or most; None: not known."""
        return None

    @property
    def leading(self) -> np.ndarray:
        """The gradient on which the set's oracle finds its best vertices: entries that are too small may be zero."""
        return self.gradient

    def slopes(self, atoms: Stack) -> np.ndarray:
        """Return <gradient, v_k> for all atoms."""
        return atoms.inner_products(self.gradient)

    def gradient_near(self, estimate: np.ndarray) -> np.ndarray:
        """Return the gradient; entries of which only a bound is known are replaced by an estimate within the bound."""
        return self.gradient

    def column_part(self, features: np.ndarray) -> ColumnPart:
        """Return F on these features alone, if the problem ``has_sparse_columns`` or ``has_dense_columns``."""
        raise NotImplementedError(f"{type(self).__name__} has no columns in memory.")

    def dense_part(self) -> DensePart:
        """Return F on some atoms alone, if the problem ``has_dense_parts``."""
        raise NotImplementedError(f"{type(self).__name__} has no dense columns.")

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for the Hessian H of F at w and all pairs of ``atoms``, without another pass.

        ``known`` is the block of the first atoms, which is not computed again. An estimate from about ``n_rows``
        samples, drawn with probabilities proportional to their curvature, is enough; the class may use more.
        """
        raise NotImplementedError(f"{type(self).__name__} does not compute the curvature.")
