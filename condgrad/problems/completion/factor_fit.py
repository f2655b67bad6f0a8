"""FactorFit: alternating improvement of W = A B', all rows of A for a fixed B, then all rows of B for a fixed A.

The nuclear norm of W is the minimum of (|A|^2 + |B|^2) / 2 over all A B' = W. The penalised problem

    minimise over A, B   sum_t weight_t f((A B')_ij + biases, y_t) + lam (|A|^2 + |B|^2) / 2

splits, for a fixed B, into small regressions, one for each row of A. Each makes one Newton step from the current row:
a few conjugate-gradient steps on the Newton system, and backtracking. Biases are an additional column, not penalised.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg import threads
from condgrad.linalg.conjugate_gradients import ConjugateGradients, Diagonal, Flatness
from condgrad.linalg.entries import Entries, Side
from condgrad.problems.completion.biases import Biases
from condgrad.problems.samples import Samples

_CG_STEPS = 2  # conjugate-gradient steps per row and sweep; more do not pay, as the other factor changes next
_MOST_HALVINGS = 30
_LEAST_CURVATURE = 0.02  # smallest curvature of a sample, as a fraction of L: flat parts would give unbounded steps


class FactorFit:
    """Factors A, B and biases, improved by sweeps.

    Parameters
    ----------
    samples, entries : the loss at the observed entries, and their places
    A, B : arrays of shape (m, k) and (n, k)
    p : array
        The predictions at the entries. Sweeps update them with the single precision of their steps.
    biases : Biases or None
    row_scale, column_scale : arrays or None
        If given, predictions are row_scale_i column_scale_j (A B')_ij.
    """

    def __init__(
        self,
        samples: Samples,
        entries: Entries,
        A: np.ndarray,
        B: np.ndarray,
        p: np.ndarray,
        biases: Biases | None,
        row_scale: np.ndarray | None = None,
        column_scale: np.ndarray | None = None,
    ) -> None:
        self.samples, self.entries, self.biases = samples, entries, biases
        self.A, self.B, self.p = A, B, p.copy()
        m, n = entries.shape
        self._row_scale = np.ones(m) if row_scale is None else row_scale
        self._column_scale = np.ones(n) if column_scale is None else column_scale

    def sweep(self, lam: float) -> None:
        """Improve A and the biases of the rows, then B and those of the columns."""
        a, b = self.biases if self.biases is not None else (None, None)
        self.A, a = self._fit(self.entries.by_row, self.A, self._row_scale, a, self.B, self._column_scale, lam)
        self.B, b = self._fit(self.entries.by_column, self.B, self._column_scale, b, self.A, self._row_scale, lam)
        if self.biases is not None:
            assert a is not None
            assert b is not None
            self.biases = Biases(a, b)

    def _fit(
        self,
        side: Side,
        own: np.ndarray,
        own_scale: np.ndarray,
        own_bias: np.ndarray | None,
        other: np.ndarray,
        other_scale: np.ndarray,
        lam: float,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return improved rows of one factor, and their improved biases; the predictions follow them."""
        k = own.shape[1]
        penalty = np.full(k, lam)
        features = other * other_scale[:, None]
        if own_bias is not None:
            own, penalty = np.column_stack([own, own_bias]), np.append(penalty, 0.0)
        X = np.array(own, order="C")
        loss = self.samples.loss
        floor = 0.0 if loss.is_quadratic else _LEAST_CURVATURE * min(loss.smoothness(), 1.0)
        task: Any = functools.partial(
            _fit_rows, side, self.samples, own_scale, np.ascontiguousarray(features), self.p, penalty, floor, k, X
        )
        work = 4.0 * _CG_STEPS * self.entries.size * X.shape[1]
        threads.run(task, threads.cut(len(X), work, side.indptr))
        return X[:, :k], None if own_bias is None else X[:, k].copy()


@compiled
class RowSystem(NamedTuple):
    """The Newton system of one row: Q' diag(d) Q + diag(penalty), for the first ``n_rows`` rows of Q.

    Q and the two vectors beside it have single precision, as products with Q take most of the time of a sweep. The
    right-hand side has double precision, so that single precision makes a step less exact, but not the fixed point.
    """

    Q: np.ndarray
    d: np.ndarray
    penalty: np.ndarray
    n_rows: int
    v: np.ndarray
    out: np.ndarray

    def apply(self, v, out):
        """Set ``out`` to the product with v."""
        for k in range(v.shape[0]):
            self.v[k] = v[k]
            self.out[k] = 0.0
        # Four rows at a time: v and ``out`` are then read once for all four.
        fours = self.n_rows // 4 * 4
        for q in range(0, fours, 4):
            _add_four(self.out, self.Q, self.d, q, self.v)
        for q in range(fours, self.n_rows):
            _add(self.out, self.d[q] * _inner(self.Q, q, self.v), self.Q, q)
        for k in range(v.shape[0]):
            out[k] = self.out[k] + self.penalty[k] * v[k]

    def predict(self, v, out):
        """Set ``out`` to Q v."""
        for k in range(v.shape[0]):
            self.v[k] = v[k]
        for q in range(self.n_rows):
            out[q] = _inner(self.Q, q, self.v)


@kernel
def _fit_rows(side, samples, scale, features, p, penalty, floor, n_factors, X, start, stop):
    """Improve the rows start, ..., stop - 1 of X, each by one inexact Newton step."""
    width, longest = X.shape[1], 0
    for i in range(start, stop):
        longest = max(longest, side.indptr[i + 1] - side.indptr[i])
    # The features of one row's entries, contiguous: they are read many times.
    Q, d = np.ones((longest, width), np.float32), np.empty(longest, np.float32)
    alpha, along = np.empty(longest), np.empty(longest)
    diagonal, inverse, slope = np.empty(width), np.empty(width), np.empty(width)
    newton = ConjugateGradients(np.empty(width), np.empty(width), np.empty(width), np.empty(width), np.empty(width))
    short, product = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(start, stop):
        first = side.indptr[i]
        count = side.indptr[i + 1] - first
        if count == 0:
            for k in range(n_factors):
                X[i, k] = 0.0  # no entries: the penalty drives the factors to 0; the bias does not change
            continue
        for k in range(width):
            slope[k] = penalty[k] * X[i, k]
            diagonal[k] = penalty[k]
        for q in range(count):
            t = side.order[first + q]
            alpha[q] = samples.derivative_at(t, p[t])
            d[q] = max(samples.curvature_at(t, p[t]), floor * samples.weight[t])
            _take(features, side.others[first + q], scale[i], alpha[q], Q, q, slope)
            if width > n_factors:
                slope[n_factors] += alpha[q]
        fours = count // 4 * 4
        for q in range(0, fours, 4):
            _add_squares(diagonal, Q, d, q)
        for q in range(fours, count):
            for k in range(width):
                diagonal[k] += d[q] * Q[q, k] * Q[q, k]
        for k in range(width):
            inverse[k] = 1.0 / diagonal[k] if diagonal[k] > 0.0 else 0.0
            newton.rest[k] = -slope[k]
        newton.begin()
        system, flatness = RowSystem(Q, d, penalty, count, short, product), Flatness(diagonal, 0.0, 0.0, 0.0)
        newton.solve(system, Diagonal(inverse), flatness, 0.0, _CG_STEPS)
        system.predict(newton.x, along)
        gamma = _length(samples, side.order, first, count, p, along, slope, penalty, X, i, newton.x)
        for k in range(width):
            X[i, k] += gamma * newton.x[k]
        for q in range(count):
            p[side.order[first + q]] += gamma * along[q]


@kernel
def _length(samples, order, first, count, p, along, slope, penalty, X, i, step):
    """Return the step size from row i of X, halved until it decreases the row's objective enough (Armijo)."""
    value, downhill, linear, quadratic = 0.0, 0.0, 0.0, 0.0
    for q in range(count):
        t = order[first + q]
        value += samples.value_at(t, p[t])
    for k in range(step.shape[0]):
        downhill += slope[k] * step[k]
        linear += penalty[k] * X[i, k] * step[k]
        quadratic += 0.5 * penalty[k] * step[k] * step[k]
    gamma = 1.0
    for _ in range(_MOST_HALVINGS):
        trial = gamma * linear + gamma * gamma * quadratic
        for q in range(count):
            t = order[first + q]
            trial += samples.value_at(t, p[t] + gamma * along[q])
        if trial - value <= 1e-4 * gamma * downhill or -downhill <= 1e-13 * value:
            break
        gamma *= 0.5
    return gamma


@kernel
def _take(features, j, scale, alpha, Q, q, slope):
    """Set row q of Q to the scaled features of an entry, and add its part to the slope."""
    for k in range(features.shape[1]):
        value = scale * features[j, k]
        Q[q, k] = value
        slope[k] += alpha * value


@kernel
def _add_squares(out, Q, d, q):
    """Add the diagonal of Q' diag(d) Q to ``out``, for the four rows of Q from row q on."""
    a, b, c, e = d[q], d[q + 1], d[q + 2], d[q + 3]
    for k in range(out.shape[0]):
        one, two, three, four = Q[q, k], Q[q + 1, k], Q[q + 2, k], Q[q + 3, k]
        out[k] += a * one * one + b * two * two + c * three * three + e * four * four


@kernel
def _inner(Q, q, v):
    total = np.float32(0.0)
    for k in range(v.shape[0]):
        total += Q[q, k] * v[k]
    return total


@kernel
def _add(out, c, Q, q):
    for k in range(out.shape[0]):
        out[k] += c * Q[q, k]


@kernel
def _add_four(out, Q, d, q, v):
    """Add Q' diag(d) Q v to ``out``, for the four rows of Q from row q on."""
    a, b, c, e = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for k in range(v.shape[0]):
        a += Q[q, k] * v[k]
        b += Q[q + 1, k] * v[k]
        c += Q[q + 2, k] * v[k]
        e += Q[q + 3, k] * v[k]
    a, b, c, e = a * d[q], b * d[q + 1], c * d[q + 2], e * d[q + 3]
    for k in range(v.shape[0]):
        out[k] += a * Q[q, k] + b * Q[q + 1, k] + c * Q[q + 2, k] + e * Q[q + 3, k]
