"""Stochastic Frank-Wolfe on growing batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic.base import step_solver


@compiled
class GrowingBatchArrays(NamedTuple):
    """w, the gradient r of the batch, and work arrays for a batch."""

    w: Vector
    r: Estimate
    alpha: np.ndarray
    p: np.ndarray


@step_solver
class GrowingBatch(NamedTuple):
    r"""Stochastic Frank-Wolfe on minibatch gradients with growing batches.

    r = mean over m_k samples of grad f_i(w) and gamma_k = 2 / (k + 1), with m_k growing like (k + 1)^2 and at most n
    (from then on it is deterministic Frank-Wolfe): Hazan & Luo (2016). For non-convex losses Reddi et al. (2016) use
    batches as large as the number of steps: ``growth=0`` with ``step_size=NonConvex(n_steps)``.

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
        m_1; m_k = batch_size ((k + 1) / 2)^growth.
    step_size : OpenLoop (default: 2 / (k + 1)), ShortStep or NonConvex
    sampling : str
    growth : float
        The exponent of the growth.

    References
    ----------
    Hazan & Luo (2016), section 3.1 (SFW); Reddi, Sra, Poczos & Smola (2016), algorithm 2.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.GrowingBatch(), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule = OpenLoop()
    sampling: str = "batch"
    growth: float = 2.0

    batches_grow = True

    def start(self, space):
        """Return w0 with r = 0."""
        return GrowingBatchArrays(space.iterate(), space.estimate(), np.zeros(space.n), np.zeros(space.n))

    def batch_sizes(self, space, t, count):
        """Return m_k = batch_size ((k + 1) / 2)^growth, at most n."""
        k = t + 1 + np.arange(count)
        return np.minimum(space.n, np.ceil(space.batch_size * ((k + 1) / 2) ** self.growth)).astype(np.int64)

    def step(self, F, arrays, rows, t):
        """Add the gradient of a batch to r, move, and subtract it again."""
        for q in range(rows.size()):
            i = rows.at(q)
            p = F.predict(i, arrays.w)
            arrays.p[q] = p
            arrays.alpha[q] = rows.share(i) * F.derivative(i, p)
            arrays.r.add_row(F, i, arrays.alpha[q], p)  # r = mean over the batch of grad f_i(w)
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(t, arrays.r)  # 2 / (k + 1) for k = t + 1
        for q in range(rows.size()):  # back to 0, for the next batch
            arrays.r.add_row(F, rows.at(q), -arrays.alpha[q], arrays.p[q])
        arrays.r.renew(s)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)

    def resynchronise(self, space, arrays):
        """Set r to zero: between steps it contains only rounding errors."""
        arrays.r.set_to(np.zeros(space.d), arrays.w.to_array())
