"""lasso_path: the Lasso for many radii, or penalties, each point with its certificate."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad import solvers
from condgrad.constraints import L1Ball
from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.engine.device_table import MOST_FEATURES, DeviceTable
from condgrad.engine.quadratic import Quadratic
from condgrad.linalg import convert
from condgrad.linalg.callers import is_called_by_user
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import is_on_device
from condgrad.linalg.device.failures import failures_explained
from condgrad.linalg.interrupts import Interrupts, at_most, time_is_over
from condgrad.linalg.settings import RandomState, as_flag, as_generator
from condgrad.losses import Squared
from condgrad.paths.allowed_sets import AllowedSets, columns_of, sets_of
from condgrad.paths.exact_path import ExactPath, LassoSettings, Regression
from condgrad.paths.free_lasso import free_path, is_for_free_features
from condgrad.paths.gauges import PLAIN
from condgrad.paths.general import radius_path
from condgrad.paths.grids import as_grid, check_grid, shares
from condgrad.paths.minimized import MinimizedPath, Walk
from condgrad.paths.points import Arrivals, PathInfo, collect, follow, without_points
from condgrad.paths.scales import ADVICE, warn_of_scales
from condgrad.paths.tall import gauge_of_sets, has_moments, is_tall, quadratic_of, table_of, tall_answer
from condgrad.problems.linear import Problem
from condgrad.problems.rows.device import DeviceRows
from condgrad.run.progress import check_callback, show
from condgrad.run.result import Status
from condgrad.run.trace import Progress
from condgrad.storage import columns as columns_on_disk
from condgrad.storage.device_data import DeviceData
from condgrad.storage.outside_rows import OutsideRows, refuse_outside
from condgrad.storage.stored_columns import StoredColumns

_ENGINES = ("exact", "randomized")
_STEP = 1e-3  # share of the radius: the change of a coefficient at which the randomized engine stops
_SMALL = 1_000_000  # stored entries of X up to which the engine of smooth losses solves the path
_FEW = 500  # samples, or features, that X may have then: no more coefficients are nonzero


def lasso_path(
    X: Data | StoredColumns | OutsideRows,
    y: ArrayLike,
    *,
    n_radii: int | None = 100,
    eps: float = 1e-2,
    tol: float = 1e-6,
    radii: ArrayLike | None = None,
    alphas: ArrayLike | None = None,
    max_epochs: float = 10_000,
    l2: float = 0.0,
    engine: str = "exact",
    fit_intercept: bool = False,
    standardize: bool = False,
    feature_weight: PerFeature = None,
    positive: Which = False,
    lower: PerFeature = None,
    upper: PerFeature = None,
    rows: Rows = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    random_state: RandomState = None,
    max_time: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    verbose: bool = False,
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    r"""Solve the Lasso for many radii and certify every solution.

    Point k minimises F(w) = (1/2n) ||y - Xw||^2 over ||w||_1 <= radius_k, to a Frank-Wolfe gap of at most
    tol * (1/2n) ||y||^2. The largest entry of the gradient there is the penalty alpha for which the same w minimises
    F(w) + alpha ||w||_1, so every point is reported with both; where ``alphas`` are given, those penalised problems are
    solved, to a duality gap of at most the same size.

    By default the radii are the grid of Frandi et al.: ``n_radii`` of them, evenly spaced in their logarithm between
    radius_max / 100 and radius_max, the l1 norm of the solution with the penalty ``eps`` times the smallest one whose
    solution is zero.

    Parameters
    ----------
    X : array, sparse matrix, data frame or columns on disk, of shape (n_samples, n_features)
        Columns are read one by one: Fortran order and CSC are fastest, CSR is copied to CSC once. Columns on disk
        (:func:`condgrad.columns.open`) are read where they lie, and only those that can matter; so is a memory map in
        Fortran order that is larger than half of the memory. Rows of numbers on disk
        (:func:`condgrad.rows.open`), or with the workers of a cluster (:func:`condgrad.rows.from_dask`), are read once,
        for up to 1000 features. Arrays on a GPU stay there, for up to 4096 features.
    y : array of shape (n_samples,)
        None: the targets that rows on disk or of a cluster bring, as they may bring weights and offsets.
    n_radii : int or None
        None: as few radii, from 0 on, as it takes for *every* radius in between to be certified: there w is on the line
        between the neighbours, and its gap is at most ``tol`` as well (Giesen, Jaggi & Laue 2012).
    eps : float
        The smallest penalty of the default grid, relative to the largest.
    tol : float
        Gap of every point relative to the objective at zero, (1/2n) ||y||^2 (of the centred y with an intercept).
    radii, alphas : array, optional
        Radii of at least 0, or positive penalties, in any order; at most one of the two.
    max_epochs : float
        Of one point: passes over the columns, or rounds of the exact engine, each of which looks at all columns once at
        most.
    l2 : float
        Adds (l2/2) ||w||_2^2 to F: the elastic net (alpha (1 - l1_ratio) of scikit-learn's). With ``standardize`` it
        counts the coefficients of the standardised features.
    engine : {"exact", "randomized"} or a :class:`~condgrad.solvers.Randomized`
        "exact": for tables with at least as many samples as features one pass that sums up all products of two columns,
        on which all points are solved and certified; else a working set solved to the end, and an oracle that proves
        the best column while reading few. (Small data with fewer samples than features are solved as
        :func:`radius_path` solves other losses, which is faster.)
        "randomized": the solver of Frandi et al. for every radius, from the last solution scaled to the border. It
        stops when a step changes no coefficient by more than a thousandth of the radius (or by ``step_tol`` of the
        solver given), so gaps are reported and not promised. Radii only, without ``standardize`` and ``l2``.
    fit_intercept : bool
        Whether to add an intercept, which has no budget. X is centred by formula: sparse data stay sparse.
    standardize : bool
        Whether to divide each feature by its standard deviation (by its root mean square without an intercept), also
        by formula. Coefficients are those of the features as given.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations, as in :func:`radius_path`. Positive weights of features alone leave the
        engine as it is. With free features, limits and rows the points are those of :func:`radius_path`, for
        ``n_radii`` or ``radii`` and without ``standardize``.
    sample_weight : array of shape (n_samples,), optional
        The means above become weighted means.
    offset : array of shape (n_samples,), optional
        Known numbers that are added to the predictions: y becomes y - offset in all formulas above.
    random_state : int, numpy Generator or None
        For the randomized engine.
    max_time : float, optional
        Seconds for the whole call, after which the points that are solved are returned and the status is MAX_TIME; of
        data in memory there is at least the first point, as far as it came, with its gap.
    callback : callable, optional
        Called with a :class:`~condgrad.Progress` after every point (``step`` counts points, ``epoch`` passes'
        worth of columns); a true return value ends the path.
    verbose : bool
        Show progress on the terminal.

    Returns
    -------
    radii : array of shape (n_points,)
        As given, or ascending for the default grid.
    coefs : CSC matrix of shape (n_features, n_points)
    info : PathInfo
        Ctrl-C, or the callback, ends the path early: then all three hold the points that are done. A point that
        Ctrl-C meets half-way is left out.

    References
    ----------
    Frandi, Ñanculef, Lodi, Sartori & Suykens (2016), sections 2 and 5. Efron, Hastie, Johnstone & Tibshirani (2004) for
    the active set. Giesen, Jaggi & Laue (2012) for paths that are certified everywhere.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0]
    >>> radii, coefs, info = cg.lasso_path(X, y, radii=[1.0, 3.0])
    >>> coefs.toarray()
    array([[1. , 2.5],
           [0. , 0.5]])
    >>> info.alpha
    array([1.  , 0.25])
    """
    with at_most(max_time):
        settings = _checked(n_radii, eps, tol, radii, alphas, max_epochs, l2, engine, fit_intercept, standardize)
        check_callback(callback)
        sets = sets_of("l1", columns_of(X), feature_weight, positive, lower, upper, rows)
        if is_called_by_user() and not (settings.standardize or feature_weight is not None):
            warn_of_scales(X, ADVICE)
        is_stored = has_moments(X)  # whose moments take all norms
        if sets is not None and not (is_stored or _is_weighted_only(X, sets, settings, engine)):
            return _over_sets(X, y, sets, settings, engine, sample_weight, offset, callback, verbose)
        if is_on_device(X) or isinstance(X, DeviceData):
            return _on_device(X, y, sample_weight, offset, engine, settings, callback, verbose)
        X = columns_on_disk.open(X) if columns_on_disk.takes_more_than_memory(X) else X
        if engine == "exact" and (answer := _tall_path(X, y, sets, settings, sample_weight, offset, callback, verbose)):
            return answer if not is_stored else (*answer[:2], answer[2]._replace(n_reads=1.0))
        if isinstance(X, OutsideRows) and is_stored and time_is_over():
            return without_points(X.shape[1], Status.MAX_TIME)
        refuse_outside(X, "lasso_path")
        assert not isinstance(X, OutsideRows)
        if engine == "exact" and _is_small(X, settings):
            answer = _by_radius_path(X, y, sets or L1Ball, settings, sample_weight, offset, callback, verbose)
            if answer[2].status is not Status.ROUNDING:
                return answer
            # With tiny penalties the rounding of its gaps is far larger than that of the gaps of least squares.
        if isinstance(X, StoredColumns) and engine != "exact":
            raise ValueError("engine='randomized' needs X in memory; use engine='exact' for columns on disk.")
        begun = X.n_reads if isinstance(X, StoredColumns) else 0.0
        data = Regression(X, y, sample_weight, offset, settings, None if sets is None else sets.allowance.weights)
        with Interrupts() as interrupts, show(callback, verbose) as report:
            if engine == "exact":
                path: Any = ExactPath(data, settings, interrupts)
            else:
                path = _randomized_path(data, settings, engine, random_state)
            is_watched = callback is not None or verbose
            points = _points(path, data, settings, interrupts, is_watched)
            found, coefs, info = collect(path, points, report if is_watched else None)
        return found, coefs, info._replace(n_reads=X.n_reads - begun) if isinstance(X, StoredColumns) else info


def _is_weighted_only(X: object, sets: AllowedSets, settings: LassoSettings, engine: object) -> bool:
    """Tell whether the exact engine takes the sets: weights of features in memory, which scale them."""
    weights, lower, upper = sets.allowance
    is_weighted = (
        weights is not None and float(weights.min()) > 0.0 and lower is None and upper is None and sets.rows is None
    )
    is_here = not (isinstance(X, StoredColumns | DeviceData) or is_on_device(X))
    return is_weighted and is_here and engine == "exact" and settings.l2 == 0.0


def _over_sets(
    X: Any,
    y: ArrayLike,
    sets: AllowedSets,
    settings: LassoSettings,
    engine: object,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    callback: Callable[[Progress], object] | None,
    verbose: bool,
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Solve the Lasso with limits or free features as a path of any loss."""
    if settings.n_radii is None or settings.standardize or engine != "exact":
        raise ValueError(
            "free features, limits or rows of coefficients, and weights of features with l2 need engine='exact', a "
            "number of radii, and standardize=False; divide X by its scales first."
        )
    given = X if isinstance(X, StoredColumns | DeviceData) or is_on_device(X) else convert.as_data(X)
    if settings.alphas is None and settings.l2 == 0.0 and is_for_free_features(given, sets):
        of_samples: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset}
        problem = Problem(given, y, Squared(), sets(1.0), intercept=settings.fit_intercept, **of_samples)  # type: ignore[call-arg]
        grid: dict[str, Any] = {"n_radii": settings.n_radii, "eps": settings.eps, "radii": settings.radii}
        grid["max_epochs"] = settings.max_epochs
        solve, targets = functools.partial(lasso_path, **grid), convert.as_targets(y, given.shape[0])
        with Interrupts() as interrupts, show(callback, verbose) as report:
            shown = report if callback is not None or verbose else None
            return free_path(
                problem, sets, given, targets, solve, tol=settings.tol, report=shown, interrupts=interrupts
            )
    return _by_radius_path(X, y, sets, settings, sample_weight, offset, callback, verbose)


def _tall_path(
    X: Any,
    y: ArrayLike,
    sets: AllowedSets | None,
    settings: LassoSettings,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    callback: Callable[[Progress], object] | None,
    verbose: bool,
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo] | None:
    """Solve the Lasso on the moments of a tall table; None where another way is faster, or rounding asks for it."""
    if settings.is_everywhere or not is_tall(X, settings.n_targets) or (gauge := gauge_of_sets(sets)) is None:
        return None
    X = X if has_moments(X) else matrix_of(X).X

    def quadratic() -> Quadratic | None:
        make = functools.partial(table_of, X, y, sample_weight, offset, is_centred=settings.fit_intercept)
        return quadratic_of(make, gauge, l2=settings.l2, standardize=settings.standardize)

    return tall_answer(
        quadratic, settings.targets, settings.n_targets, settings.eps,
        tol=settings.tol, is_penalised=settings.is_penalised, callback=callback, verbose=verbose,
    )  # fmt: skip


def _is_small(X: Any, settings: LassoSettings) -> bool:
    """Tell whether the engine of smooth losses is faster: no Python runs between its points, nor are there lines."""
    if settings.standardize or settings.l2 > 0.0 or settings.is_everywhere:
        return False
    if not (isinstance(X, np.ndarray) or scipy.sparse.issparse(X)) or len(X.shape) != 2:
        return False
    n_stored = X.nnz if scipy.sparse.issparse(X) else X.size
    return min(X.shape) <= _FEW and n_stored <= _SMALL


def _by_radius_path(
    X: Any,
    y: ArrayLike,
    sets: Callable[..., Any],
    settings: LassoSettings,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    callback: Callable[[Progress], object] | None,
    verbose: bool,
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Solve the Lasso as a path of any loss."""
    return radius_path(
        X, y, loss=Squared(), constraint=sets, n_radii=settings.n_radii or 1, eps=settings.eps, tol=settings.tol,  # type: ignore[call-arg]
        radii=settings.radii, alphas=settings.alphas, max_epochs=settings.max_epochs, l2=settings.l2,
        fit_intercept=settings.fit_intercept,
        sample_weight=sample_weight, offset=offset, callback=callback, verbose=verbose,
    )  # fmt: skip


def _on_device(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    engine: object,
    settings: LassoSettings,
    callback: Callable[[Progress], object] | None,
    verbose: bool,
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Solve the Lasso on the moments of a table on a device, however certain they are."""
    if engine != "exact" or settings.is_everywhere:
        raise ValueError("lasso_path on a device needs engine='exact', and n_radii, radii or alphas.")
    of_samples: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset}
    rows = Problem(X, y, Squared(), L1Ball(1.0), intercept=settings.fit_intercept, **of_samples).rows  # type: ignore[call-arg]
    if not isinstance(rows, DeviceRows):
        raise TypeError("lasso_path needs X in the memory of the device, which cannot hold it; use radius_path.")
    if rows.n_features > MOST_FEATURES:
        raise ValueError(
            f"lasso_path on a device takes at most {MOST_FEATURES} features; got {rows.n_features}. "
            "Use radius_path(loss='squared') there, or data in memory."
        )
    with failures_explained():
        make = functools.partial(DeviceTable, rows, is_centred=settings.fit_intercept)
        answer = tall_answer(
            lambda: quadratic_of(make, PLAIN, l2=settings.l2, standardize=settings.standardize),
            settings.targets, settings.n_targets, settings.eps,
            tol=settings.tol, is_penalised=settings.is_penalised, callback=callback, verbose=verbose, is_only_way=True,
        )  # fmt: skip
    if answer is None:
        raise ValueError("squares of a feature, or of y, leave the range of floats; scale them, or use X in memory.")
    return answer


class _RandomizedWalk(Walk):
    """The walk of the randomized solver, each point from the last one scaled to the border."""

    def solver_at(self, radius: float) -> object:
        """Return the solver given, or one whose smallest step goes with the radius."""
        return solvers.by_name("randomized")(step_tol=_STEP * radius) if self.solver == "randomized" else self.solver

    def start_at(self, radius: float) -> np.ndarray:
        """Return the last solution, scaled."""
        norm = float(np.abs(self.w).sum())
        return self.w * (radius / norm) if norm > 0.0 else self.w


def _randomized_path(
    data: Regression, settings: LassoSettings, engine: Any, random_state: RandomState
) -> MinimizedPath:
    """Return the path of the randomized solver."""
    loss, ball = Squared(), L1Ball(1.0)  # type: ignore[call-arg]
    problem = Problem(
        data.X, data.observed, loss, ball, sample_weight=data.weight, offset=data.offset, intercept=data.has_intercept
    )
    limits: dict[str, Any] = {"max_epochs": settings.max_epochs, "random_state": as_generator(random_state)}
    walk = _RandomizedWalk(problem, L1Ball, engine, **limits)
    return MinimizedPath(walk, tol=settings.tol, scale=data.scale)


def _points(path: Any, data: Regression, settings: LassoSettings, interrupts: Interrupts, is_watched: bool) -> Arrivals:
    """Yield the points for the targets given, for the default grid, or for as many radii as it takes."""
    if settings.is_everywhere:
        for k, (is_last, point) in enumerate(path.cover()):
            yield np.array([k]), 0.0 if is_last else math.inf, [point]
        return
    targets = settings.targets
    if targets is None:
        exact = path if isinstance(path, ExactPath) else ExactPath(data, settings, interrupts)
        targets = exact.largest_radius() * shares(settings.n_radii or 1)
    yield from follow(path, targets, interrupts, is_watched)


def _checked(
    n_radii: int | None,
    eps: float,
    tol: object,
    radii: ArrayLike | None,
    alphas: ArrayLike | None,
    max_epochs: object,
    l2: object,
    engine: Any,
    fit_intercept: object,
    standardize: object,
) -> LassoSettings:
    is_named = isinstance(engine, str) and engine in _ENGINES
    if not (is_named or isinstance(engine, solvers.Randomized)):
        raise ValueError(f"engine must be 'exact', 'randomized' or a solver Randomized(...); got {engine!r}.")
    has_intercept, standardize = as_flag(fit_intercept, "fit_intercept"), as_flag(standardize, "standardize")
    if radii is not None and alphas is not None:
        raise ValueError("give radii or alphas, not both: each radius has its alpha, which info reports.")
    if not math.isfinite(l2 := convert.as_number(l2, "l2", low=0.0, what="a number of at least 0")):
        raise ValueError(f"l2 must be finite; got {l2}.")
    if engine != "exact" and (standardize or alphas is not None or l2 > 0.0):
        raise ValueError("engine='randomized' takes radii of features as they are, without l2; use engine='exact'.")
    if n_radii is None and radii is None and engine != "exact":
        raise ValueError("n_radii=None needs engine='exact': the randomized engine certifies no lines.")
    check_grid(n_radii, eps, may_be_none=True)
    return LassoSettings(
        None if n_radii is None else int(n_radii),
        float(eps),
        convert.as_number(tol, "tol", low=0.0, what="a number of at least 0"),
        None if radii is None else as_grid(radii, "radii", 0.0),
        None if alphas is None else as_grid(alphas, "alphas", 1e-300),
        convert.as_number(max_epochs, "max_epochs", low=0.0, what="a number of at least 0"),
        l2,
        has_intercept,
        standardize,
    )
