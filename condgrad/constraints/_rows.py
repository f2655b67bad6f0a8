"""Linear inequalities, equations and bounds, as users write them and as linear programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_reals

_MOST_SWEEPS = 5  # times that rows pass on the bounds of their entries
_OUTWARDS = 1e-9  # share of the terms of a row by which the bounds that follow from it are wider: far above rounding

Bounds: TypeAlias = ArrayLike | Sequence[object] | None  # a pair (low, high), or one for each feature; None: no bound


def as_rows(owner: str, name: str, A: Any, side: str, b: Any) -> tuple[Any, Any, np.ndarray]:
    """Return A and b, scaled so that the rows of A have norm 1, or None twice, and the norms that the rows had."""
    if A is None and b is None:
        return None, None, np.empty(0)
    if A is None or b is None:
        given, missing = (name, side) if b is None else (side, name)
        raise ValueError(f"{name} and {side} of {owner} belong together; got {given} alone. Give {missing} too.")
    if scipy.sparse.issparse(A):
        A = scipy.sparse.csr_array(A)
        as_reals(owner, name, A.data if A.nnz else [0.0])
        A = A.astype(np.float64)
        norms = np.sqrt(A.multiply(A).sum(axis=1))
    else:
        A = as_reals(owner, name, A, n_dims=2)
        norms = np.linalg.norm(A, axis=1)
    b = as_reals(owner, side, b)
    if b.size != A.shape[0]:
        raise ValueError(f"{side} of {owner} must have one entry per row of {name}, {A.shape[0]}; got {b.size}.")
    norms[norms == 0.0] = 1.0
    if scipy.sparse.issparse(A):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / norms) @ A), b / norms, norms
    return A / norms[:, None], b / norms, norms


def dimension(owner: str, A_ub: Any, A_eq: Any, bounds: Bounds, known: int | None = None) -> int:
    """Return the number of features on which the rows, the bounds and ``known`` agree."""
    sizes = {A.shape[1] for A in (A_ub, A_eq) if A is not None}
    sizes |= set() if known is None else {known}
    table = bounds if isinstance(bounds, np.ndarray) else np.array(bounds, dtype=object)
    if table.ndim == 2:
        sizes.add(table.shape[0])
    if len(sizes) != 1:
        raise ValueError(
            f"A_ub, A_eq and bounds of {owner} must agree on the number of features; "
            + (f"got {sorted(sizes)}." if sizes else "got none of them. Pass bounds with one row per feature.")
        )
    return int(sizes.pop())


def as_bounds(owner: str, bounds: Bounds, n_features: int) -> np.ndarray:
    """Return ``bounds`` as an array of shape (n_features, 2), infinite where there is none."""
    is_plain = isinstance(bounds, np.ndarray) and bounds.dtype == np.float64  # nothing in it can be None
    bounds = (None, None) if bounds is None else bounds
    table = np.asarray(bounds) if is_plain else np.array(bounds, dtype=object)
    if table.shape not in {(2,), (n_features, 2)}:
        raise ValueError(
            f"bounds of {owner} must be a pair (low, high) or an array of shape ({n_features}, 2); "
            f"got shape {table.shape}."
        )
    free = np.equal(table, np.array(None, dtype=object)).astype(bool)
    given = table if is_plain else np.where(free, 0.0, table).tolist()
    limits = as_reals(owner, "bounds", given, n_dims=table.ndim, is_finite=False)
    limits = np.where(free, [-np.inf, np.inf], limits) * np.ones((n_features, 1))
    if np.isnan(limits).any() or (limits[:, 0] == np.inf).any() or (limits[:, 1] == -np.inf).any():
        raise ValueError(f"bounds of {owner} must be numbers or None; got nan, or low = inf, or high = -inf.")
    wrong = np.flatnonzero(limits[:, 0] > limits[:, 1])
    if wrong.size:
        j = wrong[0]
        raise ValueError(
            f"low of the bounds of {owner} must not exceed high; got low = {limits[j, 0]:g} and "
            f"high = {limits[j, 1]:g} at feature {j}."
        )
    return limits


def tightened(bounds: np.ndarray, systems: list[tuple[Any, np.ndarray]]) -> np.ndarray:
    """Return a box around the set of all w between the bounds with A w <= b in all systems, rounded outwards.

    An entry has a bound if all other terms of a row have one, as for shares that sum to one. Bounds of the rows are
    added where there was none; other ones stay as they are.
    """
    box = bounds.copy()
    n_known = np.isfinite(box).sum()
    for _ in range(_MOST_SWEEPS):
        before = n_known
        for A, b in systems:
            if n_known < box.size:
                _add_limits(box, A, b)
                n_known = np.isfinite(box).sum()
        if n_known in (before, box.size):
            break
    return box


def _add_limits(box: np.ndarray, A: np.ndarray, b: np.ndarray) -> None:
    """Set infinite limits of the box to those that follow from the rows A w <= b."""
    with np.errstate(invalid="ignore"):  # 0 times infinity
        least = np.where(A > 0.0, A * box[:, 0], np.where(A < 0.0, A * box[:, 1], 0.0))  # of each term
    is_open = np.isinf(least)
    least[is_open] = 0.0
    slack = b + _OUTWARDS * (np.abs(b) + np.abs(least).sum(axis=1)) - least.sum(axis=1)
    is_only = is_open.sum(axis=1)[:, None] == is_open  # whether all other terms of the row have a bound
    for side, sign in ((0, -1.0), (1, 1.0)):
        tells = is_only & (sign * A > 0.0)
        limits = np.full(A.shape, np.inf)
        np.divide(slack[:, None] + least, sign * A, out=limits, where=tells)
        limits += _OUTWARDS * np.abs(limits)
        found = np.isinf(box[:, side])
        box[found, side] = sign * limits.min(axis=0)[found]
