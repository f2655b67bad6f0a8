"""Grids of radii, and of penalties: the default one, those that users give, and the settings that ask for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg.convert import as_number

_LEAST_RADIUS = 1e-300  # smaller ones have no reciprocal
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
    return np.unique(as_grid(radii, "radii", _LEAST_RADIUS))


LARGEST_GROWTH = 1e4  # how far a default grid may be extended, over its end
_SHARE_OF_GRID = 0.25  # length of one extension in logarithms, as a share of the grid
_RISE = 1e-3  # share of the improvement over the whole grid that its last part must bring


def n_further(n_radii: int) -> int:
    """Return the number of radii of one extension of a default grid."""
    return max(1, round(_SHARE_OF_GRID * (n_radii - 1)))


def further_radii(radii: np.ndarray, n_radii: int, end: float) -> np.ndarray:
    """Return the next radii after a default grid of ``n_radii``, with its spacing; none beyond 10000 times its ``end``.

    >>> further_radii(np.array([1.0, 10.0, 100.0]), 3, 100.0)
    array([1000.])
    """
    ratio = 100.0 ** (1.0 / max(n_radii - 1, 1))
    more = radii[-1] * ratio ** np.arange(1, n_further(n_radii) + 1)
    return more if more[-1] <= 1.001 * LARGEST_GROWTH * end else more[:0]


def is_still_rising(means: np.ndarray) -> bool:
    """Tell whether the last one of the mean scores of a grid is the best, and more of it than a plateau.

    >>> is_still_rising(np.array([0.0, 0.5, 0.9])), is_still_rising(np.array([0.0, 0.9, 0.9001]))
    (True, False)
    """
    if means.size < 2 or int(means.argmax()) < means.size - 1:
        return False
    before = means[means.size - 1 - min(n_further(means.size), means.size - 1)]
    return bool(means[-1] - before > _RISE * (means[-1] - means.min()))
