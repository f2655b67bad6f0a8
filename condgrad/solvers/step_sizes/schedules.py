"""Step sizes that are formulas of the iteration alone: open loops."""

from __future__ import annotations

import math
from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.convert import as_number
from condgrad.problems.base import BaseProblem
from condgrad.solvers.step_sizes.base import KernelRule, Schedule, StepSize


@compiled
class _Fading(NamedTuple):
    """c / (t + c)."""

    c: float

    def at(self, t, line):
        return self.c / (t + self.c)


@compiled
class _LogFading(NamedTuple):
    """(2 + log(t + 1)) / (t + 2 + log(t + 1))."""

    def at(self, t, line):
        order = 2.0 + math.log(t + 1.0)
        return order / (t + order)


@compiled
class _Reciprocal(NamedTuple):
    """1 / t."""

    def at(self, t, line):
        return 1.0 / t


@compiled
class _Constant(NamedTuple):
    """gamma for every t."""

    gamma: float

    def at(self, t, line):
        return self.gamma


@compiled
class _AverageOfVertices(NamedTuple):
    """2 (2m + k) / ((k + 1) (4m + k)) for k = t - 1 = 0, 1, ...; the solvers that use it count t from 1."""

    m: float

    def at(self, t, line):
        k = t - 1.0
        return 2.0 * (2.0 * self.m + k) / ((k + 1.0) * (4.0 * self.m + k))


class OpenLoop(Schedule):
    """The open loop gamma_t = 2 / (t + 2): it does not use the objective; F(w_t) - F* = O(1/t).

    Examples
    --------
    >>> import condgrad as cg
    >>> cg.solvers.FrankWolfe(step_size=cg.step_sizes.OpenLoop())
    FrankWolfe(step_size=OpenLoop())
    """

    formula = _Fading(2.0)


class LogAdaptive(Schedule):
    """The log-adaptive open loop of Wirth, Pena and Pokutta (2025): gamma_t = l_t / (t + l_t), l_t = 2 + log(t + 1).

    The open loop l / (t + l) converges faster for a larger l where F grows fast enough around its minimisers, and the
    best l is not known beforehand. Here l grows slowly, and does as well as every fixed l, up to a constant.

    Examples
    --------
    >>> LogAdaptive().at(0, None)
    1.0
    """

    formula = _LogFading()


class Harmonic(Schedule):
    """The step gamma_t = 1 / (t + 1) of Mokhtari et al.: w_t is the plain average of the vertices.

    Examples
    --------
    >>> Harmonic()
    Harmonic()
    """

    formula = _Fading(1.0)


class SubstituteStep(StepSize):
    """The step of Lu & Freund, gamma_t = 2 (2m + t) / ((t + 1) (4m + t)) for t = 0, 1, ... with m = n / batch size.

    Examples
    --------
    >>> SubstituteStep()
    SubstituteStep()
    """

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return the rule for kernels."""
        return _AverageOfVertices(problem.n_samples / batch_size)


class OneSampleStep(StepSize):
    """The step of 1-SFW: gamma_t = 1 / t, or K^(-2/3) for K = ``n_steps`` steps on a non-convex loss.

    Examples
    --------
    >>> OneSampleStep()
    OneSampleStep(n_steps=0)
    """

    def __init__(self, n_steps: int = 0) -> None:
        as_number(n_steps, "n_steps of OneSampleStep", low=0, what="a number of at least 0")
        self.n_steps = n_steps

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return the rule for kernels."""
        return _Reciprocal() if self.n_steps == 0 else _Constant(self.n_steps ** (-2.0 / 3.0))


class NonConvex(Schedule):
    """The constant step 1 / sqrt(K + 1) for K steps in all, for non-convex losses: average gap O(1 / sqrt(K)).

    Parameters
    ----------
    n_steps : int
        K, the number of steps that will be made.

    Examples
    --------
    >>> NonConvex(n_steps=99).at(5, None)
    0.1
    """

    def __init__(self, n_steps: int) -> None:
        self.n_steps = as_number(n_steps, "n_steps of NonConvex", low=0, what="a number of at least 0")

    @property
    def formula(self) -> KernelRule:  # type: ignore[override]
        """1 / sqrt(K + 1)."""
        return _Constant(1.0 / math.sqrt(self.n_steps + 1.0))
