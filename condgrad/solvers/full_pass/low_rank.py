"""Frank-Wolfe in factors with corrections, for nuclear-norm balls."""

from __future__ import annotations

from typing import cast

from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.completion.point import CompletionPoint, CompletionSegment
from condgrad.problems.completion.problem import CompletionProblem
from condgrad.problems.completion.refit import refit
from condgrad.problems.segment import towards
from condgrad.solvers.full_pass.base import PassSolver, PointState

_CORE_STEPS = 2  # steps on the core of the factors before the sweeps of a step


class LowRank(PassSolver):
    r"""Corrective Frank-Wolfe over a nuclear-norm ball, with W in factors.

    A step calls the oracle for the best vertex, as Frank-Wolfe does, and adds the other singular directions of the
    gradient with large singular values. Two projected gradient steps in the span of all these directions decide which
    are needed (:mod:`condgrad.problems.completion.core_steps`). Then the factors are fitted again
    (:mod:`condgrad.problems.completion.refit`), which changes the directions themselves, and W is scaled back into the
    ball. The penalty of that fit is the multiplier of the ball,
    lam = -<grad F(W), W> / radius, which is ||grad F(W)|| at the optimum. For a narrow matrix with many known entries
    projected gradient steps on the whole matrix take the place of the fit. In both cases the result is only a
    proposal: it is accepted if it is at least as good as the Frank-Wolfe step with an exact line search; otherwise that
    step is made. So F decreases at least as fast as the theory of Frank-Wolfe states, and the gap certifies the convex
    problem.

    Parameters
    ----------
    sweeps : int
        The number of times that a step fits all rows and all columns of the factors.

    References
    ----------
    Jaggi & Sulovsky (2010) for Frank-Wolfe over this ball; Srebro, Rennie & Jaakkola (2004) for the norm as a penalty
    of factors; Freund, Grigas & Mazumder (2017) for corrections that keep the rank low; Mazumder, Hastie & Tibshirani
    (2010) for such gradient steps, there on whole matrices and with a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> rows, columns = np.divmod(np.arange(0, 600, 2), 20)  # every second entry of a 30 x 20 matrix
    >>> values = np.sin(rows) * np.cos(columns)
    >>> problem = cg.CompletionProblem(rows, columns, values, cg.losses.Squared(), cg.constraints.NuclearBall(10.0))
    >>> cg.minimize(problem, "low-rank", tol=1e-8).w.rank
    1
    """

    requires = PassSolver.requires | {Feature.FACTORS}

    def __init__(self, sweeps: int = 2) -> None:
        super().__init__()
        if not (isinstance(sweeps, int) and sweeps >= 1):
            raise ValueError(f"sweeps must be a whole number of at least 1; got {sweeps!r}.")
        self.sweeps = sweeps

    def __repr__(self) -> str:
        return f"LowRank(sweeps={self.sweeps})"

    def step(self, problem: CompletionProblem, state: PointState, t: int) -> None:
        """Propose a fit in enlarged factors; accept it if it is no worse than a Frank-Wolfe step."""
        point = cast("CompletionPoint", state.point)
        point.goal = state.goal
        line = cast("CompletionSegment", towards(point, point.s, point.gap))
        gamma = state.rule.at(t, line)
        Z, biases = refit(problem, point, self.sweeps, state.deadline, _CORE_STEPS)
        before, found = point.objective(), problem.objective_at(Z, biases)
        if found <= before + line.change(gamma):
            point.go_to(Z, biases)
            point.is_still = found >= before  # no decrease beyond rounding
        else:
            point.move(line, gamma)

    def refresh(self, problem: BaseProblem, state: PointState) -> None:
        """Compute all stored values anew, unless they were computed at the iterate itself."""
        if not cast("CompletionPoint", state.point).is_fresh:
            super().refresh(problem, state)
