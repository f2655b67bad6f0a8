"""The objective of the race for benchopt: F(w) and its exact Frank-Wolfe gap."""

from benchopt import BaseObjective

import condgrad as cg


class Objective(BaseObjective):
    """The mean loss over an l1 ball."""

    name = "race"
    min_benchopt_version = "1.10"
    requirements = ["pip::condgrad"]  # noqa: RUF012

    def skip(self, problem, missing=None):
        """Leave out data that is not there."""
        return missing is not None, missing

    def set_data(self, problem, missing=None):
        """Take a dataset's problem."""
        self.problem = problem

    def get_objective(self):
        """Return what solvers need."""
        return {"problem": self.problem}

    def evaluate_result(self, w):
        """Return F(w) and the gap at w."""
        return {"value": self.problem.objective(w), "gap": self.problem.gap(w)}

    def get_one_result(self):
        """Return the starting point."""
        return {"w": cg.minimize(self.problem, "fw", max_steps=0).w}
