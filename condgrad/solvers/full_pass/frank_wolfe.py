"""Frank-Wolfe, the conditional gradient method."""

from __future__ import annotations

from condgrad.problems.base import BaseProblem
from condgrad.problems.segment import towards
from condgrad.solvers.full_pass.base import PassSolver, PointState


class FrankWolfe(PassSolver):
    r"""Frank-Wolfe: w <- (1 - gamma) w + gamma s with s = arg min over C of <grad F(w), s>.

    F(w_t) - F* <= 2 L D_2^2 / (n t) with the open loop (equation 10 of Negiar et al., there for t gradient calls).
    A step costs one gradient and O(n).

    Parameters
    ----------
    step_size : OpenLoop, ShortStep, ExactLineSearch (default) or Backtracking
        ``ShortStep("lipschitz")`` is the FW-ada of Xiong & Freund.

    References
    ----------
    Frank & Wolfe (1956); Jaggi (2013), algorithm 1.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "fw").w
    array([2.])
    """

    def step(self, problem: BaseProblem, state: PointState, t: int) -> None:
        """Make one Frank-Wolfe step."""
        point = state.point
        line = towards(point, point.s, point.gap)  # s = LMO(grad F(w)), gap = <grad F(w), w - s>
        gamma = state.rule.at(t, line)
        point.move(line, gamma)  # w <- (1 - gamma) w + gamma s
