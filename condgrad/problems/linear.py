"""Problem: minimise (1/n) sum_i f(x_i'w, y_i) over a constraint set, and exact answers about any w."""

from __future__ import annotations

import copy
import functools
from collections.abc import Hashable
from typing import ClassVar, TypeAlias

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
from condgrad.linalg.matrix import Matrix, weighted_gram
from condgrad.linalg.rounding import UNIT, Bounds, bounds, gamma, prediction_error
from condgrad.linalg.settings import as_flag
from condgrad.linalg.slices import Slices
from condgrad.linalg.support import merge
from condgrad.linalg.vectors import inner
from condgrad.losses import Loss
from condgrad.problems import taylor_points
from condgrad.problems.active_set import AtomStack, Stack, as_stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation, certify, gap_at, vertex_rounding
from condgrad.problems.finite_sum import FiniteSum
from condgrad.problems.linear_point import PredictionPoint
from condgrad.problems.look import Look
from condgrad.problems.samples import Expansion, Samples, sample_by_curvature
from condgrad.problems.taylor_points import Expansions, Parts

Predictions: TypeAlias = tuple[np.ndarray | None, np.ndarray]  # those of some rows (None: all), and their values


class Problem(BaseProblem):
    r"""Minimise over w in C the mean loss F(w) = (1/n) sum_i f(x_i'w, y_i).

    With ``sample_weight`` the mean is weighted: F(w) = sum_i v_i f(x_i'w, y_i) / sum_i v_i. With ``intercept=True``
    the prediction is x_i'w + b with b free, and F(w) is the minimum over b: every answer below is for that minimum.
    With ``l2`` the penalty l2 ||w||_2^2 / 2 is added to F.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Dense (C or F order), CSR or CSC in float32 or float64 is used as it is, read-only and memory-mapped arrays
        too; anything else is converted. Sums are accumulated in float64.
    y : array of shape (n_samples,)
        The targets, as the loss wants them.
    loss : a loss of :mod:`condgrad.losses`, or your own
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
    sample_weight : array of shape (n_samples,), optional
    intercept : bool
        Whether to add an unconstrained intercept, minimised exactly together with w. Convex losses only.
    l2 : float
        Of the penalty l2 ||w||_2^2 / 2, which keeps the weights of correlated features together. Solvers of single
        samples or columns do not know it.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> problem.objective([0.0, 0.0]), problem.gap([0.0, 0.0])
    (0.25, 0.5)
    """

    remedies: ClassVar = {
        Feature.SAMPLES: "steps over single samples know no l2 penalty; l2=0 leaves it out",
        Feature.PREDICTIONS: "steps over single samples know no l2 penalty; l2=0 leaves it out",
    }
    offers = BaseProblem.offers | {
        Feature.CURVATURE,
        Feature.SAMPLES,
        Feature.PREDICTIONS,
        Feature.SECOND_DERIVATIVES,
        Feature.COLUMNS,
    }

    def __init__(
        self,
        X: Data,
        y: ArrayLike,
        loss: object,
        constraint: object,
        *,
        sample_weight: ArrayLike | None = None,
        intercept: bool = False,
        l2: float = 0.0,
    ) -> None:
        self.matrix = Matrix(convert.as_data(X))
        self.n_samples, self.n_features = self.matrix.shape
        y = convert.as_targets(y, self.n_samples)
        weight = convert.as_weights(sample_weight, self.n_samples)
        self.loss = as_loss(loss)
        self.loss.check_targets(y)
        intercept = as_flag(intercept, "intercept")
        if intercept:
            self.loss.check_intercept(y[weight > 0.0])
        self.l2 = convert.as_number(l2, "l2", low=0.0, what="a number of at least 0")
        if self.l2 > 0.0:
            self.offers = BaseProblem.offers | {Feature.CURVATURE}
        self.constraint = as_set_for(constraint, self.n_features)
        self.has_intercept = bool(intercept)
        self.samples = Samples(self.loss, y, weight)
        self._intercept_bounds: tuple[float, float] | None = None  # of the best ones, once they are known
        self._predictions: dict[Hashable, np.ndarray] = {}  # of the vertices that were asked for last, by their keys
        if self.has_intercept:  # which takes up what is subtracted: large means shall cost no digits
            self.matrix = self.matrix.centred(weight)

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
        p, b = self._predict(w)
        return self.with_penalty(self.matrix.transpose_dot(self.samples.derivatives(p, b)), w)

    def penalty(self, w: np.ndarray) -> float:
        """Return l2 ||w||_2^2 / 2."""
        return 0.5 * self.l2 * inner(w, w) if self.l2 > 0.0 else 0.0

    def with_penalty(self, r: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the gradient with that of the penalty, l2 w."""
        return r + self.l2 * w if self.l2 > 0.0 else r

    def best_intercept(self, w: IterateLike) -> float:
        """Return the intercept that belongs to w (0, without a pass over the data, for a problem without one)."""
        w = convert.as_point(w, self.n_features, "w")
        return self.intercept_at(w, self._predict(w)[1]) if self.has_intercept else 0.0

    def best_offset(self, w: np.ndarray) -> float:
        """Return the intercept of the centred columns that belongs to w: the b of steps and kernels."""
        return self._predict(w)[1] if self.has_intercept else 0.0

    def intercept_at(self, w: np.ndarray, b: float) -> float:
        """Return the intercept of the columns as given where that of the centred ones is b."""
        return b - self.matrix.along_shift(w)

    def look(self, w: IterateLike) -> LinearLook:
        """Make a pass at w: objective, gradient, gap, vertex and intercept, and on demand the curvature on atoms."""
        w = convert.as_point(w, self.n_features, "w")
        p, b = self._predict(w)
        seen = self.samples.expand(p, b)
        r = self.with_penalty(self.matrix.transpose_dot(seen.alpha), w)
        return LinearLook(self, self._certified(w, p, b, seen, r, self.lmo(r)), seen.d)

    def _certified(
        self, w: np.ndarray, p: np.ndarray, b: float, seen: Expansion, r: np.ndarray, s: Vertex
    ) -> Evaluation:
        rounding = self._rounding_at(w, s, p, b, seen).with_oracle(vertex_rounding(self.constraint, r, w, s))
        value, intercept = seen.totals.value, self.intercept_at(w, b)
        if self.l2 > 0.0:
            value, rounding = value + self.penalty(w), self._penalty_rounding(w, r, value, rounding)
        return certify(self.is_convex, value, r, gap_at(r, w, s), s, intercept, rounding, offset=b)

    def _penalty_rounding(self, w: np.ndarray, r: np.ndarray, value: float, found: Bounds) -> Bounds:
        """Return the bounds with what the penalty adds: a product and a sum in each entry of r, a sum of squares."""
        of_gradient = 4.0 * UNIT * float(self.constraint.reach(np.abs(r) + self.l2 * np.abs(w)))
        apart = 4.0 * UNIT * float((np.abs(r) + self.l2 * np.abs(w)) @ np.abs(w))  # for a point outside of the set
        return Bounds(
            found.gap + of_gradient + apart,
            found.objective + gamma(w.size + 4) * self.penalty(w) + 2.0 * UNIT * abs(value),
        )

    def _rounding_at(self, w: np.ndarray, s: Vertex, p: np.ndarray, b: float, seen: Expansion) -> Bounds:
        """Return what rounding may have done to gradient and objective at w, whose oracle answered s.

        It costs a few sums over samples and features; the norms of the columns are found once.
        """
        reach, apart = self.reach, self._distance(w, s)
        if apart > reach:  # a point outside of the set
            reach += apart
        n_terms, norm = int(np.count_nonzero(w)), float(np.abs(w).sum())
        delta = prediction_error(seen.totals.sizes, n_terms, float(np.abs(w) @ self.column_sizes))
        size = norm * self._largest_entry  # of a prediction, at most
        largest = gamma(n_terms + 4) * size + 2.0 * UNIT * (size + abs(b))
        away = 0.0
        if self.has_intercept:
            low, high = self._intercept_range(p, b, reach)
            away = max(abs(high - b), abs(b - low))
        return bounds(
            seen.totals.sizes,
            n_samples=self.n_samples,
            reach=reach + away,
            free_reach=away,
            delta=delta,
            slope_error=seen.totals.slope_error(self.loss, delta, largest),
        )

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
        """The norms sqrt(sum_i weight_i x_ij^2) of the columns, centred where the problem centres them."""
        return self.matrix.column_norms(self.samples.weight)

    @functools.cached_property
    def _largest_entry(self) -> float:
        return self.matrix.largest_entry()

    @functools.cached_property
    def reach(self) -> float:
        """How far the set lets predictions move, in the norm of :mod:`condgrad.linalg.rounding`."""
        return float(self.constraint.reach(self.column_sizes))

    def _intercept_range(self, p: np.ndarray, b: float, reach: float) -> tuple[float, float]:
        """Return bounds of the best intercepts of all points of the set, found once."""
        if self._intercept_bounds is None:
            self._intercept_bounds = self.samples.intercept_range(p, b, reach)
        return self._intercept_bounds

    def _copy_without(self, *measured: str) -> Problem:
        """Return a copy that shares the data, but not the intercepts' bounds and what else is going to change."""
        other = copy.copy(self)
        other._intercept_bounds, other._predictions = None, {}
        for name in measured:
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
        other.l2, other.offers = 0.0, type(self).offers
        return other

    def with_targets(self, y: ArrayLike) -> Problem:
        """Return the same problem with other targets; both share the data and their views."""
        y = convert.as_targets(y, self.n_samples)
        self.loss.check_targets(y)
        if self.has_intercept:
            self.loss.check_intercept(y[self.samples.weight > 0.0])
        other = self._copy_without()
        other.samples = self.samples._replace(y=y)
        return other

    def part(self, n_rows: int) -> Problem | None:
        """Return the problem of ``n_rows`` samples or somewhat more, evenly spread, over the same set.

        None where they have no weight, or for an intercept not all of the targets that it needs.
        """
        every = max(1, self.n_samples // max(1, n_rows))
        if every == 1:
            return self
        y, weight = self.samples.y[::every].copy(), self.samples.weight[::every]
        if not weight.any() or (self.has_intercept and not self._allows_intercept(y[weight > 0.0])):
            return None
        part = self._copy_without("column_sizes", "_largest_entry", "reach")
        part.matrix = self.matrix.thinned(every)
        part.n_samples = part.matrix.shape[0]
        part.samples = Samples(self.loss, y, weight / weight.sum())
        return part

    def _allows_intercept(self, y: np.ndarray) -> bool:
        try:
            self.loss.check_intercept(y)
        except ValueError:
            return False
        return True

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, L lambda_max(X' diag(weight) X)."""
        return self.smoothness()

    def smoothness(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, L lambda_max(X' diag(weight) X), to full precision."""
        from scipy.sparse.linalg import LinearOperator, eigsh

        matrix, weight, d = self.matrix, self.samples.weight, self.n_features
        if matrix.largest_entry() == 0.0:
            return 0.0  # ARPACK has no answer for a zero matrix
        if self.l2 > 0.0:
            return self.l2 + self.without_penalty().smoothness()
        gram = LinearOperator((d, d), lambda v: matrix.transpose_dot(weight * matrix.dot(v.ravel())), dtype=float)
        if d == 1:
            return float((gram @ np.ones(1))[0]) * self.loss_smoothness()
        start = np.random.default_rng(0).standard_normal(d)
        return float(eigsh(gram, k=1, v0=start, return_eigenvectors=False)[0]) * self.loss_smoothness()

    def loss_smoothness(self) -> float:
        """Return L, a Lipschitz constant of the loss's derivative over all predictions x_i'w that C allows."""
        # Every w of C lies within one diameter of any point of it.
        w = self.constraint.start(self.n_features).to_dense(self.n_features)
        reach = np.abs(self.matrix.dot(w)).max()
        diameter = self.constraint.diameter(1, self.n_features)
        return self.loss.smoothness_on(float(reach + self.matrix.largest_entry() * diameter))

    def importance(self) -> np.ndarray:
        """Return weight_i ||x_i||_2, the importance of each sample for sampling."""
        norms: np.ndarray = self.matrix.row_norms() * self.samples.weight
        return norms

    def point(self, w: np.ndarray) -> PredictionPoint:
        """Return the iterate of a solver of full passes, at ``w``."""
        return PredictionPoint(self, w)

    @property
    def is_compiled(self) -> bool:
        """Whether steps can run inside kernels: sets whose oracle is ordinary Python cannot."""
        return is_compiled(self.constraint)

    @property
    def entries_per_sample(self) -> float:
        """The mean number of entries of a row of X."""
        return self.matrix.n_stored / self.n_samples

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return X w, in one pass."""
        return self.matrix.dot(w)

    def derivatives(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return the derivatives weight_i f'(x_i'w + b, y_i) of all samples, in one pass."""
        return self.samples.derivatives(self.predictions(w), b)

    def transpose_dot(self, alpha: np.ndarray) -> np.ndarray:
        """Return X' alpha, in one pass."""
        return self.matrix.transpose_dot(alpha)

    @property
    def columns(self) -> Slices:
        """The columns of X, for kernels or, where steps are interpreted, for arrays."""
        return self._for_steps(self.matrix.columns)

    @property
    def contiguous_columns(self) -> Slices:
        """The columns of X, each of them together in memory."""
        return self._for_steps(self.matrix.contiguous_columns)

    def _for_steps(self, slices: Slices) -> Slices:
        return slices if self.is_compiled else ArraySlices(slices)

    def finite_sum(self, b: np.ndarray) -> FiniteSum:
        """Return the problem one sample at a time, with the intercept ``b[0]``."""
        return FiniteSum(self._for_steps(self.matrix.rows), self.samples, self.constraint, b)

    def taylor_points(self, parts: Parts, form: str, renews_all: bool) -> Expansions:
        """Return what TUFW keeps of its Taylor points, and its H; three numbers a sample serve every rule."""
        return taylor_points.of_predictions(parts, form)

    @property
    def cost_of_pass(self) -> float:
        """The multiply-adds of one look: two for every stored entry of X."""
        return 2.0 * self.matrix.n_stored

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, for a checkpoint to know it by."""
        X = self.matrix.X
        data = (X.data, X.indices, X.indptr) if self.matrix.is_sparse else (X,)
        penalty = (self.l2,) if self.l2 > 0.0 else ()  # a checkpoint without one is as it was before there were any
        return fingerprint_of((X.shape, *data, self.samples, self.constraint, self.has_intercept, *penalty))

    def null_objective(self) -> float:
        """Return the objective at w = 0, without a pass over X."""
        return self.samples.value(self._null_predictions(), 0.0)

    def loss_scale(self) -> float:
        """Return the mean size of the loss at w = 0, which tolerances of estimators and paths are relative to."""
        return self.samples.loss_scale(self._null_predictions())

    def _null_predictions(self) -> np.ndarray:
        """Return the predictions of w = 0: those of the free intercept alone."""
        zeros = np.zeros(self.n_samples)
        return zeros + self.samples.best_intercept(zeros, 0.0) if self.has_intercept else zeros

    def slope_size(self, s: Vertex) -> float:
        """Return how large the slope of F at w = 0 towards the vertex s could be if nothing cancelled."""
        return self.derivative_size() * float(np.abs(self.vertex_predictions(s)[1]).max(initial=0.0))

    def derivative_size(self) -> float:
        """Return the weighted mean of |f'(0, y_i)|."""
        y, weight = self.samples.y, self.samples.weight
        return float(weight @ np.abs(self.loss.derivative(np.zeros(self.n_samples), y)))

    def vertex_predictions(self, s: Vertex) -> tuple[np.ndarray | None, np.ndarray]:
        """Return X s as the rows that it touches (None: all) and its values there."""
        indices, values = s.support()
        if indices is None:
            return None, self.matrix.dot(values)
        if len(indices) > 16:  # some columns, a pass over X: no longer cheaper one by one
            return None, self.matrix.dot(s.to_dense(self.n_features))
        return self.combine([(value, self.matrix.column(int(j))) for j, value in zip(indices, values, strict=True)])

    def combine(self, parts: list[tuple[float, Predictions]]) -> tuple[np.ndarray | None, np.ndarray]:
        """Return sum_k c_k q_k for predictions q_k given as (rows, values)."""
        (c, (rows, values)), *others = parts
        total = c * values
        for c, (other_rows, other_values) in others:
            if rows is not None and other_rows is not None:
                rows, total = merge(rows, total, other_rows, c * other_values)
            else:
                total = self.spread(rows, total) + c * self.spread(other_rows, other_values)
                rows = None
        return rows, total

    def spread(self, rows: np.ndarray | None, values: np.ndarray) -> np.ndarray:
        """Return predictions given as (rows, values) as one array over all samples."""
        if rows is None:
            return values
        dense = np.zeros(self.n_samples)
        dense[rows] = values
        return dense

    def _predict(self, w: IterateLike) -> tuple[np.ndarray, float]:
        p = self.matrix.dot(convert.as_point(w, self.n_features, "w"))
        return p, self.samples.best_intercept(p, 0.0) if self.has_intercept else 0.0

    def curvature_on(self, atoms: Stack, d: np.ndarray, rows: np.ndarray | None, first: int) -> np.ndarray:
        """Return sum_i d_i <x_i, v_k> <x_i, v_l> over the chosen rows (None: all) for all pairs of atoms.

        The products of the ``first`` so many atoms with each other are left at 0: they are known.
        """
        if isinstance(atoms, AtomStack):
            H = self.matrix.gram(atoms.index, atoms.value, d, rows, first)
        else:
            q = self._predictions_of(atoms)
            Q = np.array([each if rows is None else each[rows] for each in q]).reshape(len(atoms), d.size)
            H = weighted_gram(Q.T, d, first)
        if self.has_intercept and d.any():  # the minimum over b takes the Schur complement
            mixed = atoms.inner_products(self.matrix.transpose_dot(self.spread(rows, d)))
            H -= np.outer(mixed, mixed) / d.sum()
        return H + self.l2 * atoms.gram() if self.l2 > 0.0 else H

    def _predictions_of(self, atoms: Stack) -> list[np.ndarray]:
        """Return X v for every vertex, computed once while it stays among those that are asked for."""
        kept = self._predictions
        vertices = [atoms.vertex(k) for k in range(len(atoms))]
        found = {v.key(): kept.get(v.key()) for v in vertices}
        for v in vertices:
            if found[v.key()] is None:
                found[v.key()] = self.spread(*self.vertex_predictions(v))
        self._predictions = {key: q for key, q in found.items() if q is not None}
        return [self._predictions[v.key()] for v in vertices]


class LinearLook(Look):
    """A pass at w with the curvatures ``d`` of all samples there."""

    def __init__(self, problem: Problem, evaluation: Evaluation, d: np.ndarray) -> None:
        super().__init__(evaluation)
        self.problem, self.d = problem, d

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms; negative curvatures of samples count as zero.

        From ``n_rows`` samples where that is less than half of all, drawn by their curvature.
        """
        atoms = as_stack(atoms)
        n_known = 0 if known is None else known.shape[0]
        if known is not None and n_known == len(atoms):
            return known
        d, rows = (self.d if self.problem.is_convex else np.maximum(self.d, 0.0)), None
        if n_rows <= d.size / 2 and d.any():
            rows, d = sample_by_curvature(d, n_rows)
        H = self.problem.curvature_on(atoms, d, rows, n_known)
        if known is not None:
            H[:n_known, :n_known] = known
        return H


def as_loss(loss: object) -> Loss:
    """Return ``loss``, or raise unless it is an object that kernels know as a loss."""
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, not a class; use {loss.__name__}(...).")
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a loss of condgrad.losses or a class marked @loss; got {loss!r}.")
    return loss
