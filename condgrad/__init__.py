"""Constrained learning without projections: stochastic Frank-Wolfe solvers with exact certificates.

>>> import condgrad as cg
>>> problem = cg.Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
>>> cg.minimize(problem, "pairwise").w
array([0., 1.])
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# Nothing is imported before it is asked for: numba and scikit-learn take a second, which `condgrad --help` does not
# have. Editors and type checkers read __init__.pyi.
_NAMES_OF_MODULES = {
    "linalg.coded_data": ("CodedData",),
    "run.checkpoint": ("Checkpoint",),
    "run.minimize": ("minimize",),
    "run.private": ("PrivateResult", "minimize_private"),
    "run.result": ("Result", "Status"),
    "run.trace": ("Progress", "Trace"),
    "problems.linear": ("Problem",),
    "problems.general": ("GeneralProblem",),
    "problems.softmax": ("SoftmaxProblem",),
    "problems.multi_output": ("MultiOutputProblem",),
    "problems.completion": ("CompletionProblem",),
    "problems.cox": ("CoxProblem",),
    "problems.evaluation": ("Evaluation",),
    "models.linear": ("Model",),
    "models.multi": ("MultiModel",),
    "models.completion": ("CompletionModel",),
    "models.files": ("load_model", "save_model"),
    "paths": ("PathInfo", "cox_path", "lasso_path", "radius_path"),
    "estimators.indicators": ("IndicatorColumns",),
    "estimators.trusted": ("skops_trusted_types",),
    "estimators": (
        "ConstrainedClassifier",
        "ConstrainedClassifierCV",
        "ConstrainedCoxRegression",
        "ConstrainedCoxRegressionCV",
        "ConstrainedElasticNet",
        "ConstrainedElasticNetCV",
        "ConstrainedGroupLasso",
        "ConstrainedGroupLassoCV",
        "ConstrainedGroupLogisticRegression",
        "ConstrainedGroupLogisticRegressionCV",
        "ConstrainedLasso",
        "ConstrainedLassoCV",
        "ConstrainedLogisticRegression",
        "ConstrainedLogisticRegressionCV",
        "ConstrainedMultiTaskLasso",
        "ConstrainedMultiTaskLassoCV",
        "ConstrainedQuantileRegressor",
        "ConstrainedRegressor",
        "ConstrainedRegressorCV",
        "MatrixCompletion",
        "MatrixCompletionCV",
        "RadiusWarning",
        "ScaleWarning",
        "StabilitySelection",
        "SquareRootLasso",
        "radius_max",
        "relaxed",
        "to_sklearn",
    ),
}
# Modules of the API, and where they lie.
_MODULES = {
    "columns": "storage.columns",
    "constraints": "constraints",
    "estimators": "estimators",
    "losses": "losses",
    "plotting": "paths.plotting",
    "rows": "storage.rows",
    "rules": "solvers.stochastic.renewal_rules",
    "sample_sizes": "solvers.stochastic.atom_counts",
    "solvers": "solvers",
    "step_sizes": "solvers.step_sizes",
    "terms": "problems.terms",
    "theory": "theory",
}
_HOMES = {name: module for module, names in _NAMES_OF_MODULES.items() for name in names}

__all__ = sorted([*_HOMES, *_MODULES])


class _PublicModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets ``import condgrad.step_sizes`` find the module where it lies."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        is_elsewhere = package == __name__ and _MODULES.get(name, name) != name
        return importlib.machinery.ModuleSpec(fullname, self) if is_elsewhere else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"{__name__}.{_MODULES[spec.name.rpartition('.')[2]]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own name back: it was executed under that."""
        module.__spec__ = module.__spec__.loader_state if module.__spec__ else None


sys.meta_path.append(_PublicModules())


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'condgrad' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
