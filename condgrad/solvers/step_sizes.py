"""Step sizes: rules that return the step length along a segment, one class each.

``begin(problem)`` is called once per run and returns the rule itself, or a copy that stores values between steps;
``at(t, line)`` returns the step gamma for iteration t = 0, 1, 2, ... on a
:class:`~condgrad.problems.segment.Segment`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.convert import as_number
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.parabola import Parabola
from condgrad.problems.segment import Segment


class KernelRule(Protocol):
    """A rule for kernels: a compiled object."""

    def at(self, t: int, line: Any) -> float:
        """Return the step for iteration ``t``, where ``line`` is an estimate of the gradient, or a line."""


@runtime_checkable
class LineRule(Protocol):
    """The methods of a step size that solvers of full passes call."""

    def begin(self, problem: BaseProblem) -> LineRule:
        """Return the rule for a run on ``problem``."""

    def at(self, t: int, line: Segment) -> float:
        """Return the step for iteration ``t``, at most ``line.max_step``."""


@runtime_checkable
class EstimateRule(Protocol):
    """The method of a step size that stochastic solvers call."""

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return the rule for kernels, which have only an estimate of the gradient."""


class StepSize:
    """Base class of the rules of this module; solvers of full passes also accept any other LineRule."""

    def begin(self, problem: BaseProblem) -> StepSize:
        """Return the rule for a run on ``problem``."""
        return self

    def at(self, t: int, line: Segment) -> float:
        """Return the step for iteration ``t``, at most ``line.max_step``."""
        raise NotImplementedError

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return the rule for kernels, which have only an estimate of the gradient; every step is at most 1."""
        raise TypeError(f"{type(self).__name__} needs the objective along a line; stochastic solvers cannot use it.")

    def on_lines(self, problem: BaseProblem) -> KernelRule:
        """Return the rule for kernels that have F along the segment from w to a vertex (``minimiser, short_step``)."""
        return self.on_estimates(problem, problem.n_samples)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({settings})"


class _Formula(StepSize):
    """A rule given by one ``formula`` of t and the line: a compiled object that Python and kernels share."""

    formula: KernelRule

    def at(self, t: int, line: Segment | None) -> float:
        """Return the step for iteration ``t``, at most ``line.max_step``; without a line, the value of the formula."""
        gamma = self.formula.at(t, line)
        return gamma if line is None else min(gamma, line.max_step)

    def on_lines(self, problem: BaseProblem) -> KernelRule:
        """Return the formula."""
        return self.formula


class _Schedule(_Formula):
    """A rule given by a formula of t alone, which needs no more than an estimate of the gradient."""

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return the formula."""
        return self.formula


@compiled
class _Fading(NamedTuple):
    """c / (t + c)."""

    c: float

    def at(self, t, line):
        return self.c / (t + self.c)


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


@compiled
class _Minimiser(NamedTuple):
    """The minimiser of F over the segment."""

    def at(self, t, line):
        return line.minimiser()


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


class OpenLoop(_Schedule):
    """The open loop gamma_t = 2 / (t + 2): it does not use the objective; F(w_t) - F* = O(1/t).

    Examples
    --------
    >>> import condgrad as cg
    >>> cg.solvers.FrankWolfe(step_size=cg.step_sizes.OpenLoop())
    FrankWolfe(step_size=OpenLoop())
    """

    formula = _Fading(2.0)


class Harmonic(_Schedule):
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


class NonConvex(_Schedule):
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


class ShortStep(_Formula):
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


class ExactLineSearch(_Formula):
    """The minimiser of F over the segment: closed form for quadratics, otherwise safeguarded Newton on the predictions.

    On a :class:`~condgrad.GeneralProblem` it is found from gradients only, in about eight passes over the terms per
    step; there Backtracking costs less.

    Examples
    --------
    >>> ExactLineSearch()
    ExactLineSearch()
    """

    formula = _Minimiser()


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
