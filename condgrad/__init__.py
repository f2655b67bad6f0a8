"""Constrained learning without projections: stochastic Frank-Wolfe solvers with exact certificates.

>>> import condgrad as cg
>>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
>>> cg.minimize(problem, "pairwise").w
array([0., 1.])
"""

from typing import Any

from condgrad import constraints, losses, rules, sample_sizes, solvers, step_sizes, terms, theory
from condgrad.checkpoint import Checkpoint
from condgrad.completion.problem import CompletionProblem
from condgrad.general_problem import GeneralProblem
from condgrad.minimize import minimize
from condgrad.model import Model
from condgrad.model_file import load_model, save_model
from condgrad.paths import PathInfo, lasso_path
from condgrad.problem import Evaluation, Problem
from condgrad.result import Result, Status
from condgrad.softmax_problem import SoftmaxProblem
from condgrad.trace import Progress, Trace

__version__ = "0.1.0"

# Imported when first asked for: they need scikit-learn, which takes a second.
_LAZY = (
    "ConstrainedClassifier",
    "ConstrainedElasticNet",
    "ConstrainedLasso",
    "ConstrainedLassoCV",
    "ConstrainedLogisticRegression",
    "ConstrainedLogisticRegressionCV",
    "ConstrainedRegressor",
    "RadiusWarning",
    "radius_max",
)

__all__ = [
    "Checkpoint",
    "CompletionProblem",
    "ConstrainedClassifier",
    "ConstrainedElasticNet",
    "ConstrainedLasso",
    "ConstrainedLassoCV",
    "ConstrainedLogisticRegression",
    "ConstrainedLogisticRegressionCV",
    "ConstrainedRegressor",
    "Evaluation",
    "GeneralProblem",
    "Model",
    "PathInfo",
    "Problem",
    "Progress",
    "RadiusWarning",
    "Result",
    "SoftmaxProblem",
    "Status",
    "Trace",
    "constraints",
    "estimators",
    "lasso_path",
    "load_model",
    "losses",
    "minimize",
    "radius_max",
    "rules",
    "sample_sizes",
    "save_model",
    "solvers",
    "step_sizes",
    "terms",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name == "estimators" or name in _LAZY:
        import importlib

        module = importlib.import_module("condgrad.estimators")
        return module if name == "estimators" else getattr(module, name)
    raise AttributeError(f"module 'condgrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
