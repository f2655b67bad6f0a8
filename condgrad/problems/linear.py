"""Problem: minimise (1/n) sum_i f(x_i'w, y_i) over a constraint set; exact value, gradient and gap at any w."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import is_compiled
from condgrad.constraints.oracle_set import as_set_for
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.arrays import ArraySlices
from condgrad.linalg.convert import Data
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.rounding import UNIT, Bounds, Sizes, bounds, gamma, prediction_error
from condgrad.linalg.settings import as_flag
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import inner
from condgrad.losses import Loss
from condgrad.problems import taylor_points
from condgrad.problems.active_set import Stack, as_stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation, certify, gap_at, vertex_rounding
from condgrad.problems.finite_sum import FiniteSum
from condgrad.problems.linear_point import PredictionPoint
from condgrad.problems.look import Look
from condgrad.problems.prediction_set import Diameters, diameters, prediction_range
from condgrad.problems.rows.base import Expand, Predict, Rows
from condgrad.problems.rows.cluster import PartitionedRows
from condgrad.problems.rows.disk import DiskRows
from condgrad.problems.rows.findings import Pass
from condgrad.problems.rows.memory import MemoryRows, Predictions
from condgrad.problems.samples import Samples
from condgrad.problems.segment import PointLike
from condgrad.problems.taylor_points import Expansions, Workspace
from condgrad.storage.cluster_rows import ClusterRows, is_dask, of_dask
from condgrad.storage.outside_rows import OutsideRows
from condgrad.storage.stored_rows import StoredRows

# What steps over single samples or columns need.
_ONE_BY_ONE = frozenset(
    {Feature.SAMPLES, Feature.CHUNKS, Feature.PREDICTIONS, Feature.SECOND_DERIVATIVES, Feature.COLUMNS}
)


class Problem(BaseProblem):
    r"""Minimise over w in C the mean loss F(w) = (1/n) sum_i f(x_i'w, y_i).

    With ``sample_weight`` the mean is weighted: F(w) = sum_i v_i f(x_i'w, y_i) / sum_i v_i. With ``intercept=True``
    the prediction is x_i'w + b with b free, and F(w) is the minimum over b: every method below uses that minimum.
    With ``l2`` the penalty l2 ||w||_2^2 / 2 is added to F.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or rows outside of memory
        Dense (C or F order), CSR or CSC in float32 or float64 is used without a copy, also if it is read-only or
        memory-mapped; anything else is converted. Sums are accumulated in float64. Rows that
        :func:`condgrad.rows.open` returns stay on disk: every pass reads them once. Those of
        :func:`condgrad.rows.from_dask` stay with the workers of a cluster.
    y : array of shape (n_samples,)
        The targets, in the form that the loss requires; by default those that rows outside of memory bring.
    loss : a loss of :mod:`condgrad.losses`, or your own
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
    sample_weight : array of shape (n_samples,), optional
    intercept : bool
        Whether to add an unconstrained intercept, minimised exactly together with w. Convex losses only.
    l2 : float
        The factor of the penalty l2 ||w||_2^2 / 2, which makes the weights of correlated features similar. Solvers
        that work on single samples or columns do not support it.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> problem.objective([0.0, 0.0]), problem.gap([0.0, 0.0])
    (0.25, 0.5)
    """

    rows: Rows

    def __init__(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None = None,
        loss: object = None,
        constraint: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        intercept: bool = False,
        l2: float = 0.0,
    ) -> None:
        if loss is None or constraint is None:
            raise TypeError(f"Problem requires {'a loss' if loss is None else 'a constraint'}.")
        loss, has_intercept = as_loss(loss), as_flag(intercept, "intercept")
        rows: Rows
        if is_dask(X):
            X, y, sample_weight = of_dask(X, y, sample_weight, None), None, None
        if isinstance(X, StoredRows):
            rows = DiskRows(X, _samples_of(X, y, loss, sample_weight), has_intercept)
        elif isinstance(X, ClusterRows):
            rows = PartitionedRows(X, _samples_of(X, y, loss, sample_weight), has_intercept)
        else:
            matrix = Matrix(convert.as_data(cast("Data", X)))
            samples = _samples(loss, y, sample_weight, matrix.shape[0])
            if has_intercept:
                matrix = matrix.centred(samples.weight)  # the intercept absorbs it; large means then cost no digits
            rows = MemoryRows(matrix, samples)
        self._begin(rows, constraint, has_intercept, l2)

    @classmethod
    def of_rows(cls, rows: Rows, constraint: object, *, intercept: bool = False, l2: float = 0.0) -> Self:
        """Return the problem for samples stored anywhere; see :class:`condgrad.problems.rows.base.Rows`."""
        problem = cls.__new__(cls)
        problem._begin(rows, constraint, as_flag(intercept, "intercept"), l2)
        return problem

    def _begin(self, rows: Rows, constraint: object, intercept: bool, l2: float) -> None:
        self.n_features = rows.n_features
        self.loss, y, weight = rows.samples
        self.loss.check_targets(y)
        self.has_intercept = bool(intercept)
        if self.has_intercept:
            self.loss.check_intercept(y[weight > 0.0])
        self.l2 = convert.as_number(l2, "l2", low=0.0, what="a number of at least 0")
        self.constraint = as_set_for(constraint, self.n_features)
        self._set_rows(rows)

    def _set_rows(self, rows: Rows) -> None:
        self.rows, self.n_samples = rows, rows.n_samples
        self.offers = rows.offers - (_ONE_BY_ONE if self.l2 > 0.0 else set())
        self.remedies = self._remedies()

    def _remedies(self) -> dict[Feature, str]:
        """Return what the user can do about features that are not offered, or why they are missing."""
        no_penalty = "steps over single samples do not support an l2 penalty; l2=0 leaves it out"
        if self.rows.is_in_memory:
            return dict.fromkeys(_ONE_BY_ONE, no_penalty)
        remedies = dict.fromkeys(_ONE_BY_ONE, "its rows are not in memory, where single ones would be at hand")
        if self.rows.chunk_sizes is not None:
            no_intercept = "steps over chunks of rows do not support an intercept; intercept=False leaves it out"
            remedies[Feature.CHUNKS] = no_penalty if self.l2 > 0.0 else no_intercept
        return remedies

    @property
    def samples(self) -> Samples:
        """Loss, targets and weights."""
        return self.rows.samples

    @property
    def _memory(self) -> MemoryRows:
        """The rows, where a method needs them in memory."""
        assert isinstance(self.rows, MemoryRows)
        return self.rows

    @property
    def matrix(self) -> Matrix:
        """X, if it is in memory."""
        return self._memory.matrix

    @property
    def y(self) -> np.ndarray:
        """The targets."""
        return self.samples.y

    @property
    def is_convex(self) -> bool:
        """Whether the gap bounds F(w) - F*, as it does for convex losses."""
        return bool(self.loss.is_convex)

    @property
    def is_quadratic(self) -> bool:  # type: ignore[override]
        """Whether the curvature of F is the same everywhere, as for quadratic losses."""
        return bool(self.loss.is_quadratic)

    def objective(self, w: IterateLike) -> float:
        """Return F(w)."""
        w = convert.as_point(w, self.n_features, "w")
        p, b = self._predict(w)
        return self.samples.value(p, b) + self.penalty(w)

    def gradient(self, w: IterateLike) -> np.ndarray:
        """Return the gradient of F at w."""
        w = convert.as_point(w, self.n_features, "w")
        return self.with_penalty(self._pass_at(w)[2].r, w)

    def penalty(self, w: np.ndarray) -> float:
        """Return l2 ||w||_2^2 / 2."""
        return 0.5 * self.l2 * inner(w, w) if self.l2 > 0.0 else 0.0

    def with_penalty(self, r: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the gradient r plus the gradient l2 w of the penalty."""
        return r + self.l2 * w if self.l2 > 0.0 else r

    def best_intercept(self, w: IterateLike) -> float:
        """Return the best intercept for w (0, without a pass over the data, for a problem without intercept)."""
        w = convert.as_point(w, self.n_features, "w")
        return self.intercept_at(w, self._predict(w)[1]) if self.has_intercept else 0.0

    def best_offset(self, w: np.ndarray) -> float:
        """Return the best intercept for w with centred columns: the b of steps and kernels."""
        return self._predict(w)[1] if self.has_intercept else 0.0

    def intercept_at(self, w: np.ndarray, b: float) -> float:
        """Convert the intercept b for centred columns to the intercept for the columns as given."""
        return b - self.rows.along_shift(w)

    def look(self, w: IterateLike) -> LinearLook:
        """Make a pass at w and return objective, gradient, gap, vertex, intercept and, on demand, the curvature."""
        w = convert.as_point(w, self.n_features, "w")
        return self._look_after(w, *self._pass_at(w))

    def look_with(self, w: IterateLike, offset: float) -> LinearLook:
        """Make one pass at w, with the intercept ``offset`` if the rows are not in memory; else :meth:`look`."""
        if self.rows.is_in_memory or not self.has_intercept:
            return self.look(w)
        w = convert.as_point(w, self.n_features, "w")
        return self._look_after(w, None, offset, self.rows.sweep(Expand(offset, is_guess=True), w))

    def _look_after(self, w: np.ndarray, p: np.ndarray | None, b: float, found: Pass) -> LinearLook:
        r = found.r
        if self.has_intercept and p is None and found.slope is not None:
            r = r + self._newton_step(found) * found.slope.u
        r = self.with_penalty(r, w)
        return LinearLook(self, self._certified(w, p, b, found, r, self.lmo(r)), found, w)

    def _newton_step(self, found: Pass) -> float:
        """Return the step from the guessed intercept of a pass towards the best one.

        It is 0 for a loss whose second derivative is not Lipschitz: then the error of a step is not known.
        """
        if found.slope is None or found.slope.total <= 0.0 or not np.isfinite(self.loss.curvature_smoothness()):
            return 0.0
        return -found.totals.balance / found.slope.total

    def _cost_of_guess(self, found: Pass, reach: float, away: float) -> float:
        r"""Return what a guessed intercept adds to the gap at (w, b), if the gradient is that of b + step.

        Let delta be the Newton step and M a Lipschitz constant of f''. The derivatives at b + delta differ from their
        Taylor expansion by at most M delta^2 / 2 each. So the slopes of the tangents are wrong by that much, over the
        distance ``reach`` + ``away`` at most, and F(w, b) - F(w, b + delta) is at most -delta times the balance.
        """
        delta, balance = self._newton_step(found), found.totals.balance
        if delta == 0.0:
            return abs(balance) * away
        away += abs(delta)  # the tangent is at b + delta
        assert found.slope is not None
        of_taylor = 0.5 * float(self.loss.curvature_smoothness()) * delta**2 * (reach + away)
        of_sums = 2.0 * gamma(self.n_samples + 8) * abs(delta) * float(np.sqrt(found.totals.curvature)) * (reach + away)
        return of_taylor + of_sums + abs(delta * balance)

    def guess_offset(self, w: np.ndarray, near: Look) -> float:
        """Return an intercept for :meth:`look_with`: the best one of a subsample, or by Newton's formula."""
        if self.rows.is_in_memory or not self.has_intercept or not isinstance(near, LinearLook):
            return near.evaluation.offset
        if near.problem.rows.is_in_memory:
            return near.problem.best_offset(w)
        return self.rows.guess_intercept(near.found, near.evaluation.offset, w - near.w)

    @property
    def n_reads(self) -> float:
        """How often all rows have been read from where they are stored; 0 for rows in memory."""
        return self.rows.n_reads

    @property
    def bytes_of_pass(self) -> int:
        """The number of bytes that a pass reads from a disk or another machine; 0 for rows in memory."""
        return self.rows.bytes_of_pass

    def _pass_at(self, w: np.ndarray) -> tuple[np.ndarray | None, float, Pass]:
        """Return predictions (None for a problem without intercept), intercept and the results of a pass at w.

        The derivatives need the best intercept, so with an intercept the predictions are computed first.
        """
        p, b = self._predict(w) if self.has_intercept else (None, 0.0)
        return p, b, self.rows.sweep(Expand(b, p), w)

    def _certified(
        self, w: np.ndarray, p: np.ndarray | None, b: float, found: Pass, r: np.ndarray, s: Vertex
    ) -> Evaluation:
        reach = self._reach_at(w, s)
        away = self._intercept_error(b) if self.has_intercept else 0.0
        sizes, gap = found.totals.sizes, gap_at(r, w, s)
        if self.has_intercept and p is None:  # an intercept that was guessed: its error is no rounding error
            gap, sizes = (
                max(gap, 0.0) + self._cost_of_guess(found, reach + self._distance(w, s), away),
                sizes._replace(balance=0.0),
            )
        rounding = self._rounding_at(w, b, found, sizes, reach, away)
        rounding = rounding.with_oracle(vertex_rounding(self.constraint, r, w, s))
        value, intercept = found.totals.value, self.intercept_at(w, b)
        if self.l2 > 0.0:
            value, rounding = value + self.penalty(w), self._penalty_rounding(w, r, value, rounding)
        return certify(self.is_convex, value, r, gap, s, intercept, rounding, offset=b)

    def _penalty_rounding(self, w: np.ndarray, r: np.ndarray, value: float, found: Bounds) -> Bounds:
        """Return the bounds with the penalty's rounding: a product and a sum in each entry of r, a sum of squares."""
        of_gradient = 4.0 * UNIT * float(self.constraint.reach(np.abs(r) + self.l2 * np.abs(w)))
        apart = 4.0 * UNIT * float((np.abs(r) + self.l2 * np.abs(w)) @ np.abs(w))  # for a point outside the set
        return Bounds(
            found.gap + of_gradient + apart,
            found.objective + gamma(w.size + 4) * self.penalty(w) + 2.0 * UNIT * abs(value),
        )

    def _reach_at(self, w: np.ndarray, s: Vertex) -> float:
        """Return a bound of the change of the predictions from w to any point of the set."""
        apart = self._distance(w, s)
        return self.reach + apart if apart > self.reach else self.reach  # the first: for a point outside the set

    def _rounding_at(self, w: np.ndarray, b: float, found: Pass, sizes: Sizes, reach: float, away: float) -> Bounds:
        """Return bounds of the rounding errors of gradient and objective at w.

        The best intercept is at most ``away`` from b. The bounds cost a few sums over samples and features; the norms
        of the columns are computed once.
        """
        n_terms, norm = int(np.count_nonzero(w)), float(np.abs(w).sum())
        delta = prediction_error(sizes, n_terms, float(np.abs(w) @ self.column_sizes))
        size = norm * self.rows.measures.largest_entry  # upper bound of a prediction
        largest = gamma(n_terms + 4) * size + 2.0 * UNIT * (size + abs(b))
        return bounds(
            sizes,
            n_samples=self.n_samples,
            reach=reach + away,
            free_reach=away,
            delta=delta,
            slope_error=found.totals.slope_error(self.loss, delta, largest),
        )

    def _intercept_error(self, b: float) -> float:
        """Return how far from b the best intercept of a minimiser over the set can be."""
        low, high = self._intercept_range
        return max(abs(high - b), abs(b - low))

    def _distance(self, w: np.ndarray, s: Vertex) -> float:
        """Return sum_j ||x_j|| |w_j - s_j|."""
        indices, values = s.support()
        if indices is None:
            return float(self.column_sizes @ np.abs(w - values))
        sizes = self.column_sizes
        other = np.abs(w[indices] - values) - np.abs(w[indices])
        return float(sizes @ np.abs(w) + sizes[indices] @ other)

    @functools.cached_property
    def column_sizes(self) -> np.ndarray:
        """The norms sqrt(sum_i weight_i x_ij^2) of the columns, which are centred if the problem has an intercept."""
        sizes: np.ndarray = np.sqrt(self.rows.measures.squares)
        return sizes

    @functools.cached_property
    def reach(self) -> float:
        """A bound of the change of the predictions over the set, in the norm of :mod:`condgrad.linalg.rounding`."""
        return float(self.constraint.reach(self.column_sizes))

    @functools.cached_property
    def _intercept_range(self) -> tuple[float, float]:
        """Bounds of the best intercepts of the minimisers over the set, from the predictions 0.

        They depend on the problem alone, so that runs that begin at different points have the same certificates. At a
        minimiser the loss is at most that of w = 0, if the set contains it; else at most that of the set's start, whose
        predictions are bounded by the largest entry of X, plus its penalty.
        """
        p, zero = np.zeros(self.n_samples), np.zeros(self.n_features)
        b = self.samples.best_intercept(p, 0.0)
        if self.constraint.violation(zero) <= 0.0:
            return self.samples.intercept_range(p, b, self.reach)
        s = self.constraint.start(self.n_features)
        w = s.to_dense(self.n_features)
        level = self.samples.largest_value(float(np.abs(w).sum()) * self.rows.measures.largest_entry) + self.penalty(w)
        return self.samples.intercept_range(p, b, self.reach + self._distance(zero, s), level)

    def _copy_without(self, *measured: str) -> Problem:
        """Return a copy that shares the data, without the cached range of intercepts and the named cached values."""
        other = copy.copy(self)
        for name in ("_intercept_range", *measured):
            other.__dict__.pop(name, None)
        return other

    def over(self, constraint: object) -> Problem:
        """Return the same problem over another set; both share the data and their views."""
        other = self._copy_without("reach")
        other.constraint = as_set_for(constraint, self.n_features)
        return other

    def without_penalty(self) -> Problem:
        """Return the same problem with l2 = 0; both share the data and their views."""
        other = self._copy_without()
        other.l2, other.offers = 0.0, self.rows.offers
        return other

    def with_targets(self, y: ArrayLike) -> Problem:
        """Return the same problem with other targets; both share the data and their views."""
        y = convert.as_targets(y, self.n_samples)
        self.loss.check_targets(y)
        if self.has_intercept:
            self.loss.check_intercept(y[self.samples.weight > 0.0])
        other = self._copy_without()
        other.rows = self.rows.with_targets(y)
        return other

    def part(self, n_rows: int) -> Problem | None:
        """Return the problem on a subsample of ``n_rows`` samples or somewhat more, evenly spread, over the same set.

        Return None if the subsample has no weight, or too few kinds of targets for an intercept.
        """
        rows = self.rows.head(n_rows)
        if rows is self.rows:
            return self
        if rows is None or (self.has_intercept and not self._allows_intercept(rows.samples)):
            return None
        part = self._copy_without("column_sizes", "reach")
        part._set_rows(rows)
        return part

    def largest_part(self) -> Problem | None:
        """Return the problem on as many samples as memory allows, for rows that are not in memory; else None."""
        if self.rows.is_in_memory or self.rows.most_in_memory < 1:
            return None
        return self.part(self.rows.most_in_memory)

    def _allows_intercept(self, samples: Samples) -> bool:
        try:
            self.loss.check_intercept(samples.y[samples.weight > 0.0])
        except ValueError:
            return False
        return True

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, L lambda_max(X' diag(weight) X); inf where unknown."""
        return self.smoothness() if Feature.PREDICTIONS in self.rows.offers else np.inf

    def smoothness(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, L lambda_max(X' diag(weight) X), to full precision."""
        if not self.rows.is_in_memory:
            return super().smoothness()
        from scipy.sparse.linalg import LinearOperator, eigsh

        matrix, weight, d = self.matrix, self.samples.weight, self.n_features
        if self.rows.measures.largest_entry == 0.0:
            return 0.0  # ARPACK fails for a zero matrix
        if self.l2 > 0.0:
            return self.l2 + self.without_penalty().smoothness()
        gram = LinearOperator((d, d), lambda v: matrix.transpose_dot(weight * matrix.dot(v.ravel())), dtype=float)
        if d == 1:
            return float((gram @ np.ones(1))[0]) * self.loss_smoothness()
        start = np.random.default_rng(0).standard_normal(d)
        return float(eigsh(gram, k=1, v0=start, return_eigenvectors=False)[0]) * self.loss_smoothness()

    def loss_smoothness(self) -> float:
        """Return L, a Lipschitz constant of the loss's derivative over all predictions x_i'w that C allows."""
        # Every w in C lies within one diameter of any other point of C.
        w = self.constraint.start(self.n_features).to_dense(self.n_features)
        reach = np.abs(self.matrix.dot(w)).max()
        diameter = self.constraint.diameter(1, self.n_features)
        return self.loss.smoothness_on(float(reach + self.rows.measures.largest_entry * diameter))

    def feature_curvature(
        self,
        features: np.ndarray,
        scale: np.ndarray,
        d: np.ndarray,
        rows: np.ndarray | None = None,
        first: int = 0,
    ) -> np.ndarray:
        """Return sum_i d_i z_ij z_ik over the chosen rows (None: all) for all pairs of features z_j = scale_j x_j.

        The part that a free intercept takes up is subtracted. Entries [:first, :first] are not computed: the caller has
        them already.
        """
        H = self.matrix.gram(features, scale, d, rows, first)
        total = float(d.sum())
        if self.has_intercept and total > 0.0:
            mixed = scale * self.matrix.column_products(features, self.spread(rows, d))
            H -= np.outer(mixed, mixed) / total
        return H

    def prediction_diameters(self) -> Diameters:
        """Return the largest distances between the predictions of two points of the set."""
        return diameters(self.matrix, self.constraint)

    def prediction_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest prediction of each sample over the set."""
        return prediction_range(self.matrix.X, self.constraint)

    @property
    def has_equal_weights(self) -> bool:
        """Whether all samples have the same weight."""
        weight = self.samples.weight
        return bool(weight.max() - weight.min() <= 1e-12 * weight.max())

    def importance(self) -> np.ndarray:
        """Return weight_i ||x_i||_2, the importance of each sample for sampling."""
        if not self.rows.is_in_memory:
            raise ValueError(
                "sampling='importance' needs the norms of all rows, and these rows are not in memory; use 'batch'."
            )
        norms: np.ndarray = self.matrix.row_norms() * self.samples.weight
        return norms

    def point(self, w: np.ndarray) -> PointLike:
        """Return an iterate at ``w`` for a solver of full passes, with its predictions if X is in memory."""
        return PredictionPoint(self, w) if Feature.PREDICTIONS in self.rows.offers else super().point(w)

    @property
    def is_compiled(self) -> bool:
        """Whether steps can run inside kernels: sets whose oracle is ordinary Python cannot."""
        return is_compiled(self.constraint)

    @property
    def entries_per_sample(self) -> float:
        """The mean number of entries of a row of X; for rows on disk, about."""
        return self.cost_of_pass / 2.0 / self.n_samples

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return X w, in one pass."""
        return self.rows.dot(w)

    def derivatives(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return the derivatives weight_i f'(x_i'w + b, y_i) of all samples, in one pass."""
        return self.samples.derivatives(self.predictions(w), b)

    def transpose_dot(self, alpha: np.ndarray) -> np.ndarray:
        """Return X' alpha, in one pass."""
        return self.rows.transpose_dot(alpha)

    @property
    def columns(self) -> Slices:
        """The columns of X, for kernels or, where steps are interpreted, for arrays."""
        return self._for_steps(self.matrix.columns)

    @property
    def contiguous_columns(self) -> Slices:
        """The columns of X, each contiguous in memory."""
        return self._for_steps(self.matrix.contiguous_columns)

    def _for_steps(self, slices: Slices) -> Slices:
        return slices if self.is_compiled else ArraySlices(slices)

    def finite_sum(self, b: np.ndarray) -> FiniteSum:
        """Return the problem one sample at a time, with the intercept ``b[0]``."""
        return FiniteSum(self._for_steps(self.matrix.rows), self.samples, self.constraint, b)

    @property
    def chunk_sizes(self) -> np.ndarray | None:  # type: ignore[override]
        """The number of samples of each chunk that steps bring to memory; None if all samples are there."""
        return self.rows.chunk_sizes

    def visit(self, order: np.ndarray, b: np.ndarray) -> Iterator[tuple[slice, FiniteSum]]:
        """Yield the chunks in this order: their places among all samples, and the part of F that is theirs.

        Each is in memory until the next one. Samples are numbered from the first one of the chunk on; their weights are
        those in the whole sum.
        """
        for chunk in self.rows.visit(order):
            rows = self._for_steps(cast("Slices", chunk.matrix.rows))
            yield chunk.place, FiniteSum(rows, chunk.samples, self.constraint, b)

    def taylor_points(self, space: Workspace, form: str, renews_all: bool) -> Expansions:
        """Return the Taylor points of TUFW, stored as three numbers per sample for every rule, and its H."""
        return taylor_points.of_predictions(space, form)

    @property
    def cost_of_pass(self) -> float:
        """The number of multiply-adds of one look."""
        return self.rows.cost_of_pass

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        penalty = (self.l2,) if self.l2 > 0.0 else ()  # without penalty: the hash of versions that had no l2
        return fingerprint_of((*self.rows.definition(), self.constraint, self.has_intercept, *penalty))

    def null_objective(self) -> float:
        """Return the objective at w = 0, without a pass over X."""
        return self.samples.value(self._null_predictions(), 0.0)

    def loss_scale(self) -> float:
        """Return the mean absolute loss at w = 0; tolerances of estimators and paths are relative to it."""
        return self.samples.loss_scale(self._null_predictions())

    def _null_predictions(self) -> np.ndarray:
        """Return the predictions of w = 0: the best intercept, or zeros."""
        zeros = np.zeros(self.n_samples)
        return zeros + self.samples.best_intercept(zeros, 0.0) if self.has_intercept else zeros

    def slope_size(self, s: Vertex) -> float:
        """Return a bound of the slope of F at w = 0 towards the vertex s: its size if nothing cancelled."""
        return self.derivative_size() * float(np.abs(self.vertex_predictions(s)[1]).max(initial=0.0))

    def derivative_size(self) -> float:
        """Return the weighted mean of |f'(0, y_i)|."""
        return self.samples.derivative_size()

    def vertex_predictions(self, s: Vertex) -> Predictions:
        """Return X s as the rows that it touches (None: all) and its values there."""
        return self._memory.vertex_predictions(s)

    def combine(self, terms: list[tuple[float, Predictions]]) -> Predictions:
        """Return sum_k c_k q_k for predictions q_k given as (rows, values)."""
        return self._memory.combine(terms)

    def spread(self, rows: np.ndarray | None, values: np.ndarray) -> np.ndarray:
        """Return predictions given as (rows, values) as one array over all samples."""
        return self._memory.spread(rows, values)

    def _predict(self, w: IterateLike) -> tuple[np.ndarray, float]:
        w = convert.as_point(w, self.n_features, "w")
        p = self.rows.sweep(Predict(), w).array if w.any() else np.zeros(self.n_samples)
        return p, self.samples.best_intercept(p, 0.0) if self.has_intercept else 0.0


class LinearLook(Look):
    """A pass at w, with its results ``found`` on the samples."""

    def __init__(self, problem: Problem, evaluation: Evaluation, found: Pass, w: np.ndarray) -> None:
        super().__init__(evaluation)
        self.problem, self.found, self.w = problem, found, w.copy()

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms; negative curvatures of samples are replaced by zero."""
        atoms, problem = as_stack(atoms), self.problem
        n_known = 0 if known is None else known.shape[0]
        if known is not None and n_known == len(atoms):
            return known
        H = problem.rows.curvature(self.found, atoms, n_rows, n_known, problem.has_intercept)
        if problem.l2 > 0.0:
            H += problem.l2 * atoms.gram()
        if known is not None:
            H[:n_known, :n_known] = known
        return H


def _samples(loss: Loss, y: ArrayLike | None, sample_weight: ArrayLike | None, n_samples: int) -> Samples:
    if y is None:
        raise TypeError("y is missing: Problem requires one target per sample.")
    return Samples(loss, convert.as_targets(y, n_samples), convert.as_weights(sample_weight, n_samples))


def _samples_of(stored: OutsideRows, y: ArrayLike | None, loss: Loss, sample_weight: ArrayLike | None) -> Samples:
    """Return the samples of rows outside of memory: their own targets and weights unless others are given."""
    y = stored.y if y is None else y
    if y is None:
        raise ValueError(f"y is missing: {stored!r} has no targets; pass y.")
    return _samples(loss, y, stored.weight if sample_weight is None else sample_weight, stored.shape[0])


def as_loss(loss: object) -> Loss:
    """Return ``loss``, or raise if it is not a loss object that kernels can use."""
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, not a class; use {loss.__name__}(...).")
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a loss of condgrad.losses or a class marked @loss; got {loss!r}.")
    return loss
