"""F one feature at a time for any smooth loss, through the predictions of the samples that w touches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.index_set import IndexSet, Touched, index_set, touched
from condgrad.linalg.vectors import Vector
from condgrad.problems.linear import Problem
from condgrad.problems.parabola import Parabola
from condgrad.problems.samples import Samples

# The places of the numbers in the ``scalars`` of a PredictionLine; a checkpoint stores them in this order.
_ALONG, _SLOPE, _INTERCEPT = range(3)  # <grad F(w), w>, the slope of F from w to s, the intercept b


@compiled
class PredictionLine(NamedTuple):
    """F along the segment from w to s, from the predictions p and their change ``q`` = X(s - w) on ``rows``."""

    samples: Samples
    L: float
    has_intercept: bool
    p: np.ndarray
    q: np.ndarray
    rows: IndexSet
    scalars: np.ndarray

    def along(self):
        """Return <grad F(w), w>."""
        return self.scalars[_ALONG]

    def gap(self):
        """Return <grad F(w), w - s>."""
        return -self.scalars[_SLOPE]

    def minimiser(self):
        """Return the step that minimises F on the segment, by Newton's method on its derivative."""
        if self.scalars[_SLOPE] >= 0.0:
            return 0.0
        b = self.scalars[_INTERCEPT]
        return self.samples.minimise_on_line(self.rows, self.p, self.q, b, self.has_intercept, 1.0, False)

    def short_step(self):
        """Return -slope / (L sum_i weight_i q_i^2), in [0, 1]."""
        if self.scalars[_SLOPE] >= 0.0:  # the curvature would cost a pass over the rows
            return 0.0
        curvature = self.L * self.samples.line_curvature(self.rows, self.q)
        return Parabola(-self.scalars[_SLOPE], curvature).minimiser(1.0)


@compiled
class SmoothByFeature(NamedTuple):
    """F and its partial derivatives for any smooth loss, from the predictions of the samples that w touches.

    ``line.rows`` lists these samples: all samples for dense data, or with an intercept. The prediction of any other
    sample is 0, and ``alpha`` contains its derivative at 0.
    """

    line: PredictionLine
    alpha: Vector
    image: Touched

    def differentiate(self, X, r):
        """Set the chosen entries of the gradient ``r`` to z_j' alpha, for the columns z_j."""
        r.set_to_products(X, self.alpha)

    def set_segment(self, X, s, inner):
        """Set ``line`` to F along the segment from w to s, for ``inner`` = <grad F(w), s>."""
        self.image.clear()
        s.add_columns_of(X, self.image)
        line = self.line
        for k in range(self.image.support.size()):
            line.rows.add(self.image.support.row(k))
        for k in range(line.rows.size()):
            i = line.rows.row(k)
            line.q[k] = self.image.values[i] - line.p[i]
        line.scalars[_SLOPE] = inner - line.scalars[_ALONG]

    def move(self, X, s, gamma):
        """Go to (1 - gamma) w + gamma s, and recompute the derivatives of the listed samples."""
        line = self.line
        for k in range(line.rows.size()):
            line.p[line.rows.row(k)] += gamma * line.q[k]
        if line.has_intercept:
            line.scalars[_INTERCEPT] = line.samples.best_intercept(line.p, line.scalars[_INTERCEPT])
        along, b = 0.0, line.scalars[_INTERCEPT]
        for k in range(line.rows.size()):
            i = line.rows.row(k)
            self.alpha.values[i] = line.samples.derivative_at(i, line.p[i] + b)
        for k in range(line.rows.size()):
            along += self.alpha.values[line.rows.row(k)] * line.p[line.rows.row(k)]
        line.scalars[_ALONG] = along

    def cache(self):
        """Return None: these losses do not use products of columns."""
        return None

    def synchronise(self, problem, w):
        """Compute all stored values anew for the array ``w``: this removes the rounding errors of the predictions."""
        line = self.line
        line.p[:] = problem.matrix.dot(w)
        if line.has_intercept:
            line.scalars[_INTERCEPT] = line.samples.best_intercept(line.p, line.scalars[_INTERCEPT])
        self.alpha.values[:] = line.samples.derivatives(line.p, line.scalars[_INTERCEPT])
        line.scalars[_ALONG] = self.alpha.values @ line.p


def smooth(problem: Problem, w: np.ndarray, alpha: Vector) -> SmoothByFeature:
    """Return F at ``w``; ``alpha`` is a vector of zeros in which the derivatives are stored."""
    n = problem.n_samples
    p = problem.matrix.dot(w)
    everywhere = problem.has_intercept or not problem.matrix.is_sparse
    rows = index_set(n, np.arange(n) if everywhere else np.flatnonzero(p))
    line = PredictionLine(
        problem.samples, problem.loss_smoothness(), problem.has_intercept, p, np.zeros(n), rows, np.zeros(3)
    )
    f = SmoothByFeature(line, alpha, image=touched(n))
    f.synchronise(problem, w)
    return f
