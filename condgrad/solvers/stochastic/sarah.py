"""SARAH Frank-Wolfe: differences of gradients between rare full gradients, which come at random."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate, Trail
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic.base import step_solver
from condgrad.solvers.stochastic.sampling import resolve_batch_size


@compiled
class SARAHArrays(NamedTuple):
    """w, the previous iterate, and r."""

    w: Vector
    previous: Trail
    r: Estimate


@step_solver
class SARAH(NamedTuple):
    r"""SARAH Frank-Wolfe, Beznosikov, Dobre & Gidel (2023).

    With probability p = b / (n + b), and in the first step, r is the full gradient; else

        r <- r + mean over the batch of (grad f_i(w_t) - grad f_i(w_{t-1})).

    A step costs the stored entries of the batch twice; a full gradient comes about every n / b steps, so that an
    epoch of them adds half to the work. Nothing is stored per sample.

    What is ours, because the box that we follow leaves it open: the batch of ceil(sqrt n) samples, for which the full
    gradients cost as much as the batches, and the open loop as the default step size.

    Parameters
    ----------
    batch_size : "sqrt", int, or a float in (0, 1)
        b; by default ceil(sqrt n).
    step_size : OpenLoop (default), LogAdaptive, ShortStep or NonConvex
    sampling : str

    References
    ----------
    Beznosikov, Dobre & Gidel (2023), SARAH Frank-Wolfe.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.SARAH(), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float | str = "sqrt"
    step_size: EstimateRule = OpenLoop()
    sampling: str = "batch"

    gradients_per_sample = 2
    tosses_coins = True

    def first_batch_size(self, n):
        """Return b."""
        is_root = isinstance(self.batch_size, str) and self.batch_size == "sqrt"
        return math.ceil(math.sqrt(n)) if is_root else resolve_batch_size(self.batch_size, n)

    def start(self, space):
        """Return w0; the first full gradient is computed before the first step."""
        return SARAHArrays(space.iterate(), space.trail(), space.estimate())

    def batch_sizes(self, space, t, count):
        """Return b, and 0 for a first step with the full gradient: blocks of steps end before the next one."""
        sizes = np.full(count, space.batch_size)
        sizes[0] = 0 if self.is_full(space, t) else space.batch_size
        return sizes

    def steps_before_pass(self, space, t):
        """Return the number of steps before the next full gradient; 0 if it is due now."""
        if self.is_full(space, t):
            return 0
        return space.coins.next_below(self.chance(space), t) - t

    def is_full(self, space, t):
        """Return whether iteration ``t`` uses the full gradient."""
        return t == 0 or space.coins.is_below(self.chance(space), t)

    def chance(self, space):
        """Return p = b / (n + b)."""
        return space.batch_size / (space.n + space.batch_size)

    def full_pass(self, space, arrays, t):
        """Set r to the full gradient."""
        w = arrays.w.to_array()
        arrays.r.set_to(space.transpose_dot(space.derivatives(w)), w)

    def step(self, F, arrays, rows, t):
        """Add the batch's difference of gradients to r, and move."""
        for q in range(rows.size()):
            i = rows.at(q)
            p = F.predict(i, arrays.w)
            before = F.derivative(i, F.predict(i, arrays.previous.w))
            # r <- r + mean over the batch of (grad f_i(w_t) - grad f_i(w_{t-1}))
            arrays.r.add_row(F, i, rows.share(i) * (F.derivative(i, p) - before), p)
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(t + 1, arrays.r)  # counted from 1, as sfw does: the first step is not a vertex
        arrays.previous.follow(s, gamma)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)
