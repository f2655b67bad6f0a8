"""Short steps: the minimisers of quadratic bounds of F along a line, whose curvature is known or observed."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.parabola import Parabola
from condgrad.problems.segment import Segment
from condgrad.solvers.step_sizes.base import Formula, KernelRule, StepSize


@compiled
class _Short(NamedTuple):
    """The minimiser of the quadratic bound of the line."""

    def at(self, t, line):
        return line.short_step()


@compiled
class _ShortByGap(NamedTuple):
    """The minimiser of -gamma gap + gamma^2 curvature / 2 over [0, 1]; an estimate of the gap can be negative."""

    curvature: float

    def at(self, t, line):
        return Parabola(line.gap(), self.curvature).minimiser(1.0)


class ShortStep(Formula):
    """The short step of Demyanov and Rubinov, gamma = min(max_step, -slope / curvature): monotone, F - F* = O(1/t).

    Parameters
    ----------
    curvature : {"predictions", "lipschitz"}
        The bound of the curvature of F along d. ``"predictions"`` uses L sum_i weight_i (x_i'd)^2, which follows from
        the predictions at no cost and is never the larger bound. ``"lipschitz"`` uses M ||d||^2 with M the
        Lipschitz constant L lambda_max(X' diag(weight) X) of grad F: FW-ada as Xiong & Freund state it. For a
        :class:`~condgrad.GeneralProblem` both use M = ``terms.smoothness()``.

    Examples
    --------
    >>> ShortStep()
    ShortStep(curvature='predictions')
    """

    formula = _Short()

    def __init__(self, curvature: str = "predictions") -> None:
        if curvature not in ("predictions", "lipschitz"):
            raise ValueError(f"curvature of ShortStep must be 'predictions' or 'lipschitz'; got {curvature!r}.")
        self.curvature = curvature

    def begin(self, problem: BaseProblem) -> StepSize:
        """Return the rule; the constant of FW-ada is computed here, once."""
        if self.curvature == "predictions" and Feature.PREDICTIONS in problem.offers:
            return self
        return _LipschitzShortStep(problem.smoothness())

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return min(1, gap estimate / (M diameter^2)) for kernels: the distance to s is bounded by the diameter."""
        return _ShortByGap(problem.smoothness() * problem.constraint.diameter(2, problem.n_features) ** 2)

    def on_lines(self, problem: BaseProblem) -> KernelRule:
        """Return the rule for kernels; there FW-ada bounds the distance to s by the diameter."""
        return self.formula if self.curvature == "predictions" else self.on_estimates(problem, problem.n_samples)


class _LipschitzShortStep(StepSize):
    def __init__(self, lipschitz: float) -> None:
        self.lipschitz = lipschitz

    def at(self, t: int, line: Segment) -> float:
        return line.step_for(self.lipschitz * line.squared_length())


class AutoConditioned(StepSize):
    """Auto-conditioned short steps, Giang-Tran, Shafiee and Ho-Nguyen (2026): no line search and no constant L.

    gamma = min(max_step, -slope / (L_t ||d||^2)), where L_t is the largest local quotient

        <grad F(w_k) - grad F(w_{k-1}), w_k - w_{k-1}> / ||w_k - w_{k-1}||^2

    so far. A quotient comes from the slope at the end of the step: with linear predictions it costs O(n), and for a
    :class:`~condgrad.GeneralProblem` nothing, because the next step uses the same gradient. Convex: F - F* = O(1/t),
    and linear for away and pairwise steps over polytopes where F is strongly convex; else the gap comes close to 0. A
    step may increase F while L_t still grows.

    What is ours: the first quotient comes from a thousandth of the longest first step, and L_t never falls.
    Stochastic solvers cannot use it: a difference of two estimates is mostly noise, and its quotient would only grow.
    (In ``sarah`` and ``saga-sarah`` the difference is that of one batch at two points, whose quotient would be sound;
    but the length of the step costs O(d), and the step itself would follow the noise of the estimated gap.)

    Examples
    --------
    >>> AutoConditioned()
    AutoConditioned()
    """

    def begin(self, problem: BaseProblem) -> StepSize:
        """Return a rule with its own L_t."""
        return _AutoConditioner()


class _AutoConditioner(StepSize):
    def __init__(self) -> None:
        self._L = 0.0

    def at(self, t: int, line: Segment) -> float:
        length = line.squared_length()
        if length == 0.0 or line.slope >= 0.0:
            return 0.0
        if self._L == 0.0:
            self._observe(line, 1e-3 * line.max_step, length)
        gamma = line.step_for(self._L * length)
        self._observe(line, gamma, length)
        return gamma

    def _observe(self, line: Segment, gamma: float, length: float) -> None:
        """Take the quotient of the move by gamma into account."""
        if gamma > 0.0:
            self._L = max(self._L, line.turn(gamma) / (gamma * length))
