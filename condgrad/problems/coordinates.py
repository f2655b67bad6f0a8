"""The problem one feature at a time: partial derivatives of F at w, and steps towards a vertex, without full passes.

Two classes answer the same questions. :class:`QuadraticCoordinates` serves losses whose derivative is linear in the
prediction: F along a line, <grad F(w), w> and F(w) follow by recurrences of a few numbers. :class:`SmoothCoordinates`
serves all others through the predictions of the samples that w touches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import compiled
from condgrad.constraints._blocks import Blocks
from condgrad.constraints._protocol import ConstraintSet
from condgrad.linalg.index_set import IndexSet, Touched, index_set, touched
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import DenseVector, Vector
from condgrad.problems import samples as outer
from condgrad.problems.linear import Problem
from condgrad.problems.samples import Samples, best_intercept, line_curvature, minimise_on_line

# The places of the numbers that PartialGradient keeps in ``scalars``. A checkpoint holds these and those below in the
# order given here.
_ALONG, _TOWARDS, _GAP, _CALLS = range(4)  # <r, w>, <r, s>, the estimate of the gap, the number of oracle calls
# Of Covariates in ``status``: one of the three values below, and how many columns are cached.
_USE, _N_CACHED = range(2)
_NOT_USED, _USED, _GIVEN_UP = 0, 1, -1
# Of Recurrences in ``scalars``: for w, for s, and for both.
_S, _SIGMA_W, _M = range(3)  # S, <sigma, w>, m
_S_OF_S, _SIGMA_S, _M_OF_S = range(3, 6)  # sum_i h_i q_i^2, <sigma, s>, sum_i h_i q_i
_CROSSED, _SLOPE, _CURVATURE = range(6, 9)  # sum_i h_i p_i q_i, slope and curvature of F from w to s
# Of PredictionLine in ``scalars``: <grad F(w), w>, the slope, the intercept b.
_LINE_ALONG, _LINE_SLOPE, _INTERCEPT = range(3)
_CACHED = 2**24  # numbers that the cached products with active columns may take: 128 MiB


class Chosen(Protocol):
    """A sample of the blocks."""

    def size(self) -> int:
        """Return how many there are."""

    def at(self, q: int) -> int:
        """Return the one at place ``q``."""


class MakesVectors(Protocol):
    """What makes a vector of an array."""

    def __call__(self, values: np.ndarray, *, shrinks: bool) -> Vector: ...


@compiled
class ColumnProblem(NamedTuple):
    """The columns of X, the set, and the blocks of features that its vertices live on."""

    X: Slices
    constraint: ConstraintSet
    blocks: Blocks


@compiled
class PartialGradient(NamedTuple):
    """The entries of the gradient that were computed last.

    The vertex s chosen last is the best of a sample, so <r, w - s> is at most the gap. The estimate of the gap is the
    largest of the recent ones, fading by e^(-1/2) while as many atoms are drawn as there are: it certifies nothing.
    """

    values: np.ndarray
    scalars: np.ndarray

    def on(self, blocks, chosen):
        """Return the view that an oracle gets: the entries of the ``chosen`` blocks, and no others."""
        return Sampled(self.values, blocks, chosen)

    def note(self, along, s, share):
        """Keep <r, w> = ``along`` and <r, s>, where the sample was a ``share`` of all atoms."""
        self.scalars[_ALONG] = along
        self.scalars[_TOWARDS] = s.inner(DenseVector(self.values))
        faded = self.scalars[_GAP] * (1.0 - 0.5 * share) if self.scalars[_CALLS] > 0.0 else 0.0
        self.scalars[_GAP] = max(self.sampled_gap(), faded)
        self.scalars[_CALLS] += 1.0
        return self.scalars[_TOWARDS]

    def sampled_gap(self):
        """Return <r, w - s> for the vertex s chosen last."""
        return self.scalars[_ALONG] - self.scalars[_TOWARDS]

    def smoothed_gap(self):
        """Return the estimate of the gap; inf before the first step."""
        return self.scalars[_GAP]

    def oracle_calls(self):
        """Return how many times the oracle was asked."""
        return self.scalars[_CALLS]


@compiled
class Sampled(NamedTuple):
    """The entries of a vector in the chosen blocks, as oracles ask for them; ties go to the first feature."""

    values: np.ndarray
    blocks: Blocks
    chosen: Chosen

    def size(self):
        """Return the number of entries of the whole vector."""
        return self.values.shape[0]

    def at(self, j):
        """Return entry ``j``, of a chosen block."""
        return self.values[j]

    def set_to_products(self, X, v):
        """Set each chosen entry j to <column j of X, v> for a vector ``v``."""
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                j = self.blocks.member(k)
                self.values[j] = v.dot_slice(X, j)

    def set_to(self, v):
        """Set each chosen entry j to v_j for a vector ``v``."""
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                j = self.blocks.member(k)
                self.values[j] = v.at(j)

    def add(self, c, v):
        """Add c v_j to each chosen entry j for an array ``v``."""
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                j = self.blocks.member(k)
                self.values[j] += c * v[j]

    def argmax_abs(self):
        """Return the chosen feature with the largest absolute value."""
        best, where_best = -1.0, 0
        for q in range(self.chosen.size()):
            j = self.chosen.at(q)
            size = abs(self.values[j])
            if size > best or (size == best and j < where_best):
                best, where_best = size, j
        return where_best

    def argmin(self):
        """Return the chosen feature with the smallest value."""
        best, where_best = np.inf, self.chosen.at(0)
        for q in range(self.chosen.size()):
            j = self.chosen.at(q)
            if self.values[j] < best or (self.values[j] == best and j < where_best):
                best, where_best = self.values[j], j
        return where_best

    def argmax_weighted(self, weights):
        """Return the chosen feature with the largest ``|v_j| / weights_j``."""
        scale = self.largest()
        best, where_best = -1.0, 0
        for q in range(self.chosen.size()):
            j = self.chosen.at(q)
            size = abs(self.values[j]) / scale / weights[j]
            if size > best or (size == best and j < where_best):
                best, where_best = size, j
        return where_best

    def best_group(self, members, offsets):
        """Return the chosen group with the largest sum of squares."""
        scale = self.largest()
        best, where_best = -1.0, 0
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            total = 0.0
            for k in range(offsets[g], offsets[g + 1]):
                entry = self.values[members[k]] / scale
                total += entry * entry
            if total > best or (total == best and g < where_best):
                best, where_best = total, g
        return where_best

    def largest(self):
        """Return the largest absolute value, or 1 for zeros: quotients by it neither overflow nor vanish."""
        largest = 0.0
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                largest = max(largest, abs(self.values[self.blocks.member(k)]))
        return largest if largest > 0.0 else 1.0


@compiled
class Covariates(NamedTuple):
    """The products X'(h * Xw) of all features, kept up to date by those of single columns, each computed once.

    They are given up where there is no room for another column. The products with column j are ``gram[place[j]]``.
    """

    products: Vector
    gram: np.ndarray
    place: np.ndarray
    status: np.ndarray

    def is_used(self):
        """Tell whether the products are up to date."""
        return self.status[_USE] == _USED

    def may_be_used(self):
        """Tell whether the products are not in use yet, nor given up."""
        return self.status[_USE] == _NOT_USED

    def begin(self):
        """Say that the products are up to date from now on."""
        self.status[_USE] = _USED

    def n_cached(self):
        """Return how many rows of ``gram`` are filled."""
        return self.status[_N_CACHED]

    def blend(self, X, h, s, gamma, column):
        """Set the products to those of (1 - gamma) w + gamma s; ``column`` is a vector to work with."""
        self.products.shrink(1.0 - gamma)
        for k in range(s.n_entries()):
            at = self.place_of(X, h, s.feature(k), column)
            if at < 0:
                self.status[_USE] = _GIVEN_UP
                return
            self.products.add_array(gamma * s.entry(k), self.gram[at])

    def place_of(self, X, h, j, column):
        """Return where the products of all columns with column ``j`` are, after one pass where they are new."""
        if self.place[j] < 0 and self.status[_N_CACHED] < self.gram.shape[0]:
            column.clear()
            X.add_slice(j, 1.0, column)
            for k in range(column.support.size()):
                column.values[column.support.row(k)] *= h[column.support.row(k)]
            for other in range(self.gram.shape[1]):
                self.gram[self.status[_N_CACHED], other] = X.dot_slice(other, column.values)
            self.place[j] = self.status[_N_CACHED]
            self.status[_N_CACHED] += 1
        return self.place[j]


@compiled
class Recurrences(NamedTuple):
    """F(w) = constant + <sigma, w> + S / 2 for a quadratic loss, by numbers alone: equation (8) and below.

    S = sum_i h_i p_i^2 with p = Xw, h_i = weight_i f'' and sigma = X'(weight * f'(0, y)), which is -X'y / n for the
    squared loss; S and the paper's F = -<sigma, w> differ from the paper's by the factor 1/n of the mean. With an
    intercept, F(w) is less by (m + g)^2 / (2 H), where m = sum_i h_i p_i, g = sum_i weight_i f'(0, y_i),
    H = sum_i h_i, and the best intercept is b = -(m + g) / H. ``scalars`` holds the numbers of w, those of the vertex s
    that the segment leads to, with q = X s, and slope and curvature of F from w to s.
    """

    scalars: np.ndarray
    constant: float
    g: float
    H: float
    has_intercept: bool

    def set_to(self, S, sigma_w, m):
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

    def look(self, inner, length, sigma_s, m_s):
        """Keep the numbers of s, for ``inner`` = <grad F(w), s>, and from them slope and curvature."""
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
        if self.scalars[_SLOPE] >= 0.0:
            return 0.0
        return (
            -self.scalars[_SLOPE] / self.scalars[_CURVATURE]
            if -self.scalars[_SLOPE] < self.scalars[_CURVATURE]
            else 1.0
        )

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
class QuadraticCoordinates(NamedTuple):
    """F and its partial derivatives for a quadratic loss, in terms of :class:`Recurrences` (``line``).

    ``u`` = h * Xw is kept as a multiple of a vector, so that it shrinks in O(1); ``c`` = X'h serves the intercept.
    """

    line: Recurrences
    u: Vector
    h: np.ndarray
    sigma: np.ndarray
    c: np.ndarray
    covariates: Covariates
    image: Touched

    def differentiate(self, X, r):
        """Set the entries of the gradient that ``r`` asks for to z_j'u + sigma_j + b c_j: (7), for the columns z_j."""
        if self.covariates.is_used():
            r.set_to(self.covariates.products)
        else:
            r.set_to_products(X, self.u)
        r.add(1.0, self.sigma)
        if self.line.has_intercept:
            r.add(self.line.intercept(), self.c)

    def look_towards(self, X, s, inner):
        """Find F along the segment from w to s, for ``inner`` = <grad F(w), s>."""
        self.image.clear()
        s.add_columns_of(X, self.image)
        length, sigma_s, m_s = 0.0, 0.0, 0.0
        for k in range(self.image.support.size()):
            i = self.image.support.row(k)
            length += self.h[i] * self.image.values[i] * self.image.values[i]
        for k in range(s.n_entries()):
            sigma_s += s.entry(k) * self.sigma[s.feature(k)]
            m_s += s.entry(k) * self.c[s.feature(k)] if self.line.has_intercept else 0.0
        self.line.look(inner, length, sigma_s, m_s)

    def move(self, X, s, gamma):
        """Go to (1 - gamma) w + gamma s: (10), for u in the place of the residuals."""
        self.u.shrink(1.0 - gamma)
        for k in range(self.image.support.size()):
            i = self.image.support.row(k)
            self.u.add_at(i, gamma * self.h[i] * self.image.values[i])
        self.line.move(gamma)
        if self.covariates.is_used():
            self.covariates.blend(X, self.h, s, gamma, self.image)

    def synchronise(self, problem, w):
        """Compute all that is kept anew for the array ``w``: rounding errors of the recurrences end here."""
        p = problem.matrix.dot(w)
        self.u.set_to(self.h * p)
        self.line.set_to((self.h * p) @ p, self.sigma @ w, self.h @ p)
        if self.covariates.is_used():
            self.covariates.products.set_to(problem.matrix.transpose_dot(self.h * p))

    def cache(self):
        """Return the cached products with single columns, of which ``covariates.n_cached()`` are filled."""
        return self.covariates.gram

    def use_covariates(self, problem):
        """Keep the products of all features up to date from now on."""
        self.covariates.begin()
        self.covariates.products.set_to(problem.matrix.transpose_dot(self.u.to_array()))


@compiled
class PredictionLine(NamedTuple):
    """F along the segment from w to s through predictions: p, and ``q`` = X(s - w) at the places of ``rows``."""

    samples: Samples
    L: float
    has_intercept: bool
    p: np.ndarray
    q: np.ndarray
    rows: IndexSet
    scalars: np.ndarray

    def along(self):
        """Return <grad F(w), w>."""
        return self.scalars[_LINE_ALONG]

    def gap(self):
        """Return <grad F(w), w - s>."""
        return -self.scalars[_LINE_SLOPE]

    def minimiser(self):
        """Return the step that minimises F on the segment, by Newton's method on its derivative."""
        if self.scalars[_LINE_SLOPE] >= 0.0:
            return 0.0
        b = self.scalars[_INTERCEPT]
        return minimise_on_line(self.samples, self.rows, self.p, self.q, b, self.has_intercept, 1.0, False)

    def short_step(self):
        """Return -slope / (L sum_i weight_i q_i^2), in [0, 1]."""
        if self.scalars[_LINE_SLOPE] >= 0.0:
            return 0.0
        curvature = self.L * line_curvature(self.samples, self.rows, self.q)
        return -self.scalars[_LINE_SLOPE] / curvature if -self.scalars[_LINE_SLOPE] < curvature else 1.0


@compiled
class SmoothCoordinates(NamedTuple):
    """F and its partial derivatives for any smooth loss, through the predictions of the samples that w touches.

    ``line.rows`` lists these samples: all of them for dense data, or with an intercept. The prediction of the others
    is 0, and ``alpha`` their derivative there.
    """

    line: PredictionLine
    alpha: Vector
    image: Touched

    def differentiate(self, X, r):
        """Set the entries of the gradient that ``r`` asks for to z_j' alpha, for the columns z_j."""
        r.set_to_products(X, self.alpha)

    def look_towards(self, X, s, inner):
        """Find the direction X(s - w), for ``inner`` = <grad F(w), s>."""
        self.image.clear()
        s.add_columns_of(X, self.image)
        line = self.line
        for k in range(self.image.support.size()):
            line.rows.add(self.image.support.row(k))
        for k in range(line.rows.size()):
            i = line.rows.row(k)
            line.q[k] = self.image.values[i] - line.p[i]
        line.scalars[_LINE_SLOPE] = inner - line.scalars[_LINE_ALONG]

    def move(self, X, s, gamma):
        """Go to (1 - gamma) w + gamma s, and renew the derivatives of the listed samples."""
        line = self.line
        for k in range(line.rows.size()):
            line.p[line.rows.row(k)] += gamma * line.q[k]
        if line.has_intercept:
            line.scalars[_INTERCEPT] = best_intercept(line.samples, line.p, line.scalars[_INTERCEPT])
        along, b = 0.0, line.scalars[_INTERCEPT]
        for k in range(line.rows.size()):
            i = line.rows.row(k)
            self.alpha.values[i] = line.samples.derivative_at(i, line.p[i] + b)
        for k in range(line.rows.size()):
            along += self.alpha.values[line.rows.row(k)] * line.p[line.rows.row(k)]
        line.scalars[_LINE_ALONG] = along

    def cache(self):
        """Return None: for these losses products of columns are of no use."""
        return None

    def synchronise(self, problem, w):
        """Compute all that is kept anew for the array ``w``: rounding errors of the predictions end here."""
        line = self.line
        line.p[:] = problem.matrix.dot(w)
        if line.has_intercept:
            line.scalars[_INTERCEPT] = best_intercept(line.samples, line.p, line.scalars[_INTERCEPT])
        self.alpha.values[:] = outer.derivatives(line.samples, line.p, line.scalars[_INTERCEPT])
        line.scalars[_LINE_ALONG] = self.alpha.values @ line.p


def coordinates(
    problem: Problem, w: np.ndarray, vector: MakesVectors, *, caches: bool
) -> QuadraticCoordinates | SmoothCoordinates:
    """Return F at ``w``, one feature at a time, in the way that suits the loss.

    ``vector(array, shrinks=...)`` makes a vector of an array; ``caches`` asks for room for products of columns.
    """
    if problem.loss.is_quadratic:
        return _quadratic(problem, w, functools.partial(vector, shrinks=True), caches)
    return _smooth(problem, w, functools.partial(vector, shrinks=False))


def _quadratic(
    problem: Problem, w: np.ndarray, vector: Callable[[np.ndarray], Vector], caches: bool
) -> QuadraticCoordinates:
    n, d = problem.n_samples, problem.n_features
    zeros = np.zeros(n)
    h, g = outer.curvatures(problem.samples, zeros, 0.0), outer.derivatives(problem.samples, zeros, 0.0)
    capacity = min(d, max(1, _CACHED // d)) if caches else 0
    length = d if caches else 0
    covariates = Covariates(
        vector(np.zeros(length)),
        np.empty((capacity, d)),  # memory is not taken before it is written
        np.full(length, -1, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    constant = outer.value(problem.samples, zeros, 0.0)
    f = QuadraticCoordinates(
        line=Recurrences(np.zeros(9), constant, float(g.sum()), float(h.sum()), problem.has_intercept),
        u=vector(np.zeros(n)),
        h=h,
        sigma=problem.matrix.transpose_dot(g),
        c=problem.matrix.transpose_dot(h) if problem.has_intercept else np.zeros(0),
        covariates=covariates,
        image=touched(n),
    )
    f.synchronise(problem, w)
    return f


def _smooth(problem: Problem, w: np.ndarray, vector: Callable[[np.ndarray], Vector]) -> SmoothCoordinates:
    n = problem.n_samples
    p = problem.matrix.dot(w)
    everywhere = problem.has_intercept or not problem.matrix.is_sparse
    rows = index_set(n, np.arange(n) if everywhere else np.flatnonzero(p))
    line = PredictionLine(
        problem.samples, problem.loss_smoothness(), problem.has_intercept, p, np.zeros(n), rows, np.zeros(3)
    )
    f = SmoothCoordinates(line, alpha=vector(np.zeros(n)), image=touched(n))
    f.synchronise(problem, w)
    return f
