"""The protocols of step sizes, for solvers along lines and for stochastic ones, and the base classes of the rules."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from condgrad.problems.base import BaseProblem
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


class Formula(StepSize):
    """A rule given by one ``formula`` of t and the line: a compiled object that Python and kernels share."""

    formula: KernelRule

    def at(self, t: int, line: Segment | None) -> float:
        """Return the step for iteration ``t``, at most ``line.max_step``; without a line, the value of the formula."""
        gamma = self.formula.at(t, line)
        return gamma if line is None else min(gamma, line.max_step)

    def on_lines(self, problem: BaseProblem) -> KernelRule:
        """Return the formula."""
        return self.formula


class Schedule(Formula):
    """A rule given by a formula of t alone, which needs no more than an estimate of the gradient."""

    def on_estimates(self, problem: BaseProblem, batch_size: int) -> KernelRule:
        """Return the formula."""
        return self.formula
