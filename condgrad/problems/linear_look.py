"""LinearLook: a pass of a linear problem at w, and the curvature of F there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.problems.active_set import AtomStack, Stack, as_stack
from condgrad.problems.column_part import ColumnPart
from condgrad.problems.dense_part import DensePart
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.gradient import OutsideGradient
from condgrad.problems.look import Bends, Look
from condgrad.problems.rows.base import AnyPass, Rows
from condgrad.problems.rows.findings import Pass


class Looked(Protocol):
    """The attributes and methods of a linear problem that a look at it uses."""

    rows: Rows
    has_intercept: bool
    l2: float

    def best_offset(self, w: np.ndarray) -> float:
        """Return the best intercept for w with centred columns."""


class LinearLook(Look):
    """A pass at w, with its results ``found`` on the samples.

    ``leading`` is the gradient or, if it stays with the workers of a cluster, an array of the entries that matter.
    """

    def __init__(
        self, problem: Looked, evaluation: Evaluation, found: AnyPass, w: np.ndarray, leading: np.ndarray
    ) -> None:
        super().__init__(evaluation)
        self.problem, self.found, self.w, self._leading = problem, found, w.copy(), leading

    @property
    def leading(self) -> np.ndarray:
        """The entries that matter to the set's oracle at w; the others may be zero."""
        return self._leading

    def slopes(self, atoms: Stack) -> np.ndarray:
        """Return <gradient, v_k> for all atoms; entries that are not known here come from the workers."""
        r = self.evaluation.r
        if isinstance(r, OutsideGradient) and isinstance(atoms, AtomStack):
            return r.at(atoms.index) * atoms.value
        return super().slopes(atoms)

    def gradient_near(self, estimate: np.ndarray) -> np.ndarray:
        """Return the gradient, or its leading entries and the estimate of the others within their bound."""
        r = self.evaluation.r
        return r.near(estimate) if isinstance(r, OutsideGradient) else r

    @property
    def bends(self) -> Bends | None:
        """The second derivatives by the features that were asked for; those of the minimum over a free intercept."""
        found = self.found
        if not isinstance(found, Pass) or found.bends is None:
            return None
        features, H = found.bends.features, found.bends.H
        if found.slope is not None and found.slope.total > 0.0:  # the minimum over b takes the Schur complement
            mixed = found.slope.u[features]
            H = H - np.outer(mixed, mixed) / found.slope.total
        return Bends(features, H + np.diag(np.full(features.size, self.problem.l2)))

    def column_part(self, features: np.ndarray) -> ColumnPart:
        """Return F on these features alone, for data in memory."""
        return self.problem.rows.column_part(features, self.problem.l2, self.problem.has_intercept)

    def dense_part(self) -> DensePart:
        """Return F on some atoms alone, for dense data in memory."""
        problem = self.problem
        return problem.rows.dense_part(problem.l2, self.evaluation.offset if problem.has_intercept else None)

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
