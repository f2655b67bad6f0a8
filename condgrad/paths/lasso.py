"""lasso_path: the Lasso for many radii, or penalties, each point with its certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad import solvers
from condgrad.constraints import L1Ball
from condgrad.interrupts import Interrupts
from condgrad.linalg import convert
from condgrad.linalg.matrix import Matrix
from condgrad.losses import Squared
from condgrad.minimize import minimize
from condgrad.paths.columns import Columns, make_columns
from condgrad.paths.engine import ExactEngine, InterruptedPathError, Point
from condgrad.paths.leaps import Leaps
from condgrad.problem import Problem
from condgrad.progress import check_callback, show
from condgrad.result import Status
from condgrad.trace import Progress

_ENGINES = ("exact", "randomized")
_STEP = 1e-3  # of the radius: the change of a coefficient at which the randomized engine stops
_WALK = 8  # penalties from lambda_max down to eps * lambda_max on the way to the largest radius
_WALK_TOL = 1e-4  # relative gap at the end of that walk, or tol where it is smaller


class PathInfo(NamedTuple):
    """What is known about the points of a path; all arrays have one entry per point.

    Attributes
    ----------
    radius : array
        The l1 budget: the radius asked for, or the l1 norm of the solution where penalties were asked for. With
        ``standardize=True`` it bounds the coefficients of the standardised features.
    alpha : array
        The penalty whose solution this is, scikit-learn's ``alpha``: the one asked for, or the largest entry of the
        gradient at the solution (a bound of it where the point is taken from the line between two solved ones).
    gap, relative_gap : array
        The exact gap (of Frank-Wolfe for radii, of duality for penalties) and its share of the objective at zero,
        half the weighted mean of y^2 (of its deviation from the mean, with an intercept).
    objective : array
        Half the weighted mean of the squared residuals.
    n_nonzero, intercept : array
    seconds : array
        Time spent on each point.
    status : Status
        Why the path ended; CONVERGED means that every point is certified to ``tol``.
    columns_seen : int
        Columns that the oracle looked at, in all.
    passes : float
        The same in units of all columns of X.
    n_looks : int
        Oracle calls that proved the best of all columns.
    """

    radius: np.ndarray
    alpha: np.ndarray
    gap: np.ndarray
    relative_gap: np.ndarray
    objective: np.ndarray
    n_nonzero: np.ndarray
    intercept: np.ndarray
    seconds: np.ndarray
    status: Status
    columns_seen: int
    passes: float
    n_looks: int

    def __repr__(self) -> str:
        worst = self.relative_gap.max(initial=0.0)
        return (
            f"PathInfo({self.radius.size} points, relative gaps up to {worst:.2g}, {self.n_nonzero.max(initial=0)} "
            f"nonzero, {self.passes:.3g} passes, {self.seconds.sum():.3g} s, status={self.status.name}: {self.status})"
        )


class _Solved(NamedTuple):
    """A point of the path in the user's coefficients."""

    features: np.ndarray
    w: np.ndarray
    radius: float
    alpha: float
    gap: float
    objective: float
    intercept: float
    seconds: float


def lasso_path(
    X: Any,
    y: Any,
    *,
    n_radii: int = 100,
    eps: float = 1e-2,
    tol: float = 1e-6,
    radii: Any = None,
    alphas: Any = None,
    engine: str = "exact",
    fit_intercept: bool = False,
    standardize: bool = False,
    sample_weight: Any = None,
    random_state: Any = None,
    callback: Callable[[Progress], Any] | None = None,
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
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Columns are looked at one by one: Fortran order and CSC are fastest, CSR is copied to CSC once.
    y : array of shape (n_samples,)
    n_radii : int
    eps : float
        The smallest penalty of the default grid, relative to the largest.
    tol : float
        Gap of every point relative to the objective at zero, (1/2n) ||y||^2 (of the centred y with an intercept).
    radii, alphas : array, optional
        Radii of at least 0, or positive penalties, in any order; at most one of the two.
    engine : {"exact", "randomized"} or a :class:`~condgrad.solvers.Randomized`
        "exact": a working set solved to the end, and an oracle that proves the best column while looking at few.
        "randomized": the solver of Frandi et al. for every radius, from the last solution scaled to the border. It
        stops when a step changes no coefficient by more than a thousandth of the radius (or by ``step_tol`` of the
        solver given), so gaps are reported and not promised. Radii only, without ``standardize``.
    fit_intercept : bool
        Whether to add an intercept, which has no budget. X is centred by formula: sparse data stay sparse.
    standardize : bool
        Whether to divide each feature by its standard deviation (by its root mean square without an intercept), also
        by formula. Coefficients are those of the features as given.
    sample_weight : array of shape (n_samples,), optional
        The means above become weighted means.
    random_state : int, numpy Generator or None
        For the randomized engine.
    callback : callable, optional
        Called with a :class:`~condgrad.trace.Progress` after every point (``step`` counts points, ``epoch`` passes'
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
    the active set.

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
    settings = _checked(n_radii, eps, tol, radii, alphas, engine, fit_intercept, standardize)
    check_callback(callback)
    data = _Data(X, y, sample_weight, settings)
    with Interrupts() as interrupts, show(callback, verbose) as report:
        if engine == "exact":
            path: Any = _ExactPath(data, settings, interrupts)
        else:
            path = _RandomizedPath(data, settings, interrupts, engine, random_state)
        return _run(path, data, settings, interrupts, report if callback is not None or verbose else None)


class _Settings(NamedTuple):
    n_radii: int
    eps: float
    tol: float
    radii: np.ndarray | None
    alphas: np.ndarray | None
    fit_intercept: bool
    standardize: bool

    @property
    def is_penalised(self) -> bool:
        return self.alphas is not None


class _Data:
    """X, y and weights, checked, and the features as the path sees them."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, settings: _Settings) -> None:
        self.matrix = Matrix(convert.as_data(X))
        self.n_samples, self.n_features = self.matrix.shape
        self.y = convert.as_targets(y, self.n_samples)
        self.weight = convert.as_weights(sample_weight, self.n_samples)
        self.has_intercept = settings.fit_intercept
        self.y_mean = float(self.weight @ self.y) if settings.fit_intercept else 0.0
        self.target = self.y - self.y_mean
        self.scale = 0.5 * float((self.weight * self.target) @ self.target)
        self.columns: Columns = make_columns(self.matrix, self.weight, settings.fit_intercept, settings.standardize)

    def engine(self, interrupts: Interrupts) -> ExactEngine:
        """Return an exact engine that stands at w = 0."""
        return ExactEngine(self.columns, self.matrix.n_stored, self.target, self.has_intercept, interrupts)


class _ExactPath:
    """Points of the exact engine."""

    shortfall = Status.STALLED  # why a point may miss the tolerance

    def __init__(self, data: _Data, settings: _Settings, interrupts: Interrupts) -> None:
        self.data, self.settings, self.interrupts = data, settings, interrupts
        self.engine = data.engine(interrupts)
        self.leaps = Leaps(self.engine, settings.is_penalised, settings.tol)
        self.columns_seen = self.n_looks = 0

    def largest_radius(self) -> float:
        """Return the l1 norm of the solution with the penalty eps * lambda_max."""
        largest, eps = self.engine.largest, self.settings.eps
        if largest == 0.0:
            return 0.0
        tol = min(_WALK_TOL, self.settings.tol)
        for k in range(1, _WALK):
            self.engine.solve(largest * eps ** (k / _WALK), is_penalised=True, tol=1e-2)
        norm = self.engine.solve(largest * eps, is_penalised=True, tol=tol).norm
        self.columns_seen, self.n_looks = self.engine.oracle.n_looked, self.engine.n_looks
        self.engine = self.data.engine(self.interrupts)
        self.leaps = Leaps(self.engine, self.settings.is_penalised, self.settings.tol)
        return norm

    def advance(self, targets: np.ndarray) -> list[_Solved]:
        """Return the solutions at the first radii, or penalties, of those that are left."""
        engine, begun = self.engine, time.perf_counter()
        if targets[0] == 0.0 or engine.largest == 0.0:
            points = [Point(np.empty(0, np.int64), np.empty(0), 0.0, engine.largest, 0.0, engine.scale)]
        else:
            points = self.leaps.advance(targets)
        seconds = (time.perf_counter() - begun) / len(points)
        return [self._solved(point, float(target), seconds) for point, target in zip(points, targets, strict=False)]

    def _solved(self, point: Point, target: float, seconds: float) -> _Solved:
        is_penalised = self.settings.is_penalised
        w = point.x * self.data.columns.scale[point.features]
        return _Solved(
            features=point.features,
            w=w,
            radius=point.norm if is_penalised else target,
            alpha=target if is_penalised else point.alpha,
            gap=point.gap,
            objective=point.objective,
            intercept=self.data.y_mean - float(self.data.columns.mean[point.features] @ w),
            seconds=seconds,
        )

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls, of the search for the largest radius too."""
        return self.columns_seen + self.engine.oracle.n_looked, self.n_looks + self.engine.n_looks


class _RandomizedPath:
    """Points of the randomized solver, each from the last one scaled to the border."""

    shortfall = Status.SMALL_STEP

    def __init__(
        self, data: _Data, settings: _Settings, interrupts: Interrupts, engine: Any, random_state: Any
    ) -> None:
        self.data, self.settings, self.interrupts, self.engine = data, settings, interrupts, engine
        self.random = np.random.default_rng(random_state)
        self.w = np.zeros(data.n_features)
        self.epochs = 0.0
        self.n_looks = 0

    def largest_radius(self) -> float:
        """Return the l1 norm of the solution with the penalty eps * lambda_max, which the exact engine finds."""
        return _ExactPath(self.data, self.settings, self.interrupts).largest_radius()

    def advance(self, targets: np.ndarray) -> list[_Solved]:
        """Return the solver's answer at the first radius of those that are left."""
        return [self._solve(float(targets[0]))]

    def _solve(self, target: float) -> _Solved:
        data, begun = self.data, time.perf_counter()
        if target == 0.0:
            alpha = float(np.abs(data.matrix.transpose_dot(data.weight * data.target)).max())
            none = np.empty(0, np.int64)
            return _Solved(none, np.empty(0), 0.0, alpha, 0.0, data.scale, data.y_mean, time.perf_counter() - begun)
        loss, ball = Squared(), L1Ball(target)  # type: ignore[call-arg]
        problem = Problem(data.matrix.X, data.y, loss, ball, sample_weight=data.weight, intercept=data.has_intercept)
        norm = float(np.abs(self.w).sum())
        start = self.w * (target / norm) if norm > 0.0 else None
        tol = self.settings.tol * data.scale
        result = minimize(problem, self._solver(target), w0=start, tol=tol, random_state=self.random)
        if result.status is Status.INTERRUPTED:
            raise InterruptedPathError
        self.w = result.w
        self.epochs += result.n_epochs
        self.n_looks += result.n_lmo
        features = np.flatnonzero(result.w)
        alpha = float(np.abs(problem.gradient(result.w)).max())
        seconds = time.perf_counter() - begun
        return _Solved(
            features, result.w[features], target, alpha, result.gap, result.objective, result.intercept, seconds
        )

    def _solver(self, radius: float) -> Any:
        if self.engine == "randomized":
            return solvers.by_name("randomized")(step_tol=_STEP * radius)
        return self.engine

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls."""
        return int(self.epochs * self.data.n_features), self.n_looks


def _run(
    path: Any, data: _Data, settings: _Settings, interrupts: Interrupts, report: Callable[[Progress], bool] | None
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Solve point after point, from sparse to dense, and return what is done in the order that was asked for."""
    try:
        targets = _targets(path, settings)
    except InterruptedPathError:  # the search for the largest radius certifies no point
        info = _info([], Status.INTERRUPTED, path, data)
        return info.radius.copy(), _matrix([], data.n_features), info
    order = np.argsort(-targets if settings.is_penalised else targets, kind="stable")
    solved: dict[int, _Solved] = {}
    status = Status.CONVERGED
    try:
        for step, point in enumerate(_walk(path, targets[order], interrupts), start=1):
            k = int(order[step - 1])
            solved[k] = point
            wants_to_stop = report is not None and report(_progress(step, solved, k, path, data, settings))
            if wants_to_stop and step < order.size:
                status = Status.STOPPED
                break
    except InterruptedPathError:
        status = Status.INTERRUPTED
    points = [solved[k] for k in sorted(solved)]
    if status is Status.CONVERGED and any(point.gap > settings.tol * data.scale for point in points):
        status = path.shortfall
    info = _info(points, status, path, data)
    return info.radius.copy(), _matrix(points, data.n_features), info


def _walk(path: Any, targets: np.ndarray, interrupts: Interrupts) -> Iterator[_Solved]:
    """Yield the solutions for the targets, one after the other."""
    done = 0
    while done < targets.size:
        if interrupts.requested:
            raise InterruptedPathError
        points = path.advance(targets[done:])
        done += len(points)
        yield from points


def _targets(path: Any, settings: _Settings) -> np.ndarray:
    """Return the penalties or radii that were asked for, or the default grid."""
    targets = settings.alphas if settings.is_penalised else settings.radii
    if targets is not None:
        return targets
    top = path.largest_radius()
    if settings.n_radii == 1:
        return np.array([top])
    return top * 100.0 ** np.linspace(-1.0, 0.0, settings.n_radii)


def _progress(step: int, solved: dict[int, _Solved], k: int, path: Any, data: _Data, settings: _Settings) -> Progress:
    point, (seen, n_looks) = solved[k], path.totals()
    w = np.zeros(data.n_features)
    w[point.features] = point.w
    return Progress(
        step=step,
        epoch=seen / data.n_features,
        gradient_evaluations=seen,
        lmo_calls=n_looks,
        seconds=sum(done.seconds for done in solved.values()),
        objective=point.objective,
        gap=point.gap,
        gap_estimate=point.gap,
        n_nonzero=point.features.size,
        lower_bound=-np.inf if settings.is_penalised else point.objective - point.gap,
        w=w,
    )


def _info(points: list[_Solved], status: Status, path: Any, data: _Data) -> PathInfo:
    seen, n_looks = path.totals()
    gap = np.array([point.gap for point in points])
    return PathInfo(
        radius=np.array([point.radius for point in points]),
        alpha=np.array([point.alpha for point in points]),
        gap=gap,
        relative_gap=gap / data.scale if data.scale > 0.0 else gap,
        objective=np.array([point.objective for point in points]),
        n_nonzero=np.array([point.features.size for point in points], dtype=np.int64),
        intercept=np.array([point.intercept for point in points]),
        seconds=np.array([point.seconds for point in points]),
        status=status,
        columns_seen=int(seen),
        passes=seen / data.n_features,
        n_looks=int(n_looks),
    )


def _matrix(points: list[_Solved], n_features: int) -> scipy.sparse.csc_matrix:
    indptr = np.cumsum([0, *(point.features.size for point in points)])
    parts = list(_sorted(points))
    indices = np.concatenate([part[0] for part in parts]) if parts else np.empty(0, np.int64)
    values = np.concatenate([part[1] for part in parts]) if parts else np.empty(0)
    return scipy.sparse.csc_matrix((values, indices, indptr), shape=(n_features, len(points)))


def _sorted(points: list[_Solved]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for point in points:
        order = np.argsort(point.features)
        yield point.features[order], point.w[order]


def _checked(
    n_radii: Any, eps: Any, tol: Any, radii: Any, alphas: Any, engine: Any, fit_intercept: Any, standardize: Any
) -> _Settings:
    is_named = isinstance(engine, str) and engine in _ENGINES
    if not (is_named or isinstance(engine, solvers.Randomized)):
        raise ValueError(f"engine must be 'exact', 'randomized' or a solver Randomized(...); got {engine!r}.")
    for name, value in (("fit_intercept", fit_intercept), ("standardize", standardize)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False; got {value!r}.")
    if radii is not None and alphas is not None:
        raise ValueError("give radii or alphas, not both: each radius has its alpha, which info reports.")
    if engine != "exact" and (standardize or alphas is not None):
        raise ValueError("engine='randomized' takes radii of features as they are; use engine='exact'.")
    n_radii = convert.as_number(n_radii, "n_radii", low=1, what="a whole number of at least 1")
    if n_radii != int(n_radii):
        raise ValueError(f"n_radii must be a whole number of at least 1; got {n_radii!r}.")
    eps = convert.as_number(eps, "eps", low=1e-12, what="a number between 0 and 1")
    if eps >= 1.0:
        raise ValueError(f"eps must be a number between 0 and 1; got {eps!r}.")
    return _Settings(
        int(n_radii),
        eps,
        convert.as_number(tol, "tol", low=0.0, what="a number of at least 0"),
        None if radii is None else _grid(radii, "radii", 0.0),
        None if alphas is None else _grid(alphas, "alphas", 1e-300),
        bool(fit_intercept),
        bool(standardize),
    )


def _grid(values: Any, name: str, low: float) -> np.ndarray:
    try:
        grid = np.array(values, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a sequence of numbers; got {values!r}.") from None
    wanted = "positive" if low > 0.0 else "at least 0"
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} must be a sequence of numbers; got shape {grid.shape}.")
    if not (np.isfinite(grid).all() and (grid >= low).all()):
        bad = grid[~(np.isfinite(grid) & (grid >= low))][0]
        raise ValueError(f"{name} must be finite and {wanted}; got {bad:g}.")
    return grid
