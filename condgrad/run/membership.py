"""Whether a point lies in its set, up to rounding: what minimize asks of a start, and of what it certifies."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from condgrad.constraints import ConstraintSet
from condgrad.constraints._nearest import distance_to
from condgrad.constraints._protocol import best_vertex
from condgrad.linalg.factored import Factored, Iterate, IterateLike
from condgrad.problems.base import BaseProblem
from condgrad.problems.gradient import OutsideGradient, whole
from condgrad.run.result import Result

# A violation of this share of the size of w, or of the set, may be rounding: that of another solver in float32 for a
# start. Solvers of ours stay below 1e-9 of it, also where a linear program has tolerances of its own.
_ROUNDING = 1e-7
_FAR = 1024.0  # multiple of a point at which only the point counts in its violation, and no longer the set
_N_CALLS = 4  # steps of the search for sets that have an oracle and no formula


def feasible_start(problem: BaseProblem, w0: IterateLike | Result) -> Iterate:
    """Return a warm start as an iterate, or raise if it lies outside the set."""
    at: Any = problem.as_iterate(w0.w if isinstance(w0, Result) else w0, "w0")
    violation = problem.constraint.violation(at)
    if is_outside(problem.constraint, at, violation):
        raise ValueError(f"w0 lies outside {problem.constraint!r} by {violation:.3g}; scale or project it first.")
    return cast("Iterate", at)


def violation_found(constraint: ConstraintSet, w: Any, r: np.ndarray | OutsideGradient) -> float:
    """Return by how much ``w`` breaks the constraint, at the cost of a few calls of the oracle.

    If the set has no formula for it, this is what the first steps of a search prove. They begin with the gradient ``r``
    at w: F has no minimum over a larger set without a vertex beyond the best one of the set along r.
    """
    if isinstance(w, Factored) or not constraint.is_violation_searched:
        return float(constraint.violation(w))
    return distance_to(lambda r: best_vertex(constraint, r).to_dense(w.size), w, whole(r), _N_CALLS)


def is_outside(constraint: ConstraintSet, w: Any, violation: float) -> bool:
    """Return whether w, with this violation, lies further outside the set than rounding can put it."""
    if violation <= 0.0:
        return False
    if violation <= _ROUNDING * _size(constraint, w):
        return False
    # A w close to 0 has the rounding of the vertices that cancel in it.
    start = None if isinstance(w, Factored) else constraint.start(w.size).to_dense(w.size)
    return start is None or not violation <= _ROUNDING * _size(constraint, start)


def _size(constraint: ConstraintSet, w: Any) -> float:
    """Return the size of w in the units of the set's violation: for the ball of a norm, nearly its norm."""
    # In both directions: a cone, as of monotone coefficients, contains all multiples of its own points.
    ends: list[Any] = [w.scaled(None, None, _FAR)] if isinstance(w, Factored) else [_FAR * w, -_FAR * w]
    return max(float(constraint.violation(end)) for end in ends) / _FAR
