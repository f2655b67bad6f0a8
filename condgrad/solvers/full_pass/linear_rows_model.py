"""Taylor models over sets of linear rows and bounds: quadratic programs."""

from __future__ import annotations

import contextlib

import numpy as np
import scipy.sparse

from condgrad.constraints import best_vertex
from condgrad.constraints.linear_rows import LinearRows
from condgrad.linalg import threads
from condgrad.linalg.quadratic_program import QuadraticProgram, face_at
from condgrad.linalg.ties import Ties
from condgrad.linalg.vectors import inner, product
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem
from condgrad.solvers.full_pass.descent import Descent

_TIGHT = 1e-11  # slack, relative to the size of the set, at which a bound or a row counts as tight
_SMALL = 1500  # variables of a quadratic program for which more threads of BLAS do not pay
_FEASIBLE = 1e-9  # violation, relative to the size of the set, at which the answer of a quadratic program is rejected


class LinearRowsModel:
    """w itself, on all features, for a set that is given by few linear rows and bounds.

    The model is minimised over the set by a quadratic program, exactly up to rounding. Its first guess of the face of
    the minimiser is the face of the present point, so that the last passes of a run solve one linear system each, and
    so that a resumed run makes the same steps.
    """

    is_exact = True  # whether the model is minimised up to rounding, so that one model of a quadratic F is enough
    descents: tuple[Descent, ...] = ()

    def __init__(self, problem: BaseProblem, rows: LinearRows) -> None:
        self.constraint, self.n_features = problem.constraint, problem.n_features
        self.rows, self.polyhedron = rows, rows.polyhedron()
        self.ties = Ties.among(self.polyhedron.A)
        if self.ties is not None:
            self.polyhedron = self.polyhedron._replace(A=scipy.sparse.csr_array(self.polyhedron.A))
        self.size, self.is_quadratic = self.polyhedron.size, problem.is_quadratic

    def start(self, w0: np.ndarray | None) -> tuple[Stack, np.ndarray]:
        """Return all features and ``w0``; by default the point of the set that is nearest to the origin."""
        d = self.n_features
        return AtomStack(np.arange(d), np.ones(d)), self._nearest_to_origin() if w0 is None else w0

    def _nearest_to_origin(self) -> np.ndarray:
        """Return the nearest point; the losses of large predictions at a vertex would make first steps short."""
        d = self.n_features
        origin = np.zeros(d)
        if self.constraint.contains(origin, 0.0):
            return origin
        w0 = self.rows.nearest(origin)
        if w0 is not None and self._is_inside(w0):
            return w0
        return self.constraint.start(d).to_dense(d)

    def can_hold(self, atoms: Stack) -> bool:
        """Return whether the atoms are all features, in their order."""
        return isinstance(atoms, AtomStack) and np.array_equal(atoms.index, np.arange(self.n_features))

    def holds(self, x: np.ndarray) -> bool:
        """Return False: no step leads beyond the minimiser of a model."""
        return False

    def successor(self, n_passes: int, gaps: list[float]) -> None:
        """Return None: no other model is needed."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return nothing: the next model depends on w alone."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore nothing."""

    def kept(self, atoms: Stack, x: np.ndarray) -> np.ndarray:
        """Return a mask of the features that stay: all."""
        return np.ones(x.size, dtype=bool)

    def add_candidates(self, atoms: Stack, x: np.ndarray, r: np.ndarray, gap: float, n_taken: int | None) -> None:
        """Do nothing: no feature is missing."""

    def minimise(
        self,
        atoms: Stack,
        g: np.ndarray,
        H: np.ndarray,
        x: np.ndarray,
        tol: float,
        *,
        is_estimate: bool = False,
        deadline: float = np.inf,
    ) -> np.ndarray:
        """Return the minimiser z of <g, z - x> + (z - x)'H(z - x)/2 over the set; ``tol`` is not needed.

        If the quadratic program fails, or the deadline comes first, a Frank-Wolfe step on the model is returned, unless
        the program came further.
        """
        rows = self.rows
        lifted_x = rows.lifted(x)
        with threads.one_blas_thread() if lifted_x.size <= _SMALL else contextlib.nullcontext():
            program = QuadraticProgram(
                rows.cost(g), H, lifted_x, self.polyhedron, is_split=rows.is_split, ties=self.ties
            )
            found = program.minimise(face_at(self.polyhedron, lifted_x, _TIGHT * self.size), deadline)
            if found is not None and self.is_quadratic:  # one model is enough, if it is free of the ridge
                found = program.refine(found, deadline)
        z = self._frank_wolfe(g, H, x) if found is None else rows.coefficients(found.x)
        if found is None or (found.is_exact and self._is_inside(z)):
            return z
        other, nearest = self._frank_wolfe(g, H, x), rows.nearest(z, _FEASIBLE * self.size)
        z = z if nearest is None else nearest  # a point outside would be better than any of the set
        return z if self._is_inside(z) and _model(g, H, z - x) <= _model(g, H, other - x) else other

    def _is_inside(self, w: np.ndarray) -> bool:
        return self.constraint.violation(w) <= _FEASIBLE * self.size

    def _frank_wolfe(self, g: np.ndarray, H: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the minimiser of the model between x and the best vertex for the slopes ``g``."""
        direction: np.ndarray = best_vertex(self.constraint, g).to_dense(x.size) - x
        slope, curvature = min(0.0, inner(g, direction)), inner(direction, product(H, direction))
        return x + (1.0 if curvature <= -slope else -slope / curvature) * direction


def _model(g: np.ndarray, H: np.ndarray, step: np.ndarray) -> float:
    """Return the value of the model after a step."""
    return float(inner(g, step) + 0.5 * inner(step, product(H, step)))
