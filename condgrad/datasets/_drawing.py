"""Shared by the simulators: checks of their settings, true coefficients, labels."""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.convert import as_number


def coefficients(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return numbers of size 1 to 2, of either sign."""
    return rng.choice((-1.0, 1.0), count) * rng.uniform(1.0, 2.0, count)


def labels(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return 1 with probability 1 / (1 + exp(-p)), else -1: the sign of p plus logistic noise."""
    y = np.where(p + rng.logistic(size=p.size) > 0.0, 1.0, -1.0)
    if y.size > 1 and abs(y.sum()) == y.size:  # few samples can all fall on one side; a classifier needs both
        y[np.argmin(p * y)] *= -1.0
    return y


def as_count(value: object, name: str, most: float = math.inf) -> int:
    """Return an integer of at least 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    if value > most:
        raise ValueError(f"{name} must be at most n_features={most}; got {value}.")
    return int(value)


def as_positive(value: object, name: str) -> float:
    """Return a positive, finite number."""
    number = as_number(value, name, low=math.ulp(0.0), what="a positive, finite number")
    if number == math.inf:
        raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
    return number
