"""Problem: minimise (1/n) sum_i f(x_i'w, y_i) over a constraint set; exact value, gradient and gap at any w."""

from __future__ import annotations

import copy
import functools
import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints.oracle_set import as_set_for
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.settings import as_flag
from condgrad.losses._protocol import LEAVE_OUT, as_loss
from condgrad.problems.base import Feature
from condgrad.problems.gradient import OutsideGradient, whole
from condgrad.problems.linear_certificates import Certificates
from condgrad.problems.linear_look import LinearLook
from condgrad.problems.linear_point import PredictionPoint
from condgrad.problems.look import Look
from condgrad.problems.over_rows import OverRows
from condgrad.problems.penalty import Penalty
from condgrad.problems.rows.base import AnyPass, Expand, Rows
from condgrad.problems.rows.choice import make_rows
from condgrad.problems.segment import PointLike
from condgrad.storage.outside_rows import OutsideRows

# What steps over single samples or columns need.
_ONE_BY_ONE = frozenset(
    {Feature.SAMPLES, Feature.CHUNKS, Feature.PREDICTIONS, Feature.SECOND_DERIVATIVES, Feature.COLUMNS}
)


class Problem(OverRows):
    r"""Minimise over w in C the mean loss F(w) = (1/n) sum_i f(x_i'w, y_i).

    With ``sample_weight`` the mean is weighted: F(w) = sum_i v_i f(x_i'w, y_i) / sum_i v_i. With ``intercept=True``
    the prediction is x_i'w + b with b free, and F(w) is the minimum over b: every method below uses that minimum.
    With ``offset`` a known number o_i is added to the prediction of sample i. With ``l2`` the penalty
    l2 ||w||_2^2 / 2 is added to F.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or rows outside of memory
        Dense (C or F order), CSR or CSC in float32 or float64 is used without a copy, also if it is read-only or
        memory-mapped; anything else is converted. It must not change as long as the problem is used: what its checks
        have found is not searched again, such as its largest entry, or that all entries of sparse rows are 1. Sums are
        accumulated in float64. Rows that :func:`condgrad.rows.open` returns stay on disk: every pass reads them once.
        Those of :func:`condgrad.rows.from_dask` stay with the workers of a cluster.
    y : array of shape (n_samples,)
        The targets, in the form that the loss requires; by default those that rows outside of memory bring.
    loss : a loss of :mod:`condgrad.losses`, or your own
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
    sample_weight : array of shape (n_samples,), optional
    offset : array of shape (n_samples,), optional
        Known numbers o_i: the loss of sample i is f(x_i'w + o_i, y_i). For counts, the logarithm of the exposure. By
        default those that rows outside of memory bring, or none.
    intercept : bool
        Whether to add an unconstrained intercept, minimised exactly together with w. Convex losses only.
    l2 : float
        The factor of the penalty l2 ||w||_2^2 / 2, which makes the weights of correlated features similar. Solvers
        that work on single samples or columns do not support it.
    device : "cuda" or None
        Where passes run. "cuda" sends the data to the GPU once; arrays of CuPy and tensors of PyTorch that are there
        already stay there, without a copy.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> problem.objective([0.0, 0.0]), problem.gap([0.0, 0.0])
    (0.25, 0.5)
    """

    def __init__(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None = None,
        loss: object = None,
        constraint: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        intercept: bool = False,
        l2: float = 0.0,
        device: str | None = None,
    ) -> None:
        if loss is None or constraint is None:
            raise TypeError(f"Problem requires {'a loss' if loss is None else 'a constraint'}.")
        loss, has_intercept = as_loss(loss), as_flag(intercept, "intercept")
        rows = make_rows(X, y, loss, sample_weight, offset, has_intercept, device)
        self._begin(rows, constraint, has_intercept, l2)

    @classmethod
    def of_rows(cls, rows: Rows, constraint: object, *, intercept: bool = False, l2: float = 0.0) -> Self:
        """Return the problem for samples stored anywhere; see :class:`condgrad.problems.rows.base.Rows`."""
        problem = cls.__new__(cls)
        problem._begin(rows, constraint, as_flag(intercept, "intercept"), l2)
        return problem

    def _begin(self, rows: Rows, constraint: object, intercept: bool, l2: float) -> None:
        self.n_features = rows.n_features
        self.loss, self.has_intercept = rows.samples.loss, bool(intercept)
        rows.check_targets(self.has_intercept)
        self.l2 = convert.as_number(l2, "l2", low=0.0, what="a finite number of at least 0", below=np.inf)
        self.constraint = as_set_for(constraint, self.n_features)
        self._set_rows(rows)

    def _set_rows(self, rows: Rows) -> None:
        self.rows, self.n_samples = rows, rows.n_samples
        self.first_part, self.part_growth = rows.first_part, rows.part_growth
        self.offers = rows.offers - (_ONE_BY_ONE if self.l2 > 0.0 else set())
        self.remedies = self._remedies()

    def _remedies(self) -> dict[Feature, str]:
        """Return what the user can do about features that are not offered, or why they are missing."""
        no_penalty = "steps over single samples do not support an l2 penalty; l2=0 leaves it out"
        if Feature.SAMPLES in self.rows.offers:
            return dict.fromkeys(_ONE_BY_ONE, no_penalty)
        remedies = dict.fromkeys(_ONE_BY_ONE, "its rows are not in memory, where single ones would be at hand")
        if self.rows.chunk_sizes is not None:
            no_intercept = (
                f"steps over chunks of rows do not support an intercept; {LEAVE_OUT[0].lower()}{LEAVE_OUT[1:]}"
            )
            remedies[Feature.CHUNKS] = no_penalty if self.l2 > 0.0 else no_intercept
        return remedies

    @property
    def is_convex(self) -> bool:
        """Whether the gap bounds F(w) - F*, as it does for convex losses."""
        return bool(self.loss.is_convex)

    @property
    def has_dense_parts(self) -> bool:  # type: ignore[override]
        """Whether X is dense and in memory, and the loss convex with a second derivative that is Lipschitz."""
        is_smooth = self.loss.is_convex and math.isfinite(self.loss.curvature_smoothness())
        return self.rows.has_dense_columns and is_smooth

    @property
    def is_quadratic(self) -> bool:  # type: ignore[override]
        """Whether the curvature of F is the same everywhere, as for quadratic losses."""
        return bool(self.loss.is_quadratic)

    def objective(self, w: IterateLike) -> float:
        """Return F(w)."""
        w = convert.as_point(w, self.n_features, "w")
        p, b = self._predict(w)
        return self.samples.value(p, b) + self.penalty(w)

    def mean_loss(self, w: np.ndarray, intercept: float) -> float:
        """Return the mean loss of the predictions with a given intercept, for columns as given, without the penalty."""
        return self.samples.value(self.rows.predictions(w), intercept + self.rows.along_shift(w))

    def gradient(self, w: IterateLike) -> np.ndarray:
        """Return the gradient of F at w."""
        w = convert.as_point(w, self.n_features, "w")
        return whole(self._certificates.gradient(w, self._pass_at(w)[1], is_guess=False))

    def penalty(self, w: np.ndarray) -> float:
        """Return l2 ||w||_2^2 / 2."""
        return Penalty(self.l2).value(w)

    def with_penalty(self, r: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the gradient r plus the gradient l2 w of the penalty."""
        return Penalty(self.l2).added_to(r, w)

    def best_intercept(self, w: IterateLike) -> float:
        """Return the best intercept for w (0, without a pass over the data, for a problem without intercept)."""
        w = convert.as_point(w, self.n_features, "w")
        return self.intercept_at(w, self._predict(w)[1]) if self.has_intercept else 0.0

    def best_offset(self, w: np.ndarray) -> float:
        """Return the best intercept for w with centred columns: the b of steps and kernels."""
        return self._predict(w)[1] if self.has_intercept else 0.0

    def intercept_at(self, w: np.ndarray, b: float, features: np.ndarray | None = None) -> float:
        """Convert the intercept b for centred columns to the intercept for the columns as given.

        With ``features``, w holds the coefficients of these features only.
        """
        return b - self.rows.along_shift(w, features)

    def look(self, w: IterateLike) -> LinearLook:
        """Make a pass at w and return objective, gradient, gap, vertex, intercept and, on demand, the curvature."""
        w = convert.as_point(w, self.n_features, "w")
        return self._look_after(w, *self._pass_at(w))

    def look_with(self, w: IterateLike, offset: float, features: np.ndarray | None = None) -> LinearLook:
        """Make one pass at w, with the intercept ``offset`` if the rows are not in memory; else :meth:`look`."""
        if self.rows.is_in_memory:
            return self.look(w)
        w, is_guess = convert.as_point(w, self.n_features, "w"), self.has_intercept
        task = Expand(offset if is_guess else 0.0, is_guess=is_guess, features=features)
        return self._look_after(w, task.b, self.rows.expand(task, w), is_guess=is_guess)

    def look_after(self, w: np.ndarray, b: float, found: AnyPass) -> LinearLook:
        """Return the look at w for a pass that was made elsewhere; with an intercept, b need not be the best one."""
        return self._look_after(w, b, found, is_guess=self.has_intercept)

    def _look_after(self, w: np.ndarray, b: float, found: AnyPass, *, is_guess: bool = False) -> LinearLook:
        gradient = self._certificates.gradient(w, found, is_guess)
        r = gradient.leading(self.constraint, w) if isinstance(gradient, OutsideGradient) else gradient
        evaluation = self._certificates.at(w, b, found, r, self.lmo(r), is_guess)
        return LinearLook(self, evaluation._replace(r=gradient), found, w, r)

    def guess_offset(self, w: np.ndarray, near: Look) -> float:
        """Return an intercept for :meth:`look_with`: the best one of a subsample, or by Newton's formula."""
        if self.rows.is_in_memory or not self.has_intercept or not isinstance(near, LinearLook):
            return near.evaluation.offset
        if near.problem.rows.is_in_memory:
            return near.problem.best_offset(w)
        return self.rows.guess_intercept(near.found, near.evaluation.offset, w - near.w)

    def _pass_at(self, w: np.ndarray) -> tuple[float, AnyPass]:
        """Return the intercept and the results of a pass at w.

        The derivatives need the best intercept, so with an intercept the predictions are computed first.
        """
        p, b = self._predict(w) if self.has_intercept else (None, 0.0)
        return b, self.rows.expand(Expand(b, p), w)

    @property
    def reach(self) -> float:
        """A bound of the change of the predictions over the set, in the norm of :mod:`condgrad.linalg.rounding`."""
        return self._certificates.reach

    @functools.cached_property
    def _certificates(self) -> Certificates:
        return Certificates(self.rows, self.constraint, self.has_intercept, Penalty(self.l2))

    def _copy(self) -> Problem:
        """Return a copy that shares the data, without the certificates, which belong to rows, set and penalty."""
        other = copy.copy(self)
        other.__dict__.pop("_certificates", None)
        return other

    def over(self, constraint: object) -> Problem:
        """Return the same problem over another set; both share the data and their views."""
        other = self._copy()
        other.constraint = as_set_for(constraint, self.n_features)
        return other

    def within(self, constraint: object) -> Problem:
        """Return the same problem over a subset of its set: bounds of intercepts that hold over the set hold there."""
        other = self.over(constraint)
        if self.has_intercept:
            other._certificates.intercept_range = self._certificates.intercept_range
        return other

    def without_penalty(self) -> Problem:
        """Return the same problem with l2 = 0; both share the data and their views."""
        other = self._copy()
        other.l2, other.offers = 0.0, self.rows.offers
        return other

    def with_targets(self, y: ArrayLike) -> Problem:
        """Return the same problem with other targets; both share the data and their views."""
        other = self._copy()
        other.rows = self.rows.with_targets(convert.as_targets(y, self.n_samples))
        other.rows.check_targets(self.has_intercept)
        return other

    def part(self, n_rows: int) -> Problem | None:
        """Return the problem on a subsample of ``n_rows`` samples or somewhat more, evenly spread, over the same set.

        Return None if the subsample has no weight, or too few kinds of targets for an intercept.
        """
        rows = self.rows.head(n_rows)
        return self if rows is self.rows else self._of(rows)

    def chosen(self, places: np.ndarray) -> Problem | None:
        """Return the problem on some samples alone, as :meth:`part` does; None if rows are not in memory, too."""
        return self._of(self.rows.chosen(places))

    def _of(self, rows: Rows | None) -> Problem | None:
        if rows is None or (self.has_intercept and not _allows_intercept(rows)):
            return None
        part = self._copy()
        part._set_rows(rows)
        return part

    def largest_part(self) -> Problem | None:
        """Return the problem on as many samples as memory allows, for rows that are not in memory; else None."""
        if self.rows.is_in_memory or self.rows.most_in_memory < 1:
            return None
        return self.part(self.rows.most_in_memory)

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, L lambda_max(X' diag(weight) X); inf where unknown."""
        return self.smoothness() if Feature.PREDICTIONS in self.rows.offers else np.inf

    def smoothness(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, L lambda_max(X' diag(weight) X), to full precision."""
        if Feature.PREDICTIONS not in self.rows.offers:
            return super().smoothness()
        from scipy.sparse.linalg import LinearOperator, eigsh

        matrix, weight, d = self.matrix, self.samples.weight, self.n_features
        if self.rows.largest_entry == 0.0:
            return 0.0  # ARPACK fails for a zero matrix
        if self.l2 > 0.0:
            return self.l2 + self.without_penalty().smoothness()
        gram = LinearOperator((d, d), lambda v: matrix.transpose_dot(weight * matrix.dot(v.ravel())), dtype=float)
        if d == 1:
            return float((gram @ np.ones(1))[0]) * self.loss_smoothness()
        start = np.random.default_rng(0).standard_normal(d)
        return float(eigsh(gram, k=1, v0=start, return_eigenvectors=False)[0]) * self.loss_smoothness()

    def loss_smoothness(self) -> float:
        """Return L, a Lipschitz constant of the loss's derivative over all predictions x_i'w + o_i that C allows."""
        # Every w in C lies within one diameter of any other point of C.
        w = self.constraint.start(self.n_features).to_dense(self.n_features)
        reach = np.abs(self.matrix.dot(w)).max()
        diameter = self.constraint.diameter(1, self.n_features)
        farthest = float(reach + self.rows.largest_entry * diameter)
        return self.loss.smoothness_on(farthest + self.samples.offset.largest_size())

    def point(self, w: np.ndarray) -> PointLike:
        """Return an iterate at ``w`` for a solver of full passes, with its predictions if X is in memory."""
        return PredictionPoint(self, w) if Feature.PREDICTIONS in self.rows.offers else super().point(w)

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        penalty = (self.l2,) if self.l2 > 0.0 else ()  # without penalty: the hash of versions that had no l2
        return fingerprint_of((*self.rows.definition(), self.constraint, self.has_intercept, *penalty))

    def null_objective(self) -> float:
        """Return the objective at w = 0, without a pass over X."""
        return self.samples.value(*self._null_predictions())

    def loss_scale(self) -> float:
        """Return the mean absolute loss at w = 0; tolerances of estimators and paths are relative to it."""
        return self.samples.loss_scale(*self._null_predictions())

    def least_value(self) -> float:
        """Return a lower bound of F over all predictions; -inf where the loss has none."""
        return self.samples.least_value()

    def prediction_size(self) -> float:
        """Return a typical size of predictions: the loss of w = 0, over the size of its derivatives."""
        _, squares, _ = self.samples.tangent(*self._null_predictions())
        return self.loss_scale() / math.sqrt(squares) if squares > 0.0 else 1.0

    def _null_predictions(self) -> tuple[np.ndarray, float]:
        """Return the predictions of w = 0, and their best intercept."""
        zeros = self.rows.zeros()
        return zeros, self.samples.best_intercept(zeros, 0.0) if self.has_intercept else 0.0

    def slope_size(self, s: Vertex) -> float:
        """Return a bound of the slope of F at w = 0 towards the vertex s: its size if nothing cancelled."""
        if Feature.PREDICTIONS in self.rows.offers:
            return self.derivative_size() * float(np.abs(self.vertex_predictions(s)[1]).max(initial=0.0))
        return self.derivative_size() * self.rows.largest_entry * float(np.abs(s.support()[1]).sum())

    def derivative_size(self) -> float:
        """Return the weighted mean of |f'(0, y_i)|."""
        return self.samples.derivative_size()

    def _predict(self, w: IterateLike) -> tuple[np.ndarray, float]:
        w = convert.as_point(w, self.n_features, "w")
        p = self.rows.predictions(w) if w.any() else self.rows.zeros()
        return p, self.samples.best_intercept(p, 0.0) if self.has_intercept else 0.0


def _allows_intercept(rows: Rows) -> bool:
    try:
        rows.check_targets(has_intercept=True)
    except ValueError:
        return False
    return True
