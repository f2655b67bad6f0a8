"""What every loss answers, and the decorator that makes a NamedTuple class a loss."""

from __future__ import annotations

import abc
import math
from typing import TypeVar

import numpy as np

from condgrad.compiled import compiled, fill_in

T = TypeVar("T", float, np.ndarray)  # the same formula for one number and for many


class Loss(abc.ABC):  # noqa: B024 (the decorator copies the defaults: nothing inherits)
    """A loss f(p, y) of one prediction p = x'w and one target y, twice differentiable in p (almost everywhere).

    ``value``, ``derivative`` and ``second_derivative`` are elementwise: they take scalars inside kernels and arrays
    outside, so they are written with ``np`` functions and :func:`condgrad.compiled.where`, without ``if``.
    """

    is_convex = True
    is_quadratic = False
    # Whether the formula of the derivative is right to a few units in its last place for every p and y, as one is that
    # begins with p - y or 1 - y p and goes on with products: then certificates know rounding more closely.
    rounds_relatively = False

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

    def curvature_smoothness(self) -> float:
        """Return L-hat, a Lipschitz constant of the second derivative (inf where there is none)."""
        return math.inf

    def smoothness_on(self, p_max: float) -> float:
        """Return a Lipschitz constant of the derivative over |p| <= p_max, for losses without a global one."""
        return self.smoothness()

    def check_targets(self, y: np.ndarray) -> None:
        """Raise ValueError, in one sentence, where ``y`` holds values that the loss is not defined for."""

    def check_intercept(self, y: np.ndarray) -> None:
        """Raise ValueError where no finite intercept minimises the loss on ``y``."""


def loss(cls: type) -> type:
    """Make a NamedTuple class a loss: kernels can call it, and what it leaves out comes from :class:`Loss`."""
    cls = compiled(fill_in(cls, Loss))
    Loss.register(cls)
    return cls


def check_binary(y: np.ndarray, name: str) -> None:
    """Raise unless every target is -1 or 1."""
    found = np.unique(y)
    if not np.isin(found, (-1.0, 1.0)).all():
        raise ValueError(f"y must be -1 or 1 for {name}; got values {_shown(found)}.{_remedy(found)}")


def check_zero_one(y: np.ndarray, name: str) -> None:
    """Raise unless every target is 0 or 1."""
    found = np.unique(y)
    if not np.isin(found, (0.0, 1.0)).all():
        is_signed = np.isin(found, (-1.0, 1.0)).all()
        remedy = " Use (y + 1) / 2." if is_signed else _two_values(found, "1, 0")
        raise ValueError(f"y must be 0 or 1 for {name}; got values {_shown(found)}.{remedy}")


def check_positive(value: float, parameter: str, name: str) -> None:
    """Raise unless the parameter of a loss is positive and finite."""
    if not 0.0 < value < math.inf:
        raise ValueError(f"{parameter} of {name} must be positive and finite; got {value:g}. Use {parameter}=1.0.")
    if not 1e-60 <= value <= 1e60:  # its square, and that of a prediction divided by it, must be a number
        raise ValueError(f"{parameter} of {name} must lie between 1e-60 and 1e60; got {value:g}. Scale y instead.")


def check_both_classes(y: np.ndarray, name: str) -> None:
    """Raise unless both classes are there: with one class alone the best intercepts are unbounded."""
    found = np.unique(y)
    if found.size < 2:
        raise ValueError(
            f"an intercept for {name} needs both classes in y; got only {_shown(found)}. Use intercept=False."
        )


def refuse_intercept(name: str) -> None:
    """Raise: the best intercept of a non-convex loss cannot be found with certainty."""
    raise ValueError(
        f"{name} is not convex, so that its best intercept cannot be certified. "
        "Use intercept=False, with a constant column in X if you need one."
    )


def _shown(found: np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in found[:5])
    return "{" + shown + (", ..." if found.size > 5 else "") + "}"


def _remedy(found: np.ndarray) -> str:
    if found.size <= 2 and np.isin(found, (0.0, 1.0)).all():
        return " Use 2 * y - 1."
    return _two_values(found, "1, -1")


def _two_values(found: np.ndarray, classes: str) -> str:
    return f" Use np.where(y == {found[-1]:g}, {classes})." if found.size == 2 else ""
