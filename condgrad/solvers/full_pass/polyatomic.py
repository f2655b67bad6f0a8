"""Polyatomic Frank-Wolfe: several vertices in each step, and partial corrections."""

from __future__ import annotations

from typing import cast

import numpy as np

from condgrad.constraints import Atom
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.convert import as_number
from condgrad.linalg.settings import RandomState
from condgrad.problems.active_set import AtomStack, Stack, stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.solvers.full_pass.base import FullPassSolver
from condgrad.solvers.full_pass.hull_steps import pairwise_steps
from condgrad.solvers.full_pass.quadratic_hull import QuadraticHull

_MOST_STEPS = 10_000  # pairwise steps of one correction


class Polyatomic(FullPassSolver):
    r"""Polyatomic Frank-Wolfe, Jarret, Fageot & Simeoni (2021): for a quadratic F over any polytope.

    Every vertex v whose own gap <grad F(w), w - v> is at least 1 - 2 / (t + 2) of the largest one enters: many at
    first, few later. The weights are then corrected partly: F is minimised over the hull of the active vertices up to
    a gap of 1 / (t + 2) times the present one.

    A step costs one pass, the predictions of m new vertices, their products with those of k active ones,
    O(n m (m + k)), and pairwise steps of O(k) each, which read no data.

    What differs from the source, which has the penalised Lasso: the set is any polytope, gaps take the place of entries
    of the gradient, at most ``n_atoms`` vertices enter in a step, and corrections are pairwise steps instead of
    proximal ones. Sets that know only their best vertex (``best_vertices``) let one in at a time.

    Parameters
    ----------
    n_atoms : int
        The largest number of vertices that enter in a step.

    References
    ----------
    Jarret, Fageot & Simeoni (2021), algorithm 2.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "polyatomic").w
    array([2.])
    """

    requires = frozenset({Feature.LOOK, Feature.CURVATURE, Feature.VERTICES})

    def __init__(self, n_atoms: int = 100) -> None:
        self.n_atoms = int(as_number(n_atoms, "n_atoms of Polyatomic", low=1, what="a number of at least 1"))

    def init(self, problem: BaseProblem, w0: np.ndarray | None, random_state: RandomState = None) -> QuadraticHull:
        """Return the state at ``w0``, or at the set's own start."""
        return QuadraticHull(problem, w0, "Polyatomic")

    def step(self, problem: BaseProblem, state: QuadraticHull, t: int) -> None:
        """Let several vertices in, and correct the weights partly."""
        falling = 2.0 / (t + 2.0)
        state.let_in(self._above(problem, state, 1.0 - falling))  # those with <grad F(w), w - v> >= threshold * gap
        g, H, x = state.slopes(), state.curvature(), state.x.copy()
        # In vain only by rounding, or because the correction was too rough: the next one goes further.
        goal = 0.5 * falling * 0.1**state.n_vain * state.look.gap
        pairwise_steps(g, H, x, False, False, goal, _MOST_STEPS)
        state.go_to(x)

    def _above(self, problem: BaseProblem, state: QuadraticHull, threshold: float) -> list[Vertex]:
        """Return the vertices whose own gap is at least ``threshold`` times the largest one, and the best one."""
        constraint, look = problem.constraint, state.look
        found: Stack
        if constraint.vertex is Atom:
            found = AtomStack(*constraint.best_atoms(look.leading, self.n_atoms))
        else:
            found = stack(constraint.best_vertices(look.leading, self.n_atoms))
        limit = float(state.slopes() @ state.x) - threshold * look.gap  # <r, w> - threshold * gap
        above = np.flatnonzero(found.inner_products(look.leading) <= limit)
        return [cast("Vertex", look.vertex), *(found.vertex(int(k)) for k in above)]

    def refresh(self, problem: BaseProblem, state: QuadraticHull) -> None:
        """Do nothing: every pass is a fresh one."""

    def evaluate(self, problem: BaseProblem, state: QuadraticHull) -> Evaluation:
        """Return the evaluation of the last pass."""
        return state.look.evaluation
