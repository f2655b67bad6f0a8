r"""Theory: the constants and the bounds of Negiar et al. (2020), computed for your data.

The paper writes F(w) = f(Xw) with f(p) = (1/n) sum_i f_i(p_i), every f_i having an L-Lipschitz derivative. Its rates
rest on how much predictions can differ over C, the diameters D_p = max over u, v in C of ||X(u - v)||_p (equation 8).

References
----------
.. [1] Negiar, Dresdner, Tsai, El Ghaoui, Locatello, Freund, Pedregosa, "Stochastic Frank-Wolfe for Constrained
   Finite-Sum Minimization", ICML 2020. All equation numbers are from there.
.. [2] Jaggi, "Revisiting Frank-Wolfe: Projection-Free Sparse Convex Optimization", ICML 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad import constraints as sets
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.matrix import Matrix
from condgrad.problems.linear import Problem
from condgrad.solvers.stochastic.atom_counts import relevant_sample_size, top_sample_size

__all__ = [
    "Diameters",
    "diameters",
    "frank_wolfe_bound",
    "gap_estimate_bound",
    "kappa",
    "randomized_bound",
    "relevant_sample_size",
    "sfw_bound",
    "top_sample_size",
]


class Diameters(NamedTuple):
    """How far apart two predictions X u and X v can be over C, in the l1, l2 and l-infinity norms.

    ``D_inf`` is always exact. ``D_1`` and ``D_2`` are exact where ``is_exact``, and upper bounds where not.

    Examples
    --------
    >>> Diameters(D_1=3.0, D_2=2.0, D_inf=1.5, is_exact=True).D_1
    3.0
    """

    D_1: float
    D_2: float
    D_inf: float
    is_exact: bool


def kappa(X: Data | Matrix, constraint: object) -> float:
    r"""Return kappa = D_1 / D_inf, between 1 and n, the number that takes the place of n in the rate of SFW.

    For the l1 ball it is max_j sum_i abs(X_ij) / max_ij abs(X_ij) whatever the radius (equation 34). It is small where
    each feature matters in few samples only. Where :func:`diameters` has no exact D_1, this is an upper bound.

    Parameters
    ----------
    X : array, sparse matrix, data frame or ``problem.matrix``, of shape (n_samples, n_features)
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``

    References
    ----------
    Negiar et al. (2020), section 5 and Table 2.

    Examples
    --------
    >>> import condgrad as cg
    >>> cg.theory.kappa([[1.0, 0.0], [1.0, 4.0], [1.0, 1.0]], cg.constraints.L1Ball(radius=5.0))
    1.25
    """
    D = diameters(X, constraint)
    if D.D_inf == 0.0:
        raise ValueError("kappa is 0 / 0 here: every point of the constraint set gives the same predictions.")
    return D.D_1 / D.D_inf


def diameters(X: Data | Matrix, constraint: object, *, max_work: float = 1e9) -> Diameters:
    r"""Return D_1, D_2 and D_inf, where D_p is the largest ||X(u - v)||_p over u, v in C (equation 8).

    A convex function is largest at vertices, which gives closed forms, X_j being the columns of X:

    - L1Ball: D_p = 2 radius max_j ||X_j||_p; WeightedL1Ball: 2 radius max_j ||X_j||_p / weights_j. O(nnz).
    - Simplex: D_p = radius max_jk ||X_j - X_k||_p; NonnegativeL1Ball: the same with a column of zeros more. D_inf
      takes O(nnz), by the range of each row. For D_1 and D_2 pairs of columns are compared from the largest norms
      on, until ||X_j|| + ||X_k|| says that no other pair can be farther apart: at worst O(n d^2), or O(nnz d).
    - Scale and Shift: as for the set inside.

    For every other set the oracle gives the exact range of each prediction, of width
    h_i = max over C of x_i'w - min over C of x_i'w, with 2 n calls. Then D_inf = max_i h_i exactly, and
    D_1 <= sum_i h_i, D_2 <= sqrt(sum_i h_i^2). For a Product the sums of the diameters of its blocks are bounds too,
    and the smaller ones are taken. Sparse data stays sparse.

    Parameters
    ----------
    X : array, sparse matrix, data frame or ``problem.matrix``, of shape (n_samples, n_features)
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
    max_work : float
        How many entries of X the comparison of pairs may read, for each of D_1 and D_2. Beyond that, upper bounds
        are returned (the triangle inequality for the pairs that were not compared, or the widths).

    References
    ----------
    Negiar et al. (2020), equation 8. Remark 3, D_p^p <= n D_inf^p, holds for the values returned here.

    Examples
    --------
    >>> import condgrad as cg
    >>> cg.theory.diameters([[1.0, 0.0], [1.0, 4.0]], cg.constraints.L1Ball(radius=0.5))
    Diameters(D_1=4.0, D_2=4.0, D_inf=4.0, is_exact=True)
    """
    X = X.X if isinstance(X, Matrix) else convert.as_data(X)
    constraint = sets.as_constraint_set(constraint)
    constraint.check_features(X.shape[1])
    return _diameters(X, constraint, convert.as_number(max_work, "max_work", low=0.0, what="a number of at least 0"))


def frank_wolfe_bound(
    problem: Problem, t: ArrayLike, *, unit: str = "gradient_calls", D: Diameters | None = None
) -> Any:
    r"""Return the right-hand side 2 L D_2^2 / t of equation 10, for Frank-Wolfe with the open loop step.

    In equation 10, t counts derivatives of single samples, n for each iteration. After k iterations it therefore is
    2 L D_2^2 / (n k). It follows from Jaggi's F(w_k) - F* <= 2 C_f / (k + 2), where the curvature constant C_f is at
    most L D_2^2 / n, and holds for any t of at least n, in the middle of an iteration too. Before the end of the
    first iteration nothing is proved, and the answer is inf.

    The first step must have gamma = 1, as in Jaggi's numbering gamma_k = 2 / (k + 2), k = 0, 1, ... that
    :class:`~condgrad.step_sizes.OpenLoop` follows. In the numbering of the paper's Algorithm 1 (t = 1, 2, ..., the
    first step is 2/3) the starting point is not forgotten, and equation 10 is false: F(w_1) - F* can be of the size
    of F(w_0) - F* while D_2 is as small as one likes.

    It is proved for convex losses with equal sample weights. An intercept is allowed: min_b f(p + b) has the same
    quadratic upper bound as f.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        How much has been done.
    unit : {"gradient_calls", "iterations"}
        What ``t`` counts.
    D : Diameters, optional
        The answer of :func:`diameters`, to compute it once for several calls.

    References
    ----------
    Negiar et al. (2020), remark 4; Jaggi (2013), theorem 1.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> frank_wolfe_bound(problem, 20), frank_wolfe_bound(problem, 10, unit="iterations")
    (1.6, 1.6)
    """
    _check_setting(problem, "equation 10", needs_convexity=True, allows_intercept=True)
    if unit not in ("gradient_calls", "iterations"):
        raise ValueError(f"unit must be 'gradient_calls' or 'iterations'; got {unit!r}.")
    n = problem.n_samples
    calls = _times(t, low=0.0) * (n if unit == "iterations" else 1)
    D = D or diameters(problem.matrix, problem.constraint)
    bound = 2.0 * _smoothness(problem) * D.D_2**2 / np.maximum(calls, n)
    return _like(t, np.where(calls >= n, bound, np.inf))


def randomized_bound(problem: Problem, t: ArrayLike, share: float, *, D: Diameters | None = None) -> Any:
    r"""Return 4 C_f / (share t + 2), a bound of E[F(w_t)] - F* for randomized Frank-Wolfe with exact line search.

    ``share`` is the chance that an atom is in the sample of a step, kappa / p. The curvature constant (15) of Frandi et
    al., C_f <= L D_2^2 / (2 n), is half of Jaggi's. With ``share=1`` this is their proposition 1, and their proposition
    2 states the same for every share; the proof of that is not sound (see
    :class:`condgrad.solvers.Randomized`). What holds is that with chance ``share`` a step is at least as good as
    that of Frank-Wolfe, and otherwise not worse than none: E h_{t+1} <= E h_t - share (E h_t)^2 / (4 C_f) for
    h_t = F(w_t) - F*, from h_0 <= 2 C_f on, which is the answer's value at t = 0.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        Steps.
    share : float
        The sample size over the number of atoms, in (0, 1].
    D : Diameters, optional
        The answer of :func:`diameters`, to compute it once for several calls.

    References
    ----------
    Frandi et al. (2016), propositions 1 and 2 and lemma 4.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> randomized_bound(problem, 14, 1.0), randomized_bound(problem, 14, 0.5)
    (1.0, 1.7777777777777777)
    """
    _check_setting(problem, "the bound of randomized Frank-Wolfe", needs_convexity=True, allows_intercept=True)
    if not 0.0 < convert.as_number(share, "share", low=0.0, what="a number in (0, 1]") <= 1.0:
        raise ValueError(f"share must be a number in (0, 1]; got {share!r}.")
    D = D or diameters(problem.matrix, problem.constraint)
    curvature = _smoothness(problem) * D.D_2**2 / (2 * problem.n_samples)
    return _like(t, 4.0 * curvature / (share * _times(t, low=0.0) + 2.0))


def sfw_bound(
    problem: Problem,
    t: ArrayLike,
    *,
    w0: ArrayLike | None = None,
    eps_0: float | None = None,
    H_0: float | None = None,
    batch_size: int = 1,
    D: Diameters | None = None,
) -> Any:
    r"""Return the right-hand side of Theorem 1, a bound of E[F(w_t) - F*] for stochastic Frank-Wolfe.

    With gamma_t = 2 / (t + 2) and unit batches, equation 9 reads ::

        E eps_t <= 2 L (D_2^2 + 4 (n - 1) D_1 D_inf) / n * t / ((t + 1)(t + 2))
                   + (2 eps_0 + (2 D_inf H_0 + 64 L D_1 D_inf) n^2) / ((t + 1)(t + 2)).

    The constants agree with those of the proof (equations 48 to 54), which gives the inequality for every t >= 0, not
    only from 2 on. The text before equation 54 announces one more step, 1 / ((t + 1)(t + 2)) <= 1 / t^2, that
    neither 54 nor 9 takes. In equation 7 a factor X is missing: the linear term is <grad f(Xv), X(w - v)>.

    Batches of b different samples, drawn uniformly, refresh each entry of alpha with probability b / n, so that
    Lemma 2 holds with rho = 1 - b / n in place of 1 - 1 / n, and Lemma 3 with rho / (1 - rho) = (n - b) / b in place
    of n - 1. The sums of the proof become B_t <= 16 (n / b)^3 and C_t <= (n / b)^2, and equation 9 ::

        E eps_t <= 2 L (D_2^2 + 4 (n - b) / b D_1 D_inf) / n * t / ((t + 1)(t + 2))
                   + (2 eps_0 + 2 D_inf H_0 (n / b)^2 + 64 L D_1 D_inf n^2 / b^3) / ((t + 1)(t + 2)).

    It does not cover epochs of reshuffled samples, where the draws depend on each other. It is proved for convex
    losses with equal sample weights and no intercept. Where L is infinite (Poisson), it is taken over the predictions
    that C allows.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        The iteration: ``batch_size`` gradient calls each.
    w0 : array of shape (n_features,), optional
        The starting point; the set's own start by default.
    eps_0 : float, optional
        F(w_0) - F*. By default the Frank-Wolfe gap at w_0, which is never smaller.
    H_0 : float, optional
        ||alpha_0 - grad f(X w_0)||_1. By default it is computed for alpha_0 = 0.
    batch_size : int
        The number b of different samples in a batch.
    D : Diameters, optional
        The answer of :func:`diameters`, to compute it once for several calls.

    References
    ----------
    Negiar et al. (2020), theorem 1 and appendices B to D.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> sfw_bound(problem, [10_000, 20_000], w0=[0.0, 0.0]).round(4)
    array([0.008, 0.004])
    """
    _check_setting(problem, "Theorem 1", needs_convexity=True)
    n, b, t_ = problem.n_samples, _batch(problem, batch_size), _times(t, low=0.0)
    D = D or diameters(problem.matrix, problem.constraint)
    L = _smoothness(problem)
    H_0 = _first_error(problem, w0) if H_0 is None else _at_least_zero(H_0, "H_0")
    eps_0 = problem.gap(_start(problem, w0)) if eps_0 is None else _at_least_zero(eps_0, "eps_0")
    slow = 2.0 * L * (D.D_2**2 + 4.0 * (n - b) / b * D.D_1 * D.D_inf) / n
    fast = 2.0 * eps_0 + 2.0 * D.D_inf * H_0 * (n / b) ** 2 + 64.0 * L * D.D_1 * D.D_inf * n**2 / b**3
    return _like(t, (slow * t_ + fast) / ((t_ + 1.0) * (t_ + 2.0)))


def gap_estimate_bound(
    problem: Problem,
    t: ArrayLike,
    *,
    w0: ArrayLike | None = None,
    H_0: float | None = None,
    batch_size: int = 1,
    D: Diameters | None = None,
) -> Any:
    r"""Return the right-hand side of Proposition 1, a bound of E abs(g_t - ghat_t) for stochastic Frank-Wolfe.

    It says how far the gap that SFW can estimate for free, ghat_t = max over s in C of <alpha_t, X(w_(t-1) - s)>,
    is from the true gap g_t at w_(t-1) (equation 33)::

        2 L D_1 D_inf / n * (2 (n - 1) / (t + 2) + (1 - 1/n)^(t/2) log t) + (1 - 1/n)^t D_inf H_0.

    For batches of b different samples, drawn uniformly, 1 - 1/n becomes rho = 1 - b/n and n - 1 becomes
    rho / (1 - rho) = (n - b) / b, as in :func:`sfw_bound`. The loss need not be convex (remark 7); sample weights are
    equal and there is no intercept. The paper states it for t >= 2; it holds for t = 1, where H_1 is rho H_0 in
    expectation.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        The iteration, from 1 on.
    w0, H_0, batch_size, D
        As in :func:`sfw_bound`.

    References
    ----------
    Negiar et al. (2020), proposition 1, lemma 3 and appendix E.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> gap_estimate_bound(problem, 98, w0=[0.0, 0.0])
    0.32
    """
    _check_setting(problem, "Proposition 1", needs_convexity=False)
    n, b, t_ = problem.n_samples, _batch(problem, batch_size), _times(t, low=1.0)
    D = D or diameters(problem.matrix, problem.constraint)
    H_0 = _first_error(problem, w0) if H_0 is None else _at_least_zero(H_0, "H_0")
    rho, K = 1.0 - b / n, 2.0 * _smoothness(problem) * D.D_1 / n
    error = K * (2.0 * (n - b) / b / (t_ + 2.0) + rho ** (t_ / 2.0) * np.log(t_)) + rho**t_ * H_0  # equation 27
    return _like(t, D.D_inf * error)


def _diameters(X: Any, constraint: object, max_work: float) -> Diameters:
    if isinstance(constraint, sets.Shift):
        return _diameters(X, constraint.constraint, max_work)
    if isinstance(constraint, sets.Scale):
        D, factor = _diameters(X, constraint.constraint, max_work), abs(constraint.factor)
        return Diameters(factor * D.D_1, factor * D.D_2, factor * D.D_inf, D.is_exact)
    low, high = _ranges(X, constraint)
    widths = high - low
    if isinstance(constraint, sets.Product):
        blocks = [_diameters(part, block, max_work) for part, block in _blocks(X, constraint)]
        D_1, D_2 = sum(D.D_1 for D in blocks), sum(D.D_2 for D in blocks)
        is_exact = len(blocks) == 1 and blocks[0].is_exact
    else:
        (D_1, is_exact_1), (D_2, is_exact_2) = (_by_vertices(X, constraint, order, max_work) for order in (1, 2))
        is_exact = is_exact_1 and is_exact_2
    D_inf, n = float(widths.max()), X.shape[0]
    # D_inf <= D_p <= n^(1/p) D_inf: exact values may break it by rounding.
    D_1 = min(max(min(D_1, float(np.sum(widths))), D_inf), n * D_inf)
    D_2 = min(max(min(D_2, float(np.linalg.norm(widths))), D_inf), math.sqrt(n) * D_inf)
    return Diameters(D_1, D_2, D_inf, is_exact)


def _by_vertices(X: Any, constraint: object, order: int, max_work: float) -> tuple[float, bool]:
    """Return D_1 or D_2 as the vertices give it (inf where there are too many), and whether it is exact."""
    if isinstance(constraint, sets.L1Ball):
        return 2.0 * constraint.radius * float(_column_norms(X, order).max()), True
    if isinstance(constraint, sets.WeightedL1Ball):
        return 2.0 * constraint.radius * float((_column_norms(X, order) / constraint.weights).max()), True
    if isinstance(constraint, sets.Simplex):
        farthest, is_exact = _farthest_columns(X, order, 0.0, max_work)
        return constraint.radius * farthest, is_exact
    if isinstance(constraint, sets.NonnegativeL1Ball):  # from the vertex 0 to the others, and between these
        farthest, is_exact = _farthest_columns(X, order, float(_column_norms(X, order).max()), max_work)
        return constraint.radius * farthest, is_exact
    return math.inf, False


def _ranges(X: Any, constraint: object) -> tuple[np.ndarray, np.ndarray]:
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
        ends = [constraint.factor * end for end in _ranges(X, constraint.constraint)]
        return np.minimum(*ends), np.maximum(*ends)
    if isinstance(constraint, sets.Shift):
        low, high = _ranges(X, constraint.constraint)
        shift = Matrix(X).dot(np.asarray(constraint.offset))
        return low + shift, high + shift
    if isinstance(constraint, sets.Product):
        ends = [_ranges(part, block) for part, block in _blocks(X, constraint)]
        return np.sum([low for low, _ in ends], axis=0), np.sum([high for _, high in ends], axis=0)
    return _ranges_by_oracle(X, cast("ConstraintSet", constraint))


def _ranges_by_oracle(X: Any, constraint: ConstraintSet) -> tuple[np.ndarray, np.ndarray]:
    rows = X.tocsr() if scipy.sparse.issparse(X) else X
    n, d = X.shape
    low, high = np.empty(n), np.empty(n)
    for i in range(n):
        r = _row(rows, i, d)
        low[i] = _inner(sets.best_vertex(constraint, r), r)
        high[i] = _inner(sets.best_vertex(constraint, -r), r)
    return low, np.maximum(low, high)  # a set of one point, and rounding


def _farthest_columns(X: Any, order: int, best: float, max_work: float) -> tuple[float, bool]:
    """Return the larger of ``best`` and max_jk ||X_j - X_k||, or an upper bound, and whether it is exact.

    Columns come in the order of decreasing norms: once ||X_j|| + ||X_k|| <= best for the next two, no pair is left.
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
    """The columns of a dense X by decreasing norms, after their mean is taken away: distances stay the same."""

    def __init__(self, X: np.ndarray, order: int) -> None:
        columns = X.T.astype(np.float64)
        columns -= columns.mean(axis=0)
        norms = np.linalg.norm(columns, order, axis=1)
        by_norm = np.argsort(-norms)
        self.columns, self.norms = np.ascontiguousarray(columns[by_norm]), norms[by_norm]
        self.metric = "cityblock" if order == 1 else "euclidean"

    def largest_distance(self, j: int, stop: int) -> float:
        """Return the largest distance of column j to the columns after it, up to ``stop``."""
        from scipy.spatial.distance import cdist  # here, as it takes long to import

        return float(cdist(self.columns[j : j + 1], self.columns[j + 1 : stop], self.metric).max())

    def work(self, j: int, stop: int) -> int:
        return (stop - j) * self.columns.shape[1]


class _SparseColumns:
    """The columns of a sparse X by decreasing norms."""

    def __init__(self, X: Any, order: int) -> None:
        norms = _column_norms(X, order)
        by_norm = np.argsort(-norms)
        X = X.tocsc()[:, by_norm]
        self.norms, self.order = norms[by_norm], order
        self.values, self.rows, self.ends = X.data.astype(np.float64), X.indices, X.indptr
        self.ids = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        self.column = np.zeros(X.shape[0])  # column j in full, zero between calls

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
    return np.sqrt(_column_sums(np.square, X))


def _column_sums(function: Callable[[np.ndarray], np.ndarray], X: Any) -> np.ndarray:
    """Return sum_i function(x_ij) for each column, in float64; function(0) is 0."""
    n, d = X.shape
    if scipy.sparse.issparse(X):
        columns = X.indices if X.format == "csr" else np.repeat(np.arange(d), np.diff(X.indptr))
        return np.bincount(columns, weights=function(X.data.astype(np.float64)), minlength=d)
    total = np.zeros(d)
    step = 1 + 1_000_000 // d  # rows at a time: X may be a file that memory does not hold
    for start in range(0, n, step):
        total += function(X[start : start + step].astype(np.float64)).sum(axis=0)
    return total


def _row_extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest entry of each row, zeros that are not stored among them."""
    if not scipy.sparse.issparse(X):
        return X.min(axis=1).astype(np.float64), X.max(axis=1).astype(np.float64)
    low, high = (np.asarray(end.toarray(), dtype=np.float64).ravel() for end in (X.min(axis=1), X.max(axis=1)))
    return low, high


def _largest_absolute(X: Any) -> np.ndarray:
    low, high = _row_extremes(X)
    return np.maximum(-low, high)


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
        return rows[i].astype(np.float64)
    r = np.zeros(d)
    stored = slice(*rows.indptr[i : i + 2])
    r[rows.indices[stored]] = rows.data[stored]
    return r


def _inner(s: Vertex, r: np.ndarray) -> float:
    indices, values = s.support()
    return float(values @ (r if indices is None else r[indices]))


def _smoothness(problem: Problem) -> float:
    """Return L, over the predictions that C allows where the loss has no L for all of them."""
    L = problem.loss.smoothness()
    if math.isfinite(L):
        return L
    if problem.has_intercept:
        raise ValueError(
            f"{type(problem.loss).__name__} has no smoothness constant for predictions with a free intercept. "
            "Use intercept=False."
        )
    low, high = _ranges(problem.matrix.X, problem.constraint)
    return problem.loss.smoothness_on(float(np.maximum(-low, high).max()))


def _check_setting(problem: Problem, result: str, *, needs_convexity: bool, allows_intercept: bool = False) -> None:
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a condgrad.Problem; got {type(problem).__name__}.")
    if needs_convexity and not problem.is_convex:
        raise ValueError(f"{result} holds for convex losses; {type(problem.loss).__name__} is not convex.")
    if problem.has_intercept and not allows_intercept:
        raise ValueError(
            f"{result} holds for problems without an intercept. Use intercept=False, with a constant column in X."
        )
    weight = problem.samples.weight
    if weight.max() - weight.min() > 1e-12 * weight.max():
        raise ValueError(f"{result} is proved for equal sample weights; got different ones.")


def _times(t: ArrayLike, low: float) -> np.ndarray:
    times = np.asarray(t)
    if times.dtype.kind not in "iuf" or not np.all(times >= low):
        raise ValueError(f"t must hold numbers of at least {low:g}; got {t!r}.")
    return times.astype(np.float64)


def _like(t: ArrayLike, bound: np.ndarray) -> Any:
    return float(bound) if np.ndim(t) == 0 else bound


def _at_least_zero(value: object, name: str) -> float:
    return convert.as_number(value, name, low=0.0, what="a number of at least 0")


def _batch(problem: Problem, batch_size: float) -> int:
    n = problem.n_samples
    if not isinstance(batch_size, int | np.integer) or isinstance(batch_size, bool) or not 1 <= batch_size <= n:
        raise ValueError(f"batch_size must be an integer from 1 to n_samples = {n}; got {batch_size!r}.")
    return int(batch_size)


def _start(problem: Problem, w0: ArrayLike | None) -> np.ndarray:
    if w0 is None:
        return problem.constraint.start(problem.n_features).to_dense(problem.n_features)
    w0 = convert.as_point(w0, problem.n_features, "w0")
    if not problem.constraint.contains(w0, tol=1e-7 * (1.0 + np.abs(w0).max())):
        raise ValueError(f"w0 is not in the constraint set: it is off by {problem.constraint.violation(w0):g}.")
    return w0


def _first_error(problem: Problem, w0: ArrayLike | None) -> float:
    """Return H_0 = ||grad f(X w_0)||_1, the error of alpha_0 = 0."""
    p = problem.matrix.dot(_start(problem, w0))
    return float(np.abs(problem.samples.derivatives(p, 0.0)).sum())
