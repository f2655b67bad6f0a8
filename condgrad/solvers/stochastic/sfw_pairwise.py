"""Stochastic Frank-Wolfe with pairwise steps."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.problems.parabola import Parabola
from condgrad.solvers.stochastic._table import atom_solver


@atom_solver
class SFWPairwise(NamedTuple):
    r"""Pairwise steps on the gradient estimate of stochastic Frank-Wolfe.

    r = X' alpha as in :class:`SFW`; then weight moves from the worst atom v of w to s = LMO(r), by the short step
    gamma = min(weight of v, <r, v - s> / (L ||X(s - v)||^2)) with the norm bounded by the norms of the two columns. The
    estimate converges as w does, so the steps need not shrink: in practice the rate is linear, as for the deterministic
    method, while the proof of Goldfarb et al. needs growing batches.

    It requires a set whose vertices have one feature each (l1 balls, the simplex). A step costs
    O(nnz(batch) log d + atoms).

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    sampling : str
    damping : float
        The short step uses L (1 + damping n/b) instead of L: r is up to n/b steps old, and with small batches undamped
        steps can oscillate. A smaller value is faster if columns touch many samples, a larger one is safer.

    References
    ----------
    Goldfarb, Iyengar & Zhou (2017) for the directions; announced by Negiar et al. (2020), section 8.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, cg.solvers.SFWPairwise(), tol=1e-8, random_state=0).w.round(6)
    array([2.])
    """

    batch_size: int | float = 1
    sampling: str = "batch"
    damping: float = 0.03

    def step(self, F, arrays, rows, t):
        """Update the derivatives of the batch, then move weight from v to s."""
        for q in range(rows.size()):
            arrays.r.renew_sample(F, rows.at(q), arrays.alpha, arrays.w)
        s = arrays.r.best_vertex(F)
        k = arrays.atoms.worst(arrays.r.vector)
        v = arrays.atoms.atom(k)
        descent = v.inner(arrays.r.vector) - s.inner(arrays.r.vector)  # <r, v - s>
        length = abs(s.value) * arrays.norms[s.index] + abs(v.value) * arrays.norms[v.index]
        max_step = arrays.atoms.weights[k]
        gamma = Parabola(descent, arrays.L * length * length).minimiser(max_step)
        arrays.atoms.step_between(k, s, gamma, max_step)
        arrays.w.add_at(s.index, gamma * s.value)
        arrays.w.add_at(v.index, -gamma * v.value)
        arrays.r.shift(-gamma * descent)
