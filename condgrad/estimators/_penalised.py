"""The way in by a penalty: which radius has the solution of scikit-learn's alpha, or C."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.constraints import LimitedL1Ball, LinearlyConstrained
from condgrad.estimators._observations import Observations
from condgrad.losses import Loss, Squared
from condgrad.paths import lasso_path, radius_path
from condgrad.paths.allowed_sets import AllowedSets
from condgrad.paths.penalised import solution_at
from condgrad.paths.radius_search import go_on_unless_interrupted, set_by_name
from condgrad.problems.cox import CoxProblem
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.storage.outside_rows import OutsideRows

NAMES = ("l1", "nonnegative-l1")  # sets whose norms a penalty may multiply


def penalised_solution(
    data: Observations,
    problem: Problem | OutputsProblem,
    y: np.ndarray,
    constraint: str,
    alpha: float,
    *,
    l2: float,
    tol: float,
    fit_intercept: bool,
    sets: AllowedSets | None = None,
) -> tuple[float, np.ndarray]:
    """Return the norm of the minimiser w of F(w) + alpha ||w||_1, and w; ``problem`` is over the unit set.

    The norm is that of ``sets``, where they are given: weighted, or of coefficients of one sign.

    Where w is zero the radius is so small that zero is certified to be the solution up to ``tol``.
    """
    if isinstance(data.X, OutsideRows) or not isinstance(problem, Problem | CoxProblem):
        raise ValueError("alpha and C need data in memory and one problem per class or output; give a radius instead.")
    if sets is not None and isinstance(sets(1.0), LimitedL1Ball | LinearlyConstrained):
        raise ValueError(
            "alpha and C are penalties of all features, and go without lower, upper, rows, free features and positive "
            "for some features alone; give a radius instead."
        )
    if isinstance(problem, CoxProblem):
        found = solution_at(problem, sets or set_by_name(constraint), alpha, tol=tol)
        radius, w = found.radius, found.to_dense(problem.n_features)
    else:
        radius, w = _on_path(
            data, problem.loss, y, constraint, alpha, sets, l2=l2, tol=tol, fit_intercept=fit_intercept
        )
    if radius > 0.0:
        return radius, w
    # The gap of zero over a ball is its radius times the multiplier at zero, which is at most alpha here.
    return max(0.5 * tol * problem.loss_scale(), 1e-12) / alpha, w


def _on_path(
    data: Observations,
    loss: Loss,
    y: np.ndarray,
    constraint: str,
    alpha: float,
    sets: AllowedSets | None,
    *,
    l2: float,
    tol: float,
    fit_intercept: bool,
) -> tuple[float, np.ndarray]:
    """Return the norm and the solution of one penalty by the engines of paths."""
    of_samples: dict[str, Any] = {
        "sample_weight": data.weight,
        "offset": data.offset,
        "fit_intercept": fit_intercept,
        "tol": tol,
    }
    if isinstance(loss, Squared) and constraint == "l1":
        weights, lower, upper = (None, None, None) if sets is None else sets.allowance
        terms: dict[str, Any] = {"feature_weight": weights, "lower": lower, "upper": upper}
        radii, coefs, info = lasso_path(data.X, y, alphas=[alpha], l2=l2, **terms, **of_samples)
    else:
        made = constraint if sets is None else sets
        radii, coefs, info = radius_path(data.X, y, loss=loss, constraint=made, alphas=[alpha], **of_samples)
    go_on_unless_interrupted(info.status)
    return float(radii[0]), coefs.toarray()[:, 0]
