"""Whether a point lies in its set, up to rounding: what minimize asks of a start, and of what it certifies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from condgrad.constraints import ConstraintSet
from condgrad.constraints._nearest import distance_to
from condgrad.constraints._protocol import best_vertex
from condgrad.linalg.factored import Factored, Iterate, IterateLike
from condgrad.linalg.rounding import UNIT
from condgrad.problems.base import BaseProblem
from condgrad.problems.gradient import OutsideGradient, whole
from condgrad.run.result import Result

# A violation of this share of the size of w, or of the set, may be rounding: that of another solver in float32 for a
# start. Solvers of ours stay below 1e-9 of it, also where a linear program has tolerances of its own.
_ROUNDING = 1e-7
_FAR = 1024.0  # multiple of a point at which only the point counts in its violation, and no longer the set
_UNITS = 64.0  # units of rounding in the sums of a violation; tens of thousands of steps add about as many to w
_SHORT = 1e-6  # share of the way to an inner point that may be gone to come back inside
_SLACK = 10.0  # sides are tight up to this multiple of a violation: w is at a side that it is next to
_FEW = 1500  # features up to which a quadratic program is small
_MOST_TRIES = 3  # a projection from outside rounds, too, and so does the way to an inner point
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


def is_outside(constraint: ConstraintSet, w: Any, violation: float, share: float = _ROUNDING) -> bool:
    """Return whether w, with this violation, lies further outside the set than rounding can put it.

    That is this share of its size, or of that of the set.
    """
    if violation <= 0.0:
        return False
    if violation <= share * _size(constraint, w):
        return False
    if isinstance(w, Factored):
        return True
    # A w close to 0 has the rounding of the vertices that cancel in it; the start of a set may be 0 itself.
    ends = constraint.start(w.size), *constraint.far_vertices(w.size)
    return not any(violation <= share * _size(constraint, s.to_dense(w.size)) for s in ends)


def brought_inside(constraint: ConstraintSet, w: Any, violation: float) -> Any:
    """Return w itself if it lies inside up to a few units of rounding; else a point next to it that does.

    It is the projection, or the point on the way to an inner one, which is the origin or lies between two vertices far
    apart, or the answer of a quadratic program. Where none of them is known, or only a search knows the violation, it
    is w, whose vertices are outside by rounding, too.
    """
    share = UNIT * (_UNITS + w.size**0.5)
    if constraint.is_violation_searched or not is_outside(constraint, w, violation, share):
        return w
    nearest, least = w, violation
    for way in _ways_in(constraint, w, violation):
        at, beyond = w, violation
        for _ in range(_MOST_TRIES):
            at = way(at, beyond)
            if at is None:
                break
            beyond = float(constraint.violation(at))
            if beyond < least:
                nearest, least = at, beyond
            if not is_outside(constraint, at, beyond, share):
                return nearest
    return nearest


def _ways_in(constraint: ConstraintSet, w: Any, violation: float) -> Iterator[Callable[[Any, float], Any]]:
    """Yield functions of a point and its violation that return a point of the set, up to their own rounding."""
    if constraint.has_projection and not isinstance(w, Factored):
        yield lambda at, beyond: constraint.project(at)
        return
    inner_points: list[Any] = [w.scaled(None, None, 0.0) if isinstance(w, Factored) else np.zeros(w.size)]
    if not isinstance(w, Factored):
        inner_points.append(0.5 * sum(s.to_dense(w.size) for s in constraint.far_vertices(w.size)))
    for inner in inner_points:
        room = -float(constraint.violation(inner))
        if violation <= _SHORT * room:
            yield functools.partial(_towards, inner, room)
    rows = constraint.linear_rows(w.size) if w.size <= _FEW else None
    if rows is not None:
        yield lambda at, beyond: rows.nearest(at, _SLACK * violation)


def _towards(inner: Any, room: float, at: Any, beyond: float) -> Any:
    """Return the point on the way to an inner one where a violation is 0 that falls by ``beyond`` + ``room`` there.

    As it is convex, it is at most 0 at the point.
    """
    share = room / (room + beyond)
    return at.scaled(None, None, share) if isinstance(at, Factored) else share * at + (1.0 - share) * inner


def _size(constraint: ConstraintSet, w: Any) -> float:
    """Return the size of w in the units of the set's violation: for the ball of a norm, nearly its norm."""
    # In both directions: a cone, as of monotone coefficients, contains all multiples of its own points.
    ends: list[Any] = [w.scaled(None, None, _FAR)] if isinstance(w, Factored) else [_FAR * w, -_FAR * w]
    return max(float(constraint.violation(end)) for end in ends) / _FAR
