"""lasso_path for X on a device: few rows there stand for all of them, and every point is certified on all rows.

The squared loss depends on the data through X'X, X'y and y'y alone. They are summed on the device, and the rows of a
Cholesky factor have the same sums, up to rounding. So the path is solved on these rows in memory, and the certificate
of each point is that of a pass over all rows on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.rounding import UNIT
from condgrad.paths.gauges import Gauge
from condgrad.paths.points import PathInfo
from condgrad.problems.linear import Problem
from condgrad.problems.linear_look import LinearLook
from condgrad.problems.rows.base import Expand
from condgrad.problems.rows.device import DeviceRows
from condgrad.problems.rows.device_batch import DeviceBatch
from condgrad.problems.rows.findings import Pass
from condgrad.run.result import Status

MOST_FEATURES = 4096  # a matrix of their products comes to the host
_RIDGE, _MORE, _MOST_RIDGE = 1e-15, 100.0, 1e-9  # shares of the diagonal that are added until a factor exists
_LEAST = 1e-300  # radius that stands for zero: its ball has one point, up to rounding
_PASSES = 3  # over all rows: the products of the features, those with the targets, and the certificates
_INNER = 0.5  # share of the tolerance to which the path is solved in memory
_LEAST_GAP = 1e-11  # least relative gap of penalised points in memory: rounding allows little less

HostPath = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]]


class Sums(NamedTuple):
    """The weighted sums of products: ``G`` of the features, ``u`` their means, and the mean of the targets.

    The last row and column of G are those of the targets. With an intercept, deviations from means are multiplied.
    """

    G: np.ndarray
    u: np.ndarray
    y_mean: float

    @classmethod
    def of(cls, problem: Problem) -> Sums:
        """Return the sums over all samples of a problem on a device, in two passes."""
        rows = _rows_of(problem)
        losses, xp, d = rows.samples.losses, rows.device.xp, rows.n_features
        v = xp.full(rows.n_samples, losses.v0) if losses.v is None else losses.v
        t = losses.y if losses.o is None else losses.y - losses.o
        G, u = rows.matrix.gram(np.arange(d), np.ones(d), v, None)
        c, y_mean, yy = rows.matrix.combine(v * t), float((v * t).sum()), float((v * t * t).sum())
        if problem.has_intercept:
            G, c, yy = G - np.outer(u, u), c - y_mean * u, float((v * (t - y_mean) ** 2).sum())
        return cls(np.block([[G, c[:, None]], [c[None, :], np.array([[yy]])]]), u, y_mean)

    def few_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return n_features + 1 rows, and their targets, with the same mean products as all samples."""
        diagonal, share = np.diag(self.G), _RIDGE
        ridge = np.where(diagonal > 0.0, diagonal, max(diagonal.max(), 1.0))
        while True:
            try:
                R = scipy.linalg.cholesky(self.G + np.diag(share * ridge), lower=False)
                break
            except scipy.linalg.LinAlgError:
                share *= _MORE
                if share > _MOST_RIDGE:
                    raise ValueError(
                        "the products of the features are too close to singular for lasso_path on a device; "
                        "remove features that nearly repeat others, or use data in memory."
                    ) from None
        R *= np.sqrt(R.shape[0])
        return np.asfortranarray(R[:, :-1]), R[:, -1].copy()


def path_on_device(
    problem: Problem, solve: HostPath, *, tol: float, alphas: np.ndarray | None, is_standardised: bool
) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
    """Return a path of the Lasso for data on a device, each point with its certificate.

    Parameters
    ----------
    problem : Problem
        The squared loss over rows on a device.
    solve : callable
        ``solve(X, y, tol)`` returns the path for few rows in memory.
    tol : float
        The gap of each point relative to the objective at zero.
    alphas : array or None
        The penalties; None: the path is over radii.
    is_standardised : bool
        Whether the norm counts the coefficients of features divided by their root mean squares.
    """
    rows = _rows_of(problem)
    if rows.n_features > MOST_FEATURES:
        raise ValueError(
            f"lasso_path on a device takes at most {MOST_FEATURES} features; got {rows.n_features}. "
            "Use radius_path(loss='squared') there, or data in memory."
        )
    sums = Sums.of(problem)
    # A penalised gap is of second order in the steepest slope above alpha, but the bound of the judge of first order.
    inner = _INNER * tol if alphas is None else min(tol, max(tol * tol, _LEAST_GAP))
    radii, coefs, info = solve(*sums.few_rows(), inner)
    scales = np.sqrt(np.diag(sums.G)[:-1])
    gauge = Gauge(np.where(scales > 0.0, scales, 1.0) if is_standardised else None, is_symmetric=True)
    judge = _Judge(problem, gauge, coefs.toarray(), sums)
    found = judge.penalised(info.alpha) if alphas is not None else judge.constrained(info.radius)
    return radii, coefs, _with_certificates(info, found, problem.loss_scale(), tol, problem.n_features)


def _rows_of(problem: Problem) -> DeviceRows:
    if not isinstance(problem.rows, DeviceRows):
        raise TypeError("lasso_path needs X in the memory of the device, which cannot hold it; use radius_path.")
    return problem.rows


class _Point(NamedTuple):
    """A point of the path with the certificate of a pass over all rows."""

    look: LinearLook
    gap: float
    rounding: float
    alpha: float


class _Judge:
    """Passes over all rows at the points of a path, the columns of W, and their certificates."""

    def __init__(self, problem: Problem, gauge: Gauge, W: np.ndarray, sums: Sums) -> None:
        self.problem, self.gauge, self.W = problem, gauge, np.ascontiguousarray(W)
        # The best intercepts of the squared loss, up to rounding, which the certificates include.
        self.b = sums.y_mean - sums.u @ W if problem.has_intercept else np.zeros(W.shape[1])
        self.passes = _passes(_rows_of(problem), self.W, self.b)

    def constrained(self, radii: np.ndarray) -> list[_Point]:
        """Return the points with the gaps over balls of these radii."""
        looks = self._looks(radii)
        return [_Point(look, look.gap, look.evaluation.rounding, self._steepest(look.gradient)) for look in looks]

    def penalised(self, alphas: np.ndarray) -> list[_Point]:
        """Return the points with bounds of F(w) + alpha ||w|| above its minimum.

        The minimiser v has alpha ||v|| <= F(w) + alpha ||w|| =: alpha B, as F is not negative. Over the ball of radius
        B the tangent at w bounds F from below, and <r, v> + alpha ||v|| >= -(||r|| - alpha)_+ B in the dual norm.
        """
        norms = np.array([self.gauge.norm(w) for w in self.W.T])
        values = np.array([each.totals.value for each in self.passes])
        values += [self.problem.penalty(w) for w in self.W.T]
        reach = values / alphas + norms
        points = []
        for look, B, alpha, norm in zip(self._looks(reach), reach, alphas, norms, strict=True):
            steepest = self._steepest(look.gradient)
            gap = look.gap - B * min(steepest, alpha) + alpha * norm
            rounding = look.evaluation.rounding + 8.0 * UNIT * (B + norm) * (steepest + alpha)
            points.append(_Point(look, max(0.0, float(gap)), float(rounding), float(alpha)))
        return points

    def _looks(self, radii: np.ndarray) -> list[LinearLook]:
        """Return the looks at all points over balls of these radii."""
        radii = np.maximum(radii, _LEAST)
        largest = self.problem.over(self.gauge.ball(float(radii.max(initial=_LEAST))))
        points = zip(self.W.T, self.b.tolist(), self.passes, radii.tolist(), strict=True)
        return [largest.within(self.gauge.ball(radius)).look_after(w, b, found) for w, b, found, radius in points]

    def _steepest(self, r: np.ndarray) -> float:
        """Return the dual norm of a gradient."""
        weights = self.gauge.weights
        return float(np.abs(r if weights is None else r / weights).max(initial=0.0))


def _passes(rows: DeviceRows, W: np.ndarray, b: np.ndarray) -> list[Pass]:
    """Return the results of passes at the columns of W with intercepts b, in common passes if X is dense."""
    if isinstance(rows.matrix, DenseOnDevice):
        return DeviceBatch([rows]).passes(W, b, np.zeros(b.size, dtype=np.int64))
    return [rows.sweep(Expand(each), np.ascontiguousarray(w)) for w, each in zip(W.T, b.tolist(), strict=True)]


def _with_certificates(info: PathInfo, points: list[_Point], scale: float, tol: float, n_features: int) -> PathInfo:
    """Return what is known about a path, with the certificates of passes over all rows."""
    gap, rounding = np.array([point.gap for point in points]), np.array([point.rounding for point in points])
    status = info.status
    if status in (Status.CONVERGED, Status.STALLED):
        status = Status.CONVERGED if (gap + rounding <= tol * scale).all() else Status.STALLED
    return info._replace(
        alpha=np.array([point.alpha for point in points]),
        gap=gap,
        relative_gap=gap / scale,
        rounding=rounding,
        objective=np.array([point.look.objective for point in points]),
        intercept=np.array([point.look.intercept for point in points]),
        status=status,
        columns_seen=_PASSES * n_features,
        passes=float(_PASSES),
        n_looks=len(points),
    )
