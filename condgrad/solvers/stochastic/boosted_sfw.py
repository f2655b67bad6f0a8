"""Boosted stochastic Frank-Wolfe with a table of derivatives."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.problems.pursuit import Pursuit
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic._boosted import boosted_solver


@compiled
class BoostedSFWArrays(NamedTuple):
    """w, the table alpha of derivatives, r = X' alpha, and the pursuit."""

    w: Vector
    alpha: Table
    r: Estimate
    pursuit: Pursuit


@boosted_solver
class BoostedSFW(NamedTuple):
    r"""Boosted stochastic Frank-Wolfe on the estimate of :class:`SFW`, Nandhan, Khademi & Silveti-Falls (2026).

    r = X' alpha is updated by the batch as in ``sfw`` (SAG). A pursuit of at most K rounds then combines vertices to a
    direction that is better aligned with -r than a single one (see :class:`Boosted`).

    A step costs the stored entries of the batch, up to K oracle calls and O(K d): the norm of the direction needs all
    of r and w, so that it pays where the oracle or the batch costs that much anyway.

    What is ours: the open loop as the step size, and few rounds, because the estimate itself is inexact.

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    step_size : OpenLoop (default), LogAdaptive, ShortStep or NonConvex
    sampling : str
    n_rounds : int
        K.
    delta : float
        The least gain in the cosine of a round.

    References
    ----------
    Nandhan, Khademi & Silveti-Falls (2026); Combettes & Pokutta (2020) for the pursuit.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.BoostedSFW(batch_size=2), max_epochs=200, tol=1e-2, random_state=0)
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
        return BoostedSFWArrays(space.iterate(), space.table(), space.estimate(is_whole=True), chase)

    def step(self, F, arrays, rows, t):
        """Renew the batch's derivatives, and move along the direction of the pursuit."""
        for q in range(rows.size()):
            arrays.r.renew_sample(F, rows.at(q), arrays.alpha, arrays.w)  # alpha_i <- f_i'(x_i'w), r = X' alpha
        arrays.r.pursue(F, arrays.w, arrays.pursuit)  # d = sum_k lam_k (v_k - w), close to -r
        gamma = self.step_size.at(t + 1, arrays.r)  # the box of sfw counts from 1, t from 0
        arrays.r.move_to(arrays.w, arrays.pursuit.end, gamma)  # w <- w + gamma d / sum_k lam_k
