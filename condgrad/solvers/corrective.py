"""Frank-Wolfe on Taylor models with corrections."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.problem import Evaluation, Problem
from condgrad.taylor_model import model_for

_SAVED = ("gradient_evaluations", "lmo_calls", "is_still")  # by a checkpoint
_SUFFICIENT = 1e-4  # of the decrease that the slope promises: Armijo's rule


class CorrectiveState:
    """w as a combination of atoms with weights x, and what the last pass told about it."""

    def __init__(self, problem: Problem, w0: np.ndarray | None) -> None:
        self.problem = problem
        self.model = model_for(problem)
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False
        atoms, x = self.model.start(w0)
        self.look(atoms, x, np.inf)

    def look(self, atoms: Any, x: np.ndarray, limit: float) -> bool:
        """Make a pass at w = sum_k x_k v_k; go there if the objective is at most ``limit``, and say so."""
        kept = self.model.kept(atoms, x)
        w = atoms.combination(x, self.problem.n_features)

        def choose(objective: float, r: np.ndarray) -> Any:
            if objective > limit:
                return None  # the step was too long: no curvature is needed here
            chosen = atoms.select(kept)
            self.model.enter(chosen, r)
            return chosen

        evaluation = self.problem.evaluate(w, choose)
        self.gradient_evaluations += self.problem.n_samples
        self.lmo_calls += 1
        if evaluation.atoms is None:
            return False
        self.w, self.evaluation, self.atoms = w, evaluation, evaluation.atoms
        self.x = np.concatenate([x[kept], np.zeros(len(self.atoms) - int(kept.sum()))])
        return True

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        kept = self.model.kept(self.atoms, self.x)
        arrays = {f"atoms.{name}": part for name, part in self.atoms.select(kept).to_arrays().items()}
        return {name: getattr(self, name) for name in _SAVED}, arrays | {"x": self.x[kept]}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot; a pass tells again what is not in it."""
        self.look(type(self.atoms).from_arrays(arrays), arrays["x"], np.inf)
        for name in _SAVED:
            setattr(self, name, numbers[name])

    @property
    def known_gap(self) -> float:
        """The exact gap at w."""
        return self.evaluation.gap

    gap_estimate = known_gap


class Corrective:
    r"""Frank-Wolfe on Taylor models: one pass over the data, then a correction of all weights at once.

    A pass at w gives F, its gradient r and its curvature H on the atoms of w and on several new vertices. Between
    passes the Taylor model <r, v - w> + (v - w)'H(v - w)/2 is minimised over the hull of these atoms by pairwise steps
    that touch no data, to a gap well below the present one; the next pass is made at its minimiser, and accepted if F
    fell enough, else the step is halved. Quadratic convergence near the optimum: 5 to 15 passes for gaps of 1e-9.

    Any loss with second derivatives (negative curvature of a non-convex one counts as zero), any set with vertices.
    It meets the data through ``problem.evaluate(w, atoms)`` alone.

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

    def __repr__(self) -> str:
        return "Corrective()"

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: Any = None) -> CorrectiveState:
        """Return the state at ``w0``, at the origin where the set has it, or at the set's own start."""
        if problem.matrix.is_sparse:  # both views will be asked for; a pass through another view rounds differently
            _ = problem.matrix.columns, problem.matrix.rows
        return CorrectiveState(problem, w0)

    def step(self, problem: Problem, state: CorrectiveState, t: int) -> None:
        """Minimise the Taylor model over the hull of the atoms, and make a pass where it leads to."""
        before = state.evaluation
        slopes = state.atoms.inner_products(before.gradient)
        x = state.model.minimise(state.atoms, slopes, before.curvature, state.x, min(0.1, 2.0 * before.gap))
        direction = x - state.x
        slope = min(0.0, float(slopes @ direction))  # close to the optimum it is lost in rounding, and the gap is not
        rounding = 1e-13 * abs(before.objective)
        gamma, state.is_still = 1.0, False
        while direction.any() and gamma > 1e-10:
            target = before.objective + _SUFFICIENT * gamma * slope + rounding
            if state.look(state.atoms, state.x + gamma * direction, target):
                return
            gamma /= 2.0
        state.is_still = True

    def advance(self, problem: Problem, state: CorrectiveState, t: int, max_steps: float, max_epochs: float) -> int:
        """Make one step."""
        self.step(problem, state, t)
        return 1

    def refresh(self, problem: Problem, state: CorrectiveState) -> None:
        """Do nothing: every pass is a fresh one."""

    def evaluate(self, problem: Problem, state: CorrectiveState) -> Evaluation:
        """Return what the last pass told."""
        return state.evaluation
