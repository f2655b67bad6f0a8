"""Paths of smooth losses over l1 balls: every point certified, few passes over the data, right on awkward data."""

import signal

import numpy as np
import pytest
import scipy.sparse
from certificates import measured
from covering import product_by_pairs
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from tables import FOUR_FORMS

import condgrad as cg
from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.matrix import Matrix
from condgrad.paths import smooth, smooth_course, smooth_engine
from condgrad.paths.columns import columns_of
from condgrad.paths.least_squares import Goal
from condgrad.paths.oracle import _largest_sums, lazy_bounds
from condgrad.paths.points import InterruptedPathError
from condgrad.paths.smooth import SmoothPath, solutions
from condgrad.paths.smooth_curvature import Curvature
from condgrad.paths.smooth_engine import SmoothEngine
from condgrad.paths.smooth_history import new_history
from condgrad.paths.smooth_point import foresee
from condgrad.paths.working_set import Atoms

LOSSES = {
    "logistic": cg.losses.Logistic(),
    "huber": cg.losses.Huber(0.7),
    "pseudo-huber": cg.losses.PseudoHuber(1.0),
    "poisson": cg.losses.Poisson(),
    "squared-hinge": cg.losses.SquaredHinge(),
    "squared": cg.losses.Squared(),
}


def data(loss, n=120, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(n)  # correlated features
    p = X[:, :6] @ np.array([1.0, -1.0, 0.8, -0.6, 0.5, 0.4]) + 0.3 * rng.standard_normal(n)
    if loss in ("logistic", "squared-hinge"):
        y = np.where(p + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(0.5 * p, -3.0, 3.0))).astype(float)
    else:
        y = p + 2.0 * (rng.random(n) < 0.05)
    return X, y, rng.random(n) * (rng.random(n) < 0.95)


def check(problem, radii, coefs, info, tol):
    """Judge every point by a look of the problem itself."""
    for k, radius in enumerate(radii):
        w = coefs[:, [k]].toarray().ravel()
        assert np.abs(w).sum() <= radius * (1.0 + 1e-12)
        found = measured(problem.over(cg.constraints.L1Ball(radius))).evaluate(w)
        assert found.gap <= info.gap[k] + info.rounding[k] + found.rounding
        assert info.rounding[k] >= 0.3 * found.rounding
        assert info.gap[k] + info.rounding[k] <= tol * problem.loss_scale()
        assert info.objective[k] == pytest.approx(found.objective, abs=info.rounding[k] + 1e-14)
        assert info.intercept[k] == pytest.approx(found.intercept, abs=1e-7)


@product_by_pairs(("loss", "intercept", "tol"), LOSSES, [False, True], [1e-3, 1e-9])
def test_every_point_is_certified(loss, intercept, tol):
    X, y, weight = data(loss)
    settings = {"loss": LOSSES[loss], "fit_intercept": intercept, "sample_weight": weight, "tol": tol}
    radii, coefs, info = cg.radius_path(X, y, n_radii=20, **settings)
    assert info.status is cg.Status.CONVERGED and radii.size == 20
    ball = cg.constraints.L1Ball(1.0)
    problem = cg.Problem(X, y, LOSSES[loss], ball, sample_weight=weight, intercept=intercept)
    check(problem, radii, coefs, info, tol)
    exact = cg.minimize(problem.over(cg.constraints.L1Ball(radii[12])), "pairwise", tol=1e-9 * problem.loss_scale())
    assert info.objective[12] <= exact.objective + tol * problem.loss_scale() + 1e-12


@pytest.mark.parametrize("form", FOUR_FORMS)
def test_forms_of_the_data_agree(form):
    X, y, _ = data("logistic")
    grid = [0.5, 2.0, 6.0]
    _, expected, _ = cg.radius_path(X, y, radii=grid, tol=1e-10, fit_intercept=True)
    _, coefs, info = cg.radius_path(FOUR_FORMS[form](X), y, radii=grid, tol=1e-10, fit_intercept=True)
    assert info.status is cg.Status.CONVERGED
    np.testing.assert_allclose(coefs.toarray(), expected.toarray(), atol=1e-5)


def test_the_default_grid_ends_where_the_multiplier_is_that_share():
    X, y, _ = data("logistic")
    _, _, info = cg.radius_path(X, y, n_radii=10, eps=0.05, tol=1e-6)
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    largest = np.abs(problem.gradient(np.zeros(40))).max()
    assert info.alpha[-1] == pytest.approx(0.05 * largest, rel=0.02)


def test_sums_of_the_largest_changes_are_bounded_from_above():
    rng = np.random.default_rng(0)
    for changes in (rng.random(1000) ** 8, np.zeros(1000), np.full(1000, 0.3), 10.0 ** rng.uniform(-320.0, 5.0, 1000)):
        most = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000])
        exact = np.cumsum(np.sort(changes)[::-1])[most - 1]
        found = _largest_sums(changes, most)
        assert (found >= exact * (1.0 - 1e-12)).all() and (found <= exact * 1.13 + 1e-300).all()


@pytest.mark.parametrize("form", FOUR_FORMS)
def test_the_curvature_of_features_is_that_of_a_look(form):
    X, y, weight = data("logistic")
    ball = cg.constraints.L1Ball(1.0)
    problem = cg.Problem(FOUR_FORMS[form](X), y, LOSSES["logistic"], ball, sample_weight=weight, intercept=True)
    features, w = np.array([3, 0, 7, 20]), np.linspace(-0.1, 0.1, 40)
    look = problem.look(w)
    d = look.found.d.array
    scale = np.array([1.0, 0.5, 2.0, 1.0])
    expected = look.curvature([cg.constraints.Atom(j, c) for j, c in zip(features, scale, strict=True)])
    np.testing.assert_allclose(problem.feature_curvature(features, scale, d), expected, atol=1e-14)
    grown = problem.feature_curvature(features, scale, d, first=2)
    np.testing.assert_allclose(grown[2:], expected[2:], atol=1e-14)
    rows = np.arange(0, 120, 2)
    some, whole = problem.feature_curvature(features, scale, d[rows], rows), np.where(np.arange(120) % 2, 0.0, d)
    np.testing.assert_allclose(some, problem.feature_curvature(features, scale, whole), atol=1e-14)


def test_curvatures_are_in_single_precision_until_a_step_with_them_gains_too_little():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 150))
    problem = cg.Problem(X, np.where(X[:, 0] > 0.0, 1.0, -1.0), LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    engine = smooth_engine.SmoothEngine(problem)
    curvature, d = engine.curvature, problem.samples.curvatures(X[:, 0], 0.0)
    atoms = Atoms(engine.columns, np.arange(150))
    exact, found = problem.feature_curvature(atoms.features, np.ones(150), d), np.zeros((150, 150))
    for was_fresh in (False, True):
        curvature.take(d, 150, 1.0, was_fresh=was_fresh)
        curvature.fill(found, atoms, atoms.features, 0)
        np.testing.assert_allclose(found, exact, atol=1e-5 * exact.max())
        assert np.array_equal(found, exact) == was_fresh


def test_few_columns_are_read():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(400, 5000, 0.01, format="csc", random_state=0)
    y = np.where(X[:, :20] @ rng.standard_normal(20) + 0.1 * rng.standard_normal(400) > 0.0, 1.0, -1.0)
    _, _, info = cg.radius_path(X, y, n_radii=100, tol=1e-3)
    assert info.status is cg.Status.CONVERGED
    assert info.passes <= 40.0


def test_smaller_radii_after_larger_ones_and_equal_features():
    X, y, _ = data("logistic")
    X = np.column_stack([X, X[:, :10], np.zeros(X.shape[0]), np.ones(X.shape[0])])
    radii = [4.0, 0.0, 0.5, 0.5, 100.0, 2.0]
    _, coefs, info = cg.radius_path(X, y, radii=radii, tol=1e-7, fit_intercept=True)
    assert info.status is cg.Status.CONVERGED
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0), intercept=True)
    keep = [k for k, radius in enumerate(radii) if radius > 0.0]
    parts = {name: getattr(info, name)[keep] for name in ("gap", "rounding", "objective", "intercept")}
    check(problem, np.array(radii)[keep], coefs[:, keep], info._replace(**parts), 1e-7)
    assert coefs[:, [1]].nnz == 0


def test_nothing_to_learn():
    X = np.zeros((10, 3))
    y = np.where(np.arange(10) % 2, 1.0, -1.0)
    _, coefs, info = cg.radius_path(X, y, radii=[1.0, 2.0], tol=1e-6)
    assert info.status is cg.Status.CONVERGED and coefs.nnz == 0


def test_a_working_set_too_large_is_left_to_minimize(monkeypatch):
    monkeypatch.setattr(smooth_engine, "_MOST_ATOMS", 8)
    X, y, _ = data("logistic")
    radii, coefs, info = cg.radius_path(X, y, n_radii=12, tol=1e-6)
    assert info.status is cg.Status.CONVERGED
    check(cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0)), radii, coefs, info, 1e-6)


def test_penalised_points_are_certified():
    X, y, _ = data("logistic")
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    with Interrupts() as interrupts:
        engine = SmoothPath(problem, cg.constraints.L1Ball, tol=1e-6, interrupts=interrupts).engine
        alpha = 0.1 * engine.largest
        rough, fine = (engine.solve(Goal(alpha, is_penalised=True), tol) for tol in (1e-2, 1e-9))
    values = [point.objective + alpha * point.norm for point in (rough, fine)]
    assert fine.certified_gap <= 1e-9 * engine.scale
    assert -1e-12 <= values[0] - values[1] <= rough.certified_gap


def test_ctrl_c_is_heard_inside_a_point():
    X, y, _ = data("logistic")
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    with Interrupts() as interrupts:
        path = SmoothPath(problem, cg.constraints.L1Ball, tol=1e-6, interrupts=interrupts)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(InterruptedPathError):
            path.advance(np.array([1.0]))


def test_who_is_served():
    X, y, _ = data("logistic")
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    ball = cg.constraints.L1Ball
    assert smooth.serves(problem, ball, "auto") and not smooth.serves(problem, ball, "corrective")
    assert not smooth.serves(problem, cg.constraints.L2Ball, "auto")
    assert smooth.serves(problem, lambda radius: ball(radius**2), "auto")
    assert smooth.serves(problem, cg.constraints.NonnegativeL1Ball, "auto")
    assert smooth.serves(problem, lambda radius: cg.constraints.WeightedL1Ball(radius, np.arange(1, 41)), "auto")
    assert not smooth.serves(problem, cg.constraints.Simplex, "auto")
    assert not smooth.serves(cg.Problem(X, y, cg.losses.Welsch(), ball(1.0)), ball, "auto")


def test_a_function_of_the_radius_makes_the_balls_that_it_says():
    X, y, _ = data("logistic")
    _, coefs, info = cg.radius_path(X, y, constraint=lambda radius: cg.constraints.L1Ball(radius**2), radii=[2.0])
    assert np.abs(coefs.toarray()).sum() == pytest.approx(4.0)
    assert info.status is cg.Status.CONVERGED


def test_a_limit_of_passes_is_kept_and_said():
    X, y, _ = data("logistic")
    _, _, info = cg.radius_path(X, y, radii=[5.0], tol=1e-9, max_epochs=0.1)
    assert info.status is cg.Status.MAX_EPOCHS
    assert info.gap[0] > 1e-9 * np.log(2.0) and info.n_looks <= 3
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(5.0))
    assert np.isfinite(info.gap[0]) and info.gap[0] <= problem.gap(np.zeros(40)) * 2.0


def test_the_grid_of_a_loss_that_is_negative():
    X, y, _ = data("poisson")
    y = y + 20.0  # with the best intercept the loss of counts m is m - m log m
    radii, _, info = cg.radius_path(X, y, loss="poisson", n_radii=8, eps=0.1, tol=1e-6, fit_intercept=True)
    assert info.objective[0] < 0.0 and radii[0] > 0.0 and info.status is cg.Status.CONVERGED
    problem = cg.Problem(X, y, LOSSES["poisson"], cg.constraints.L1Ball(1.0), intercept=True)
    assert info.alpha[-1] == pytest.approx(0.1 * np.abs(problem.gradient(np.zeros(40))).max(), rel=0.05)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", ["csc", "F"])
def test_large_data_take_the_same_steps_on_all_cores(form, intercept, monkeypatch):
    X, y, weight = data("logistic", n=400)
    settings = {"radii": [0.5, 1.0, 1.5, 4.0], "tol": 1e-8, "fit_intercept": intercept, "sample_weight": weight}
    X = FOUR_FORMS[form](X)
    _, alone, _ = cg.radius_path(X, y, **settings)
    monkeypatch.setattr("condgrad.linalg.threads.cut", lambda n, *given: np.unique([0, n // 3, n // 2, max(n, 1)]))
    radii, coefs, info = cg.radius_path(X, y, **settings)
    assert info.status is cg.Status.CONVERGED
    np.testing.assert_allclose(coefs.toarray(), alone.toarray(), atol=1e-4)
    ball = cg.constraints.L1Ball(1.0)
    problem = cg.Problem(X, y, LOSSES["logistic"], ball, sample_weight=weight, intercept=intercept)
    check(problem, radii, coefs, info, 1e-8)


def test_the_features_of_every_point_are_in_ascending_order():
    """They enter the working set by their correlations, so the matrix of coefficients has to sort them."""
    X, y, _ = data("logistic")
    _, coefs, info = cg.radius_path(X, y, n_radii=10)
    assert info.n_nonzero.max() > 5
    for first, last in zip(coefs.indptr[:-1], coefs.indptr[1:], strict=True):
        assert (np.diff(coefs.indices[first:last]) > 0).all()


@pytest.mark.parametrize("is_penalised", [False, True])
def test_foreseeing_how_the_curvature_changes_saves_steps(is_penalised):
    X, y, _ = data("logistic", n=300)
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    targets = np.geomspace(0.05, 0.01, 30) if is_penalised else np.linspace(1.0, 2.0, 30)

    def steps(is_blind):
        engine = smooth_engine.SmoothEngine(problem)
        for target in targets:
            if is_blind:
                engine.history.places[:] = np.nan
            engine.solve(Goal(float(target), is_penalised), 1e-6)
        return engine.n_evaluated

    assert steps(is_blind=False) < 0.9 * steps(is_blind=True)


def test_what_a_model_misses_grows_with_the_distance_from_its_curvature():
    history = new_history()
    history.take_up(False, 1.0)
    assert history.weight(1.0) == 0.0  # nothing is known yet
    history.append(1.0)
    history.append(2.0)
    assert history.weight(3.0) == pytest.approx(2.5 / 1.5)  # the middles of both ways, from 0
    assert history.weight(2.5) == pytest.approx(2.25 / 1.5 * 0.5)
    assert history.growth(2.5) == pytest.approx(2.25 / 1.5)
    history.renew(2.0)
    assert history.weight(3.0) == history.growth(3.0) == pytest.approx(-1.0)
    assert history.weight(8.0) == history.weight(1.5) == 0.0  # too far away, and back


def test_slow_steps_go_on_where_they_are_less_work_than_a_fresh_curvature():
    course = np.zeros(smooth_course.N_COURSE)
    decide = smooth_course.Course(course, np.zeros(7), np.zeros(8), None)
    course[smooth_course.NEEDED], course[smooth_course.RENEWAL] = 1.0, 21.0
    assert decide.is_worth_steps(4.0, 8.0, 10.0)  # two more steps that halve the gap
    assert not decide.is_worth_steps(4.0, 8.0, 11.0)
    assert not decide.is_worth_steps(4.0, 5.0, 1.0)  # steps that gain next to nothing say little about others
    course[smooth_course.IS_FRESH] = 1.0
    assert not decide.is_worth_steps(4.0, 8.0, 10.0)


@pytest.mark.parametrize("growth", [-1.0, 0.0, 0.5, 2.0])
def test_a_curvature_that_is_a_multiple_of_the_models_leaves_nothing_to_foresee(growth):
    rng = np.random.default_rng(6)
    A = rng.standard_normal((9, 6))
    G, before, x = A.T @ A, rng.standard_normal(6), rng.standard_normal(6)
    correlation_before, out = rng.standard_normal(6), np.empty(6)
    correlation = correlation_before - 0.8 * G @ (x - before)
    copies = before.copy(), correlation_before.copy()
    found = foresee(G, x, correlation, *copies, 1.5, growth, out, 6)
    assert found == pytest.approx(1.0 - 0.2 * growth)
    missed = 0.0 if growth else 1.5 * 0.2 * G @ (x - before)
    np.testing.assert_allclose(out, correlation + missed, atol=1e-12)
    np.testing.assert_allclose(copies, [x, correlation])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", FOUR_FORMS)
def test_curvature_by_columns_is_that_by_rows(form, intercept):
    X, y, weight = data("logistic")
    problem = cg.Problem(
        FOUR_FORMS[form](X),
        y,
        LOSSES["logistic"],
        cg.constraints.L1Ball(1.0),
        intercept=intercept,
        sample_weight=weight,
    )
    engine = smooth_engine.SmoothEngine(problem)
    curvature = Curvature(problem, engine.data, problem.samples.curvatures(np.zeros(y.size), 0.0))
    curvature.rows = np.arange(1, y.size, 2)
    curvature.h = curvature.h[curvature.rows]
    atoms = Atoms(engine.columns, np.array([3, 0, 17, 8, 5]))
    whole, one, other = np.zeros((8, 8)), np.zeros((8, 8)), np.zeros((8, 8))
    curvature.fill(whole, atoms, atoms.features, 0)
    one[:3, :3] = other[:3, :3] = whole[:3, :3]
    curvature.fill(one, atoms, atoms.features, 3)
    curvature._fill_by_columns(other, atoms, 3)
    np.testing.assert_allclose(one, whole, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(other, whole, rtol=1e-11, atol=1e-15)


def test_bounds_survive_a_residual_that_turns_by_a_right_angle():
    """The factor of all keys becomes zero then; what is unknown must stay unknown."""
    X = np.eye(4)
    columns = columns_of(Matrix(X).columns, 4, 16, np.full(4, 0.25), False, False)
    bounds = lazy_bounds(columns, np.array([1.0, 0.0, 0.0, 0.0]))
    bounds.key[0] = -np.inf
    R = np.array([0.0, 0.0, 3.0, 0.0])
    bounds.move(columns.weight, R)
    bounds.scan(columns, 0.25 * R, 0.0, 0.1, 0.1)
    assert bounds.n_found() == 1 and bounds.found[0] == 2 and bounds.largest() == pytest.approx(0.75)
    bounds.set_known(np.array([0]), np.array([0.0]))
    assert bounds.key[0] < np.inf


@pytest.mark.parametrize("loss", [cg.losses.Huber(0.03), cg.losses.Pinball(0.5, 0.05)], ids=["huber", "pinball"])
def test_losses_that_are_nearly_flat(loss):
    """Most samples have no curvature: models need some, or the points are left to minimize."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    y = X[:, :5] @ np.ones(5) + rng.standard_t(2, 100)
    radii, coefs, info = cg.radius_path(X, y, loss=loss, radii=[0.5, 4.0, 20.0], tol=1e-4)
    assert info.status is cg.Status.CONVERGED
    check(cg.Problem(X, y, loss, cg.constraints.L1Ball(1.0)), radii, coefs, info, 1e-4)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_search_that_is_cut_short_is_certified_where_it_ends(most, monkeypatch):
    X, y, _ = data("logistic")
    problem = cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    engine = smooth_engine.SmoothEngine(problem)
    engine.solve(Goal(1.0, is_penalised=False), 1e-8)
    monkeypatch.setattr(smooth_engine, "_MOST_STEPS", most)
    for radius in (1.3, 1.6, 3.0):
        point = engine.solve(Goal(radius, is_penalised=False), 1e-10)
        w = np.zeros(40)
        w[point.features] = point.x
        found = problem.over(cg.constraints.L1Ball(radius)).evaluate(w)
        assert found.gap <= point.certified_gap + found.rounding


@pytest.mark.parametrize("form", ["F", "csc"])
def test_atoms_that_were_dropped_are_found_again(form, monkeypatch):
    """Radii up and down with a working set that keeps no idle atoms: what left it must be scanned like the rest."""
    monkeypatch.setattr(smooth_engine, "_IDLE", 0)
    X, y, _ = data("logistic", d=60)
    problem = cg.Problem(FOUR_FORMS[form](X), y, LOSSES["logistic"], cg.constraints.L1Ball(1.0))
    engine, sizes = smooth_engine.SmoothEngine(problem), []
    for radius in (8.0, 0.3, 9.0, 0.2, 6.0, 20.0):
        point = engine.solve(Goal(radius, is_penalised=False), 1e-8)
        sizes.append(engine.n_atoms)
        w = np.zeros(60)
        w[point.features] = point.x
        found = problem.over(cg.constraints.L1Ball(radius)).evaluate(w)
        assert found.gap <= point.certified_gap + found.rounding and point.certified_gap <= 1e-8 * engine.scale
    assert sizes[1] < sizes[0] and sizes[3] < sizes[2]  # atoms were dropped


def test_models_of_flat_losses_get_some_curvature():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    y = X[:, :5] @ np.ones(5) + rng.standard_t(2, 100)
    engine = smooth_engine.SmoothEngine(cg.Problem(X, y, cg.losses.Huber(0.03), cg.constraints.L1Ball(1.0)))
    point = engine.solve(Goal(0.5, is_penalised=False), 1e-4)
    assert point.certified_gap <= 1e-3 * engine.scale  # without it the models end at thirty times as much


def test_bounds_follow_the_residual_before_features_leave_a_whole_working_set(monkeypatch):
    """While all features are in the working set no scan moves the bounds: what leaves it is known at its point."""
    monkeypatch.setattr(smooth_engine, "_IDLE", 0)
    X, y, _ = data("logistic", d=20)
    engine = smooth_engine.SmoothEngine(cg.Problem(X, y, LOSSES["logistic"], cg.constraints.L1Ball(1.0)))
    engine.solve(Goal(0.05, False), 1e-6)
    assert engine.n_atoms < 20  # all were in, and most have left
    np.testing.assert_array_equal(engine.bounds.R, engine.point.R)


def test_the_radii_of_a_fold_are_one_search(monkeypatch):
    """Cross-validation asks for solutions in order; on small data they come from the engine many at a time."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X), np.where(y > 0, 1.0, -1.0)
    radii, tol = np.linspace(0.0, 20.0, 41), 1e-5
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0), intercept=True)
    searches, plain = [], SmoothEngine.advance

    def counted(self, targets, *args):
        searches.append(targets.size)
        return plain(self, targets, *args)

    monkeypatch.setattr(SmoothEngine, "advance", counted)
    found = list(solutions(problem, cg.constraints.L1Ball, "auto", radii.tolist(), tol=tol))
    assert len(found) == radii.size and len(searches) <= 5
    for radius, point in zip(radii[1:], found[1:], strict=True):
        over = problem.over(cg.constraints.L1Ball(float(radius)))
        look = over.look(point.w)
        assert point.status is cg.Status.CONVERGED and np.abs(point.w).sum() <= radius * (1.0 + 1e-9)
        assert look.gap <= 1.001 * tol * problem.loss_scale()
        assert point.intercept == pytest.approx(over.best_intercept(point.w), rel=1e-5, abs=1e-7)
    assert not found[0].w.any()


def test_only_the_points_that_miss_the_tolerance_say_so(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X), np.where(y > 0, 1.0, -1.0)
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
    plain = SmoothPath.advance

    def spoiled(self, targets):
        points = [*plain(self, targets)]
        return [points[0], *(point._replace(gap=1.0) for point in points[1:3]), *points[3:]]

    monkeypatch.setattr(SmoothPath, "advance", spoiled)
    found = list(solutions(problem, cg.constraints.L1Ball, "auto", [1.0, 2.0, 3.0, 4.0], tol=1e-3))
    good = [point.status is cg.Status.CONVERGED for point in found]
    assert good == [True, False, False, True]
