"""Frank-Wolfe with away steps."""

from __future__ import annotations

from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.segment import away_from, towards
from condgrad.solvers.full_pass.base import ActiveState, PassSolver


class AwayStep(PassSolver):
    r"""Away-step Frank-Wolfe: move towards the best vertex of C, or away from the worst atom of the iterate.

    The step takes the steeper of the two directions s - w and w - v; an away step of full length drops the atom v.
    It converges linearly for strongly convex F over a polytope. A step costs one gradient, O(n) and the active set.

    Parameters
    ----------
    step_size : a rule of :mod:`condgrad.step_sizes`
        ExactLineSearch by default. An open loop makes no drop steps and loses the linear rate.

    References
    ----------
    Guelat & Marcotte (1986); Lacoste-Julien & Jaggi (2015), algorithm 1.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "away").w
    array([2.])
    """

    requires = PassSolver.requires | {Feature.VERTICES}
    keeps_atoms = True

    def step(self, problem: BaseProblem, state: ActiveState, t: int) -> None:
        """Make one step towards s or away from v."""
        point, active = state.point, state.active
        products = active.inner_products(point.r)
        k = int(products.argmax())  # v = arg max over the active atoms of <grad F(w), v>
        away_gap = float(products[k]) - point.along()
        # An away step is impossible if one atom has all the weight (up to rounding).
        if point.gap >= away_gap or len(active) == 1 or active.weights[k] >= 1.0:
            line = towards(point, point.s, point.gap)  # d = s - w, up to gamma = 1
            gamma = state.rule.at(t, line)
            active.step_towards(point.s, gamma)
        else:
            # d = w - v, up to gamma = weight / (1 - weight)
            line = away_from(point, active.vertex(k), -away_gap, float(active.weights[k]))
            gamma = state.rule.at(t, line)
            active.step_away(k, gamma, line.max_step)
        point.move(line, gamma)
