"""SmoothLoss: any smooth convex loss of linear predictions, as the engine of paths asks for it.

With weights v_i, F(x) = sum_i v_i f(p_i + b, y_i) for the predictions p of the coefficients x and the best intercept b.
The residual is R_i = -f'(p_i + b, y_i), so that a correlation <z_j, R> is minus the derivative of F by x_j, as it is
for least squares. Between two points the residual is not on the line between theirs; to know how far it is from that
line takes one exponential for each sample, and no pass over X.
"""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.rounding import UNIT, bounds, gamma, prediction_error
from condgrad.paths.columns import Columns
from condgrad.paths.least_squares import Goal, Residual, Sums
from condgrad.problems.linear import Problem
from condgrad.problems.samples import Totals

_OUTSIDE = 1e-12  # relative slack: rounding may push a norm this far beyond the radius


class SmoothResidual(Residual):
    """The residual at predictions ``p`` with the intercept ``b``, and the curvatures ``d`` of the samples there."""

    def __init__(self, R: np.ndarray, a: np.ndarray, p: np.ndarray, d: np.ndarray, b: float) -> None:
        super().__init__(R, a)
        self.p, self.d, self.b = p, d, b


class SmoothLoss:
    """The loss of all samples over the features of a path.

    Parameters
    ----------
    columns : Columns
    n_stored : int
        Stored entries of all columns.
    problem : Problem
        Of a convex loss.
    """

    l2 = 0.0
    is_quadratic = False

    def __init__(self, columns: Columns, n_stored: int, problem: Problem) -> None:
        self.columns, self.n_stored, self.problem = columns, n_stored, problem
        self.samples, self.has_intercept = problem.samples, problem.has_intercept
        samples, has_intercept = self.samples, self.has_intercept
        zeros = np.zeros(samples.y.size)
        self._null_intercept = samples.best_intercept(zeros, 0.0) if has_intercept else 0.0
        self._scale = samples.loss_scale(zeros + self._null_intercept)
        self.largest_column = float(np.hypot(columns.norm, columns.scale * columns.mean).max(initial=0.0))
        self.largest_entry = problem.rows.measures.largest_entry
        self._range = (0.0, 0.0, 0.0)  # a radius, and bounds of the best intercepts over its ball

    @property
    def scale(self) -> float:
        """The mean size of the loss at zero."""
        return self._scale

    def residual(self) -> tuple[SmoothResidual, Sums]:
        """Return the residual at x = 0, in memory of its own, and its sums."""
        n = self.samples.y.size
        found = SmoothResidual(np.empty(n), np.empty(n), np.empty(n), np.empty(n), self._null_intercept)
        return found, self.renew(np.zeros(n), np.empty(0), found)

    def renew(self, p: np.ndarray, x: np.ndarray, residual: SmoothResidual) -> Sums:
        """Overwrite the residual by that of the predictions p of x; return its sums."""
        residual.p[:] = p
        if self.has_intercept:
            residual.b = self.samples.best_intercept(residual.p, residual.b)
        totals, alpha, residual.d = self.samples.expand(residual.p, residual.b)
        np.negative(alpha, out=residual.a)
        np.divide(residual.a, self.columns.weight, out=residual.R, where=self.columns.weight > 0.0)
        residual.R[self.columns.weight <= 0.0] = 0.0
        return _sums_at(totals, residual.a, residual.p, x, residual.b)

    def gap(self, goal: Goal, sums: Sums, largest: float) -> float:
        """Return the gap at a point no correlation of which exceeds ``largest``; inf where x is outside the ball.

        With a penalty alpha the best x has a norm of at most (F + alpha ||x||) / alpha if the loss is never negative.
        This bounds what the correlations above alpha can gain. For other losses it is an estimate with |F|: penalties
        are only used to find where a grid of radii ends.
        """
        if not goal.is_penalised:
            is_inside = sums.norm <= goal.target * (1.0 + _OUTSIDE)
            return goal.target * largest - sums.along if is_inside else math.inf
        alpha, excess = goal.target, max(0.0, largest - goal.target)
        return alpha * sums.norm - sums.along + excess * (abs(sums.value) / alpha + sums.norm)

    def rounding(self, goal: Goal, sums: Sums, n_terms: int, largest: float) -> float:
        """Return a bound of what rounding does to the gap; the reasoning is that of :mod:`condgrad.linalg.rounding`."""
        assert sums.totals is not None
        radius = goal.target if not goal.is_penalised else abs(sums.value) / goal.target + sums.norm
        sizes = sums.totals.sizes
        spread = sums.norm * self.largest_column
        delta = prediction_error(sizes, n_terms, spread)
        away = self._away(radius) if self.has_intercept else 0.0
        size = sums.norm * self.largest_entry  # of a prediction, at most
        one = gamma(n_terms + 4) * size + 2.0 * UNIT * (size + abs(sums.offset))
        found = bounds(
            sizes,
            n_samples=self.samples.y.size,
            reach=2.0 * radius * self.largest_column + away,
            free_reach=away,
            delta=delta,
            slope_error=sums.totals.slope_error(self.samples.loss, delta, one),
        )
        return found.gap + gamma(n_terms + 8) * largest * sums.norm + 4.0 * UNIT * radius * largest

    def _away(self, radius: float) -> float:
        """Return how far apart two best intercepts can be over the ball of that radius."""
        known, low, high = self._range
        if radius > known:
            zeros = np.zeros(self.samples.y.size)
            reach = 2.0 * radius * self.largest_column  # of a ball of twice the radius, for points to come
            low, high = self.samples.intercept_range(zeros, self._null_intercept, reach)
            self._range = (2.0 * radius, low, high)
        return high - low

    def between(self, left: SmoothResidual, right: SmoothResidual, t: float, x: np.ndarray) -> tuple[Sums, np.ndarray]:
        """Return the sums at the coefficients x between two points, and how far R is from the line between theirs."""
        p = (1.0 - t) * left.p + t * right.p
        b = (1.0 - t) * left.b + t * right.b
        if self.has_intercept:
            b = self.samples.best_intercept(p, b)
        totals, alpha, _ = self.samples.expand(p, b)
        R = np.zeros(p.size)
        np.divide(-alpha, self.columns.weight, out=R, where=self.columns.weight > 0.0)
        return _sums_at(totals, -alpha, p, x, b), R - (1.0 - t) * left.R - t * right.R


def _sums_at(totals: Totals, a: np.ndarray, p: np.ndarray, x: np.ndarray, b: float) -> Sums:
    along, mu = float(np.einsum("i,i", a, p)), float(a.sum())
    return Sums(totals.value, totals.slope, 0.0, along, float(np.abs(x).sum()), mu, totals, b)
