"""One-sample stochastic Frank-Wolfe."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.convert import as_number
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.finite_sum import Estimate, Trail
from condgrad.solvers.step_sizes import EstimateRule, OneSampleStep
from condgrad.solvers.stochastic.base import StepSolver, step_solver


@compiled
class OneSampleArrays(NamedTuple):
    """w, the previous iterate, and r."""

    w: Vector
    previous: Trail
    r: Estimate


@step_solver
class OneSample(NamedTuple):
    r"""One-sample stochastic Frank-Wolfe (1-SFW), Zhang, Shen, Mokhtari, Hassani & Karbasi (2020).

    A single sample (or batch) updates the estimate after each move, with a uniform in [0, 1]:

        r <- (1 - rho_t) (r + hess f_i(a w_t + (1 - a) w_{t-1}) (w_t - w_{t-1})) + rho_t grad f_i(w_t).

    Convex: rho_t = 1 / (t - 1) (1 for t = 1, 2), gamma_t = 1 / t; E[F(w_t) - F*] = O(1 / sqrt t). Non-convex, with
    ``n_steps`` = K: rho_t = (t - 1)^(-2/3), gamma = K^(-2/3).

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    step_size : "paper" (as above), OpenLoop or ShortStep
    sampling : str
    n_steps : int
        K, the number of steps that will be made, for the non-convex schedule; 0 means the convex schedule.

    References
    ----------
    Zhang et al. (2020), algorithm 1 and theorems 1 and 2.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.OneSample(), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule | str = "paper"
    sampling: str = "batch"
    n_steps: int = 0

    requires = frozenset({Feature.LOOK, Feature.CHUNKS, Feature.VERTICES})
    needs_uniform = True

    def prepare(self):
        """Return the fields with the paper's step size as an object."""
        is_paper = isinstance(self.step_size, str) and self.step_size == "paper"
        step_size = OneSampleStep(self.n_steps) if is_paper else self.step_size
        return self.batch_size, step_size, self.sampling, self.n_steps

    def check(self):
        """Raise if a parameter is wrong."""
        StepSolver.check(self)
        as_number(self.n_steps, "n_steps of OneSample", low=0, what="a number of at least 0")

    def start(self, space):
        """Return w0 with r_0 = 0."""
        return OneSampleArrays(space.iterate(), space.trail(), space.estimate(shrinks=True))

    def step(self, F, arrays, rows, t):
        """Update r for the last move, average a gradient into it, and move."""
        k = t + 1  # the box counts from 1, t from 0
        rho = 1.0 if k <= 2 else (k - 1.0) ** (-1.0 if self.n_steps == 0 else -2.0 / 3.0)
        arrays.r.shrink(1.0 - rho)  # r <- (1 - rho) (r + hess f_i(z) (w_t - w_{t-1})) + rho grad f_i(w_t)
        for q in range(rows.size()):
            i = rows.at(q)
            p, before = F.predict(i, arrays.w), F.predict(i, arrays.previous.w)
            between = rows.uniform * p + (1.0 - rows.uniform) * before  # x_i'z for z = a w_t + (1 - a) w_{t-1}
            carried = (1.0 - rho) * F.curvature(i, between) * (p - before)
            arrays.r.add_row(F, i, rows.share(i) * (carried + rho * F.derivative(i, p)), p)
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(k, arrays.r)
        arrays.previous.follow(s, gamma)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)
