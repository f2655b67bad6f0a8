"""ExactEngine: one certified point of the path after another, from a working set and a lazy oracle."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.linalg.rounding import FORMULA, UNIT, gamma
from condgrad.paths.columns import Columns
from condgrad.paths.gram_solver import GramSolver
from condgrad.paths.oracle import LazyOracle
from condgrad.paths.points import InterruptedPathError
from condgrad.paths.quadratic import duality_gap
from condgrad.paths.sweep_solver import SweepSolver
from condgrad.paths.sweeps import Atoms, Fit, renew, sums
from condgrad.run.interrupts import Interrupts

_IDLE = 150  # atoms without a coefficient that the working set keeps, or as many as those with one
_INNER = 0.6  # share of the tolerance that the working set's own gap may use up
_AHEAD = 0.1  # share of the last gap that the working set's own gap may have while atoms are missing
_FIRST = 0.9  # the first atoms are those with at least this share of the largest correlation
_NEAR = 0.9  # features with at least this share of the largest correlation are asked first in later rounds
_BATCH = 30  # atoms that enter at least after one look, or a quarter of those with a coefficient
_OUTSIDE = 1e-12  # of the radius, by which rounding may take a norm beyond it
_SUMS = 8  # operations beside the products of a sum: centring, scaling, adding up threads
_MOST_IDLE = 5  # rounds without a new atom, each ten times as accurate as the last, after which rounding has won


class Point(NamedTuple):
    """A certified point: its nonzero coefficients (of scaled features) and what is known about it."""

    features: np.ndarray
    x: np.ndarray
    norm: float
    alpha: float
    gap: float
    rounding: float
    objective: float

    @property
    def certified_gap(self) -> float:
        """The gap with all that rounding may have done to it."""
        return self.gap + self.rounding


class ExactEngine:
    """Solves points one after the other, each from where the last one ended.

    With ``l2`` the objective is ||R||^2/2 + (l2/2) ||x||_2^2: the Lasso of the features with a sample sqrt(l2) e_j more
    for each, where y is zero. Its residuals are R and -sqrt(l2) x, so a correlation is <z_j, R> - l2 x_j, and that of a
    feature without a coefficient is what it was: the oracle does not notice.
    """

    def __init__(
        self,
        columns: Columns,
        n_stored: int,
        y: np.ndarray,
        has_intercept: bool,
        interrupts: Interrupts | None = None,
        l2: float = 0.0,
    ) -> None:
        self.columns, self.y, self.has_intercept, self.l2 = columns, y, has_intercept, l2
        self.interrupts = interrupts
        self.R, self.a, self.buffer = y.copy(), columns.weight * y, np.zeros(y.size)
        self.squared_y = float(self.a @ y)
        self.features = np.empty(0, np.int64)
        self.is_atom = np.zeros(columns.norm.size, np.bool_)  # whether a feature is among them
        self.solver: GramSolver | SweepSolver = GramSolver(self)
        self.oracle = LazyOracle(columns, n_stored, self.R)
        # The largest norm of a column as it is stored: what its sums are made of, its mean included.
        self.largest_column = float(np.hypot(columns.norm, columns.scale * columns.mean).max())
        mu = float(self.a.sum()) if has_intercept else 0.0
        self.largest = self.oracle.look(self.a, mu, -1.0, np.inf).largest  # lambda_max: every column is seen once
        self.fit, self.largest_now = Fit(self.squared_y, 0.0, 0.0, 0.0, mu), self.largest
        self.near, self.near_sizes, self.near_level = np.empty(0, np.int64), np.empty(0), 0.0
        self.n_looks = 0

    @property
    def scale(self) -> float:
        """Half the squared norm of y, the objective at zero: what relative gaps are relative to."""
        return 0.5 * self.squared_y

    def solve(self, target: float, *, is_penalised: bool, tol: float) -> Point:
        """Return the point at a positive radius, or penalty, with a gap of at most ``tol * scale``, rounding included.

        The gap is exact: the oracle proves the largest correlation. It exceeds the limit only where rounding does not
        let it fall any further.
        """
        limit = tol * self.scale
        gap = self._gap(self.fit, target, is_penalised, self.largest_now)
        rounding = self._rounding_now(target, is_penalised)
        if gap + rounding <= limit:  # the last point serves for this one too
            return self._point(gap, rounding)
        limit = max(limit - rounding, rounding)  # where rounding is more than half of it, that much is the best
        inner_tol = _INNER * limit
        enough = max(inner_tol, _AHEAD * gap) if gap < np.inf else inner_tol
        if is_penalised and not self.solver.is_exact:
            self._enter_ahead(target, tol)
        n_idle = 0
        while True:
            self.check_interrupts()
            self.fit = self.solver.minimise(target, is_penalised, enough)
            level = self._atom_level() if self.features.size else _FIRST * self.largest
            near, sizes = self._look_near(level)
            self.largest_now = float(sizes.max(initial=level))
            gap = self._gap(self.fit, target, is_penalised, self.largest_now)
            if gap > limit and (near.size or enough > inner_tol):  # no need yet to ask about all columns
                self._enter(near, sizes, tol)
                enough = max(inner_tol, min(enough, _AHEAD * gap)) if near.size else inner_tol
                continue
            found, sizes = self._look_everywhere(level)
            self.largest_now = max(self.largest_now, float(sizes.max(initial=level)))
            gap = self._gap(self.fit, target, is_penalised, self.largest_now)
            n_idle = 0 if found.size else n_idle + 1
            if gap <= limit or n_idle > _MOST_IDLE:
                point = self._point(gap, self._rounding_now(target, is_penalised))
                self._prune()
                return point
            if found.size:
                self._enter(found, sizes, tol)
            else:
                inner_tol *= 0.1
                enough = inner_tol
                self._change_solver(tol)

    def renew(self, x: np.ndarray) -> Fit:
        """Renew the residuals for the coefficients x of the atoms; return the sums that a certificate needs."""
        p = self.solver.atoms.predict(x)
        return Fit(*renew(self.columns, p, x, self.l2, self.y, self.has_intercept, self.R, self.a))

    def point_at(
        self, features: np.ndarray, x: np.ndarray, R: np.ndarray, largest: float, target: float, is_penalised: bool
    ) -> Point:
        """Return a point that was found elsewhere; ``largest`` bounds the correlations with its residual R."""
        squared_r, y_r = sums(self.columns.weight, self.y, R, x, self.l2)
        norm = float(np.abs(x).sum())
        fit = Fit(squared_r, self.squared_y - y_r, y_r - squared_r, norm, 0.0)
        gap = max(self._gap(fit, target, is_penalised, largest), 0.0)
        rounding = self.rounding(fit, x.size, largest, target, is_penalised)
        return Point(features, x, norm, largest, gap, rounding, 0.5 * squared_r)

    def zero(self, rounding: float = 0.0) -> Point:
        """Return the point w = 0."""
        return Point(np.empty(0, np.int64), np.empty(0), 0.0, self.largest, 0.0, rounding, self.scale)

    def rounding(self, fit: Fit, n_terms: int, largest: float, target: float, is_penalised: bool) -> float:
        """Return a bound of what rounding does to the gap at a fit of ``n_terms`` coefficients.

        The reasoning is that of :mod:`condgrad.linalg.rounding`: residuals are off by ``delta``, sums over the samples
        by gamma(n) times the norms of what they multiply.
        """
        y, R = math.sqrt(self.squared_y), math.sqrt(max(fit.squared_r, 0.0))
        spread = fit.norm * self.largest_column + y
        over_samples = gamma(self.y.size + _SUMS)
        of_product = over_samples + FORMULA * UNIT
        delta = gamma(n_terms + _SUMS) * (2.0 * spread + R) + over_samples * abs(fit.mu)
        of_largest = of_product * (R * self.largest_column + self.l2 * fit.norm)
        if not is_penalised:
            moved = target * self.largest_column + spread
            of_gap = 2.0 * target * of_largest + of_product * (R * (moved + y + R) + self.l2 * fit.norm**2)
            return of_gap + 2.0 * R * delta + delta * delta + abs(fit.mu) * (moved + R)
        share = target / largest if largest > 0.0 else 0.0
        of_dual = y * R * share * (of_largest / largest if largest > 0.0 else 0.0)
        of_sums = over_samples * (4.0 * self.squared_y + 4.0 * R * R + 2.0 * target * fit.norm) * max(1.0, share)
        return of_dual + of_sums + R * delta + delta * delta

    def check_interrupts(self) -> None:
        """Raise where Ctrl-C was pressed."""
        if self.interrupts is not None and self.interrupts.heard():
            raise InterruptedPathError

    def _atom_level(self) -> float:
        """Return the largest correlation of an atom with the residual, not with what a model of it holds."""
        out = np.empty(self.features.size)
        return self.solver.atoms.correlate(self.a, self.fit.mu, self.solver.x, self.l2, out)

    def _look_near(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the features above ``level``, and their correlations, among those that were close at the last look."""
        near = self.near[~self.is_atom[self.near]]
        sizes = np.empty(near.size)
        Atoms(self.columns, near).correlate(self.a, self.fit.mu, np.zeros(near.size), 0.0, sizes)
        self.oracle.n_looked += near.size
        sizes = np.abs(sizes)
        return near[sizes > level], sizes[sizes > level]

    def _look_everywhere(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return all features above ``level`` that are no atoms, and their correlations."""
        self.n_looks += 1
        self.oracle.move(self.R)
        look = self.oracle.look(self.a, self.fit.mu, level, _NEAR * level)
        self.near, self.near_sizes, self.near_level = look.features, look.sizes, level
        is_new = (look.sizes > level) & ~self.is_atom[look.features]
        return look.features[is_new], look.sizes[is_new]

    def _rounding_now(self, target: float, is_penalised: bool) -> float:
        return self.rounding(self.fit, int(np.count_nonzero(self.solver.x)), self.largest_now, target, is_penalised)

    def _point(self, gap: float, rounding: float) -> Point:
        x = self.solver.x
        used = np.flatnonzero(x)
        fit = self.fit
        return Point(
            self.features[used], x[used], fit.norm, self.largest_now, max(gap, 0.0), rounding, 0.5 * fit.squared_r
        )

    def _gap(self, fit: Fit, target: float, is_penalised: bool, largest: float) -> float:
        if not is_penalised:  # outside of the ball it would certify nothing
            return target * largest - fit.along if fit.norm <= target * (1.0 + _OUTSIDE) else np.inf
        return duality_gap(self.squared_y, fit.fit, fit.along, target * fit.norm, target, largest)

    def _enter_ahead(self, target: float, tol: float) -> None:
        """Add the features that a smaller penalty will want, if correlations fall no faster than the penalty does.

        This is the strong rule of Tibshirani et al. (2012), for the features that were close at the last look.
        """
        wanted = (self.near_sizes >= 2.0 * target - self.near_level) & ~self.is_atom[self.near]
        if wanted.any():
            self._enter(self.near[wanted], self.near_sizes[wanted], tol)

    def _enter(self, found: np.ndarray, sizes: np.ndarray, tol: float) -> None:
        """Add the best of the features that were found to the working set."""
        if found.size == 0:
            return
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
