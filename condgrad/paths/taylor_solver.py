"""TaylorSolver: a smooth loss over a working set, by exact minimisers of its Taylor models.

The model at x is F(x) + g'(z - x) + (z - x)'G(z - x)/2, with the curvature G = Z' diag(h) Z of the features of the
working set (less the part of an intercept). Its minimiser over the ball is found exactly by
:func:`~condgrad.paths.gram_model.solve_model`. The gradient g is that of x, always; the curvatures h may be those of an
earlier point. They are computed again where a step did not make the gap much smaller. So most steps cost two products
with the columns of the working set and one exponential for each sample.
"""

from __future__ import annotations

import numpy as np

from condgrad.linalg.support import support_of
from condgrad.paths.gram_model import correlate, empty_model, factor, forget_support, part_of, solve_model
from condgrad.paths.least_squares import Goal
from condgrad.paths.smooth_loss import SmoothLoss, SmoothResidual
from condgrad.paths.working_set import WorkingSet
from condgrad.problems.samples import sample_by_curvature
from condgrad.run.interrupts import Interrupts

_MOST_STEPS = 100  # most Newton steps for one point on one working set
_FAST = 0.1  # share of the gap above which a step that leaves so much of it asks for fresh curvatures
_INNER = 0.05  # share of the gap to which a model is minimised
_MOST_ATOMS = 3000  # most features of a working set: their curvature takes 72 MB
_ROWS_PER_ATOM = 100  # number of samples for each feature from which the curvature is estimated at first
_FEW_ATOMS = 20  # least number of features that this number is multiplied by
_WIDENING = 4  # factor by which the number of samples grows where an estimate is too rough
_ROUNDING = 1e-14  # share of F that rounding may add to it
_SUFFICIENT = 1e-3  # share of the model's slope by which F must fall


class OutgrownError(Exception):
    """The working set has too many features for a dense matrix of their curvature."""


class TaylorSolver:
    """The working set of a smooth loss."""

    is_exact = True

    def __init__(self, working: WorkingSet[SmoothLoss]) -> None:
        self.working, self.objective = working, working.objective
        self.model = empty_model(64)
        self.alpha = np.inf
        self._everywhere = support_of(None, self.residual.p.size)
        self.n_grams, self.rows_per_atom = 0, _ROWS_PER_ATOM
        self.rows: np.ndarray | None = None  # the samples from which the curvature is estimated (None: all)
        self._renew_curvature()

    @property
    def residual(self) -> SmoothResidual:
        """The residual of the working set."""
        found = self.working.residual
        assert isinstance(found, SmoothResidual)
        return found

    def minimise(self, goal: Goal, tol: float) -> None:
        """Minimise over the working set to a gap of at most ``tol``."""
        working, objective = self.working, self.objective
        if working.features.size == 0:
            return
        if not goal.is_penalised and working.sums.norm > goal.target:  # the last point was that of a larger ball
            working.x = working.x * (goal.target / working.sums.norm)
            working.renew()
        correlation, last, is_fresh = np.empty(working.features.size), np.inf, False
        for _ in range(_MOST_STEPS):
            gap = objective.gap(goal, working.sums, working.correlate(correlation))
            if gap <= tol or (is_fresh and gap >= last):  # in the second case rounding has won
                return
            is_slow = gap > _FAST * last
            if is_slow:
                if is_fresh:  # an estimate that is too rough
                    self.rows_per_atom *= _WIDENING
                self._renew_curvature()
            has_moved = self._step(goal, correlation, max(tol, _INNER * gap))
            if not has_moved and is_slow:
                return
            last, is_fresh = (gap if has_moved else 0.0), is_slow

    def _step(self, goal: Goal, correlation: np.ndarray, tol: float) -> bool:
        """Go to the minimiser of the model, or as far towards it as F falls; tell whether it fell."""
        working, model = self.working, self.model
        x, sums = working.x, working.sums
        self._recentre(x, correlation)
        most = 1000 + 20 * model.n_atoms()
        tol = -1.0 if goal.is_penalised else tol  # a model has no y to measure a duality gap by: solve it exactly
        _, _, self.alpha, _ = solve_model(model, 0.0, goal.is_penalised, goal.target, tol, most)
        z = model.x[: model.n_atoms()].copy()
        direction = z - x
        slope = -float(correlation @ direction)
        if goal.is_penalised:
            slope += goal.target * (float(np.abs(z).sum()) - sums.norm)
        p, b, penalty = self.residual.p.copy(), self.residual.b, goal.target if goal.is_penalised else 0.0
        before = sums.value + penalty * sums.norm
        slack = _ROUNDING * abs(before)  # close to the optimum a step changes the gap, and F by less than rounding
        if not direction.any() or slope > slack:
            return False
        working.x = z
        found = working.renew()
        if found.value + penalty * found.norm <= before + _SUFFICIENT * min(slope, 0.0) + slack:
            return True
        gamma = self.objective.samples.minimise_on_line(
            self._everywhere, p, self.residual.p - p, b, self.objective.has_intercept, 1.0, False
        )
        working.x = x + gamma * direction
        found = working.renew()
        if gamma > 0.0 and found.value + penalty * found.norm <= before:
            return True
        working.x = x
        working.renew()
        return False

    def _renew_curvature(self) -> None:
        """Take the curvatures of the present point, from samples drawn by their share of it where these are many."""
        d, n_rows = self.residual.d, self.rows_per_atom * max(_FEW_ATOMS, self.working.features.size)
        self.rows, self.h = sample_by_curvature(d, n_rows) if n_rows <= d.size / 2 and d.any() else (None, d)
        self.n_grams += 1
        self._fill(0)

    def _fill(self, first: int) -> None:
        """Compute the rows of G that belong to the features from ``first`` on; the support has no factor after that."""
        features, model = self.working.features, self.model
        size = features.size
        if size > 0:
            H = self.objective.problem.feature_curvature(features, self.h, self.rows, first)
            model.G[first:size, :size] = H[first:]
            model.G[:first, first:size] = H[:first, first:]
        forget_support(model, size)

    def _recentre(self, x: np.ndarray, correlation: np.ndarray) -> None:
        """Put the model at x, where these are the correlations: c = correlation + G x."""
        model, size = self.model, x.size
        support = np.flatnonzero(x)
        G = model.G[:size, :size]
        model.c[:size] = correlation + G[:, support] @ x[support]
        model.x[:size] = x
        if not np.array_equal(model.is_in[:size], x != 0.0):
            factor(model, support)
        correlate(model)

    def admit(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the working set."""
        size = self.working.features.size
        if size > _MOST_ATOMS:
            raise OutgrownError
        if size > self.model.c.shape[0]:
            self.model = part_of(self.model, np.arange(size - n_new), 2 * size)
        self._fill(size - n_new)

    def support(self) -> np.ndarray:
        """Return the places of the atoms with a coefficient."""
        return np.flatnonzero(self.working.x)

    def keep(self, places: np.ndarray) -> None:
        """Keep these atoms alone."""
        self.model = part_of(self.model, places, self.model.c.shape[0])
        forget_support(self.model, places.size)

    def successor(self, tol: float, largest: float, interrupts: Interrupts | None) -> TaylorSolver:
        """Return this solver."""
        return self
