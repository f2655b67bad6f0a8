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
class SpiderState(NamedTuple):
    """w, the iterate before it, and r."""

    w: Vector
    previous: Trail
    r: Estimate


@step_solver
class Spider(NamedTuple):
    r"""SPIDER Frank-Wolfe, Yurtsever, Sra & Cevher (2019), for finite sums.

    Convex: round t = 1, 2, ... has K_t = 2^(t-1) steps k = 1, 2, ..., K_t with gamma = 2 / (K_t + k). The first takes
    the full gradient, the others r <- r + mean over S_k of (grad f_i(w_k) - grad f_i(w_{k-1})) with |S_k| = K_t, at
    most n. Non-convex, with ``step_size=NonConvex(n_steps)``: rounds and batches of ceil(sqrt n).

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

    def start(self, parts):
        """Return w0; the first full gradient is taken before the first step."""
        return SpiderState(parts.iterate(), parts.trail(), parts.estimate())

    def batch_sizes(self, parts, t, count):
        """Return |S_k|: none where the step takes the full gradient."""
        first, length = self.round_of(parts, t)  # blocks of steps end with their round
        return np.full(count, 0 if t == first else parts.batch_size or min(parts.n, length))

    def steps_before_pass(self, parts, t):
        """Return the steps left in the round; a new round begins with the full gradient."""
        first, length = self.round_of(parts, t)
        return 0 if t == first else first + length - t

    def round_of(self, parts, t):
        """Return the first iteration and the length of the round that iteration t = 1, 2, ... is in."""
        if isinstance(self.step_size, NonConvex):
            length = math.ceil(math.sqrt(parts.n))
            return t - (t - 1) % length, length
        length = 1 << (int(t).bit_length() - 1)  # rounds 1; 2, 3; 4 ... 7; ...
        return length, length

    def full_pass(self, parts, state, t):
        """Take the full gradient."""
        w = state.w.to_array()
        state.r.set_to(parts.transpose_dot(parts.derivatives(w)), w)

    def step(self, problem, state, rows, t):
        """Add the batch's difference of gradients to r, and move."""
        for q in range(rows.size()):
            i = rows.at(q)
            p = problem.predict(i, state.w)
            before = problem.derivative(i, problem.predict(i, state.previous.w))
            # r <- r + mean over the batch of (grad f_i(w_k) - grad f_i(w_{k-1}))
            state.r.add_row(problem, i, rows.share(i) * (problem.derivative(i, p) - before), p)
        s = state.r.best_vertex(problem)  # s = LMO(r)
        gamma = self.step_size.at(t - 1.0, state.r)  # 2 / (K + k): iteration t is step k = t - K + 1 of its round
        state.previous.follow(s, gamma)
        state.r.move(state.w, s, gamma)  # w <- w + gamma (s - w)
