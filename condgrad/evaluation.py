"""Evaluation: what one full pass over the data tells about a point, and what may be asked of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.linalg.vectors import inner


class Evaluation(NamedTuple):
    """What one full pass over the data tells about a point w, all of it exact."""

    objective: float
    gradient: np.ndarray
    gap: float
    vertex: Any
    intercept: Any  # a number, or the biases of a CompletionProblem
    curvature: np.ndarray | None = None
    atoms: Any = None


class Wanted(NamedTuple):
    """Atoms on which the curvature of F is wanted.

    ``known`` is the curvature on the first atoms, which is not computed again: that of a quadratic loss never changes.
    ``n_rows`` is the number of samples from which it may be estimated.
    """

    atoms: Any
    known: np.ndarray | None = None
    n_rows: float = np.inf


def gap_at(r: np.ndarray, w: np.ndarray, s: Any) -> float:
    """Return <r, w - s>: with r = grad F(w) and s = LMO(r), the Frank-Wolfe gap."""
    indices, values = s.support()
    return float(inner(r, w) - inner(r if indices is None else r[indices], values))
