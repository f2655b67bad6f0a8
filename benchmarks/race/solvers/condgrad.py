"""Every method of the race."""

from benchmark_utils import FULL_PASS, STOCHASTIC, new
from benchopt import BaseSolver

import condgrad as cg


class Solver(BaseSolver):
    """A solver of condgrad, for a number of epochs."""

    name = "condgrad"
    sampling_strategy = "iteration"
    parameters = {"method": [*FULL_PASS, *STOCHASTIC]}  # noqa: RUF012

    def skip(self, problem):
        """Leave out a problem that the method refuses, such as a matrix in factors."""
        try:
            cg.minimize(problem, new(self.method, problem.n_samples), max_steps=0)
        except (TypeError, ValueError) as error:
            return True, str(error)
        return False, None

    def set_objective(self, problem):
        """Take the problem."""
        self.problem = problem
        self.solver = new(self.method, problem.n_samples)

    def warm_up(self):
        """Compile the kernels before the clock starts."""
        self.run(1)

    def run(self, n_iter):
        """Run ``n_iter`` epochs."""
        self.w = cg.minimize(self.problem, self.solver, max_epochs=max(n_iter, 1), tol=0.0, random_state=0).w

    def get_result(self):
        """Return the iterate."""
        return {"w": self.w}
