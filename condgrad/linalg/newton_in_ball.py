"""Newton's method over an l1 ball of few atoms, in one kernel: where data are small, calls from Python would cost more.

It minimises F(x) = f(Z'x) + sum_k ridge_k x_k^2 / 2 over sum_k |x_k| <= 1, for a convex loss f of the predictions. The
loss is an errand (:mod:`condgrad.compiled.errands`), so that the kernel is compiled once for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import Errand, borrowed, compiled, kernel
from condgrad.linalg.few_products import fill_range
from condgrad.linalg.gram_minimiser import solve_model
from condgrad.linalg.gram_model import GramModel, recentre

VALUE, OFFSET = range(2)  # places in NewtonInBall.numbers: what the errand computes of f besides a and d

_FAST = 0.1  # share of the last gap below which the curvature of an earlier point serves on
_MODEL = 0.02  # gap to which a model is minimised, over that of F
_SUFFICIENT = 1e-4  # fraction of the linear decrease that a step must reach: Armijo's rule
_ROUNDING = 1e-13  # share of F that rounding may add to it
_SHORTER, _SHORTEST = 0.3, 1e-3  # factor by which a step is shortened as long as F does not fall, and when that ends
_AT_ONCE = 4  # rows of predictions that are multiplied with the others at a time
_CAUTION = 0.5  # atoms enter together that exceed the limit by this share of the most: many that join do not stay
_MOST_CHANGES = 20  # changes of a model's support for each atom, besides 1000


@compiled
class NewtonInBall(NamedTuple):
    """The atoms, the loss at the present predictions, and the model there."""

    Z: np.ndarray  # a row of predictions for each atom; there may be room for more
    ridge: np.ndarray
    has_intercept: bool
    loss: Errand  # sets a, d and the numbers from p
    p: np.ndarray
    a: np.ndarray  # the derivatives of f by the predictions
    d: np.ndarray  # the second ones
    numbers: np.ndarray
    correlation: np.ndarray  # minus the derivatives of F by x
    model: GramModel

    def go_to(self, x):
        """Compute everything that belongs to x; return F there and the gap."""
        Z, n, n_atoms = self.Z, np.uint64(self.p.shape[0]), x.shape[0]
        for i in range(n):
            self.p[i] = 0.0
        for k in range(n_atoms):
            if x[k] != 0.0:
                for i in range(n):
                    self.p[i] += x[k] * Z[k, i]
        self.loss.run(0)
        penalty, along, largest = 0.0, 0.0, 0.0
        for k in range(n_atoms):
            total = self.ridge[k] * x[k]
            penalty += 0.5 * total * x[k]
            for i in range(n):
                total += Z[k, i] * self.a[i]
            self.correlation[k] = -total
            along += total * x[k]
            largest = max(largest, abs(total))
        return self.numbers[VALUE] + penalty, along + largest

    def renew_curvature(self, n_atoms):
        """Make the model of the curvatures d of the present predictions, for the first atoms."""
        Z, G, n = self.Z, self.model.G, np.uint64(self.p.shape[0])
        bent = np.empty((_AT_ONCE, n))
        for first in range(0, n_atoms, _AT_ONCE):
            size = min(_AT_ONCE, n_atoms - first)
            for q in range(np.uint64(size)):
                k = q + np.uint64(first)
                for i in range(n):
                    bent[q, i] = self.d[i] * Z[k, i]
            fill_range(Z, bent[:size], first, G, 0, first + size)
        if self.has_intercept:
            self.take_out_intercept(n_atoms)
        for k in range(n_atoms):
            G[k, k] += self.ridge[k]
        self.model.forget_support(n_atoms)

    def take_out_intercept(self, n_atoms):
        """Subtract from G what a free intercept takes up."""
        G, n, mixed, total = self.model.G, np.uint64(self.p.shape[0]), np.zeros(n_atoms), 0.0
        for i in range(n):
            total += self.d[i]
        if not total > 0.0:
            return
        for k in range(np.uint64(n_atoms)):
            for i in range(n):
                mixed[k] += self.d[i] * self.Z[k, i]
        for q in range(n_atoms):
            for k in range(n_atoms):
                G[q, k] -= mixed[q] * mixed[k] / total

    def minimise_model(self, x, tol):
        """Find the minimiser of the model at x; return the slope of F on the way there."""
        model, n_atoms = self.model, x.shape[0]
        recentre(model, x, self.correlation)
        solve_model(model, 0.0, False, 1.0, tol, 1000 + _MOST_CHANGES * n_atoms, _CAUTION)
        norm, slope = 0.0, 0.0
        for k in range(n_atoms):
            norm += abs(model.x[k])
        for k in range(n_atoms):
            model.x[k] /= max(1.0, norm)
        for k in range(n_atoms):
            slope -= self.correlation[k] * (model.x[k] - x[k])
        return slope


@kernel
def newton_in_ball(search, x, goal, max_rounds):
    """Make Newton steps from x, which follows, until the gap is at most ``goal``; return the gap.

    It ends earlier where F does not fall, and after ``max_rounds``.
    """
    search = borrowed(search)
    before = np.empty(x.shape[0])
    last, is_new = np.inf, True
    value, gap = search.go_to(x)
    for _ in range(max_rounds):
        if gap <= goal:
            break
        if is_new or gap > _FAST * last:
            search.renew_curvature(x.shape[0])
        last, is_new = gap, False
        slope = search.minimise_model(x, _MODEL * gap)
        before[:] = x
        start, length = value, 1.0
        while True:
            for k in range(x.shape[0]):
                x[k] = before[k] + length * (search.model.x[k] - before[k])
            value, gap = search.go_to(x)
            if value <= start + _SUFFICIENT * length * slope + _ROUNDING * abs(start):
                break
            length *= _SHORTER
            if length < _SHORTEST:
                x[:] = before
                return search.go_to(x)[1]
    return gap
