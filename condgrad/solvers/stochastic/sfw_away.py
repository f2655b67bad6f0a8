"""Stochastic Frank-Wolfe with away steps."""

from __future__ import annotations

from typing import NamedTuple

from condgrad.problems.parabola import Parabola
from condgrad.solvers.stochastic._table import atom_solver


@atom_solver
class SFWAway(NamedTuple):
    r"""Away steps on the gradient estimate of stochastic Frank-Wolfe.

    r = X' alpha as in :class:`SFW`; then w moves towards s = LMO(r) or away from its worst atom v, in the direction d
    with the steeper slope, by the short step gamma = min(max_step, -<r, d> / (L ||X d||^2)) with ||X d|| bounded by
    the norms of the columns.

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
    >>> cg.minimize(problem, cg.solvers.SFWAway(), tol=1e-8, random_state=0).w.round(6)
    array([2.])
    """

    batch_size: int | float = 1
    sampling: str = "batch"
    damping: float = 0.03

    def step(self, F, arrays, rows, t):
        """Update the derivatives of the batch, then move towards s or away from v."""
        for q in range(rows.size()):
            arrays.r.renew_sample(F, rows.at(q), arrays.alpha, arrays.w)
        s = arrays.r.best_vertex(F)
        k = arrays.atoms.worst(arrays.r.vector)
        v = arrays.atoms.atom(k)
        gap = arrays.r.gap()  # <r, w - s>
        away_gap = v.inner(arrays.r.vector) - arrays.r.along()  # <r, v - w>
        reach = arrays.atoms.reach(arrays.norms)
        if gap >= away_gap or arrays.atoms.size() == 1:
            length = abs(s.value) * arrays.norms[s.index] + reach  # upper bound of ||X(s - w)||
            gamma = Parabola(gap, arrays.L * length * length).minimiser(1.0)
            arrays.atoms.step_towards(s, gamma)
            arrays.r.move(arrays.w, s, gamma)
        else:
            weight = arrays.atoms.weights[k]
            max_step = weight / (1.0 - weight)
            length = abs(v.value) * arrays.norms[v.index] + reach  # upper bound of ||X(w - v)||
            gamma = Parabola(away_gap, arrays.L * length * length).minimiser(max_step)
            arrays.atoms.step_away(k, gamma, max_step)
            arrays.r.shift(-gamma * away_gap)
            v.blend_into(arrays.w, -gamma)  # w <- (1 + gamma) w - gamma v
