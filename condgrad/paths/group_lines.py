"""Points on the line between two solved points of a quadratic loss over balls of groups, with their certificates.

On the line the residual is on the line between the residuals of both ends, F is a parabola, and the dual norm of a
group, a norm of something linear, is at most what the line between both has: a point needs no pass over the data.
:mod:`~condgrad.paths.leaps` says what that is good for.
"""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.group_norm import norm_of
from condgrad.paths.engine import End, PathPoint
from condgrad.paths.group_data import Arrival, LinearGroups
from condgrad.paths.least_squares import Goal
from condgrad.paths.smooth_point import penalised_gap
from condgrad.problems.totals import Totals

_OUTSIDE = 1e-12  # relative slack: rounding may push a norm this far beyond the radius
_SUMS = 2.0  # times the rounding of an end: that of its dual norm, and that of the sums of the line


def points_between(
    data: LinearGroups, left: End[Arrival], right: End[Arrival], targets: np.ndarray, is_penalised: bool
) -> list[PathPoint]:
    """Return the points on the line between two ends, with their gaps; beyond the ends nothing is certified."""
    (start, at), (end, then) = (left.point, left.residual), (right.point, right.residual)
    t = np.array([left.share_of(right, target) for target in targets.tolist()])
    way = (then.p + then.b) - (at.p + at.b)
    value = (1.0 - t) * start.objective + t * end.objective - 0.5 * t * (1.0 - t) * float((at.d * way) @ way)
    mixed = float(at.a @ then.p) + float(then.a @ at.p)  # <R, Zx> is a product of linear functions of t
    along = (1.0 - t) ** 2 * at.along + t * (1.0 - t) * mixed + t**2 * then.along
    largest, b = (1.0 - t) * start.alpha + t * end.alpha, (1.0 - t) * at.b + t * then.b
    features, offsets, x, z = _together(data, start, end)
    X = np.outer(1.0 - t, x) + np.outer(t, z)
    rounding = _rounding(data, left, right, is_penalised, features, np.maximum(np.abs(x), np.abs(z)))
    points = []
    for k, target in enumerate(targets.tolist()):
        norm = float(norm_of(data.form.norm, offsets, X[k]))
        if is_penalised:
            gap = float(penalised_gap(target, value[k], along[k], norm, largest[k], data.floor))
        else:
            gap = float(target * largest[k] - along[k]) if norm <= target * (1.0 + _OUTSIDE) else math.inf
        if not 0.0 <= t[k] <= 1.0 or gap < -rounding:
            gap = math.inf
        (used,) = X[k].nonzero()
        found = (norm, float(largest[k]), max(gap, 0.0), rounding, float(value[k]), float(b[k]))
        points.append(PathPoint(features[used], X[k, used], *found))
    return points


def _together(
    data: LinearGroups, start: PathPoint, end: PathPoint
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the features of both points, where their groups begin, and the coefficients of both points."""
    features = np.union1d(start.features, end.features)
    x, z = np.zeros(features.size), np.zeros(features.size)
    x[np.searchsorted(features, start.features)] = start.x
    z[np.searchsorted(features, end.features)] = end.x
    groups = data.group_of[features]
    order = np.argsort(groups, kind="stable")
    borders = np.flatnonzero(np.diff(groups[order])) + 1
    offsets = np.concatenate([[0], borders, [features.size]] if features.size else [[0]])
    return features[order], offsets, x[order], z[order]


def _rounding(
    data: LinearGroups,
    left: End[Arrival],
    right: End[Arrival],
    is_penalised: bool,
    features: np.ndarray,
    x: np.ndarray,
) -> float:
    """Return a bound of what rounding does to the gap anywhere between.

    All that it depends on is convex along the line, so that it is nowhere larger than at one of the ends.
    """
    (start, at), (end, then) = (left.point, left.residual), (right.point, right.residual)
    totals = Totals(*(max(abs(one), abs(other)) for one, other in zip(at.totals, then.totals, strict=True)))
    worst = then._replace(totals=totals, b=max(abs(at.b), abs(then.b)))
    goal = Goal((min if is_penalised else max)(left.target, right.target), is_penalised)
    norm, largest = max(start.norm, end.norm), max(start.alpha, end.alpha)
    return _SUMS * data.rounding(worst, goal, features, x, norm, largest)
