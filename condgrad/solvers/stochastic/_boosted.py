"""BoostedSolver: the settings that the boosted stochastic solvers share."""

from __future__ import annotations

import functools

from condgrad.linalg.convert import as_number
from condgrad.problems.base import Feature
from condgrad.solvers.stochastic._table import TableSolver
from condgrad.solvers.stochastic.base import StepSolver, step_solver


class BoostedSolver(TableSolver):
    """A solver with the fields ``n_rounds`` and ``delta`` of a pursuit; ``boosted_solver`` adds these methods."""

    n_rounds: int
    delta: float
    requires = frozenset({Feature.LOOK, Feature.CHUNKS, Feature.VERTICES})

    def check(self):
        """Raise if a parameter is wrong."""
        StepSolver.check(self)
        as_number(self.n_rounds, "n_rounds", low=1, what="a number of at least 1")
        as_number(self.delta, "delta", low=0.0, what="a number of at least 0")


boosted_solver = functools.partial(step_solver, protocol=BoostedSolver)
