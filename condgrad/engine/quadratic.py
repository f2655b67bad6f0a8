r"""Quadratic: least squares over l1 balls, or with an l1 penalty, on the moments of the data alone.

With z_j = scale_j (x_j - mean_j) and weights that sum to one,

    F(x) = ||y - sum_j x_j z_j||^2 / 2 + (l2/2) ||x||_2^2 = x'Gx/2 - c'x + ||y||^2/2,

so the correlations are rho = c - Gx, and every point of a path costs products with a d x d matrix, whatever n is.

**Certificates.** Over the ball of radius r the gap is r max_j size(rho_j) - x'rho, where the size is |rho_j|, or rho_j
alone where coefficients are at least 0. With a penalty alpha, no minimiser x* has a larger norm than
B = F(x) / alpha + ||x||_1, for F is not negative; and F(x*) >= F(x) - rho'(x* - x), since F is convex. So

    F(x) + alpha ||x||_1 - F(x*) - alpha ||x*||_1 <= B max(0, max_j size(rho_j) - alpha) + alpha ||x||_1 - x'rho.

**Rounding.** Let nu_j be the norm of column j of the table from which the moments were taken, in units of z_j. An entry
G_jk is off by at most gamma nu_j nu_k, c_j by gamma nu_j nu_y, where gamma has the terms of a sum of the moments five
times: once for it, twice for the product of means that is taken off, twice for the sum of the weights by which both are
divided. So rho_j, and its own sum of d products, is off by at most gamma nu_j S with S = nu_y + sum_k |x_k| nu_k; x'rho
by gamma (S - nu_y) S; and F by gamma S^2. The error of max_j is taken from max_j (size(rho_j) + gamma nu_j S): columns
far from the largest do not matter, however long. Targets may have been rounded when an offset was subtracted, at most
to UNIT of their mean besides: that much comes to gamma S, and to nu_y. A standard deviation is itself off by gamma
nu_j^2 of its size: with ``standardize`` nu_j, which is then 1 at least, is squared.

Features whose deviation from the mean could be rounding alone have no coefficient, but their correlations count. With
``standardize`` they count as constant, and where the moments cannot tell whether they are, no point is certified.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.engine.moments import HasMoments, Moments
from condgrad.linalg.gram_minimiser import SOLVED, solve_model
from condgrad.linalg.gram_model import correlate, empty_model
from condgrad.linalg.rounding import UNIT, gamma

_CONSTANT = 1e-12  # share of its size below which the deviation of a feature from its mean is rounding
_INNER = 1e-3  # share of the tolerance that a gap may use up: solutions are exact, and the rest is for rounding
_BATCH = 30  # features that join the working set at most at a time
_FIRST = 0.9  # share of the largest correlation that the first features of a working set have at least
_OUTSIDE, _NEVER = -1, -2  # places of features that may join the working set, and of those that may not
_MOST_ROUNDS = 100  # rounds in which features join, for one target


class Points(NamedTuple):
    """Certified points, one entry or row for each target; ``W`` and ``intercept`` are those of the features as given.

    ``norm`` is the norm that the ball bounds, ``alpha`` the largest correlation, a penalty of which it is the solution.
    """

    W: np.ndarray
    intercept: np.ndarray
    norm: np.ndarray
    alpha: np.ndarray
    gap: np.ndarray
    rounding: np.ndarray
    objective: np.ndarray


class Quadratic:
    """The problem of some samples.

    Parameters
    ----------
    table : HasMoments
    moments : Moments
        Those of the samples.
    has_intercept, standardize : bool
    l2 : float
        With ``standardize`` it counts the coefficients of the standardised features, else those of the features.
    feature_weight : array, optional
        Positive: what a unit of each coefficient costs.
    is_symmetric : bool
        Whether coefficients may have both signs; otherwise they are at least 0.

    Attributes
    ----------
    scale : float
        The objective at zero.
    largest : float
        The largest correlation at zero, which is the smallest penalty whose solution is zero.
    """

    def __init__(
        self,
        table: HasMoments,
        moments: Moments,
        *,
        has_intercept: bool,
        standardize: bool = False,
        l2: float = 0.0,
        feature_weight: np.ndarray | None = None,
        is_symmetric: bool = True,
    ) -> None:
        d = table.shape[1]
        M = moments.M / moments.weight
        means = M[-1, : d + 1] if has_intercept else np.zeros(d + 1)
        centred = M[: d + 1, : d + 1] - np.outer(means, means)
        squares = np.maximum(centred.diagonal(), 0.0)
        self.mean, self.y_mean = table.shift + means[:d], table.y_shift + float(means[d])
        spread = np.sqrt(squares[:d])
        size = np.hypot(spread, self.mean)
        self.gamma = gamma(5 * moments.length + d + 16)
        norms, norm_y = np.split(np.sqrt(M.diagonal()[:-1]), [d])
        unknown = np.sqrt(self.gamma) * norms  # spread that may be rounding
        self.is_varying = spread > unknown
        self.scale_of, self.is_certain = np.ones(d), True
        if standardize:
            self.scale_of = np.divide(1.0, spread, out=np.zeros(d), where=self.is_varying)
            self.is_certain = bool((self.is_varying | (unknown <= _CONSTANT * size)).all())
            norms = norms * norms * self.scale_of
        bends = np.full(d, l2)
        if feature_weight is not None:
            self.scale_of = self.scale_of / feature_weight
            bends /= feature_weight**2
        self.G = centred[:d, :d] * np.outer(self.scale_of, self.scale_of)
        self.G.flat[:: d + 1] += bends
        self.norms = np.hypot(norms * self.scale_of, np.sqrt(bends))
        self.c = centred[:d, d] * self.scale_of
        self.squared_y = float(squares[d])
        self.far = UNIT * abs(table.y_shift)
        self.norm_y = float(norm_y[0]) + self.far
        self.has_intercept, self.is_symmetric, self.n_features = has_intercept, is_symmetric, d
        self.scale = 0.5 * self.squared_y
        self.largest = float(self.sizes(self.c).max(initial=0.0))

    def sizes(self, correlations: np.ndarray) -> np.ndarray:
        """Return how fast F falls along each feature, in the direction that its sign allows."""
        return np.asarray(np.abs(correlations) if self.is_symmetric else np.maximum(correlations, 0.0))

    def solve(self, targets: np.ndarray, *, is_penalised: bool, tol: float) -> Points:
        """Return the solutions over balls of ascending radii, or with falling penalties, to a relative gap of ``tol``.

        Each point has its own certificate; where rounding, or features that depend on each other, do not let a gap
        fall to the tolerance, it says so.
        """
        model = empty_model(self.n_features, self.is_symmetric)
        X = np.zeros((targets.size, self.n_features))
        place = np.where(self.is_varying, _OUTSIDE, _NEVER)
        limit = 0.0 if is_penalised else _INNER * tol * self.scale  # with penalties the gap is not that of the model
        if self.largest > 0.0:
            _follow(self.G, self.c, self.squared_y, model, place, is_penalised, targets, limit, X)
        norm = np.abs(X).sum(axis=1)
        if not is_penalised:  # rounding may have left the ball
            X *= np.divide(targets, norm, out=np.ones(norm.size), where=norm > targets)[:, None]
            norm = np.minimum(norm, targets)
        return self._certified(X, norm, targets, is_penalised)

    def _certified(self, X: np.ndarray, norm: np.ndarray, targets: np.ndarray, is_penalised: bool) -> Points:
        """Return the points with their certificates; see the formulas above."""
        correlations = self.c - X @ self.G
        along = (X * correlations).sum(axis=1)
        objective = np.maximum(0.5 * (self.squared_y - X @ self.c - along), 0.0)
        sizes = self.sizes(correlations)
        largest = sizes.max(axis=1, initial=0.0)
        spread = np.abs(X) @ self.norms
        S = self.norm_y + spread
        off = self.gamma * S + self.far
        at_most = (sizes + off[:, None] * self.norms).max(axis=1, initial=0.0)
        if is_penalised:
            reach = (objective + off * S) / targets + norm
            beyond, at_most = np.maximum(largest - targets, 0.0), np.maximum(at_most - targets, 0.0)
            gap = reach * beyond + targets * norm - along
            rounding = reach * (at_most - beyond) + 8.0 * UNIT * (reach * largest + targets * norm)
        else:
            gap = targets * largest - along
            rounding = targets * (at_most - largest) + 8.0 * UNIT * targets * largest
        rounding += off * (2.0 * spread + S) if self.is_certain else np.inf
        W = X * self.scale_of
        intercept = self.y_mean - W @ self.mean if self.has_intercept else np.zeros(targets.size)
        return Points(W, intercept, norm, largest, np.maximum(gap, 0.0), rounding, objective)


def mean_squared_errors(table: HasMoments, moments: Moments, W: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return the mean squared error of each model, a row of W and its intercept, on the samples of the moments."""
    Q = np.empty((W.shape[0], W.shape[1] + 2))
    Q[:, :-2], Q[:, -2] = -W, 1.0
    Q[:, -1] = table.y_shift - intercept - W @ table.shift
    return np.maximum(np.einsum("kj,kj->k", Q @ moments.M, Q), 0.0) / moments.weight


@kernel
def _follow(G, c, squared_y, model, place, is_penalised, targets, limit, X):
    """Minimise F for one target after the other, on a working set that grows; rows of X are the solutions."""
    d = c.shape[0]
    atoms, correlation = np.empty(d, np.int64), c.copy()
    for t in range(targets.shape[0]):
        target = targets[t]
        if not target > 0.0:
            continue
        for _ in range(_MOST_ROUNDS):
            if model.n_atoms() > 0:
                status, _, _, _ = solve_model(
                    model, squared_y, is_penalised, target, limit, 1000 + 20 * model.n_atoms()
                )
                if status != SOLVED:
                    break
                _correlate_all(G, c, model, atoms, correlation)
            if _admit(G, c, model, correlation, atoms, place, is_penalised, target, limit) == 0:
                break
        for q in range(model.n_atoms()):
            X[t, atoms[q]] = model.x[q]


@kernel
def _correlate_all(G, c, model, atoms, correlation):
    """Fill in the correlations of all features."""
    for j in range(c.shape[0]):
        correlation[j] = c[j]
    for q in range(model.n_atoms()):
        x = model.x[q]
        if x != 0.0:
            row = G[atoms[q]]
            for j in range(c.shape[0]):
                correlation[j] -= x * row[j]


@kernel
def _admit(G, c, model, correlation, atoms, place, is_penalised, target, limit):
    """Let the features with the largest correlations above all atoms join, if the gap asks for it; return how many."""
    d, n_atoms = c.shape[0], model.n_atoms()
    level, along, largest = 0.0, 0.0, 0.0
    for q in range(n_atoms):
        value = correlation[atoms[q]]
        level = max(level, abs(value) if model.is_symmetric else value)
        along += model.x[q] * value
    for j in range(d):
        value = correlation[j]
        largest = max(largest, abs(value) if model.is_symmetric else value)
    if is_penalised:
        level = max(level, target)
        if largest <= level:
            return 0
    elif target * largest - along <= limit:
        return 0
    threshold = max(level, _FIRST * largest) if n_atoms == 0 else level
    n_new = 0
    while n_new < _BATCH and n_atoms + n_new < d:
        best, chosen = threshold, -1
        for j in range(d):
            value = abs(correlation[j]) if model.is_symmetric else correlation[j]
            if place[j] == _OUTSIDE and value >= best and value > level:
                best, chosen = value, j
        if chosen < 0:
            break
        q = n_atoms + n_new
        atoms[q], place[chosen] = chosen, q
        for k in range(q + 1):
            model.G[q, k] = model.G[k, q] = G[chosen, atoms[k]]
        model.c[q] = c[chosen]
        n_new += 1
    if n_new > 0:
        model.append(n_new)
        correlate(model)
    return n_new
