"""A grid of radii for a problem, from where a model begins to where its constraint hardly binds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.constraints import best_vertex
from condgrad.minimize import minimize

_MOST = 60  # doublings: beyond, the constraint never stops to bind (classes that a hyperplane separates)
_ROUGH = 1e-2  # of the first gap: enough to know a radius to its size


def radius_grid(problem: Any, make_set: Callable[[float], Any], n_radii: int, eps: float) -> np.ndarray:
    """Return ``n_radii`` radii, evenly spaced in their logarithm between radius_max / 100 and radius_max.

    A solution over a set of radius r has the multiplier alpha(r) = max over s in the set of <-grad F(w), s> / r, which
    falls as r grows; for the l1 ball it is the penalty of the Lasso. radius_max is the first radius of a sequence of
    doublings with alpha(r) <= eps alpha(0), the rule of the grid of :func:`condgrad.lasso_path` up to that doubling.
    """
    zero = np.zeros(problem.n_features)
    unit = make_set(1.0)
    if not unit.contains(zero):
        raise ValueError(f"there is no default grid for {type(unit).__name__}, which does not hold 0; use --radii.")
    evaluation = problem.over(unit).evaluate(zero)
    first = _multiplier(unit, evaluation.gradient)
    if first == 0.0:
        raise ValueError("the gradient at w = 0 is zero: no radius gives another model than 0.")
    s = best_vertex(unit, evaluation.gradient)
    (curvature,) = problem.over(unit).evaluate(zero, [s]).curvature.ravel()
    radius = 0.1 * first / curvature if curvature > 0.0 else 1.0  # a tenth of the best step along the first vertex
    w = zero
    for _ in range(_MOST):
        now = problem.over(make_set(radius))
        result = minimize(now, tol=0.0, relative_tol=_ROUGH, max_epochs=200, w0=w)
        w = result.w
        if _multiplier(unit, now.gradient(w)) <= eps * first:
            break
        radius *= 2.0
    return np.geomspace(radius / 100.0, radius, n_radii)


def _multiplier(unit: Any, r: np.ndarray) -> float:
    """Return max over s in the set of radius 1 of <-r, s>."""
    return -float(best_vertex(unit, r).to_dense(r.size) @ r)
