"""The methods of the race: every solver of the library for convex losses, with its own settings."""

from __future__ import annotations

from typing import Any

import condgrad as cg

STOCHASTIC = (
    "sfw", "saga", "mokhtari", "lu-freund", "svrf", "growing-batch", "spider", "caspiderg", "one-sample", "sarah",
    "saga-sarah", "sfw-away", "sfw-pairwise", "boosted-sfw", "boosted-saga", "boosted-mokhtari", "sfw-log", "sarah-log",
    "tufw", "randomized",
)  # fmt: skip
FULL_PASS = (
    "fw", "fw-open", "fw-log", "fw-auto", "lazy", "away", "away-auto", "pairwise", "bpcg", "bpcg-auto", "boosted",
    "quadratic-correction", "affine-correction", "polyatomic", "corrective", "low-rank",
)  # fmt: skip
# With a hundredth of the samples, the batch of Negiar et al.; the others have schedules of their own.
_WITH_BATCHES = {
    "sfw", "saga", "mokhtari", "lu-freund", "one-sample", "saga-sarah", "sfw-away", "sfw-pairwise", "boosted-sfw",
    "boosted-saga", "boosted-mokhtari",
}  # fmt: skip
_N_STEPS = {"caspiderg": 1000}  # a method whose theorem needs the number of steps beforehand


def new(name: str, n_samples: int) -> Any:
    """Return the solver of that name for ``n_samples`` samples."""
    rules, kinds = cg.step_sizes, cg.solvers
    batch = max(1, n_samples // 100)
    special = {
        "fw-open": lambda: kinds.FrankWolfe(rules.OpenLoop()),
        "fw-log": lambda: kinds.FrankWolfe(rules.LogAdaptive()),
        "fw-auto": lambda: kinds.FrankWolfe(rules.AutoConditioned()),
        "away-auto": lambda: kinds.AwayStep(rules.AutoConditioned()),
        "bpcg-auto": lambda: kinds.BlendedPairwise(rules.AutoConditioned()),
        "affine-correction": lambda: kinds.QuadraticCorrection("affine"),
        "sfw-log": lambda: kinds.SFW(batch_size=batch, step_size=rules.LogAdaptive()),
        "sarah-log": lambda: kinds.SARAH(step_size=rules.LogAdaptive()),
    }
    if name in special:
        return special[name]()
    settings: dict[str, Any] = {"batch_size": batch} if name in _WITH_BATCHES else {}
    settings |= {"n_steps": _N_STEPS[name]} if name in _N_STEPS else {}
    return cg.solvers.by_name(name)(**settings)
