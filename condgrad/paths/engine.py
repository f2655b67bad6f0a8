"""ExactEngine: one certified point of the path after another, from a working set and a lazy oracle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.paths.columns import Columns, extend_gram
from condgrad.paths.oracle import LazyOracle
from condgrad.paths.quadratic import GAVE_UP, Model, correlate, duality_gap, solve_model
from condgrad.paths.sweeps import correlate_columns, renew, solve_kkt, sweep_model

_IDLE = 150  # atoms without a coefficient that the working set keeps, or as many as those with one
_INNER = 0.6  # share of the tolerance that the working set's own gap may use up
# Sweeps take over where there are so many times more atoms than entries in a column, at rough and at tight tolerances.
_DENSE_WORK = 20, 120
_ROUGH_TOL = 1e-5  # relative gaps above this are rough ones
_MOST_DENSE = 800  # nonzero coefficients up to which a dense factor may serve
_ROUNDING = 1e-15  # relative gaps below this are lost in rounding
_MOST_PENALTIES = 50
_MOST_SWEEPS = 200  # rounds of sweeps and Newton steps for one penalty
_SLOPE_ACCURACY = 1e-3  # of the rate at which the norm falls with the penalty
_FIRST = 0.9  # the first atoms are those with at least this share of the largest correlation
_NEAR = 0.9  # features with at least this share of the largest correlation are asked first in later rounds
_BATCH = 30  # atoms that enter at least after one look, or a quarter of those with a coefficient
_MOST_IDLE = 5  # rounds without a new atom, each ten times as accurate as the last, after which rounding has won


class Point(NamedTuple):
    """A certified point: its nonzero coefficients (of scaled features) and what is known about it."""

    features: np.ndarray
    x: np.ndarray
    norm: float
    alpha: float
    gap: float
    objective: float


class Fit(NamedTuple):
    """Sums at a point: ||R||^2, <y, Xx>, <R, Xx>, ||x||_1, and the sum of the weighted residuals."""

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
        self.is_atom = np.zeros(columns.norm.size, np.bool_)  # whether a feature is among them
        self.solver: GramSolver | SweepSolver = GramSolver(self)
        self.oracle = LazyOracle(columns, n_stored, self.R)
        mu = float(self.a.sum()) if has_intercept else 0.0
        self.largest = self.oracle.look(self.a, mu, -1.0, np.inf).largest  # lambda_max: every column is seen once
        self.fit, self.largest_now = Fit(self.squared_y, 0.0, 0.0, 0.0, mu), self.largest
        self.near = np.empty(0, np.int64)
        self.n_rounds = self.n_looks = 0

    @property
    def scale(self) -> float:
        """Half the squared norm of y, the objective at zero: what relative gaps are relative to."""
        return 0.5 * self.squared_y

    def solve(self, target: float, *, is_penalised: bool, tol: float) -> Point:
        """Return the point at a positive radius, or penalty, with a gap of at most ``tol * scale``.

        The gap is exact: the oracle proves the largest correlation. It exceeds the limit only where rounding does not
        let it fall any further.
        """
        limit = tol * self.scale
        gap = self._gap(self.fit, target, is_penalised, self.largest_now)
        if gap <= limit:  # the last point serves for this one too
            return self._point(gap)
        inner_tol = _INNER * limit
        n_idle = 0
        while True:
            self.n_rounds += 1
            self.solver.minimise(target, is_penalised, inner_tol)
            x = self.solver.x
            self.fit = Fit(*renew(self.columns, self.features, x, self.y, self.has_intercept, self.p, self.R, self.a))
            level = float(np.abs(self.solver.correlation).max()) if x.size else _FIRST * self.largest
            near, sizes = self._look_near(level)
            self.largest_now = float(sizes.max(initial=level))
            gap = self._gap(self.fit, target, is_penalised, self.largest_now)
            if gap > limit and near.size:  # no need yet to ask about all columns
                self._enter(near, sizes, tol)
                continue
            found, sizes = self._look_everywhere(level)
            self.largest_now = max(self.largest_now, float(sizes.max(initial=level)))
            gap = self._gap(self.fit, target, is_penalised, self.largest_now)
            n_idle = 0 if found.size else n_idle + 1
            if gap <= limit or n_idle > _MOST_IDLE:
                point = self._point(gap)
                self._prune()
                return point
            if found.size:
                self._enter(found, sizes, tol)
            else:
                inner_tol *= 0.1
                self._change_solver(tol)

    def _look_near(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the features above ``level``, and their correlations, among those that were close at the last look."""
        near = self.near[~self.is_atom[self.near]]
        sizes = np.empty(near.size)
        correlate_columns(self.columns, near, self.a, self.fit.mu, sizes)
        self.oracle.n_looked += near.size
        sizes = np.abs(sizes)
        return near[sizes > level], sizes[sizes > level]

    def _look_everywhere(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return all features above ``level`` that are no atoms, and their correlations."""
        self.n_looks += 1
        self.oracle.move(self.R)
        look = self.oracle.look(self.a, self.fit.mu, level, _NEAR * level)
        self.near = look.features
        is_new = (look.sizes > level) & ~self.is_atom[look.features]
        return look.features[is_new], look.sizes[is_new]

    def _point(self, gap: float) -> Point:
        x = self.solver.x
        used = np.flatnonzero(x)
        return Point(
            self.features[used], x[used], self.fit.norm, self.largest_now, max(gap, 0.0), 0.5 * self.fit.squared_r
        )

    def _gap(self, fit: Fit, target: float, is_penalised: bool, largest: float) -> float:
        if not is_penalised:
            return target * largest - fit.along
        return duality_gap(self.squared_y, fit.fit, fit.along, target * fit.norm, target, largest)

    def _enter(self, found: np.ndarray, sizes: np.ndarray, tol: float) -> None:
        """Add the best of the features that were found to the working set."""
        new = found[np.argsort(-sizes, kind="stable")[: max(_BATCH, np.count_nonzero(self.solver.x) // 4)]]
        self.features = np.concatenate([self.features, new])
        self.is_atom[new] = True
        self.solver.enter(new.size)
        self._change_solver(tol)

    def _change_solver(self, tol: float) -> None:
        if self.solver.is_outgrown(tol):
            self.solver = SweepSolver(self, self.solver.x.copy(), self.solver.alpha)

    def _prune(self) -> None:
        """Forget atoms that the solver does not need where there are many of them."""
        needed = self.solver.needed()
        if self.features.size > 2 * needed.size + _IDLE:
            self.is_atom[self.features] = False
            self.features = self.features[needed]
            self.is_atom[self.features] = True
            self.solver.keep(needed)


class GramSolver:
    """The working set as a dense quadratic, solved exactly: for supports of up to some hundred atoms."""

    def __init__(self, engine: ExactEngine) -> None:
        self.engine = engine
        self.model = _empty_model(64)
        self.alpha = np.inf
        self.gave_up = False
        self.n_changes = 0

    @property
    def x(self) -> np.ndarray:
        """The coefficients of the atoms."""
        return self.model.x[: self.engine.features.size]

    @property
    def correlation(self) -> np.ndarray:
        """The correlations of the atoms with the residual."""
        return self.model.correlation[: self.engine.features.size]

    def minimise(self, target: float, is_penalised: bool, tol: float) -> None:
        """Minimise over the working set to a gap of at most ``tol``."""
        status, changes, self.alpha, _ = solve_model(
            self.model, self.engine.squared_y, is_penalised, target, tol, 1000 + 20 * self.engine.features.size
        )
        self.n_changes += changes
        self.gave_up = status == GAVE_UP

    def is_outgrown(self, tol: float) -> bool:
        """Tell whether changes of the support cost more than sweeps would, or have led nowhere."""
        n_atoms, n_used = self.model.sizes
        factor = _DENSE_WORK[0] if tol > _ROUGH_TOL else _DENSE_WORK[1]
        is_large = n_used > _MOST_DENSE or (n_used > 100 and n_atoms > factor * self.engine.oracle.work)
        return bool(is_large or self.gave_up)

    def enter(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the engine."""
        engine, n_atoms = self.engine, self.engine.features.size
        first = n_atoms - n_new
        if n_atoms > self.model.c.shape[0]:
            self.model = _copy_model(self.model, np.arange(first), 2 * n_atoms)
        extend_gram(engine.columns, engine.features, first, self.model.c, engine.y, self.model.G, engine.buffer)
        self.model.x[first:n_atoms] = 0.0
        self.model.is_in[first:n_atoms] = False
        self.model.sizes[0] = n_atoms
        correlate(self.model)

    def needed(self) -> np.ndarray:
        """Return the places of the atoms in the support."""
        return np.flatnonzero(self.model.is_in[: self.model.sizes[0]])

    def keep(self, needed: np.ndarray) -> None:
        """Keep these atoms alone."""
        self.model = _copy_model(self.model, needed, self.model.c.shape[0])


class SweepSolver:
    """The working set through its columns: coordinate descent and conjugate gradients."""

    def __init__(self, engine: ExactEngine, x: np.ndarray, alpha: float) -> None:
        self.engine, self.x, self.alpha = engine, x, min(alpha, engine.largest)
        self.correlation = np.zeros(x.size)
        self.is_settled = False  # x is the solution for the last penalty, with no atom entered since
        self.n_changes = 0

    def minimise(self, target: float, is_penalised: bool, tol: float) -> None:
        """Minimise over the working set to a gap of at most ``tol``."""
        if is_penalised:
            self._sweep(target, tol)
        else:
            self._find_radius(target, tol)

    def _find_radius(self, radius: float, tol: float) -> None:
        """Search for the penalty whose solution has the norm ``radius``; its last bit is done by scaling.

        On a support S with signs s the norm falls with alpha at the rate s'z, where G_SS z = s: Newton steps on alpha,
        kept between penalties whose norms are known to be too large and too small. Below alpha = tol / radius the
        radius does not bind, as far as the tolerance can tell.
        """
        e, floor = self.engine, tol / radius
        low, high = 0.0, e.largest
        for t in range(_MOST_PENALTIES):
            self._sweep(max(self.alpha, floor), max(max(0.5 ** (t + 1), 0.05) * tol, _ROUNDING * e.squared_y))
            norm = float(np.abs(self.x).sum())
            trials = [self.x] if norm <= radius else []
            trials += [self.x * (radius / norm)] if norm > 0.0 else []
            gap, best = min(((self._gap_at(trial, radius), k) for k, trial in enumerate(trials)))
            if gap <= tol:
                break
            low, high = (self.alpha, high) if norm > radius else (low, self.alpha)
            support = np.flatnonzero(self.x)
            sign = np.sign(self.x[support])
            z = solve_kkt(e.columns, e.features, support, sign, e.has_intercept, _SLOPE_ACCURACY, np.empty(e.y.size))
            slope = float(sign @ z)
            alpha = self.alpha + (norm - radius) / slope if slope > 0.0 else low
            if not low < alpha < high:
                alpha = 0.5 * (low + high) if low > 0.0 else 0.1 * high
            ahead = self.x[support] - (alpha - self.alpha) * z
            self.x[support] = np.where(ahead * sign > 0.0, ahead, 0.0)
            self.alpha = alpha
        self.x = trials[best]
        self._gap_at(self.x, radius)  # the correlations that belong to it

    def _gap_at(self, x: np.ndarray, radius: float) -> float:
        """Return the Frank-Wolfe gap at x over the working set, and renew its correlations."""
        e = self.engine
        fit = Fit(*renew(e.columns, e.features, x, e.y, e.has_intercept, e.p, e.R, e.a))
        return radius * correlate_columns(e.columns, e.features, e.a, fit.mu, self.correlation) - fit.along

    def _sweep(self, alpha: float, tol: float) -> None:
        e = self.engine
        _, rounds = sweep_model(
            e.columns, e.features, self.x, e.y, e.squared_y, e.has_intercept, alpha, tol, self.is_settled, _MOST_SWEEPS,
            e.p, e.R, e.a, self.correlation,
        )  # fmt: skip
        self.is_settled = True
        self.alpha = alpha
        self.n_changes += rounds

    def is_outgrown(self, tol: float) -> bool:
        """Return False: there is no other way for larger working sets."""
        return False

    def enter(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the engine."""
        self.x = np.concatenate([self.x, np.zeros(n_new)])
        self.correlation = np.zeros(self.x.size)
        self.is_settled = False

    def needed(self) -> np.ndarray:
        """Return the places of the atoms with a coefficient."""
        return np.flatnonzero(self.x)

    def keep(self, needed: np.ndarray) -> None:
        """Keep these atoms alone."""
        self.x, self.correlation = self.x[needed], self.correlation[needed]


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
