"""What the cross-validated estimators share: folds, and which radius the scores speak for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from condgrad.linalg import convert, threads
from condgrad.run.interrupts import Interrupts

_DEFAULT_FOLDS = 5
SELECTIONS = ("best", "one-standard-error")


def check_selection(selection: Any) -> None:
    """Raise unless the rule is known."""
    if selection not in SELECTIONS:
        raise ValueError(f"selection must be 'best' or 'one-standard-error'; got {selection!r}.")


def folds(cv: Any, X: Any, y: np.ndarray, weight: np.ndarray | None, *, is_classifier: bool) -> list[Any]:
    """Return the folds as pairs of index arrays, without the samples that have no weight.

    None means five, or as many as the largest class has samples where these are fewer.
    """
    if cv is None and is_classifier:
        cv = max(2, min(_DEFAULT_FOLDS, int(np.unique(y, return_counts=True)[1].max())))
    split = check_cv(cv, y, classifier=is_classifier).split(X, y)
    if weight is None:
        return list(split)
    kept = [(train[weight[train] > 0.0], test[weight[test] > 0.0]) for train, test in split]
    if any(train.size == 0 or test.size == 0 for train, test in kept):
        raise ValueError("a fold of cv has no samples with a positive sample_weight; use fewer folds.")
    return kept


def on_threads(tasks: Iterable[tuple[Any, ...]], n_jobs: int | None) -> list[Any]:
    """Return the answers of tasks (function, arguments), ``n_jobs`` at a time.

    Ctrl-C reaches those in other threads too. Tasks side by side share the threads that passes over the data may use.
    """
    share = threads.n_threads() // effective_n_jobs(n_jobs)
    with Interrupts():
        return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(_run)(share, *task) for task in tasks)


def _run(share: int, function: Any, *given: Any) -> Any:
    with threads.at_most(share):
        return function(*given)


def select(scores: np.ndarray, selection: str) -> int:
    """Return the place of the chosen radius; ``scores`` has one row per radius, ascending, and one column per fold.

    "one-standard-error": the smallest radius whose mean is within one standard error of the best mean.
    """
    mean = scores.mean(axis=1)
    best = int(mean.argmax())
    if selection == "best" or scores.shape[1] < 2:
        return best
    error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(mean >= mean[best] - error)[0])


def as_radii(radii: Any) -> np.ndarray:
    """Return a user's grid, ascending and without repetitions."""
    grid = np.unique(np.asarray(radii, dtype=np.float64))
    if grid.size == 0 or not (np.isfinite(grid).all() and grid[0] > 0.0):
        raise ValueError(f"radii must be positive numbers; got {radii!r}.")
    return grid


def check_grid(n_radii: Any, eps: Any) -> None:
    """Raise unless the size and the end of a default grid make sense."""
    if int(convert.as_number(n_radii, "n_radii", low=1.0, what="an integer of at least 1")) != n_radii:
        raise ValueError(f"n_radii must be an integer of at least 1; got {n_radii!r}.")
    if not 0.0 < convert.as_number(eps, "eps", low=0.0, what="a number between 0 and 1") < 1.0:
        raise ValueError(f"eps must be a number between 0 and 1; got {eps!r}.")
