"""Line searches: exact, by secants, and backtracking."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.convert import as_number
from condgrad.problems.base import BaseProblem
from condgrad.problems.segment import Segment
from condgrad.solvers.step_sizes.base import Formula, StepSize


@compiled
class _Minimiser(NamedTuple):
    """The minimiser of F over the segment."""

    def at(self, t, line):
        return line.minimiser()


class ExactLineSearch(Formula):
    """The minimiser of F over the segment: closed form for quadratics, otherwise safeguarded Newton on the predictions.

    On a :class:`~condgrad.GeneralProblem` it is found from gradients only, in about eight passes over the terms per
    step; there Backtracking costs less.

    Examples
    --------
    >>> ExactLineSearch()
    ExactLineSearch()
    """

    formula = _Minimiser()


class SecantSearch(StepSize):
    """A line search from slopes alone, by secants: gamma with phi'(gamma) close to 0, up to a part of phi'(0).

    phi' is nearly linear close to the minimiser, so that two or three slopes are enough. It suits problems whose slope
    costs a pass, such as a :class:`~condgrad.GeneralProblem`: there ExactLineSearch needs about eight of them. The step
    never goes to where phi' was found to be positive beyond the tolerance.

    Parameters
    ----------
    tol : float
        The search ends where abs(phi'(gamma)) <= tol abs(phi'(0)).
    max_slopes : int
        The largest number of slopes that one step computes.

    Examples
    --------
    >>> SecantSearch()
    SecantSearch(tol=0.1, max_slopes=8)
    """

    def __init__(self, tol: float = 0.1, max_slopes: int = 8) -> None:
        self.tol = as_number(tol, "tol of SecantSearch", low=0.0, what="a number in [0, 1)")
        if self.tol >= 1.0:
            raise ValueError(f"tol of SecantSearch must be a number in [0, 1); got {tol!r}.")
        self.max_slopes = int(as_number(max_slopes, "max_slopes of SecantSearch", low=1, what="a number of at least 1"))

    def at(self, t: int, line: Segment) -> float:
        """Return the step; the first slope is that at the longest step."""
        if line.slope >= 0.0:
            return 0.0
        low, high, gamma = (0.0, line.slope), (line.max_step, math.nan), line.max_step
        for _ in range(self.max_slopes):
            slope = line.slope + line.turn(gamma)
            if abs(slope) <= self.tol * abs(line.slope) or (slope < 0.0 and gamma == line.max_step):
                return gamma
            if slope < 0.0:
                low = (gamma, slope)
            else:
                high = (gamma, slope)
            gamma = _between(low, high)
        return low[0] if low[0] > 0.0 else gamma


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Return where the line through two points (gamma, slope) crosses 0, a tenth of the width away from both ends."""
    width = high[0] - low[0]
    crossing = low[0] - low[1] * width / (high[1] - low[1])
    return min(max(crossing, low[0] + 0.1 * width), high[0] - 0.1 * width)


class Backtracking(StepSize):
    """The backtracking step of Pedregosa, Negiar, Askari and Jaggi (2020): a short step with a local estimate M.

    Each step first tries eta M, then multiplies by tau until the quadratic bound
    F(w + gamma d) <= F(w) + gamma slope + gamma^2 M ||d||^2 / 2 holds.

    Parameters
    ----------
    tau : float
        The factor by which the estimate grows, above 1.
    eta : float
        The factor by which the estimate is reduced before each step, in (0, 1].

    Examples
    --------
    >>> Backtracking()
    Backtracking(tau=2.0, eta=0.9)
    """

    def __init__(self, tau: float = 2.0, eta: float = 0.9) -> None:
        self.tau = as_number(tau, "tau of Backtracking", low=math.nextafter(1.0, 2.0), what="a number above 1")
        self.eta = as_number(eta, "eta of Backtracking", low=math.nextafter(0.0, 1.0), what="a number in (0, 1]")
        if self.eta > 1.0:
            raise ValueError(f"eta of Backtracking must be a number in (0, 1]; got {eta!r}.")

    def begin(self, problem: BaseProblem) -> StepSize:
        """Return a rule with its own estimate M."""
        return _Backtracker(self.tau, self.eta)


class _Backtracker(StepSize):
    def __init__(self, tau: float, eta: float) -> None:
        self.tau, self.eta = tau, eta
        self._M: float | None = None

    def at(self, t: int, line: Segment) -> float:
        length = line.squared_length()
        if length == 0.0:
            return 0.0
        if self._M is None:
            self._M = self._first_estimate(line, length)
        tiny = np.finfo(float).tiny
        M = max(self.eta * self._M, tiny / length, tiny)
        largest = line.curvature()  # the bound holds for this curvature: rounding must not make M larger
        while M * length < largest and not line.is_below(line.step_for(M * length), M * length):
            M *= self.tau
        self._M = M
        return line.step_for(M * length)

    def _first_estimate(self, line: Segment, length: float) -> float:
        """Return the curvature between 0 and a small step, from two values of F."""
        small = 1e-3 * line.max_step
        found = 2.0 * (line.change(small) - small * line.slope) / (small * small * length)
        return max(found, np.finfo(float).tiny / length, 1e-12 * abs(line.slope) / length)
