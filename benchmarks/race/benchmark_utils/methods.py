"""The methods of the race: every solver of the library for convex losses over l1 balls, with its own settings."""

from __future__ import annotations

from typing import Any

import condgrad as cg

STOCHASTIC = (
    "sfw", "saga", "mokhtari", "lu-freund", "svrf", "growing-batch", "spider", "one-sample", "sarah", "saga-sarah",
    "sfw-away", "sfw-pairwise", "boosted-sfw", "boosted-saga", "boosted-mokhtari", "tufw", "randomized",
)  # fmt: skip
FULL_PASS = ("fw", "fw-log", "fw-auto", "lazy", "away", "pairwise", "bpcg", "boosted", "corrective")
# With a hundredth of the samples, the batch of Negiar et al.; the others have schedules of their own.
_WITH_BATCHES = {
    "sfw", "saga", "mokhtari", "lu-freund", "one-sample", "saga-sarah", "sfw-away", "sfw-pairwise", "boosted-sfw",
    "boosted-saga", "boosted-mokhtari",
}  # fmt: skip


def new(name: str, n_samples: int) -> Any:
    """Return the solver of that name for ``n_samples`` samples."""
    if name == "fw-log":
        return cg.solvers.FrankWolfe(cg.step_sizes.LogAdaptive())
    if name == "fw-auto":
        return cg.solvers.FrankWolfe(cg.step_sizes.AutoConditioned())
    settings = {"batch_size": max(1, n_samples // 100)} if name in _WITH_BATCHES else {}
    return cg.solvers.by_name(name)(**settings)
