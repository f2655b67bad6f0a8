"""Stochastic Frank-Wolfe with a table of derivatives."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic._table import table_solver


@compiled
class SFWArrays(NamedTuple):
    """w, the table alpha of derivatives, and r = X' alpha."""

    w: Vector
    alpha: Table
    r: Estimate


@table_solver
class SFW(NamedTuple):
    r"""Stochastic Frank-Wolfe with constant batch size, algorithm 1 of Negiar et al. (2020).

    A table stores the last derivative alpha_i = f'(x_i'w, y_i) / n of each sample, and r = X' alpha estimates the
    gradient.
    E[F(w_t) - F*] = O(kappa / t), equation (9). On CSR data with an atomic set a step costs O(nnz(batch) log d).

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
        Samples per step b, or a fraction of n. With b samples rho = 1 - b/n in lemma 3.
    step_size : OpenLoop (default, the paper's 2 / (t + 2)), ShortStep or NonConvex
    sampling : str
        See :class:`condgrad.solvers.stochastic.sampling.Sampler`; the paper draws without replacement within a batch.
    warm : bool
        Whether alpha starts as the derivatives at w0 (one full pass) rather than as the paper's zeros.

    References
    ----------
    Negiar, Dresdner, Tsai, El Ghaoui, Locatello, Freund & Pedregosa (2020), algorithm 1.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.SFW(batch_size=2), max_epochs=200, tol=1e-2, random_state=0)
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
        arrays = SFWArrays(space.iterate(), space.table(), space.estimate())
        return self.warmed(space, arrays) if self.warm else arrays

    def step(self, F, arrays, rows, t):
        """Make lines 3 to 8 of algorithm 1, with a batch instead of a single sample."""
        for q in range(rows.size()):
            i = rows.at(q)  # 3
            p = F.predict(i, arrays.w)
            change = arrays.alpha.replace(i, F.derivative(i, p))  # 4: alpha_i <- f_i'(x_i'w) / n
            arrays.r.add_row(F, i, change, p)  # 6: r <- r + (alpha_i - its last value) x_i
        s = arrays.r.best_vertex(F)  # 7: s = LMO(r)
        gamma = self.step_size.at(t + 1, arrays.r)  # the box counts from 1, t from 0
        arrays.r.move(arrays.w, s, gamma)  # 8: w <- w + gamma (s - w)
