"""Frank-Wolfe on Taylor models with corrections."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from condgrad.compiled import Stopwatch
from condgrad.linalg.settings import RandomState
from condgrad.problems.active_set import Stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.look import Look
from condgrad.solvers.base import State
from condgrad.solvers.full_pass.base import FullPassSolver
from condgrad.solvers.full_pass.taylor_model import model_for

_SAVED = ("gradient_evaluations", "lmo_calls", "is_still", "first_objective", "rows_per_atom")  # beside n_rows
_SUFFICIENT = 1e-4  # of the decrease that the slope promises: Armijo's rule
_SMALL = 4000  # samples that a first rough answer is sought for
_WIDENING = 8  # how many times more samples a rough answer is refined on
_FEW_ROWS = 30  # per atom, for a first estimate of the curvature
_FAST = 0.1  # keep the curvature while a pass shrinks the gap below this fraction of the last one
_CONTRACTION = 0.3  # of the gap by a pass: where it shrinks less, the curvature should be more exact


class CorrectiveState(State):
    """w as a combination of atoms with weights x, the last look at it, and what is known of the curvature there."""

    def __init__(self, problem: BaseProblem, w0: np.ndarray | None) -> None:
        self.problem = problem
        self.model = model_for(problem)
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False
        self.rows_per_atom = _FEW_ROWS
        self._seconds_per_product = 0.0  # of the last curvature: not known yet
        self.see(_SMALL if w0 is None else problem.n_samples)
        atoms, x = self.model.start(w0)
        self.arrive(atoms, x, self.look_at(atoms, x))
        self.first_objective = self.look.objective

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        return self._w

    def see(self, n_rows: int) -> None:
        """Make passes over about ``n_rows`` of the samples from now on, or over all where they make no problem."""
        part = self.problem.part(n_rows)
        self.part = self.problem if part is None else part
        self.n_rows = self.problem.n_samples if self.part is self.problem else n_rows
        self.last_gap = np.inf  # of the last pass over these samples
        self.known: np.ndarray | None = None  # of the curvature on the first atoms

    @property
    def sees_all(self) -> bool:
        """Whether passes go over all samples."""
        return self.part is self.problem

    def look_at(self, atoms: Stack, x: np.ndarray) -> Look:
        """Make a pass at w = sum_k x_k v_k."""
        self.gradient_evaluations += self.part.n_samples
        self.lmo_calls += 1
        return self.part.look(atoms.combination(x, self.problem.n_features))

    def arrive(self, atoms: Stack, x: np.ndarray, look: Look) -> None:
        """Go to w = sum_k x_k v_k, where a look was taken; add the vertices that it finds promising."""
        kept = self.model.kept(atoms, x)
        self.atoms, n_kept = atoms.select(kept), int(np.count_nonzero(kept))
        self.model.enter(self.atoms, x[kept], look.gradient, look.gap)
        # A quadratic F has one Hessian, found a few columns at a time. Other curvatures serve on as long as they lead
        # on fast, and no atom is new.
        serves_on = len(self.atoms) == n_kept and look.gap <= _FAST * self.last_gap
        if self.known is not None:
            self.known = self.known[np.ix_(kept, kept)] if self.problem.is_quadratic or serves_on else None
        self._w, self.look, self.last_gap = atoms.combination(x, self.problem.n_features), look, look.gap
        self.x = np.append(x[kept], np.zeros(len(self.atoms) - n_kept))

    def curvature(self) -> np.ndarray:
        """Return the curvature of F at w on the atoms."""
        if self.known is None or self.known.shape[0] < len(self.atoms):
            n_rows = min(self.rows_needed, self._rows_in_time())
            with Stopwatch() as watch:  # without what is compiled
                self.known = self.look.curvature(self.atoms, self.known, n_rows)
            seen = min(n_rows, self.part.n_samples)
            self._seconds_per_product = watch.seconds / (seen * max(1, len(self.atoms)) ** 2)
        return self.known

    def _rows_in_time(self) -> float:
        """Return from how many samples the curvature can be estimated before the deadline, going by the last one."""
        if self.problem.is_quadratic or self.deadline == np.inf or self._seconds_per_product == 0.0:
            return np.inf
        left = max(0.0, self.deadline - time.perf_counter())
        return max(_FEW_ROWS, left / (self._seconds_per_product * max(1, len(self.atoms)) ** 2))

    @property
    def rows_needed(self) -> float:
        """The number of samples from which to estimate the curvature."""
        return np.inf if self.problem.is_quadratic else self.rows_per_atom * max(20, len(self.atoms))

    @property
    def is_estimate(self) -> bool:
        """Whether the curvature comes from some of the samples that are seen."""
        return self.rows_needed < self.part.n_samples

    @property
    def noise(self) -> float:
        """How far above the optimum of all samples the best w of those seen lies, about.

        That of m samples with k nonzero weights lies about k / m above, in units of a typical loss.
        """
        scale = max(abs(self.look.objective), self.first_objective - self.look.objective)
        return scale * np.count_nonzero(self.x) / self.part.n_samples

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        arrays = {f"atoms.{name}": part for name, part in self.atoms.to_arrays().items()} | {"x": self.x}
        known = {} if self.known is None else {"curvature": self.known}
        return {name: getattr(self, name) for name in _SAVED} | {"n_rows": self.n_rows}, arrays | known

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot; a pass tells again what is not in it."""
        self.see(_rows_seen(numbers, self.problem.n_samples))
        for name in _SAVED:
            setattr(self, name, numbers[name])
        self.atoms, self.x = type(self.atoms).from_arrays(arrays), arrays["x"]
        self.known = arrays.get("curvature")
        self._w = self.atoms.combination(self.x, self.problem.n_features)
        self.look = self.part.look(self._w)
        self.last_gap = self.look.gap

    @property
    def known_gap(self) -> float:
        """The exact gap at w, once all samples are seen."""
        return self.look.gap if self.sees_all else np.inf


class Corrective(FullPassSolver):
    r"""Frank-Wolfe on Taylor models: one pass over the data, then a correction of all weights at once.

    A pass at w gives F, its gradient r and its curvature H on the atoms of w and on several new vertices. Between
    passes the Taylor model <r, v - w> + (v - w)'H(v - w)/2 is minimised over the hull of these atoms by pairwise steps
    that touch no data, to a gap well below the present one; the next pass is made at its minimiser, and accepted if F
    fell enough, else the step is cut. Passes over few samples come first, until an answer is as good as few samples
    can make it; H is estimated from samples drawn by their curvature, more of them where the gap shrinks too slowly.
    For a quadratic loss H is exact, and each of its entries is computed once. Gaps of 1e-9 take 4 to 10 full passes.

    Any loss with second derivatives (negative curvature of a non-convex one counts as zero), any set with vertices.
    It meets the data through ``problem.look(w)`` alone, of the problem or of a part of it.

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
        """Return the state at ``w0``, at the origin where the set has it, or at the set's own start."""
        return CorrectiveState(problem, w0)

    def step(self, problem: BaseProblem, state: CorrectiveState, t: int) -> None:
        """Minimise the Taylor model over the hull of the atoms, and make a pass where it leads to."""
        before, atoms, x = state.look, state.atoms, state.x
        slopes = atoms.inner_products(before.gradient)  # <r, v_k>
        H = state.curvature()  # <v_k, H v_l>
        z = state.model.minimise(
            atoms, slopes, H, x, min(0.1, 2.0 * before.gap), is_estimate=state.is_estimate, deadline=state.deadline
        )
        direction = z - x
        slope = min(0.0, float(slopes @ direction))  # close to the optimum it is lost in rounding, and the gap is not
        if not state.sees_all and (state.is_still or -slope <= state.noise):  # see more samples
            state.see(_WIDENING * state.n_rows)
            state.arrive(atoms, z, state.look_at(atoms, z))
            state.is_still = False
            return
        rounding = 1e-13 * abs(before.objective)
        gamma, state.is_still = 1.0, time.perf_counter() < state.deadline
        while direction.any() and gamma > 1e-10 and time.perf_counter() < state.deadline:
            look = state.look_at(atoms, x + gamma * direction)
            if look.objective <= before.objective + _SUFFICIENT * gamma * slope + rounding:
                state.arrive(atoms, x + gamma * direction, look)
                state.is_still = False
                break
            gamma *= _cut(slope, float(atoms.inner_products(look.gradient) @ direction))
        if state.sees_all and state.look.gap > _CONTRACTION * before.gap:
            state.rows_per_atom *= 4

    def refresh(self, problem: BaseProblem, state: CorrectiveState) -> None:
        """Do nothing: every pass is a fresh one."""

    def evaluate(self, problem: BaseProblem, state: CorrectiveState) -> Evaluation | None:
        """Return what the last pass has found; None while passes go over some of the samples."""
        return state.look.evaluation if state.sees_all else None


def _rows_seen(numbers: dict[str, Any], n_samples: int) -> int:
    """Return how many samples a saved run made its passes over."""
    if "n_rows" in numbers:
        return int(numbers["n_rows"])
    n_rows = _SMALL  # older files tell one in how many samples was seen
    while n_samples // n_rows > numbers["thinning"]:
        n_rows *= _WIDENING
    return n_rows


def _cut(slope: float, slope_beyond: float) -> float:
    """Return the factor for a step that was too long: it leads to the root of the secant of the slopes, about."""
    if slope_beyond <= 0.0:
        return 0.5
    return min(0.5, max(0.1, slope / (slope - slope_beyond)))
