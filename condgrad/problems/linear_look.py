"""LinearLook: a pass of a linear problem at w, and the curvature of F there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.problems.active_set import Stack, as_stack
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.look import Bends, Look
from condgrad.problems.rows.base import Rows
from condgrad.problems.rows.findings import Pass


class Looked(Protocol):
    """The attributes and methods of a linear problem that a look at it uses."""

    rows: Rows
    has_intercept: bool
    l2: float

    def best_offset(self, w: np.ndarray) -> float:
        """Return the best intercept for w with centred columns."""


class LinearLook(Look):
    """A pass at w, with its results ``found`` on the samples."""

    def __init__(self, problem: Looked, evaluation: Evaluation, found: Pass, w: np.ndarray) -> None:
        super().__init__(evaluation)
        self.problem, self.found, self.w = problem, found, w.copy()

    @property
    def bends(self) -> Bends | None:
        """The second derivatives by the features that were asked for; those of the minimum over a free intercept."""
        found = self.found
        if found.bends is None:
            return None
        features, H = found.bends.features, found.bends.H
        if found.slope is not None and found.slope.total > 0.0:  # the minimum over b takes the Schur complement
            mixed = found.slope.u[features]
            H = H - np.outer(mixed, mixed) / found.slope.total
        return Bends(features, H + np.diag(np.full(features.size, self.problem.l2)))

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms; negative curvatures of samples are replaced by zero."""
        atoms, problem = as_stack(atoms), self.problem
        n_known = 0 if known is None else known.shape[0]
        if known is not None and n_known == len(atoms):
            return known
        H = problem.rows.curvature(self.found, atoms, n_rows, n_known, problem.has_intercept)
        if problem.l2 > 0.0:
            H += problem.l2 * atoms.gram()
        if known is not None:
            H[:n_known, :n_known] = known
        return H
