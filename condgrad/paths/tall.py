"""TallPath: the Lasso of a table with many more samples than features, solved on its moments after one pass."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse

from condgrad.compiled import Stopwatch
from condgrad.constraints import L1Ball, NonnegativeL1Ball
from condgrad.engine.cluster_table import ClusterTable
from condgrad.engine.moments import HasMoments, Moments, Table
from condgrad.engine.quadratic import Points, Quadratic, mean_squared_errors
from condgrad.engine.stored_table import StoredTable
from condgrad.linalg import convert
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.device.arrays import is_on_device
from condgrad.linalg.interrupts import Interrupts, PassInterruptedError
from condgrad.losses import Squared
from condgrad.paths.allowed_sets import AllowedSets, leaves_out_zero, typical
from condgrad.paths.gauges import PLAIN, Gauge, gauge_of
from condgrad.paths.grids import shares
from condgrad.paths.points import PathInfo, Solved, collect, follow
from condgrad.paths.stretch import Stretch
from condgrad.problems.base import BaseProblem
from condgrad.problems.linear import Problem
from condgrad.problems.offset import EVERY
from condgrad.problems.rows.memory import MemoryRows
from condgrad.run.progress import show
from condgrad.run.result import Status
from condgrad.run.trace import Progress
from condgrad.storage.cluster_rows import ClusterRows
from condgrad.storage.device_data import DeviceData
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.stored_columns import StoredColumns
from condgrad.storage.stored_rows import StoredRows

_MOST_FEATURES = 2000  # whose products are kept: some matrices of 32 MB for each fold
_ANYWAY = 100  # features whose products cost no more than a single solution
_PER_TARGET = 10  # more features for each target, up to which products take no longer than a path of few coefficients
_LITTLE = 1e10  # multiplications up to which twice as many features may have their products: a quarter of a second
_EXTREME = 1e10  # weight of a feature, or its inverse: with its square even tiny moments stay in the range of floats
_WALK = 8  # penalties on the way to the largest radius
_LAST_TOL = 1e-4  # largest relative gap to which the last one is solved

T = TypeVar("T")


def has_moments(X: Any) -> bool:
    """Tell whether X are samples outside of memory of which one pass takes the moments."""
    if isinstance(X, ClusterRows):
        return not X.is_on_devices
    return isinstance(X, StoredRows) and X.kind in ("dense", "sparse")


def table_of(X: Any, y: Any, weight: Any, offset: Any, *, is_centred: bool) -> HasMoments:
    """Return checked X as a table with the numbers of its samples, which are checked here.

    None stands for the targets, weights and offsets that come with samples outside of memory.
    """
    n = X.shape[0]
    if isinstance(X, ClusterRows):
        named = zip((y, weight, offset), ("y", "sample_weight", "offset"), strict=True)
        numbers = (None if values is None else convert.as_vector(values, name, n) for values, name in named)
        return ClusterTable(X, *numbers, is_centred=is_centred)
    if is_stored := isinstance(X, StoredRows):
        y, weight, offset = (
            own if given is None else given
            for given, own in zip((y, weight, offset), (X.y, X.weight, X.offset), strict=True)
        )
        if y is None:
            raise ValueError(f"y is missing: {X!r} has no targets; pass y.")
    observed, weight = convert.as_targets(y, n), convert.as_weights(weight, n)
    if offset is not None:
        observed = observed - convert.as_vector(offset, "offset", n)
    return (StoredTable if is_stored else Table)(X, observed, weight, is_centred=is_centred)


def is_tall(X: Any, n_targets: int) -> bool:
    """Tell whether the products of all features cost less than so many solutions on the columns.

    Paths of 100 points on the columns took 0.8 times as long as the products of 20,000 x 1,000 with 13 coefficients at
    their end, but 35 times as long as those of 2,000 x 1,500 with 1,313. A single point of 2,000 x 1,000 took a tenth.
    """
    shape = getattr(X, "shape", ())
    is_elsewhere = isinstance(X, CodedData | OutsideRows | StoredColumns | DeviceData) or is_on_device(X)
    if len(shape) != 2 or (is_elsewhere and not has_moments(X)):
        return False
    n, d = shape
    per_target = _PER_TARGET if float(n) * d * d > _LITTLE else 2 * _PER_TARGET
    return n >= d and d <= min(_MOST_FEATURES, _ANYWAY + per_target * n_targets)


def unless_late(take: Callable[[], T]) -> T | None:
    """Return what a pass takes, None when its time is over; KeyboardInterrupt tells of Ctrl-C."""
    try:
        return take()
    except PassInterruptedError:
        if Interrupts().heard():
            raise KeyboardInterrupt from None
        return None


def gauge_of_sets(sets: AllowedSets | None) -> Gauge | None:
    """Return the l1 norm whose balls the sets are, plain where there are none; None for others and extreme weights."""
    if sets is None:
        return PLAIN
    gauge = None if sets.rows is not None or leaves_out_zero(sets) else gauge_of(typical(sets))
    if gauge is not None and gauge.weights is not None:
        is_usual = (gauge.weights >= 1.0 / _EXTREME) & (gauge.weights <= _EXTREME)
        return gauge if is_usual.all() else None
    return gauge


def largest_radius(quadratic: Quadratic, eps: float, tol: float) -> float:
    """Return the l1 norm of the solution with the penalty eps times the smallest one whose solution is zero."""
    if quadratic.largest == 0.0:
        return 0.0
    way = quadratic.largest * eps ** (np.arange(1, _WALK + 1) / _WALK)
    return float(quadratic.solve(way, is_penalised=True, tol=min(tol, _LAST_TOL)).norm[-1])


class TallPath:
    """The points for some targets, each with its certificate.

    Parameters
    ----------
    quadratic : Quadratic
    targets : array
        Radii of at least 0, or penalties, in any order.
    tol : float
        Relative gap of every point.
    """

    falls_short = False
    gap_bounds_objective = True
    shortfall = Status.STALLED

    def __init__(self, quadratic: Quadratic, targets: np.ndarray, *, tol: float, is_penalised: bool) -> None:
        self.n_features, self.scale = quadratic.n_features, quadratic.scale
        self.tol, self.is_penalised = tol, is_penalised
        order = np.argsort(-targets if is_penalised else targets, kind="stable")
        self.targets = targets[order]
        with Stopwatch() as watch:
            self.points = quadratic.solve(self.targets, is_penalised=is_penalised, tol=tol)
        self.seconds = watch.seconds / max(1, targets.size)

    @property
    def is_certified(self) -> bool:
        """Whether every gap, rounding included, is within the tolerance."""
        return bool((self.points.gap + self.points.rounding <= self.tol * self.scale).all())

    def advance(self, targets: np.ndarray) -> Stretch[Solved]:
        """Return the solutions of the targets that are left, the last ones of the path's."""
        points = Points(*(part[self.targets.size - targets.size :] for part in self.points))
        places, features = np.nonzero(points.W)
        radius, alpha = (points.norm, targets) if self.is_penalised else (targets, points.alpha)
        of_points = radius, alpha, points.gap, points.rounding, points.objective, points.intercept
        numbers = np.array([*of_points, np.full(targets.size, self.seconds)])
        sizes = np.bincount(places, minlength=targets.size)
        return Stretch(Solved, sizes, features, points.W[places, features], numbers)

    def least_value(self) -> tuple[float, int]:
        """Return 0, which no sum of squares falls below; its sums have their rounding in that of the points."""
        return 0.0, 0

    def unfinished(self, target: float) -> Solved:
        """Return the first point, which is solved before any time can be over."""
        return self.advance(self.targets)[0]

    def totals(self) -> tuple[int, int]:
        """Return the columns seen, all of them once, and the oracle calls."""
        return self.n_features, self.targets.size


def tall_quadratic(problem: BaseProblem, make: object, solver: object, n_targets: int) -> Quadratic | None:
    """Return least squares over l1 balls of a tall table as its moments; None for every other problem."""
    is_ball = make is L1Ball or make is NonnegativeL1Ball or isinstance(make, AllowedSets)
    if not (isinstance(problem, Problem) and isinstance(problem.loss, Squared) and is_ball and solver == "auto"):
        return None
    rows, gauge = problem.rows, gauge_of(problem.constraint)
    if gauge is None or not isinstance(rows, MemoryRows) or not is_tall(rows.matrix.explicit(), n_targets):
        return None
    if isinstance(make, AllowedSets) and (make.make is not None or gauge_of_sets(make) is None):
        return None
    samples, matrix = rows.samples, rows.matrix
    if matrix.is_sparse and matrix.shift is not None:  # a copy, whose intercept is another one
        return None
    y = samples.y - samples.offset.added_to(EVERY, np.zeros(samples.y.size))
    make = functools.partial(Table, matrix.explicit(), y, samples.weight, is_centred=problem.has_intercept)
    return quadratic_of(make, gauge, l2=problem.l2)


def quadratic_of(
    make: Callable[[], HasMoments], gauge: Gauge, *, l2: float, standardize: bool = False
) -> Quadratic | None:
    """Return the problem of all samples; None where the time is over, or squares leave the range of floats."""

    def take() -> tuple[HasMoments, Moments]:
        table = make()
        return table, table.moments_of([None])[0]

    if (found := unless_late(take)) is None or not found[1].are_exact_enough:
        return None
    table, moments = found
    return Quadratic(
        table, moments, has_intercept=table.is_centred, standardize=standardize, l2=l2,
        feature_weight=gauge.weights, is_symmetric=gauge.is_symmetric,
    )  # fmt: skip


Answer: TypeAlias = tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]


def tall_answer(
    make_quadratic: Callable[[], Quadratic | None],
    targets: np.ndarray | None,
    n_radii: int,
    eps: float,
    *,
    tol: float,
    is_penalised: bool,
    callback: Callable[[Progress], object] | None,
    verbose: bool,
    is_only_way: bool = False,
) -> Answer | None:
    """Return what users get of a path, by moments; None where there are none, or where rounding asks for another way.

    Without targets there are ``n_radii`` of them, up to that of the penalty ``eps`` times the largest one. If this
    ``is_only_way``, points beyond the tolerance come as they are.
    """
    with Interrupts() as interrupts, show(callback, verbose) as report:
        if (quadratic := make_quadratic()) is None:
            return None
        if targets is None:
            targets = largest_radius(quadratic, eps, tol) * shares(n_radii)
        path = TallPath(quadratic, targets, tol=tol, is_penalised=is_penalised)
        if not (is_only_way or path.is_certified):
            return None
        is_watched = callback is not None or verbose
        return collect(path, follow(path, targets, interrupts, is_watched), report if is_watched else None)


class TallFolds:
    """The folds of a cross-validation of a tall table, from one pass where no sample is left out twice.

    Parameters
    ----------
    table : HasMoments
    parts : list of (array, array)
        The samples to fit and those left out, of each fold.
    gauge : Gauge
        The norm of the balls.
    """

    def __init__(self, table: HasMoments, parts: Sequence[tuple[np.ndarray, np.ndarray]], gauge: Gauge) -> None:
        self.table, self.gauge = table, gauge
        tests = [test for _, test in parts]
        self._trains: list[Moments] = []
        if _are_dealt(parts, table.shape[0]):
            self.tests = table.moments_of(tests)
            self.whole = functools.reduce(operator.add, self.tests)
        else:
            self.whole, *others = table.moments_of([None, *tests, *(train for train, _ in parts)])
            self.tests, self._trains = others[: len(tests)], others[len(tests) :]
        trains = (self.train(k) for k in range(len(parts)))
        self.are_exact_enough = self.whole.are_exact_enough and all(each.are_exact_enough for each in trains)

    def train(self, k: int) -> Moments:
        """Return the moments of the samples to which fold k is fitted: those of all others where these add up."""
        if self._trains:
            return self._trains[k]
        return functools.reduce(operator.add, (test for j, test in enumerate(self.tests) if j != k))

    def quadratic(self, moments: Moments, l2: float, *, standardize: bool) -> Quadratic:
        """Return the problem of some samples: of the whole table, or of a fold."""
        return Quadratic(
            self.table, moments, has_intercept=self.table.is_centred, standardize=standardize, l2=l2,
            feature_weight=self.gauge.weights, is_symmetric=self.gauge.is_symmetric,
        )  # fmt: skip

    def errors(self, k: int, points: Points) -> np.ndarray:
        """Return the mean squared error of each point on the samples that fold k leaves out."""
        return mean_squared_errors(self.table, self.tests[k], points.W, points.intercept)


def _are_dealt(parts: Sequence[tuple[np.ndarray, np.ndarray]], n: int) -> bool:
    """Tell whether every sample is left out in one fold, and used once in all others."""
    fold_of = np.full(n, -1)
    for k, (_, test) in enumerate(parts):
        fold_of[test] = k
    if len(parts) < 2 or fold_of.min() < 0 or sum(test.size for _, test in parts) != n:
        return False
    for k, (train, test) in enumerate(parts):
        is_once = bool((np.diff(train) > 0).all()) or np.unique(train).size == train.size
        if train.size + test.size != n or not is_once or (fold_of[train] == k).any():
            return False
    return True
