"""What a path is made of: its points, what is known about them, and the walk from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse

from condgrad.linalg.device.failures import explained, is_failure
from condgrad.linalg.interrupts import Interrupts
from condgrad.run.result import Status
from condgrad.run.trace import Progress


class InterruptedPathError(Exception):
    """Ctrl-C was pressed while a point was being solved."""


def raise_if_interrupted(interrupts: Interrupts | None) -> None:
    """Raise where Ctrl-C was pressed."""
    if interrupts is not None and interrupts.heard():
        raise InterruptedPathError


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
        The exact gap and its share of the objective at zero: for the Lasso half the weighted mean of y^2 (of its
        deviation from the mean, with an intercept). It is the gap of Frank-Wolfe for radii, and a bound of the distance
        from the penalised optimum for penalties: for the Lasso the duality gap.
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

    def advance(self, targets: np.ndarray) -> list[Solved]:
        """Return the solutions for the first one of the targets that are left, or for the first few."""

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls so far."""


def follow(path: Path, targets: np.ndarray, interrupts: Interrupts) -> Iterator[tuple[int, float, Solved]]:
    """Yield the solutions one after the other, each after its place and the number of those that are left."""
    order = np.argsort(-targets if path.is_penalised else targets, kind="stable")
    done = 0
    while done < order.size:
        raise_if_interrupted(interrupts)
        points = path.advance(targets[order[done:]])
        is_ending = interrupts.is_waiting()  # during the search: all that it has found counts
        for point in points:
            done += 1
            yield int(order[done - 1]), order.size - done, point
            if not is_ending and done < order.size:  # whoever got this point may have pressed it
                raise_if_interrupted(interrupts)


def collect(
    path: Path, walk: Iterable[tuple[int, float, Solved]], report: Callable[[Progress], bool] | None
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Return radii, coefficients and what is known about the points, in the order of their places."""
    solved: dict[int, Solved] = {}
    status = Status.CONVERGED
    try:
        for step, (k, n_left, point) in enumerate(walk, start=1):
            solved[k] = point
            wants_to_stop = report is not None and report(_progress(step, solved, k, path))
            if wants_to_stop and n_left > 0:
                status = Status.STOPPED
                break
    except InterruptedPathError:
        status = Status.INTERRUPTED
    except Exception as error:
        if not is_failure(error):
            raise
        if not solved:
            raise explained(error) from error
        status = Status.DEVICE_FAILED
    points = [solved[k] for k in sorted(solved)]
    if status is Status.CONVERGED:
        status = status_of(points, path)
    info = _info(points, status, path)
    return info.radius.copy(), _matrix(points, path.n_features), info


def status_of(points: list[Solved], path: Path) -> Status:
    """Return whether the points are certified to the tolerance of the path, or why they are not."""
    missed = [point for point in points if not point.certified_gap <= path.tol * path.scale]  # nan is missed
    if not (missed or path.falls_short):
        return Status.CONVERGED
    is_rounding = all(point.gap <= point.rounding for point in missed)
    return Status.ROUNDING if is_rounding else path.shortfall


def _progress(step: int, solved: dict[int, Solved], k: int, path: Path) -> Progress:
    point, (seen, n_looks) = solved[k], path.totals()
    return Progress(
        step=step,
        epoch=seen / path.n_features,
        gradient_evaluations=seen,
        lmo_calls=n_looks,
        seconds=sum(done.seconds for done in solved.values()),
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


def _info(points: list[Solved], status: Status, path: Path) -> PathInfo:
    seen, n_looks = path.totals()
    gap = np.array([point.gap for point in points])
    return PathInfo(
        radius=np.array([point.radius for point in points]),
        alpha=np.array([point.alpha for point in points]),
        gap=gap,
        relative_gap=gap / path.scale if path.scale > 0.0 else gap,
        rounding=np.array([point.rounding for point in points]),
        objective=np.array([point.objective for point in points]),
        n_nonzero=np.array([point.features.size for point in points], dtype=np.int64),
        intercept=np.array([point.intercept for point in points]),
        seconds=np.array([point.seconds for point in points]),
        status=status,
        columns_seen=int(seen),
        passes=seen / path.n_features,
        n_looks=int(n_looks),
    )


def _matrix(points: list[Solved], n_features: int) -> scipy.sparse.csc_matrix:
    sizes = np.array([point.features.size for point in points], dtype=np.int64)
    if not sizes.any():
        return scipy.sparse.csc_matrix((n_features, len(points)))
    indices = np.concatenate([point.features for point in points])
    values = np.concatenate([point.w for point in points])
    order = np.lexsort((indices, np.repeat(np.arange(len(points)), sizes)))  # ascending within each point
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return scipy.sparse.csc_matrix((values[order], indices[order], indptr), shape=(n_features, len(points)))
