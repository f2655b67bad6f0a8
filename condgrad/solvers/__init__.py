"""Solvers, one file per algorithm, named by what it does; :func:`by_name` finds them."""

from __future__ import annotations

from typing import Any

from condgrad.linalg.names import Registry
from condgrad.solvers.full_pass.away_step import AwayStep
from condgrad.solvers.full_pass.base import FullPassSolver, PassSolver
from condgrad.solvers.full_pass.blended_pairwise import BlendedPairwise
from condgrad.solvers.full_pass.corrective import Corrective
from condgrad.solvers.full_pass.frank_wolfe import FrankWolfe
from condgrad.solvers.full_pass.lazy_frank_wolfe import LazyFrankWolfe
from condgrad.solvers.full_pass.low_rank import LowRank
from condgrad.solvers.full_pass.pairwise import Pairwise
from condgrad.solvers.stochastic.base import StepSolver, step_solver
from condgrad.solvers.stochastic.curvature_aided import CurvatureAided
from condgrad.solvers.stochastic.growing_batch import GrowingBatch
from condgrad.solvers.stochastic.momentum import Momentum
from condgrad.solvers.stochastic.one_sample import OneSample
from condgrad.solvers.stochastic.randomized import Randomized
from condgrad.solvers.stochastic.saga import SAGA
from condgrad.solvers.stochastic.sfw import SFW
from condgrad.solvers.stochastic.sfw_away import SFWAway
from condgrad.solvers.stochastic.sfw_pairwise import SFWPairwise
from condgrad.solvers.stochastic.spider import Spider
from condgrad.solvers.stochastic.substitute import Substitute
from condgrad.solvers.stochastic.svrf import SVRF
from condgrad.solvers.stochastic.tufw import TUFW

REGISTERED = Registry(
    "solver",
    {
        "fw": FrankWolfe,
        "lazy": LazyFrankWolfe,
        "away": AwayStep,
        "pairwise": Pairwise,
        "bpcg": BlendedPairwise,
        "corrective": Corrective,
        "tufw": TUFW,
        "sfw": SFW,
        "mokhtari": Momentum,
        "lu-freund": Substitute,
        "saga": SAGA,
        "svrf": SVRF,
        "growing-batch": GrowingBatch,
        "spider": Spider,
        "caspiderg": CurvatureAided,
        "one-sample": OneSample,
        "sfw-away": SFWAway,
        "sfw-pairwise": SFWPairwise,
        "randomized": Randomized,
        "low-rank": LowRank,
    },
)

__all__ = [
    "AwayStep",
    "BlendedPairwise",
    "Corrective",
    "CurvatureAided",
    "FrankWolfe",
    "FullPassSolver",
    "GrowingBatch",
    "LazyFrankWolfe",
    "LowRank",
    "Momentum",
    "OneSample",
    "Pairwise",
    "PassSolver",
    "REGISTERED",
    "Randomized",
    "SAGA",
    "SFW",
    "SFWAway",
    "SFWPairwise",
    "SVRF",
    "Spider",
    "StepSolver",
    "Substitute",
    "TUFW",
    "by_name",
    "step_solver",
]


def by_name(name: str) -> Any:
    """Return the solver class registered as ``name``.

    >>> by_name("pairwise").__name__
    'Pairwise'
    """
    return REGISTERED.find(name)
