"""The methods of every loss, and the decorator that makes a NamedTuple class a loss."""

from __future__ import annotations

import abc
import math
from typing import TypeVar

import numpy as np

from condgrad.compiled import compiled, fill_in
from condgrad.linalg.settings import check_positive

# For each pair of targets: another pair that users may have, and the formula that converts it.
_RECODED = {(-1.0, 1.0): ((0.0, 1.0), "2 * y - 1"), (0.0, 1.0): ((-1.0, 1.0), "(y + 1) / 2")}
_LARGEST_LOGARITHM = 700.0  # largest argument of exp, which overflows above 709
LINKS = ("identity", "log", "logit")
# What users can do about an intercept: problems and estimators call it differently.
LEAVE_OUT = "Leave the intercept out: intercept=False, in estimators and paths fit_intercept=False"


T = TypeVar("T", float, np.ndarray)  # the same formula for one number and for many


def sigmoid(p: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-p)), without overflow, and with all digits where it is small."""
    small = np.exp(-np.abs(p))
    return np.where(p >= 0.0, 1.0, small) / (1.0 + small)


class Loss(abc.ABC):  # noqa: B024 (the decorator copies the defaults: nothing inherits)
    """A loss f(p, y) of one prediction p = x'w and one target y, twice differentiable in p (almost everywhere).

    ``value``, ``derivative`` and ``second_derivative`` are elementwise: they take scalars inside kernels and arrays
    outside, so they are written with ``np`` functions and :func:`condgrad.compiled.where`, without ``if``.
    """

    is_convex = True
    is_quadratic = False
    # Whether the derivative as computed is right to a few units in its last place for every p and y. It is if the
    # formula starts from p - y or 1 - y p and continues with products. Certificates then have tighter rounding bounds.
    rounds_relatively = False
    # How the loss predicts. ``classes``: the two targets of a loss for classification, the negative class first (None:
    # numbers). ``link``: p is the mean of y ("identity"), its logarithm ("log") or the logit of the second class.
    classes: tuple[float, float] | None = None
    link = "identity"

    def value(self, p: T, y: T) -> T:
        """Return f(p, y)."""
        raise NotImplementedError

    def derivative(self, p: T, y: T) -> T:
        """Return the derivative of f in p."""
        raise NotImplementedError

    def second_derivative(self, p: T, y: T) -> T:
        """Return the second derivative of f in p."""
        raise NotImplementedError

    def smoothness(self) -> float:
        """Return L, a Lipschitz constant of the derivative (inf where there is none)."""
        raise NotImplementedError

    def lipschitz(self) -> float:
        """Return G, a bound of the derivative's absolute value over all p and all targets (inf where there is none)."""
        return math.inf

    def curvature_smoothness(self) -> float:
        """Return L-hat, a Lipschitz constant of the second derivative (inf where there is none)."""
        return math.inf

    def smoothness_on(self, p_max: float) -> float:
        """Return a Lipschitz constant of the derivative over |p| <= p_max, for losses without a global one."""
        return self.smoothness()

    def least_value(self, y: np.ndarray) -> np.ndarray:
        """Return a lower bound of f(p, y) over all p for each target (-inf where there is none).

        Certificates depend on it: F(w) is at most so far above the optimum as it is above this bound.
        """
        return np.full(y.shape, -math.inf)

    def check_targets(self, y: np.ndarray) -> None:
        """Raise ValueError, with one sentence, if the loss is not defined for some values of ``y``."""
        if self.classes is not None:
            check_classes(y, self.classes, type(self).__name__)

    def check_intercept(self, y: np.ndarray) -> None:
        """Raise ValueError if no finite intercept is best for ``y``, for example if all are of one class."""
        if self.classes is not None:
            check_both_classes(y, type(self).__name__)

    def mean(self, p: np.ndarray) -> np.ndarray:
        """Return the mean of y that p stands for: exp(p) with a log link, else p itself (for classes a score)."""
        return np.exp(np.minimum(p, _LARGEST_LOGARITHM)) if self.link == "log" else p

    def probability(self, p: np.ndarray) -> np.ndarray | None:
        """Return the probability of the second class, or None if the loss does not model it."""
        return sigmoid(p) if self.link == "logit" else None


def loss(cls: type) -> type:
    """Make a NamedTuple class a loss: kernels can call it, and what it leaves out comes from :class:`Loss`."""
    cls = compiled(fill_in(cls, Loss))
    Loss.register(cls)
    return cls


def as_loss(loss: object) -> Loss:
    """Return ``loss``, or raise if it is not a loss object that kernels can use."""
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, not a class; use {loss.__name__}(...).")
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a loss of condgrad.losses or a class marked @loss; got {loss!r}.")
    try:
        loss.smoothness()
    except NotImplementedError:
        name = type(loss).__name__
        raise TypeError(f"{name} needs a method smoothness(); return math.inf if f'' is unbounded.") from None
    return loss


def check_classes(y: np.ndarray, classes: tuple[float, float], name: str) -> None:
    """Raise unless every target is one of the two classes."""
    low, high = classes
    if not ((y == low) | (y == high)).all():  # all distinct values take a sort, which is for the message only
        found = np.unique(y)
        raise ValueError(
            f"y must be {low:g} or {high:g} for {name}; got values {_shown(found)}.{_remedy(found, classes)}"
        )


def check_positive_targets(y: np.ndarray, name: str) -> None:
    """Raise unless every target is finite and positive."""
    wrong = y[~((y > 0.0) & (y < math.inf))]
    if wrong.size:
        raise ValueError(f"y must be finite and positive for {name}; got the value {wrong[0]:g}.")


def check_some_positive(y: np.ndarray, name: str) -> None:
    """Raise if all targets are 0: then the best mean is 0, and its logarithm -inf."""
    if not np.any(y):
        raise ValueError(f"an intercept for {name} needs a positive target; got only zeros. {LEAVE_OUT}.")


def check_size(owner: str, parameter: str, value: float) -> None:
    """Raise unless the parameter of a loss is positive, and neither huge nor tiny."""
    check_positive(owner, parameter, value, f" Use {parameter}=1.0.")
    if not 1e-60 <= value <= 1e60:  # its square, and that of a prediction divided by it, must be finite
        raise ValueError(f"{parameter} of {owner} must lie between 1e-60 and 1e60; got {value:g}. Scale y instead.")


def check_both_classes(y: np.ndarray, name: str) -> None:
    """Raise unless y has both classes: with one class only, the best intercepts are unbounded."""
    if (y == y[:1]).all():
        raise ValueError(f"an intercept for {name} needs both classes in y; got only {_shown(y[:1])}. {LEAVE_OUT}.")


def refuse_intercept(name: str) -> None:
    """Raise: the best intercept of a non-convex loss cannot be found with certainty."""
    raise ValueError(
        f"{name} is not convex, so its best intercept cannot be certified. {LEAVE_OUT}, with a constant column in X "
        "if you need one."
    )


def _shown(found: np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in found[:5])
    return "{" + shown + (", ..." if found.size > 5 else "") + "}"


def _remedy(found: np.ndarray, classes: tuple[float, float]) -> str:
    others, formula = _RECODED.get(classes, ((), ""))
    if np.isin(found, others).all():
        return f" Use {formula}."
    return f" Use np.where(y == {found[-1]:g}, {classes[1]:g}, {classes[0]:g})." if found.size == 2 else ""
