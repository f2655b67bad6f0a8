"""FactorWalk: a completion problem over balls of growing radii, fitted roughly and without certificates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from condgrad.constraints import NuclearBall
from condgrad.linalg.factored import Factored
from condgrad.problems.completion.biases import Biases
from condgrad.problems.completion.oracle import Search
from condgrad.problems.completion.problem import CompletionProblem
from condgrad.problems.completion.refit import refit

GROWTH = math.sqrt(2.0)  # the largest ratio of two radii that one refit can follow


class FactorWalk:
    """A completion problem over the balls ``make(radius)`` of ascending radii: one refit of the factors for each.

    The solution for a radius is close to that for a slightly smaller one, so that one sweep over the factors is
    enough to compare radii with each other. Biases are those of the sweeps, not the best ones, and no gap is
    computed.

    Parameters
    ----------
    problem : CompletionProblem
    make : callable
        Makes the ball of a radius.

    Attributes
    ----------
    problem : CompletionProblem
        The problem over the last ball.
    Z, biases, x, p, alpha, search
        The last fit, as :class:`condgrad.problems.completion.refit.Place` says.
    """

    search: Search

    def __init__(self, problem: CompletionProblem, make: Callable[[float], NuclearBall]) -> None:
        self.problem, self.make = problem, make
        self.radius = 0.0
        self._n_refits = 0
        self._go_to(Factored.zero(problem.shape), problem.best_biases(np.zeros(problem.n_samples)))

    @property
    def w(self) -> Factored:
        """The matrix W of the last fit."""
        return self.problem.out_of_ball(self.Z)

    def to(self, radius: float, deadline: float = math.inf) -> None:
        """Go to a larger radius, through others between if the ratio is large."""
        between = math.ceil(math.log(radius / self.radius) / math.log(GROWTH) - 1e-9) if self.radius > 0.0 else 1
        for step in range(max(between, 1) - 1, -1, -1):
            self._refit(radius * GROWTH**-step, deadline)

    def _refit(self, radius: float, deadline: float) -> None:
        self.radius = radius
        self.problem = self.problem.over(self.make(radius))
        rng = np.random.default_rng([self.problem.n_samples, self._n_refits])
        self.search = self.problem.search(self.alpha, rng)
        self._n_refits += 1
        self._go_to(*refit(self.problem, self, 1, deadline))

    def _go_to(self, Z: Factored, biases: Biases | None) -> None:
        self.Z, self.biases = Z, biases
        self.x = self.problem.values_of(Z)
        self.p = self.problem.predict(self.x, biases)
        self.alpha = self.problem.derivatives(self.p, 0.0)
