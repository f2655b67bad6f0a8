"""minimize tests its answer against the set: what lies outside is never certified, and rounding never counts."""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tables import SETS

import condgrad as cg
from condgrad import constraints, losses, solvers
from condgrad.constraints import Atom, best_vertex, constraint_set
from condgrad.linalg.factored import Factored
from condgrad.run.membership import is_outside, violation_found


@constraint_set
class _LeakyBall(NamedTuple):
    """An l1 ball whose oracle returns vertices that are too long by one part in a thousand."""

    radius: float

    vertex = Atom
    is_polytope = True

    def lmo(self, r):
        j = r.argmax_abs()
        return Atom(j, -1.001 * self.radius if r.at(j) > 0.0 else 1.001 * self.radius)

    def violation(self, w):
        return float(np.abs(w).sum() - self.radius)


class _Straying(solvers.FrankWolfe):
    """Frank-Wolfe whose last step leaves the set."""

    def step(self, problem, state, t):
        super().step(problem, state, t)
        state.point = problem.point(1.5 * state.w)


class _Alone(constraints.OracleSet):
    """The l2 ball of radius 1, known by its oracle alone."""

    def __init__(self):
        super().__init__(lambda r: -r / max(np.linalg.norm(r), 1e-300))


def _data(n=40, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ np.arange(1.0, d + 1.0)


def _assert_nothing_is_certified(result):
    assert result.status is cg.Status.OUTSIDE
    assert result.gap == result.rounding == np.inf
    assert result.lower_bound == -np.inf
    assert np.isfinite(result.w).all()
    assert np.isfinite(result.objective)


@pytest.mark.parametrize("radius", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("solver", ["fw", "pairwise", "sfw"])
def test_a_set_whose_oracle_leaves_it_is_not_certified(radius, solver):
    X, y = _data()
    problem = cg.Problem(X, radius * y, losses.Squared(), _LeakyBall(radius))
    with pytest.warns(RuntimeWarning, match=r"^w lies outside _LeakyBall.* by .*, so nothing is certified; .*\.$"):
        result = cg.minimize(problem, solver, max_steps=200, tol=0.0, random_state=0)
    _assert_nothing_is_certified(result)


@pytest.mark.parametrize("constraint", [constraints.L1Ball(1.0), constraints.L2Ball(1.0), _Alone()], ids=repr)
def test_a_solver_that_leaves_the_set_is_not_certified(constraint):
    problem = cg.Problem(*_data(), losses.Squared(), constraint)
    with pytest.warns(RuntimeWarning, match="outside"):
        result = cg.minimize(problem, _Straying(), max_steps=30, tol=1e-3)
    _assert_nothing_is_certified(result)


# Equations that neither a projection nor a quadratic program of the set's own rows knows.
_EQUATIONS = ("Birkhoff", "FlowPolytope", "WeightedNuclearBall", "Scale(constraint=Polytope")


@pytest.mark.parametrize(("constraint", "d"), SETS, ids=lambda value: repr(value)[:40])
def test_a_point_that_is_a_little_outside_is_brought_back_and_certified(constraint, d):
    """A start may be outside by 1e-7 of its size, and a step may add as much."""
    if constraint.is_violation_searched or repr(constraint).startswith(_EQUATIONS):
        pytest.skip("only vertices are known to be inside")
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((12, d)), rng.standard_normal(12)
    centre = np.mean([_vertex(constraint, r) for r in rng.standard_normal((6, d))], axis=0)
    vertex = _vertex(constraint, -X.T @ y)
    beyond = vertex + 1e-9 * (vertex - centre)
    size = max(np.abs(vertex).max(), constraint.violation(1024.0 * vertex) / 1024.0)
    problem = cg.Problem(X, y, losses.Squared(), constraint)
    result = cg.minimize(problem, "fw", w0=beyond, max_steps=0, tol=0.0)
    assert constraint.violation(result.w) <= 1e-14 * size
    assert np.abs(result.w - beyond).max() <= 1e-6 * np.abs([vertex, centre]).max()
    assert result.gap == problem.gap(result.w)
    assert result.objective == pytest.approx(problem.objective(result.w), rel=1e-14)
    assert result.lower_bound <= result.objective


def test_a_matrix_in_factors_is_brought_back():
    rows, columns = np.divmod(np.arange(30), 6)
    problem = cg.CompletionProblem(rows, columns, rows - 0.3 * columns, losses.Squared(), constraints.NuclearBall(1.0))
    beyond = Factored(np.full((5, 1), 0.2**0.5), np.array([1.0 + 1e-9]), np.full((6, 1), 6.0**-0.5))
    result = cg.minimize(problem, "fw", w0=beyond, max_steps=0, tol=0.0)
    assert abs(result.w.nuclear_norm() - 1.0) <= 1e-14
    assert result.gap == problem.evaluate(result.w).gap


def _far_away(seed):
    """Targets so far away that the loss is linear over the set: its model has no curvature."""
    rng = np.random.default_rng(seed)
    d = (2, 5, 12)[seed % 3]
    X, y = rng.standard_normal(((3, 10)[seed % 2], d)), 1e3 * np.abs(rng.standard_normal((3, 10)[seed % 2]))
    weights, groups = rng.uniform(0.2, 2.0, d), np.arange(d) // 2
    group_weights = rng.uniform(0.3, 3.0, groups.max() + 1)
    return (
        X,
        y,
        (
            constraints.Knapsack(weights, 1.0, 0.4),
            constraints.LimitedL1Ball(1.0, weights, -0.4, 0.6),
            constraints.WeightedGroupBall(groups, 1.0, group_weights),
            constraints.Permutahedron(np.linspace(-1.0, 1.0, d) ** 3),
            constraints.LinearlyConstrained(constraints.L1Ball(1.0), A_eq=np.ones((1, d)), b_eq=[0.0]),
            constraints.LinearlyConstrained(constraints.Simplex(3.0), A_eq=np.eye(d)[:1], b_eq=[1.0]),
        ),
    )


@pytest.mark.parametrize("seed", range(12))
def test_models_without_curvature_stay_inside(seed):
    X, y, sets = _far_away(seed)
    for constraint in sets:
        problem = cg.Problem(X, y, losses.Huber(0.7), constraint)
        result = cg.minimize(problem, tol=1e-9)
        for w in (result.w, result.state.w):
            assert constraint.violation(w) <= 1e-14
        assert result.status is cg.Status.CONVERGED
        assert result.lower_bound <= result.objective


def test_an_estimator_says_so_too():
    class Leaky(constraints.OracleSet):
        def __init__(self):
            super().__init__(lambda r: -1.01 * np.sign(r), lambda w: float(np.abs(w).max() - 1.0))

    model = cg.ConstrainedRegressor(constraint=Leaky(), solver="fw", max_iter=50)
    with pytest.warns(ConvergenceWarning, match="outside"), pytest.warns(RuntimeWarning, match="outside"):
        model.fit(*_data())
    assert model.result_.gap == np.inf


def test_a_matrix_in_factors_is_tested_too():
    ball = constraints.NuclearBall(1.0)
    u, v = np.full((4, 1), 0.5), np.full((9, 1), 1.0 / 3.0)
    for size, outside in ((1.0 + 1e-9, False), (1.001, True), (0.5, False)):
        w = Factored(u, np.array([size]), v)
        assert is_outside(ball, w, violation_found(ball, w, np.zeros(0))) is outside


@pytest.mark.parametrize(("constraint", "d"), SETS, ids=lambda value: repr(value)[:40])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounding_is_never_outside_and_points_beyond_a_vertex_are(constraint, d, scale):
    """Of every set and of its multiples: combinations of vertices are inside, points beyond a vertex are not."""
    scaled = constraints.Scale(constraint, scale)
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((20, d))
    vertices = np.array([scaled.start(d).to_dense(d), *(_vertex(scaled, r) for r in directions)])
    for weights in np.vstack([np.eye(len(vertices))[:4], rng.dirichlet(np.ones(len(vertices)), 4)]):
        w = (weights @ vertices).astype(np.float32).astype(float)  # the rounding of another solver
        for r in directions[:2]:
            assert not is_outside(scaled, w, violation_found(scaled, w, r))
    centre = vertices.mean(axis=0)
    for r, s in zip(directions[:4], vertices[1:]):
        if np.ptp(vertices, axis=0).max() > 1e-3 * np.abs(vertices).max():  # else the set is a point
            beyond = s + 0.5 * (s - centre)
            assert is_outside(scaled, beyond, violation_found(scaled, beyond, r))


def _vertex(constraint, r):
    return best_vertex(constraint, r).to_dense(r.size)


def test_a_zero_on_the_boundary_has_the_rounding_of_the_set():
    ball = constraints.Shift(constraints.L2Ball(1e-3), [1e-3 * 0.6, 1e-3 * 0.8])  # 0 lies on its boundary
    zero = np.zeros(2)
    assert not is_outside(ball, zero, ball.violation(zero) + 1e-19)
    assert is_outside(ball, zero, 1e-6)
    assert is_outside(ball, np.array([np.nan, 0.0]), np.nan)


def test_a_small_point_of_a_cone_has_the_rounding_of_its_own_size():
    steps = np.eye(3)[:-1] - np.eye(3)[1:]
    monotone = constraints.LinearlyConstrained(constraints.NonnegativeL1Ball(1.0), A_ub=steps, b_ub=np.zeros(2))
    w = np.array([1e-16, 2e-16, 3e-16])  # all of its multiples are monotone, those by -1 are not
    assert not is_outside(monotone, w, 3e-30)
    assert is_outside(monotone, w, 1e-6)


def test_a_point_near_zero_has_the_rounding_of_a_set_whose_start_is_zero():
    contrast = constraints.LinearlyConstrained(constraints.L1Ball(1e8), A_eq=[[1.0, 1.0]], b_eq=[0.0])
    w = np.array([1.0 + 2e-12, -1.0])  # far inside the ball, where only its own violation seems to grow with it
    assert not is_outside(contrast, w, contrast.violation(w))
    assert is_outside(contrast, w, 1e3)


def test_a_set_with_an_oracle_alone_is_tested_by_few_calls():
    calls = []

    def count(r):
        calls.append(r)
        return -r / max(np.linalg.norm(r), 1e-300)

    ball = constraints.OracleSet(count)
    w = np.full(30, -0.9 / np.sqrt(30.0))
    assert violation_found(ball, w, np.ones(30)) == 0.0
    assert len(calls) <= 5
    assert violation_found(ball, 1.2 / 0.9 * w, np.ones(30)) == pytest.approx(0.2, rel=1e-2)
