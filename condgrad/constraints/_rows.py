"""Linear inequalities, equations and bounds, as users write them and as linear programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_reals

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
    table = np.array(bounds, dtype=object)
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
    table = np.array((None, None) if bounds is None else bounds, dtype=object)
    if table.shape not in {(2,), (n_features, 2)}:
        raise ValueError(
            f"bounds of {owner} must be a pair (low, high) or an array of shape ({n_features}, 2); "
            f"got shape {table.shape}."
        )
    table = np.broadcast_to(table, (n_features, 2))
    free = np.equal(table, np.array(None, dtype=object)).astype(bool)
    limits = as_reals(owner, "bounds", np.where(free, 0.0, table).tolist(), n_dims=2, is_finite=False)
    limits = np.where(free, [-np.inf, np.inf], limits)
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
