"""What a fit of an estimator is made of: its budget, its problems with their results, and advice about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from condgrad.estimators._penalised import Penalised
from condgrad.estimators.radius import complaint, default_radius
from condgrad.linalg.settings import RandomState
from condgrad.paths.allowed_sets import suited, typical
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Result, Status


class Budget(NamedTuple):
    """A constraint set: an object, or a class ``make`` and its radius (None: chosen on held-out samples)."""

    constraint: object
    make: Any
    radius: float | None

    def unit_set(self) -> object:
        """Return the given object, or a set of the class: of the given radius, else an example of them."""
        if self.make is None:
            return self.constraint
        return typical(self.make) if self.radius is None else self.make(self.radius)

    def applied(
        self, problem: Problem | OutputsProblem, max_time: float | None = None
    ) -> tuple[Callable[[float], Any], float | None]:
        """Return what makes the set of a radius, and the radius or None; ``problem`` is over the unit set.

        Choosing a radius takes at most ``max_time`` seconds.
        """
        if self.make is None:
            return (lambda _: self.constraint), None
        make = suited(self.make, problem)
        return make, default_radius(problem, make, max_time) if self.radius is None else self.radius


class Fit(NamedTuple):
    """A problem of an estimator, the radius if its set was given by name, and the result of a run to ``tol``."""

    problem: Problem | OutputsProblem
    radius: float | None
    result: Result
    tol: float
    penalised_gap: float | None = None  # the certified gap of a penalised problem whose search a limit has cut short

    def of_penalised(self, found: Penalised) -> Self:
        """Return the fit of a penalised problem, whose radius is the norm of its solution."""
        fit = self if self.result.w.any() else self._replace(radius=0.0)
        if not found.is_cut_short:
            return fit
        return fit._replace(result=fit.result._replace(status=found.status), penalised_gap=found.gap)

    @property
    def gap(self) -> float:
        """The certified gap: of the penalised problem where it was not solved, else that of the run."""
        return self.result.gap + self.result.rounding if self.penalised_gap is None else self.penalised_gap

    @property
    def name_of_gap(self) -> str:
        """What the gap is."""
        return "Frank-Wolfe gap" if self.penalised_gap is None else "gap of the penalised problem"

    @property
    def excess(self) -> float:
        """The certified gap divided by the tolerance."""
        return self.gap / max(self.tol, 1e-300)

    @property
    def falls_short(self) -> bool:
        """Whether the tolerance is missed; a loss between 0 and tol reaches it whatever the rounding error."""
        result, tol = self.result, self.tol
        if self.penalised_gap is not None:
            return not self.penalised_gap <= tol
        is_close = result.gap <= tol or result.status is Status.ROUNDING
        is_perfect = is_close and 0.0 <= result.objective <= tol
        return not (result.gap + result.rounding <= tol or is_perfect)

    def complaint(self) -> str:
        """Return what is wrong with a given radius, or an empty string."""
        if self.radius is None or self.falls_short:
            return ""
        return complaint(self.problem, self.result, self.problem.null_objective(), self.radius)


def remedy(
    status: Status, max_iter: float, max_time: float | None, *, has_features: bool, can_continue: bool = True
) -> str:
    """Return advice for a run that ended with ``status`` and missed its tolerance."""
    scaling = ", or standardise the features" if has_features else ""
    if status in (Status.MAX_EPOCHS, Status.MAX_STEPS):
        other = ", try solver='auto'" if has_features else ""
        return f"raise max_iter (now {max_iter:g}) or tol{other}{scaling}."
    if status is Status.MAX_TIME:
        return (
            f"raise max_time (now {max_time:g} s) or tol{', or continue with warm_start=True' if can_continue else ''}."
        )
    if status in (Status.STALLED, Status.ROUNDING):
        return f"rounding allows no smaller gap; raise tol{scaling}."
    return str(status)


def feasible_start(constraint: Any, w: np.ndarray) -> np.ndarray | None:
    """Return ``w``, scaled into the ball if it lies outside, or None where it is infeasible even so."""
    violation = constraint.violation(w)
    if violation > 0.0 and getattr(constraint, "radius", None):
        w = w * (constraint.radius / (constraint.radius + violation))
        violation = constraint.violation(w)
    return w if violation <= 1e-9 * np.abs(w).sum() else None


def as_seed(random_state: RandomState) -> int | np.random.Generator | None:
    """Return scikit-learn's ``random_state`` as ``minimize`` takes it: a RandomState draws a seed."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state
