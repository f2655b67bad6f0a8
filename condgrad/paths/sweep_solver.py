"""SweepSolver: a working set too large for a Gram matrix, solved through its columns.

Sweeps of coordinate descent find the support fast and then converge slowly; once they are slow, Newton steps on the
support take over. Where a step keeps the signs, it leads to the minimiser on the support; a coefficient that would
change its sign becomes zero instead, the others are corrected for that, and the step is halved until the objective
falls.
"""

from __future__ import annotations

import numpy as np

from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.roots import Bracket
from condgrad.paths.clusters import factor, find_clusters
from condgrad.paths.least_squares import Goal, Sums
from condgrad.paths.newton import gram_product, solve_kkt
from condgrad.paths.points import raise_if_interrupted
from condgrad.paths.sweeps import sweep
from condgrad.paths.working_set import WorkingSet

_ROUNDING = 1e-15  # relative gap below which rounding is all that is left
_MOST_PENALTIES = 50  # most penalties that are tried for one radius
_MOST_ROUNDS = 200  # most rounds of sweeps, with or without a Newton step, for one penalty
_SUPPORT_SWEEPS = 1  # number of sweeps over the support after one over the whole working set
_PATIENCE = 2  # number of rounds of sweeps that may be left before Newton steps take over
_PAUSE = 4  # number of rounds of sweeps after a Newton step that did not halve the gap: the support has not settled
_SHORTEST = 1e-3  # shortest length of a Newton step that is tried
_ZERO = 1e-12  # share of a step below which what it leaves of a coefficient is zero
_FEW_PRODUCTS = 15  # most products with the Gram matrix for a first step, and after one that had to be halved
_MOST_PRODUCTS = 100  # most for later ones: twice as many each time; where F is flat they go far, and signs must hold
_CG_ACCURACY = 0.5  # share of what the tolerance allows by which correlations may exceed alpha after a Newton step
_NEWTON_AIM = 0.4  # share of the gap that a Newton step would leave if all signs held
_CORRECTED = 3.0  # how much less accurate the correction may be for coefficients that stop at zero
_BLOCK_ACCURACY = 0.1  # share of what the tolerance allows by which correlations may exceed alpha within a cluster
_SLOPE_ACCURACY = 1e-3  # accuracy of the rate at which the norm falls with the penalty
_LOWER = 0.1  # share of a penalty that is tried next at least, while none is known to be too small


class SweepSolver:
    """Coordinate descent and Newton steps over a working set.

    Parameters
    ----------
    working : WorkingSet
        Its features are put in the order of their clusters.
    alpha : float
        The penalty whose solution the coefficients are, more or less.
    largest : float
        The smallest penalty whose solution is zero.
    interrupts : Interrupts or None
    """

    is_exact = False

    def __init__(self, working: WorkingSet, alpha: float, largest: float, interrupts: Interrupts | None = None) -> None:
        self.working, self.quadratic, self.interrupts = working, working.objective, interrupts
        self.alpha, self.largest = min(alpha, largest), largest
        self.before, self.alpha_before = working.x.copy(), self.alpha  # the last solution but one
        self._arrange(np.empty(0, np.int64))
        self.most_products = _FEW_PRODUCTS
        weight = self.quadratic.columns.weight
        self.common = float(weight[0]) if (weight == weight[0]).all() else 0.0

    def _arrange(self, label: np.ndarray) -> None:
        """Put the atoms in the order of their clusters, in one place; ``label`` has those of the first atoms."""
        working, quadratic = self.working, self.quadratic
        order, self.clusters = find_clusters(*quadratic.columns.chosen(working.features), quadratic.l2, label)
        working.arrange(order)
        self.before = self.before[order]
        self.correlation = np.zeros(order.size)

    def minimise(self, goal: Goal, tol: float) -> None:
        """Minimise over the working set to a gap of at most ``tol``."""
        if not goal.is_penalised:
            self._find_radius(goal, tol)
            return
        if goal.target != self.alpha:
            self._extrapolate(goal.target)
        self._descend(goal.target, tol)

    def _extrapolate(self, alpha: float) -> None:
        """Continue the line from the last but one solution to the last: the path is made of lines."""
        x, way = self.working.x, self.alpha_before - self.alpha
        if way != 0.0:
            ahead = x + (self.alpha - alpha) / way * (x - self.before)
            self.working.x = np.where(ahead * x > 0.0, ahead, 0.0)
        self.before, self.alpha_before = x, self.alpha

    def _find_radius(self, goal: Goal, tol: float) -> None:
        """Search for the penalty whose solution has the norm ``radius``; scaling does the rest.

        On a support S with signs s the norm falls with alpha at the rate s'z, where G_SS z = s: Newton steps on alpha,
        kept in a bracket. Below alpha = tol / radius the
        radius does not bind, as far as the tolerance can tell.
        """
        working, radius = self.working, goal.target
        floor = tol / radius
        bracket = Bracket(-np.inf, self.largest)  # of radius - norm, which grows with alpha
        best_gap, best = np.inf, np.zeros(working.x.size)
        for t in range(_MOST_PENALTIES):
            accuracy = max(max(0.5 ** (t + 1), 0.05) * tol, _ROUNDING * self.quadratic.squared_y)
            self._descend(max(self.alpha, floor), accuracy)
            x, norm = working.x, float(np.abs(working.x).sum())
            trials = [x] if norm <= radius else []
            trials += [x * (radius / norm)] if norm > 0.0 else []
            if self.alpha <= floor and norm <= radius and self.quadratic.columns.is_symmetric:
                trials.append(self._without_ball(goal, _CG_ACCURACY * floor))
            for trial in trials:
                gap = self._gap_at(trial, goal)
                best_gap, best = (gap, trial) if gap < best_gap else (best_gap, best)
            if best_gap <= tol:
                break
            support = np.flatnonzero(x)
            sign = np.sign(x[support])
            z = solve_kkt(working, support, factor(self.clusters, x != 0.0), sign, _SLOPE_ACCURACY, _MOST_PRODUCTS)
            slope = float(sign @ z)
            bracket, alpha = bracket.after(self.alpha, radius - norm, slope, _LOWER * self.alpha, self.largest)
            ahead = x[support] - (alpha - self.alpha) * z
            working.x = x.copy()
            working.x[support] = np.where(ahead * sign > 0.0, ahead, 0.0)
            self.alpha = alpha
        self._gap_at(best, goal)

    def _without_ball(self, goal: Goal, accuracy: float) -> np.ndarray:
        """Return the minimiser over all signs, to correlations of at most ``accuracy``, or x if it is outside the ball.

        Where thousands of coefficients are small, signs that hold would be found by many steps, and mean nothing here.
        """
        working, x = self.working, self.working.x
        self._gap_at(x, goal)
        every, blocks = np.arange(x.size), factor(self.clusters, np.ones(x.size, np.bool_))
        ahead = x + solve_kkt(working, every, blocks, self.correlation, accuracy, _MOST_PRODUCTS)
        return ahead if np.abs(ahead).sum() <= goal.target else x

    def _gap_at(self, x: np.ndarray, goal: Goal) -> float:
        """Go to x, with its residual and correlations; return the gap over the working set."""
        self.working.x = x
        return self._gap(goal, self.working.renew())

    def _gap(self, goal: Goal, sums: Sums) -> float:
        """Return the gap over the working set; correlations are computed anew."""
        return self.quadratic.gap(goal, sums, self.working.correlate(self.correlation))

    def _descend(self, alpha: float, tol: float) -> None:
        """Minimise with a penalty to a duality gap of at most ``tol``."""
        self.alpha = alpha
        goal, working = Goal(alpha, True), self.working
        sums, gap = working.renew(), np.inf
        n_paused = 0
        for _ in range(_MOST_ROUNDS):
            raise_if_interrupted(self.interrupts)
            before = gap
            sums = self._sweep(alpha, tol, sums)
            gap = self._gap(goal, sums)
            n_paused -= 1
            if gap > tol and n_paused <= 0 and _is_slow(before, gap, tol):
                before = gap
                sums = self._newton(alpha, tol, gap, sums)
                gap = self._gap(goal, sums)
                n_paused = _PAUSE if gap > 0.5 * before else 0
            if gap <= tol:  # were there no rounding in the residuals that sweeps have kept
                sums = working.renew()
                gap = self._gap(goal, sums)
                if gap <= tol:
                    return
        working.renew()

    def _sweep(self, alpha: float, tol: float, sums: Sums) -> Sums:
        """Sweep over the whole working set, then over the support alone; return the sums."""
        working, mu, accuracy = self.working, sums.mu, _BLOCK_ACCURACY * _excess(tol, sums)
        columns, features = working.atoms.columns, working.atoms.features
        x, l2, a = working.x, self.quadratic.l2, working.residual.a
        for t in range(1 + _SUPPORT_SWEEPS):
            mu = sweep(columns, features, self.clusters, t > 0, x, alpha, l2, accuracy, a, mu, self.common)
        working.sums = self.quadratic.follow(mu, x, working.residual)
        return working.sums

    def _newton(self, alpha: float, tol: float, gap: float, sums: Sums) -> Sums:
        """Go to the minimiser on the support as far as the signs allow; return the sums there."""
        working, x = self.working, self.working.x
        value = sums.value + alpha * sums.norm
        support = np.flatnonzero(x)
        sign = np.sign(x[support])
        goal = _CG_ACCURACY * _excess(max(tol, _NEWTON_AIM * gap), sums)
        d = self._step_with_signs(support, self.correlation[support] - alpha * sign, goal)
        length = 1.0
        while True:
            ahead = x[support] + length * d
            working.x = x.copy()
            working.x[support] = np.where(ahead * sign > _ZERO * np.abs(d), ahead, 0.0)
            sums = working.renew()
            if length < _SHORTEST or sums.value + alpha * sums.norm <= value:
                is_whole = length == 1.0
                self.most_products = min(2 * self.most_products, _MOST_PRODUCTS) if is_whole else _FEW_PRODUCTS
                return sums
            length *= 0.5

    def _step_with_signs(self, support: np.ndarray, b: np.ndarray, goal: float) -> np.ndarray:
        """Return the step to the minimiser on the support, but to zero where a coefficient would change its sign.

        The others are then corrected for what those at zero do not do.
        """
        working, x, is_used = self.working, self.working.x[support], self.working.x != 0.0
        d = solve_kkt(working, support, factor(self.clusters, is_used), b, goal, self.most_products)
        stops = (x + d) * x <= 0.0
        if stops.any():
            d[stops], others = -x[stops], ~stops
            is_used[support[stops]] = False
            blocks, rest = factor(self.clusters, is_used), (b - gram_product(working, support, d))[others]
            d[others] += solve_kkt(working, support[others], blocks, rest, _CORRECTED * goal, self.most_products)
        return d

    def successor(self, tol: float, largest: float, interrupts: Interrupts | None) -> SweepSolver:
        """Return this solver: there is no other way for larger working sets."""
        return self

    def admit(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the working set."""
        self.before = np.concatenate([self.before, np.zeros(n_new)])
        self._arrange(self.clusters.labels())

    def support(self) -> np.ndarray:
        """Return the places of the atoms with a coefficient."""
        return np.flatnonzero(self.working.x)

    def keep(self, places: np.ndarray) -> None:
        """Keep these atoms alone."""
        self.before = self.before[places]
        self._arrange(self.clusters.labels()[places])


def _is_slow(before: float, gap: float, tol: float) -> bool:
    """Tell whether rounds that take the gap from ``before`` to ``gap`` would take long to reach ``tol``."""
    return gap >= before or (gap / before) ** _PATIENCE > tol / gap


def _excess(gap: float, sums: Sums) -> float:
    """Return by how much correlations may exceed the penalty: alpha (1 + e) costs a gap of about e alpha ||x||_1."""
    return gap / max(sums.norm, 1e-300)
