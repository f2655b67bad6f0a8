"""The Lasso path with free features: that of the other features, once the free ones have taken their part.

For given coefficients of the other features, the best ones of the free features solve least squares. So the path is the
plain one of the columns X and the targets y less their projections on the free columns Z (and on the intercept):
(I - P) X and (I - P) y. It is solved exactly there, and each point is then certified as a point of the whole problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse

from condgrad.linalg.interrupts import Interrupts
from condgrad.paths.allowed_sets import AllowedSets
from condgrad.paths.guided_walk import GuidedWalk
from condgrad.paths.minimized import MinimizedPath
from condgrad.paths.points import PathInfo, collect, follow
from condgrad.paths.radius_search import go_on_unless_interrupted
from condgrad.problems.linear import Problem
from condgrad.run.trace import Progress

Path: TypeAlias = tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]  # radii, coefficients, what is known

_MOST_BYTES = 2**28  # largest size of the columns without their projections, which are dense
_SHARE = 0.1  # share of the tolerance to which these are solved
_INSIDE = 1.0 - 1e-13  # rounding must not put a point outside of its ball
_DEPENDENT = 1e-12  # pivot over the largest one, or what is left of a column: below it depends on the free columns


class FreeFeatures:
    """The columns and targets without their projections on free columns, and the best free coefficients.

    Parameters
    ----------
    X, target, weight : arrays
        The data, y less the offsets, and the weights of the samples, which are positive and sum to one.
    free : array of int
        The free features.
    has_intercept : bool
        Whether a constant is free, too.
    """

    def __init__(
        self, X: np.ndarray, target: np.ndarray, weight: np.ndarray, free: np.ndarray, has_intercept: bool
    ) -> None:
        self.free, self.paid = free, np.setdiff1d(np.arange(X.shape[1]), free)
        self._X, self._target, self._root = X, target, np.sqrt(weight)[:, None]
        Z = self._root * X[:, free]
        if has_intercept:
            Z = np.hstack([self._root, Z - self._root * (self._root * Z).sum(axis=0)])
        self._Q, R, order = scipy.linalg.qr(Z, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(R))
        rank = int(np.count_nonzero(sizes > _DEPENDENT * sizes.max(initial=0.0)))
        self._Q, self._R, self._order = self._Q[:, :rank], R[:rank, :rank], order[:rank]
        self._n_columns, self._first = Z.shape[1], int(has_intercept)
        self.columns = self._without(X[:, self.paid])
        self.target = self._without(target[:, None])[:, 0]

    def complete(self, w: np.ndarray) -> np.ndarray:
        """Return coefficients of all features: ``w`` of the paid ones, and the best ones of the free ones."""
        rest = self._root[:, 0] * (self._target - self._X[:, self.paid] @ w)
        found = np.zeros(self._n_columns)
        found[self._order] = scipy.linalg.solve_triangular(self._R, self._Q.T @ rest)
        whole = np.zeros(self._X.shape[1])
        whole[self.paid], whole[self.free] = w, found[self._first :]
        return whole

    def _without(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns less their projections, in the inner product of the weights."""
        scaled = self._root * columns
        sizes = np.linalg.norm(scaled, axis=0)
        for _ in range(2):  # the second time removes what rounding has left
            scaled -= self._Q @ (self._Q.T @ scaled)
        scaled[:, np.linalg.norm(scaled, axis=0) <= _DEPENDENT * sizes] = 0.0  # rounding alone is left of these
        result: np.ndarray = scaled / self._root
        return result


class _FreeWalk(GuidedWalk):
    """A walk that begins at points of the Lasso of the other features, completed by the best free ones."""

    features: FreeFeatures
    known: dict[float, np.ndarray]

    def guide(self, radius: float) -> np.ndarray:
        """Return the point of a radius of the grid."""
        return self.features.complete(self.known[radius])


def is_for_free_features(X: Any, sets: AllowedSets) -> bool:
    """Tell whether the sets have free features and weights alone, and X has a size at which projections pay."""
    weights, lower, upper = sets.allowance
    is_alone = weights is not None and lower is None and upper is None and sets.rows is None
    is_small = isinstance(X, np.ndarray) or scipy.sparse.issparse(X)
    if not (is_alone and is_small) or weights is None:
        return False
    n_free = int(np.count_nonzero(weights == 0.0))
    return 0 < n_free < min(weights.size, X.shape[0]) and 8 * X.shape[0] * X.shape[1] <= _MOST_BYTES


def free_path(
    problem: Problem,
    sets: AllowedSets,
    X: Any,
    y: np.ndarray,
    solve: Callable[..., Path],
    *,
    tol: float,
    report: Callable[[Progress], bool] | None,
    interrupts: Interrupts,
) -> Path:
    """Return the path of a squared loss; ``solve`` is :func:`condgrad.lasso_path` with the wanted grid."""
    weights, samples = sets.allowance.weights, problem.samples
    assert weights is not None
    kept = samples.weight > 0.0
    dense = (X.toarray() if scipy.sparse.issparse(X) else X).astype(np.float64, copy=False)[kept]
    offset = samples.offset.to_array()
    target = (y if offset is None else y - offset)[kept]
    features = FreeFeatures(dense, target, samples.weight[kept], np.flatnonzero(weights == 0.0), problem.has_intercept)
    settings = {"sample_weight": samples.weight[kept], "feature_weight": weights[features.paid], "tol": _SHARE * tol}
    radii, coefs, info = solve(features.columns, features.target, **settings)
    go_on_unless_interrupted(info.status)
    walk = _FreeWalk(problem, sets)
    walk.features = features
    walk.known = {float(radii[k]): _INSIDE * coefs[:, [k]].toarray()[:, 0] for k in range(radii.size)}
    path = MinimizedPath(walk, tol=tol, scale=problem.loss_scale())
    return collect(path, follow(path, radii, interrupts, report is not None), report)
