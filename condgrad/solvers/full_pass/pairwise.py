"""Pairwise Frank-Wolfe."""

from __future__ import annotations

from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.segment import between
from condgrad.solvers.full_pass.base import ActiveState, PassSolver


class Pairwise(PassSolver):
    r"""Pairwise Frank-Wolfe: move weight from the worst atom v of the iterate to the best vertex s of C.

    w <- w + gamma (s - v) with gamma at most the weight of v; the longest step drops v. It converges linearly for
    strongly convex F over a polytope. A step reads the rows of two columns and costs one gradient (on sparse
    data only the rows whose predictions changed are read again).

    Parameters
    ----------
    step_size : a rule of :mod:`condgrad.step_sizes`
        ExactLineSearch by default.

    References
    ----------
    Lacoste-Julien & Jaggi (2015), algorithm 2.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "pairwise").w
    array([2.])
    """

    requires = PassSolver.requires | {Feature.VERTICES}
    keeps_atoms = True

    def step(self, problem: BaseProblem, state: ActiveState, t: int) -> None:
        """Move weight from v to s."""
        point, active = state.point, state.active
        products = active.inner_products(point.r)
        k = int(products.argmax())  # v = arg max over the active atoms of <grad F(w), v>
        away_gap = float(products[k]) - point.along()
        line = between(point, active.vertex(k), point.s, -(point.gap + away_gap), float(active.weights[k]))
        gamma = state.rule.at(t, line)
        active.step_between(k, point.s, gamma, line.max_step)
        point.move(line, gamma)
