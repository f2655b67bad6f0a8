"""The methods that Frandi et al. (2016) compare with, plain and compiled: coordinate descent and accelerated gradients.

All minimise ||Xw - y||^2 / 2, with lambda ||w||_1 added or over ||w||_1 <= delta, from a warm start, and stop as the
paper's do: when an iteration (of coordinate descent: a cycle) changes no coefficient by more than eps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints import L1Ball
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.vectors import DenseVector


class Solution(NamedTuple):
    """Where a method stopped, and what it took: iterations, and products of columns with a vector."""

    w: np.ndarray
    iterations: int
    products: int


@kernel
def cycle(X, order, squares, penalty, w, residual):
    """Minimise over the coordinates ``order``, one after the other; return the largest change."""
    largest = 0.0
    for q in range(order.shape[0]):
        j = order[q]
        if squares[j] > 0.0:
            target = X.dot_slice(j, residual.values) + squares[j] * w[j]
            new = np.sign(target) * max(abs(target) - penalty, 0.0) / squares[j]
            change = new - w[j]
            if change != 0.0:
                X.add_slice(j, -change, residual)
                w[j] = new
            largest = max(largest, abs(change))
    return largest


@kernel
def squared_lengths(X, vector, out):
    """Set out_j to the squared length of column j, with a vector of zeros to work in."""
    for j in range(out.shape[0]):
        X.add_slice(j, 1.0, vector)
        out[j] = X.dot_slice(j, vector.values)
        X.add_slice(j, -1.0, vector)


class CoordinateDescent:
    """Cyclic coordinate descent (CD), or with ``rng`` stochastic (SCD): p coordinates drawn at random make a cycle."""

    def __init__(self, X: Any, y: np.ndarray, rng: np.random.Generator | None = None) -> None:
        self.matrix, self.y, self.rng = Matrix(X), y, rng
        self.p = self.matrix.shape[1]
        self.squares = np.empty(self.p)
        squared_lengths(self.matrix.columns, DenseVector(np.zeros(y.size)), self.squares)

    def solve(self, penalty: float, w: np.ndarray, eps: float, max_cycles: int = 10_000) -> Solution:
        """Return the minimiser for a penalty, from ``w``."""
        w = w.copy()
        residual = DenseVector(self.y - self.matrix.dot(w))
        count, change = 0, np.inf
        while change > eps and count < max_cycles:
            order = np.arange(self.p) if self.rng is None else self.rng.integers(0, self.p, self.p)
            change = cycle(self.matrix.columns, order, self.squares, penalty, w, residual)
            count += 1
        return Solution(w, count, count * self.p)


class AcceleratedGradient:
    """Nesterov's method with a proximal step for the penalty, or a projection onto the ball, as in SLEP.

    The step 1/L is found by doubling L until the quadratic bound holds, from the last one on.
    """

    def __init__(self, X: Any, y: np.ndarray) -> None:
        self.matrix, self.y, self.L = Matrix(X), y, 1.0

    def penalised(self, penalty: float, w: np.ndarray, eps: float) -> Solution:
        """Return the minimiser for a penalty, from ``w``."""
        return self._solve(lambda v, L: np.sign(v) * np.maximum(np.abs(v) - penalty / L, 0.0), w, eps)

    def constrained(self, radius: float, w: np.ndarray, eps: float) -> Solution:
        """Return the minimiser over a ball, from ``w``."""
        ball = L1Ball(radius)
        return self._solve(lambda v, L: ball.project(v), w, eps)

    def _solve(
        self, step: Callable[[np.ndarray, float], np.ndarray], w: np.ndarray, eps: float, max_steps: int = 10_000
    ) -> Solution:
        X, y, p = self.matrix, self.y, w.size
        predictions, products = X.dot(w), p
        before, before_predictions, beta, last = w, predictions, 1.0, 0.0
        for count in range(1, max_steps + 1):
            momentum = (last - 1.0) / beta if count > 1 else 0.0
            v = w + momentum * (w - before)
            v_predictions = predictions + momentum * (predictions - before_predictions)
            gradient = X.transpose_dot(v_predictions - y)
            products += p
            before, before_predictions = w, predictions
            while True:
                w = step(v - gradient / self.L, self.L)
                predictions = X.dot(w)
                products += p
                difference = w - v
                if ((predictions - v_predictions) ** 2).sum() <= self.L * (difference @ difference) * (1.0 + 1e-12):
                    break
                self.L *= 2.0
            if np.abs(w - before).max() <= eps:
                break
            last, beta = beta, (1.0 + np.sqrt(1.0 + 4.0 * beta * beta)) / 2.0
        return Solution(w, count, products)
