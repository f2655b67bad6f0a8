"""PointRounding: what rounding may have done to the gap of a point of a smooth loss, of single features or of groups.

The reasoning is that of :mod:`condgrad.linalg.rounding`: the bound grows with all that is known about a point. So what
is known about several points can be replaced by the largest sizes of all of them, and one bound holds for them all.
"""

from __future__ import annotations

import numpy as np

from condgrad.linalg.rounding import UNIT, bounds, gamma
from condgrad.problems.linear import Problem
from condgrad.problems.totals import Totals

_SUMS = 8  # more terms of the sums of a gap than it has products; and the rounded operations with its largest dual norm


class PointRounding:
    """Bounds of the rounding errors of gaps over balls of one norm, or with that norm as a penalty.

    Parameters
    ----------
    problem : Problem
    null_intercept : float
        The best intercept at zero.
    farthest : float
        How far predictions move at most, in the norm of the samples, for coefficients of the norm one.
    largest_entry : float
        The size of the largest entry of X.
    of_dual : float
        The relative error of a dual norm that is computed from correlations.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        null_intercept: float,
        farthest: float,
        largest_entry: float,
        of_dual: float = 0.0,
    ) -> None:
        self.problem, self.farthest, self.largest_entry, self.of_dual = problem, farthest, largest_entry, of_dual
        self._null_intercept = null_intercept
        self._range = (0.0, 0.0, 0.0)  # a radius, and bounds of the best intercepts over its ball

    def of_gap(
        self,
        totals: Totals,
        *,
        n_terms: int,
        norm: float,
        size_of_w: float,
        b: float,
        radius: float,
        largest: float,
        is_penalised: bool,
    ) -> float:
        """Return a bound of what rounding does to the gap.

        Parameters
        ----------
        totals : Totals
        n_terms : int
            The number of coefficients that are not zero.
        norm, size_of_w : float
            Their norm, and the sum of their sizes as coefficients of X.
        b : float
            The size of the intercept.
        radius : float
            That of the ball; with a penalty, of one that holds an optimum: its norm is at most
            (F(x) - floor) / alpha + ||x||.
        largest : float
            The largest dual norm.
        is_penalised : bool
            Whether F itself is a part of the gap.
        """
        samples, sizes = self.problem.samples, totals.sizes
        away = self._away(radius) if self.problem.has_intercept else 0.0
        size = size_of_w * self.largest_entry + b  # of a prediction, at most
        delta, one = samples.prediction_errors(sizes, n_terms, norm * self.farthest, size)
        found = bounds(
            sizes,
            n_samples=self.problem.n_samples,
            reach=2.0 * radius * self.farthest + away,
            free_reach=away,
            delta=delta,
            slope_error=totals.slope_error(samples.loss, delta, one),
        )
        of_sums = gamma(n_terms + _SUMS) * largest * norm + (_SUMS * UNIT + self.of_dual) * radius * largest
        return float(found.gap + of_sums + (found.objective if is_penalised else 0.0))

    def _away(self, radius: float) -> float:
        """Return how far apart two best intercepts can be over the ball of that radius."""
        known, low, high = self._range
        if radius > known:
            samples = self.problem.samples
            reach = 2.0 * radius * self.farthest  # of a ball of twice the radius, for points to come
            low, high = samples.intercept_range(np.zeros(samples.y.size), self._null_intercept, reach)
            self._range = (2.0 * radius, low, high)
        return high - low
