"""Constrained learning without projections: stochastic Frank-Wolfe solvers with exact certificates.

>>> import condgrad as cg
>>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
>>> cg.minimize(problem, "pairwise").w
array([0., 1.])
"""

from condgrad import constraints, losses, rules, sample_sizes, solvers, step_sizes, terms, theory
from condgrad.checkpoint import Checkpoint
from condgrad.general_problem import GeneralProblem
from condgrad.minimize import minimize
from condgrad.model import Model
from condgrad.model_file import load_model, save_model
from condgrad.paths import PathInfo, lasso_path
from condgrad.problem import Evaluation, Problem
from condgrad.result import Result, Status
from condgrad.trace import Progress, Trace

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "Evaluation",
    "GeneralProblem",
    "Model",
    "PathInfo",
    "Problem",
    "Progress",
    "Result",
    "Status",
    "Trace",
    "constraints",
    "lasso_path",
    "load_model",
    "losses",
    "minimize",
    "rules",
    "sample_sizes",
    "save_model",
    "solvers",
    "step_sizes",
    "terms",
    "theory",
]
