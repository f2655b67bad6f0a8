"""What users want of a path: its sets, its radii or penalties, and the points on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints._row_sentences import Rows
from condgrad.linalg.interrupts import Interrupts, at_most, time_left
from condgrad.paths.allowed_sets import check_radii, columns_of, leaves_out_zero, maker_of, sets_of
from condgrad.paths.grids import as_grid, shares
from condgrad.paths.points import Arrivals, InterruptedPathError, Path, follow
from condgrad.paths.radius_search import contains_zero


def wanted_sets(
    X: Any,
    constraint: object,
    feature_weight: PerFeature,
    positive: Which,
    lower: PerFeature,
    upper: PerFeature,
    rows: Rows,
    scale: np.ndarray | None = None,
) -> Callable[..., Any]:
    """Return what makes the set of a radius."""
    make = sets_of(constraint, columns_of(X), feature_weight, positive, lower, upper, rows, scale)
    return maker_of(constraint) if make is None else make


def wanted_targets(radii: ArrayLike | None, alphas: ArrayLike | None) -> np.ndarray | None:
    """Return the radii or the penalties that a user gave, None for the default grid of radii."""
    if radii is not None and alphas is not None:
        raise ValueError("give radii or alphas, not both: each radius has its alpha, which info reports.")
    if alphas is not None:
        return as_grid(alphas, "alphas", 1e-300)
    return None if radii is None else as_grid(radii, "radii", 0.0)


def check_targets(make: Callable[..., Any], unit: ConstraintSet, given: np.ndarray | None) -> None:
    """Raise if limits leave no set for a radius, or sets without zero are to have a default grid or a radius of 0."""
    if given is not None:
        check_radii(given, make)
    if not leaves_out_zero(make) and not contains_zero(unit) and (given is None or not given.all()):
        raise ValueError(
            f"{type(unit).__name__} does not contain zero, so it has no default grid and no radius 0; give positive "
            "radii."
        )


def points_of(
    path: Path,
    given: np.ndarray | None,
    least: float,
    n_radii: int,
    largest: Callable[[], float],
    interrupts: Interrupts,
    is_watched: bool,
) -> Arrivals:
    """Yield the points for the given targets, or for a grid of radii from the least to the largest.

    ``largest`` finds that one, in half of the time at most.
    """
    try:
        if given is None:
            with at_most(time_left(0.5)):
                given = least + (largest() - least) * shares(n_radii)
    except KeyboardInterrupt:
        raise InterruptedPathError from None
    yield from follow(path, given, interrupts, is_watched)
