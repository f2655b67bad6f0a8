"""Coordinate descent on residuals, with Newton steps on the support: for working sets too large for a Gram matrix.

The penalised problem ||R||^2/2 + alpha ||x||_1 over the atoms of a working set. A sweep minimises over one
coefficient after the other at the cost of the stored entries. Where the support has settled, the KKT system
G_SS d = correlation - alpha s is solved by conjugate gradients, which meet the data through products alone: where d
keeps the signs, it leads to the minimiser on the support; coefficients that would change their sign become zero, and
the step is halved until the objective falls.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.compiled import compiled, kernel
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.columns import predict
from condgrad.paths.quadratic import duality_gap

_SHORTEST = 1e-3  # of the Newton steps that set coefficients to zero
_SUPPORT_SWEEPS = 3  # sweeps over the support after one over the whole working set
_CG_ACCURACY = 0.5  # correlations may exceed alpha by this share of what the tolerance allows
_MOST_PRODUCTS = 60


@compiled
class WeightedVector(NamedTuple):
    """A vector that takes v_i times what is added to entry i."""

    values: Any
    weight: Any

    def add_at(self, i, delta):
        """Add weight_i delta to entry i."""
        self.values[i] += self.weight[i] * delta


@kernel
def renew(columns, features, x, y, has_intercept, p, R, a):
    """Renew predictions, residuals and weighted residuals at x; return the sums that a certificate needs.

    They are ||R||^2, <y, Xx>, <R, Xx>, ||x||_1 and the sum of the weighted residuals.
    """
    predict(columns, features, x, p)
    mean = 0.0
    if has_intercept:
        for i in range(p.shape[0]):
            mean += columns.weight[i] * p[i]
    for i in range(p.shape[0]):
        R[i] = y[i] - (p[i] - mean)
        a[i] = columns.weight[i] * R[i]
    squared_r, fit, along, norm, mu = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(p.shape[0]):
        squared_r += a[i] * R[i]
        fit += columns.weight[i] * y[i] * (p[i] - mean)
        along += a[i] * (p[i] - mean)
        mu += a[i]
    for k in range(x.shape[0]):
        norm += abs(x[k])
    return squared_r, fit, along, norm, mu if has_intercept else 0.0


@kernel
def correlate_columns(columns, features, a, mu, correlation):
    """Fill in the correlations of the chosen features with the residual; return the largest size."""
    for k in range(features.shape[0]):
        correlation[k] = columns.correlation(features[k], a, mu)
    largest = 0.0
    for k in range(features.shape[0]):
        largest = max(largest, abs(correlation[k]))
    return largest


@kernel
def _sweep(columns, features, chosen, x, alpha, a, mu):
    """Minimise over the ``chosen`` coefficients one after the other; return the sum of weighted residuals."""
    vector = WeightedVector(a, columns.weight)
    total = np.array([mu])
    for q in range(chosen.shape[0]):
        k = chosen[q]
        j = features[k]
        curvature = columns.norm[j] * columns.norm[j]
        if curvature > 0.0:
            free = columns.correlation(j, a, total[0]) + curvature * x[k]
            new = max(abs(free) - alpha, 0.0) / curvature
            new = new if free > 0.0 else -new
            change = new - x[k]
            if change != 0.0:
                x[k] = new
                columns.add(j, -change, vector)
                total[0] -= change * columns.scale[j] * columns.mean[j]
    return total[0]


@kernel
def _apply(columns, features, support, d, has_intercept, q, out):
    """Fill ``out`` with G_SS d."""
    vector = DenseVector(q)
    for i in range(q.shape[0]):
        q[i] = 0.0
    for s in range(support.shape[0]):
        columns.add(features[support[s]], d[s], vector)
    for i in range(q.shape[0]):
        q[i] *= columns.weight[i]
    mu = 0.0
    if has_intercept:
        for i in range(q.shape[0]):
            mu += q[i]
    for s in range(support.shape[0]):
        out[s] = columns.correlation(features[support[s]], q, mu)


@kernel
def solve_kkt(columns, features, support, b, has_intercept, goal, q):
    """Return d with |G_SS d - b| <= goal by conjugate gradients, preconditioned by the diagonal."""
    size = support.shape[0]
    d, rest, z, out = np.zeros(size), b.copy(), np.empty(size), np.empty(size)
    diagonal = np.empty(size)
    for s in range(size):
        diagonal[s] = columns.norm[features[support[s]]] ** 2
        z[s] = rest[s] / diagonal[s]
    direction = z.copy()
    size_now = 0.0
    for s in range(size):
        size_now += rest[s] * z[s]
    for _ in range(_MOST_PRODUCTS):
        largest = 0.0
        for s in range(size):
            largest = max(largest, abs(rest[s]))
        if largest <= goal:
            break
        _apply(columns, features, support, direction, has_intercept, q, out)
        curvature = 0.0
        for s in range(size):
            curvature += direction[s] * out[s]
        if not curvature > 0.0:
            break
        step = size_now / curvature
        for s in range(size):
            d[s] += step * direction[s]
            rest[s] -= step * out[s]
            z[s] = rest[s] / diagonal[s]
        size_next = 0.0
        for s in range(size):
            size_next += rest[s] * z[s]
        for s in range(size):
            direction[s] = z[s] + size_next / size_now * direction[s]
        size_now = size_next
    return d


@kernel
def _newton(columns, features, x, y, has_intercept, alpha, goal, p, R, a, correlation, value, trial, q):
    """Go to the minimiser on the support as far as the signs allow; return the sums at the new x.

    ``correlation`` belongs to x when it begins, p, R and a when it ends; ``value`` is the objective at x.
    """
    support = np.flatnonzero(x)
    b = np.empty(support.shape[0])
    for s in range(support.shape[0]):
        k = support[s]
        b[s] = correlation[k] - (alpha if x[k] > 0.0 else -alpha)
    d = solve_kkt(columns, features, support, b, has_intercept, goal, q)
    for k in range(x.shape[0]):
        trial[k] = x[k]
    length, is_stopped = 1.0, False
    while True:
        for s in range(support.shape[0]):
            k = support[s]
            ahead = x[k] + length * d[s]
            if ahead * x[k] <= 0.0:
                ahead = 0.0
                is_stopped = True
            trial[k] = ahead
        sums = renew(columns, features, trial, y, has_intercept, p, R, a)
        if not is_stopped or length < _SHORTEST or 0.5 * sums[0] + alpha * sums[3] <= value:
            break
        length *= 0.5
    if length < _SHORTEST:  # nothing gained: the first coefficient that reaches zero ends the step
        length = 1.0
        for s in range(support.shape[0]):
            k = support[s]
            if (x[k] + d[s]) * x[k] <= 0.0:
                length = min(length, -x[k] / d[s])
        for s in range(support.shape[0]):
            k = support[s]
            ahead = x[k] + length * d[s]
            trial[k] = ahead if ahead * x[k] > 0.0 else 0.0
        sums = renew(columns, features, trial, y, has_intercept, p, R, a)
    for k in range(x.shape[0]):
        x[k] = trial[k]
    return sums


@kernel
def sweep_model(
    columns, features, x, y, squared_y, has_intercept, alpha, tol, is_settled, max_rounds, p, R, a, correlation
):
    """Minimise over the working set to a duality gap of at most ``tol``; return the gap and the number of rounds.

    ``is_settled`` says that x is the solution for another penalty: then a Newton step comes before any sweep. On return
    p, R, a and ``correlation`` belong to x.
    """
    n_atoms = x.shape[0]
    everything = np.arange(n_atoms)
    trial, q = np.empty(n_atoms), np.empty(y.shape[0])
    sums = renew(columns, features, x, y, has_intercept, p, R, a)
    gap = np.inf
    for t in range(max_rounds):
        if t > 0 or not is_settled:
            mu = _sweep(columns, features, everything, x, alpha, a, sums[4])
            support = np.flatnonzero(x)
            for _ in range(_SUPPORT_SWEEPS):
                mu = _sweep(columns, features, support, x, alpha, a, mu)
            sums = renew(columns, features, x, y, has_intercept, p, R, a)
        for step in range(2):  # before and after a Newton step
            largest = correlate_columns(columns, features, a, sums[4], correlation)
            gap = duality_gap(squared_y, sums[1], sums[2], alpha * sums[3], alpha, largest)
            if gap <= tol:
                return gap, t + 1
            if step == 0:
                value = 0.5 * sums[0] + alpha * sums[3]
                # A largest correlation of alpha (1 + e) costs a gap of about e alpha ||x||_1.
                goal = _CG_ACCURACY * max(tol, 0.1 * gap) / max(sums[3], 1e-300)
                sums = _newton(
                    columns, features, x, y, has_intercept, alpha, goal, p, R, a, correlation, value, trial, q
                )
    return gap, max_rounds
