"""DiskData: the columns on disk of a smooth problem, and what is known about its residuals to come."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from condgrad.constraints import L1Ball
from condgrad.linalg.interrupts import Interrupts
from condgrad.paths.disk_columns import DiskColumns
from condgrad.paths.disk_oracle import Choice, DiskOracle, Span
from condgrad.paths.disk_rows import ColumnRows
from condgrad.paths.oracle import Oracle
from condgrad.paths.smooth_point import SmoothPoint, facts_of
from condgrad.problems.linear import Problem
from condgrad.problems.rows.memory import MemoryRows

_FARTHER = (1.2, 1.5, 2.0)  # multiples of the predictions whose residuals join a span
_MOST_NEW = 64  # most vectors that a read of all columns computes anew, in about the time that the disk takes


class DiskData:
    """The columns of a problem over :class:`~condgrad.paths.disk_rows.ColumnRows`.

    ``interrupts`` hears Ctrl-C within a read: then :class:`~condgrad.paths.points.InterruptedPathError` is raised.
    """

    columns: DiskColumns

    def __init__(self, rows: ColumnRows, interrupts: Interrupts | None = None) -> None:
        self._samples, self._has_intercept, self._interrupts = rows.samples, rows.has_intercept, interrupts
        self.columns, self.largest_entry = rows.columns, rows.columns.largest_entry
        self._span = Span(self.columns, rows.residual)  # what one search has learnt, the next one knows

    def curvature(
        self, features: np.ndarray, h: np.ndarray, rows: np.ndarray | None, first: int, is_rough: bool
    ) -> np.ndarray:
        """Return the curvature on some features, as that of the problem with the columns in memory alone."""
        matrix, places = self.columns.matrix(features)
        ball = L1Ball(1.0)  # type: ignore[call-arg]
        in_memory = Problem.of_rows(MemoryRows(matrix, self._samples), ball, intercept=self._has_intercept)
        return in_memory.feature_curvature(places, self.columns.scale[features], h, rows, first, is_rough=is_rough)

    def oracle(self, R: np.ndarray, point: Callable[[], SmoothPoint]) -> Oracle:
        """Return the oracle of columns on disk."""
        return DiskOracle(self._span, R, TangentsAhead(self.columns, point), self._interrupts)


class TangentsAhead:
    """The outlook of a smooth loss: residuals change along the features times the curvatures, to first order.

    As predictions grow along a path, curvatures change, and the residuals of larger predictions tell how.
    """

    def __init__(self, columns: DiskColumns, point: Callable[[], SmoothPoint]) -> None:
        self.columns, self.point = columns, point

    def choose(self, span: Span, R: np.ndarray) -> Choice:
        """Return R, residuals farther ahead, tangents of features in use or close to R, and the latest old vectors."""
        point = self.point()
        residuals = np.stack([R, *self._farther(point)]) if point.p.any() else R[None]
        likely = span.likely(R)
        size = int(point.model.n_atoms())
        atoms = point.features[:size]
        likely[atoms] += np.where(point.x[:size] != 0.0, 2.0, 1.0) * (1.0 + likely.max())
        room = min(span.room - 1, _MOST_NEW) - residuals.shape[0]
        features = np.argsort(-likely, kind="stable")[: max(0, room)]
        new = np.concatenate([residuals, self._tangents(point, features)])[: span.room - 1]
        stays = np.append(0, np.arange(span.features.size - 1, 0, -1))
        return Choice(stays, new, np.append(np.full(residuals.shape[0], -1), features)[: new.shape[0]])

    def _farther(self, point: SmoothPoint) -> list[np.ndarray]:
        """Return the residuals of multiples of the predictions."""
        found, samples, weight = [], point.samples, point.columns.weight
        for multiple in _FARTHER:
            p, b = multiple * point.p, facts_of(point).b
            a = samples.derivatives(p, samples.best_intercept(p, b) if point.has_intercept else b)
            found.append(np.divide(-a, weight, out=np.zeros(a.size), where=weight > 0.0))
        return found

    def _tangents(self, point: SmoothPoint, features: np.ndarray) -> np.ndarray:
        """Return how the residual changes along features, up to the sign; the best intercept follows them."""
        vectors, d, weight = self.columns.vectors(features), point.d, point.columns.weight
        if point.has_intercept and d.any():
            vectors -= (vectors @ d / d.sum())[:, None]
        return vectors * np.divide(d, weight, out=np.zeros(d.size), where=weight > 0.0)
