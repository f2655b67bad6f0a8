"""Frank-Wolfe on Taylor models with corrections."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from condgrad.problems.evaluation import Evaluation, Wanted
from condgrad.problems.linear import Problem
from condgrad.solvers.full_pass.taylor_model import model_for

_SAVED = ("gradient_evaluations", "lmo_calls", "is_still", "thinning", "first_objective", "rows_per_atom")
_SUFFICIENT = 1e-4  # of the decrease that the slope promises: Armijo's rule
_SMALL = 4000  # samples that a first rough answer is sought for
_WIDENING = 8  # how many times more samples a rough answer is refined on
_FEW_ROWS = 30  # per atom, for a first estimate of the curvature
_FAST = 0.1  # of the gap by a pass: where it shrinks so much, the curvature need not be computed again
_CONTRACTION = 0.3  # of the gap by a pass: where it shrinks less, the curvature should be more exact


class CorrectiveState:
    """w as a combination of atoms with weights x, and what the last pass told about it."""

    deadline = np.inf  # by time.perf_counter: steps are cut short there

    def __init__(self, problem: Problem, w0: np.ndarray | None) -> None:
        self.problem = problem
        self.model = model_for(problem)
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False
        self.rows_per_atom = _FEW_ROWS
        self.see(_first_thinning(problem) if w0 is None else 1)
        atoms, x = self.model.start(w0)
        self.look(atoms, x, np.inf)
        self.first_objective = self.evaluation.objective

    def see(self, thinning: int) -> None:
        """Make passes over one sample in ``thinning`` from now on."""
        self.thinning = thinning
        self.part = self.problem.thinned(thinning)
        self.curvature: np.ndarray | None = None  # on the atoms

    def look(self, atoms: Any, x: np.ndarray, limit: float) -> Evaluation | None:
        """Make a pass at w = sum_k x_k v_k; go there if F is at most ``limit``, else return what the pass told."""
        kept = self.model.kept(atoms, x)
        w = atoms.combination(x, self.problem.n_features)

        def choose(objective: float, r: np.ndarray, gap: float) -> Wanted | None:
            if objective > limit:
                return None  # the step was too long: no curvature is needed here
            chosen = atoms.select(kept)
            self.model.enter(chosen, x[kept], r, gap)
            # A quadratic loss has one Gram matrix, found a few columns at a time. Other curvatures serve on as long as
            # they lead on fast.
            serves_on = len(chosen) == np.count_nonzero(kept) and gap <= _FAST * self.last_gap
            if self.curvature is not None and (self.problem.loss.is_quadratic or serves_on):
                return Wanted(chosen, known=self.curvature[np.ix_(kept, kept)])
            return Wanted(chosen, n_rows=self.rows_needed(len(chosen)))

        evaluation = self.part.evaluate(w, choose)
        self.gradient_evaluations += self.part.n_samples
        self.lmo_calls += 1
        if evaluation.atoms is None:
            return evaluation
        self.w, self.evaluation, self.atoms, self.curvature = w, evaluation, evaluation.atoms, evaluation.curvature
        self.x = np.zeros(len(self.atoms))
        self.x[: np.count_nonzero(kept)] = x[kept]
        return None

    def rows_needed(self, n_atoms: int) -> float:
        """Return the number of samples from which to estimate the curvature."""
        return np.inf if self.problem.loss.is_quadratic else self.rows_per_atom * max(20, n_atoms)

    @property
    def is_estimate(self) -> bool:
        """Whether the curvature comes from some of the samples that are seen."""
        return self.rows_needed(len(self.atoms)) < self.part.n_samples

    @property
    def last_gap(self) -> float:
        """The gap of the last pass over the samples that are seen now."""
        return np.inf if self.curvature is None else self.evaluation.gap

    @property
    def noise(self) -> float:
        """How far above the optimum of all samples the best w of those seen lies, about.

        That of m samples with k nonzero weights lies about k / m above, in units of a typical loss.
        """
        scale = max(abs(self.evaluation.objective), self.first_objective - self.evaluation.objective)
        return scale * np.count_nonzero(self.x) / self.part.n_samples

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        assert self.curvature is not None
        arrays = {f"atoms.{name}": part for name, part in self.atoms.to_arrays().items()}
        return {name: getattr(self, name) for name in _SAVED}, arrays | {"x": self.x, "curvature": self.curvature}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot; a pass tells again what is not in it."""
        for name in _SAVED:
            setattr(self, name, numbers[name])
        self.see(self.thinning)
        self.atoms, self.x = type(self.atoms).from_arrays(arrays), arrays["x"]
        self.curvature = arrays["curvature"]
        self.w = self.atoms.combination(self.x, self.problem.n_features)
        self.evaluation = self.part.evaluate(self.w)

    @property
    def known_gap(self) -> float:
        """The exact gap at w, once all samples are seen."""
        return self.evaluation.gap if self.thinning == 1 else np.inf

    gap_estimate = known_gap


class Corrective:
    r"""Frank-Wolfe on Taylor models: one pass over the data, then a correction of all weights at once.

    A pass at w gives F, its gradient r and its curvature H on the atoms of w and on several new vertices. Between
    passes the Taylor model <r, v - w> + (v - w)'H(v - w)/2 is minimised over the hull of these atoms by pairwise steps
    that touch no data, to a gap well below the present one; the next pass is made at its minimiser, and accepted if F
    fell enough, else the step is cut. Passes over few samples come first, until an answer is as good as few samples
    can make it; H is estimated from samples drawn by their curvature, more of them where the gap shrinks too slowly.
    For a quadratic loss H is exact, and each of its entries is computed once. Gaps of 1e-9 take 4 to 10 full passes.

    Any loss with second derivatives (negative curvature of a non-convex one counts as zero), any set with vertices.
    It meets the data through ``problem.evaluate(w, atoms)`` alone, of the problem or of a thinned one.

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

    needs_curvature = True  # of the problem, on atoms

    def __repr__(self) -> str:
        return "Corrective()"

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: Any = None) -> CorrectiveState:
        """Return the state at ``w0``, at the origin where the set has it, or at the set's own start."""
        return CorrectiveState(problem, w0)

    def step(self, problem: Problem, state: CorrectiveState, t: int) -> None:
        """Minimise the Taylor model over the hull of the atoms, and make a pass where it leads to."""
        before = state.evaluation
        slopes = state.atoms.inner_products(before.gradient)
        tol = min(0.1, 2.0 * before.gap)
        x = state.model.minimise(
            state.atoms, slopes, state.curvature, state.x, tol, is_estimate=state.is_estimate, deadline=state.deadline
        )
        direction = x - state.x
        slope = min(0.0, float(slopes @ direction))  # close to the optimum it is lost in rounding, and the gap is not
        if state.thinning > 1 and (state.is_still or -slope <= state.noise):  # see more samples
            state.see(max(1, state.thinning // _WIDENING))
            state.look(state.atoms, x, np.inf)
            state.is_still = False
            return
        rounding = 1e-13 * abs(before.objective)
        gamma, state.is_still = 1.0, True
        while direction.any() and gamma > 1e-10 and time.perf_counter() < state.deadline:
            target = before.objective + _SUFFICIENT * gamma * slope + rounding
            beyond = state.look(state.atoms, state.x + gamma * direction, target)
            if beyond is None:
                state.is_still = False
                break
            gamma *= _cut(slope, float(state.atoms.inner_products(beyond.gradient) @ direction))
        if state.thinning == 1 and state.evaluation.gap > _CONTRACTION * before.gap:
            state.rows_per_atom *= 4

    def advance(self, problem: Problem, state: CorrectiveState, t: int, max_steps: float, max_epochs: float) -> int:
        """Make one step."""
        self.step(problem, state, t)
        return 1

    def refresh(self, problem: Problem, state: CorrectiveState) -> None:
        """Do nothing: every pass is a fresh one."""

    def evaluate(self, problem: Problem, state: CorrectiveState) -> Evaluation:
        """Return what the last pass told, or a pass over all samples tells."""
        return state.evaluation if state.thinning == 1 else problem.evaluate(state.w)


def _first_thinning(problem: Problem) -> int:
    thinning = max(1, problem.n_samples // _SMALL)
    return thinning if problem.can_be_thinned(thinning) else 1


def _cut(slope: float, slope_beyond: float) -> float:
    """Return the factor for a step that was too long: it leads to the root of the secant of the slopes, about."""
    if slope_beyond <= 0.0:
        return 0.5
    return min(0.5, max(0.1, slope / (slope - slope_beyond)))
