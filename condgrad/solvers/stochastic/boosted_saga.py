"""Boosted stochastic Frank-Wolfe with SAGA's unbiased estimate."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.problems.pursuit import Pursuit
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic._boosted import boosted_solver
from condgrad.solvers.stochastic._table import Correction, correction


@compiled
class BoostedSAGAArrays(NamedTuple):
    """w, the table alpha of derivatives, r = X' alpha, the correction of r by a batch, and the pursuit."""

    w: Vector
    alpha: Table
    r: Estimate
    batch: Correction
    pursuit: Pursuit


@boosted_solver
class BoostedSAGA(NamedTuple):
    r"""Boosted stochastic Frank-Wolfe on the estimate of :class:`SAGA`, Nandhan, Khademi & Silveti-Falls (2026).

    The batch corrects r = X' alpha without bias, as in ``saga``. A pursuit of at most K rounds combines vertices to a
    direction that is better aligned with the opposite of this estimate than a single one (see :class:`Boosted`).

    The cost of a step, and what is ours, are as in :class:`BoostedSFW`.

    Parameters
    ----------
    batch_size, step_size, sampling, n_rounds, delta
        As in :class:`BoostedSFW`.

    References
    ----------
    Nandhan, Khademi & Silveti-Falls (2026); Combettes & Pokutta (2020) for the pursuit.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.BoostedSAGA(batch_size=2), max_epochs=200, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule = OpenLoop()
    sampling: str = "batch"
    n_rounds: int = 5
    delta: float = 1e-3

    def start(self, space):
        """Return w0 with alpha_0 = 0 and r_0 = 0."""
        chase = space.pursuit(self.n_rounds, self.delta)
        vectors = space.iterate(), space.table(), space.estimate(is_whole=True)
        return BoostedSAGAArrays(*vectors, correction(space.batch_size), chase)

    def step(self, F, arrays, rows, t):
        """Correct r by the batch, aim with it, restore r = X' alpha, and move."""
        arrays.batch.add_to(arrays.r, F, rows, arrays.w, arrays.alpha)  # g = r + (n/b) sum (new alpha_i - alpha_i) x_i
        arrays.r.pursue(F, arrays.w, arrays.pursuit)  # d = sum_k lam_k (v_k - w), close to -g
        gamma = self.step_size.at(t + 1, arrays.r)  # the box of saga counts from 1, t from 0
        arrays.batch.settle(arrays.r, F, rows, arrays.alpha)  # alpha_i <- new alpha_i, r = X' alpha
        arrays.r.head_for(arrays.pursuit.end)
        arrays.r.move_to(arrays.w, arrays.pursuit.end, gamma)  # w <- w + gamma d / sum_k lam_k
