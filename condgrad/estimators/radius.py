"""Choice of a radius: radius_max, what radius=None means, and the warning about useless radii."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from condgrad import losses
from condgrad.constraints._protocol import ConstraintSet
from condgrad.estimators._held_out import INSIDE, best_held_out, two_digits
from condgrad.linalg.convert import Data
from condgrad.linalg.interrupts import at_most
from condgrad.paths.allowed_sets import least_radius, leaves_out_zero
from condgrad.paths.grids import check_eps
from condgrad.paths.radius_search import contains_zero, radius_at, set_by_name
from condgrad.problems.evaluation import gap_at
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.run.result import Result

FIRST_SHARE = 0.1  # multiplier at the first guess of radius=None, over the multiplier at 0
_NOTHING = 1e-3  # relative decrease of the loss of a constant, below which a model counts as constant


class RadiusWarning(UserWarning):
    """A radius is useless: too large to bind, or so small that the model is nearly zero."""


def radius_max(
    X: Data,
    y: ArrayLike,
    *,
    loss: object = "squared",
    constraint: str = "l1",
    eps: float = 1e-2,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> float:
    r"""Return the radius beyond which little can be gained: where a grid of radii should end.

    With w(delta) the minimiser over the set C(delta) = delta C(1), the multiplier

        alpha(delta) = max over s in C(1) of <-grad F(w(delta)), s>

    is the rate at which the objective still falls as the radius grows: it decreases from alpha(0) to 0 at the norm of
    the unconstrained optimum. For the l1 ball alpha is the penalty of the Lasso with the same solution, scikit-learn's
    ``alpha``, and alpha(0) the smallest one whose solution is zero. The result is the radius at which
    alpha(delta) = eps alpha(0), up to about 2% of alpha: the l1 norm at the end of a regularisation path down to eps.

    The radius scales with the units of X and y, needs no noise level, and is finite for separable classes too, where
    the unconstrained optimum is not. ``radius=None`` of the estimators begins its search at this radius with eps = 0.1,
    and keeps the one that predicts held-out samples best. To tune the radius use :class:`ConstrainedLassoCV` and
    :class:`ConstrainedLogisticRegressionCV`.

    It costs about as much as 5 to 10 fits of low accuracy.

    Parameters
    ----------
    X, y : data and targets, as :class:`condgrad.Problem` takes them
        (so -1 and 1 for the logistic loss)
    loss : str or loss object
    constraint : str
        The name of a set with a radius that contains zero: "l1", "nonnegative-l1", "l2" or "linf".
    eps : float
        The share of alpha(0), between 0 and 1.
    fit_intercept : bool
        Whether predictions have a free intercept.
    sample_weight, offset : array of shape (n_samples,), optional
        Weights of the samples, and known numbers that are added to their predictions.

    Returns
    -------
    float
        0 if the best model is zero for every radius.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0]  # least squares has the l1 norm 4
    >>> cg.radius_max(X, y, fit_intercept=False) < 4.0
    True
    """
    check_eps(eps)
    make = set_by_name(constraint)
    if not contains_zero(make(1.0)):
        raise ValueError(f"radius_max needs a set that contains zero; {constraint!r} does not. Give a radius yourself.")
    loss = losses.by_name(loss) if isinstance(loss, str) else loss
    problem = Problem(X, y, loss, make(1.0), sample_weight=sample_weight, offset=offset, intercept=fit_intercept)
    return radius_at(problem, make, eps)


def default_radius(
    problem: Problem | OutputsProblem, make: Callable[[float], ConstraintSet], max_time: float | None = None
) -> float:
    """Return the radius that radius=None means: the one that predicts held-out samples best.

    The search begins at ``radius_at`` with eps = 0.1, or 1 where that is 0 or undefined; this is the radius where too
    few samples could be held out. It is rounded to the two digits that are known, so that dense and sparse data, or
    weights and repeated samples, give the same radius.
    """
    least = least_radius(make)
    if not leaves_out_zero(make) and not contains_zero(make(1.0)):
        return 1.0  # the unit simplex
    part = problem.largest_part()  # two digits can be found on a part of data that are not in memory
    problem = problem if part is None else cast("Problem", part)
    with at_most(max_time):
        first = two_digits(radius_at(problem, make, FIRST_SHARE) - least)
        return best_held_out(problem, make, first, least) if first > 0.0 else least + 1.0


def complaint(problem: Problem | OutputsProblem, result: Result, null_loss: float, radius: float) -> str:
    """Return what is wrong with a given radius at the solution over the named set, or an empty string.

    A solution strictly inside, with a gap of at most tol, has a multiplier of at most tol / (_INSIDE radius): up
    to tol, a larger radius changes nothing.
    """
    constraint, w = problem.constraint, result.w
    if not contains_zero(constraint):
        return ""
    if null_loss - result.objective <= _NOTHING * abs(null_loss) and _has_hardly_begun(problem, w):
        return (
            f"radius={radius:g} is so small that the model is next to constant: its loss is {result.objective:.6g}, "
            f"that of a constant {null_loss:.6g}. Use a larger radius (radius=None picks one)."
        )
    room = -constraint.violation(w)
    if room > INSIDE * radius:
        return (
            f"radius={radius:g} does not bind: the solution lies inside the set, and a larger radius gives the same "
            f"model. Use a radius below {radius - room:.4g} to constrain it (radius=None picks one)."
        )
    return ""


def _has_hardly_begun(problem: Problem | OutputsProblem, w: np.ndarray) -> bool:
    """Return whether the objective falls at w about as fast as at zero, so that a larger radius would help."""
    zero = np.zeros(problem.n_features)
    at_w, at_zero = (-_support(problem, problem.gradient(point)) for point in (w, zero))
    return at_zero > 1e-14 * problem.derivative_size() and at_w > 0.5 * at_zero


def _support(problem: Problem | OutputsProblem, r: np.ndarray) -> float:
    """Return the smallest <r, s> over the set."""
    return -gap_at(r, np.zeros(problem.n_features), problem.lmo(r))
