"""RadiusChoice: which bound of the nuclear norm predicts entries best that were held out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from condgrad.constraints import NuclearBall
from condgrad.linalg.factored import Factored
from condgrad.linalg.settings import RandomState, as_generator
from condgrad.paths.factor_walk import GROWTH, FactorWalk
from condgrad.paths.validation import deal_folds
from condgrad.problems.completion import CompletionProblem

MakeBall: TypeAlias = Callable[[CompletionProblem, float], NuclearBall]

_FIRST, _MOST_RADII = 0.1, 24  # the first radius over the natural one, and the largest number of radii
_BETTER = 3e-3  # relative decrease of the loss at held-out entries that a larger radius must bring
_PATIENCE = 2  # number of radii in a row without such a decrease that ends the search
_KNOWN = 1e-3  # standard error, over the loss, of a difference that needs no second radius to confirm it


class RadiusChoice:
    """Rough fits for ascending radii, without the held-out entries of each fold, and their losses at these.

    Parameters
    ----------
    problem : CompletionProblem
    ball : callable
        Makes the ball of a problem for a radius.
    held_out : list of masks
        For each fold which entries are held out.
    deadline : float
        The time after which no further radius is tried; the first one is always tried.

    Attributes
    ----------
    radii : list of float
        Those tried, ascending.
    scores : list of lists
        Minus the mean loss of each radius at the held-out entries of each fold.
    best_radius, best_matrix : float and Factored
        The smallest radius to which no larger one is clearly preferable, and its matrix in the first fold.
    """

    best_matrix: Factored

    def __init__(
        self, problem: CompletionProblem, ball: MakeBall, held_out: list[np.ndarray], deadline: float = math.inf
    ) -> None:
        self._deadline = deadline
        self._walks = [_walk(problem, ball, held) for held in held_out]
        self._parts = [problem.of_entries(held, NuclearBall(1.0)) for held in held_out]
        self._weights = np.concatenate([part.samples.weight for part in self._parts])
        self.radii: list[float] = []
        self.scores: list[list[float]] = []
        self.best_radius = 0.0
        self._best_losses = np.full(self._weights.size, math.inf)

    def try_all(self, radii: Iterable[float]) -> None:
        """Try the given radii, which ascend."""
        for radius in radii:
            if self._is_late():
                break
            self._try(radius)

    def try_growing(self, natural: float) -> None:
        """Try radii from a tenth of ``natural`` on, until larger ones do not predict better.

        The search ends after two radii in a row that do not predict better by three thousandths of the loss, and after
        one if there are so many held-out entries that the difference is known well, or if it predicts worse by more
        than the standard error of the difference.
        """
        in_a_row = 0
        for radius in (natural * _FIRST * GROWTH ** np.arange(_MOST_RADII)).tolist():
            if self._is_late():
                break
            change, error = self._try(radius)
            in_a_row = 0 if self.best_radius == radius else in_a_row + 1
            is_sure = change > error or error <= _KNOWN * abs(self._mean(self._best_losses))
            if in_a_row == _PATIENCE or (in_a_row and is_sure):
                break

    def _is_late(self) -> bool:
        return bool(self.radii) and time.perf_counter() >= self._deadline

    def _try(self, radius: float) -> tuple[float, float]:
        """Fit a radius; return the mean change of the losses from those of the best radius, and its standard error."""
        for walk in self._walks:
            walk.to(radius, self._deadline)
        losses = [part.losses_at(walk.w, walk.biases) for part, walk in zip(self._parts, self._walks, strict=True)]
        means = [float(part.samples.weight @ own) for part, own in zip(self._parts, losses, strict=True)]
        self.radii.append(radius)
        self.scores.append([-mean for mean in means])
        return self._compare(radius, np.concatenate(losses))

    def _compare(self, radius: float, losses: np.ndarray) -> tuple[float, float]:
        is_first = not self.best_radius
        differences = np.zeros_like(losses) if is_first else losses - self._best_losses
        change = self._mean(differences)
        error = float(np.linalg.norm(self._weights * (differences - change)) / self._weights.sum())
        if is_first or change < -_BETTER * abs(self._mean(self._best_losses)):
            self.best_radius, self.best_matrix, self._best_losses = radius, self._walks[0].w, losses
        return change, error

    def _mean(self, losses: np.ndarray) -> float:
        return float(self._weights @ losses / self._weights.sum())


def held_out(n: int, folds: int, random_state: RandomState) -> list[np.ndarray]:
    """Return for each fold which of n entries are held out."""
    if n < folds:
        raise ValueError(f"{n} entries are too few for {folds} folds; give a radius.")
    order = np.argsort(as_generator(random_state).permutation(n))
    fold_of = deal_folds(order, folds)
    return [fold_of == k for k in range(folds)]


def _walk(problem: CompletionProblem, ball: MakeBall, held: np.ndarray) -> FactorWalk:
    """Return the walk over radii for the problem without the held-out entries."""
    if not (problem.has_weight(held) and problem.has_weight(~held)):
        raise ValueError("a fold has no entries with a positive sample_weight; use fewer folds, or give a radius.")
    train = problem.of_entries(~held, NuclearBall(1.0))
    return FactorWalk(train, lambda radius: ball(train, radius))
