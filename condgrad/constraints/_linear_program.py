"""Linear programs over one set of rows for many costs, by the dual simplex method of HiGHS.

This is the only file that uses HiGHS. scipy contains it, with a private Python interface that can change the costs of a
model; the public function ``scipy.optimize.linprog`` builds a new model in each call, which takes ten times as long
as the solution of a small program. So the private interface is used where it works as expected, else that of the
package ``highspy`` if it is installed, else ``linprog``.
"""

from __future__ import annotations

import functools
import importlib
import threading
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse

from condgrad.constraints._budget_and_row import BudgetAndRow
from condgrad.constraints._rounding import normalised
from condgrad.constraints._single_row import SingleRow
from condgrad.constraints.linear_rows import LinearRows, Multipliers
from condgrad.linalg.named_enum import NamedEnum

# The tightest tolerances that HiGHS accepts. They are absolute: sets should have a size of about 1, and rows norm 1.
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_OPTIONS = _TOLERANCES | {"output_flag": False, "solver": "simplex", "simplex_strategy": 1}
_INTERFACES = (("scipy.optimize._highspy._core", "_Highs"), ("highspy", "Highs"))  # module, class of the solver
_CHANGED = (ImportError, AttributeError, TypeError)  # what an unexpected version of an interface raises
_MANY = 100  # simplex iterations from which on presolving the program may pay


class Outcome(NamedEnum):
    """What became of a linear program; the values are the statuses of ``scipy.optimize.linprog``."""

    OPTIMAL = 0
    INFEASIBLE = 2
    OTHER = 4


class Optimum(NamedTuple):
    """The vertex x, and the multipliers of the rows: cost - A_ub'ub - A_eq'eq is at most 0 only at upper bounds.

    ``ub`` is at most 0. Where the outcome is not OPTIMAL, there is no vertex, and the message says why.
    """

    outcome: Outcome
    message: str
    x: np.ndarray
    ub: np.ndarray
    eq: np.ndarray


class Direct(Protocol):
    """What minimises over few rows without the simplex method."""

    def minimise(self, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the best vertex and the multipliers of the rows, inequalities first; None where it finds none."""


def direct(rows: LinearRows) -> Direct | None:
    """Return what minimises over these rows without the simplex method, if anything does."""
    return SingleRow(rows) if rows.n_rows == 1 else BudgetAndRow.of(rows)


class LinearProgram:
    """Minimise <cost, x> over a set of linear rows, for many costs.

    One model is kept and its costs are changed. Each call solves it from the beginning: a basis that is kept from the
    last call makes similar programs two to ten times faster, but then the vertex among ties, and the rounding of all
    vertices, depend on earlier calls. Two runs with one seed would differ, and so would a resumed run.

    Presolving the model pays for some sets and takes most of the time for others. It is used if it saves half of the
    iterations for the costs ``trial``, by default generic ones: a count, because measured times would make runs differ.

    A program with a single row, or with a budget and one more row, is solved without a model where that is possible.

    Several threads may call it; they take turns. It can be pickled, without the model.
    """

    def __init__(self, rows: LinearRows, trial: np.ndarray | None = None) -> None:
        self.rows, self.trial = rows, generic(rows.low.size) if trial is None else trial
        self._direct = direct(rows)
        self._lock = threading.Lock()
        self._model: Any = None  # None: not made yet; False: there is no interface that can change costs

    def __reduce__(self) -> tuple[type[LinearProgram], tuple[LinearRows, np.ndarray]]:
        return LinearProgram, (self.rows, self.trial)

    def minimise(self, cost: np.ndarray) -> Optimum:
        """Return the best vertex."""
        if self._direct is not None and (found := self._direct.minimise(cost)) is not None:
            return _optimum(self.rows, *found)
        with self._lock:
            if self._model is None:
                self._model = _make_model(self.rows, self.trial)
            optimum = self._model.minimise(cost) if self._model else None
        return _by_linprog(self.rows, cost) if optimum is None else optimum


def _optimum(rows: LinearRows, x: np.ndarray, y: np.ndarray) -> Optimum:
    """Return the vertex x with the multipliers y of the rows, inequalities first."""
    n_ub = 0 if rows.b_ub is None else rows.b_ub.size
    return Optimum(Outcome.OPTIMAL, "", x, np.minimum(y[:n_ub], 0.0), y[n_ub:])


class _Model:
    """A model of HiGHS whose costs change."""

    def __init__(self, module: str, name: str, rows: LinearRows) -> None:
        self.interface = importlib.import_module(module)
        self.highs = getattr(self.interface, name)()
        self.indices = np.arange(rows.low.size, dtype=np.int32)
        self.rows = rows
        for option, value in _OPTIONS.items():
            self.highs.setOptionValue(option, value)
        self.highs.passModel(self._program(rows))
        self._known: tuple[np.ndarray, Optimum | None] | None = None  # the costs of the trial, and their optimum

    def _program(self, rows: LinearRows) -> Any:
        low, high, A, row_low, row_high = rows.polyhedron()
        program = self.interface.HighsLp()
        program.num_row_, program.num_col_ = program.a_matrix_.num_row_, program.a_matrix_.num_col_ = A.shape
        program.a_matrix_.format_ = self.interface.MatrixFormat.kRowwise
        program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = _by_rows(A)
        program.col_cost_ = np.zeros(low.size)
        program.col_lower_, program.col_upper_ = low, high
        program.row_lower_, program.row_upper_ = row_low, row_high
        return program

    def presolve_if_it_pays(self, cost: np.ndarray) -> None:
        """Decide whether HiGHS presolves the program; the optimum of the trial is kept, if it stands."""
        counts = []
        for setting in ("off", "on"):
            self._known = None
            self.highs.setOptionValue("presolve", setting)
            self._known = cost, self.minimise(cost)
            counts.append(self.highs.getInfo().simplex_iteration_count)
            if counts[0] < _MANY:
                return
        if counts[1] > 0.5 * counts[0]:
            self.highs.setOptionValue("presolve", "off")
            self._known = None

    def minimise(self, cost: np.ndarray) -> Optimum | None:
        """Return the best vertex, or None where HiGHS did not find an optimum."""
        if self._known is not None and np.array_equal(self._known[0], cost):
            return self._known[1]
        self.highs.clearSolver()
        self.highs.changeColsCost(cost.size, self.indices, cost)
        self.highs.run()
        if self.highs.getModelStatus() != self.interface.HighsModelStatus.kOptimal:
            return None
        solution = self.highs.getSolution()
        return _optimum(self.rows, np.array(solution.col_value), np.array(solution.row_dual))


def _make_model(rows: LinearRows, trial: np.ndarray) -> _Model | bool:
    """Return a model in the first interface that is present and understands all calls, or False."""
    for module, name in _INTERFACES:
        try:
            model = _Model(module, name, rows)
            model.presolve_if_it_pays(trial)
        except _CHANGED:
            continue
        return model
    return False


def _by_rows(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the rows of A begin among its entries that are not zero, their columns, and the entries."""
    if scipy.sparse.issparse(A):
        A = scipy.sparse.csr_array(A)
        return A.indptr, A.indices, A.data
    rows, columns = np.nonzero(A)
    start = np.searchsorted(rows, np.arange(A.shape[0] + 1))
    return start.astype(np.int32), columns.astype(np.int32), A[rows, columns]


def _by_linprog(rows: LinearRows, cost: np.ndarray) -> Optimum:
    from scipy.optimize import linprog  # here, because the import is slow

    bounds = np.column_stack([rows.low, rows.high])
    sides = rows.A_ub, rows.b_ub, rows.A_eq, rows.b_eq
    found = linprog(cost, *sides, bounds, method="highs-ds", options=_TOLERANCES)
    if found.status != Outcome.OPTIMAL.value:
        outcome = Outcome.INFEASIBLE if found.status == Outcome.INFEASIBLE.value else Outcome.OTHER
        return Optimum(outcome, found.message, *np.empty((3, 0)))
    return Optimum(Outcome.OPTIMAL, "", found.x, np.minimum(found.ineqlin.marginals, 0.0), found.eqlin.marginals)


@functools.lru_cache(maxsize=4)
def generic(n_features: int) -> np.ndarray:
    """Return costs that no direction of a set is likely to be orthogonal to."""
    sizes = np.random.default_rng(0).uniform(1.0, 2.0, n_features)
    costs = sizes * np.random.default_rng(1).choice([-1.0, 1.0], n_features)
    costs.flags.writeable = False  # they are kept for the next call
    return costs


def multipliers_at(rows: LinearRows, r: np.ndarray) -> Multipliers:
    """Return the multipliers of all rows and bounds for the gradient ``r``."""
    x, exponent = normalised(r)
    cost, size = x.astype(np.float64), rows.polyhedron().size
    optimum = LinearProgram(rows.scaled(1.0 / size if size > 0.0 else 1.0)).minimise(cost)
    if optimum.outcome is not Outcome.OPTIMAL:
        raise RuntimeError(f"HiGHS found no multipliers: {optimum.message}")
    return Multipliers(*(2.0**exponent * part for part in multipliers_of(rows, cost, optimum)))


def multipliers_of(rows: LinearRows, cost: np.ndarray, optimum: Optimum) -> Multipliers:
    """Return the multipliers of all rows and bounds, for costs and their optimum."""
    rest = cost.copy()
    for A, y in ((rows.A_ub, optimum.ub), (rows.A_eq, optimum.eq)):
        if A is not None:
            rest -= A.T @ y
    lower = np.where(np.isfinite(rows.low), np.maximum(rest, 0.0), 0.0)
    upper = np.where(np.isfinite(rows.high), np.maximum(-rest, 0.0), 0.0)
    return Multipliers(-optimum.ub, -optimum.eq, lower, upper, np.zeros(cost.size))
