"""condgrad's solver of the penalised Lasso, for benchopt's benchmark_lasso."""

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

from condgrad import lasso_path


class Solver(BaseSolver):
    """A working set solved exactly, a lazy oracle that proves the best column, and a certified duality gap."""

    name = "condgrad"
    sampling_strategy = "tolerance"
    # A model is minimised exactly, so that several tolerances have one answer: that is not yet the end.
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=10)
    requirements = ["pip::condgrad"]  # noqa: RUF012
    references = [  # noqa: RUF012
        "E. Frandi, R. Nanculef, S. Lodi, C. Sartori and J. A. K. Suykens, "
        '"Fast and scalable Lasso via stochastic Frank-Wolfe methods with a convergence guarantee", '
        "Machine Learning 104 (2016)"
    ]

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        """Take the problem: 1/2 ||y - X beta||^2 + lmbd ||beta||_1."""
        self.X, self.y, self.alpha, self.fit_intercept = X, y, lmbd / len(y), fit_intercept

    def warm_up(self):
        """Compile the kernels before the clock starts."""
        self.run(1e-2)

    def run(self, tolerance):
        """Solve to a duality gap relative to that of zero; benchopt's first tolerance is 1e38."""
        _, coefs, info = lasso_path(
            self.X, self.y, alphas=[self.alpha], tol=min(max(tolerance, 1e-15), 0.5), fit_intercept=self.fit_intercept
        )
        self.beta = coefs.toarray().ravel()
        if self.fit_intercept:
            self.beta = np.append(self.beta, info.intercept)

    def get_result(self):
        """Return the coefficients, the intercept last."""
        return {"beta": self.beta}
