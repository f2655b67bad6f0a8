"""CASPIDERG: SPIDER with differences of gradients from the curvature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.convert import as_number
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate, Trail
from condgrad.solvers.step_sizes import EstimateRule, NonConvex
from condgrad.solvers.stochastic.base import StepSolver, step_solver
from condgrad.solvers.stochastic.sampling import resolve_batch_size


@compiled
class CurvatureAidedArrays(NamedTuple):
    """w, the previous iterate, and r."""

    w: Vector
    previous: Trail
    r: Estimate


@step_solver
class CurvatureAided(NamedTuple):
    r"""CASPIDERG, Shen, Fang, Zhao, Huang & Qian (2019), for non-convex losses.

    As :class:`Spider`, with the difference of gradients replaced by Hessian-vector products at a random point of the
    last move, z = a w_k + (1 - a) w_{k-1} with a uniform in [0, 1]:

        r <- r + mean over S_k of f''(x_i'z) (x_i'(w_k - w_{k-1})) x_i,   gamma = 1 / sqrt(K + 1).

    Xiong & Freund's settings: a full gradient every n^(1/4) K^(1/4) steps, batches of max(n^(3/4) K^(-1/4), 1).

    Parameters
    ----------
    n_steps : int
        K, the number of steps that will be made.
    batch_size : "paper", int, or a float in (0, 1)
    step_size : "paper" (1 / sqrt(K + 1)), OpenLoop or ShortStep
    sampling : str

    References
    ----------
    Shen et al. (2019); Xiong & Freund (2024), section 6.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [0.0, 1.0], cg.losses.SigmoidSquared(), cg.constraints.L1Ball(2.0))
    >>> result = cg.minimize(problem, cg.solvers.CurvatureAided(n_steps=900), max_steps=900, random_state=0)
    >>> bool(result.gap < 0.02 < problem.gap([2.0]))
    True
    """

    n_steps: int = 10_000
    batch_size: int | float | str = "paper"
    step_size: EstimateRule | str = "paper"
    sampling: str = "batch"

    needs_uniform = True
    batches_grow = True

    def prepare(self):
        """Return the fields with the paper's step size as an object."""
        is_paper = isinstance(self.step_size, str) and self.step_size == "paper"
        step_size = NonConvex(self.n_steps) if is_paper else self.step_size
        return self.n_steps, self.batch_size, step_size, self.sampling

    def check(self):
        """Raise if a parameter is wrong."""
        StepSolver.check(self)
        as_number(self.n_steps, "n_steps of CurvatureAided", low=1, what="a whole number of at least 1")

    def first_batch_size(self, n):
        """Return the user's batch size, or 0 for the paper's."""
        return 0 if self.batch_size == "paper" else resolve_batch_size(self.batch_size, n)

    def start(self, space):
        """Return w0; the first full gradient is computed before the first step."""
        return CurvatureAidedArrays(space.iterate(), space.trail(), space.estimate())

    def batch_sizes(self, space, t, count):
        """Return |S_k|: 0 if the step uses the full gradient."""
        size = space.batch_size or max(int(space.n**0.75 * self.n_steps**-0.25), 1)
        is_first = (t + np.arange(count)) % self.round_length(space) == 0
        return np.where(is_first, 0, min(size, space.n))

    def steps_before_pass(self, space, t):
        """Return the number of steps before the next full gradient."""
        done = t % self.round_length(space)
        return 0 if done == 0 else self.round_length(space) - done

    def round_length(self, space):
        """Return n^(1/4) K^(1/4), rounded up."""
        return int(np.ceil((space.n * self.n_steps) ** 0.25))

    def full_pass(self, space, arrays, t):
        """Set r to the full gradient."""
        w = arrays.w.to_array()
        arrays.r.set_to(space.transpose_dot(space.derivatives(w)), w)

    def step(self, F, arrays, rows, t):
        """Add the batch's Hessian-vector products to r, and move."""
        for q in range(rows.size()):
            i = rows.at(q)
            p, before = F.predict(i, arrays.w), F.predict(i, arrays.previous.w)
            between = rows.uniform * p + (1.0 - rows.uniform) * before  # x_i'z, one z for the whole batch
            # r <- r + mean over the batch of hess f_i(z) (w_k - w_{k-1})
            arrays.r.add_row(F, i, rows.share(i) * F.curvature(i, between) * (p - before), p)
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(t + 1, arrays.r)  # the paper counts from 1, t from 0
        arrays.previous.follow(s, gamma)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)
