"""A grid of radii for a problem, from where a model begins to where its constraint hardly binds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from condgrad.paths.radius_search import radius_at


def radius_grid(problem: Any, make_set: Callable[[float], Any], n_radii: int, eps: float) -> np.ndarray:
    """Return ``n_radii`` radii, evenly spaced in their logarithm between radius_max / 100 and radius_max."""
    unit = make_set(1.0)
    if not unit.contains(np.zeros(problem.n_features)):
        raise ValueError(f"there is no default grid for {type(unit).__name__}, which does not hold 0; use --radii.")
    radius = radius_at(problem.over(unit), make_set, eps)
    if radius == 0.0:
        raise ValueError("the gradient at w = 0 is zero: no radius gives another model than 0.")
    return np.geomspace(radius / 100.0, radius, n_radii)
