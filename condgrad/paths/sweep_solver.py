"""SweepSolver: a working set too large for a Gram matrix, solved through its columns.

Sweeps of coordinate descent find the support fast and then converge slowly; once they are slow, Newton steps on the
support take over. Where a step keeps the signs, it leads to the minimiser on the support; a coefficient that would
change its sign becomes zero and stops its cluster there, and the step is halved until the objective falls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.paths.clusters import factor, find_clusters, shorten
from condgrad.paths.columns import pack
from condgrad.paths.newton import solve_kkt
from condgrad.paths.quadratic import duality_gap
from condgrad.paths.sweeps import Atoms, Fit, follow_sweeps, sweep

_ROUNDING = 1e-15  # relative gaps below this are lost in rounding
_MOST_PENALTIES = 50
_MOST_ROUNDS = 200  # of sweeps, with or without a Newton step, for one penalty
_SUPPORT_SWEEPS = 1  # sweeps over the support after one over the whole working set
_PATIENCE = 2  # rounds of sweeps that may be left before Newton steps take over
_PAUSE = 4  # rounds of sweeps after a Newton step that did not halve the gap: the support has not settled
_SHORTEST = 1e-3  # of the Newton steps
_ZERO = 1e-12  # of a step: what is left of a coefficient that it takes to zero
_CG_ACCURACY = 0.5  # correlations may exceed alpha by this share of what the tolerance allows
_NEWTON_AIM = 0.4  # share of the gap that a Newton step would leave if all signs held
_BLOCK_ACCURACY = 0.1  # the same for sweeps within a cluster
_SLOPE_ACCURACY = 1e-3  # of the rate at which the norm falls with the penalty


class SweepSolver:
    """Coordinate descent and Newton steps over the engine's working set."""

    is_exact = False

    def __init__(self, engine: Any, x: np.ndarray, alpha: float) -> None:
        self.engine, self.x, self.alpha = engine, x, min(alpha, engine.largest)
        self.correlation = np.zeros(x.size)
        self.before, self.alpha_before = x.copy(), self.alpha
        self._arrange(np.empty(0, np.int64))
        weight = engine.columns.weight
        self.common = float(weight[0]) if (weight == weight[0]).all() else 0.0

    def _arrange(self, label: np.ndarray) -> None:
        """Put the atoms in the order of their clusters, in one place; ``label`` has those of the first atoms."""
        order, self.clusters = find_clusters(self.engine.columns, self.engine.features, self.engine.l2, label)
        self.engine.features = self.engine.features[order]
        self.x, self.before, self.correlation = self.x[order], self.before[order], self.correlation[order]
        self.atoms = Atoms(*pack(self.engine.columns, self.engine.features))

    def minimise(self, target: float, is_penalised: bool, tol: float) -> Fit:
        """Minimise over the working set to a gap of at most ``tol``; return the sums at the solution."""
        if not is_penalised:
            return self._find_radius(target, tol)
        if target != self.alpha:
            self._extrapolate(target)
        return self._descend(target, tol)

    def _extrapolate(self, alpha: float) -> None:
        """Go on along the line from the last but one solution to the last: the path is made of lines."""
        x, way = self.x, self.alpha_before - self.alpha
        if way != 0.0:
            ahead = x + (self.alpha - alpha) / way * (x - self.before)
            self.x = np.where(ahead * x > 0.0, ahead, 0.0)
        self.before, self.alpha_before = x, self.alpha

    def _find_radius(self, radius: float, tol: float) -> Fit:
        """Search for the penalty whose solution has the norm ``radius``; its last bit is done by scaling.

        On a support S with signs s the norm falls with alpha at the rate s'z, where G_SS z = s: Newton steps on alpha,
        kept between penalties whose norms are known to be too large and too small. Below alpha = tol / radius the
        radius does not bind, as far as the tolerance can tell.
        """
        e, floor = self.engine, tol / radius
        low, high = 0.0, e.largest
        best_gap, best = np.inf, np.zeros(self.x.size)
        for t in range(_MOST_PENALTIES):
            self._descend(max(self.alpha, floor), max(max(0.5 ** (t + 1), 0.05) * tol, _ROUNDING * e.squared_y))
            norm = float(np.abs(self.x).sum())
            trials = [self.x.copy()] if norm <= radius else []  # x itself goes on below
            trials += [self.x * (radius / norm)] if norm > 0.0 else []
            for trial in trials:
                gap = self._radius_gap(trial, radius)
                best_gap, best = (gap, trial) if gap < best_gap else (best_gap, best)
            if best_gap <= tol:
                break
            low, high = (self.alpha, high) if norm > radius else (low, self.alpha)
            support = np.flatnonzero(self.x)
            sign = np.sign(self.x[support])
            blocks = factor(self.clusters, self.x != 0.0)
            z = solve_kkt(self.atoms, support, blocks, sign, e.l2, e.has_intercept, _SLOPE_ACCURACY)
            slope = float(sign @ z)
            alpha = self.alpha + (norm - radius) / slope if slope > 0.0 else low
            if not low < alpha < high:
                alpha = 0.5 * (low + high) if low > 0.0 else 0.1 * high
            ahead = self.x[support] - (alpha - self.alpha) * z
            self.x[support] = np.where(ahead * sign > 0.0, ahead, 0.0)
            self.alpha = alpha
        self.x = best
        fit = e.renew(self.x)
        self._correlate(fit, self.x)
        return fit

    def _radius_gap(self, x: np.ndarray, radius: float) -> float:
        """Return the Frank-Wolfe gap at x over the working set."""
        fit = self.engine.renew(x)
        return radius * self._correlate(fit, x) - fit.along

    def _descend(self, alpha: float, tol: float) -> Fit:
        """Minimise with a penalty to a duality gap of at most ``tol``."""
        self.alpha = alpha
        fit, gap = self.engine.renew(self.x), np.inf
        n_paused = 0
        for _ in range(_MOST_ROUNDS):
            self.engine.check_interrupts()
            before = gap
            fit = self._sweep(alpha, tol, fit)
            gap = self._gap(fit, alpha)
            n_paused -= 1
            if gap > tol and n_paused <= 0 and _is_slow(before, gap, tol):
                before = gap
                fit = self._newton(alpha, tol, gap, fit)
                gap = self._gap(fit, alpha)
                n_paused = _PAUSE if gap > 0.5 * before else 0
            if gap <= tol:  # were there no rounding in the residuals that sweeps have kept
                fit = self.engine.renew(self.x)
                gap = self._gap(fit, alpha)
                if gap <= tol:
                    return fit
        return self.engine.renew(self.x)

    def _sweep(self, alpha: float, tol: float, fit: Fit) -> Fit:
        """Sweep over the whole working set, then over the support alone; return the sums."""
        e, mu, accuracy = self.engine, fit.mu, _BLOCK_ACCURACY * _excess(tol, fit)
        columns, features = self.atoms.columns, self.atoms.features
        for t in range(1 + _SUPPORT_SWEEPS):
            mu = sweep(columns, features, self.clusters, t > 0, self.x, alpha, e.l2, accuracy, e.a, mu, self.common)
        return Fit(*follow_sweeps(columns, mu, self.x, e.l2, e.y, e.has_intercept, e.R, e.a))

    def _newton(self, alpha: float, tol: float, gap: float, fit: Fit) -> Fit:
        """Go to the minimiser on the support as far as the signs allow; return the sums there."""
        e, x = self.engine, self.x
        value = 0.5 * fit.squared_r + alpha * fit.norm
        support = np.flatnonzero(x)
        sign = np.sign(x[support])
        goal = _CG_ACCURACY * _excess(max(tol, _NEWTON_AIM * gap), fit)
        b = self.correlation[support] - alpha * sign
        blocks = factor(self.clusters, x != 0.0)
        d = solve_kkt(self.atoms, support, blocks, b, e.l2, e.has_intercept, goal)
        shorten(blocks, x[support], d)
        length = 1.0
        while True:
            ahead = x[support] + length * d
            self.x = x.copy()
            self.x[support] = np.where(ahead * sign > _ZERO * np.abs(d), ahead, 0.0)
            fit = e.renew(self.x)
            if length < _SHORTEST or 0.5 * fit.squared_r + alpha * fit.norm <= value:
                return fit
            length *= 0.5

    def _gap(self, fit: Fit, alpha: float) -> float:
        """Return the duality gap over the working set."""
        largest = self._correlate(fit, self.x)
        return duality_gap(self.engine.squared_y, fit.fit, fit.along, alpha * fit.norm, alpha, largest)

    def _correlate(self, fit: Fit, x: np.ndarray) -> float:
        return self.atoms.correlate(self.engine.a, fit.mu, x, self.engine.l2, self.correlation)

    def is_outgrown(self, tol: float) -> bool:
        """Return False: there is no other way for larger working sets."""
        return False

    def enter(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the engine."""
        self.x = np.concatenate([self.x, np.zeros(n_new)])
        self.before = np.concatenate([self.before, np.zeros(n_new)])
        self.correlation = np.zeros(self.x.size)
        self._arrange(self.clusters.labels())

    def needed(self) -> np.ndarray:
        """Return the places of the atoms with a coefficient."""
        return np.flatnonzero(self.x)

    def keep(self, needed: np.ndarray) -> None:
        """Keep these atoms alone."""
        self.x, self.before, self.correlation = self.x[needed], self.before[needed], self.correlation[needed]
        self._arrange(self.clusters.labels()[needed])


def _is_slow(before: float, gap: float, tol: float) -> bool:
    """Tell whether rounds that take the gap from ``before`` to ``gap`` would take long to reach ``tol``."""
    return gap >= before or (gap / before) ** _PATIENCE > tol / gap


def _excess(gap: float, fit: Fit) -> float:
    """Return by how much correlations may exceed the penalty: alpha (1 + e) costs a gap of about e alpha ||x||_1."""
    return gap / max(fit.norm, 1e-300)
