"""The objective F(w) over an l1 ball, followed along a run."""

import numpy as np
from benchmark_utils import recorded_steps
from benchopt import BaseObjective
from benchopt.stopping_criterion import NoCriterion


class Objective(BaseObjective):
    """The mean loss over an l1 ball."""

    name = "negiar2020"
    min_benchopt_version = "1.10"
    requirements = ["pip::condgrad"]  # noqa: RUF012
    sampling_strategy = "callback"
    # The default criterion takes a few small improvements for convergence and ends a run after three points.
    stopping_criterion = NoCriterion()

    def skip(self, problem, epochs, missing=None):
        """Leave out data that is not there."""
        return missing is not None, missing

    def set_data(self, problem, epochs, missing=None):
        """Take a dataset's problem and the number of epochs to follow it."""
        self.problem, self.steps = problem, recorded_steps(problem, epochs)

    def get_objective(self):
        """Return what solvers need."""
        return {"problem": self.problem, "steps": self.steps}

    def evaluate_result(self, w, gradient_evaluations):
        """Return F(w) and what it cost to get there."""
        return {"value": self.problem.objective(w), "gradient_evaluations": gradient_evaluations}

    def get_one_result(self):
        """Return the starting point."""
        return {"w": np.zeros(self.problem.n_features), "gradient_evaluations": 0}
