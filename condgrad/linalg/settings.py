"""Checks of the settings that users pass: flags, seeds, positive numbers; an error is one clear sentence."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None  # seed as users pass it


def as_flag(value: object, name: str) -> bool:
    """Return a setting that is True or False as a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a numpy Generator for a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be a non-negative integer, a numpy Generator or None; got {random_state!r}."
        ) from None


def check_positive(owner: str, name: str, value: float, remedy: str = "") -> None:
    """Raise ValueError unless a parameter of ``owner`` is positive and finite; ``remedy``: what to do."""
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} of {owner} must be positive and finite; got {value!r}.{remedy}")
