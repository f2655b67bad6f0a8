"""ConstrainedElasticNet: the Lasso with an l2 term."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from condgrad.estimators._linear_model import Design
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg import convert
from condgrad.run.result import Result
from condgrad.run.trace import Trace

_SHARE_OF_PAIRS = 1e-9  # total weight of the rows that come in pairs, beside that of the samples


class ConstrainedElasticNet(ConstrainedRegressor):
    r"""Elastic net: minimises (1/2n) ||y - Xw - b||^2 + (l2/2) ||w||_2^2 over ||w||_1 <= radius.

    The l2 term keeps correlated features together where the Lasso takes one of them, and makes the solution unique. It
    is written as rows: a sample sqrt(n l2) e_j with the target 0 for every feature j. So every solver can be used, and
    the gap certifies the elastic net itself. The rows add one stored entry to each column of sparse data; dense data
    get d rows, or become sparse where d exceeds n.

    With an intercept dense data are centred. Sparse data are not: their rows come in pairs c e_j and -c e_j, which pull
    the intercept to neither side, with weights so small (1e-9 in all) and c so large that they do not hold it either.
    Stochastic solvers, whose steps see single rows, should be used without intercept on sparse data.

    Parameters
    ----------
    radius : float, optional
        The largest l1 norm. By default it is picked by the rule of :class:`ConstrainedLasso`, l2 term included.
    l2 : float
        The factor of the l2 term; alpha (1 - l1_ratio) of scikit-learn's ElasticNet. 0 is the Lasso.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`; the objective and the gap contain the l2 term.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [1.0, 2.0, 3.0]  # twice the same feature
    >>> cg.ConstrainedElasticNet(radius=0.5, l2=0.1).fit(X, y).coef_
    array([0.25, 0.25])
    """

    loss = "squared"
    constraint = "l1"
    learns_in_batches = False  # the l2 term belongs to all data, not to every batch

    def __init__(
        self,
        radius: float | None = None,
        *,
        l2: float = 0.1,
        solver: Any = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.radius = radius
        self.l2 = l2
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_settings(self) -> None:
        super()._check_settings()
        convert.as_number(self.l2, "l2", low=0.0, what="a number of at least 0")

    def _design(self, X: Any, weight: np.ndarray | None) -> Design:
        if self.l2 == 0.0:
            return super()._design(X, weight)
        weight = convert.as_weights(weight, X.shape[0])
        if scipy.sparse.issparse(X) and self.fit_intercept:
            return _PairedRows(X, weight, self.l2)
        return _AppendedRows(X, weight, self.l2, bool(self.fit_intercept))


class _AppendedRows(Design):
    """Samples of weight v_i, of sum one, and below them the rows sqrt(l2 / v) e_j of weight v = 1/n."""

    def __init__(self, X: Any, weight: np.ndarray, l2: float, is_centred: bool) -> None:
        n, d = X.shape
        self.n_added, self.is_centred, self.samples_weight = d, is_centred, weight
        self.mean = weight @ X if is_centred else np.zeros(d)
        entry = np.sqrt(l2 * n)
        if scipy.sparse.issparse(X):
            X = scipy.sparse.vstack([X, _diagonal(d, entry, X.dtype)], format=X.format)
        elif d > n:
            samples = scipy.sparse.csc_matrix(X - self.mean.astype(X.dtype))
            X = scipy.sparse.vstack([samples, _diagonal(d, entry, X.dtype)], format="csc")
        else:
            samples, X = X, np.zeros((n + d, d), dtype=X.dtype)
            X[:n] = samples - self.mean.astype(X.dtype)
            X[n + np.arange(d), np.arange(d)] = entry
        super().__init__(X, np.append(weight, np.full(d, 1.0 / n)), False)
        self.total = 1.0 + d / n

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return the centred targets, and zeros."""
        return np.append(y - self._centre(y), np.zeros(self.n_added))

    def result(self, result: Result, y: np.ndarray) -> Result:
        """Return the result with the intercept, and in units of the samples: weights of problems sum to one."""
        intercept = self._centre(y) - float(self.mean @ result.w)
        return _scaled(result, self.total)._replace(intercept=intercept)

    def _centre(self, y: np.ndarray) -> float:
        return float(self.samples_weight @ y) if self.is_centred else 0.0


class _PairedRows(Design):
    """Sparse samples, and below them the rows +-entry e_j; with an intercept, which the pairs do not move."""

    def __init__(self, X: Any, weight: np.ndarray, l2: float) -> None:
        d = X.shape[1]
        each = 0.5 * _SHARE_OF_PAIRS / d
        rows = _diagonal(d, np.sqrt(0.5 * l2 / each), np.float64)
        X = scipy.sparse.vstack([X, rows, -rows], format=X.format)
        self.n_added = 2 * d
        super().__init__(X, np.append(weight, np.full(2 * d, each)), True)
        self.samples_weight = weight

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return the centred targets, so that the intercept is small, and zeros."""
        return np.append(y - float(self.samples_weight @ y), np.zeros(self.n_added))

    def result(self, result: Result, y: np.ndarray) -> Result:
        """Return the result with the intercept that belongs to the samples alone."""
        n = y.size
        predictions = self.X[:n] @ result.w
        return _scaled(result, 1.0 + _SHARE_OF_PAIRS)._replace(intercept=float(self.samples_weight @ (y - predictions)))


def _diagonal(size: int, entry: float, dtype: Any) -> Any:
    return scipy.sparse.diags_array(np.full(size, entry, dtype=dtype), format="csr")


def _scaled(result: Result, factor: float) -> Result:
    """Return a result whose objective has another scale."""
    columns = result.trace.to_dict()
    for name in ("objective", "gap", "rounding", "gap_estimate"):
        columns[name] = factor * columns[name]
    return result._replace(
        objective=factor * result.objective,
        gap=factor * result.gap,
        rounding=factor * result.rounding,
        lower_bound=factor * result.lower_bound,
        trace=Trace(columns),
    )
