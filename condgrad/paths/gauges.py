"""Gauge: the norm whose balls are the sets of a path: the l1 norm, with weights, or of vectors w >= 0 alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints import L1Ball, LimitedL1Ball, NonnegativeL1Ball, WeightedL1Ball
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.oracle_set import as_constraint_set


class Gauge(NamedTuple):
    """The norm sum_j weights_j |w_j|; with ``is_symmetric=False`` all w_j are at least 0. ``None``: all weights are 1.

    With the coefficients x_j = weights_j w_j of the features x_j / weights_j it is the plain l1 norm.
    """

    weights: np.ndarray | None
    is_symmetric: bool

    def norm(self, w: np.ndarray) -> float:
        """Return the norm of w."""
        return float(np.abs(w).sum() if self.weights is None else self.weights @ np.abs(w))

    def ball(self, radius: float) -> ConstraintSet:
        """Return the set of all w with a norm of at most ``radius``."""
        if self.weights is not None:
            weighted = WeightedL1Ball(radius, self.weights)  # type: ignore[call-arg]
            signed = LimitedL1Ball(radius, self.weights, 0.0)  # type: ignore[call-arg]
            return as_constraint_set(weighted if self.is_symmetric else signed)
        made = L1Ball(radius) if self.is_symmetric else NonnegativeL1Ball(radius)  # type: ignore[call-arg]
        return as_constraint_set(made)

    def radius_of(self, constraint: object) -> float | None:
        """Return the radius of a set that is a ball of this norm, and None for every other set."""
        other = gauge_of(constraint)
        if other is None or other.is_symmetric != self.is_symmetric or not self._has_weights(other.weights):
            return None
        return float(constraint.radius)  # type: ignore[attr-defined]

    def _has_weights(self, weights: np.ndarray | None) -> bool:
        if self.weights is None or weights is None:
            return self.weights is weights
        return np.array_equal(self.weights, weights)


PLAIN = Gauge(None, is_symmetric=True)  # the l1 norm


def gauge_of(constraint: object) -> Gauge | None:
    """Return the norm whose ball the set is, or None where it is none of these."""
    if isinstance(constraint, WeightedL1Ball):
        return Gauge(constraint.weights, is_symmetric=True)  # type: ignore[arg-type]
    if isinstance(constraint, L1Ball | NonnegativeL1Ball):
        return Gauge(None, is_symmetric=isinstance(constraint, L1Ball))
    if isinstance(constraint, LimitedL1Ball) and constraint.n_features and _is_nonnegative(constraint):
        return Gauge(constraint.weights, is_symmetric=False)  # type: ignore[arg-type]
    return None


def _is_nonnegative(ball: LimitedL1Ball) -> bool:
    """Tell whether 0 is the only limit, of all features, and none is free."""
    lower, upper, weights = map(np.asarray, (ball.lower, ball.upper, ball.weights))
    return not lower.any() and bool((upper == np.inf).all()) and float(weights.min()) > 0.0
