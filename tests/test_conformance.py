"""Every registered loss, set and solver on tiny problems. A new one is found by itself; it needs no test of its own.

Every solver meets every loss and every set, and every loss every set; `make test-all` runs all combinations of the
three. Solvers of full passes run compiled (a loss and a set are compiled once each). Solvers of single steps are
compiled for each combination, so they run interpreted here, and compiled where ``check_solver`` takes them.
"""

import functools
import inspect
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from covering import every_pair

import condgrad as cg
from condgrad.constraints import ConstraintSet
from condgrad.linalg.vectors import DenseVector
from condgrad.testing import check_solver
from condgrad.testing.solvers import Case, certified_optimum, check_steps, tiny_data

N, D = 12, 5
POINTS = np.random.default_rng(3).standard_normal((8, D))

# Classes that cannot be made without parameters; those that can are not listed.
SETS = {
    "Birkhoff": lambda: cg.constraints.Birkhoff(2),
    "Box": lambda: cg.constraints.Box(-0.5, 0.8),
    "ConvexHull": lambda: cg.constraints.ConvexHull(POINTS),
    "ConvexHullOfUnion": lambda: cg.constraints.ConvexHullOfUnion(
        [cg.constraints.L1Ball(1.0), cg.constraints.Simplex(1.5)]
    ),
    "Ellipsoid": lambda: cg.constraints.Ellipsoid(POINTS.T @ POINTS, center=[0.1, 0.0, 0.0, -0.1, 0.0]),
    "Fantope": lambda: cg.constraints.Fantope(2, k=1),
    "FlowPolytope": lambda: cg.constraints.FlowPolytope([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]], source=0, sink=3),
    "FusedBall": lambda: cg.constraints.FusedBall(1.5, l1_weight=0.5),
    "GraphTotalVariationBall": lambda: cg.constraints.GraphTotalVariationBall(
        [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]], radius=1.0, bound=0.7
    ),
    "GroupBall": lambda: cg.constraints.GroupBall(groups=[0, 1, 0, 2, 1], radius=1.0),
    "Hypersimplex": lambda: cg.constraints.Hypersimplex(k=2, radius=0.7),
    "IsotonicBox": lambda: cg.constraints.IsotonicBox(-0.5, 0.8),
    "KSparsePolytope": lambda: cg.constraints.KSparsePolytope(k=2, radius=0.7),
    "KSupportBall": lambda: cg.constraints.KSupportBall(k=2, radius=0.9),
    "Knapsack": lambda: cg.constraints.Knapsack(prices=[1.0, 2.0, 0.5, 1.0, 3.0], budget=1.5, upper=0.6),
    "L1Ball": lambda: cg.constraints.L1Ball(1.5),
    "L2Ball": lambda: cg.constraints.L2Ball(0.9),
    "LatentGroupBall": lambda: cg.constraints.LatentGroupBall([[0, 1, 2], [2, 3], [3, 4, 0]], radius=1.0),
    "LinearImage": lambda: cg.constraints.LinearImage(POINTS[:5], cg.constraints.L1Ball(0.5)),
    "LinearlyConstrained": lambda: cg.constraints.LinearlyConstrained(
        cg.constraints.L1Ball(1.5), A_eq=np.ones((1, D)), b_eq=[0.0]
    ),
    "LinfBall": lambda: cg.constraints.LinfBall(0.4),
    "LpBall": lambda: cg.constraints.LpBall(p=1.5, radius=1.2),
    "MatroidBasePolytope": lambda: cg.constraints.MatroidBasePolytope(
        D, cg.constraints.partition_matroid([0, 0, 1, 1, 1], capacities=[1, 2])
    ),
    "MinkowskiSum": lambda: cg.constraints.MinkowskiSum([cg.constraints.L1Ball(0.5), cg.constraints.LinfBall(0.2)]),
    "NonnegativeL1Ball": lambda: cg.constraints.NonnegativeL1Ball(1.5),
    "NuclearBall": lambda: cg.constraints.NuclearBall(1.0, shape=(3, 2)),
    "OracleSet": lambda: cg.constraints.OracleSet(lambda r: np.where(r > 0, -0.3, 0.6), is_polytope=True),
    "OrderedWeightedL1Ball": lambda: cg.constraints.OrderedWeightedL1Ball(1.5, weights=[2.0, 1.5, 1.0, 0.5, 0.2]),
    "Permutahedron": lambda: cg.constraints.Permutahedron([-1.0, -0.3, 0.0, 0.4, 1.0]),
    "PSDTraceBall": lambda: cg.constraints.PSDTraceBall(2, trace=0.8),
    "Polytope": lambda: cg.constraints.Polytope(A_ub=np.ones((1, D)), b_ub=[1.0], bounds=(-0.3, 0.9)),
    "Product": lambda: cg.constraints.Product([cg.constraints.L1Ball(1.0), cg.constraints.Box(0.0, 0.5)], sizes=[3, 2]),
    "Scale": lambda: cg.constraints.Scale(cg.constraints.Simplex(), -1.5),
    "Shift": lambda: cg.constraints.Shift(cg.constraints.L1Ball(1.0), offset=[0.2, 0.0, -0.3, 0.0, 0.0]),
    "SpanningTreePolytope": lambda: cg.constraints.SpanningTreePolytope([[0, 1], [1, 2], [2, 0], [2, 3], [3, 0]]),
    "SparseGroupBall": lambda: cg.constraints.SparseGroupBall([0, 1, 0, 2, 1], radius=1.5, l1_weight=0.5),
    "Spectraplex": lambda: cg.constraints.Spectraplex(2),
    "TotalVariationBall": lambda: cg.constraints.TotalVariationBall(1.0, bound=0.7),
    "WeightedL1Ball": lambda: cg.constraints.WeightedL1Ball(1.0, weights=[0.5, 1.0, 2.0, 1.0, 0.7]),
    "WeightedNuclearBall": lambda: cg.constraints.WeightedNuclearBall(0.8, [1.0, 0.5, 0.3], [1.0, 0.6]),
}
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
LOSSES: dict[str, Any] = {}  # every loss has defaults
SOLVERS: dict[str, Any] = {}  # every solver has defaults


def classes(module, is_wanted):
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: cls for name, cls in found.items() if inspect.isclass(cls) and is_wanted(cls)}


def of_its_own_file(cls):
    return cls.__module__.rsplit(".", 1)[-1] not in {"_protocol", "_stochastic", "vertices"}


SET_CLASSES = classes(cg.constraints, lambda cls: issubclass(cls, ConstraintSet) and of_its_own_file(cls))
LOSS_CLASSES = classes(cg.losses, of_its_own_file)
# Those for matrices in factors have tests of their own.
SOLVER_CLASSES = {k: cls for k, cls in cg.solvers.REGISTERED.items() if not getattr(cls, "needs_factors", False)}


def made(name, table, cls):
    """Make an object of a class that may need parameters; None where nobody has said which."""
    if name in table:
        return table[name]()
    try:
        return cls()
    except TypeError:
        return None


@pytest.mark.parametrize(
    ("family", "table", "known"),
    [("SETS", SETS, SET_CLASSES), ("LOSSES", LOSSES, LOSS_CLASSES), ("SOLVERS", SOLVERS, SOLVER_CLASSES)],
    ids=["sets", "losses", "solvers"],
)
def test_every_class_can_be_made(family, table, known):
    missing = [name for name, cls in known.items() if made(name, table, cls) is None]
    assert not missing, f"{missing} cannot be made without parameters: add a line to {family} at the top of this file."
    left_over = set(table) - set(known)
    assert not left_over, f"{family} at the top of this file names {left_over}, which do not exist."


def test_solver_classes_are_registered():
    exported = set(classes(cg.solvers, of_its_own_file).values())
    assert exported == set(cg.solvers.REGISTERED.values())


def names(known, table, keep=lambda obj: True):
    objects = {name: made(name, table, cls) for name, cls in known.items()}
    return sorted(name for name, obj in objects.items() if obj is not None and keep(obj))


def set_named(name):
    return made(name, SETS, SET_CLASSES[name])


def solver_named(name):
    return made(name, SOLVERS, SOLVER_CLASSES[name])


# WeightedNuclearBall is an image of NuclearBall, and test_completion.py solves problems over it: here, without a
# projection, a certified optimum would take a minute.
ALL_SETS = [name for name in names(SET_CLASSES, SETS) if name != "WeightedNuclearBall"]
ALL_LOSSES = names(LOSS_CLASSES, LOSSES)
PASS_SOLVERS = names(SOLVER_CLASSES, SOLVERS, lambda solver: isinstance(solver, cg.solvers.PassSolver))
STEP_SOLVERS = names(SOLVER_CLASSES, SOLVERS, lambda solver: not isinstance(solver, cg.solvers.PassSolver))


def losses_of(set_name):
    """The losses to try a set with."""
    return [ALL_LOSSES[ALL_SETS.index(set_name) % len(ALL_LOSSES)]] if set_name in ONE_LOSS else ALL_LOSSES


LOSSES_AND_SETS = [(loss_name, set_name) for set_name in ALL_SETS for loss_name in losses_of(set_name)]


def all_three(solver_names, is_taken):
    """Parametrize a test by solver, loss and set; cases that a solver refuses are no places where two choices meet."""
    cases = [(solver_name, *pair) for pair in LOSSES_AND_SETS for solver_name in solver_names]
    return every_pair(("solver_name", "loss_name", "set_name"), cases, only=is_taken)


@functools.cache
def case_of(loss_name, set_name):
    """A problem for a loss and a set; the form of the data, weights and an intercept take turns."""
    loss = made(loss_name, LOSSES, LOSS_CLASSES[loss_name])
    turn = ALL_LOSSES.index(loss_name) + ALL_SETS.index(set_name)
    constraint = set_named(set_name)
    X, p, weight = tiny_data(1, N, constraint.n_features or D)
    y = next(y for y in (p, np.sign(p), (p > 0) * 1.0, np.round(abs(p))) if accepts(loss, y))
    form = [np.asarray, scipy.sparse.csr_matrix, np.asfortranarray, scipy.sparse.csc_matrix][turn % 4]
    intercept = turn % 3 == 0 and accepts_intercept(loss, y)
    return Case(form(X), y, loss, constraint, weight if turn % 2 else None, intercept)


def accepts(loss, y):
    try:
        loss.check_targets(y)
    except ValueError:
        return False
    return True


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


@all_three(PASS_SOLVERS, lambda *case: True)
def test_pass_solvers(solver_name, loss_name, set_name):
    case = case_of(loss_name, set_name)
    low, high = optimum_of(loss_name, set_name)
    solver = solver_named(solver_name)
    first = check_steps(solver, case, low, high, max_steps=15)
    again = cg.minimize(case.problem(), solver, tol=0.0, max_steps=15, evaluate_every=1e-9)
    assert first.w.tobytes() == again.w.tobytes()
    problem = case.problem()
    keeps_atoms = getattr(solver, "needs_atoms", False) and problem.constraint.is_polytope
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
    """A solver may refuse a set (a method of vertices, say), but not every one of them: see the next test."""
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


@pytest.mark.parametrize("solver_name", STEP_SOLVERS)
def test_check_solver_on_step_solvers(solver_name):
    check_solver(solver_named(solver_name))


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


# check_solver itself ---------------------------------------------------------------------------------------------


class Broken(cg.solvers.FrankWolfe):
    """Frank-Wolfe with one thing wrong, chosen by ``fault``."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.runs = 0

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
