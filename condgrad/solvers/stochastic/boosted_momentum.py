"""Boosted stochastic Frank-Wolfe with momentum."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.finite_sum import Estimate
from condgrad.problems.pursuit import Pursuit
from condgrad.solvers.step_sizes import EstimateRule, Harmonic
from condgrad.solvers.stochastic._boosted import boosted_solver


@compiled
class BoostedMomentumArrays(NamedTuple):
    """w, the averaged gradient estimate r, and the pursuit."""

    w: Vector
    r: Estimate
    pursuit: Pursuit


@boosted_solver
class BoostedMomentum(NamedTuple):
    r"""Boosted stochastic Frank-Wolfe on the estimate of :class:`Momentum`, Nandhan, Khademi & Silveti-Falls (2026).

    r <- (1 - rho_t) r + rho_t g_t as in ``mokhtari``, with rho_t = 4 / (t + 8)^(2/3). A pursuit of at most K rounds
    then combines vertices to a direction that is better aligned with -r than a single one (see :class:`Boosted`). It
    stores nothing per sample.

    A step costs the stored entries of the batch, up to K oracle calls and O(K d): the norm of the direction needs all
    of r and w, so that it pays where the oracle or the batch costs that much anyway.

    What is ours: the step size 1 / (t + 1) of ``mokhtari``, and few rounds, because the estimate itself is inexact.

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    step_size : Harmonic (default), OpenLoop, LogAdaptive, ShortStep or NonConvex
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
    >>> result = cg.minimize(problem, "boosted-mokhtari", max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule = Harmonic()
    sampling: str = "batch"
    n_rounds: int = 5
    delta: float = 1e-3

    def start(self, space):
        """Return w0 with r_0 = 0."""
        chase = space.pursuit(self.n_rounds, self.delta)
        return BoostedMomentumArrays(space.iterate(), space.estimate(shrinks=True, is_whole=True), chase)

    def on_samples(self, arrays, place):
        """Return the arrays: none has an entry per sample."""
        return arrays

    def resynchronise(self, space, arrays):
        """Compute <r, w> anew."""
        arrays.r.synchronise(arrays.w.to_array())

    def step(self, F, arrays, rows, t):
        """Average a minibatch gradient into r, and move along the direction of the pursuit."""
        k = t + 1  # the box of mokhtari counts from 1, t from 0
        arrays.r.average_in(F, rows, arrays.w, 4.0 / (k + 8.0) ** (2.0 / 3.0))  # r <- (1 - rho) r + rho g
        arrays.r.pursue(F, arrays.w, arrays.pursuit)  # d = sum_k lam_k (v_k - w), close to -r
        gamma = self.step_size.at(k, arrays.r)
        arrays.r.move_to(arrays.w, arrays.pursuit.end, gamma)  # w <- w + gamma d / sum_k lam_k
