"""Biases: free row and column terms a_i + b_j of a prediction, minimised exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.linalg.conjugate_gradients import Diagonal, Flatness, ThreadedGradients
from condgrad.linalg.entries import Entries
from condgrad.losses import Loss
from condgrad.problems.samples import Samples

_MOST_NEWTON = 50
_MOST_CG = 500
_LEAST_CURVATURE = 0.05  # smallest curvature in a Newton step, as a fraction of the largest


class Biases(NamedTuple):
    """The biases of rows and columns: rows[i] + columns[j] is added to the prediction of entry (i, j)."""

    rows: np.ndarray
    columns: np.ndarray

    def copy(self) -> Biases:
        """Return a copy of both arrays."""
        return Biases(self.rows.copy(), self.columns.copy())


def check_biases(loss: Loss, y: np.ndarray) -> None:
    """Raise if a row of equal targets would have an infinite bias, as with the logistic loss."""
    if not loss.is_convex:
        raise ValueError(f"{loss!r} is not convex, so its best biases cannot be certified; use biases=False.")
    far = 1e3 * (1.0 + np.abs(y).max())
    for target in (y.min(), y.max()):
        if not loss.derivative(-far, target) < 0.0 < loss.derivative(far, target):
            raise ValueError(
                f"under {loss!r} the best bias of a row with equal targets is infinite; use biases=False, or a loss "
                "that grows on both sides of the target, such as Squared() or Huber()."
            )


def best_biases(samples: Samples, entries: Entries, p: np.ndarray, start: Biases) -> Biases:
    """Return the biases that minimise sum_t weight_t f(p_t + a_i + b_j, y_t), starting from the guess ``start``.

    Each Newton step solves a linear system by conjugate gradients with the diagonal as preconditioner; backtracking
    makes each step a descent. Rows and columns without entries have the bias 0.
    """
    m = entries.shape[0]
    x = np.concatenate(start)
    # A robust loss has flat parts without curvature: if all entries of a row lie there, a Newton step is unbounded.
    floor = _LEAST_CURVATURE * min(samples.loss.smoothness(), 1.0) * samples.weight
    for _ in range(_MOST_NEWTON):
        q = p + entries.sums_of(x[:m], x[m:])
        totals, alpha, d = samples.expand(q, 0.0)
        gradient = np.concatenate([entries.row_sums(alpha), entries.column_sums(alpha)])
        scale = np.abs(alpha).sum()
        if np.abs(gradient).max() <= 1e-13 * scale:
            break
        d = d if samples.loss.is_quadratic else np.maximum(d, floor)
        # If the loss is not quadratic, a Newton step need not be exact: another step will follow.
        inexact = 0.0 if samples.loss.is_quadratic else 0.01 * np.abs(gradient).max()
        step = _solve(entries, d, -gradient, max(1e-14 * scale, inexact))
        slope = float(gradient @ step)
        if slope >= 0.0:
            break
        gamma, along = 1.0, entries.sums_of(step[:m], step[m:])
        while not samples.loss.is_quadratic and gamma > 1e-10:
            change = samples.value(q + gamma * along, 0.0) - totals.value
            if change <= 1e-4 * gamma * slope or abs(slope) <= 1e-14 * abs(totals.value):
                break
            gamma *= 0.5
        x = x + gamma * step
    return Biases(x[:m], x[m:])


def _solve(entries: Entries, d: np.ndarray, b: np.ndarray, tol: float) -> np.ndarray:
    """Return a solution of Z' diag(d) Z x = b; row t of Z has a 1 for the row and a 1 for the column of entry t."""
    system, gradients = _BiasSystem(entries, d), ThreadedGradients(b)
    diagonal = system.diagonal
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0.0)
    gradients.solve(system, Diagonal(inverse), Flatness(diagonal), tol, _MOST_CG)
    return gradients.x


class _BiasSystem:
    """Products with Z' diag(d) Z; its block of rows by columns is the sparse matrix with the entries d."""

    def __init__(self, entries: Entries, d: np.ndarray) -> None:
        self.entries, self.d = entries, d
        self.diagonal = np.concatenate([entries.row_sums(d), entries.column_sums(d)])

    def apply(self, v: np.ndarray, out: np.ndarray) -> None:
        """Set ``out`` to the product with v."""
        m = self.entries.shape[0]
        np.multiply(self.diagonal, v, out=out)
        out[:m] += self.entries.dot(self.d, v[m:])
        out[m:] += self.entries.transpose_dot(self.d, v[:m])
