"""cox_path: Cox's model over sets of many radii, or with many penalties, each point with its certificate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad import solvers
from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.linalg import convert
from condgrad.linalg.callers import is_called_by_user
from condgrad.linalg.convert import Data
from condgrad.linalg.interrupts import Interrupts, at_most
from condgrad.paths.allowed_sets import leaves_out_zero
from condgrad.paths.gauges import gauge_of
from condgrad.paths.grids import check_grid
from condgrad.paths.minimized import MinimizedPath, Walk
from condgrad.paths.penalised import PenalisedPath
from condgrad.paths.points import PathInfo, collect
from condgrad.paths.radius_search import radius_at
from condgrad.paths.scales import SCALE_FIRST, warn_of_scales
from condgrad.paths.wanted import check_targets, points_of, wanted_sets, wanted_targets
from condgrad.problems.cox.problem import BRESLOW, CoxProblem
from condgrad.run.progress import check_callback, show
from condgrad.run.trace import Progress
from condgrad.storage.outside_rows import refuse_outside


def cox_path(
    X: Data,
    y: Any,
    *,
    ties: str = BRESLOW,
    strata: ArrayLike | None = None,
    constraint: object = "l1",
    n_radii: int = 50,
    eps: float = 1e-2,
    tol: float = 1e-6,
    radii: ArrayLike | None = None,
    alphas: ArrayLike | None = None,
    solver: object = "auto",
    max_epochs: float = 10_000,
    feature_weight: PerFeature = None,
    positive: Which = False,
    lower: PerFeature = None,
    upper: PerFeature = None,
    rows: Rows = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    max_time: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    verbose: bool = False,
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    r"""Fit Cox's proportional hazards model over sets of many radii and certify every solution.

    Point k minimises the negative log partial likelihood F over the set of radius_k (:class:`condgrad.CoxProblem`),
    from the last solution on, to a Frank-Wolfe gap of at most ``tol`` times half the mean deviance at w = 0. Where
    ``alphas`` are given, it minimises F(w) + alpha_k ||w||_1 instead, glmnet's problem.

    Parameters
    ----------
    X, y, ties, strata, sample_weight, offset
        As :class:`condgrad.CoxProblem` takes them.
    constraint, n_radii, eps, tol, radii, alphas, max_epochs, max_time, callback, verbose
        As in :func:`radius_path`.
    solver : str or solver object
        A solver of full passes.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :func:`radius_path`. Penalties ``alphas`` go
        with positive weights and with ``positive=True`` alone.

    Returns
    -------
    radii, coefs, info
        As of :func:`radius_path`.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.0], [1.0, 1.0]], [[5.0, 1], [1.0, 1], [4.0, 0], [2.0, 1]]
    >>> radii, coefs, info = cg.cox_path(X, y, radii=[0.5, 1.0])
    >>> coefs.toarray().round(2)
    array([[0.5, 1. ],
           [0. , 0. ]])
    """
    with at_most(max_time):
        refuse_outside(X, "cox_path")
        make = wanted_sets(X, constraint, feature_weight, positive, lower, upper, rows)
        if is_called_by_user() and isinstance(constraint, str) and feature_weight is None:
            warn_of_scales(X, SCALE_FIRST)
        check_grid(n_radii, eps)
        tol = convert.as_number(tol, "tol", low=0.0, what="a number of at least 0")
        given = wanted_targets(radii, alphas)
        check_callback(callback)
        max_epochs = convert.as_number(max_epochs, "max_epochs", low=0.0, what="a number of at least 0")
        if isinstance(solver, str) and solver != "auto":
            solvers.by_name(solver)  # tells at once where there is none
        if leaves_out_zero(make):
            raise ValueError("cox_path needs limits and rows that w = 0 satisfies, as lower <= 0 <= upper.")
        problem = CoxProblem(X, y, make(1.0), ties=ties, strata=strata, sample_weight=sample_weight, offset=offset)
        if alphas is None:
            check_targets(make, problem.constraint, given)
        gauge = gauge_of(problem.constraint)
        if alphas is not None and (gauge is None or gauge.radius_of(make(1.0)) != 1.0):
            raise ValueError(
                "alphas are penalties of an l1 norm, so the sets must be l1 balls, weighted or non-negative ones, "
                f"whose radius is that of the path; got {type(problem.constraint).__name__}. Give radii instead."
            )
        path: MinimizedPath
        walk = Walk(problem, make, solver, max_epochs=max_epochs)
        if alphas is None or gauge is None:
            path = MinimizedPath(walk, tol=tol, scale=problem.loss_scale())
        else:
            path = PenalisedPath(walk, gauge, tol=tol, scale=problem.loss_scale())
        with Interrupts() as interrupts, show(callback, verbose) as report:
            largest = functools.partial(radius_at, problem, make, eps)
            is_watched = callback is not None or verbose
            points = points_of(path, given, 0.0, int(n_radii), largest, interrupts, is_watched)
            return collect(path, points, report if is_watched else None)
