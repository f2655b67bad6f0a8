"""Frank-Wolfe on Taylor models with corrections."""

from __future__ import annotations

import math
import time

import numpy as np

from condgrad.linalg.settings import RandomState
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.tilted import Bowl, TiltedProblem
from condgrad.solvers.full_pass.base import FullPassSolver
from condgrad.solvers.full_pass.corrective_state import ACCURACY, CorrectiveState

_SUFFICIENT = 1e-4  # fraction of the linear decrease that a step must reach: Armijo's rule
_ROUNDING = 1e-13  # share of F that rounding may add to it
_MOST_INNER = 50  # steps on a part in memory
_FINE = 1e-3  # gap there relative to that of all samples, if second derivatives of all samples are known
_GUIDED = 0.5  # a step on a part must reduce the gap by this factor
_TAIL = 0.7  # share of the slope of a loss that falls like exp(-gamma), above which a step may be longer
_LONGER, _LONGEST = 1.5, 4.0  # length of the first longer step, which still leads closer in other directions; the most
_CLEAR = 2.0  # how many times the noise of a subsample a step on it must gain
_CONTRACTION = 0.3  # largest ratio of two gaps in sequence: above it, the curvature is estimated from more samples


class Corrective(FullPassSolver):
    r"""Frank-Wolfe on Taylor models: one pass over the data, then a correction of all weights at once.

    A pass at w gives F, its gradient r and its curvature H on the atoms of w and on several new vertices. Between
    passes the Taylor model <r, v - w> + (v - w)'H(v - w)/2 is minimised over the hull of these atoms without reading
    data, to a gap well below the present one: over l1 balls by an exact solver, over other hulls by pairwise steps. If
    vertices have several entries, H is the curvature on features instead, and the model is minimised over the set
    itself by calls of its oracle, or by a quadratic program if the set has few linear rows. The next pass is made at
    the minimiser of the model; the step is accepted if F decreased enough, otherwise shortened. It is made longer where
    F falls like an exponential, as for classes that can be separated. The first passes use few samples, until w is as
    good as these samples allow. H is estimated from samples drawn by their curvature, from more of them if the gap
    shrinks too slowly. For a quadratic loss each entry of H is computed once. Gaps of 1e-9 take 4 to 15 full passes.

    It works for any loss with second derivatives (negative curvature of a non-convex loss is replaced by zero) and any
    set with vertices. It reads the data only through ``problem.look(w)``, of the problem or of a subsample.

    References
    ----------
    Xiong & Freund (2024) for Taylor points; fully corrective Frank-Wolfe: Lacoste-Julien & Jaggi (2015), algorithm 4.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "corrective").w
    array([2.])
    """

    requires = frozenset({Feature.LOOK, Feature.CURVATURE, Feature.VERTICES})

    def init(self, problem: BaseProblem, w0: np.ndarray | None, random_state: RandomState = None) -> CorrectiveState:
        """Return the state at ``w0``; by default at the origin if the set contains it, else at the set's own start."""
        return CorrectiveState(problem, w0, _minimised)

    def step(self, problem: BaseProblem, state: CorrectiveState, t: int) -> None:
        """Minimise the Taylor model over the hull of the atoms, and make a pass at its minimiser."""
        if state.ahead is not None and state.guide is not None:
            state.go_ahead(state.guide, state.ahead)
            return
        if state.uses_all and state.is_guided and state.guide is not None:
            self._step_on_part(state, state.guide)
            return
        state.gather()
        before, descent, was_estimate = state.look, state.descent(), False
        if descent is not None:
            z = state.descend(descent)
            state.known = state.known if problem.is_quadratic else None  # that of the last model is too old
        atoms, x = state.atoms, state.x
        slopes = before.slopes(atoms)  # <r, v_k>
        if descent is None:
            H, was_estimate = state.curvature(), state.is_estimate  # <v_k, H v_l>
            z = state.model.minimise(
                atoms, slopes, H, x, min(0.1, 2.0 * before.gap), is_estimate=was_estimate, deadline=state.deadline
            )
        direction = z - x
        slope = min(0.0, float(slopes @ direction))  # close to the optimum it is rounding, but the gap is not
        if not state.uses_all and (state.is_still or -slope <= _CLEAR * state.noise):  # enlarge the subsample
            state.widen()
            state.arrive(atoms, z, state.look_at(atoms, z))
            state.is_still = False
            return
        self._go(state, direction, slope)
        if was_estimate:
            state.stretch = 1.0  # an estimate says too little about what lies beyond the minimiser
        if descent is not None:
            descent.judge(before.gap, state.look.gap, state.is_still)
            state.is_still = False
        elif state.uses_all and state.look.gap > _CONTRACTION * before.gap:
            state.sharpen(was_estimate)
        if state.uses_all:
            state.measure_progress()

    def _go(self, state: CorrectiveState, direction: np.ndarray, slope: float) -> None:
        """Go along the direction from x, where F has this slope, to the first point tried where F decreased enough."""
        before, atoms, x = state.look, state.atoms, state.x
        rounding = _ROUNDING * abs(before.objective)
        can_be_longer = state.stretch > 1.0 and state.model.holds(x + state.stretch * direction)
        gamma, state.is_still = state.stretch if can_be_longer else 1.0, time.perf_counter() < state.deadline
        state.stretch = 1.0
        if not direction.any():
            self._guess_again(state)
        while direction.any() and gamma > 1e-10 and time.perf_counter() < state.deadline:
            look = state.look_at(atoms, x + gamma * direction)
            slope_there = float(look.slopes(atoms) @ direction)
            if look.objective <= before.objective + _SUFFICIENT * gamma * slope + rounding:
                state.arrive(atoms, x + gamma * direction, look)
                state.stretch = _next_stretch(gamma, slope, slope_there) if look.gap < before.gap else 1.0
                state.is_still = False
                break
            gamma = _shortened(gamma, before.objective - look.objective, slope, slope_there)

    def _guess_again(self, state: CorrectiveState) -> None:
        """Make a pass at the same w with a better intercept, if the last pass had a guess of it.

        A vertex can be the solution from the first pass on. Then only the error of the guess is left in the gap.
        """
        before = state.look
        if state.part.guess_offset(state.w, before) == before.evaluation.offset:
            return
        look = state.look_at(state.atoms, state.x)
        if look.gap <= 0.5 * before.gap:
            state.arrive(state.atoms, state.x, look)
            state.is_still = False

    def _step_on_part(self, state: CorrectiveState, part: BaseProblem) -> None:
        """Minimise F_S(z) + <grad F(w) - grad F_S(w), z> over the set, and make a pass over all samples at z.

        Where the last pass found second derivatives of F, the difference from those of F_S is added, too. A pass over
        all samples is far more expensive than many over the samples S in memory. If a step does not lead far, S is not
        like the rest, and Taylor models take over.
        """
        before, own = state.look, part.look(state.w)
        bowl = None if before.bends is None else Bowl.between(before.bends, own, state.w)
        tilted = TiltedProblem(part, before.gradient_near(own.gradient) - own.gradient, bowl)
        accuracy = ACCURACY if bowl is None else _FINE
        inner = _minimised(tilted, state.w, accuracy * before.gap, state.deadline)
        state.gradient_evaluations += inner.gradient_evaluations
        state.lmo_calls += inner.lmo_calls
        atoms, x = state.model.start(inner.w)
        look = state.look_at(atoms, x, inner.look)
        is_lower = look.objective <= before.objective + _ROUNDING * abs(before.objective)
        state.is_guided = is_lower and look.gap <= _GUIDED * before.gap
        if is_lower:
            state.arrive(atoms, x, look)

    def refresh(self, problem: BaseProblem, state: CorrectiveState) -> None:
        """Do nothing: every pass is a fresh one."""

    def evaluate(self, problem: BaseProblem, state: CorrectiveState) -> Evaluation | None:
        """Return the evaluation of the last pass; None while passes use a subsample."""
        return state.look.evaluation if state.uses_all else None


def _minimised(part: BaseProblem, w0: np.ndarray, gap: float, deadline: float) -> CorrectiveState:
    """Return the state of a run on samples in memory, from w0 to this gap, unless that takes too long."""
    solver, state = Corrective(), CorrectiveState(part, w0, _minimised)
    state.deadline = deadline
    for t in range(_MOST_INNER):
        if state.look.gap <= gap or state.is_still or time.perf_counter() >= deadline:
            break
        solver.step(part, state, t)
    return state


def _next_stretch(gamma: float, slope: float, slope_there: float) -> float:
    """Return the length of the next step, in units of the way to the minimiser of its model.

    Where classes can be separated, the losses fall like exp(-gamma) along the step, and Newton steps divide the gap by
    e. A quadratic has no slope left at its minimiser.
    """
    is_tail = gamma >= 1.0 and slope_there <= _TAIL * math.exp(-gamma) * slope < 0.0
    return min(_LONGEST, 2.0 * gamma if gamma > 1.0 else _LONGER) if is_tail else 1.0


def _shortened(gamma: float, gain: float, slope: float, slope_there: float) -> float:
    """Return a shorter step: about the minimiser of the cubic with these slopes at both ends, and this gain."""
    if slope_there <= 0.0:
        return 0.5 * gamma
    bend = slope + slope_there + 3.0 * gain / gamma
    root = math.sqrt(bend * bend - slope * slope_there)
    ahead = 1.0 - (slope_there + root - bend) / (slope_there - slope + 2.0 * root)
    return gamma * min(0.7, max(0.1, ahead))
