"""F one feature at a time for a quadratic loss: recurrences of a few numbers give the line search and F itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.index_set import Touched, touched
from condgrad.linalg.vectors import Vector
from condgrad.problems.by_feature.covariates import Covariates, covariates
from condgrad.problems.linear import Problem
from condgrad.problems.parabola import Parabola

# The places of the numbers in the ``scalars`` of Recurrences; a checkpoint stores them in this order.
_S, _SIGMA_W, _M = range(3)  # for w: S, <sigma, w>, m
_S_OF_S, _SIGMA_S, _M_OF_S = range(3, 6)  # for s: sum_i h_i q_i^2, <sigma, s>, sum_i h_i q_i
_CROSSED, _SLOPE, _CURVATURE = range(6, 9)  # for both: sum_i h_i p_i q_i, slope and curvature of F from w to s


@compiled
class Recurrences(NamedTuple):
    """F(w) = constant + <sigma, w> + S / 2 for a quadratic loss, from a few numbers: equation (8) and below.

    S = sum_i h_i p_i^2 with p = Xw, h_i = weight_i f'' and sigma = X'(weight * f'(0, y)), which is -X'y / n for the
    squared loss; S and -<sigma, w> are the paper's S and F times the factor 1/n of the mean. With an intercept,
    F(w) is smaller by (m + g)^2 / (2 H), where m = sum_i h_i p_i, g = sum_i weight_i f'(0, y_i), H = sum_i h_i, and
    the best intercept is b = -(m + g) / H. ``scalars`` contains the numbers of w, those of the vertex s at the end of
    the segment, with q = X s, and slope and curvature of F from w to s.
    """

    scalars: np.ndarray
    constant: float
    g: float
    H: float
    has_intercept: bool

    def set_start(self, S, sigma_w, m):
        """Set the numbers of w."""
        self.scalars[_S], self.scalars[_SIGMA_W], self.scalars[_M] = S, sigma_w, m

    def intercept(self):
        """Return the best intercept for w."""
        return -(self.scalars[_M] + self.g) / self.H if self.has_intercept else 0.0

    def along(self):
        """Return <grad F(w), w>: S - F in the paper."""
        return self.scalars[_S] + self.scalars[_SIGMA_W] + self.intercept() * self.scalars[_M]

    def objective(self):
        """Return F(w)."""
        value = self.constant + self.scalars[_SIGMA_W] + 0.5 * self.scalars[_S]
        if self.has_intercept:
            value -= 0.5 * (self.scalars[_M] + self.g) * (self.scalars[_M] + self.g) / self.H
        return value

    def set_end(self, inner, length, sigma_s, m_s):
        """Set the numbers of s, for ``inner`` = <grad F(w), s>, and compute slope and curvature from them."""
        product = inner - sigma_s - self.intercept() * m_s  # G times delta~ in the paper
        curvature = self.scalars[_S] - 2.0 * product + length
        if self.has_intercept:
            curvature -= (m_s - self.scalars[_M]) * (m_s - self.scalars[_M]) / self.H
        self.scalars[_S_OF_S] = length
        self.scalars[_SIGMA_S] = sigma_s
        self.scalars[_M_OF_S] = m_s
        self.scalars[_CROSSED] = product
        self.scalars[_SLOPE] = inner - self.along()
        self.scalars[_CURVATURE] = curvature

    def gap(self):
        """Return <grad F(w), w - s>."""
        return -self.scalars[_SLOPE]

    def minimiser(self):
        """Return the step that minimises F on the segment from w to s: lambda of (8), in [0, 1]."""
        return Parabola(-self.scalars[_SLOPE], self.scalars[_CURVATURE]).minimiser(1.0)

    def short_step(self):
        """Return the short step, which for a quadratic is the minimiser."""
        return self.minimiser()

    def move(self, gamma):
        """Go to (1 - gamma) w + gamma s: the recurrences of S and F."""
        kept = 1.0 - gamma
        crossed = 2.0 * gamma * kept * self.scalars[_CROSSED]
        self.scalars[_S] = kept * kept * self.scalars[_S] + crossed + gamma * gamma * self.scalars[_S_OF_S]
        self.scalars[_SIGMA_W] = kept * self.scalars[_SIGMA_W] + gamma * self.scalars[_SIGMA_S]
        self.scalars[_M] = kept * self.scalars[_M] + gamma * self.scalars[_M_OF_S]


@compiled
class QuadraticByFeature(NamedTuple):
    """F and its partial derivatives for a quadratic loss, in terms of :class:`Recurrences` (``line``).

    ``u`` = h * Xw is stored as a multiple of a vector, so that it shrinks in O(1); ``c`` = X'h is for the intercept.
    """

    line: Recurrences
    u: Vector
    h: np.ndarray
    sigma: np.ndarray
    c: np.ndarray
    covariates: Covariates
    image: Touched

    def differentiate(self, X, r):
        """Set the chosen entries of the gradient ``r`` to z_j'u + sigma_j + b c_j: (7), for the columns z_j."""
        if self.covariates.is_used():
            r.set_to(self.covariates.products)
        else:
            r.set_to_products(X, self.u)
        r.add(1.0, self.sigma)
        if self.line.has_intercept:
            r.add(self.line.intercept(), self.c)

    def set_segment(self, X, s, inner):
        """Set ``line`` to F along the segment from w to s, for ``inner`` = <grad F(w), s>."""
        self.image.clear()
        s.add_columns_of(X, self.image)
        length, sigma_s, m_s = 0.0, 0.0, 0.0
        for k in range(self.image.support.size()):
            i = self.image.support.row(k)
            length += self.h[i] * self.image.values[i] * self.image.values[i]
        for k in range(s.n_entries()):
            sigma_s += s.entry(k) * self.sigma[s.feature(k)]
            m_s += s.entry(k) * self.c[s.feature(k)] if self.line.has_intercept else 0.0
        self.line.set_end(inner, length, sigma_s, m_s)

    def move(self, X, s, gamma):
        """Go to (1 - gamma) w + gamma s: (10), with u instead of the residuals."""
        self.u.shrink(1.0 - gamma)
        for k in range(self.image.support.size()):
            i = self.image.support.row(k)
            self.u.add_at(i, gamma * self.h[i] * self.image.values[i])
        self.line.move(gamma)
        if self.covariates.is_used():
            self.covariates.blend(X, self.h, s, gamma, self.image)

    def synchronise(self, problem, w):
        """Compute all stored values anew for the array ``w``: this removes the rounding errors of the recurrences."""
        p = problem.matrix.dot(w)
        self.u.set_to(self.h * p)
        self.line.set_start((self.h * p) @ p, self.sigma @ w, self.h @ p)
        if self.covariates.is_used():
            self.covariates.products.set_to(problem.matrix.transpose_dot(self.h * p))

    def cache(self):
        """Return the cached products with single columns, of which ``covariates.n_cached()`` are filled."""
        return self.covariates.gram

    def use_covariates(self, problem):
        """Compute the products of all features, and update them after every move from now on."""
        self.covariates.begin()
        self.covariates.products.set_to(problem.matrix.transpose_dot(self.u.to_array()))


def quadratic(
    problem: Problem, w: np.ndarray, vector: Callable[[np.ndarray], Vector], caches: bool
) -> QuadraticByFeature:
    """Return F at ``w`` for a loss whose derivative is linear in the prediction."""
    n, zeros = problem.n_samples, np.zeros(problem.n_samples)
    h, g = problem.samples.curvatures(zeros, 0.0), problem.samples.derivatives(zeros, 0.0)
    constant = problem.samples.value(zeros, 0.0)
    n_cached = problem.n_features if caches else 0
    f = QuadraticByFeature(
        line=Recurrences(np.zeros(9), constant, float(g.sum()), float(h.sum()), problem.has_intercept),
        u=vector(np.zeros(n)),
        h=h,
        sigma=problem.matrix.transpose_dot(g),
        c=problem.matrix.transpose_dot(h) if problem.has_intercept else np.zeros(0),
        covariates=covariates(vector(np.zeros(n_cached)), n_cached),
        image=touched(n),
    )
    f.synchronise(problem, w)
    return f
