"""Constrained learning without projections: stochastic Frank-Wolfe solvers with exact certificates.

>>> import condgrad as cg
>>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
>>> cg.minimize(problem, "pairwise").w
array([0., 1.])
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers see; a program imports a name when it first asks for it
    from condgrad import (
        constraints,
        estimators,
        losses,
        rules,
        sample_sizes,
        solvers,
        step_sizes,
        terms,
        theory,
    )
    from condgrad.checkpoint import Checkpoint
    from condgrad.completion import CompletionProblem
    from condgrad.completion_model import CompletionModel
    from condgrad.estimators import (
        ConstrainedClassifier,
        ConstrainedElasticNet,
        ConstrainedLasso,
        ConstrainedLassoCV,
        ConstrainedLogisticRegression,
        ConstrainedLogisticRegressionCV,
        ConstrainedRegressor,
        MatrixCompletion,
        MatrixCompletionCV,
        RadiusWarning,
        radius_max,
    )
    from condgrad.evaluation import Evaluation
    from condgrad.general_problem import GeneralProblem
    from condgrad.minimize import minimize
    from condgrad.model import Model
    from condgrad.model_file import load_model, save_model
    from condgrad.multi_model import MultiModel
    from condgrad.paths import PathInfo, lasso_path, radius_path
    from condgrad.problem import Problem
    from condgrad.result import Result, Status
    from condgrad.softmax_problem import SoftmaxProblem
    from condgrad.trace import Progress, Trace

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "CompletionModel",
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
    "MatrixCompletion",
    "MatrixCompletionCV",
    "Model",
    "MultiModel",
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
    "radius_path",
    "rules",
    "sample_sizes",
    "save_model",
    "solvers",
    "step_sizes",
    "terms",
    "theory",
]


# The module of each name that is not a module itself. Nothing is imported before it is asked for: numba and
# scikit-learn take a second, which `condgrad --help` does not have.
_HOMES = {
    "Checkpoint": "checkpoint",
    "CompletionModel": "completion_model",
    "CompletionProblem": "completion",
    "ConstrainedClassifier": "estimators",
    "ConstrainedElasticNet": "estimators",
    "ConstrainedLasso": "estimators",
    "ConstrainedLassoCV": "estimators",
    "ConstrainedLogisticRegression": "estimators",
    "ConstrainedLogisticRegressionCV": "estimators",
    "ConstrainedRegressor": "estimators",
    "Evaluation": "evaluation",
    "GeneralProblem": "general_problem",
    "MatrixCompletion": "estimators",
    "MatrixCompletionCV": "estimators",
    "Model": "model",
    "MultiModel": "multi_model",
    "PathInfo": "paths",
    "Problem": "problem",
    "Progress": "trace",
    "RadiusWarning": "estimators",
    "Result": "result",
    "SoftmaxProblem": "softmax_problem",
    "Status": "result",
    "Trace": "trace",
    "lasso_path": "paths",
    "load_model": "model_file",
    "minimize": "minimize",
    "radius_max": "estimators",
    "radius_path": "paths",
    "save_model": "model_file",
}


class _Package(types.ModuleType):
    """The package, on which ``minimize`` is the function even after the module of its name was imported."""

    @property
    def minimize(self) -> Any:
        """Return the function."""
        return importlib.import_module("condgrad.minimize").minimize

    @minimize.setter
    def minimize(self, module: Any) -> None:
        """Do nothing: the import of a module sets the attribute of its name, and would hide the function."""


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'condgrad' has no attribute {name!r}")
    if name not in _HOMES:
        return importlib.import_module(f"condgrad.{name}")
    value = getattr(importlib.import_module(f"condgrad.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
