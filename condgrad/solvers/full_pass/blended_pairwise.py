"""Blended pairwise conditional gradients."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from condgrad.constraints import Atom
from condgrad.linalg.settings import RandomState
from condgrad.problems.active_set import ActiveSet
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.segment import between, towards
from condgrad.solvers.full_pass.base import ActiveState, LazyState, PassSolver
from condgrad.solvers.step_sizes import StepSize


class BlendedPairwise(PassSolver):
    r"""Blended pairwise conditional gradients: pairwise steps among the atoms, Frank-Wolfe steps for new ones.

    With v and a the worst and the best atom of the iterate and s = LMO(grad F(w)):
    if <grad, v - a> >= <grad, w - s>, move by gamma (a - v), else move by gamma (s - w). There are no swap steps, and
    the iterates are as sparse as methods with active sets can make them.

    The lazy form (over sets whose vertices are single features) compares <grad, v - a> with an estimate Phi of the gap,
    so steps among the atoms need the gradient only on their columns, and no oracle. The whole gradient is computed only
    if <grad, v - a> is below Phi; a gap below Phi / 2 then reduces Phi. Unlike in the paper, it is also computed if the
    gap on the hull of the atoms is what the run is asked for: atoms of hardly any weight keep <grad, v - a> large.

    Parameters
    ----------
    step_size : a rule of :mod:`condgrad.step_sizes`
        ExactLineSearch by default.
    lazy : bool
        Whether to save gradients and oracle calls if the set allows it.

    References
    ----------
    Tsuji, Tanaka & Pokutta (2022), algorithm 1 and its lazy form.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "bpcg").w
    array([2.])
    """

    requires = PassSolver.requires | {Feature.VERTICES}
    keeps_atoms = True

    def __init__(self, step_size: StepSize | None = None, lazy: bool = True) -> None:
        super().__init__(step_size)
        self.lazy = lazy

    def init(self, problem: BaseProblem, w0: np.ndarray | None, random_state: RandomState = None) -> BlendedState:
        """Return the state at ``w0``; Phi starts at half the first gap."""
        state = cast("ActiveState", super().init(problem, w0))
        is_atomic = problem.constraint.vertex is Atom and state.point.knows_atoms(state.active)
        is_lazy = self.lazy and is_atomic
        phi = state.point.gap / 2 if is_lazy else None
        return BlendedState(state.point, state.rule, phi, state.active)

    def step(self, problem: BaseProblem, state: BlendedState, t: int) -> None:
        """Make one step among the atoms, or one towards s."""
        point, active = state.point, state.active
        is_lazy = state.phi is not None
        if state.phi is not None and point.gap == np.inf:  # the gradient is not known: compute it on the atoms only
            products = point.atom_products(active)
            among_atoms = float(active.weights @ products - products.min())  # the gap on the hull of the atoms
            if products.max() - products.min() >= state.phi and among_atoms > state.goal:
                return self._step_among_atoms(state, products, t)
            point.ask_oracle()
            if point.gap < state.phi / 2:
                # The paper halves Phi once per iteration, without moving, until it is small enough. Here the gap is
                # known, so Phi is set at once and the iteration makes its step.
                state.phi = min(state.phi / 2, point.gap)
        products = active.inner_products(point.r)
        if products.max() - products.min() >= point.gap:
            return self._step_among_atoms(state, products, t)
        line = towards(point, point.s, point.gap)  # a Frank-Wolfe step adds the atom s
        gamma = state.rule.at(t, line)
        active.step_towards(point.s, gamma)
        point.move(line, gamma, asks=not is_lazy)

    def _step_among_atoms(self, state: BlendedState, products: np.ndarray, t: int) -> None:
        point, active = state.point, state.active
        k, best = int(products.argmax()), int(products.argmin())
        slope = float(products[best] - products[k])
        line = between(point, active.vertex(k), active.vertex(best), slope, float(active.weights[k]))
        gamma = state.rule.at(t, line)
        active.step_between(k, active.vertex(best), gamma, line.max_step)
        point.move(line, gamma, asks=state.phi is None)


class BlendedState(LazyState):
    """The state of a pass solver with an active set and the estimate Phi of the gap."""

    active: ActiveSet

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""
        is_lazy = self.phi is not None
        super().restore(numbers, arrays)
        if is_lazy != (self.phi is not None) or (is_lazy and not self.point.knows_atoms(self.active)):
            raise ValueError("its number 'phi' does not suit its atoms")
