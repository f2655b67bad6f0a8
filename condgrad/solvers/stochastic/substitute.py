"""Stochastic Frank-Wolfe with substitute gradients."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.solvers.step_sizes import EstimateRule, SubstituteStep
from condgrad.solvers.stochastic._table import table_solver


@compiled
class SubstituteArrays(NamedTuple):
    """w, the averaged predictions sigma, the derivatives alpha at them, and r = X' alpha."""

    w: Vector
    sigma: Table
    alpha: Table
    r: Estimate


@table_solver
class Substitute(NamedTuple):
    r"""Stochastic Frank-Wolfe with substitute gradients, Lu & Freund.

    The derivative of a sample is evaluated at an average sigma_i of past predictions x_i's:
    sigma_i <- (1 - delta_t) sigma_i + delta_t x_i's. With m = n / b,

        gamma_t = 2 (2m + t) / ((t + 1) (4m + t)),   delta_t = 2m / (2m + t + 1),   t = 0, 1, 2, ...

    so that w_t is exactly the average of s_0, ..., s_t with weights 2m + t. Appendix G.2 of Negiar et al. prints
    4m + t + 1 in gamma_t, with which no such average exists; a test shows it. E[F(w_t) - F*] = O(n / t).

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    step_size : SubstituteStep (default, the paper's), OpenLoop or NonConvex
    sampling : str

    Notes
    -----
    The box needs x_i's only; the prediction x_i'w is computed in addition, for the running gap.

    References
    ----------
    Lu & Freund (2021), algorithm 2; Negiar et al. (2020), appendix G.2.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.Substitute(batch_size=2), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule = SubstituteStep()
    sampling: str = "batch"

    requires = frozenset({Feature.LOOK, Feature.PREDICTIONS})

    def start(self, space):
        """Return w0 with sigma_0 = X w0, alpha_0 = 0 and r_0 = 0."""
        sigma = space.table(space.predictions(space.w0))
        return SubstituteArrays(space.iterate(), sigma, space.table(), space.estimate())

    def step(self, F, arrays, rows, t):
        """Make lines 3 to 8 of the box in appendix G.2, with a batch instead of a single sample."""
        # The appendix rounds m down to a whole number of batches; without rounding, w is exactly the average of s_k.
        m = arrays.alpha.values.shape[0] / max(1, rows.size())
        delta = 2.0 * m / (2.0 * m + t + 1.0)
        s = arrays.r.best_vertex(F)  # 3: s = LMO(r), with r from the previous step
        gamma = self.step_size.at(t + 1, arrays.r)  # step sizes of other papers count from 1
        for q in range(rows.size()):
            i = rows.at(q)  # 4
            sigma = (1.0 - delta) * arrays.sigma.at(i) + delta * s.dot_row_of(F.X, i)
            arrays.sigma.replace(i, sigma)  # 5: sigma_i <- (1 - delta) sigma_i + delta x_i's
            alpha = F.derivative(i, sigma + F.b[0])  # 6: alpha_i <- f_i'(sigma_i) / n
            change = arrays.alpha.replace(i, alpha)
            arrays.r.add_row(F, i, change, F.predict(i, arrays.w))  # 7: r <- r + (the change of alpha_i) x_i
        arrays.r.renew(s)
        arrays.r.move(arrays.w, s, gamma)  # 8: w <- (1 - gamma) w + gamma s
