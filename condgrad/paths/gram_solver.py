"""GramSolver: a working set as a dense quadratic, solved exactly."""

from __future__ import annotations

import numpy as np

from condgrad.linalg.gram_minimiser import GAVE_UP, solve_model
from condgrad.linalg.gram_model import GramModel, correlate, empty_model, part_of
from condgrad.linalg.interrupts import Interrupts
from condgrad.paths.least_squares import Goal
from condgrad.paths.sweep_solver import SweepSolver
from condgrad.paths.working_set import WorkingSet

_ROUGH_WORK = 20  # ratio of atoms to entries of a column above which sweeps take over, at rough tolerances
_TIGHT_WORK = 120  # the same ratio at tight tolerances
_ROUND = 5000  # stored entries that a round of sweeps could read in the time of its calls alone
_ROUGH_TOL = 1e-5  # least relative gap that counts as rough
_MOST_DENSE = 800  # most nonzero coefficients for a dense factor


class GramSolver:
    """The working set as a dense quadratic, solved exactly: for supports of up to some hundred atoms."""

    is_exact = True  # whatever the tolerance, so that a point next to a penalty costs no more than the one at it

    def __init__(self, working: WorkingSet) -> None:
        self.working = working
        self.model: GramModel = empty_model(64)
        self.alpha = np.inf  # the penalty of the last solution
        self.gave_up = False

    def minimise(self, goal: Goal, tol: float) -> None:
        """Minimise over the working set to a gap of at most ``tol``."""
        working, model = self.working, self.model
        squared_y, most = working.objective.squared_y, 1000 + 20 * model.n_atoms()
        status, _, self.alpha, _ = solve_model(model, squared_y, goal.is_penalised, goal.target, tol, most)
        self.gave_up = status == GAVE_UP
        working.x = model.x[: model.n_atoms()].copy()
        working.renew()

    def successor(self, tol: float, largest: float, interrupts: Interrupts | None) -> GramSolver | SweepSolver:
        """Return this solver, or sweeps where they are faster."""
        return SweepSolver(self.working, self.alpha, largest, interrupts) if self._is_outgrown(tol) else self

    def _is_outgrown(self, tol: float) -> bool:
        """Tell whether changes of the support cost more than sweeps would, or have led nowhere."""
        n_atoms, n_used = self.model.n_atoms(), self.model.n_support()
        quadratic = self.working.objective
        factor = _ROUGH_WORK if tol > _ROUGH_TOL else _TIGHT_WORK
        work = quadratic.n_stored / quadratic.columns.norm.size + _ROUND / max(1, n_atoms)  # of an atom in a round
        is_large = n_used > _MOST_DENSE or (n_used > 100 and n_atoms > factor * work)
        return bool(is_large or self.gave_up)

    def admit(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the working set."""
        features = self.working.features
        first = features.size - n_new
        if features.size > self.model.c.shape[0]:
            self.model = part_of(self.model, np.arange(first), 2 * features.size)
        self.working.objective.extend_gram(features, first, self.model.G, self.model.c)
        self.model.append(n_new)
        correlate(self.model)

    def support(self) -> np.ndarray:
        """Return the places of the atoms in the support."""
        return np.flatnonzero(self.model.is_in[: self.model.n_atoms()])

    def keep(self, places: np.ndarray) -> None:
        """Keep these atoms alone, all of the support among them."""
        self.model = part_of(self.model, places, self.model.c.shape[0])
