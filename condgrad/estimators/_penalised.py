"""The way in by a penalty: which radius has the solution of scikit-learn's alpha, or C."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.estimators._observations import Observations
from condgrad.linalg.interrupts import at_most
from condgrad.losses import Loss, Squared
from condgrad.paths import lasso_path, radius_path
from condgrad.paths.allowed_sets import AllowedSets
from condgrad.paths.gauges import gauge_of
from condgrad.paths.penalised import solution_at
from condgrad.paths.radius_search import go_on_unless_interrupted, set_by_name
from condgrad.problems.cox import CoxProblem
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Status
from condgrad.storage.outside_rows import OutsideRows

NAMES = ("l1", "nonnegative-l1")  # sets whose norms a penalty may multiply


class Penalised(NamedTuple):
    """The solution of a penalised problem: the radius of a ball that has it, w, its certified gap, and the status."""

    radius: float
    w: np.ndarray
    gap: float
    status: Status

    @property
    def is_cut_short(self) -> bool:
        """Whether a limit has ended the search before the tolerance was reached."""
        return self.status in (Status.MAX_TIME, Status.MAX_EPOCHS)


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
    max_epochs: float,
    max_time: float | None,
    sets: AllowedSets | None = None,
) -> Penalised:
    """Return the minimiser w of F(w) + alpha ||w||_1 with its norm; ``problem`` is over the unit set.

    The norm is that of ``sets``, where they are given: weighted, or of coefficients of one sign.

    Where w is zero the radius is so small that zero is certified to be the solution up to ``tol``. After ``max_epochs``
    or ``max_time`` seconds it is the point that was reached.
    """
    if isinstance(data.X, OutsideRows) or not isinstance(problem, Problem | CoxProblem):
        raise ValueError("alpha and C need data in memory and one problem per class or output; give a radius instead.")
    if sets is not None and gauge_of(sets(1.0)) is None:
        raise ValueError(
            "alpha and C are penalties of all features, and go without lower, upper, rows, free features and positive "
            "for some features alone; give a radius instead."
        )
    if sets is not None and l2 > 0.0:
        raise ValueError(
            "alpha with l2 is a penalty of all coefficients alike, and goes without feature_weight and positive; give "
            "a radius instead."
        )
    if isinstance(problem, CoxProblem):
        with at_most(max_time):
            make = sets or set_by_name(constraint)
            point, status = solution_at(problem, make, alpha, tol=tol, max_epochs=max_epochs)
        found = Penalised(point.radius, point.to_dense(problem.n_features), point.certified_gap, status)
    else:
        settings: dict[str, Any] = {"tol": tol, "max_epochs": max_epochs, "max_time": max_time}
        found = _on_path(data, problem.loss, y, constraint, alpha, sets, l2=l2, fit_intercept=fit_intercept, **settings)
    if found.radius > 0.0:
        return found
    # The gap of zero over a ball is its radius times the multiplier at zero, which is at most alpha here.
    return found._replace(radius=max(0.5 * tol * problem.loss_scale(), 1e-12) / alpha)


def _on_path(
    data: Observations,
    loss: Loss,
    y: np.ndarray,
    constraint: str,
    alpha: float,
    sets: AllowedSets | None,
    *,
    l2: float,
    fit_intercept: bool,
    **settings: Any,
) -> Penalised:
    """Return the solution of one penalty by the engines of paths."""
    of_samples: dict[str, Any] = {
        "sample_weight": data.weight,
        "offset": data.offset,
        "fit_intercept": fit_intercept,
        **settings,
    }
    if isinstance(loss, Squared) and constraint == "l1":
        weights, lower, upper = (None, None, None) if sets is None else sets.allowance
        terms: dict[str, Any] = {"feature_weight": weights, "lower": lower, "upper": upper}
        radii, coefs, info = lasso_path(data.X, y, alphas=[alpha], l2=l2, **terms, **of_samples)
    else:
        made = constraint if sets is None else sets
        radii, coefs, info = radius_path(data.X, y, loss=loss, constraint=made, alphas=[alpha], **of_samples)
    go_on_unless_interrupted(info.status)
    return Penalised(float(radii[0]), coefs.toarray()[:, 0], float(info.gap[0] + info.rounding[0]), info.status)
