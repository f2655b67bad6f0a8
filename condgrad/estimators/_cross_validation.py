"""Shared by the cross-validated linear models: scikit-learn's folds, solved on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from condgrad.linalg import threads
from condgrad.linalg.convert import Checked
from condgrad.linalg.interrupts import Interrupts

_DEFAULT_FOLDS = 5

T = TypeVar("T")


def folds(
    cv: object, X: Checked, y: np.ndarray, weight: np.ndarray | None, *, is_classifier: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds as pairs of index arrays, without the samples that have no weight.

    ``cv=None`` means 5 folds; for a classifier at most as many as the largest class has samples.
    """
    if cv is None and is_classifier:
        cv = max(2, min(_DEFAULT_FOLDS, int(np.unique(y, return_counts=True)[1].max())))
    split = check_cv(cv, y, classifier=is_classifier).split(X, y)
    if weight is None:
        return list(split)
    kept = [(train[weight[train] > 0.0], test[weight[test] > 0.0]) for train, test in split]
    if any(train.size == 0 or test.size == 0 for train, test in kept):
        raise ValueError("a fold of cv holds no samples with a positive sample_weight; use fewer folds.")
    return kept


def on_threads(tasks: Iterable[tuple[object, ...]], n_jobs: int | None) -> list[Any]:
    """Return the results of tasks (function, arguments), running ``n_jobs`` at a time.

    Ctrl-C also interrupts tasks in other threads. Parallel tasks share the threads that passes over the data may use.
    """
    share = threads.n_threads() // effective_n_jobs(n_jobs)
    with Interrupts():
        return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(_run)(share, *task) for task in tasks)


def _run(share: int, function: Callable[..., T], *given: object) -> T:
    with threads.at_most(share):
        return function(*given)
