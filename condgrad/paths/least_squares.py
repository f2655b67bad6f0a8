"""LeastSquares: the quadratic that an exact path minimises, and all that is asked of it.

With the features z_j of :mod:`~condgrad.paths.columns` and their inner product, the objective at coefficients x is

    ||R||^2 / 2 + (l2/2) ||x||_2^2,    R = y - sum_k x_k z_k.

With ``l2`` this is the least squares problem of the features with a sample sqrt(l2) e_j more for each, where y is zero.
Its residuals are R and -sqrt(l2) x, so a correlation is <z_j, R> - l2 x_j, and that of a feature without a coefficient
is what it was without l2.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.gram_minimiser import duality_gap
from condgrad.linalg.rounding import FORMULA, UNIT, gamma
from condgrad.paths.columns import Features, extend_gram

_OUTSIDE = 1e-12  # relative slack: rounding may push a norm this far beyond the radius
_SUMS = 8  # operations beside the products of a sum: centring, scaling, adding up threads


class Goal(NamedTuple):
    """What a point minimises: the quadratic over ||x||_1 <= target, or the quadratic + target ||x||_1."""

    target: float
    is_penalised: bool


class Sums(NamedTuple):
    """Sums at a point, l2 included: F, ||R||^2, <y, Xx>, <R, Xx>, ||x||_1, and the sum of the weighted residuals."""

    value: float
    squared_r: float
    fit: float
    along: float
    norm: float
    mu: float


class Residual:
    """The residual R and the weighted residual a_i = v_i R_i, minus the derivative by the predictions."""

    def __init__(self, R: np.ndarray, a: np.ndarray) -> None:
        self.R, self.a = R, a

    def copy(self) -> Residual:
        """Return the same in memory of its own."""
        return Residual(self.R.copy(), self.a.copy())


class Quadratic(Protocol):
    """What the engine, the working set and its solvers ask of the quadratic that they minimise.

    The curvature in the predictions is diag(v) for the observation weights v = ``columns.weight``, less the part of an
    intercept, which the means of the columns take out (a Schur complement). Only these answers depend on v, on the
    linear term and on whether there is an intercept.
    """

    columns: Features  # their inner products, means and norms are those of the observation weights
    n_stored: int
    l2: float
    squared_y: float  # twice the objective at zero

    @property
    def scale(self) -> float:
        """The objective at zero: what relative gaps are relative to."""

    def residual(self) -> tuple[Residual, Sums]:
        """Return the residual at x = 0, in memory of its own, and its sums."""

    def renew(self, p: np.ndarray, x: np.ndarray, residual: Residual) -> Sums:
        """Overwrite the residual by that of the predictions p of x; return its sums."""

    def gap(self, goal: Goal, sums: Sums, largest: float) -> float:
        """Return the gap at a point no correlation of which exceeds ``largest``; inf where x is outside the ball."""

    def rounding(self, goal: Goal, sums: Sums, n_terms: int, largest: float) -> float:
        """Return a bound of what rounding does to the gap at a point with ``n_terms`` coefficients."""

    def between(self, left: Residual, right: Residual, t: float, x: np.ndarray) -> Sums:
        """Return the sums at the point (1 - t) left + t right, with coefficients x."""

    def follow(self, mu: float, x: np.ndarray, residual: Residual) -> Sums:
        """Overwrite the residual by what sweeps have left in its weighted part, of sum mu; return its sums."""

    def weigh(self, q: np.ndarray) -> float:
        """Overwrite the predictions q of a direction by v_i q_i; return what to take for the sum of them."""

    def extend_gram(self, features: np.ndarray, first: int, G: np.ndarray, c: np.ndarray) -> None:
        """Fill in the rows of the Gram matrix G, l2 included, and of c = <z_j, y> from features[first] on."""


class LeastSquares:
    """The quadratic ||R||^2/2 + (l2/2) ||x||_2^2; the weights of the samples sum to one.

    Parameters
    ----------
    columns : Features
    n_stored : int
        Stored entries of all columns.
    y : array
        The targets, centred where there is an intercept.
    has_intercept : bool
        Whether an intercept, which has no penalty, is minimised over as well.
    l2 : float
    y_error : float
        A bound of the norm of the rounding errors of y, if y itself was computed.
    """

    def __init__(
        self,
        columns: Features,
        n_stored: int,
        y: np.ndarray,
        *,
        has_intercept: bool = False,
        l2: float = 0.0,
        y_error: float = 0.0,
    ) -> None:
        self._y_error = y_error
        self.columns, self.n_stored, self.y, self.has_intercept, self.l2 = columns, n_stored, y, has_intercept, l2
        self.squared_y = float((columns.weight * y) @ y)
        # The largest norm of a column as it is stored: what its sums are made of, its mean included.
        self.largest_column = float(np.hypot(columns.norm, columns.scale * columns.mean).max())
        self._buffer = np.zeros(y.size)

    @property
    def scale(self) -> float:
        """Half the squared norm of y."""
        return 0.5 * self.squared_y

    def residual(self) -> tuple[Residual, Sums]:
        """Return the residual at x = 0, in memory of its own, and its sums."""
        a = self.columns.weight * self.y
        mu = float(a.sum()) if self.has_intercept else 0.0
        return Residual(self.y.copy(), a), Sums(self.scale, self.squared_y, 0.0, 0.0, 0.0, mu)

    def renew(self, p: np.ndarray, x: np.ndarray, residual: Residual) -> Sums:
        """Overwrite the residual by that of the predictions p of x; return its sums."""
        R, a = residual.R, residual.a
        return Sums(*_renew(self.columns.weight, p, x, self.l2, self.y, self.has_intercept, R, a))

    def follow(self, mu: float, x: np.ndarray, residual: Residual) -> Sums:
        """Overwrite the residual by what sweeps have left in its weighted part, of sum mu; return its sums."""
        R, a = residual.R, residual.a
        return Sums(*_follow(self.columns.weight, mu, x, self.l2, self.y, self.has_intercept, R, a))

    def weigh(self, q: np.ndarray) -> float:
        """Overwrite the predictions q of a direction by v_i q_i; return their sum, or 0 without an intercept."""
        q *= self.columns.weight
        return float(q.sum()) if self.has_intercept else 0.0

    def extend_gram(self, features: np.ndarray, first: int, G: np.ndarray, c: np.ndarray) -> None:
        """Fill in the rows of the Gram matrix G, l2 included, and of c = <z_j, y> from features[first] on."""
        columns, places = self.columns.chosen(features)
        extend_gram(columns, places, first, self.l2, c, self.y, G, self._buffer)

    def between(self, left: Residual, right: Residual, t: float, x: np.ndarray) -> Sums:
        """Return the sums at the coefficients x between two points; the residual is on the line between theirs.

        Its weighted sum is zero, as those of both ends are.
        """
        R = (1.0 - t) * left.R + t * right.R
        squared_r, y_r = _norms(self.columns.weight, self.y, R, x, self.l2)
        return Sums(0.5 * squared_r, squared_r, self.squared_y - y_r, y_r - squared_r, float(np.abs(x).sum()), 0.0)

    def gap(self, goal: Goal, sums: Sums, largest: float) -> float:
        """Return the gap at a point no correlation of which exceeds ``largest``; inf where x is outside the ball.

        It is the Frank-Wolfe gap over a ball, and the duality gap with a penalty.
        """
        if goal.is_penalised:
            penalty = goal.target * sums.norm
            return duality_gap(self.squared_y, sums.fit, sums.along, penalty, goal.target, largest)
        is_inside = sums.norm <= goal.target * (1.0 + _OUTSIDE)
        return goal.target * largest - sums.along if is_inside else math.inf

    def rounding(self, goal: Goal, sums: Sums, n_terms: int, largest: float) -> float:
        """Return a bound of what rounding does to the gap at a point with ``n_terms`` coefficients.

        The reasoning is that of :mod:`condgrad.linalg.rounding`: residuals are off by ``delta``, sums over the samples
        by gamma(n) times the norms of what they multiply.
        """
        target = goal.target
        y, R = math.sqrt(self.squared_y), math.sqrt(max(sums.squared_r, 0.0))
        spread = sums.norm * self.largest_column + y
        over_samples = gamma(self.y.size + _SUMS)
        of_product = over_samples + FORMULA * UNIT
        delta = gamma(n_terms + _SUMS) * (2.0 * spread + R) + over_samples * abs(sums.mu) + self._y_error
        of_largest = of_product * (R * self.largest_column + self.l2 * sums.norm)
        if not goal.is_penalised:
            moved = target * self.largest_column + spread
            of_gap = 2.0 * target * of_largest + of_product * (R * (moved + y + R) + self.l2 * sums.norm**2)
            return of_gap + 2.0 * R * delta + delta * delta + abs(sums.mu) * (moved + R)
        share = target / largest if largest > 0.0 else 0.0
        of_dual = y * R * share * (of_largest / largest if largest > 0.0 else 0.0)
        of_sums = over_samples * (4.0 * self.squared_y + 4.0 * R * R + 2.0 * target * sums.norm) * max(1.0, share)
        return of_dual + of_sums + R * delta + delta * delta


@kernel
def _renew(weight, p, x, l2, y, has_intercept, R, a):
    mean = 0.0
    if has_intercept:
        for i in range(p.shape[0]):
            mean += weight[i] * p[i]
    for i in range(p.shape[0]):
        R[i] = y[i] - (p[i] - mean)
        a[i] = weight[i] * R[i]
    return _sums(weight, x, l2, y, has_intercept, R, a)


@kernel
def _follow(weight, mu, x, l2, y, has_intercept, R, a):
    for i in range(y.shape[0]):
        R[i] = a[i] / weight[i] - mu if weight[i] > 0.0 else 0.0
        a[i] = weight[i] * R[i]
    return _sums(weight, x, l2, y, has_intercept, R, a)


@kernel
def _sums(weight, x, l2, y, has_intercept, R, a):
    squared_r, fit, along, mu = 0.0, 0.0, 0.0, 0.0
    for i in range(y.shape[0]):
        squared_r += a[i] * R[i]
        fit += weight[i] * y[i] * (y[i] - R[i])
        along += a[i] * (y[i] - R[i])
        mu += a[i]
    norm, squared_x = 0.0, 0.0
    for k in range(x.shape[0]):
        norm += abs(x[k])
        squared_x += x[k] * x[k]
    squared_r += l2 * squared_x
    return 0.5 * squared_r, squared_r, fit, along - l2 * squared_x, norm, mu if has_intercept else 0.0


@kernel
def _norms(weight, y, R, x, l2):
    """Return ||R||^2 + l2 ||x||^2 and <y, R>. (A BLAS would keep its threads awake for a while, in the way of ours.)"""
    squared_r, y_r = 0.0, 0.0
    for i in range(R.shape[0]):
        squared_r += weight[i] * R[i] * R[i]
        y_r += weight[i] * y[i] * R[i]
    for k in range(x.shape[0]):
        squared_r += l2 * x[k] * x[k]
    return squared_r, y_r
