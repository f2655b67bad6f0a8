"""Evaluation: the results of one full pass over the data at a point."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.factored import RankOne
from condgrad.linalg.rounding import UNIT, Bounds, gamma
from condgrad.linalg.vectors import inner
from condgrad.problems.gradient import OutsideGradient, whole


class Evaluation(NamedTuple):
    """The results of one full pass over the data at a point w, with bounds of their rounding errors.

    ``gap`` is never negative. After a fresh pass, ``rounding`` bounds the error of the gap: F(w) - F* is at most
    gap + rounding for a convex F, whatever the sizes of the data; and ``lower_bound`` = objective - gap, less a bound
    of its rounding error, is at most F*. If the numbers were updated from step to step instead, errors have
    accumulated and ``rounding`` is inf: nothing is certified.
    """

    objective: float
    r: np.ndarray | OutsideGradient
    gap: float
    vertex: Vertex | RankOne
    intercept: Any  # a number, or the biases of a CompletionProblem
    rounding: float = np.inf
    lower_bound: float = -np.inf
    offset: float = 0.0  # the intercept of the centred columns, which steps work with

    @property
    def gradient(self) -> np.ndarray:
        """The gradient of F at w; one that stays with the workers of a cluster comes here when it is asked for."""
        return whole(self.r)

    @property
    def is_certified(self) -> bool:
        """Whether the bounds hold for w: the numbers come from a fresh pass."""
        return self.rounding < np.inf


def gap_at(r: np.ndarray, w: np.ndarray, s: Vertex) -> float:
    """Return <r, w - s>: with r = grad F(w) and s = LMO(r), the Frank-Wolfe gap."""
    indices, values = s.support()
    return float(inner(r, w) - inner(r if indices is None else r[indices], values))


def certify(
    is_convex: bool,
    objective: float,
    r: np.ndarray,
    gap: float,
    s: Vertex | RankOne,
    intercept: Any,
    bounds: Bounds,
    *,
    offset: float = 0.0,
) -> Evaluation:
    """Return the evaluation of a fresh pass for a computed gap. All certificates are made here.

    ``bounds`` are bounds of the rounding errors of the gap, including those of the oracle, and of the objective.
    """
    gap, rounding = max(float(gap), 0.0), _known(float(bounds.gap))
    last_digits = 4.0 * UNIT * (abs(objective) + gap + rounding)
    lower_bound = objective - gap - rounding - bounds.objective - last_digits if is_convex else -np.inf
    return Evaluation(float(objective), r, _known(gap), s, intercept, rounding, -_known(-float(lower_bound)), offset)


def _known(bound: float) -> float:
    """Return an upper bound; one that is nan, as of sums that overflow, is none: inf."""
    return math.inf if math.isnan(bound) else bound


class Support(NamedTuple):
    """The features that a point uses, and the sizes of its entries there."""

    features: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, w: np.ndarray) -> Support:
        """Return the support of w."""
        features = (w != 0.0).nonzero()[0]
        return cls(features, np.abs(w[features]))


def vertex_rounding(constraint: ConstraintSet, r: np.ndarray, used: Support, s: Vertex) -> float:
    """Return a bound of the rounding error of the gap <r, w - s> for s = LMO(r), in its sums and in the oracle.

    Of w only the support counts.
    """
    indices, values = s.support()
    of_w = inner(np.abs(r[used.features]), used.sizes)
    of_s = inner(np.abs(r if indices is None else r[indices]), np.abs(values))
    sums = gamma(used.sizes.size + 4) * of_w + gamma(values.size + 4) * of_s
    return float(sums) + float(constraint.oracle_rounding(r, s))
