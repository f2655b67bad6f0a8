"""ExactPath: the points of `lasso_path` by the exact engine, and the regression that it solves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.compiled import Stopwatch
from condgrad.linalg import convert
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.linalg.convert import Data
from condgrad.linalg.interrupts import Interrupts, at_most, time_left
from condgrad.linalg.rounding import UNIT
from condgrad.losses import Squared
from condgrad.losses._protocol import as_loss
from condgrad.paths.columns import Features, make_columns
from condgrad.paths.disk_columns import DiskColumns, Question
from condgrad.paths.disk_oracle import DiskOracle, FeaturesAhead, Span
from condgrad.paths.engine import ExactEngine, PathPoint
from condgrad.paths.leaps import Leaps
from condgrad.paths.least_squares import Goal, LeastSquares
from condgrad.paths.points import OutOfTimeError, Solved
from condgrad.paths.working_set import WorkingSet
from condgrad.problems.samples import Samples
from condgrad.run.result import Status
from condgrad.storage.stored_columns import StoredColumns

_WALK = 8  # number of penalties from lambda_max down to eps * lambda_max in the search for the largest radius
_WALK_TOL = 1e-4  # relative gap at the end of that search, or tol where it is smaller


class LassoSettings(NamedTuple):
    """What is asked of a Lasso path, checked."""

    n_radii: int | None
    eps: float
    tol: float
    radii: np.ndarray | None
    alphas: np.ndarray | None
    max_epochs: float
    l2: float
    fit_intercept: bool
    standardize: bool

    @property
    def is_penalised(self) -> bool:
        """Whether the targets are penalties."""
        return self.alphas is not None

    @property
    def targets(self) -> np.ndarray | None:
        """The penalties or radii that were given, None where there is a default grid."""
        return self.alphas if self.is_penalised else self.radii

    @property
    def n_targets(self) -> int:
        """How many targets there are, 0 where as many are to be found as it takes."""
        return (self.n_radii or 0) if self.targets is None else self.targets.size

    @property
    def is_everywhere(self) -> bool:
        """Whether every radius is to be certified, on lines between as many points as that takes."""
        return self.n_radii is None and self.radii is None and self.alphas is None


class Regression:
    """X, y, weights and offsets, checked, and the features as the path sees them.

    The squared loss depends on y - offset alone, so ``y`` is this difference; ``observed`` are the targets as given.
    """

    def __init__(
        self,
        X: Data | StoredColumns,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        settings: LassoSettings,
        feature_weight: np.ndarray | None = None,
    ) -> None:
        matrix: Any = None if isinstance(X, StoredColumns) else matrix_of(X)
        self.X: Any = X
        if matrix is not None:
            self.X = matrix.X
        shape: tuple[int, int] = self.X.shape
        self.n_samples, self.n_features = shape
        self.observed = self.y = convert.as_targets(y, self.n_samples)
        self.weight = convert.as_weights(sample_weight, self.n_samples)
        self.offset = None if offset is None else convert.as_vector(offset, "offset", self.n_samples)
        y_error = 0.0
        if self.offset is not None:
            self.y = self.observed - self.offset
            y_error = 2.0 * UNIT * math.sqrt(float((self.weight * self.y) @ self.y))
        self.has_intercept, self.l2 = settings.fit_intercept, settings.l2
        self.y_mean = float(self.weight @ self.y) if settings.fit_intercept else 0.0
        self.target = self.y - self.y_mean
        self.scale = Samples(as_loss(Squared()), self.y, self.weight).mean_size(self.y_mean)  # type: ignore[call-arg]
        self.columns: Features
        self.span: Span | None = None  # of columns on disk: what one engine has learnt, the next one knows
        if isinstance(X, StoredColumns):
            question = Question(self.weight, self.target, self.has_intercept, settings.standardize)
            self.columns = columns = DiskColumns(X, question)
            self.span = Span(columns, self.target)
            self.along_shift, n_stored = columns.along_shift, columns.n_stored
        else:
            if self.has_intercept:  # which takes up what is subtracted: large means shall cost no digits
                matrix = matrix.centred(self.weight)
            self.columns = make_columns(matrix, self.weight, self.has_intercept, settings.standardize)
            if feature_weight is not None:  # the plain budget of the features x_j / feature_weight_j
                for sizes in (self.columns.scale, self.columns.norm):
                    sizes /= feature_weight
            self.along_shift, n_stored = matrix.along_shift, matrix.n_stored
        self.quadratic = LeastSquares(
            self.columns, n_stored, self.target, has_intercept=settings.fit_intercept, l2=settings.l2, y_error=y_error
        )

    def intercept(self, features: np.ndarray, w: np.ndarray) -> float:
        """Return the intercept that belongs to the coefficients w of some features, all as given."""
        return self.y_mean - float(self.columns.mean[features] @ w) - self.along_shift(w, features)

    def engine(self, interrupts: Interrupts) -> ExactEngine:
        """Return an exact engine that stands at w = 0."""
        if (span := self.span) is None:
            return ExactEngine(self.quadratic, interrupts)

        def oracle(working: WorkingSet) -> DiskOracle:
            return DiskOracle(span, working.residual.R, FeaturesAhead(span.columns, working), interrupts)

        return ExactEngine(self.quadratic, interrupts, oracle)


class ExactPath:
    """Points of the exact engine."""

    def __init__(self, data: Regression, settings: LassoSettings, interrupts: Interrupts) -> None:
        self.data, self.settings, self.interrupts = data, settings, interrupts
        self.n_features, self.scale = data.n_features, data.scale
        self.tol, self.is_penalised = settings.tol, settings.is_penalised
        self.gap_bounds_objective = not settings.is_penalised
        self.engine = self._new_engine()
        self.leaps = Leaps(self.engine, settings.is_penalised, settings.tol)
        self.columns_seen = self.n_scans = 0

    @property
    def shortfall(self) -> Status:
        """Why a point may miss the tolerance."""
        return Status.MAX_EPOCHS if self.engine.was_spent else Status.STALLED

    @property
    def falls_short(self) -> bool:
        """Whether a line between two points is not certified."""
        return self.leaps.falls_short

    def largest_radius(self) -> float:
        """Return the l1 norm of the solution with the penalty eps * lambda_max."""
        largest, eps = self.engine.largest, self.settings.eps
        if largest == 0.0:
            return 0.0
        tol = min(_WALK_TOL, self.settings.tol)
        try:
            with at_most(time_left(0.5)):
                for k in range(1, _WALK):
                    self.engine.solve(Goal(largest * eps ** (k / _WALK), is_penalised=True), tol=1e-2)
                norm = self.engine.solve(Goal(largest * eps, is_penalised=True), tol=tol).norm
        except OutOfTimeError:  # the last penalty that was reached; for zero where F would be 0 if it fell on as there
            norm = float(np.abs(self.engine.working.x).sum()) or self.scale / largest
        self.columns_seen, self.n_scans = self.engine.oracle.n_scanned, self.engine.n_scans
        self.engine = self._new_engine()
        self.leaps = Leaps(self.engine, self.settings.is_penalised, self.settings.tol)
        return norm

    def _new_engine(self) -> ExactEngine:
        engine = self.data.engine(self.interrupts)
        engine.max_epochs = self.settings.max_epochs
        return engine

    def advance(self, targets: np.ndarray) -> list[Solved]:
        """Return the solutions at the first radii, or penalties, of those that are left."""
        engine = self.engine
        with Stopwatch() as watch:
            if targets[0] == 0.0:  # zero is the only point of its ball
                points = [engine.zero()]
            elif engine.largest == 0.0:
                points = [engine.zero(Goal(float(targets[0]), self.is_penalised))]
            else:
                points = self.leaps.advance(targets)
        seconds = watch.seconds / len(points)
        return [self._solved(point, float(target), seconds) for point, target in zip(points, targets, strict=False)]

    def least_value(self) -> tuple[float, int]:
        """Return 0, the least value of the squared loss, and the number of samples."""
        return 0.0, self.data.n_samples

    def unfinished(self, target: float) -> Solved | None:
        """Return where the search for the first target stands; None for columns on disk."""
        if self.data.span is not None:
            return None
        goal = Goal(target, self.is_penalised)
        point = self.engine.present(goal) if target > 0.0 else self.engine.zero()
        return self._solved(point, target, 0.0)

    def cover(self) -> Iterator[tuple[bool, Solved]]:
        """Yield points up to the largest radius with certified lines between them, each after "is it the last?"."""
        top = self.largest_radius()
        yield top == 0.0, self._solved(self.leaps.end.point, 0.0, 0.0)
        ends = iter(self.leaps.cover(top))
        while True:
            with Stopwatch() as watch:
                end = next(ends, None)
            if end is None:
                return
            yield end.target >= top, self._solved(end.point, end.target, watch.seconds)

    def _solved(self, point: PathPoint, target: float, seconds: float) -> Solved:
        w = point.x * self.data.columns.scale[point.features]
        return Solved(
            features=point.features,
            w=w,
            radius=point.norm if self.is_penalised else target,
            alpha=target if self.is_penalised else point.alpha,
            gap=point.gap,
            rounding=point.rounding,
            objective=point.objective,
            intercept=self.data.intercept(point.features, w),
            seconds=seconds,
        )

    def totals(self) -> tuple[int, int]:
        """Return the columns seen and the oracle calls, of the search for the largest radius too."""
        return self.columns_seen + self.engine.oracle.n_scanned, self.n_scans + self.engine.n_scans
