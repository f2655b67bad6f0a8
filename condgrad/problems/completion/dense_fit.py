"""DenseFit: accelerated projected gradients on the whole matrix, for narrow matrices with many of their entries.

If a matrix has few columns, the singular value decomposition of the whole costs little more than a pass over the
entries, and if most of them are observed, the bound of F by L |W - W'|^2 / 2 is close to F. Then a few projected
gradient steps

    W+ = the point of the ball nearest to V - grad F(V) / L,     V beyond W by momentum

are enough at any rank, while a fit of factors of nearly full rank would be slow.
"""

from __future__ import annotations

import functools
import math
import time
from typing import Any, Protocol

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints import NuclearBall
from condgrad.linalg import threads
from condgrad.linalg.entries import Entries
from condgrad.linalg.factored import Factored
from condgrad.problems.completion.biases import Biases
from condgrad.problems.samples import Samples

_SHORT = 0.01  # length of a step over that of the first one, at which a fit ends


class Narrow(Protocol):
    """The attributes of a completion problem that a dense fit uses."""

    shape: tuple[int, int]
    constraint: NuclearBall
    samples: Samples
    entries: Entries
    row_scale: np.ndarray | None
    column_scale: np.ndarray | None


class DenseFit:
    """A matrix Z of the plain ball and biases, improved by steps.

    Parameters
    ----------
    problem : CompletionProblem
        Its loss must have a finite smoothness.
    Z : Factored
    biases : Biases or None
    """

    def __init__(self, problem: Narrow, Z: Factored, biases: Biases | None) -> None:
        self.problem, self.Z = problem, Z
        self.biases = None if biases is None else biases.copy()
        self._scales = _scales(problem)
        self._smoothness = problem.samples.loss.smoothness()
        self._bound = self._smoothness * float(_weights(problem).max())
        self._gradient = np.zeros(problem.shape)  # entries that are not observed stay 0

    def improve(self, steps: int, deadline: float = math.inf) -> None:
        """Make ``steps`` accelerated steps, or fewer: until they are short beside the first one, or the deadline."""
        # Contiguous factors: a product rounds in another way for other layouts, and a checkpoint stores only one.
        W = Factored(np.ascontiguousarray(self.Z.U), self.Z.s, np.ascontiguousarray(self.Z.V)).to_dense()
        ahead, momentum, first = W, 1.0, 0.0
        for _ in range(steps):
            if time.perf_counter() >= deadline:
                return
            self._fit_biases(ahead)
            self.Z = _projected(self.problem.constraint, ahead - self._derive(ahead) / self._bound)
            last, W = W, self.Z.to_dense()
            step = W - last
            length = float(np.linalg.norm(step))
            first = first or length
            if length <= _SHORT * first:
                return
            if np.vdot(ahead - W, step) > 0.0:  # momentum goes against the steps: it starts again
                momentum = 1.0
            following = 0.5 + math.sqrt(0.25 + momentum * momentum)
            ahead, momentum = W + (momentum - 1.0) / following * step, following

    def _derive(self, W: np.ndarray) -> np.ndarray:
        """Return the gradient at W, in an array that the next call overwrites."""
        a, b = self.biases if self.biases is not None else (np.zeros(W.shape[0]), np.zeros(W.shape[1]))
        samples, side = self.problem.samples, self.problem.entries.by_row
        task: Any = functools.partial(_derive, side, samples, W, *self._scales, a, b, self._gradient)
        self._over_rows(task)
        return self._gradient

    def _fit_biases(self, W: np.ndarray) -> None:
        """Decrease the loss at W by new biases of the rows, and then of the columns."""
        if self.biases is None:
            return
        a, b = self.biases
        samples, side = self.problem.samples, self.problem.entries.by_row
        task: Any = functools.partial(_fit_biases, side, samples, self._smoothness, W, *self._scales, a, b)
        sums = functools.reduce(np.add, self._over_rows(task))
        b -= np.divide(sums[0], sums[1], out=np.zeros_like(b), where=sums[1] > 0.0)

    def _over_rows(self, task: Any) -> list[Any]:
        entries = self.problem.entries
        return threads.run(task, threads.cut(entries.shape[0], 4.0 * entries.size, entries.by_row.indptr))


def is_narrow(problem: Narrow, most_columns: int, least_share: float) -> bool:
    """Return whether a matrix has few columns (or rows) and enough observed entries for projected gradient steps.

    The share of observed entries counts an entry by its weight over the largest weight.
    """
    m, n = problem.shape
    smoothness = problem.samples.loss.smoothness()
    if min(m, n) > most_columns or problem.entries.size < least_share * m * n or not 0.0 < smoothness < math.inf:
        return False
    weights = _weights(problem)
    return bool(weights.sum() >= least_share * m * n * weights.max())


def _weights(problem: Narrow) -> np.ndarray:
    """Return the weights of the entries in the coordinates of the plain ball."""
    a, b = _scales(problem)
    weights: np.ndarray = problem.samples.weight * problem.entries.values_of(a[:, None] ** 2, b[:, None] ** 2)
    return weights


def _scales(problem: Narrow) -> tuple[np.ndarray, np.ndarray]:
    """Return the scales of rows and columns, as arrays."""
    m, n = problem.shape
    row_scale, column_scale = problem.row_scale, problem.column_scale
    return np.ones(m) if row_scale is None else row_scale, np.ones(n) if column_scale is None else column_scale


def _projected(ball: NuclearBall, W: np.ndarray) -> Factored:
    """Return the nearest matrix in the ball, from the eigenvectors of the smaller one of W'W and W W'.

    Small singular values have the relative error of a square root; they are close to those that the projection drops.
    """
    if W.shape[0] < W.shape[1]:
        Z = _projected(ball, W.T)
        return Factored(Z.V, Z.s, Z.U)
    squares, V = np.linalg.eigh(W.T @ W)
    s = np.sqrt(np.maximum(squares, 0.0))
    kept = s > 1e-7 * s[-1]
    s, V = s[kept], V[:, kept]
    return Factored((W @ V) / s, s, V).with_values(ball.nearest_values(s))


@kernel
def _derive(side, samples, W, row_scale, column_scale, a, b, gradient, start, stop):
    for i in range(np.uint64(start), np.uint64(stop)):
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            j = np.uint64(side.others[t])
            scale = row_scale[i] * column_scale[j]
            gradient[i, j] = scale * samples.derivative_at(t, scale * W[i, j] + a[i] + b[j])


@kernel
def _fit_biases(side, samples, smoothness, W, row_scale, column_scale, a, b, start, stop):
    """Move the biases of the rows to the minima of parabolas above the loss; return those of the columns.

    The two rows of the result are the slopes and the curvatures of the parabolas of the columns.
    """
    sums = np.zeros((2, b.shape[0]))
    for i in range(np.uint64(start), np.uint64(stop)):
        slope, curvature = 0.0, 0.0
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            j = np.uint64(side.others[t])
            slope += samples.derivative_at(t, row_scale[i] * column_scale[j] * W[i, j] + a[i] + b[j])
            curvature += smoothness * samples.weight[t]
        if curvature > 0.0:
            a[i] -= slope / curvature
        for t in range(np.uint64(side.indptr[i]), np.uint64(side.indptr[i + np.uint64(1)])):
            j = np.uint64(side.others[t])
            sums[0, j] += samples.derivative_at(t, row_scale[i] * column_scale[j] * W[i, j] + a[i] + b[j])
            sums[1, j] += smoothness * samples.weight[t]
    return sums
