"""Batch: the samples of one call of partial_fit as a problem of w alone, and Memory: what earlier batches told."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.linalg.matrix import Matrix
from condgrad.problems.linear import Problem
from condgrad.problems.offset import Offset
from condgrad.problems.rows.memory import MemoryRows

_LEAST_CURVATURE = 1e-3  # share of L: the second derivative by the intercept counts as this at least
_LONGEST = 1.0  # longest step of an intercept on the scale of a logarithm or a logit, where Newton steps overshoot


class Slopes(NamedTuple):
    """The derivatives of F: ``r`` by the coefficients, for columns as given, and ``b`` by the intercept."""

    r: np.ndarray
    b: float


class Memory(NamedTuple):
    """What is known from all batches so far: the number of samples, and averages over them.

    Attributes
    ----------
    n_samples : int
    slopes : Slopes
        Estimates of the derivatives of F at the last coefficients and intercept.
    means : array of shape (n_features,) or None
        The means of the columns; None where they are not known.
    curvature : float
        The second derivative by the intercept; nan where it is not known.
    """

    n_samples: int
    slopes: Slopes
    means: np.ndarray | None = None
    curvature: float = math.nan

    def share_of(self, n_samples: int) -> float:
        """Return the weight of so many new samples in an average in which old ones, of an older w, count less."""
        return 2.0 * n_samples / (self.n_samples + 2.0 * n_samples)


class Batch:
    """The problem of one batch, whose intercept is known while steps change w.

    Steps of Frank-Wolfe methods have no place for a coefficient without limits. So an intercept stays as it is during
    an epoch, as an offset of all samples, and makes a Newton step after it. Columns are centred by their means over all
    batches: then the best intercept depends little on w, and both converge together.
    """

    def __init__(self, problem: Problem, memory: Memory | None, w: np.ndarray, b: float | None) -> None:
        self.given, self.memory, self.has_intercept = problem, memory, b is not None
        self.share = 1.0 if memory is None else memory.share_of(problem.n_samples)
        self.shift = np.zeros(problem.n_features)
        self.means: np.ndarray | None = None
        self.problem, self.c = problem, 0.0
        if b is not None:
            self.means = self._all_means()
            self.shift = problem.matrix.shiftable(self.means)
            self.c = self._first() if memory is None else b + float(self.shift @ w)
            self.problem = self._with(self.c, problem.matrix.minus(self.shift))
        self.start: Slopes | None = None  # the derivatives on this batch before its steps

    def begin(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the derivatives of the samples at w, and an estimate of the gradient of F; None for a first batch."""
        if self.memory is None:
            return None
        alpha = self.problem.derivatives(w, 0.0)
        self.start = self._raw(self.problem.transpose_dot(alpha), float(alpha.sum()))
        return alpha, self._centred(self._estimate(self.start))

    def end(self, w: np.ndarray) -> tuple[Problem, float, Memory]:
        """Return the problem of w with the last intercept, this intercept, and what is known after this batch."""
        problem, p, curvature, step = self.problem, self.problem.predictions(w), math.nan, 0.0
        if self.has_intercept:
            expansion = problem.samples.expand(p, 0.0)
            curvature = self._curvature(float(expansion.d.sum()))
            step = self._newton_step(self._slope(float(expansion.alpha.sum())), curvature)
        alpha = problem.samples.derivatives(p, step)
        now = self._raw(problem.transpose_dot(alpha), float(alpha.sum()))
        n_before = 0 if self.memory is None else self.memory.n_samples
        memory = Memory(n_before + p.size, self._estimate(now), self.means, curvature)
        if not self.has_intercept:
            return problem, 0.0, memory
        b = self.c + step - float(self.shift @ w)
        return self._with(b, self.given.matrix), b, memory

    def _estimate(self, now: Slopes) -> Slopes:
        """Return the estimate of the derivatives of F at a point where those of this batch are ``now``.

        It begins as the average of this batch and earlier ones, and changes with w as the derivatives of this batch do.
        """
        if self.memory is None:
            return now
        assert self.start is not None
        before, here = self.memory.slopes.r, self.start.r
        return Slopes(before + self.share * (here - before) + (now.r - here), self._slope(now.b))

    def _slope(self, now: float) -> float:
        """Return the estimate of the derivative by the intercept, which is made as those by the coefficients."""
        if self.memory is None:
            return now
        assert self.start is not None
        before, here = self.memory.slopes.b, self.start.b
        return before + self.share * (here - before) + (now - here)

    def _all_means(self) -> np.ndarray:
        """Return the means of the columns over all batches; those of a batch are weighted as its samples are."""
        matrix, weight = self.given.matrix, self.given.samples.weight
        means: np.ndarray = matrix.transpose_dot(weight)
        if self.memory is None or self.memory.means is None:
            return means
        n, before = self.given.n_samples, self.memory
        return before.means + n / (n + before.n_samples) * (means - before.means)

    def _first(self) -> float:
        """Return the best intercept for w = 0, or 0 where no finite one is best."""
        samples = self.given.samples
        try:
            samples.loss.check_intercept(samples.y)
        except ValueError:
            return 0.0
        return samples.best_intercept(np.zeros(samples.y.size), 0.0)

    def _with(self, c: float, matrix: Matrix) -> Problem:
        """Return the problem of this matrix with the intercept c, as if it were known."""
        given = self.given
        own = given.samples.offset.to_array()
        values = np.full(given.n_samples, c) if own is None else own + c
        samples = given.samples._replace(offset=Offset(values, float(np.abs(values).max())))
        return Problem.of_rows(MemoryRows(matrix, samples), given.constraint)

    def _curvature(self, here: float) -> float:
        """Return the second derivative by the intercept, averaged over batches."""
        loss = self.given.loss
        if self.memory is not None and not math.isnan(self.memory.curvature):
            here = self.memory.curvature + self.share * (here - self.memory.curvature)
        L = loss.smoothness()
        return max(here, _LEAST_CURVATURE * L if math.isfinite(L) else 0.0, 1e-300)

    def _newton_step(self, slope: float, curvature: float) -> float:
        step = -slope / curvature
        return step if self.given.loss.link == "identity" else float(np.clip(step, -_LONGEST, _LONGEST))

    def _raw(self, r: np.ndarray, b: float) -> Slopes:
        """Return the derivatives for columns as given from those of centred ones."""
        return Slopes(r + b * self.shift, b)

    def _centred(self, slopes: Slopes) -> np.ndarray:
        return slopes.r - slopes.b * self.shift
