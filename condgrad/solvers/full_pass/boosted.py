"""Boosted Frank-Wolfe: steps along a direction that is nearly parallel to the steepest descent."""

from __future__ import annotations

from typing import Any

from condgrad.constraints.vertices import DenseVertex
from condgrad.linalg.convert import as_number
from condgrad.linalg.settings import RandomState
from condgrad.linalg.vectors import inner
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.point import Point
from condgrad.problems.pursuit import Pursuit, aim, pursuit
from condgrad.problems.segment import towards
from condgrad.solvers.full_pass.base import PassSolver, PointState
from condgrad.solvers.step_sizes import LineRule


class PursuitState(PointState):
    """A point, its step size rule, and the arrays of the pursuit, which hold nothing between two steps."""

    point: Point

    def __init__(self, state: PointState, pursuit: Pursuit) -> None:
        super().__init__(state.point, state.rule)
        self.pursuit = pursuit


class Boosted(PassSolver):
    r"""Boosted Frank-Wolfe, Combettes & Pokutta (2020): chase the steepest descent by several vertices in each step.

    A vertex alone may point far away from -grad F(w). A pursuit of at most K rounds combines vertices to a direction
    d = sum_k lam_k (v_k - w) that is better aligned, as long as a round gains delta in the cosine, and
    w <- w + gamma d / sum_k lam_k.

    A step costs one gradient, up to K oracle calls, O(K d), and the predictions of one dense direction.

    Parameters
    ----------
    step_size : a rule of :mod:`condgrad.step_sizes`
        ExactLineSearch by default.
    n_rounds : int
        K.
    delta : float
        The least gain in the cosine of a round.

    References
    ----------
    Combettes & Pokutta (2020), algorithm 2.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "boosted").w
    array([2.])
    """

    requires = PassSolver.requires | {Feature.VERTICES}

    def __init__(self, step_size: LineRule | None = None, n_rounds: int = 50, delta: float = 1e-3) -> None:
        super().__init__(step_size)
        self.n_rounds = int(as_number(n_rounds, "n_rounds of Boosted", low=1, what="a number of at least 1"))
        self.delta = as_number(delta, "delta of Boosted", low=0.0, what="a number of at least 0")

    def init(self, problem: BaseProblem, w0: Any, random_state: RandomState = None) -> PursuitState:
        """Return the state at ``w0``, or at the set's own start."""
        state = super().init(problem, w0, random_state)
        return PursuitState(state, pursuit(problem.constraint, problem.n_features, self.n_rounds, self.delta))

    def step(self, problem: BaseProblem, state: PursuitState, t: int) -> None:
        """Make one step along the direction that the pursuit finds."""
        point, chase = state.point, state.pursuit
        # d = sum_k lam_k (v_k - w), close to -grad F(w); its end is w + d / sum_k lam_k
        point.lmo_calls += aim(chase, problem.constraint, point.r, point.w, point.s)
        end = DenseVertex(chase.end.copy())
        line = towards(point, end, point.along() - inner(point.r, end.values))
        gamma = state.rule.at(t, line)
        point.move(line, gamma)  # w <- w + gamma d / sum_k lam_k
