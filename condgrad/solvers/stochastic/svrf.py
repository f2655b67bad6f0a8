"""Stochastic variance-reduced Frank-Wolfe."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic._table import table_solver
from condgrad.solvers.stochastic.sampling import resolve_batch_size


@compiled
class SVRFArrays(NamedTuple):
    """w, the derivatives alpha at the snapshot, r = X' alpha, the round's first step, and work arrays for a batch."""

    w: Vector
    alpha: Table
    r: Estimate
    snapshot: np.ndarray
    change: np.ndarray
    p: np.ndarray


@table_solver
class SVRF(NamedTuple):
    r"""Stochastic variance-reduced Frank-Wolfe, Hazan & Luo (2016).

    Round t = 1, 2, ... computes the full gradient at a snapshot v, then N_t = 2^(t+3) - 2 steps k = 1, 2, ... with

        r = grad F(v) + mean over m_k samples of (grad f_i(w) - grad f_i(v)),   gamma_k = 2 / (k + 1),

    m_k = 96 (k + 1) samples, at most n (then r is the exact gradient). The derivatives at the snapshot are stored, one
    number per sample, so a step evaluates each sample once.

    Parameters
    ----------
    batch_size : int
        The factor of k + 1 in m_k; the paper uses 96, smaller factors are common in practice.
    step_size : OpenLoop (default: 2 / (k + 1), counted from the snapshot), ShortStep or NonConvex
    sampling : str

    References
    ----------
    Hazan & Luo (2016), algorithm 1 and theorem 1.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.SVRF(), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 96
    step_size: EstimateRule = OpenLoop()
    sampling: str = "batch"

    batches_grow = True

    def first_batch_size(self, n):
        """Return the factor of k + 1, which may exceed n."""
        is_factor = isinstance(self.batch_size, (int, np.integer))
        return resolve_batch_size(self.batch_size, max(n, self.batch_size) if is_factor else n)

    def start(self, space):
        """Return w0; the first snapshot is taken before the first step."""
        room = np.zeros(space.n), np.zeros(space.n)
        return SVRFArrays(space.iterate(), space.table(), space.estimate(), np.zeros(1), *room)

    def batch_sizes(self, space, t, count):
        """Return m_k = batch_size (k + 1), at most n."""
        k = t - first_of_round(t) + 1 + np.arange(count)
        return np.minimum(space.n, space.batch_size * (k + 1))

    def steps_before_pass(self, space, t):
        """Return the number of steps left in the round; 0 at the start of a round, which needs its snapshot."""
        first = first_of_round(t)
        return 0 if t == first else first_of_round(t, after=True) - t

    def full_pass(self, space, arrays, t):
        """Take the snapshot v = w: its derivatives and its gradient."""
        w = arrays.w.to_array()
        arrays.alpha.values[:] = space.derivatives(w)
        arrays.r.set_to(space.transpose_dot(arrays.alpha.values), w)
        arrays.snapshot[0] = t + 1  # counted from 1, as checkpoints store it

    def step(self, F, arrays, rows, t):
        """Correct the gradient at the snapshot by a batch, move, and subtract the correction again."""
        k = t + 2.0 - arrays.snapshot[0]  # the step of this round, from 1 on
        for q in range(rows.size()):
            i = rows.at(q)
            p = F.predict(i, arrays.w)
            arrays.p[q] = p
            arrays.change[q] = rows.share(i) * (F.derivative(i, p) - arrays.alpha.at(i))
            arrays.r.add_row(F, i, arrays.change[q], p)  # grad F(v) + mean of (grad f_i(w) - grad f_i(v))
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(k - 1.0, arrays.r)  # 2 / (k + 1): the rule counts from 0
        for q in range(rows.size()):  # back to grad F(v), for the next batch
            arrays.r.add_row(F, rows.at(q), -arrays.change[q], arrays.p[q])
        arrays.r.renew(s)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)


def first_of_round(t: int, after: bool = False) -> int:
    """Return the first iteration of the round that contains iteration ``t``, or of the next round."""
    first, length = 0, 14
    while t >= first + length:
        first, length = first + length, 2 * length + 2  # N_t = 2^(t+3) - 2
    return first + length if after else first
