"""Certificates of a linear problem: the rounding of a pass at w, and how far from its intercept the best one may be."""

from __future__ import annotations

import abc
import functools

import numpy as np

from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.rounding import Bounds, Sizes, bounds, gamma
from condgrad.problems.evaluation import Evaluation, Support, certify, gap_at, vertex_rounding
from condgrad.problems.gradient import OutsideGradient
from condgrad.problems.penalty import Penalty
from condgrad.problems.rows.base import AnyPass, Rows

_SMALL = 5e-3  # share of the gap up to which a rough bound of its rounding is good enough


class Columns(abc.ABC):
    """What is known about the norms ||x_j|| of the columns.

    Attributes
    ----------
    reach : float
        A bound of the change of the predictions over the set, in the norm of :mod:`condgrad.linalg.rounding`.
    largest_entry : float
        The largest absolute value of an entry of X.
    """

    reach: float
    largest_entry: float

    @abc.abstractmethod
    def norm(self, features: np.ndarray | slice, weights: np.ndarray) -> float:
        """Return sum_j ||x_j|| weights_j over the features."""

    def distance(self, w: np.ndarray, s: Vertex, spread: float) -> float:
        """Return sum_j ||x_j|| |w_j - s_j|; ``spread`` is sum_j ||x_j|| |w_j|."""
        indices, values = s.support()
        if indices is None:
            return self.norm(slice(None), np.abs(w - values))
        there = w[indices]
        return spread + self.norm(indices, np.abs(there - values) - np.abs(there))


class MeasuredColumns(Columns):
    """Columns whose norms were measured in a pass."""

    def __init__(self, sizes: np.ndarray, largest_entry: float, constraint: ConstraintSet) -> None:
        self.sizes, self.largest_entry = sizes, largest_entry
        self.reach = float(constraint.reach(sizes))

    def norm(self, features: np.ndarray | slice, weights: np.ndarray) -> float:
        """Return sum_j ||x_j|| weights_j over the features."""
        return float(self.sizes[features] @ weights)


class BoundedColumns(Columns):
    """Columns of which only the largest entry is known: with weights of samples that sum to one, it bounds norms."""

    def __init__(self, largest_entry: float, n_features: int, constraint: ConstraintSet) -> None:
        self.largest_entry = largest_entry
        self.reach = float(constraint.reach(np.full(n_features, largest_entry)))

    def norm(self, features: np.ndarray | slice, weights: np.ndarray) -> float:
        """Return a bound of sum_j ||x_j|| weights_j over all features, if it is the sum over all of them."""
        return self.largest_entry * float(weights.sum())


class Certificates:
    """What is known about all points of a problem, and turns a pass at one of them into its certificate.

    A pass in memory is made at the best intercept. A pass elsewhere is made at a guess of it: then its gradient is
    moved to the best one to first order, and the gap includes the rest.
    """

    def __init__(self, rows: Rows, constraint: ConstraintSet, has_intercept: bool, penalty: Penalty) -> None:
        self.rows, self.constraint, self.has_intercept, self.penalty = rows, constraint, has_intercept, penalty
        self.samples = rows.samples
        self.loss = rows.samples.loss

    def gradient(self, w: np.ndarray, found: AnyPass, is_guess: bool) -> np.ndarray | OutsideGradient:
        """Return the gradient of F at w, after a pass there at the best intercept or at a guess of it."""
        return found.gradient(self._newton_step(found) if is_guess else 0.0, self.penalty.gradient(w))

    def at(self, w: np.ndarray, b: float, found: AnyPass, r: np.ndarray, s: Vertex, is_guess: bool) -> Evaluation:
        """Return the evaluation after a pass at w with the intercept b, for its gradient r and s = LMO(r).

        Where rounding is much smaller than the gap even if all columns had the size of the largest entry, they need not
        be measured, which costs half a pass.
        """
        used = Support.of(w)
        of_vertex = vertex_rounding(self.constraint, r, used, s)
        certified = functools.partial(self._at, w, b, found, r, s, is_guess, used, of_vertex)
        if self._bounded is not None:
            evaluation = certified(self._bounded)
            if evaluation.rounding <= _SMALL * evaluation.gap:
                return evaluation
        return certified(self._measured)

    def _at(
        self,
        w: np.ndarray,
        b: float,
        found: AnyPass,
        r: np.ndarray,
        s: Vertex,
        is_guess: bool,
        used: Support,
        of_vertex: float,
        columns: Columns,
    ) -> Evaluation:
        spread = columns.norm(*used)
        apart = columns.distance(w, s, spread)
        reach = columns.reach + apart if apart > columns.reach else columns.reach  # the first: w outside the set
        away = self._intercept_error(b) if self.has_intercept else 0.0
        sizes, gap = found.totals.sizes, gap_at(r, w, s)
        if is_guess:  # the error of a guess is no rounding error
            gap = max(gap, 0.0) + self._cost_of_guess(found, reach + apart, away)
            sizes = sizes._replace(balance=0.0)
        largest = float(used.sizes.sum()) * columns.largest_entry + abs(b)  # upper bound of a prediction
        rounding = self._rounding_at(found, sizes, used.sizes.size, spread, largest, reach, away)
        rounding = rounding.with_oracle(of_vertex)
        value = found.totals.value
        rounding = self.penalty.with_rounding(rounding, value, w, r, self.constraint)
        intercept = b - self.rows.along_shift(w)
        return certify(self.loss.is_convex, value + self.penalty.value(w), r, gap, s, intercept, rounding, offset=b)

    def _newton_step(self, found: AnyPass) -> float:
        """Return the step from the guessed intercept of a pass towards the best one.

        It is 0 for a loss whose second derivative is not Lipschitz: then the error of a step is not known.
        """
        total = found.slope_total
        if total is None or total <= 0.0 or not np.isfinite(self.loss.curvature_smoothness()):
            return 0.0
        return -found.totals.balance / total

    def _cost_of_guess(self, found: AnyPass, reach: float, away: float) -> float:
        r"""Return what a guessed intercept adds to the gap at (w, b), if the gradient is that of b + step.

        Let delta be the Newton step and M a Lipschitz constant of f''. The derivatives at b + delta differ from their
        Taylor expansion by at most M delta^2 / 2 each. So the slopes of the tangents are wrong by that much, over the
        distance ``reach`` + ``away`` at most, and F(w, b) - F(w, b + delta) is at most -delta times the balance.
        """
        delta, balance = self._newton_step(found), found.totals.balance
        if delta == 0.0:
            return abs(balance) * away
        away += abs(delta)  # the tangent is at b + delta
        of_taylor = 0.5 * float(self.loss.curvature_smoothness()) * delta**2 * (reach + away)
        unit = 2.0 * gamma(self.rows.n_samples + 8)
        of_sums = unit * abs(delta) * float(np.sqrt(found.totals.curvature)) * (reach + away)
        return of_taylor + of_sums + abs(delta * balance)

    def _rounding_at(
        self, found: AnyPass, sizes: Sizes, n_terms: int, spread: float, size: float, reach: float, away: float
    ) -> Bounds:
        """Return bounds of the rounding errors of gradient and objective at w, which uses ``n_terms`` features.

        A prediction has at most the given ``size``. The best intercept is at most ``away`` from that of the pass.
        """
        delta, largest = self.samples.prediction_errors(sizes, n_terms, spread, size)
        return bounds(
            sizes,
            n_samples=self.rows.n_samples,
            reach=reach + away,
            free_reach=away,
            delta=delta,
            slope_error=found.totals.slope_error(self.loss, delta, largest),
        )

    def _intercept_error(self, b: float) -> float:
        """Return how far from b the best intercept of a minimiser over the set can be."""
        low, high = self.intercept_range
        return max(abs(high - b), abs(b - low))

    @property
    def reach(self) -> float:
        """A bound of the change of the predictions over the set, in the norm of :mod:`condgrad.linalg.rounding`."""
        return self._measured.reach

    @functools.cached_property
    def _measured(self) -> MeasuredColumns:
        return MeasuredColumns(self.rows.column_sizes, self.rows.measures.largest_entry, self.constraint)

    @functools.cached_property
    def _bounded(self) -> BoundedColumns | None:
        """Bounds without a pass, for sets of fast reach; with an intercept, its range needs the measured ones."""
        size = self.rows.size_of_columns
        if self.has_intercept or size == np.inf or not self.constraint.has_fast_reach:
            return None
        return BoundedColumns(size, self.rows.n_features, self.constraint)

    @functools.cached_property
    def intercept_range(self) -> tuple[float, float]:
        """Bounds of the best intercepts of the minimisers over the set, from the predictions 0.

        They depend on the problem alone, so that runs that begin at different points have the same certificates. At a
        minimiser the loss is at most that of w = 0, if the set contains it; else at most that of the set's start, whose
        predictions are bounded by the largest entry of X, plus its penalty.
        """
        p, zero = self.rows.zeros(), np.zeros(self.rows.n_features)
        b = self.samples.best_intercept(p, 0.0)
        if self.constraint.violation(zero) <= 0.0:
            return self.samples.intercept_range(p, b, self.reach)
        s = self.constraint.start(zero.size)
        w = s.to_dense(zero.size)
        level = self.samples.largest_value(float(np.abs(w).sum()) * self.rows.measures.largest_entry)
        return self.samples.intercept_range(
            p, b, self.reach + self._measured.distance(zero, s, 0.0), level + self.penalty.value(w)
        )
