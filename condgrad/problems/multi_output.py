"""MultiOutputProblem: regression with several targets, over one set of matrices of coefficients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import refuse_on_device
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.rounding import UNIT, Bounds, bounds, gamma, prediction_error
from condgrad.losses._protocol import as_loss
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import Feature
from condgrad.problems.evaluation import Evaluation, Support, certify, gap_at, vertex_rounding
from condgrad.problems.output_losses import OutputLossesProblem
from condgrad.problems.outputs_look import OutputsLook
from condgrad.problems.samples import Expansion, Samples
from condgrad.problems.shared_gram import SharedGram

_APART = "if the set treats the outputs separately, solve one Problem for each output"


class MultiOutputProblem(OutputLossesProblem):
    r"""Minimise over W in C the mean F(W) = (1/n) sum_i sum_c f(x_i'w_c, Y_ic): regression with several targets.

    W has a row w_c for each of the k outputs. Solvers and sets work with one vector of k d entries, row after row, so
    that the set may couple the outputs: a :class:`~condgrad.constraints.NuclearBall` of the shape (k, d) favours a
    low rank of W, a :class:`~condgrad.constraints.GroupBall` whose groups are the columns of W
    (``np.tile(np.arange(d), k)``) selects features for all outputs at once. With ``sample_weight`` the mean is
    weighted. With ``intercept=True`` the predictions are x_i'w_c + b_c with b free, and F(W) is the minimum over b, as
    for a :class:`~condgrad.Problem`; so the gap certifies W and b together.

    The problem can compute its curvature on atoms: besides "fw", "lazy", "away", "pairwise" and "bpcg" it can be solved
    by "corrective", which "auto" chooses. For the squared loss all outputs share one Gram matrix, computed once.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_columns)
        Used without a copy, as by :class:`~condgrad.Problem`. Sums are accumulated in float64.
    Y : array of shape (n_samples, n_outputs)
        The targets, in the form that the loss requires.
    loss : a loss of :mod:`condgrad.losses`, or your own
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
        A set of vectors of length k d.
    sample_weight : array of shape (n_samples,), optional
    intercept : bool
        Whether to add an unconstrained intercept to every output. Convex losses only.

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> X, Y = np.eye(3), np.outer([1.0, 2.0, 2.0], [1.0, -1.0])
    >>> problem = cg.MultiOutputProblem(X, Y, cg.losses.Squared(), cg.constraints.NuclearBall(2.0, shape=(2, 3)))
    >>> result = cg.minimize(problem, tol=1e-9)
    >>> np.linalg.matrix_rank(result.w.reshape(2, 3), tol=1e-6), result.gap <= 1e-9
    (np.int64(1), True)
    """

    remedies: ClassVar = dict.fromkeys((Feature.SAMPLES, Feature.CHUNKS, Feature.PREDICTIONS, Feature.COLUMNS), _APART)

    matrix: Matrix

    def __init__(
        self,
        X: Data,
        Y: ArrayLike,
        loss: object,
        constraint: object,
        *,
        sample_weight: ArrayLike | None = None,
        intercept: bool = False,
    ) -> None:
        refuse_on_device(X, type(self).__name__)
        super().__init__(matrix_of(X), sample_weight, intercept)
        self.loss = as_loss(loss)
        self._set_targets(self._checked(Y))
        self._constrain(constraint)

    def _checked(self, Y: ArrayLike) -> np.ndarray:
        """Return the targets, one row for each output, or raise if the loss does not accept them."""
        targets = convert.as_outputs(Y, self.n_samples)
        self.loss.check_targets(targets.ravel())
        if self.has_intercept:
            for y in targets:
                self.loss.check_intercept(y[self.weight > 0.0])
        return targets

    def _set_targets(self, targets: np.ndarray) -> None:
        """Set the targets; all pairs of an output and a sample are treated as samples of one loss."""
        self.targets, self.n_outputs = targets, targets.shape[0]
        self._by_output = [Samples(self.loss, y, self.weight) for y in targets]
        self.samples = Samples(self.loss, targets.ravel(), np.tile(self.weight, self.n_outputs))
        self._offset_bounds: tuple[np.ndarray, np.ndarray] | None = None  # cache of _offset_range
        self._gram: SharedGram | None = None

    @property
    def Y(self) -> np.ndarray:
        """The targets, one column for each output."""
        return self.targets.T

    @property
    def is_convex(self) -> bool:
        """Whether the gap bounds F(W) - F*, as it does for convex losses."""
        return bool(self.loss.is_convex)

    @property
    def is_quadratic(self) -> bool:  # type: ignore[override]
        """Whether the curvature of F is the same everywhere, as for quadratic losses."""
        return bool(self.loss.is_quadratic)

    def bend(self) -> float:
        """Return a Lipschitz constant of the loss's derivative over all predictions that the set and b allow."""
        # Every W in the set lies within one diameter of any other point of the set.
        S = self.scores(self.constraint.start(self.n_features).to_dense(self.n_features))
        largest = float(np.abs(S).max()) + self.largest_entry * self.constraint.diameter(1, self.n_features)
        if self.has_intercept:
            low, high = self._offset_range(S, self.best_offsets(S))
            largest += float(np.maximum(np.abs(low), np.abs(high)).max())
        return self.loss.smoothness_on(largest)

    def value_of(self, S: np.ndarray) -> float:
        """Return F for the scores S."""
        return self.samples.value(self._predictions(S).ravel(), 0.0)

    def derivatives_of(self, S: np.ndarray) -> np.ndarray:
        """Return the derivatives of F by the scores S."""
        return self.samples.derivatives(self._predictions(S).ravel(), 0.0).reshape(S.shape)

    def best_offsets(self, S: np.ndarray) -> np.ndarray:
        """Return the best intercepts for the scores S of centred columns."""
        if not self.has_intercept:
            return np.zeros(self.n_outputs)
        return np.array([own.best_intercept(p, 0.0) for own, p in zip(self._by_output, S, strict=True)])

    def _predictions(self, S: np.ndarray) -> np.ndarray:
        """Return the scores plus the best intercepts."""
        return S + self.best_offsets(S)[:, None] if self.has_intercept else S

    def look(self, w: IterateLike) -> MultiOutputLook:
        """Make a pass at W and return objective, gradient, gap, vertex, intercepts and, on demand, the curvature."""
        w = convert.as_point(w, self.n_features, "w")
        S = self.scores(w)
        b = self.best_offsets(S)
        p = (S + b[:, None]).ravel() if self.has_intercept else S.ravel()
        seen = self.samples.expand(p, 0.0)
        r = self.gradient_of(seen.alpha.reshape(S.shape))
        s = self.lmo(r)
        oracle = vertex_rounding(self.constraint, r, Support.of(w), s)
        rounding = self._rounding_at(w, s, S, b, seen).with_oracle(oracle)
        found = certify(
            self.is_convex, seen.totals.value, r, gap_at(r, w, s), s, self.intercept_at(w, b), rounding
        )  # fmt: skip
        return MultiOutputLook(self, found, seen.d.reshape(S.shape))

    def _rounding_at(self, w: np.ndarray, s: Vertex, S: np.ndarray, b: np.ndarray, seen: Expansion) -> Bounds:
        """Return bounds of the rounding errors of gradient and objective at W, without those of the oracle.

        All pairs of an output and a sample are treated as samples of one loss, whose weights sum to k.
        """
        W = np.abs(w.reshape(self.shape))
        n_terms = int(np.count_nonzero(W, axis=1).max())
        delta = prediction_error(seen.totals.sizes, n_terms, float(W.ravel() @ self.score_sizes))
        size = float(W.sum(axis=1).max()) * self.largest_entry  # upper bound of a prediction
        largest = gamma(n_terms + 4) * size + 2.0 * UNIT * (size + float(np.abs(b).max()))
        away, sizes = np.zeros(self.n_outputs), seen.totals.sizes._replace(balance=0.0)
        if self.has_intercept:
            low, high = self._offset_range(S, b)
            away = np.maximum(np.abs(high - b), np.abs(b - low))
            sizes = sizes._replace(balance=float(np.abs(seen.alpha.reshape(S.shape).sum(axis=1)) @ away))
        return bounds(
            sizes,
            n_samples=self.n_samples,
            reach=self.reach_from(w, s) + float(np.linalg.norm(away)),
            free_reach=1.0,  # the balance includes it already
            delta=delta,
            slope_error=seen.totals.slope_error(self.loss, delta, largest),
            total_weight=self.n_outputs,
        )

    def _offset_range(self, S: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the best intercepts of all points of the set, computed once."""
        if self._offset_bounds is None:
            of_outputs = zip(self._by_output, S, b.tolist(), strict=True)
            found = np.array([own.intercept_range(p, at, self.reach) for own, p, at in of_outputs])
            self._offset_bounds = found[:, 0], found[:, 1]
        return self._offset_bounds

    def over(self, constraint: object) -> MultiOutputProblem:
        """Return the same problem over another set; both share the data, their views and their Gram matrix."""
        other = super().over(constraint)
        other._offset_bounds = None
        return other

    def with_targets(self, Y: ArrayLike) -> MultiOutputProblem:
        """Return the same problem with other targets of the same number of outputs; both share the data and views."""
        targets = self._checked(Y)
        if targets.shape[0] != self.n_outputs:
            raise ValueError(f"Y must have {self.n_outputs} columns, one for each output; got {targets.shape[0]}.")
        other = self._without()
        other._set_targets(targets)
        return other

    def _take_targets_of(self, whole: MultiOutputProblem, rows: np.ndarray) -> bool:
        targets = np.ascontiguousarray(whole.targets[:, rows])
        self._set_targets(targets)
        return not self.has_intercept or all(self._allows_intercept(y) for y in targets)

    def _allows_intercept(self, y: np.ndarray) -> bool:
        try:
            self.loss.check_intercept(y[self.weight > 0.0])
        except ValueError:
            return False
        return True

    def null_objective(self) -> float:
        """Return the objective at W = 0, without a pass over X."""
        return self.value_of(np.zeros(self.targets.shape))

    def loss_scale(self) -> float:
        """Return the mean absolute loss at W = 0; tolerances of estimators and paths are relative to it."""
        return self.samples.loss_scale(self._predictions(np.zeros(self.targets.shape)).ravel())

    def derivative_size(self) -> float:
        """Return the weighted mean of sum_c |f'(0, Y_ic)|."""
        return self.samples.derivative_size()

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        definition = (*self._data(), self.targets, self.loss, self.weight, self.constraint, self.has_intercept)
        return fingerprint_of((type(self).__name__, *definition))

    def shared_gram(self, d: np.ndarray) -> SharedGram | None:
        """Return the Gram matrix that all outputs share if F is quadratic; d are the curvatures of all samples."""
        if self._gram is None and self.is_quadratic and (d == d[0]).all():
            self._gram = SharedGram(self.matrix, d[0], self.n_outputs, self.has_intercept)
        return self._gram


class MultiOutputLook(OutputsLook):
    """A pass at W with the curvatures ``d`` of the loss for all outputs and samples; negative ones are set to zero."""

    problem: MultiOutputProblem

    def __init__(self, problem: MultiOutputProblem, evaluation: Evaluation, d: np.ndarray) -> None:
        super().__init__(problem, evaluation)
        self.d = d if problem.is_convex else np.maximum(d, 0.0)

    def _curvature_on(self, atoms: Stack, n_known: int, n_rows: float) -> np.ndarray:
        shared = self.problem.shared_gram(self.d)
        if shared is None or not shared.serves(atoms):
            return super()._curvature_on(atoms, n_known, n_rows)
        return shared.curvature_on(atoms, n_known)

    def _traces(self) -> np.ndarray:
        of_samples: np.ndarray = self.d.sum(axis=0)
        return of_samples

    def _add_of_atoms(
        self, atoms: AtomStack, rows: np.ndarray, factor: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        d = self.d[:, rows] * factor
        of_output, Z = self._atom_scores(atoms, rows)
        weighted = d[of_output] * Z
        for c in np.unique(of_output):
            own = np.flatnonzero(of_output == c)
            H[np.ix_(own, own)] += weighted[own] @ Z[own].T
            mixed[own, c] += weighted[own].sum(axis=1)

    def _add_of_scores(
        self, Z: np.ndarray, rows: np.ndarray, factor: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        weighted = self.d[:, rows] * factor * Z
        H += weighted.reshape(Z.shape[0], -1) @ Z.reshape(Z.shape[0], -1).T
        mixed += weighted.sum(axis=2)

    def _of_intercepts(self, mixed: np.ndarray, rows: np.ndarray, factor: np.ndarray) -> np.ndarray:
        total = (self.d[:, rows] * factor).sum(axis=1)
        taken: np.ndarray = (mixed / np.where(total > 0.0, total, 1.0)) @ mixed.T
        return taken
