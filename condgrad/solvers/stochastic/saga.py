"""Stochastic Frank-Wolfe with SAGA's unbiased estimate."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic._table import Correction, correction, table_solver


@compiled
class SAGAArrays(NamedTuple):
    """w, the table alpha of derivatives, r = X' alpha, and the correction of r by a batch."""

    w: Vector
    alpha: Table
    r: Estimate
    batch: Correction


@table_solver
class SAGA(NamedTuple):
    r"""Stochastic Frank-Wolfe with the unbiased estimate of SAGA; :class:`SFW` is its biased counterpart.

    The oracle is called with g = r + (n/b) sum over the batch of (new alpha_i - alpha_i) x_i with r = X' alpha before
    the step, so that E[g] = grad F(w) for every batch size; relative to the updated r the factor is n/b - 1.

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    step_size : OpenLoop (default), ShortStep or NonConvex
    sampling : str
    warm : bool
        Whether alpha starts as the derivatives at w0 (one full pass) rather than as zeros.

    References
    ----------
    Reddi, Sra, Poczos & Smola (2016), SAGAFW; Defazio, Bach & Lacoste-Julien (2014) for the estimate.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.SAGA(batch_size=1), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule = OpenLoop()
    sampling: str = "batch"
    warm: bool = False

    requires = frozenset({Feature.LOOK, Feature.CHUNKS})

    def start(self, space):
        """Return w0 with alpha_0 = 0 and r_0 = 0, or the exact derivatives at w0."""
        arrays = SAGAArrays(space.iterate(), space.table(), space.estimate(), correction(space.batch_size))
        return self.warmed(space, arrays) if self.warm else arrays

    def step(self, F, arrays, rows, t):
        """Call the oracle with g, then restore r = X' alpha."""
        arrays.batch.add_to(
            arrays.r, F, rows, arrays.w, arrays.alpha
        )  # g = r + (n/b) sum over the batch of (new alpha_i - alpha_i) x_i
        s = arrays.r.best_vertex(F)  # s = LMO(g)
        gamma = self.step_size.at(t + 1, arrays.r)  # the paper counts from 1, t from 0
        arrays.batch.settle(arrays.r, F, rows, arrays.alpha)  # alpha_i <- new alpha_i, r = X' alpha
        arrays.r.renew(s)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)
