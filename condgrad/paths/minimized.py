"""MinimizedPath: the points of a path by any solver, each from the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.compiled import Stopwatch
from condgrad.paths.points import InterruptedPathError, Solved
from condgrad.paths.radius_search import multiplier
from condgrad.problems.evaluation import Evaluation
from condgrad.run.minimize import minimize
from condgrad.run.result import Result, Status


class MinimizedPath:
    """Points over sets ``make(radius)``; ``solver_at`` and ``start_at`` give solver and start for a radius.

    ``start_at`` is called with the last solution (zero at first) and the radius; None leaves the start to the solver.
    ``tol`` is relative to ``scale``.
    """

    is_penalised = False
    falls_short = False

    def __init__(
        self,
        problem: Any,
        make: Callable[..., Any],
        solver_at: Callable[[float], Any],
        start_at: Callable[[np.ndarray, float], np.ndarray | None],
        *,
        tol: float,
        scale: float,
        max_epochs: float,
        random_state: Any,
    ) -> None:
        self.make, self.unit = make, make(1.0)
        self.problem = problem.over(self.unit)
        self.solver_at, self.start_at = solver_at, start_at
        self.tol, self.scale, self.max_epochs = tol, scale, max_epochs
        self.random = np.random.default_rng(random_state)
        self.n_features = problem.n_features
        self.w = np.zeros(problem.n_features)
        self.shortfall = Status.STALLED
        self.gap_bounds_objective = problem.loss.is_convex
        self.epochs = 0.0
        self.n_lmo = 0

    def advance(self, targets: np.ndarray) -> list[Solved]:
        """Return the solver's answer at the first radius of those that are left."""
        with Stopwatch() as watch:
            solved = self._solve(float(targets[0]))
        return [solved._replace(seconds=watch.seconds)]

    def _solve(self, radius: float) -> Solved:
        if radius == 0.0:
            zero = self.problem.evaluate(self.w)
            zero = zero._replace(gap=0.0, rounding=0.0)  # the only point of its ball
            return self._solved(radius, zero, zero.gradient)
        problem = self.problem.over(self.make(radius))
        result = minimize(
            problem,
            self.solver_at(radius),
            w0=self.start_at(self.w, radius),
            tol=self.tol * self.scale,
            max_epochs=self.max_epochs,
            random_state=self.random,
        )
        if result.status is Status.INTERRUPTED:
            raise InterruptedPathError
        if result.gap + result.rounding > self.tol * self.scale:
            self.shortfall = result.status
        self.w = result.w
        self.epochs += result.n_epochs
        self.n_lmo += result.n_lmo
        r = problem.gradient(result.w)
        return self._solved(radius, result, r)

    def _solved(self, radius: float, found: Evaluation | Result, r: np.ndarray) -> Solved:
        features = np.flatnonzero(self.w)
        return Solved(
            features=features,
            w=self.w[features],
            radius=radius,
            alpha=multiplier(self.unit, r),
            gap=found.gap,
            rounding=found.rounding,
            objective=found.objective,
            intercept=found.intercept,
            seconds=0.0,
        )

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls."""
        return int(self.epochs * self.n_features), self.n_lmo
