"""Stochastic Frank-Wolfe with momentum."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.finite_sum import Estimate
from condgrad.solvers.step_sizes import EstimateRule, Harmonic
from condgrad.solvers.stochastic.base import step_solver


@compiled
class MomentumArrays(NamedTuple):
    """w and the averaged gradient estimate r."""

    w: Vector
    r: Estimate


@step_solver
class Momentum(NamedTuple):
    r"""Stochastic Frank-Wolfe with momentum on the gradient, Mokhtari, Hassani & Karbasi.

    r <- (1 - rho_t) r + rho_t g_t, where g_t is an unbiased minibatch gradient, rho_t = 4 / (t + 8)^(2/3) and
    gamma_t = 1 / (t + 1). E[F(w_t) - F*] = O(t^(-1/3)). It stores nothing per sample.

    Appendix G.1 of Negiar et al. writes this method with the momentum on the table alpha, coordinate by coordinate,
    and rho_t = 1 / (t + 1)^(2/3) (their section 7: 1 / t^(2/3)). That is a different method: entries of samples that
    are not drawn do not decay, and r is n times a gradient. Here the momentum acts on the whole estimate, as in the
    original; a test shows that r is the running average of unbiased gradients.

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    step_size : Harmonic (default, 1 / (t + 1)), OpenLoop, ShortStep or NonConvex
    sampling : str

    References
    ----------
    Mokhtari, Hassani & Karbasi (2020), algorithm 1 and theorem 3.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.Momentum(batch_size=2), max_epochs=200, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule = Harmonic()
    sampling: str = "batch"

    requires = frozenset({Feature.LOOK, Feature.CHUNKS})

    def start(self, space):
        """Return w0 with r_0 = 0."""
        return MomentumArrays(space.iterate(), space.estimate(shrinks=True))

    def step(self, F, arrays, rows, t):
        """Average a minibatch gradient into r and move."""
        k = t + 1  # the box counts from 1, t from 0
        rho = 4.0 / (k + 8.0) ** (2.0 / 3.0)
        arrays.r.average_in(
            F, rows, arrays.w, rho
        )  # r <- (1 - rho) r + rho g, g = mean over the batch of f_i'(x_i'w) x_i
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(k, arrays.r)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)
