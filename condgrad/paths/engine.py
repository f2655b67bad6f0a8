"""ExactEngine: one certified point of the path after another, from a working set and a lazy oracle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.paths.columns import Columns, extend_gram, predict
from condgrad.paths.oracle import LazyOracle
from condgrad.paths.quadratic import GAVE_UP, Model, correlate, duality_gap, solve_model

_BATCH = 30  # atoms that enter after one look
_IDLE = 150  # atoms without a coefficient that the working set keeps
_MOST_ROUNDS = 500


class Point(NamedTuple):
    """A certified point: its nonzero coefficients (of scaled features) and what is known about it."""

    features: np.ndarray
    x: np.ndarray
    radius: float
    alpha: float
    gap: float
    objective: float


class Fit(NamedTuple):
    """Inner products at a point: squares of y and R, <y, Xx>, <R, Xx>, the l1 norm, the sum of weighted residuals."""

    squared_r: float
    fit: float
    along: float
    norm: float
    mu: float


class ExactEngine:
    """Solves points one after the other, each from where the last one ended."""

    def __init__(self, columns: Columns, n_stored: int, y: np.ndarray, has_intercept: bool) -> None:
        self.columns, self.y, self.has_intercept = columns, y, has_intercept
        n = y.shape[0]
        self.p, self.R, self.a, self.buffer = np.zeros(n), y.copy(), columns.weight * y, np.zeros(n)
        self.squared_y = float(self.a @ y)
        self.features = np.empty(0, np.int64)
        self.model = _empty_model(64)
        self.oracle = LazyOracle(columns, n_stored, self.R)
        mu = float(self.a.sum()) if has_intercept else 0.0
        self.largest = self.oracle.look(self.a, mu, -1.0, np.inf).largest  # lambda_max: every column is seen once
        self.n_rounds = self.n_changes = 0

    @property
    def scale(self) -> float:
        """Half the squared norm of y, the objective at zero: what relative gaps are relative to."""
        return 0.5 * self.squared_y

    def solve(self, target: float, *, is_penalised: bool, tol: float) -> Point:
        """Return the point at a radius, or at a penalty, with a gap of at most ``tol * scale``."""
        limit = tol * self.scale
        inner_tol = 0.3 * limit
        while True:
            self.n_rounds += 1
            status, changes, _, _ = solve_model(
                self.model, self.squared_y, is_penalised, target, inner_tol, 1000 + 20 * self.features.size
            )
            self.n_changes += changes
            x = self.model.x[: self.features.size]
            fit = Fit(*_fit(self.columns, self.features, x, self.y, self.has_intercept, self.p, self.R, self.a))
            self.oracle.move(self.R)
            level = float(np.abs(self.model.correlation[: x.size]).max(initial=0.0))
            threshold = self._threshold(fit, target, is_penalised, limit)
            look = self.oracle.look(self.a, fit.mu, max(threshold, level) if x.size else threshold, level)
            largest = max(look.largest, level)
            gap = self._gap(fit, target, is_penalised, largest)
            if gap <= limit:
                used = np.flatnonzero(x)
                point = Point(self.features[used], x[used], fit.norm, largest, gap, 0.5 * fit.squared_r)
                self._prune()
                return point
            new = ~np.isin(look.features, self.features)
            if not new.any():
                inner_tol *= 0.1
                if status == GAVE_UP or inner_tol < 1e-30 * self.scale:
                    raise RuntimeError(f"stuck at {target}, gap {gap / self.scale}")
                continue
            order = np.argsort(-look.sizes[new], kind="stable")[:_BATCH]
            self._enter(look.features[new][order])

    def _threshold(self, fit: Fit, target: float, is_penalised: bool, limit: float) -> float:
        """Return how large the largest correlation may be for the gap to be at most ``limit``."""
        if not is_penalised:
            return (limit + fit.along) / target
        squared_r, y_r = fit.squared_r, self.squared_y - fit.fit
        wanted = 0.5 * squared_r + target * fit.norm - limit  # of the dual objective
        if wanted <= 0.0:
            return np.inf
        room = y_r * y_r - 2.0 * squared_r * wanted
        if room < 0.0 or y_r <= 0.0:
            return target
        return target / ((y_r - np.sqrt(room)) / squared_r)

    def _gap(self, fit: Fit, target: float, is_penalised: bool, largest: float) -> float:
        if not is_penalised:
            return target * largest - fit.along
        return duality_gap(self.squared_y, fit.fit, fit.along, target * fit.norm, target, largest)

    def _enter(self, new: np.ndarray) -> None:
        first = self.features.size
        self.features = np.concatenate([self.features, new])
        if self.features.size > self.model.c.shape[0]:
            self.model = _copy_model(self.model, np.arange(first), 2 * self.features.size)
        extend_gram(self.columns, self.features, first, self.model.c, self.y, self.model.G, self.buffer)
        self.model.x[first : self.features.size] = 0.0
        self.model.is_in[first : self.features.size] = False
        self.model.sizes[0] = self.features.size
        correlate(self.model)

    def _prune(self) -> None:
        """Forget atoms without a coefficient where there are many of them."""
        kept = np.flatnonzero(self.model.is_in[: self.features.size])
        if self.features.size > kept.size + _IDLE:
            self.model = _copy_model(self.model, kept, self.model.c.shape[0])
            self.features = self.features[kept]


def _empty_model(room: int) -> Model:
    zeros = np.zeros(room)
    return Model(
        np.zeros((room, room)), zeros, zeros.copy(), zeros.copy(), np.zeros(room, np.int64), np.zeros(room, np.bool_),
        np.zeros((room, room)), np.zeros(2, np.int64),
    )  # fmt: skip


def _copy_model(model: Model, kept: np.ndarray, room: int) -> Model:
    """Return a model with the ``kept`` atoms, all of the support among them, and room for more."""
    out, k, size = _empty_model(room), kept.size, int(model.sizes[1])
    out.G[:k, :k] = model.G[np.ix_(kept, kept)]
    for name in ("c", "x", "correlation", "is_in"):
        getattr(out, name)[:k] = getattr(model, name)[kept]
    place = np.empty(model.c.shape[0], np.int64)
    place[kept] = np.arange(k)
    out.support[:size] = place[model.support[:size]]
    out.U[:size, :size] = model.U[:size, :size]
    out.sizes[:] = k, size
    return out


@kernel
def _fit(columns, features, x, y, has_intercept, p, R, a):
    """Renew predictions, residuals and weighted residuals at x; return the sums that a certificate needs."""
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
