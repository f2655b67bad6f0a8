"""Grids of radii, and of penalties: the default one, those that users give, and the settings that ask for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg.convert import as_number

_SMALLEST_EPS = 1e-12  # least share of the first multiplier that is not lost in rounding


def shares(n_radii: int) -> np.ndarray:
    """Return the radii of a default grid over the last one: evenly spaced in their logarithm, from a hundredth on."""
    return 100.0 ** np.linspace(-1.0, 0.0, n_radii) if n_radii > 1 else np.ones(1)


def check_grid(n_radii: object, eps: object, *, may_be_none: bool = False) -> None:
    """Raise unless the size and the end of a default grid make sense."""
    wanted = "a whole number of at least 1" + (", or None" if may_be_none else "")
    is_none = may_be_none and n_radii is None
    if not is_none and not as_number(n_radii, "n_radii", low=1.0, what=wanted).is_integer():
        raise ValueError(f"n_radii must be {wanted}; got {n_radii!r}.")
    check_eps(eps)


def check_eps(eps: object) -> None:
    """Raise unless the share of the first multiplier at which a grid ends makes sense."""
    wanted = "a number between 0 and 1"
    if not as_number(eps, "eps", low=_SMALLEST_EPS, what=wanted) < 1.0:
        raise ValueError(f"eps must be {wanted}; got {eps!r}.")


def as_grid(values: ArrayLike, name: str, low: float) -> np.ndarray:
    """Return radii or penalties that a user gave as an array."""
    try:
        if np.iscomplexobj(values):
            raise TypeError
        grid = np.array(values, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a sequence of numbers; got {values!r}.") from None
    wanted = "positive" if low > 0.0 else "at least 0"
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} must be a sequence of numbers; got shape {grid.shape}.")
    if not (np.isfinite(grid).all() and (grid >= low).all()):
        bad = grid[~(np.isfinite(grid) & (grid >= low))][0]
        raise ValueError(f"{name} must be finite and {wanted}; got {bad:g}.")
    return grid


def as_radii(radii: ArrayLike) -> np.ndarray:
    """Return the radii that cross-validation is to choose from, ascending and without repetitions."""
    grid = np.unique(np.asarray(radii, dtype=np.float64))
    if grid.size == 0 or not (np.isfinite(grid).all() and grid[0] > 0.0):
        raise ValueError(f"radii must be positive numbers; got {radii!r}.")
    return grid
