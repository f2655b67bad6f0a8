"""The solver class of the benchmark; each file in solvers/ only gives it a name."""

from __future__ import annotations

from benchopt import BaseSolver

from benchmark_utils.runs import SEEDS, course


class CourseSolver(BaseSolver):
    """Follows one method along the recorded steps of a run."""

    sampling_strategy = "callback"
    parameters = {"seed": list(SEEDS)}  # noqa: RUF012

    def set_objective(self, problem, steps):
        """Take the problem."""
        self.problem, self.steps = problem, steps

    def warm_up(self):
        """Compile the kernels before the clock starts."""
        list(course(self.problem, self.name, self.seed, [0, 1]))

    def get_next(self, stop_val):
        """Evaluate at every call: the calls are on the logarithmic grid already."""
        return stop_val + 1

    def run(self, callback):
        """Walk through the run."""
        for evaluations, w in course(self.problem, self.name, self.seed, self.steps):
            self.result = {"w": w, "gradient_evaluations": evaluations}
            if not callback():
                break

    def get_result(self):
        """Return the present iterate."""
        return self.result
