"""Look: what one pass over the data at a point w tells, and the curvature there on demand."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.factored import RankOne
from condgrad.problems.active_set import Stack
from condgrad.problems.evaluation import Evaluation


class Look:
    """One pass at w. Problems that know the curvature of F there return a class of their own.

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
        """The intercept that belongs to w."""
        return self.evaluation.intercept

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for the Hessian H of F at w and all pairs of ``atoms``, without a pass of its own.

        ``known`` is that of the first atoms with each other, which is not computed again. ``n_rows`` samples are enough
        for an estimate, drawn by their share of the curvature; what was kept of the pass decides how many there are.
        """
        raise NotImplementedError(f"{type(self).__name__} does not know the curvature.")
