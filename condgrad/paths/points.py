"""What a path is made of: its points, what is known about them, and the walk from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import scipy.sparse

from condgrad.linalg.device.failures import explained, is_failure
from condgrad.linalg.interrupts import Interrupts, time_is_over
from condgrad.linalg.rounding import gamma
from condgrad.paths.stretch import Stretch
from condgrad.run.result import Status
from condgrad.run.trace import Progress


class InterruptedPathError(Exception):
    """Ctrl-C was pressed while a point was being solved."""

    status = Status.INTERRUPTED


class OutOfTimeError(InterruptedPathError):
    """The time was over while a point was being solved."""

    status = Status.MAX_TIME


def raise_if_interrupted(interrupts: Interrupts | None) -> None:
    """Raise where Ctrl-C was pressed, or the time of the present call is over."""
    if interrupts is not None and interrupts.heard():
        raise InterruptedPathError
    if time_is_over():
        raise OutOfTimeError


class PathInfo(NamedTuple):
    """What is known about the points of a path; all arrays have one entry per point.

    Attributes
    ----------
    radius : array
        The budget: the radius asked for, or the norm of the solution where penalties were asked for. With
        ``standardize=True`` it bounds the coefficients of the standardised features.
    alpha : array
        The penalty whose solution this is, scikit-learn's ``alpha``: the one asked for, or the largest entry of the
        gradient at the solution (a bound of it where the point is taken from the line between two solved ones). Over
        other sets than the l1 ball: the multiplier of the constraint.
    gap, relative_gap : array
        The certified gap and its share of the objective at zero: for the Lasso half the weighted mean of y^2 (of its
        deviation from the mean, with an intercept). For radii it is the exact gap of Frank-Wolfe, or by how much F(w)
        exceeds the least value of the loss where that is less, as where Xw = y up to rounding. For penalties it is a
        bound of the distance from the penalised optimum: for the Lasso the duality gap, or a bound of it where data are
        small.
    rounding : array
        A bound for what floating point may have done to each gap: gap + rounding certifies the point, always.
    objective : array
        F(w): for the Lasso half the weighted mean of the squared residuals, and (l2/2) ||w||_2^2.
    n_nonzero, intercept : array
    seconds : array
        Time spent on each point, without compilation. Points that are solved together have equal shares of it.
    status : Status
        Why the path ended; CONVERGED means that every point (with ``n_radii=None`` every radius) is certified to
        ``tol``.
    columns_seen : int
        Columns that the oracle read, in all.
    passes : float
        The same in units of all columns of X.
    n_looks : int
        Oracle calls that proved the best of all columns.
    n_reads : float
        How often X was read from disk, single columns by their share; 0 if X is in memory.
    """

    radius: np.ndarray
    alpha: np.ndarray
    gap: np.ndarray
    relative_gap: np.ndarray
    rounding: np.ndarray
    objective: np.ndarray
    n_nonzero: np.ndarray
    intercept: np.ndarray
    seconds: np.ndarray
    status: Status
    columns_seen: int
    passes: float
    n_looks: int
    n_reads: float = 0.0

    def __repr__(self) -> str:
        worst = self.relative_gap.max(initial=0.0)
        return (
            f"PathInfo({self.radius.size} points, relative gaps up to {worst:.2g}, {self.n_nonzero.max(initial=0)} "
            f"nonzero, {self.passes:.3g} passes, {self.seconds.sum():.3g} s, status={self.status.name}: {self.status})"
        )


class Solved(NamedTuple):
    """A point of the path in the user's coefficients."""

    features: np.ndarray
    w: np.ndarray
    radius: float
    alpha: float
    gap: float
    rounding: float
    objective: float
    intercept: float
    seconds: float

    @property
    def certified_gap(self) -> float:
        """The gap with all that rounding may have done to it."""
        return self.gap + self.rounding

    def to_dense(self, n_features: int) -> np.ndarray:
        """Return all coefficients."""
        w = np.zeros(n_features)
        w[self.features] = self.w
        return w


# Points as they are solved: their places, how many are left after them, and the points.
Arrivals: TypeAlias = Iterator[tuple[np.ndarray, float, Sequence[Solved]]]

_MOST_INT32 = np.iinfo(np.int32).max
_SUMS = 16  # operations of a loss beside the sum over the samples
_GAP = Solved._fields.index("gap") - 2  # its row among the numbers of points
_NOTHING = Stretch(Solved, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros((7, 0)))


class Path(Protocol):
    """What solves the points of a path, one after the other from the sparse end on."""

    n_features: int
    scale: float  # what relative gaps are relative to
    tol: float  # relative gap of every point
    is_penalised: bool  # whether targets are penalties
    gap_bounds_objective: bool  # whether F(w) less the gap is a lower bound of F over the set

    @property
    def falls_short(self) -> bool:
        """Whether something else than a point of the path has missed the tolerance."""

    @property
    def shortfall(self) -> Status:
        """Why a point may miss the tolerance."""

    def advance(self, targets: np.ndarray) -> Sequence[Solved]:
        """Return the solutions for the first one of the targets that are left, or for the first few."""

    def least_value(self) -> tuple[float, int]:
        """Return a lower bound of F over all coefficients, -inf where none is known, and the number of samples."""

    def unfinished(self, target: float) -> Solved | None:
        """Return where the search for the first target stands, with its certificate; None where that costs reads."""

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls so far."""


def follow(path: Path, targets: np.ndarray, interrupts: Interrupts, is_watched: bool) -> Arrivals:
    """Yield the solutions in the order of the path: one after the other where somebody watches, else as they come.

    If the time is over before there is a point, the first one comes as it is.
    """
    order = np.argsort(-targets if path.is_penalised else targets, kind="stable")
    done = 0
    while done < order.size:
        try:
            raise_if_interrupted(interrupts)
            points = path.advance(targets[order[done:]])
        except OutOfTimeError:
            first = path.unfinished(float(targets[order[0]])) if done == 0 else None
            if first is not None:
                yield order[:1], order.size - 1, [first]
            raise
        is_ending = interrupts.is_waiting()  # during the search: all that it has found counts
        for part in [[point] for point in points] if is_watched else [points]:
            begun, done = done, done + len(part)
            yield order[begun:done], order.size - done, part
            if not is_ending and done < order.size:  # whoever got this point may have pressed it
                raise_if_interrupted(interrupts)


def collect(
    path: Path, arrivals: Arrivals, report: Callable[[Progress], bool] | None
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Return radii, coefficients and what is known about the points, in the order of their places.

    Where there is a ``report``, points arrive one by one.
    """
    places: list[np.ndarray] = []
    found: list[Stretch[Solved]] = []
    status, seconds = Status.CONVERGED, 0.0
    try:
        for of_points, n_left, points in arrivals:
            places.append(of_points)
            found.append(Stretch.of(Solved, points))
            if report is None:
                continue
            seconds += points[-1].seconds
            if report(_progress(len(places), seconds, points[-1], path)) and n_left > 0:
                status = Status.STOPPED
                break
    except InterruptedPathError as error:
        status = error.status
    except Exception as error:
        if not is_failure(error):
            raise
        if not found:
            raise explained(error) from error
        status = Status.DEVICE_FAILED
    solved = _bounded_by_least_value(_in_order(places, found), path)
    if status is Status.CONVERGED:
        status = status_of(solved, path)
    info = _info(solved, status, path)
    return info.radius.copy(), _matrix(solved, path.n_features), info


def _in_order(places: list[np.ndarray], found: list[Stretch[Solved]]) -> Stretch[Solved]:
    """Return all points in the order of their places."""
    if not found:
        return _NOTHING
    points, of_points = Stretch.joined(found), np.concatenate(places)
    is_ordered = bool((of_points[1:] > of_points[:-1]).all())
    return points if is_ordered else points.taken(np.argsort(of_points))


def _bounded_by_least_value(points: Stretch[Solved], path: Path) -> Stretch[Solved]:
    """Return the points, with gaps of at most what F exceeds its least value by: that is a certificate, too.

    Penalised gaps have it in them. Where F is below that value it is not what it says.
    """
    least, n_samples = path.least_value()
    if path.is_penalised or least == -np.inf or not path.gap_bounds_objective:
        return points
    gap, rounding, objective = (points.column(name) for name in ("gap", "rounding", "objective"))
    of_sums = gamma(n_samples + _SUMS) * (np.abs(objective) + abs(least))
    excess, numbers = objective - least, points.numbers.copy()
    bound = np.maximum(excess, 0.0) + of_sums + rounding
    numbers[_GAP] = np.where(excess + of_sums + rounding >= 0.0, np.minimum(gap, bound), gap)
    return Stretch(Solved, points.sizes, points.features, points.coefficients, numbers)


def status_of(points: Stretch[Solved], path: Path) -> Status:
    """Return whether the points are certified to the tolerance of the path, or why they are not."""
    gap, rounding = points.column("gap"), points.column("rounding")
    is_missed = ~(gap + rounding <= path.tol * path.scale)  # nan is missed
    if not (is_missed.any() or path.falls_short):
        return Status.CONVERGED
    is_rounding = bool((gap <= rounding)[is_missed].all())
    return Status.ROUNDING if is_rounding else path.shortfall


def _progress(step: int, seconds: float, point: Solved, path: Path) -> Progress:
    seen, n_looks = path.totals()
    return Progress(
        step=step,
        epoch=seen / path.n_features,
        gradient_evaluations=seen,
        lmo_calls=n_looks,
        seconds=seconds,
        objective=point.objective,
        gap=point.gap,
        rounding=point.rounding,
        gap_estimate=point.gap,
        n_nonzero=point.features.size,
        lower_bound=_lower_bound(point) if path.gap_bounds_objective else -np.inf,
        w=point.to_dense(path.n_features),
    )


def _lower_bound(point: Solved) -> float:
    """Return F(w) less the gap, and less what rounding may have added to either."""
    return point.objective * (1.0 - 1e-12) - 2.0 * point.rounding - point.gap


def _info(points: Stretch[Solved], status: Status, path: Path) -> PathInfo:
    seen, n_looks = path.totals()
    radius, alpha, gap, rounding, objective, intercept, seconds = points.numbers
    return PathInfo(
        radius=radius,
        alpha=alpha,
        gap=gap,
        relative_gap=gap / path.scale if path.scale > 0.0 else gap,
        rounding=np.where(np.isnan(rounding), np.inf, rounding),  # no bound
        objective=objective,
        n_nonzero=points.sizes,
        intercept=intercept,
        seconds=seconds,
        status=status,
        columns_seen=int(seen),
        passes=seen / path.n_features,
        n_looks=int(n_looks),
    )


def without_points(n_features: int, status: Status) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Return what users get of a path that has ended before its first point."""
    n, x = _NOTHING.sizes, np.zeros(0)
    info = PathInfo(x, x, x, x, x, x, n, x, x, status=status, columns_seen=0, passes=0.0, n_looks=0)
    return np.zeros(0), _matrix(_NOTHING, n_features), info


def _matrix(points: Stretch[Solved], n_features: int) -> scipy.sparse.csc_matrix:
    if points.features.size == 0:
        return scipy.sparse.csc_matrix((n_features, len(points)))
    # The type that scipy would choose, after longer thought.
    kind = np.int32 if max(n_features, points.features.size) <= _MOST_INT32 else np.int64
    indptr = np.zeros(len(points) + 1, kind)
    np.cumsum(points.sizes, out=indptr[1:])
    parts = points.coefficients, points.features.astype(kind), indptr
    return scipy.sparse.csc_matrix(parts, shape=(n_features, len(points)))
