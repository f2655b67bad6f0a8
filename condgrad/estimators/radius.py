"""How large a radius: radius_max, the rule behind radius=None, and the warning about radii that do nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad import constraints, losses
from condgrad.constraints import best_vertex
from condgrad.evaluation import gap_at
from condgrad.minimize import minimize
from condgrad.problem import Problem
from condgrad.result import Result, Status
from condgrad.softmax_problem import SoftmaxProblem

DEFAULT_SHARE = 0.1  # radius=None: where the multiplier has fallen to a tenth
_CLOSE = 1.02  # a radius is found when its multiplier is within this factor of the one wanted
_CLOSE_GAP = 5e-3  # gap of the solves that tell it, relative to what that multiplier could gain
_MOST_EPOCHS = 300.0  # for one solve of the search
_MOST_SOLVES = 40
_INSIDE = 1e-3  # a solution this far inside, relative to the radius, is not held by the set
_NOTHING = 1e-3  # a model that lowers the loss of a constant by less than this share says next to nothing


class RadiusWarning(UserWarning):
    """A radius that does nothing: too large to bind, or so small that the model is next to zero."""


def radius_max(
    X: Any,
    y: Any,
    *,
    loss: Any = "squared",
    constraint: str = "l1",
    eps: float = 1e-2,
    fit_intercept: bool = True,
    sample_weight: Any = None,
) -> float:
    r"""Return the radius beyond which little can be gained: where a grid of radii should end.

    With w(delta) the minimiser over the set C(delta) = delta C(1), the multiplier

        alpha(delta) = max over s in C(1) of <-grad F(w(delta)), s>

    is the rate at which the objective still falls as the radius grows: it decreases from alpha(0) to 0 at the norm of
    the unconstrained optimum. For the l1 ball alpha is the penalty of the Lasso with the same solution, scikit-learn's
    ``alpha``, and alpha(0) the smallest one whose solution is zero. Returned is the radius at which
    alpha(delta) = eps alpha(0), up to some 2% of alpha: the l1 norm at the end of a regularisation path down to eps.

    The radius follows the units of X and y, needs no noise level, and is finite for separable classes too, where the
    unconstrained optimum is not. ``radius=None`` of the estimators is this with eps = 0.1, rounded to two digits: a
    model that has used most of what the features offer, and is not yet close to fitting everything. A tuned radius is
    the business of :class:`ConstrainedLassoCV` and :class:`ConstrainedLogisticRegressionCV`.

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
    sample_weight : array of shape (n_samples,), optional

    Returns
    -------
    float
        0 where the best model is zero whatever the radius.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0]  # least squares has the l1 norm 4
    >>> cg.radius_max(X, y, fit_intercept=False) < 4.0
    True
    """
    if not 0.0 < eps < 1.0:
        raise ValueError(f"eps must lie between 0 and 1; got {eps!r}.")
    make = set_by_name(constraint)
    if not _contains_zero(make(1.0)):
        raise ValueError(f"radius_max needs a set that contains zero; {constraint!r} does not. Give a radius yourself.")
    loss = losses.by_name(loss) if isinstance(loss, str) else loss
    problem = Problem(X, y, loss, make(1.0), sample_weight=sample_weight, intercept=fit_intercept)
    return radius_at(problem, make, eps)


def set_by_name(name: str) -> Callable[[float], Any]:
    """Return the class of a set that a radius alone defines."""
    made = constraints.by_name(name)
    if getattr(made, "_fields", ()) != ("radius",):
        raise ValueError(
            f"constraint={name!r} takes more than a radius; pass the set itself, "
            f"condgrad.constraints.{made.__name__}(...), and leave radius at None."
        )
    return made


def default_radius(problem: Problem, make: Callable[[float], Any]) -> float:
    """Return what radius=None stands for: ``radius_at`` a tenth, or 1 where that is no answer.

    Two digits of it: it is not known better, and dense and sparse data, weights and repetitions then agree on it.
    """
    if not _contains_zero(make(1.0)):
        return 1.0  # the unit simplex
    return two_digits(radius_at(problem, make, DEFAULT_SHARE)) or 1.0


def two_digits(radius: float) -> float:
    """Return a radius as one would write it."""
    return float(f"{radius:.1e}")


def radius_at(problem: Problem, make: Callable[[float], Any], share: float) -> float:
    """Return the radius whose multiplier is ``share`` of that at zero; ``problem`` is over the unit set.

    The multiplier is close to linear in the radius (piecewise so for the Lasso), so the radius is found by secants
    within a bracket, each solve from the last solution, to the accuracy that the multiplier needs.
    """
    zero = np.zeros(problem.n_features)
    unit = make(1.0)
    first = problem.evaluate(zero)
    s = best_vertex(unit, first.gradient)
    largest = gap_at(first.gradient, zero, s)
    scale = _magnitude(problem)
    if largest <= 1e-14 * scale * _reach(problem, s):  # rounding: y is constant, or has nothing to do with X
        return 0.0
    target = share * largest
    curvature = problem.evaluate(zero, [s]).curvature
    bend = float(curvature[0, 0]) if curvature is not None else 0.0
    radius = largest / bend if bend > 0.0 else 1.0  # the minimiser of F along s, if s were all
    low, high = (0.0, largest), (math.inf, 0.0)
    w, last = zero, radius
    for _ in range(_MOST_SOLVES):
        part = problem.over(make(radius))
        tol = _CLOSE_GAP * target * radius
        start = w * min(1.0, radius / last)
        result = minimize(part, w0=start, tol=tol, max_epochs=_MOST_EPOCHS, random_state=0)
        go_on_unless_interrupted(result.status)
        w, last = result.w, radius
        r = part.gradient(w)
        multiplier = gap_at(r, zero, best_vertex(unit, r))
        if target / _CLOSE <= multiplier <= target * _CLOSE:
            return radius
        slope = (multiplier - low[1]) / (radius - low[0]) if radius > low[0] else 0.0
        if multiplier > target:
            low = (radius, multiplier)
        else:
            high = (radius, multiplier)
        if (
            math.isfinite(high[0]) and high[0] - low[0] <= 1e-3 * high[0]
        ):  # the multiplier jumps here: a loss that is not convex
            return high[0]
        radius = _next(low, high, target, slope)
    return radius


def go_on_unless_interrupted(status: Status) -> None:
    """Raise KeyboardInterrupt where Ctrl-C has ended one of several runs: a part of them makes no model."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def _next(low: tuple[float, float], high: tuple[float, float], target: float, slope: float) -> float:
    """Return the radius to try next: a secant, kept inside the bracket or, while it is open, within a factor of 4."""
    if math.isinf(high[0]):
        wanted = low[0] + (target - low[1]) / slope if slope < 0.0 else math.inf
        return min(max(wanted, 1.5 * low[0]), 4.0 * low[0])
    width = high[0] - low[0]
    wanted = low[0] + width * (low[1] - target) / max(low[1] - high[1], 1e-300)
    return min(max(wanted, low[0] + 0.1 * width), high[0] - 0.1 * width)


def _magnitude(problem: Any) -> float:
    """Return the weighted mean of |f'(0, y_i)|."""
    if isinstance(problem, SoftmaxProblem):
        return 1.0  # of a derivative of the softmax that is never more
    samples = problem.samples
    return float(samples.weight @ np.abs(samples.loss.derivative(np.zeros(problem.n_samples), samples.y)))


def _reach(problem: Problem, s: Any) -> float:
    """Return the largest prediction of the vertex ``s``."""
    return float(np.abs(problem.vertex_predictions(s)[1]).max(initial=0.0))


def _contains_zero(constraint: Any) -> bool:
    return constraint.is_symmetric or isinstance(constraint, constraints.NonnegativeL1Ball)


def complaint(problem: Problem, result: Result, null_loss: float, radius: float) -> str:
    """Return what is wrong with a given radius at the solution over the named set, or an empty string.

    A solution strictly inside, with a gap of at most tol, has a multiplier of at most tol / (_INSIDE radius): the
    radius holds nothing back that tol could see.
    """
    constraint, w = problem.constraint, result.w
    if not _contains_zero(constraint):
        return ""
    if null_loss - result.objective <= _NOTHING * abs(null_loss) and _has_hardly_begun(problem, w):
        return (
            f"radius={radius:g} is so small that the model is next to constant: its loss is {result.objective:.6g}, "
            f"that of a constant {null_loss:.6g}. Use a larger radius (radius=None picks one)."
        )
    room = -constraint.violation(w)
    if room > _INSIDE * radius:
        return (
            f"radius={radius:g} does not bind: the solution lies inside the set, and a larger radius gives the same "
            f"model. Use a radius below {radius - room:.4g} to constrain it (radius=None picks one)."
        )
    return ""


def _has_hardly_begun(problem: Problem, w: np.ndarray) -> bool:
    """Tell whether the objective falls at w about as fast as it did from zero: a larger radius would help."""
    zero = np.zeros(problem.n_features)
    at_w, at_zero = (-_support(problem, problem.gradient(point)) for point in (w, zero))
    return at_zero > 1e-14 * _magnitude(problem) and at_w > 0.5 * at_zero


def _support(problem: Problem, r: np.ndarray) -> float:
    """Return the smallest <r, s> over the set."""
    return -gap_at(r, np.zeros(problem.n_features), problem.lmo(r))
