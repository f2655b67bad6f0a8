"""PredictionPoint: the iterate of a solver of full passes with its predictions Xw, and F along lines from it."""

from __future__ import annotations

from typing import Protocol, Unpack, cast

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.support import support_of
from condgrad.linalg.vectors import inner
from condgrad.losses import Loss
from condgrad.problems.active_set import ActiveSet, AtomStack
from condgrad.problems.offset import EVERY
from condgrad.problems.point import Point, Whole
from condgrad.problems.samples import Samples
from condgrad.problems.segment import Course, PointLike, Segment


class Predicting(Protocol):
    """The attributes of a problem with linear predictions that a segment uses."""

    n_samples: int
    n_features: int
    has_intercept: bool
    l2: float
    loss: Loss
    samples: Samples

    @property
    def is_convex(self) -> bool:
        """Whether F is convex."""


class Linear(Predicting, Whole, Protocol):
    """The attributes and methods of a problem with linear predictions that a point uses."""

    matrix: Matrix

    def penalty(self, w: np.ndarray) -> float:
        """Return l2 ||w||_2^2 / 2."""

    def with_penalty(self, r: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return the gradient r plus the gradient of the penalty."""

    def intercept_at(self, w: np.ndarray, b: float) -> float:
        """Convert the intercept b for centred columns to the intercept for the columns as given."""

    def vertex_predictions(self, s: Vertex) -> tuple[np.ndarray | None, np.ndarray]:
        """Return X s as the rows that it touches (None: all) and its values there."""

    def combine(
        self, parts: list[tuple[float, tuple[np.ndarray | None, np.ndarray]]]
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """Return sum_k c_k q_k for predictions q_k given as (rows, values)."""

    def spread(self, rows: np.ndarray | None, values: np.ndarray) -> np.ndarray:
        """Return predictions given as (rows, values) as one array over all samples."""


class PredictedPoint(PointLike, Protocol):
    """A point with predictions ``p`` and an intercept."""

    p: np.ndarray
    b: float

    @property
    def problem(self) -> Predicting:
        """The problem."""


class PredictionPoint(Point):
    """A point with its predictions ``p`` = Xw, the intercept ``b`` and the derivatives ``alpha`` of the loss there.

    A move along a sparse direction changes few predictions; then only their derivatives and rows are updated.
    ``reset`` computes everything anew, which bounds the rounding error.
    """

    problem: Linear
    numbers = (*Point.numbers, "b", "_touched")
    arrays = (*Point.arrays, "p", "alpha")

    def segment(self, **course: Unpack[Course]) -> PredictionSegment:
        """Return F along a line from here."""
        return PredictionSegment(self, **course)

    def knows_atoms(self, active: ActiveSet) -> bool:
        """Return whether every atom is a single feature: then its product needs one column of X only."""
        return active.is_atomic

    def atom_products(self, active: ActiveSet) -> np.ndarray:
        """Return <X' alpha, v_k> for every active atom."""
        atoms, problem = cast("AtomStack", active.atoms), self.problem
        products = problem.matrix.column_products(atoms.index, self.alpha)
        return problem.with_penalty(products, self.w[atoms.index]) * atoms.value

    def _arrive(self) -> None:
        self.p = self.problem.matrix.dot(self.w)
        self._touched = 0  # entries of X used by partial updates since the last full gradient
        self._derive()

    def _update(self, line: Segment, gamma: float) -> None:
        assert isinstance(line, PredictionSegment)
        if line.rows is None:
            self.p += gamma * line.q
            self._derive()
        else:
            self.p[line.rows] += gamma * line.q
            self._rederive(line.rows)

    def _gradient(self) -> np.ndarray:
        self._touched = 0
        return self.problem.with_penalty(self.problem.matrix.transpose_dot(self.alpha), self.w)

    def _objective(self) -> float:
        return self.problem.samples.value(self.p, self.b) + self.problem.penalty(self.w)

    def _intercept(self) -> float:
        return self.problem.intercept_at(self.w, self.b)

    def _derive(self) -> None:
        if self.problem.has_intercept:
            self.b = self.problem.samples.best_intercept(self.p, self.b)
        self.alpha = self.problem.samples.derivatives(self.p, self.b)
        self.gradient_evaluations += self.p.size
        self.r = None

    def _rederive(self, rows: np.ndarray) -> None:
        matrix = self.problem.matrix
        if self.problem.has_intercept or self.problem.l2 > 0.0:  # b changes every derivative; l2 w changes all of r
            self._derive()
            return
        change = self.problem.samples.rederive(rows, self.p, self.b, self.alpha)
        self.gradient_evaluations += rows.size
        if self.r is None:
            return
        stored = matrix.count_stored(rows)
        self._touched += stored
        # An entry costs several times more here than in a full pass, which also removes accumulated rounding errors.
        if 8 * stored < matrix.n_stored and self._touched < matrix.n_stored:
            matrix.add_rows(rows, change, self.r)
        else:
            self.r = None


class PredictionSegment(Segment):
    """A segment of a problem with linear predictions; phi is computed from the predictions alone.

    The predictions change by q = X d, so phi costs O(n) (with a sparse d and pull = 0, the rows that d touches) and no
    pass over X. With an intercept b, phi is the minimum over b.

    Attributes
    ----------
    rows, q : the rows whose predictions change (None: all) and their rates of change
    """

    point: PredictedPoint

    def __init__(self, point: PredictionPoint, **course: Unpack[Course]) -> None:
        super().__init__(point, **course)
        problem = point.problem
        predictions = [(c, problem.vertex_predictions(v)) for c, v in self.parts]
        if self.pull != 0.0:
            predictions.append((-self.pull, (None, point.p)))
        self.rows, self.q = problem.combine(predictions)
        if problem.has_intercept and self.rows is not None:  # b changes every prediction
            self.rows, self.q = None, problem.spread(self.rows, self.q)
        self._support = support_of(self.rows, problem.n_samples)
        self._along, self._square = 0.0, 0.0  # <w, d> and ||d||^2, for the penalty
        if problem.l2 > 0.0:
            d = self.direction()
            self._along, self._square = inner(point.w, d), inner(d, d)

    def minimiser(self) -> float:
        """Return the step that minimises phi; for a non-convex loss, a step where phi' = 0 and phi is lower."""
        problem, point = self.point.problem, self.point
        if problem.l2 > 0.0:
            return self._minimiser_with_penalty()
        gamma = problem.samples.minimise_on_line(
            self._support, point.p, self.q, point.b, problem.has_intercept, self.max_step,
            problem.loss.is_quadratic,
        )  # fmt: skip
        if not problem.is_convex and self.change(gamma) > 0.0:
            return self.short_step()
        return gamma

    def _minimiser_with_penalty(self) -> float:
        from scipy.optimize import brentq

        if self.slope >= 0.0 or self._slope(0.0) >= 0.0:
            return 0.0
        if self._slope(self.max_step) <= 0.0:
            return self.max_step
        gamma = float(brentq(self._slope, 0.0, self.max_step, xtol=1e-15 * self.max_step, rtol=1e-12))
        return gamma if self.point.problem.is_convex or self.change(gamma) <= 0.0 else self.short_step()

    def curvature(self) -> float:
        """Return L sum_i weight_i q_i^2, a bound of phi'' over the segment: equation (7) of Negiar et al.

        A penalty adds l2 ||d||^2.
        """
        problem = self.point.problem
        L = problem.loss.smoothness_on(self._largest_prediction())
        return L * problem.samples.line_curvature(self._support, self.q) + problem.l2 * self._square

    def _largest_prediction(self) -> float:
        p = self.point.p if self.rows is None else self.point.p[self.rows]
        offset = self.point.problem.samples.offset
        p = offset.added_to(EVERY if self.rows is None else self.rows, p + self.point.b)
        ends = np.abs(p), np.abs(p + self.max_step * self.q)
        largest = max(ends[0].max(initial=0.0), ends[1].max(initial=0.0))
        if self.point.problem.has_intercept:  # b moves at most as far as the predictions
            largest += self.max_step * np.abs(self.q).max(initial=0.0)
        return float(largest)

    def _value(self, gamma: float) -> float:
        problem, point = self.point.problem, self.point
        b = point.b
        if problem.has_intercept and gamma != 0.0:
            b = problem.samples.best_intercept(point.p + gamma * self.q, b)
        value = problem.samples.line_value(self._support, point.p, self.q, gamma, b)
        return value + problem.l2 * gamma * (self._along + 0.5 * gamma * self._square)  # minus that of w

    def _slope(self, gamma: float) -> float:
        problem, point = self.point.problem, self.point
        slope = problem.samples.line_slopes(
            self._support, point.p, self.q, gamma, point.b, problem.has_intercept
        )[0]  # fmt: skip
        return slope + problem.l2 * (self._along + gamma * self._square)
