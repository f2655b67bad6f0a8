"""condgrad's solver of l1-penalised logistic regression, for benchopt's benchmark_logreg_l1."""

from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

from condgrad import radius_path


class Solver(BaseSolver):
    """Taylor models on a working set, each minimised exactly, and a certified duality gap."""

    name = "condgrad"
    sampling_strategy = "tolerance"
    # A model is minimised exactly, so that several tolerances have one answer: that is not yet the end.
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=10)
    requirements = ["pip::condgrad"]  # noqa: RUF012
    references = [  # noqa: RUF012
        "Z. Xiong and R. M. Freund, "
        '"Using Taylor-Approximated Gradients to Improve the Frank-Wolfe Method for Empirical Risk Minimization", '
        "arXiv:2208.13933 (2022)"
    ]

    def set_objective(self, X, y, lmbd):
        """Take the problem: the sum of log(1 + exp(-y x'beta)) plus lmbd ||beta||_1."""
        self.X, self.y, self.alpha = X, y, lmbd / len(y)

    def warm_up(self):
        """Compile the kernels before the clock starts."""
        self.run(1e-2)

    def run(self, tolerance):
        """Solve to a duality gap relative to the loss of zero; benchopt's first tolerance is 1e38."""
        tol = min(max(tolerance, 1e-15), 0.5)
        _, coefs, _ = radius_path(self.X, self.y, loss="logistic", alphas=[self.alpha], tol=tol)
        self.beta = coefs.toarray().ravel()

    def get_result(self):
        """Return the coefficients."""
        return {"beta": self.beta}
