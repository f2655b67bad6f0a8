"""Every registered loss, set and solver on tiny problems. A new one is found by itself; it needs no test of its own.

Every solver meets every loss and every set, and every loss every set; `make test-all` runs all combinations of the
three. Solvers of full passes run compiled (a loss and a set are compiled once each). Solvers of single steps are
compiled for each combination, so they run interpreted here, and compiled where ``check_solver`` takes them.
"""

import functools
import inspect
import math
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from covering import every_pair
from tables import EXAMPLES, QUADRATIC_ONLY, targets

import condgrad as cg
from condgrad.constraints import ConstraintSet
from condgrad.linalg.vectors import DenseVector
from condgrad.problems.base import Feature
from condgrad.testing import check_solver
from condgrad.testing.solvers import Case, cases, certified_optimum, check_on, check_steps, tiny_data

N, D = 12, 5
# Sets that are tried with one loss each, in turn: their oracles differ, but not what solvers see of them.
ONE_LOSS = {
    "Birkhoff",
    "ConvexHullOfUnion",
    "Ellipsoid",
    "Fantope",
    "FlowPolytope",
    "FusedBall",
    "GraphTotalVariationBall",
    "IsotonicBox",
    "KSupportBall",
    "LatentGroupBall",
    "LinearImage",
    "LinearlyConstrained",
    "MatroidBasePolytope",
    "MinkowskiSum",
    "NuclearBall",
    "OrderedWeightedL1Ball",
    "PSDTraceBall",
    "Permutahedron",
    "SpanningTreePolytope",
    "SparseGroupBall",
    "Spectraplex",
    "TotalVariationBall",
}


def classes(module, is_wanted):
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: cls for name, cls in found.items() if inspect.isclass(cls) and is_wanted(cls)}


def of_its_own_file(cls):
    return cls.__module__.rsplit(".", 1)[-1] not in {"_protocol", "base", "vertices"}


LOSS_CLASSES = classes(cg.losses, of_its_own_file)
# Those for matrices in factors have tests of their own.
SOLVER_CLASSES = {k: cls for k, cls in cg.solvers.REGISTERED.items() if Feature.FACTORS not in cls.requires}


def test_losses_and_solvers_have_defaults():
    for cls in (*LOSS_CLASSES.values(), *SOLVER_CLASSES.values()):
        cls()


def test_solver_classes_are_registered():
    exported = set(classes(cg.solvers, of_its_own_file).values())
    assert exported == set(cg.solvers.REGISTERED.values())


def set_named(name):
    return EXAMPLES[name][0]


def solver_named(name):
    return SOLVER_CLASSES[name]()


# WeightedNuclearBall is an image of NuclearBall, and test_completion.py solves problems over it: here, without a
# projection, a certified optimum would take a minute.
ALL_SETS = sorted(set(EXAMPLES) - {"WeightedNuclearBall"})
ALL_LOSSES = sorted(LOSS_CLASSES)
PASS_SOLVERS = sorted(name for name, cls in SOLVER_CLASSES.items() if issubclass(cls, cg.solvers.FullPassSolver))
STEP_SOLVERS = sorted(set(SOLVER_CLASSES) - set(PASS_SOLVERS))


def losses_of(set_name):
    """The losses to try a set with."""
    return [ALL_LOSSES[ALL_SETS.index(set_name) % len(ALL_LOSSES)]] if set_name in ONE_LOSS else ALL_LOSSES


LOSSES_AND_SETS = [(loss_name, set_name) for set_name in ALL_SETS for loss_name in losses_of(set_name)]


def all_three(solver_names, is_taken):
    """Parametrize a test by solver, loss and set; cases that a solver refuses are no places where two choices meet."""
    combinations = [(solver_name, *pair) for pair in LOSSES_AND_SETS for solver_name in solver_names]
    return every_pair(("solver_name", "loss_name", "set_name"), combinations, only=is_taken)


@functools.cache
def case_of(loss_name, set_name):
    """A problem for a loss and a set; the form of the data, weights and an intercept take turns."""
    loss = LOSS_CLASSES[loss_name]()
    turn = ALL_LOSSES.index(loss_name) + ALL_SETS.index(set_name)
    constraint, d = EXAMPLES[set_name]
    X, p, weight = tiny_data(1, N, d)
    y = targets(loss, p)
    form = [np.asarray, scipy.sparse.csr_matrix, np.asfortranarray, scipy.sparse.csc_matrix][turn % 4]
    intercept = turn % 3 == 0 and accepts_intercept(loss, y)
    return Case(form(X), y, loss, constraint, weight if turn % 2 else None, intercept)


def accepts_intercept(loss, y):
    try:
        loss.check_intercept(y)
    except ValueError:
        return False
    return True


@functools.cache
def optimum_of(loss_name, set_name):
    return certified_optimum(case_of(loss_name, set_name).problem())


# Losses x sets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss_name", "set_name"), LOSSES_AND_SETS)
def test_evaluation_is_the_formula(loss_name, set_name):
    """Kernels against the same methods in plain NumPy: F, its gradient, the vertex and the gap."""
    case = case_of(loss_name, set_name)
    problem = case.problem()
    X = case.X.toarray() if scipy.sparse.issparse(case.X) else case.X
    weight = np.ones(N) if case.sample_weight is None else case.sample_weight
    weight = weight / math.fsum(weight)
    d = X.shape[1]
    r = np.random.default_rng(0).standard_normal(d)
    w = 0.5 * (problem.lmo(r).to_dense(d) + problem.lmo(-r).to_dense(d))
    found = problem.evaluate(w)
    p = X @ w + found.intercept
    assert found.objective == pytest.approx(math.fsum(weight * case.loss.value(p, case.y)), rel=1e-12)
    alpha = weight * case.loss.derivative(p, case.y)
    np.testing.assert_allclose(found.gradient, X.T @ alpha, rtol=1e-9, atol=1e-12)
    if case.intercept:
        assert abs(alpha.sum()) <= 1e-12 * abs(alpha).sum()
    s = problem.constraint.lmo(DenseVector(X.T @ alpha)).to_dense(d)
    assert found.gap == pytest.approx(X.T @ alpha @ (w - s), rel=1e-9, abs=1e-12)


# Solvers of full passes ------------------------------------------------------------------------------------------


def is_taken_by_pass_solvers(solver_name, loss_name, set_name):
    """Whether a solver takes a case: some need the same curvature everywhere."""
    return solver_name not in QUADRATIC_ONLY or LOSS_CLASSES[loss_name].is_quadratic


@pytest.mark.slow
@all_three(PASS_SOLVERS, is_taken_by_pass_solvers)
def test_pass_solvers(solver_name, loss_name, set_name):
    case = case_of(loss_name, set_name)
    solver = solver_named(solver_name)
    if not is_taken_by_pass_solvers(solver_name, loss_name, set_name):
        assert not accepts_problem(solver_name, case)
        return
    low, high = optimum_of(loss_name, set_name)
    first = check_steps(solver, case, low, high, max_steps=15)
    again = cg.minimize(case.problem(), solver, tol=0.0, max_steps=15, evaluate_every=1e-9)
    assert first.w.tobytes() == again.w.tobytes()
    problem = case.problem()
    keeps_atoms = getattr(solver, "keeps_atoms", True) and problem.constraint.is_polytope
    tol = 1e-7 if keeps_atoms else max(0.02 * first.trace.gap[0], 1e-12)  # a start may be the best vertex already
    result = cg.minimize(problem, solver, tol=tol, max_epochs=6000)
    assert result.status is cg.Status.CONVERGED
    assert result.gap == problem.gap(result.w)
    if problem.is_convex:
        uses_highs = set_name in ("Polytope", "LinearlyConstrained", "GraphTotalVariationBall")
        slack = 1e-9 if uses_highs else 1e-12  # HiGHS finds vertices, and so bounds, to 1e-10
        assert low - slack <= result.objective <= high + result.gap + slack
    else:
        assert result.objective <= first.trace.objective[0] + 1e-12


@pytest.mark.parametrize("solver_name", PASS_SOLVERS)
def test_check_solver_on_pass_solvers(solver_name):
    check_solver(solver_named(solver_name))


# Solvers of single steps -----------------------------------------------------------------------------------------


class Plain(ConstraintSet):
    """A set that runs interpreted, and every step of a solver over it."""

    def __init__(self, inner):
        self.inner = inner
        self.vertex, self.is_polytope, self.n_features = inner.vertex, inner.is_polytope, inner.n_features

    def __repr__(self):
        return f"Plain({self.inner!r})"


def _delegate(name):
    def method(self, *args, **kwargs):
        return getattr(self.inner, name)(*args, **kwargs)

    return method


for _name, _value in vars(ConstraintSet).items():
    if inspect.isfunction(_value) and not _name.startswith("_"):
        setattr(Plain, _name, _delegate(_name))


def is_taken(solver_name, loss_name, set_name):
    """Whether a solver is known to take a case: some need single-feature atoms, or no intercept."""
    case = case_of(loss_name, set_name)
    return {
        "tufw": not case.intercept,
        "sfw-away": case.constraint.vertex is cg.constraints.Atom,
        "sfw-pairwise": case.constraint.vertex is cg.constraints.Atom,
        "randomized": case.constraint.blocks(case.X.shape[1]) is not None,
    }.get(solver_name, True)


@all_three(STEP_SOLVERS, is_taken)
def test_step_solvers_interpreted(solver_name, loss_name, set_name):
    """A solver may refuse a set (a method of vertices, say), but not all: see test_step_solvers_compiled."""
    case = case_of(loss_name, set_name)
    case = case._replace(constraint=Plain(case.constraint))
    if accepts_problem(solver_name, case):
        check_steps(solver_named(solver_name), case, *optimum_of(loss_name, set_name), max_steps=6)


def accepts_problem(solver_name, case):
    try:
        cg.minimize(case.problem(), solver_named(solver_name), max_steps=0)
    except (ValueError, TypeError) as error:
        assert str(error).endswith(".")
        assert "\n" not in str(error)
        return False
    return True


def compiled_cases():
    """Each solver with the four problems of ``check_solver``, each a kernel of its own; one of them is no campaign."""
    for turn, solver_name in enumerate(STEP_SOLVERS):
        needs_atoms_or_no_intercept = solver_name in ("sfw-away", "sfw-pairwise", "randomized", "tufw")
        chosen = turn % (2 if needs_atoms_or_no_intercept else 4)
        for k in range(4):
            yield pytest.param(solver_name, k, marks=[] if k == chosen else pytest.mark.campaign)


@pytest.mark.slow
@pytest.mark.parametrize(("solver_name", "k"), list(compiled_cases()))
def test_step_solvers_compiled(solver_name, k):
    solver, case = solver_named(solver_name), cases()[k]
    if accepts_problem(solver_name, case):
        check_on(solver, case)
    else:
        assert k > 1, f"{solver_name} refuses atoms without an intercept."


@pytest.mark.parametrize("batch_size", [1, 2, 5, N, 0.5])
@pytest.mark.parametrize("solver_name", STEP_SOLVERS)
def test_batch_sizes(solver_name, batch_size):
    solver = solver_named(solver_name)
    if "batch_size" not in getattr(solver, "_fields", vars(type(solver))):
        pytest.skip("it has no batch size")
    case = case_of("Logistic", "L1Ball")
    case = case._replace(constraint=Plain(case.constraint))
    low, high = optimum_of("Logistic", "L1Ball")
    runs = [check_steps(solver._replace(batch_size=batch_size), case, low, high, random_state=5) for _ in range(2)]
    assert runs[0].w.tobytes() == runs[1].w.tobytes()
    assert runs[0].trace.objective.min() < runs[0].trace.objective[0]


# All solvers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [{"max_steps": 1}, {"max_epochs": 1.0}, {"max_time": 0.0}, {"max_steps": 8, "callback": lambda p: p.step > 0}],
    ids=["max_steps", "max_epochs", "max_time", "callback"],
)
@pytest.mark.parametrize("solver_name", sorted(SOLVER_CLASSES))
def test_a_gap_below_tol_is_convergence_whatever_ended_the_run(solver_name, limits):
    case = case_of("Squared", "L1Ball")._replace(intercept=False)
    problem = case._replace(constraint=Plain(case.constraint)).problem()
    if solver_name == "randomized":  # draws from the blocks of a set, in kernels
        problem = case.problem()
    solver = solver_named(solver_name)
    short = cg.minimize(problem, solver, tol=0.0, random_state=0, **limits)
    assert short.status is not cg.Status.CONVERGED
    for tol in (1e9, 1.0001 * (short.gap + short.rounding)):
        result = cg.minimize(problem, solver, tol=tol, random_state=0, **limits)
        assert result.status is cg.Status.CONVERGED and result.gap + result.rounding <= tol


# check_solver itself ---------------------------------------------------------------------------------------------


class Broken(cg.solvers.FrankWolfe):
    """Frank-Wolfe with one thing wrong, chosen by ``fault``."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.runs = 0

    def __repr__(self):
        return f"Broken({self.fault!r})"  # without the count, so that a checkpoint takes it for the same solver

    def init(self, problem, w0, random_state=None):
        if self.fault == "refuses":
            raise ValueError("not today.")
        if self.fault == "ignores w0":
            w0 = None
        self.runs += 1
        return super().init(problem, w0, random_state)

    def step(self, problem, state, t):
        if self.fault == "asleep" and t >= 1:
            state.point.reset(state.point.w)
            return
        super().step(problem, state, t)
        point = state.point
        if self.fault == "infeasible":
            point.reset(1.01 * point.w + 0.01)
        if self.fault == "random" and t == 2:
            point.reset(point.w * (1.0 - 1e-6 * self.runs) + 1e-6 * self.runs * point.s.to_dense(point.w.size))
        if self.fault == "forgets":
            state.n_moves = getattr(state, "n_moves", 0) + 1  # which no snapshot has
            share = 1e-6 * state.n_moves
            point.reset((1.0 - share) * point.w + share * point.s.to_dense(point.w.size))
        if self.fault == "stale":
            point.p *= 0.999
        if self.fault == "data":
            X = problem.matrix.X
            (X.data if scipy.sparse.issparse(X) else X)[...] *= 1.0 + 1e-3

    def evaluate(self, problem, state):
        found = super().evaluate(problem, state)
        if self.fault == "small gap":
            return found._replace(gap=0.5 * found.gap)
        if self.fault == "objective":
            return found._replace(objective=found.objective + 1e-3)
        return found


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("infeasible", "w is outside by"),
        ("random", "two runs with the same random_state differ"),
        ("forgets", "must be in snapshot() and restore() of the state"),
        ("stale", "the objective should be"),
        ("small gap", "the gap should be"),
        ("objective", "the objective should be"),
        ("asleep", "above the optimum after"),
        ("ignores w0", "a warm start should begin at"),
        ("refuses", "refuses every problem that check_solver tries; it said: not today."),
        ("data", ""),
    ],
)
def test_check_solver_finds(fault, sentence):
    with pytest.raises(AssertionError) as caught:
        check_solver(Broken(fault))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_check_solver_takes_names_and_objects():
    check_solver("away")
    with pytest.raises(ValueError, match="there is no solver named 'newton'"):
        check_solver("newton")


class Steepest(NamedTuple):
    """A solver of somebody else's: any object with the four methods."""

    length: float = 1.0


def test_check_solver_refuses_what_is_no_solver():
    with pytest.raises(AssertionError, match="refuses every problem"):
        check_solver(Steepest())
