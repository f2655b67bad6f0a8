"""Solvers, one file per algorithm, named after what the algorithm does; :func:`by_name` returns them."""

from __future__ import annotations

from typing import Any

from condgrad.linalg.names import Registry
from condgrad.solvers.full_pass.away_step import AwayStep as AwayStep
from condgrad.solvers.full_pass.base import FullPassSolver as FullPassSolver
from condgrad.solvers.full_pass.base import PassSolver as PassSolver
from condgrad.solvers.full_pass.blended_pairwise import BlendedPairwise as BlendedPairwise
from condgrad.solvers.full_pass.boosted import Boosted as Boosted
from condgrad.solvers.full_pass.corrective import Corrective as Corrective
from condgrad.solvers.full_pass.frank_wolfe import FrankWolfe as FrankWolfe
from condgrad.solvers.full_pass.lazy_frank_wolfe import LazyFrankWolfe as LazyFrankWolfe
from condgrad.solvers.full_pass.low_rank import LowRank as LowRank
from condgrad.solvers.full_pass.pairwise import Pairwise as Pairwise
from condgrad.solvers.full_pass.polyatomic import Polyatomic as Polyatomic
from condgrad.solvers.full_pass.quadratic_correction import QuadraticCorrection as QuadraticCorrection
from condgrad.solvers.stochastic.base import StepSolver as StepSolver
from condgrad.solvers.stochastic.base import step_solver as step_solver
from condgrad.solvers.stochastic.boosted_momentum import BoostedMomentum as BoostedMomentum
from condgrad.solvers.stochastic.boosted_saga import BoostedSAGA as BoostedSAGA
from condgrad.solvers.stochastic.boosted_sfw import BoostedSFW as BoostedSFW
from condgrad.solvers.stochastic.curvature_aided import CurvatureAided as CurvatureAided
from condgrad.solvers.stochastic.growing_batch import GrowingBatch as GrowingBatch
from condgrad.solvers.stochastic.momentum import Momentum as Momentum
from condgrad.solvers.stochastic.one_sample import OneSample as OneSample
from condgrad.solvers.stochastic.randomized import Randomized as Randomized
from condgrad.solvers.stochastic.saga import SAGA as SAGA
from condgrad.solvers.stochastic.saga_sarah import SagaSARAH as SagaSARAH
from condgrad.solvers.stochastic.sarah import SARAH as SARAH
from condgrad.solvers.stochastic.sfw import SFW as SFW
from condgrad.solvers.stochastic.sfw_away import SFWAway as SFWAway
from condgrad.solvers.stochastic.sfw_pairwise import SFWPairwise as SFWPairwise
from condgrad.solvers.stochastic.spider import Spider as Spider
from condgrad.solvers.stochastic.substitute import Substitute as Substitute
from condgrad.solvers.stochastic.svrf import SVRF as SVRF
from condgrad.solvers.stochastic.tufw import TUFW as TUFW

REGISTERED = Registry(
    "solver",
    {
        "fw": FrankWolfe,
        "lazy": LazyFrankWolfe,
        "away": AwayStep,
        "pairwise": Pairwise,
        "bpcg": BlendedPairwise,
        "boosted": Boosted,
        "corrective": Corrective,
        "quadratic-correction": QuadraticCorrection,
        "polyatomic": Polyatomic,
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
        "sarah": SARAH,
        "saga-sarah": SagaSARAH,
        "boosted-sfw": BoostedSFW,
        "boosted-saga": BoostedSAGA,
        "boosted-mokhtari": BoostedMomentum,
        "sfw-away": SFWAway,
        "sfw-pairwise": SFWPairwise,
        "randomized": Randomized,
        "low-rank": LowRank,
    },
)

__all__ = ["REGISTERED", "FullPassSolver", "PassSolver", "StepSolver", "by_name", "step_solver"]
__all__ += [cls.__name__ for cls in REGISTERED.values()]
__all__.sort()


def by_name(name: str) -> Any:
    """Return the solver class registered as ``name``.

    >>> by_name("pairwise").__name__
    'Pairwise'
    """
    return REGISTERED.find(name)
