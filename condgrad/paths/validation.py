"""Cross-validation: who is held out when, and which radius the scores speak for."""

from __future__ import annotations

import numpy as np

_SAME = 1e-9  # share of the mean scores up to which two of them are equal
SELECTIONS = BEST, ONE_STANDARD_ERROR = "best", "one-standard-error"


def check_selection(selection: object) -> None:
    """Raise unless the rule is known."""
    if selection not in SELECTIONS:
        raise ValueError(f"selection must be 'best' or 'one-standard-error'; got {selection!r}.")


def deal_folds(order: np.ndarray, n_folds: int, classes: np.ndarray | None = None) -> np.ndarray:
    """Return the fold of every sample, dealt in the given order: of equal sizes, and with equal shares of the classes.

    >>> deal_folds(np.array([2, 0, 3, 1]), 2)
    array([1, 1, 0, 0])
    """
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    fold_of = np.empty(order.size, dtype=np.int64)
    fold_of[order] = np.arange(order.size) % n_folds
    return fold_of


def standard_errors(scores: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean of each row, 0 where there is a single fold."""
    n_folds = scores.shape[1]
    return scores.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))


def select(scores: np.ndarray, selection: str) -> int:
    """Return the place of the chosen radius; ``scores`` has one row per radius, ascending, and one column per fold.

    "best": the smallest radius with the best mean, up to rounding: beyond the norm of the minimiser without a budget
    all radii have the same model. "one-standard-error": the smallest whose mean is within one standard error of it.
    """
    mean = scores.mean(axis=1)
    best = int(np.flatnonzero(mean >= mean.max() - _SAME * np.abs(mean).max())[0])
    if selection == BEST:
        return best
    return int(np.flatnonzero(mean >= mean[best] - standard_errors(scores)[best])[0])
