"""Names of the types that fitted estimators consist of, for skops: its files are read if these are trusted."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import scipy.sparse

from condgrad import constraints, estimators, losses, solvers
from condgrad.constraints._linear_program import LinearProgram, Optimum, Outcome
from condgrad.constraints.polytopes import linearly_constrained
from condgrad.estimators._baselines import Baselines
from condgrad.estimators._batch import Memory, Slopes
from condgrad.estimators.indicators import IndicatorColumns
from condgrad.linalg.factored import Factored
from condgrad.models.completion import CompletionModel
from condgrad.problems.completion.biases import Biases
from condgrad.problems.cox.hazard import BaselineHazard
from condgrad.run.result import Result, Status
from condgrad.run.trace import Record, Trace
from condgrad.solvers import step_sizes
from condgrad.solvers.stochastic import atom_counts, renewal_rules

_PUBLIC = estimators, losses, constraints, solvers, step_sizes, renewal_rules, atom_counts  # modules
_OF_RESULTS = (
    Baselines, BaselineHazard, Biases, CompletionModel, Factored, IndicatorColumns, LinearProgram,
    linearly_constrained._Cut, Memory, Optimum, Outcome, Record, Result, Slopes, Status, Trace,
)  # fmt: skip
_OF_SCIPY = (
    scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_matrix,
    scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array,
)  # fmt: skip


def skops_trusted_types() -> list[str]:
    """Return the names of the types in files of fitted estimators, as ``skops.io.load(file, trusted=...)`` takes them.

    They are the public classes of estimators, losses, sets, solvers and their settings, what results are made of, and
    sparse matrices. None of them runs code of a file or opens files when it is loaded. Types of your own, such as a
    loss or a set that you wrote, and those of libraries (a random generator, for example), are not among them:
    ``skops.io.get_untrusted_types`` tells which these are.

    Examples
    --------
    >>> import condgrad as cg
    >>> "condgrad.run.result.Result" in cg.skops_trusted_types()
    True
    """
    public = (cls for module in _PUBLIC for cls in _classes_of(module))
    return sorted({f"{cls.__module__}.{cls.__name__}" for cls in (*public, *_OF_RESULTS, *_OF_SCIPY)})


def _classes_of(module: Any) -> Iterable[type]:
    """Return the classes of the library among the public names of a module."""
    names = (getattr(module, name) for name in dir(module) if not name.startswith("_"))
    return (each for each in names if inspect.isclass(each) and each.__module__.startswith("condgrad."))
