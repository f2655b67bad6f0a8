"""GroupModel: a convex quadratic over a ball of group norms, or with such a norm as its penalty, by Newton steps.

The model is F(x) = x'Hx/2 - c'x with the norm N(x) = sum_g ||x_g||_2 + l1_weight ||x||_1. Where a minimiser with the
penalty alpha has entries, on its support S, N is smooth with the gradient nu and the Hessian D, which is
(I - uu') / ||x_g|| for a group of the direction u. There

    H x - c + alpha nu = 0,    and N(x) = radius over a ball,

and a Newton step for x and alpha together solves two systems with H_SS + alpha D. A step that would carry a group, or
an entry with a price of its own, beyond zero leaves it at zero. Sweeps over all groups, each a step of the proximal
gradient method, let others enter. Where steps for x and alpha together do not lead closer, x is minimised for a fixed
alpha, so that F + alpha N falls from step to step, and alpha is the root of radius - N, found within a bracket.
"""

from __future__ import annotations

import operator
import time
from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.group_newton import NewtonStep, first_zero, move, newton_step
from condgrad.linalg.group_norm import GroupNorm
from condgrad.linalg.roots import Bracket

_INNER = 3  # steps within a group at a visit
_MOST_SWEEPS = 20  # most sweeps before a Newton step
_SLOW = 0.8  # share of the error that a sweep may leave for another one to follow
_SWEPT = 0.1  # share of the tolerance of a gap over a ball to which sweeps reduce the error at most
_SHARE = 0.3  # share of the tolerance that a Newton step may leave
_SETTLED = 0.5  # share of the error of the norm, times alpha, that the error of x may have for a step of alpha alone
_WORSE = 2.0  # factor by which a step for x and alpha together may make both errors larger
_FIRST_DAMPING = 1e-4  # share of the diagonal of H that is added to it after such a step that led too far
_MORE_DAMPING, _LESS_DAMPING = 30.0, 0.3  # factors of the next share after such a step, and after a good one
_SMALLER, _LARGER = 0.3, 3.0  # factors by which alpha changes at most in a step, while its bracket is open
_LEAST = 1e-6  # smallest such factor: it is squared from step to step, and a smaller one is zero
_HALVINGS = 12  # most halvings of a step for a fixed alpha
_BEYOND = 1.0 + 1e-12  # share of the way to the first zero that passes it
_MOST_IDLE = 30  # most steps that do not halve the gap, after which rounding has won
_MOST_STEPS = 200  # most steps of one minimisation
_INSIDE = 4e-16  # share of a radius by which a scaled point is inside of the ball, so that rounding is too


class GroupModel(NamedTuple):
    """The quadratic x'Hx/2 - c'x; group g of x is the range from offsets[g] to offsets[g + 1].

    With an origin it is that of x - origin: c has the correlations there, and a search from there needs no product.
    """

    norm: GroupNorm
    offsets: np.ndarray
    H: np.ndarray
    c: np.ndarray
    origin: np.ndarray | None = None


class Minimum(NamedTuple):
    """A minimiser x with F(x), its multiplier or penalty, and its gap (over the ball, or with the penalty)."""

    x: np.ndarray
    value: float
    alpha: float
    gap: float


_gap_of, _value_of = operator.attrgetter("gap"), operator.attrgetter("value")


def minimise_over_ball(
    model: GroupModel, x: np.ndarray, radius: float, tol: float, alpha: float = -1.0, deadline: float = np.inf
) -> Minimum:
    """Return the minimiser over the ball of that radius to a gap of at most ``tol``, from x and a guess of alpha.

    What rounding leaves is more than a tiny ``tol``: then the best point that was found is returned, by its gap, or by
    its value where F is larger there than at x.
    """
    search = _Search(model, x, alpha, radius)
    best, first = Minimum(x, np.inf, 0.0, np.inf), search.value() if search.size <= radius else np.inf
    bracket, last_error, last_merit, n_idle = Bracket(-np.inf, np.inf), np.inf, np.inf, 0
    lowest = best
    shrink = _SMALLER
    for n_steps in range(_MOST_STEPS):
        search.sweep(_SWEPT * tol)
        found = search.within(radius)
        n_idle = 0 if found.gap < 0.5 * best.gap else n_idle + 1
        best, lowest = min(best, found, key=_gap_of), min(lowest, found, key=_value_of)
        # A rough minimiser can be worse than a good x. Far inside the ball, where the model is flat, steps lead on.
        is_done = n_steps > 0 and best.gap <= tol and best.value <= first
        if is_done or n_idle > _MOST_IDLE or time.perf_counter() >= deadline:
            break
        error, outside = search.error(), search.alpha * abs(radius - search.size)
        if error + outside > _WORSE * last_merit:
            search.go_back()
            last_error, last_merit = 0.0, np.inf
            continue
        last_merit = np.inf
        step = search.newton()
        if step is None and not search.leave_zero():
            break
        if step is None:
            last_error = np.inf
            continue
        least, most = (shrink if shrink > _LEAST else 0.0) * search.alpha, _LARGER * search.alpha
        if error <= _SETTLED * outside:  # x belongs to this alpha
            bracket, following = bracket.after(search.alpha, radius - search.size, step.slope, least, most)
            shrink = shrink * shrink if following <= least else _SMALLER
            search.jump(step, following)
        elif error <= _SETTLED * last_error or last_error == np.inf:
            following = min(max(search.alpha_for(step, radius), least), most)
            search.jump(step, min(max(following, bracket.low), bracket.high))
            last_merit = error + outside
        else:
            search.descend(step)
        last_error = error
    return best if best.value <= first else lowest


def minimise_penalised(model: GroupModel, x: np.ndarray, alpha: float, tol: float, deadline: float = np.inf) -> Minimum:
    """Return the minimiser of the model plus alpha N(x), where alpha N(x) - <correlation, x> is at most ``tol``."""
    search = _Search(model, x, alpha)
    best = Minimum(x, np.inf, alpha, np.inf)
    n_idle = 0
    for _ in range(_MOST_STEPS):
        search.sweep(tol)
        error = search.error()
        n_idle = 0 if error < 0.5 * best.gap else n_idle + 1
        best = Minimum(search.x.copy(), search.value(), alpha, error) if error < best.gap else best
        if best.gap <= tol or n_idle > _MOST_IDLE or time.perf_counter() >= deadline:
            break
        step = search.newton(_SHARE * tol / error, is_for_both=False)
        if step is None:
            break
        search.descend(step)
    return best


class _Search:
    """A point x with its correlations c - Hx and a penalty alpha, where steps begin."""

    def __init__(self, model: GroupModel, x: np.ndarray, alpha: float, radius: float = np.inf) -> None:
        self.model, self.x = model, x.copy()
        self.bends = _bends(model.offsets, model.H)
        self.damping = 0.0
        self._origin = np.zeros(x.size) if model.origin is None else model.origin
        self._at_zero: np.ndarray | None = None if self._origin.any() else model.c
        self.correlation = np.empty(x.size)
        self.correlate()
        self.alpha = alpha if alpha >= 0.0 else max(0.5 * (self.largest + self.along / max(radius, self.size)), 0.0)
        self.saved = self.x, self.alpha

    def leave_zero(self) -> bool:
        """Take a smaller penalty where x is zero, and the solution for the present one; tell if that was so."""
        if self.size > 0.0 or not self.alpha >= self.largest > 0.0:
            return False
        self.alpha = 0.5 * self.largest
        return True

    def go_back(self) -> None:
        """Return to where the last jump began, and make shorter ones from there."""
        self.x, self.alpha = self.saved[0].copy(), self.saved[1]
        self.damping = min(1.0, max(_FIRST_DAMPING, _MORE_DAMPING * self.damping))
        self.correlate()

    def correlate(self) -> None:
        """Compute the correlations and what follows from them anew."""
        _correlate(self.model.H, self.model.c, self.x - self._origin, self.correlation)
        self.measure()

    def at_zero(self) -> np.ndarray:
        """Return the correlations at zero."""
        if self._at_zero is None:
            self._at_zero = np.empty(self.x.size)
            _correlate(self.model.H, self.model.c, -self._origin, self._at_zero)
        return self._at_zero

    def measure(self) -> None:
        """Compute the sums <correlation, x> and N(x), and the largest dual norm."""
        self.along, self.size, self.largest = _measure(self.model.norm, self.model.offsets, self.x, self.correlation)

    def sweep(self, goal: float) -> None:
        """Let every group make steps of its own for the penalty alpha, again until the error is at most ``goal``."""
        model = self.model
        _sweeps(model.norm, model.offsets, model.H, self.bends, self.alpha, self.x, self.correlation, goal)
        self.measure()

    def error(self) -> float:
        """Return how far x is from the minimiser with the penalty alpha, like a gap; 0 there only."""
        return abs(self.alpha * self.size - self.along) + max(self.largest - self.alpha, 0.0) * self.size

    def within(self, radius: float) -> Minimum:
        """Return x, scaled to the ball if it is outside, and its gap there."""
        scale = 1.0 if self.size <= radius else radius / self.size * (1.0 - _INSIDE)
        if scale == 1.0:
            return Minimum(self.x.copy(), self.value(), self.alpha, radius * self.largest - self.along)
        x, correlation = scale * self.x, scale * self.correlation + (1.0 - scale) * self.at_zero()
        along, _, largest = _measure(self.model.norm, self.model.offsets, x, correlation)
        value = -0.5 * float((self.model.c + correlation) @ (x - self._origin))
        return Minimum(x, value, self.alpha, radius * largest - along)

    def newton(self, share: float = 0.0, *, is_for_both: bool = True) -> NewtonStep | None:
        """Return the Newton steps on the support, which may leave a share of the error; None where there are none."""
        model = self.model
        return newton_step(
            model.norm, model.offsets, model.H, self.x, self.correlation, self.alpha, self.damping, share, is_for_both
        )

    def alpha_for(self, step: NewtonStep, radius: float) -> float:
        """Return the alpha with which a step for x and alpha together leads to the radius."""
        if step.slope <= 0.0:
            return self.alpha
        return max(0.0, self.alpha + (step.along - (radius - self.size)) / step.slope)

    def jump(self, step: NewtonStep, alpha: float) -> None:
        """Make the whole step for x, and for alpha to this one."""
        self.saved, self.damping = (self.x.copy(), self.alpha), _LESS_DAMPING * self.damping
        self._put(step, self.x[step.places], step.ahead + (self.alpha - alpha) * step.outward)
        self.alpha = alpha
        self.correlate()

    def descend(self, step: NewtonStep) -> None:
        """Go towards the minimiser for this alpha as far as F + alpha N falls."""
        model, old, before, length = self.model, self.x.copy(), self._objective(), 1.0
        first = first_zero(model.norm, model.offsets, old, step.places, step.ahead) * _BEYOND
        for k in range(_HALVINGS):
            self._put(step, old[step.places], length * step.ahead)
            self.correlate()
            if self._objective() <= before:
                self.damping = (
                    _LESS_DAMPING * self.damping if k == 0 else max(_FIRST_DAMPING, _MORE_DAMPING * self.damping)
                )
                return
            length = min(first, 0.5) if k == 0 else 0.5 * length
        self.x = old
        self.correlate()

    def _put(self, step: NewtonStep, origin: np.ndarray, change: np.ndarray) -> None:
        """Go to ``origin`` plus a change on the support; what would pass zero stays there."""
        self.x[step.places] = origin
        move(self.model.norm, self.model.offsets, self.x, step.places, change)

    def value(self) -> float:
        """Return F(x)."""
        return -0.5 * float((self.model.c + self.correlation) @ (self.x - self._origin))

    def _objective(self) -> float:
        return self.value() + self.alpha * self.size


@kernel
def _bends(offsets, H):
    """Return an upper bound of the curvature within every group: the trace, or the largest sum of a row."""
    out = np.empty(offsets.shape[0] - 1)
    for g in range(out.shape[0]):
        trace, largest = 0.0, 0.0
        for j in range(offsets[g], offsets[g + 1]):
            row = 0.0
            for k in range(offsets[g], offsets[g + 1]):
                row += abs(H[j, k])
            largest = max(largest, row)
            trace += H[j, j]
        out[g] = min(trace, largest)
    return out


@kernel
def _correlate(H, c, x, out):
    size = np.uint64(c.shape[0])
    for j in range(size):
        out[j] = c[j]
    for k in range(size):
        value = x[k]
        if value != 0.0:
            for j in range(size):
                out[j] -= value * H[k, j]


@kernel
def _measure(norm, offsets, x, correlation):
    """Return <correlation, x>, N(x) and the largest dual norm of the correlations of a group."""
    along, size, largest = 0.0, 0.0, 0.0
    for g in range(offsets.shape[0] - 1):
        first, last = offsets[g], offsets[g + 1]
        size += norm.of(x, first, last)
        largest = max(largest, norm.dual(correlation, first, last))
        for k in range(first, last):
            along += correlation[k] * x[k]
    return along, size, largest


@kernel
def _sweeps(norm, offsets, H, bends, alpha, x, correlation, goal):
    """Sweep over all groups until the error is at most ``goal``, or does not fall much any more."""
    error = np.inf
    for _ in range(_MOST_SWEEPS):
        _sweep(norm, offsets, H, bends, alpha, x, correlation)
        along, size, largest = _measure(norm, offsets, x, correlation)
        last, error = error, abs(alpha * size - along) + max(largest - alpha, 0.0) * size
        if error <= goal or error > _SLOW * last:
            return


@kernel
def _sweep(norm, offsets, H, bends, alpha, x, correlation):
    """Let every group make some proximal gradient steps; the correlations of all follow."""
    size = np.uint64(x.shape[0])
    for g in range(offsets.shape[0] - 1):
        first, last, bend = offsets[g], offsets[g + 1], bends[g]
        is_zero = True
        for k in range(first, last):
            is_zero &= x[k] == 0.0
        if not bend > 0.0 or (is_zero and not norm.dual(correlation, first, last) > alpha):
            continue
        m = last - first
        z, slopes = np.empty(m), np.empty(m)
        for k in range(m):
            z[k], slopes[k] = x[first + k], correlation[first + k]
        for _ in range(_INNER):
            for k in range(m):
                z[k] += slopes[k] / bend
            norm.shrink(z, 0, m, alpha / bend)
            for k in range(m):
                slopes[k] = correlation[first + k]
                for j in range(m):
                    slopes[k] -= H[first + k, first + j] * (z[j] - x[first + j])
        for k in range(m):
            change = z[k] - x[first + k]
            x[first + k] = z[k]
            if change != 0.0:
                row = np.uint64(first + k)
                for j in range(size):
                    correlation[j] -= change * H[row, j]
