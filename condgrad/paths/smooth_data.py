"""SmoothData: the features of a smooth problem as its engine uses them, wherever the columns lie; those in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from condgrad.paths.columns import Columns, Features, columns_of
from condgrad.paths.gauges import Gauge
from condgrad.paths.oracle import LazyOracle, Oracle
from condgrad.paths.smooth_point import SmoothPoint
from condgrad.problems.linear import Problem


class SmoothData(Protocol):
    """What the engine needs to know about the columns."""

    @property
    def columns(self) -> Features:
        """The features, divided by the weights of the norm."""

    @property
    def largest_entry(self) -> float:
        """The largest size of an entry of X, or an upper bound of it."""

    def curvature(
        self, features: np.ndarray, h: np.ndarray, rows: np.ndarray | None, first: int, is_rough: bool
    ) -> np.ndarray:
        """Return what :meth:`condgrad.Problem.feature_curvature` returns for these features of the path."""

    def oracle(self, R: np.ndarray, point: Callable[[], SmoothPoint]) -> Oracle:
        """Return an oracle that stands at the residual R, for points to which ``point`` leads."""


class MemoryData:
    """The columns of a problem in memory."""

    columns: Columns

    def __init__(self, problem: Problem, gauge: Gauge) -> None:
        self._problem = problem
        self.n_stored = round(problem.entries_per_sample * problem.n_samples)
        settings = problem.samples.weight, problem.has_intercept, False, gauge.is_symmetric
        self.columns = columns_of(problem.contiguous_columns, problem.n_features, self.n_stored, *settings)
        if gauge.weights is not None:
            for sizes in (self.columns.scale, self.columns.norm):
                sizes /= gauge.weights
        self.largest_entry = problem.rows.largest_entry

    def curvature(
        self, features: np.ndarray, h: np.ndarray, rows: np.ndarray | None, first: int, is_rough: bool
    ) -> np.ndarray:
        """Return the curvature on some features."""
        return self._problem.feature_curvature(
            features, self.columns.scale[features], h, rows, first, is_rough=is_rough
        )

    def oracle(self, R: np.ndarray, point: Callable[[], SmoothPoint]) -> Oracle:
        """Return the lazy oracle."""
        return LazyOracle(self.columns, self.n_stored, R)
