"""The set of predictions {Xw : w in C}: the range of each prediction, and the diameters of the set."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse

from condgrad import constraints as sets
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.matrix import Matrix


class Diameters(NamedTuple):
    """The largest distances between predictions X u and X v with u, v in C, in the l1, l2 and l-infinity norms.

    ``D_inf`` is always exact. ``D_1`` and ``D_2`` are exact if ``is_exact``, and upper bounds otherwise.

    Examples
    --------
    >>> Diameters(D_1=3.0, D_2=2.0, D_inf=1.5, is_exact=True).D_1
    3.0
    """

    D_1: float
    D_2: float
    D_inf: float
    is_exact: bool


def diameters(X: Data | Matrix, constraint: object, *, max_work: float = 1e9) -> Diameters:
    r"""Return D_1, D_2 and D_inf, where D_p is the largest ||X(u - v)||_p over u, v in C (equation 8).

    A convex function attains its maximum at vertices, which gives closed forms (X_j are the columns of X):

    - L1Ball: D_p = 2 radius max_j ||X_j||_p; WeightedL1Ball: 2 radius max_j ||X_j||_p / weights_j. O(nnz).
    - Simplex: D_p = radius max_jk ||X_j - X_k||_p; NonnegativeL1Ball: the same with an additional column of zeros.
      D_inf takes O(nnz), from the range of each row. For D_1 and D_2 pairs of columns are compared in the order of
      decreasing norms, until ||X_j|| + ||X_k|| shows that no other pair can be farther apart: at worst O(n d^2), or
      O(nnz d).
    - Scale and Shift: from the diameters of the inner set.

    For every other set 2 n oracle calls give the exact range of each prediction, of width
    h_i = max over C of x_i'w - min over C of x_i'w. Then D_inf = max_i h_i exactly, and
    D_1 <= sum_i h_i, D_2 <= sqrt(sum_i h_i^2). For a Product the sums of the diameters of its blocks are bounds too,
    and the smaller bounds are returned. Sparse data stays sparse.

    Parameters
    ----------
    X : array, sparse matrix, data frame or ``problem.matrix``, of shape (n_samples, n_features)
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
    max_work : float
        The number of entries of X that the comparison of pairs may read, for each of D_1 and D_2. Beyond that, upper
        bounds are returned (by the triangle inequality for the pairs that were not compared, or from the widths).

    References
    ----------
    Negiar et al. (2020), equation 8. Remark 3, D_p^p <= n D_inf^p, holds for the values returned here.

    Examples
    --------
    >>> import condgrad as cg
    >>> cg.theory.diameters([[1.0, 0.0], [1.0, 4.0]], cg.constraints.L1Ball(radius=0.5))
    Diameters(D_1=4.0, D_2=4.0, D_inf=4.0, is_exact=True)
    """
    X = X.explicit() if isinstance(X, Matrix) else convert.as_data(X)
    constraint = sets.as_constraint_set(constraint)
    constraint.check_features(X.shape[1])
    return _diameters(X, constraint, convert.as_number(max_work, "max_work", low=0.0, what="a number of at least 0"))


def _diameters(X: Any, constraint: object, max_work: float) -> Diameters:
    if isinstance(constraint, sets.Shift):
        return _diameters(X, constraint.constraint, max_work)
    if isinstance(constraint, sets.Scale):
        D, factor = _diameters(X, constraint.constraint, max_work), abs(constraint.factor)
        return Diameters(factor * D.D_1, factor * D.D_2, factor * D.D_inf, D.is_exact)
    low, high = prediction_range(X, constraint)
    widths = high - low
    if isinstance(constraint, sets.Product):
        blocks = [_diameters(part, block, max_work) for part, block in _blocks(X, constraint)]
        D_1, D_2 = sum(D.D_1 for D in blocks), sum(D.D_2 for D in blocks)
        is_exact = len(blocks) == 1 and blocks[0].is_exact
    else:
        (D_1, is_exact_1), (D_2, is_exact_2) = (_by_vertices(X, constraint, order, max_work) for order in (1, 2))
        is_exact = is_exact_1 and is_exact_2
    D_inf, n = float(widths.max()), X.shape[0]
    # D_inf <= D_p <= n^(1/p) D_inf: rounding may violate it.
    D_1 = min(max(min(D_1, float(np.sum(widths))), D_inf), n * D_inf)
    D_2 = min(max(min(D_2, float(np.linalg.norm(widths))), D_inf), math.sqrt(n) * D_inf)
    return Diameters(D_1, D_2, D_inf, is_exact)


def _by_vertices(X: Any, constraint: object, order: int, max_work: float) -> tuple[float, bool]:
    """Return D_1 or D_2 from the vertices (inf for sets with too many vertices), and whether it is exact."""
    if isinstance(constraint, sets.L1Ball):
        return 2.0 * constraint.radius * float(_column_norms(X, order).max()), True
    if isinstance(constraint, sets.WeightedL1Ball):
        return 2.0 * constraint.radius * float((_column_norms(X, order) / constraint.weights).max()), True
    if isinstance(constraint, sets.Simplex):
        farthest, is_exact = _farthest_columns(X, order, 0.0, max_work)
        return constraint.radius * farthest, is_exact
    if isinstance(constraint, sets.NonnegativeL1Ball):  # distances from the vertex 0, and between the others
        farthest, is_exact = _farthest_columns(X, order, float(_column_norms(X, order).max()), max_work)
        return constraint.radius * farthest, is_exact
    return math.inf, False


def prediction_range(X: Any, constraint: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest prediction x_i'w over C, for each sample."""
    if isinstance(constraint, sets.L1Ball):
        high = constraint.radius * _largest_absolute(X)
        return -high, high
    if isinstance(constraint, sets.WeightedL1Ball):
        high = constraint.radius * _largest_absolute(_divide_columns(X, np.asarray(constraint.weights)))
        return -high, high
    if isinstance(constraint, sets.Simplex):
        low, high = _row_extremes(X)
        return constraint.radius * low, constraint.radius * high
    if isinstance(constraint, sets.NonnegativeL1Ball):
        low, high = _row_extremes(X)
        return constraint.radius * np.minimum(low, 0.0), constraint.radius * np.maximum(high, 0.0)
    if isinstance(constraint, sets.Scale):
        ends = [constraint.factor * end for end in prediction_range(X, constraint.constraint)]
        return np.minimum(*ends), np.maximum(*ends)
    if isinstance(constraint, sets.Shift):
        low, high = prediction_range(X, constraint.constraint)
        shift = Matrix(X).dot(np.asarray(constraint.offset))
        return low + shift, high + shift
    if isinstance(constraint, sets.Product):
        ends = [prediction_range(part, block) for part, block in _blocks(X, constraint)]
        return np.sum([low for low, _ in ends], axis=0), np.sum([high for _, high in ends], axis=0)
    return _range_by_oracle(X, cast("ConstraintSet", constraint))


def _range_by_oracle(X: Any, constraint: ConstraintSet) -> tuple[np.ndarray, np.ndarray]:
    rows = X.tocsr() if scipy.sparse.issparse(X) else X
    n, d = X.shape
    low, high = np.empty(n), np.empty(n)
    for i in range(n):
        r = _row(rows, i, d)
        low[i] = _inner(sets.best_vertex(constraint, r), r)
        high[i] = _inner(sets.best_vertex(constraint, -r), r)
    return low, np.maximum(low, high)  # for a set of one point, rounding may make high < low


def _farthest_columns(X: Any, order: int, best: float, max_work: float) -> tuple[float, bool]:
    """Return the larger of ``best`` and max_jk ||X_j - X_k||, or an upper bound, and whether it is exact.

    Columns are in the order of decreasing norms: once ||X_j|| + ||X_k|| <= best for the next two, no pair can be
    farther apart.
    """
    if (X.nnz if scipy.sparse.issparse(X) else X.size) > max_work:
        norms = -np.sort(-_column_norms(X, order))[:2]
        return max(best, float(norms.sum())) if norms.size > 1 else best, X.shape[1] == 1
    columns = (_SparseColumns if scipy.sparse.issparse(X) else _DenseColumns)(X, order)
    norms = columns.norms
    for j in range(norms.size - 1):
        reach = float(norms[j] + norms[j + 1])
        if reach <= best:
            break
        if max_work <= 0.0:
            return reach, False
        stop = j + 1 + max(1, int(np.count_nonzero(norms[j + 1 :] > best - norms[j])))
        best = max(best, columns.largest_distance(j, stop))
        max_work -= columns.work(j, stop)
    return best, True


class _DenseColumns:
    """The columns of a dense X by decreasing norms, minus their mean, which does not change distances."""

    def __init__(self, X: np.ndarray, order: int) -> None:
        columns = X.T.astype(np.float64)
        columns -= columns.mean(axis=0)
        norms = np.linalg.norm(columns, order, axis=1)
        by_norm = np.argsort(-norms)
        self.columns, self.norms = np.ascontiguousarray(columns[by_norm]), norms[by_norm]
        self.metric = "cityblock" if order == 1 else "euclidean"

    def largest_distance(self, j: int, stop: int) -> float:
        """Return the largest distance of column j to the columns after it, up to ``stop``."""
        from scipy.spatial.distance import cdist  # imported here because the import is slow

        return float(cdist(self.columns[j : j + 1], self.columns[j + 1 : stop], self.metric).max())

    def work(self, j: int, stop: int) -> int:
        return (stop - j) * int(self.columns.shape[1])


class _SparseColumns:
    """The columns of a sparse X by decreasing norms."""

    def __init__(self, X: Any, order: int) -> None:
        norms = _column_norms(X, order)
        by_norm = np.argsort(-norms)
        X = X.tocsc()[:, by_norm]
        self.norms, self.order = norms[by_norm], order
        self.values, self.rows, self.ends = X.data.astype(np.float64), X.indices, X.indptr
        self.ids = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        self.column = np.zeros(X.shape[0])  # column j as a dense array; zeros between calls

    def largest_distance(self, j: int, stop: int) -> float:
        """Return the largest distance of column j to the columns after it, up to ``stop``."""
        own, others = slice(*self.ends[j : j + 2]), slice(self.ends[j + 1], self.ends[stop])
        self.column[self.rows[own]] = self.values[own]
        a = self.column[self.rows[others]]
        # ||a - x||_p^p = ||a||_p^p + the sum over the entries of x of |a_i - x_i|^p - |a_i|^p.
        change = np.abs(a - self.values[others]) ** self.order - np.abs(a) ** self.order
        self.column[self.rows[own]] = 0.0
        sums = np.bincount(self.ids[others] - (j + 1), weights=change, minlength=stop - j - 1)
        return float(max(self.norms[j] ** self.order + sums.max(), 0.0) ** (1.0 / self.order))

    def work(self, j: int, stop: int) -> int:
        return int(self.ends[stop] - self.ends[j]) + stop - j


def _column_norms(X: Any, order: int) -> np.ndarray:
    if order == 1:
        return _column_sums(np.abs, X)
    norms: np.ndarray = np.sqrt(_column_sums(np.square, X))
    return norms


def _column_sums(function: Callable[[np.ndarray], np.ndarray], X: Any) -> np.ndarray:
    """Return sum_i function(x_ij) for each column, in float64; function(0) is 0."""
    n, d = X.shape
    if scipy.sparse.issparse(X):
        columns = X.indices if X.format == "csr" else np.repeat(np.arange(d), np.diff(X.indptr))
        return np.bincount(columns, weights=function(X.data.astype(np.float64)), minlength=d)
    total = np.zeros(d)
    step = 1 + 1_000_000 // d  # rows at a time: X may be a memory-mapped file larger than the memory
    for start in range(0, n, step):
        total += function(X[start : start + step].astype(np.float64)).sum(axis=0)
    return total


def _row_extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest entry of each row, including zeros that are not stored."""
    if not scipy.sparse.issparse(X):
        return X.min(axis=1).astype(np.float64), X.max(axis=1).astype(np.float64)
    low, high = (np.asarray(end.toarray(), dtype=np.float64).ravel() for end in (X.min(axis=1), X.max(axis=1)))
    return low, high


def _largest_absolute(X: Any) -> np.ndarray:
    low, high = _row_extremes(X)
    largest: np.ndarray = np.maximum(-low, high)
    return largest


def _divide_columns(X: Any, by: np.ndarray) -> Any:
    if not scipy.sparse.issparse(X):
        return X / by
    columns = X.indices if X.format == "csr" else np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    return type(X)((X.data / by[columns], X.indices, X.indptr), shape=X.shape)


def _blocks(X: Any, product: sets.Product) -> list[tuple[Any, Any]]:
    ends = np.cumsum(product.sizes)
    X = X.tocsc() if scipy.sparse.issparse(X) else X
    return [(X[:, end - size : end], block) for block, size, end in zip(product.sets, product.sizes, ends)]


def _row(rows: Any, i: int, d: int) -> np.ndarray:
    if not scipy.sparse.issparse(rows):
        return np.asarray(rows[i], dtype=np.float64)
    r = np.zeros(d)
    stored = slice(*rows.indptr[i : i + 2])
    r[rows.indices[stored]] = rows.data[stored]
    return r


def _inner(s: Vertex, r: np.ndarray) -> float:
    indices, values = s.support()
    return float(values @ (r if indices is None else r[indices]))
