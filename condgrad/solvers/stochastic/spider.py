"""SPIDER Frank-Wolfe: path-integrated differences of gradients."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate, Trail
from condgrad.solvers.step_sizes import EstimateRule, NonConvex, OpenLoop
from condgrad.solvers.stochastic.base import step_solver
from condgrad.solvers.stochastic.sampling import resolve_batch_size


@compiled
class SpiderArrays(NamedTuple):
    """w, the previous iterate, and r."""

    w: Vector
    previous: Trail
    r: Estimate


@step_solver
class Spider(NamedTuple):
    r"""SPIDER Frank-Wolfe, Yurtsever, Sra & Cevher (2019), for finite sums.

    Convex: round t = 1, 2, ... has K_t = 2^(t-1) steps k = 1, 2, ..., K_t with gamma = 2 / (K_t + k). The first step
    uses the full gradient, the others r <- r + mean over S_k of (grad f_i(w_k) - grad f_i(w_{k-1})) with |S_k| = K_t,
    at most n. Non-convex, with ``step_size=NonConvex(n_steps)``: rounds and batches of ceil(sqrt n).

    Parameters
    ----------
    batch_size : "paper", int, or a float in (0, 1)
        |S_k|; by default as above.
    step_size : OpenLoop (default: 2 / (K_t + k)), ShortStep, or NonConvex for non-convex losses
    sampling : str

    References
    ----------
    Yurtsever, Sra & Cevher (2019), algorithms 1 and 3.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.Spider(), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float | str = "paper"
    step_size: EstimateRule = OpenLoop()
    sampling: str = "batch"

    gradients_per_sample = 2
    batches_grow = True

    def first_batch_size(self, n):
        """Return the user's batch size, or 0 for the paper's."""
        return 0 if self.batch_size == "paper" else resolve_batch_size(self.batch_size, n)

    def start(self, space):
        """Return w0; the first full gradient is computed before the first step."""
        return SpiderArrays(space.iterate(), space.trail(), space.estimate())

    def batch_sizes(self, space, t, count):
        """Return |S_k|: 0 if the step uses the full gradient."""
        first, length = self.round_of(space, t)  # blocks of steps end with their round
        return np.full(count, 0 if t == first else space.batch_size or min(space.n, length))

    def steps_before_pass(self, space, t):
        """Return the number of steps left in the round; 0 at the start of a round, which needs the full gradient."""
        first, length = self.round_of(space, t)
        return 0 if t == first else first + length - t

    def round_of(self, space, t):
        """Return the first iteration and the length of the round that contains iteration ``t``."""
        if isinstance(self.step_size, NonConvex):
            length = math.ceil(math.sqrt(space.n))
            return t - t % length, length
        length = 1 << (int(t + 1).bit_length() - 1)  # rounds 0; 1, 2; 3 ... 6; ...
        return length - 1, length

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
            # r <- r + mean over the batch of (grad f_i(w_k) - grad f_i(w_{k-1}))
            arrays.r.add_row(F, i, rows.share(i) * (F.derivative(i, p) - before), p)
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(t, arrays.r)  # 2 / (K + k): iteration t is step k = t - K + 2 of its round
        arrays.previous.follow(s, gamma)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)
