"""Stochastic Frank-Wolfe with SAGA's unbiased estimate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic._table import table_solver


@compiled
class SAGAState(NamedTuple):
    """w, the table alpha of derivatives, r = X' alpha, and room for the batch's new derivatives and predictions."""

    w: Vector
    alpha: Table
    r: Estimate
    new: np.ndarray
    p: np.ndarray


@table_solver
class SAGA(NamedTuple):
    r"""Stochastic Frank-Wolfe with the unbiased estimate of SAGA, the sibling of :class:`SFW`.

    The oracle sees g = r + (n/b) sum over the batch of (new alpha_i - alpha_i) x_i with r = X' alpha before the step,
    so that E[g] = grad F(w) for every batch size: on top of the updated r that is the factor n/b - 1.

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

    requires = frozenset({Feature.LOOK, Feature.PREDICTIONS})

    def start(self, parts):
        """Return w0 with alpha_0 = 0 and r_0 = 0, or the exact derivatives at w0."""
        room = np.empty(parts.batch_size), np.empty(parts.batch_size)
        state = SAGAState(parts.iterate(), parts.table(), parts.estimate(), *room)
        return self.warmed(parts, state) if self.warm else state

    def step(self, problem, state, rows, t):
        """Ask the oracle with g, then keep r = X' alpha."""
        for q in range(rows.size()):
            i = rows.at(q)
            p = problem.predict(i, state.w)
            new = problem.derivative(i, p)
            state.new[q], state.p[q] = new, p
            state.r.add_row(problem, i, rows.share(i) * (new - state.alpha.at(i)), p)  # g = r + (n/b) sum ...
        s = state.r.best_vertex(problem)  # s = LMO(g)
        gamma = self.step_size.at(t, state.r)
        for q in range(rows.size()):  # from g back to r, with the batch's new derivatives in it
            i = rows.at(q)
            state.r.add_row(problem, i, -rows.share(i) * (state.new[q] - state.alpha.at(i)), state.p[q])
        for q in range(rows.size()):
            i = rows.at(q)
            state.r.add_row(problem, i, state.alpha.replace(i, state.new[q]), state.p[q])
        state.r.renew(s)
        state.r.move(state.w, s, gamma)
