"""radius_path: any loss over sets of many radii, or with many penalties, each point with its certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad import losses, solvers
from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.linalg import convert
from condgrad.linalg.callers import is_called_by_user
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import is_on_device
from condgrad.linalg.interrupts import Interrupts, at_most
from condgrad.linalg.settings import RandomState, as_flag, as_generator
from condgrad.paths import batched
from condgrad.paths.allowed_sets import least_radius, typical
from condgrad.paths.disk_rows import ColumnRows, problem_on_disk
from condgrad.paths.grids import check_grid
from condgrad.paths.group_gauge import any_gauge_of
from condgrad.paths.guided_walk import walk_over
from condgrad.paths.minimized import MinimizedPath
from condgrad.paths.points import PathInfo, collect
from condgrad.paths.radius_search import radius_at
from condgrad.paths.scales import ADVICE, deviations, warn_of_scales
from condgrad.paths.smooth import SmoothPath, serves
from condgrad.paths.smooth_disk import DiskData
from condgrad.paths.tall import tall_answer, tall_quadratic
from condgrad.paths.wanted import check_targets, points_of, wanted_sets, wanted_targets
from condgrad.problems.linear import Problem
from condgrad.run.progress import check_callback, show
from condgrad.run.trace import Progress
from condgrad.storage import columns as columns_on_disk
from condgrad.storage.outside_rows import refuse_outside
from condgrad.storage.stored_columns import StoredColumns


def radius_path(
    X: Data | StoredColumns,
    y: ArrayLike,
    *,
    loss: object = "logistic",
    constraint: object = "l1",
    n_radii: int = 50,
    eps: float = 1e-2,
    tol: float = 1e-6,
    radii: ArrayLike | None = None,
    alphas: ArrayLike | None = None,
    solver: object = "auto",
    max_epochs: float = 10_000,
    fit_intercept: bool = False,
    standardize: bool = False,
    feature_weight: PerFeature = None,
    positive: Which = False,
    lower: PerFeature = None,
    upper: PerFeature = None,
    rows: Rows = None,
    l2: float = 0.0,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    random_state: RandomState = None,
    max_time: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    verbose: bool = False,
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    r"""Minimise one loss over sets of many radii and certify every solution.

    Point k minimises the mean loss over the set of radius_k, from the last solution on, to a Frank-Wolfe gap of at most
    ``tol`` times the loss at w = 0. With it comes the multiplier alpha = max over s in the unit set of <-grad F(w), s>,
    the rate at which F would fall if the radius grew: for the l1 ball it is the penalty that has the same solution.
    (For the squared loss over the l1 ball there is :func:`lasso_path`, which can standardise and takes as few radii as
    it needs.)

    Where ``alphas`` are given, point k minimises F(w) + alpha_k ||w|| instead, with the norm whose balls the sets are.
    Its gap bounds how far F(w) + alpha_k ||w|| is from the minimum, and it bounds the Frank-Wolfe gap over the ball of
    radius ||w|| as well; this radius is reported.

    Smooth convex losses over l1 balls ("l1", "nonnegative-l1", and functions that make such balls or weighted ones) and
    over balls of groups (plain, weighted, non-negative and sparse ones) are solved by Taylor models on a working set of
    features or groups, in few passes over the data. Other problems are solved by :func:`condgrad.minimize`.

    Parameters
    ----------
    X, y : data and targets, as :class:`condgrad.Problem` takes them
        (so -1 and 1 for the logistic loss). X may be columns on disk (:func:`condgrad.columns.open`), of which only
        those that can matter are read: for convex losses over the l1 balls named above, with ``solver="auto"``. A
        memory map in Fortran order that is larger than half of the memory is read in the same way.
    loss : str or loss object
    constraint : str or callable
        The name of a set that has a radius alone, such as "l1", or a function that makes the set of a radius.
    n_radii : int
        Size of the default grid: evenly spaced in its logarithm, from a hundredth of :func:`radius_max` on.
    eps : float
        The multiplier at the end of that grid, relative to the one at zero.
    tol : float
        Gap of every point relative to the mean size of the loss at w = 0 (with the best intercept, if there is one).
    radii, alphas : array, optional
        Radii of at least 0, or positive penalties, in any order, in place of the grid; at most one of the two.
        Penalties need a smooth convex loss, one of the balls named above, and ``solver="auto"``.
    solver : str or solver object
    max_epochs : float
        Of one point.
    fit_intercept : bool
    standardize : bool
        Whether the norm counts coefficients of features that are divided by their standard deviations (by their root
        mean squares without an intercept): weights, so that X is not copied. Coefficients are those of the features as
        given. For X in memory and ``constraint="l1"``, without ``l2``.
    feature_weight : array of shape (n_features,), dict or float, optional
        What a unit of each coefficient costs: the norm is sum_j feature_weight_j |w_j|, 1 for features that a dict (of
        names, or numbers) leaves out. A feature of weight 0 is free: it is minimised like the intercept. For
        ``constraint="l1"``, as the three below.
    positive : bool, mask of shape (n_features,) or list of names
        Which coefficients must be at least 0; True: all.
    lower, upper : float, array of shape (n_features,) or dict, optional
        Limits of the coefficients, besides the budget.
    rows : list of sentences, or dict of arrays, optional
        Linear relations between coefficients, for sets that :class:`~condgrad.constraints.LinearlyConstrained` can cut:
        sentences such as "a <= b <= c", "2 a - b = 0" and "sum = 0", with the names of a data frame (else x0, x1, ...);
        or {"A_ub": ..., "b_ub": ..., "A_eq": ..., "b_eq": ...}.
    l2 : float
        Adds (l2/2) ||w||_2^2 to F.
    sample_weight, offset : array of shape (n_samples,), optional
        Weights of the samples, and known numbers that are added to their predictions.
    random_state : int, numpy Generator or None
    max_time : float, optional
        Seconds for the whole call, after which the points that are solved are returned and the status is MAX_TIME; of
        data in memory there is at least the first point, as far as it came, with its gap.
    callback : callable, optional
        Called with a :class:`~condgrad.Progress` after every point; a true return value ends the path.
    verbose : bool
        Show progress on the terminal.

    Returns
    -------
    radii : array of shape (n_points,)
    coefs : CSC matrix of shape (n_features, n_points)
    info : PathInfo
        ``objective`` is F, ``passes`` the epochs in all. After Ctrl-C, or where the callback asks for it, all three
        hold the points that are done. ``n_reads`` counts how often columns on disk were read.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]], [1.0, -1.0, -1.0]
    >>> radii, coefs, info = cg.radius_path(X, y, radii=[0.5, 1.0])
    >>> coefs.toarray().round(3)
    array([[ 0.25,  0.5 ],
           [-0.25, -0.5 ]])

    The penalty of a point has the same solution:

    >>> _, again, info = cg.radius_path(X, y, alphas=info.alpha)
    >>> again.toarray().round(3), info.radius.round(3)
    (array([[ 0.25,  0.5 ],
           [-0.25, -0.5 ]]), array([0.5, 1. ]))
    """
    with at_most(max_time):
        has_intercept = as_flag(fit_intercept, "fit_intercept")
        terms = feature_weight, positive, lower, upper, rows
        make, is_scaled = wanted_sets(X, constraint, *terms), as_flag(standardize, "standardize")
        if is_called_by_user() and isinstance(constraint, str) and not (is_scaled or feature_weight is not None):
            warn_of_scales(X, ADVICE)
        check_grid(n_radii, eps)
        tol = convert.as_number(tol, "tol", low=0.0, what="a number of at least 0")
        given, is_penalised = wanted_targets(radii, alphas), alphas is not None
        generator = None if random_state is None else as_generator(random_state)  # one for all points
        check_callback(callback)
        max_epochs = convert.as_number(max_epochs, "max_epochs", low=0.0, what="a number of at least 0")
        if isinstance(solver, str) and solver != "auto":
            solvers.by_name(solver)  # tells at once where there is none
        loss = losses.by_name(loss) if isinstance(loss, str) else loss
        X = columns_on_disk.open(X) if columns_on_disk.takes_more_than_memory(X) else X
        refuse_outside(X, "radius_path")
        begun, rows = 0.0, None
        of_samples: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset, "intercept": has_intercept}
        if is_scaled and (isinstance(X, StoredColumns) or is_on_device(X) or l2 != 0.0):
            raise ValueError(
                "standardize=True of radius_path needs X in memory and l2=0; divide X by its standard deviations first."
            )
        if isinstance(X, StoredColumns):
            if not (isinstance(solver, str) and solver == "auto"):
                raise ValueError(f"columns on disk need solver='auto'; got {solver!r}. Use data in memory for others.")
            if l2 != 0.0:
                raise ValueError("l2 of radius_path needs data in memory; leave it out for columns on disk.")
            begun = X.n_reads
            problem = problem_on_disk(X, y, loss, typical(make), **of_samples)
            rows = cast("ColumnRows", problem.rows)
        else:
            problem = Problem(X, y, loss, typical(make), l2=l2, **of_samples)
        if is_scaled:
            scale = deviations(problem.matrix, problem.samples.weight, has_intercept)
            make = wanted_sets(X, constraint, *terms, scale)
            problem = problem.over(typical(make))
        if not is_penalised:
            check_targets(make, problem.constraint, given)
        is_served = rows is not None or serves(problem, make, solver)
        if is_penalised:
            _check_penalised(problem, make, solver, is_served)
        n_targets = int(n_radii) if given is None else given.size
        answer = tall_answer(
            lambda: tall_quadratic(problem, make, solver, n_targets), given, n_targets, float(eps),
            tol=tol, is_penalised=is_penalised, callback=callback, verbose=verbose,
        )  # fmt: skip
        if answer is not None:
            return answer
        if rows is not None:
            rows.read_first()  # not within the path: here Ctrl-C ends the call
        settings: dict[str, Any] = {"max_epochs": max_epochs, "random_state": generator}
        with Interrupts() as interrupts, show(callback, verbose) as report:
            path: SmoothPath | MinimizedPath
            if batched.serves(problem, make, solver):
                path = batched.BatchedPath(problem, make, tol=tol, interrupts=interrupts, **settings)
            elif is_served:
                settings |= {"is_penalised": is_penalised, "data": rows and DiskData(rows, interrupts)}
                path = SmoothPath(problem, make, tol=tol, interrupts=interrupts, **settings)
            else:
                walk = walk_over(problem, make, solver, **settings)
                path = MinimizedPath(walk, tol=tol, scale=problem.loss_scale())

            def largest() -> float:
                if isinstance(path, SmoothPath):
                    return path.largest_radius(eps)
                if isinstance(path, MinimizedPath):
                    return path.walk.largest_radius(eps)
                return radius_at(problem, make, eps)

            is_watched = callback is not None or verbose
            points = points_of(path, given, least_radius(make), int(n_radii), largest, interrupts, is_watched)
            found, coefs, info = collect(path, points, report if is_watched else None)
        return found, coefs, info if rows is None else info._replace(n_reads=rows.n_reads - begun)


def _check_penalised(problem: Problem, make: Callable[..., Any], solver: object, is_served: bool) -> None:
    """Raise unless penalties have a meaning for the problem, and the engine of smooth losses solves it."""
    gauge, loss = any_gauge_of(problem.constraint), type(problem.loss).__name__
    if gauge is None:
        raise ValueError(
            "alphas are penalties of a norm, so constraint must be an l1 ball, a weighted or a non-negative one, or a "
            f"ball of groups; got {type(problem.constraint).__name__}. Give radii instead."
        )
    if gauge.radius_of(make(1.0)) != 1.0:
        raise ValueError("alphas need a function that makes the ball of radius 1 for 1.0; give radii instead.")
    if not problem.is_convex or problem.samples.least_value() == -math.inf:
        known = ", as far as its method least_value tells" if problem.is_convex else ""
        raise ValueError(
            f"alphas need a convex loss that is bounded from below; {loss} is not{known}. Give radii instead."
        )
    if problem.l2 > 0.0:
        raise ValueError(f"alphas of radius_path need l2=0; got l2={problem.l2:g}. Give radii instead.")
    if not is_served:
        raise ValueError(f"alphas need data in memory and solver='auto'; got solver={solver!r}. Give radii instead.")
