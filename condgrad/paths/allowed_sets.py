"""AllowedSets: the sets of an allowance, and of rows, for all radii; free features have limits that do not bind.

A set is compact, so a free feature needs limits. They begin at ten times the size that a coefficient would have alone.
Where a solution comes closer than half-way to one of them, the limits become eight times as large, and the run goes on.
So at a solution w each free w_j is at most half of its limit. A point v without limits that is K times outside of them
is better by at most (2 K + 1) times the gap at w: the segment from w to v stays inside for its first 1 / (2 K + 1), and
F is convex.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condgrad import constraints
from condgrad.constraints import LimitedL1Ball, LinearlyConstrained
from condgrad.constraints._allowance import Allowance, PerFeature, Which, as_allowance
from condgrad.constraints._least_norm import least_norm
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints._row_sentences import CoefficientRows, Rows, as_rows_of
from condgrad.linalg.settings import RandomState
from condgrad.problems.cox import CoxProblem
from condgrad.problems.linear import Problem
from condgrad.run.minimize import minimize
from condgrad.run.result import Result, Status

_FIRST = 10.0  # first limit of a free feature, over the size that its coefficient would have alone
_WIDER = 8.0  # factor to the next limits
_MOST_WIDENINGS = 12  # limits beyond 1e11 times the first ones are lost in rounding
_REMEDY = "give a function of the radius, lambda radius: condgrad.constraints.{name}(...)"
_WHOLE = "pass the set itself, condgrad.constraints.{name}(...), and leave radius at None"
_NEAR = 0.5  # share of its limit beyond which a coefficient is near to it


@dataclasses.dataclass(frozen=True)
class AllowedSets:
    """Makes the set of a radius; ``limits`` are those of the free features without limits of their own.

    ``rows`` cut every set. ``make`` makes sets that are no l1 balls, which rows alone can cut.
    """

    allowance: Allowance
    limits: np.ndarray
    rows: CoefficientRows | None = None
    make: Callable[[float], ConstraintSet] | None = None
    n_widenings: int = 0

    def __call__(self, radius: float) -> ConstraintSet:
        """Return the set of a radius, which may be 0."""
        ball = self.allowance.ball(radius, self.limits) if self.make is None else self.make(radius)
        return ball if self.rows is None else cut(ball, self.rows)

    @property
    def excludes_zero(self) -> bool:
        """Whether limits or rows leave out zero, so that small radii have no set."""
        return self.allowance.excludes_zero or not (self.rows is None or self.rows.allows_zero())

    @functools.cached_property
    def least_radius(self) -> float:
        """The smallest radius that has a set: 0 unless limits or rows of l1 balls leave out zero."""
        return least_norm(self.allowance, self.rows) if leaves_out_zero(self) else 0.0

    def suited(self, problem: Problem | CoxProblem) -> AllowedSets:
        """Return the sets with limits that suit the units of the problem."""
        free = self.allowance.unlimited
        if free.size == 0:
            return self
        sizes = problem.column_sizes[free]
        limits = np.zeros(free.size)  # of a column of zeros: it takes no part
        np.divide(_FIRST * problem.prediction_size(), sizes, out=limits, where=sizes > 0.0)
        return dataclasses.replace(self, limits=limits, n_widenings=0)

    def widened(self, w: np.ndarray) -> AllowedSets | None:
        """Return wider sets if a free coefficient of w is near to its limit, else None."""
        free = self.allowance.unlimited
        is_near = np.abs(w[free]) > _NEAR * self.limits
        if not is_near.any() or self.n_widenings == _MOST_WIDENINGS:
            return None
        return dataclasses.replace(self, limits=_WIDER * self.limits, n_widenings=self.n_widenings + 1)


def cut(constraint: ConstraintSet, rows: CoefficientRows) -> LinearlyConstrained:
    """Return the part of a set where the rows hold."""
    if isinstance(constraint, LinearlyConstrained) and constraint.A_ub is None and constraint.A_eq is None:
        return LinearlyConstrained(constraint.constraint, *rows, bounds=constraint.bounds)
    return LinearlyConstrained(constraint, *rows)


class Columns(NamedTuple):
    """The number of features, and their names or None."""

    n_features: int
    names: Any


def columns_of(X: Any) -> Columns:
    """Return the features of an array, a data frame or data on disk; names that are no words are none."""
    names = getattr(X, "columns", None)
    names = getattr(X, "feature_names", None) if names is None else names
    is_named = names is not None and all(isinstance(name, str) for name in names)
    shape = getattr(X, "shape", None)
    n_features = int((np.shape(X) if shape is None else shape)[-1])
    return Columns(n_features, list(names) if names is not None and is_named else None)


def sets_of(
    constraint: object,
    columns: Columns,
    feature_weight: PerFeature,
    positive: Which,
    lower: PerFeature,
    upper: PerFeature,
    rows: Rows = None,
    scale: np.ndarray | None = None,
) -> AllowedSets | None:
    """Return the sets that weights, limits and rows ask for, None where there are none.

    Weights and limits need an l1 ball by its name as ``constraint``; rows may cut any set that has a name, or a
    function that makes the set of a radius. Weights are multiplied by ``scale``, the deviations of the features, where
    coefficients of standardised features are to count.
    """
    has_signs = not (positive is None or positive is False)
    has_terms = has_signs or not (feature_weight is None and lower is None and upper is None)
    found = as_rows_of(rows, *columns)
    has_terms = has_terms or scale is not None
    if not has_terms and found is None:
        return None
    is_ball = isinstance(constraint, str) and constraint in ("l1", "nonnegative-l1")
    if has_terms and not is_ball:
        raise ValueError(
            "feature_weight, standardize, positive, lower and upper need constraint='l1' (or 'nonnegative-l1'); "
            f"got {constraint!r}. Give a set with its own limits instead, such as condgrad.constraints.Box."
        )
    make = None if is_ball else maker_of(constraint)
    positive = True if constraint == "nonnegative-l1" else positive
    allowance = as_allowance(feature_weight, positive, lower, upper, *columns)
    if scale is not None:
        allowance = allowance._replace(weights=scale if allowance.weights is None else scale * allowance.weights)
    if allowance.is_plain and found is None:
        return None
    return AllowedSets(allowance, np.ones(allowance.unlimited.size), found, make)


def maker_of(constraint: object) -> Callable[..., Any]:
    """Return what makes the set of a radius, from its name or from a user's function."""
    make = set_by_name(constraint, _REMEDY) if isinstance(constraint, str) else constraint
    if not callable(make):
        raise TypeError(f"constraint must be the name of a set or a function of a radius; got {constraint!r}.")
    return make


def set_by_name(name: str, remedy: str = _WHOLE) -> Callable[[float], ConstraintSet]:
    """Return the class of a set that a radius alone defines; ``remedy`` says what to do about others."""
    made = constraints.by_name(name)
    if getattr(made, "_fields", ()) != ("radius",):
        raise ValueError(f"constraint={name!r} takes more than a radius; {remedy.format(name=made.__name__)}.")
    return made


def leaves_out_zero(make: Callable[..., Any]) -> bool:
    """Return whether limits or rows of l1 balls leave out zero."""
    return isinstance(make, AllowedSets) and make.make is None and make.excludes_zero


def least_radius(make: Callable[..., Any]) -> float:
    """Return the smallest radius that has a set, as far as limits and rows tell."""
    return make.least_radius if isinstance(make, AllowedSets) else 0.0


def typical(make: Callable[..., Any]) -> Any:
    """Return a set as an example of those of all radii: that of radius 1, unless limits leave it empty."""
    return make(2.0 * least_radius(make) or 1.0)


def check_radii(radii: np.ndarray, make: Callable[..., Any]) -> None:
    """Raise if limits or rows leave no coefficients for a radius."""
    least = least_radius(make)
    if float(radii.min()) < least:
        raise ValueError(
            f"limits or rows leave out w = 0: no coefficients satisfy them below the radius {least:.4g}; got "
            f"{radii.min():g}."
        )


def suited(make: Callable[..., Any], problem: Any) -> Callable[..., Any]:
    """Return the sets of an allowance with limits that suit the problem, and other sets as they are."""
    is_sized = isinstance(problem, Problem | CoxProblem)
    return make.suited(problem) if isinstance(make, AllowedSets) and is_sized else make


def minimize_over(
    problem: Any,
    make: Callable[..., Any],
    radius: float,
    solver: object = "auto",
    *,
    max_time: float | None = None,
    random_state: RandomState = None,
    **settings: Any,
) -> tuple[Any, Callable[..., Any], Result]:
    """Minimise over the set ``make(radius)``, with limits of free features that do not bind; the radius may be 0.

    Returns the problem over the set, the function that made it, and the result. ``settings`` are those of
    :func:`condgrad.minimize`.
    """
    deadline = None if max_time is None else time.perf_counter() + max_time
    while True:
        problem = problem.over(make(radius) if radius > 0.0 else at_radius_zero(make) or _only_zero())
        left = None if deadline is None else max(0.0, deadline - time.perf_counter())
        result = minimize(problem, solver, max_time=left, random_state=random_state, **settings)
        wider = make.widened(result.w) if isinstance(make, AllowedSets) else None
        if wider is None or result.status in (Status.INTERRUPTED, Status.MAX_TIME, Status.STOPPED):
            return problem, make, result
        make = wider
        settings = settings | {"w0": result.w, "checkpoint": None}


def at_radius_zero(make: Callable[..., Any]) -> ConstraintSet | None:
    """Return the set of radius 0 where it has other points than zero: free features; else None."""
    if isinstance(make, AllowedSets):
        return make(0.0) if make.allowance.weights is not None and (make.allowance.weights == 0.0).any() else None
    return _closed(make(1.0))


def _only_zero() -> ConstraintSet:
    """Return the set {0}."""
    zero: ConstraintSet = LimitedL1Ball(1.0, None, 0.0, 0.0)  # type: ignore[call-arg, assignment]
    return zero


def _closed(unit: object) -> ConstraintSet | None:
    """Return the set with all features that cost something at 0, None where zero is then the only point."""
    if isinstance(unit, LinearlyConstrained):
        inner = _closed(unit.constraint)
        given = unit.A_ub, unit.b_ub, unit.A_eq, unit.b_eq, unit.bounds
        return None if inner is None else LinearlyConstrained(inner, *given)
    if not isinstance(unit, LimitedL1Ball) or np.all(is_paid := np.asarray(unit.weights) > 0.0):
        return None
    lower, upper = np.where(is_paid, 0.0, unit.lower), np.where(is_paid, 0.0, unit.upper)  # type: ignore[arg-type]
    closed: ConstraintSet = LimitedL1Ball(unit.radius, unit.weights, lower, upper)  # type: ignore[call-arg, assignment]
    return closed
