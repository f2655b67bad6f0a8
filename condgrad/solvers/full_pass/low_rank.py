"""Frank-Wolfe in factors with corrections, for nuclear-norm balls."""

from __future__ import annotations

import time
from typing import cast

import numpy as np

from condgrad.linalg.factored import Factored
from condgrad.problems.base import Feature
from condgrad.problems.completion.biases import Biases
from condgrad.problems.completion.point import CompletionPoint, CompletionSegment
from condgrad.problems.completion.problem import CompletionProblem
from condgrad.problems.segment import towards
from condgrad.solvers.full_pass.base import PassSolver, PointState

_FEW = 10  # number of new directions that a step may always add; it may also double the rank
_ABOVE = 1e-3  # relative margin above the multiplier that a singular value of the gradient needs to add its direction
_STEPS_PER_DIRECTION = 2  # Lanczos steps per direction: enough for singular vectors to start from
_LEAST_CURVATURE = 0.02  # smallest curvature of an entry, as a fraction of the largest: flat parts give unbounded steps
_CUTOFF = 1e-6  # singular values of W below this fraction of the largest are dropped


class LowRank(PassSolver):
    r"""Corrective Frank-Wolfe over a nuclear-norm ball, with W in factors.

    A step calls the oracle for the best vertex, as Frank-Wolfe does, and adds the other singular directions of the
    gradient with large singular values. Then the factors are fitted again in all these directions
    (:mod:`condgrad.problems.completion.factor_fit`), which changes the directions themselves and drops those that are
    not needed, and W is scaled back into the ball. The penalty of that fit is the multiplier of the ball,
    lam = -<grad F(W), W> / radius, which is ||grad F(W)|| at the optimum. The fit is not convex, so it is only a
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
    of factors; Freund, Grigas & Mazumder (2017) for corrections that keep the rank low.

    Examples
    --------
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
        line = cast("CompletionSegment", towards(point, point.s, point.gap))
        gamma = state.rule.at(t, line)
        Z, biases = self._fit(problem, point, state.deadline)
        before, found = point.objective(), problem.objective_at(Z, biases)
        if found <= before + line.change(gamma):
            point.go_to(Z, biases)
            point.is_still = found >= before  # no decrease beyond rounding
        else:
            point.move(line, gamma)

    def _fit(
        self, problem: CompletionProblem, point: CompletionPoint, deadline: float
    ) -> tuple[Factored, Biases | None]:
        """Return factors fitted in the directions of W and in new ones, inside the ball, and their biases."""
        Z, biases = _enlarged(problem, point), point.biases
        for _ in range(self.sweeps):
            if time.perf_counter() >= deadline:
                break
            Z, lam = _into_ball(problem, Z, biases)
            fit = problem.factor_fit(Z, biases)
            fit.sweep(lam)
            Z, biases = Factored(fit.A, np.ones(fit.A.shape[1]), fit.B).compressed(_CUTOFF), fit.biases
        return _into_ball(problem, Z, biases)[0], biases


def _enlarged(problem: CompletionProblem, point: CompletionPoint) -> Factored:
    """Return W plus the directions whose singular value in the gradient exceeds the multiplier of the ball.

    The weight of each direction is the length of a Newton step along it alone.
    """
    wanted = max(_FEW, point.Z.rank)
    point.lanczos.extend(_STEPS_PER_DIRECTION * wanted - point.lanczos.n_steps)
    U, s, V = point.lanczos.triplets(wanted)
    lam = _multiplier(problem, point.alpha, point.x)
    if lam == 0.0:  # the multiplier is not known yet
        lam = 0.5 * s[-1] if s.size else 0.0
    new = s > (1.0 + _ABOVE) * lam
    U, s, V = U[:, new], s[new], V[:, new]
    d = problem.curvatures(point.p)
    d = np.maximum(d, _LEAST_CURVATURE * d.max(initial=0.0))
    W = problem.out_of_ball(Factored(U, s, V))
    bend = np.array([W.U[:, k] ** 2 @ problem.entries.dot(d, W.V[:, k] ** 2) for k in range(s.size)])
    weights = np.divide(s - lam, bend, out=np.zeros_like(s), where=bend > 0.0)
    return point.Z.plus(Factored(-U, weights, V)).compressed(_CUTOFF)


def _into_ball(problem: CompletionProblem, Z: Factored, biases: Biases | None) -> tuple[Factored, float]:
    """Return the best multiple of Z in the ball, and the multiplier there; the biases are fixed."""
    # If Z is too large, the penalty was too small: every singular value is reduced as a larger penalty would do.
    Z = Z.with_values(problem.constraint.nearest_values(Z.s))
    size = float(Z.s.sum())
    if size == 0.0:
        return Z, 0.0
    x = problem.values_of(Z)
    offset = problem.predict(np.zeros_like(x), biases)
    factor = problem.best_multiple(x, offset, problem.constraint.radius / size)
    Z, x = Z.scaled(None, None, factor), factor * x
    return Z, _multiplier(problem, problem.derivatives(offset + x, 0.0), x)


def _multiplier(problem: CompletionProblem, alpha: np.ndarray, x: np.ndarray) -> float:
    """Return lam = -<grad F(W), W> / radius (at least 0), which at the optimum is the norm of the gradient."""
    return max(0.0, -float(alpha @ x) / problem.constraint.radius)
