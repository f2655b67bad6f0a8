"""Taylor models over the set itself: corrective needs few passes over every set, whatever its vertices are."""

import itertools
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
from tables import EXAMPLES, FORMS, TWO_LOSSES, targets

import condgrad as cg
from condgrad import constraints, losses
from condgrad.problems.active_set import AtomStack
from condgrad.solvers.full_pass.face import minimise_in_span, minimise_on_face
from condgrad.solvers.full_pass.taylor_model import curvature_in_passes, model_for
from condgrad.solvers.full_pass.vertex_hull import VertexHull

SQUARED, LOGISTIC = TWO_LOSSES.values()
SOME = {
    "l2": lambda d: constraints.L2Ball(0.8),
    "box": lambda d: constraints.Box(-0.1, 0.3),
    "k-sparse": lambda d: constraints.KSparsePolytope(3, 0.3),
    "slope": lambda d: constraints.OrderedWeightedL1Ball(1.0, np.linspace(1.5, 0.5, d)),
    "groups": lambda d: constraints.GroupBall(np.arange(d) // 3, 0.9),
    "k-support": lambda d: constraints.KSupportBall(4, 0.7),
    "total variation": lambda d: constraints.TotalVariationBall(1.0, 0.5),
    "sum": lambda d: constraints.MinkowskiSum([constraints.L1Ball(0.5), constraints.L2Ball(0.2)]),
}


def make_problem(constraint, n=300, d=12, loss=LOGISTIC, form=np.asarray, **settings):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    X[rng.uniform(size=(n, d)) < 0.3] = 0.0
    y = targets(loss, X @ np.linspace(1.0, -0.5, d) + rng.standard_normal(n))
    return cg.Problem(form(X), y, loss, constraint, **settings)


# Every set ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", TWO_LOSSES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_few_passes_reach_the_optimum_over_every_set(name, loss):
    """The optimum lies between the bounds of another solver, and every iterate lies in the set."""
    constraint, d = EXAMPLES[name]
    problem = make_problem(constraint, 150, d, TWO_LOSSES[loss], intercept=len(name) % 2 == 0)
    violations = []
    result = cg.minimize(
        problem, "corrective", tol=1e-9, max_steps=40, callback=lambda p: violations.append(constraint.violation(p.w))
    )
    assert result.status is cg.Status.CONVERGED and result.n_epochs <= 25
    assert max(violations) <= 1e-9
    other = cg.minimize(problem, "bpcg" if constraint.is_polytope else "fw", tol=1e-3, max_steps=300)
    assert other.lower_bound - 1e-9 <= result.objective <= other.objective + 1e-9


@pytest.mark.parametrize("name", SOME)
def test_data_of_any_form_give_the_same_model(name):
    ends = {
        form: cg.minimize(make_problem(SOME[name](12), form=FORMS[form], l2=0.01), "corrective", tol=1e-10).w
        for form in ("C", "F", "csr", "csc", "C-float32", "csr-float32")
    }
    for form, w in ends.items():
        np.testing.assert_allclose(w, ends["C"], atol=1e-3 if "32" in form else 1e-4)


@pytest.mark.parametrize("name", SOME)
def test_weights_are_repetitions_over_sets_without_atoms(name):
    X = np.random.default_rng(0).standard_normal((60, 12))
    y, count = X[:, 0] - X[:, 5], np.arange(60) % 3 + 1
    rows = np.repeat(np.arange(60), count)
    weighed = cg.Problem(X, y, losses.Huber(), SOME[name](12), sample_weight=count, intercept=True)
    repeated = cg.Problem(X[rows], y[rows], losses.Huber(), SOME[name](12), intercept=True)
    ends = [cg.minimize(problem, "corrective", tol=1e-10) for problem in (weighed, repeated)]
    assert ends[0].objective == pytest.approx(ends[1].objective, abs=2e-10)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=repr)
def test_passes_are_few_on_many_samples(name, loss):
    problem = make_problem(SOME[name](60), 9000, 60, loss)
    looks = []
    result = cg.minimize(problem, "corrective", tol=1e-6, callback=lambda p: looks.append(p.lmo_calls))
    assert result.status is cg.Status.CONVERGED and looks[-1] <= 25 and result.n_epochs <= 15


def test_non_convex_losses_reach_stationary_points():
    for name, make in SOME.items():
        result = cg.minimize(make_problem(make(12), loss=losses.SigmoidSquared()), "corrective", tol=1e-7)
        assert result.status is cg.Status.CONVERGED, name


# Working sets, and the change from vertices to features ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["k-sparse", "slope", "groups", "k-support"])
def test_few_of_many_features_are_in_play(name):
    d = 2400
    problem = make_problem(SOME[name](d), 80, d)
    result = cg.minimize(problem, "corrective", relative_tol=1e-6)
    assert result.status is cg.Status.CONVERGED and result.n_epochs <= 40
    assert len(result.state.atoms) < d / 2  # and the model was never larger
    assert set(np.flatnonzero(result.w)) <= set(result.state.atoms.index)


def wide_problem(constraint):
    return make_problem(constraint, 150, 250)


def test_passes_with_vertices_give_way_to_features():
    problem = wide_problem(constraints.LinfBall(0.05))
    assert curvature_in_passes(problem) > 6 and type(model_for(problem)).__name__ == "HullModel"
    result = cg.minimize(problem, "corrective", relative_tol=1e-8)
    assert isinstance(result.state.atoms, AtomStack) and result.status is cg.Status.CONVERGED
    assert result.n_epochs <= 25
    # Over a curved set a few vertices are enough.
    result = cg.minimize(wide_problem(constraints.L2Ball(0.05)), "corrective", relative_tol=1e-4)
    assert not isinstance(result.state.atoms, AtomStack) and result.status is cg.Status.CONVERGED


def test_the_cost_of_the_curvature_follows_the_data():
    def cost(n, d, density=1.0, loss=SQUARED):
        X = np.ones((n, d)) if density == 1.0 else scipy.sparse.random(n, d, density, format="csr", random_state=0)
        return curvature_in_passes(cg.Problem(X, np.ones(n), loss, constraints.L2Ball(1.0)))

    assert cost(50, 2001) == np.inf
    assert cost(50, 200) == 2.0 * cost(50, 100)
    assert cost(50, 200, 0.05) < cost(50, 200)
    assert cost(9000, 20, loss=LOGISTIC) < cost(9000, 20)  # a part of the samples is enough
    assert cost(50, 20, loss=LOGISTIC) > cost(50, 20)  # it changes from pass to pass


# Checkpoints ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOME)
def test_a_run_over_any_set_goes_on_from_a_checkpoint(name, tmp_path):
    problem = make_problem(SOME[name](12))
    whole = cg.minimize(problem, "corrective", tol=0.0, max_steps=5)
    for max_steps in range(1, 6):
        result = cg.minimize(problem, "corrective", tol=0.0, max_steps=max_steps, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(result.state.w, whole.state.w)


def test_a_run_that_changes_its_model_goes_on_from_a_checkpoint(tmp_path):
    problem = wide_problem(constraints.LinfBall(0.05))
    whole = cg.minimize(problem, "corrective", tol=0.0, max_steps=12)
    for max_steps in range(1, 13):
        result = cg.minimize(problem, "corrective", tol=0.0, max_steps=max_steps, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(result.state.w, whole.state.w)
    assert isinstance(result.state.atoms, AtomStack)


@pytest.mark.parametrize("atoms", ["vertices", "features"])
def test_checkpoints_of_older_versions_can_be_read(atoms):
    """They have vertices as atoms, or features without the hull of the last model, and no number of passes."""
    problem = make_problem(constraints.TotalVariationBall(1.0, 0.5))
    state = cg.minimize(problem, "corrective", tol=1e-2).state
    numbers, arrays = state.snapshot()
    numbers = {name: value for name, value in numbers.items() if name != "n_passes"}
    arrays = {name: part for name, part in arrays.items() if not name.startswith("hull.") and name != "gaps"}
    if atoms == "vertices":
        points, weights = state.model.hull.points, state.model.hull.weights
        arrays = {f"atoms.values{k}": point for k, point in enumerate(points)} | {"x": weights}
    other = cg.solvers.Corrective().init(problem, None)
    other.restore(numbers, arrays)
    np.testing.assert_allclose(other.w, state.w, atol=1e-14)
    for t in range(12):
        cg.solvers.Corrective().step(problem, other, t)
    assert other.known_gap <= 1e-9


# Hard cases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOME)
def test_singular_curvature(name):
    rng = np.random.default_rng(0)
    few = rng.standard_normal((5, 12))
    for X in (np.zeros((5, 12)), few, np.hstack([few[:, :6], few[:, :6]]), few * np.logspace(-6, 6, 12)):
        for loss in (SQUARED, LOGISTIC):
            problem = cg.Problem(X, np.array([1.0, -1.0, 1.0, 1.0, -1.0]), loss, SOME[name](12))
            result = cg.minimize(problem, "corrective", relative_tol=1e-7, max_steps=100)
            assert result.status in (cg.Status.CONVERGED, cg.Status.ROUNDING)


def test_an_oracle_that_is_wrong_ends_the_search():
    corner = np.full(12, 0.1)
    stuck = constraints.OracleSet(lambda r: corner)  # the same point for every r
    result = cg.minimize(make_problem(stuck), "corrective", tol=1e-9, max_steps=50)
    np.testing.assert_allclose(result.w, corner)
    rng = np.random.default_rng(0)
    noisy = constraints.OracleSet(lambda r: np.sign(rng.standard_normal(12)) * 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # such an oracle "proves" that w lies outside
        result = cg.minimize(make_problem(noisy), "corrective", tol=1e-12, max_steps=5, max_time=5.0)
    assert np.abs(result.w).max() <= 0.1 + 1e-12


def test_an_oracle_that_fails_for_one_gradient_ends_the_search():
    calls = []

    def oracle(r):
        calls.append(r)
        if len(calls) == 4:
            raise RuntimeError("no solution")
        return np.where(r > 0.0, -1.0, 1.0)

    fails, H, c = constraints.OracleSet(oracle, is_polytope=True), np.eye(6), np.linspace(-0.9, 0.6, 6)
    z, gap = VertexHull(6, False, False).minimise(fails, np.arange(6), c, H, np.zeros(6), 1e-9, most_calls=100)
    assert len(calls) == 4 and gap > 1e-9 and c @ z + 0.5 * z @ H @ z < 0.0 and np.abs(z).max() <= 1.0


def test_the_search_for_vertices_ends_at_its_limits():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((40, 40))
    H, c = A @ A.T, 30.0 * rng.standard_normal(40)
    cube, every = constraints.LinfBall(1.0), np.arange(40)

    def value(z):
        return c @ z + 0.5 * z @ H @ z

    z, gap = VertexHull(40, True, True).minimise(cube, every, c, H, np.zeros(40), 1e-8, most_calls=2000)
    assert gap <= 1e-8 and np.abs(z).max() <= 1.0 + 1e-12
    few, gap = VertexHull(40, True, True).minimise(cube, every, c, H, np.zeros(40), 1e-8, most_calls=3)
    assert gap > 1e-8 and value(z) < value(few) < 0.0
    late, gap = VertexHull(40, True, True).minimise(
        cube, every, c, H, np.zeros(40), 1e-8, most_calls=2000, deadline=time.perf_counter() - 1.0
    )
    assert gap > 1e-8 and not late.any()


def test_points_of_the_last_minimiser_are_the_next_start():
    hull, every = VertexHull(6, True, True), np.arange(6)
    H, c = np.eye(6), np.array([-3.0, 1.0, 0.2, 0.0, 2.0, -1.0])
    ball = constraints.L2Ball(1.0)
    z, _ = hull.minimise(ball, every, c, H, np.zeros(6), 1e-12, most_calls=200)
    np.testing.assert_allclose(z, -c / np.linalg.norm(c), atol=1e-6)
    np.testing.assert_array_equal(hull.weights @ hull.points, z)
    again, gap = hull.minimise(ball, every, c, H, z, 1e-12, most_calls=1)
    assert gap <= 1e-12
    np.testing.assert_array_equal(again, z)
    other, gap = hull.minimise(ball, every, c, H, 0.5 * z, 1e-12, most_calls=200)  # from a point between
    assert gap <= 1e-12
    np.testing.assert_allclose(other, z, atol=1e-6)


@pytest.mark.parametrize("has_origin", [False, True])
def test_the_minimiser_on_a_face_from_points_and_from_products_agree(has_origin):
    rng = np.random.default_rng(2)
    for d, m in itertools.product((3, 8), (1, 3, 6)):
        points, A = rng.standard_normal((m, d)), rng.standard_normal((d, d))
        H, c, x = A @ A.T, rng.standard_normal(d), np.full(m, 0.9 / m if has_origin else 1.0 / m)
        G = points @ H @ points.T
        by_products, by_points = x.copy(), minimise_in_span(c, H, points, x, has_origin)
        minimise_on_face(points @ c + G @ x, G, by_products, has_origin, np.inf)

        def value(weights, c=c, H=H, points=points):
            z = weights @ points
            return c @ z + 0.5 * z @ H @ z

        assert value(by_points) == pytest.approx(value(by_products), rel=1e-6, abs=1e-8)
        assert by_points.min() >= 0.0 and by_points.sum() <= 1.0 + 1e-12


def test_weights_that_reach_zero_together_do_not_become_negative():
    """Rounding may leave one of them below zero, where the others would be divided by a slope of zero."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = np.repeat((0.1 * rng.random(), 0.2 * rng.random()), (4, 2))
        g = np.repeat((1.0 + rng.random(), -0.1 * rng.random()), (4, 2))
        bend = rng.uniform(0.5, 2.0)
        best = np.where(g > 0.0, 0.0, x - g / bend)
        minimise_on_face(g, bend * np.eye(6), x, True, np.inf)
        np.testing.assert_allclose(x, best, rtol=1e-9, atol=1e-12)


def test_points_very_close_together_are_told_apart():
    """The minimiser lies between two of three points at distances of 1e-7: their products are equal up to rounding."""
    base = np.array([1.0, 1.0])
    points = base + 1e-7 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    goal = base + 1e-7 * np.array([0.5, 0.0])
    weights = minimise_in_span(-goal, np.eye(2), points, np.array([0.2, 0.2, 0.6]), has_origin=False)
    np.testing.assert_allclose((weights @ points - base) / 1e-7, [0.5, 0.0], atol=1e-4)
