"""F on some features alone, through their columns."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg

FEATURES = np.array([30, 2, 11, 5, 47])


def make(form="csr", loss=None, **settings):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((300, 50), density=0.15, format="csc" if form == "csc" else "csr", rng=rng)
    y = np.where(X @ rng.standard_normal(50) + 0.3 * rng.standard_normal(300) > 0.0, 1.0, -1.0)
    X = X.toarray() if form == "dense" else X
    return cg.Problem(X, y, loss or cg.losses.Logistic(), cg.constraints.L1Ball(50.0), **settings)


def spread(w):
    whole = np.zeros(50)
    whole[FEATURES] = w
    return whole


@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
@pytest.mark.parametrize("settings", [{}, {"intercept": True}, {"l2": 0.2}, {"offset": np.linspace(-1.0, 1.0, 300)}])
def test_value_and_slopes_are_those_of_the_problem(form, settings):
    problem, w = make(form, **settings), np.array([0.5, 0.0, -1.0, 2.0, 0.3])
    look = problem.look(spread(w))
    part = look.column_part(FEATURES)
    part.go_to(w, look.evaluation.offset)
    part.measure()
    rounding = 1e-7 if form == "dense" else 1e-14  # copies of dense columns have single precision
    assert part.value == pytest.approx(look.objective, abs=rounding)
    np.testing.assert_allclose(part.slopes, look.gradient[FEATURES], atol=rounding)


@pytest.mark.parametrize("settings", [{}, {"l2": 0.2}, {"offset": np.linspace(-1.0, 1.0, 300)}])
def test_rounded_columns_lean_on_exact_slopes(settings):
    """The change of the slopes from there is exact up to single precision of the change, and F has these slopes."""
    problem, w = make("dense", **settings), np.array([0.5, 0.0, -1.0, 2.0, 0.3])
    look = problem.look(spread(w))
    part = look.column_part(FEATURES)
    part.go_to(w, look.evaluation.offset)
    part.measure()
    part.lean(look.gradient[FEATURES])
    first, step = part.value, 1e-4 * np.array([1.0, 2.0, -1.0, 0.5, 1.0])
    np.testing.assert_array_equal(part.slopes, look.gradient[FEATURES])
    part.go_to(w, look.evaluation.offset)
    assert part.value == pytest.approx(first, abs=1e-15)
    part.go_to(w + step, look.evaluation.offset)
    part.measure()
    there = problem.look_with(spread(w + step), look.evaluation.offset, None)
    np.testing.assert_allclose(part.slopes, there.gradient[FEATURES], atol=1e-11)
    assert part.value - first == pytest.approx(there.objective - look.objective, abs=1e-11)
    part.go_to(w, look.evaluation.offset)
    assert part.approach(w - step * np.sign(step * look.gradient[FEATURES]), part.b)
    assert part.value < first
    part.go_to(w, look.evaluation.offset)
    part.measure()
    part.lean(part.slopes + 10.0)  # F is this linear function, almost
    assert part.approach(w + 0.1, part.b)
    np.testing.assert_array_equal(part.w, w + 0.1)


def test_sweeps_over_dense_columns_have_an_order_of_their_own(monkeypatch):
    """One order for all of them is the slowest one where columns have much in common; each part begins anew."""
    monkeypatch.setattr("condgrad.linalg.coded_matrix._LARGE", np.inf)  # what is stored as sparse stays so
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 100)) + 3.0 * rng.standard_normal((400, 1))
    y = np.where(X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(400) > 0.0, 1.0, -1.0)
    slopes = []
    for data in (X, X, scipy.sparse.csr_array(X)):
        problem = cg.Problem(data, y, cg.losses.Logistic(), cg.constraints.L1Ball(5.0))
        part = problem.look(np.zeros(100)).column_part(np.arange(100))
        part.go_to(np.zeros(100), 0.0)
        part.measure()
        w, *_ = part.sweep(np.full(100, 1e-3), 1.0, 0.0, 30)
        model = part.slopes + X.T @ (part._d * (X @ w))
        slopes.append(np.abs(model[w != 0.0]).max())
    assert slopes[0] == slopes[1]
    assert slopes[0] - 1e-3 < 0.6 * (slopes[2] - 1e-3)


@pytest.mark.parametrize("settings", [{}, {"intercept": True}, {"l2": 0.2}])
@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Squared()])
def test_newton_steps_lead_to_the_minimum_for_fixed_signs(settings, loss):
    problem, w = make(loss=loss, **settings), np.array([0.5, 0.0, -1.0, 2.0, 0.3])
    part = problem.look(spread(w)).column_part(FEATURES)
    price = np.array([1.0, 2.0, 1.5, 1.0, 0.5])
    normal = price * np.sign(w)
    part.go_to(w, 0.0)
    missing = 1.0 - price @ np.abs(w)
    for _ in range(30):
        part.measure()
        ahead, b = part.newton(normal, missing, 6)
        assert normal @ (ahead - part.w) == pytest.approx(missing, abs=1e-8)
        part.go_to(ahead, b)  # signs may change: nothing here depends on them
        missing = 0.0
        normal = np.where(part.w != 0.0, normal, 0.0)
    part.measure()
    free = part.slopes[normal != 0.0] / normal[normal != 0.0]
    np.testing.assert_allclose(free, free[0], atol=1e-7)
    assert ahead[1] == 0.0
    if settings.get("intercept"):
        assert abs(part.b - problem.best_offset(spread(part.w))) <= 1e-6


def test_a_step_on_which_the_model_does_not_hold_is_shortened():
    X, y = scipy.sparse.csr_array(np.ones((4, 1))), np.array([1.0, -1.0, 1.0, -1.0])
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(10.0))
    part = problem.look(np.array([-6.0])).column_part(np.array([0]))
    part.go_to(np.array([-6.0]), 0.0)
    part.measure()
    ahead, b = part.newton(np.zeros(1), 0.0, 5)
    assert ahead[0] > 100.0  # the loss is almost straight there
    assert part.approach(ahead, b)
    assert -6.0 < part.w[0] < 6.0 and part.value == pytest.approx(problem.objective(part.w), abs=1e-14)


def test_a_step_that_leads_up_is_not_made():
    problem = make()
    w = np.array([0.5, 0.0, -1.0, 2.0, 0.3])
    part = problem.look(spread(w)).column_part(FEATURES)
    part.go_to(w, 0.0)
    value = part.value
    part._d = np.zeros(300)  # a model without curvature, which holds nowhere
    assert not part.approach(w + 1e6, 0.0)
    assert part.value == value
    np.testing.assert_array_equal(part.w, w)


def test_columns_are_sparse_or_dense():
    assert make("dense").has_dense_columns and not make("dense").has_sparse_columns
    for form in ("csr", "csc"):
        assert make(form).has_sparse_columns and not make(form).has_dense_columns


@pytest.mark.parametrize("size", [1e-37, 1e37])
def test_columns_that_single_precision_can_hardly_hold_are_left_to_models(size):
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    assert not cg.Problem(size * X, y, cg.losses.SquaredHinge(), cg.constraints.L1Ball(1.0 / size)).has_dense_columns


def test_one_newton_step_minimises_a_quadratic_with_its_intercept():
    problem, w = make(loss=cg.losses.Squared(), intercept=True), np.array([0.5, 0.2, -1.0, 2.0, 0.3])
    part = problem.look(spread(w)).column_part(FEATURES)
    part.go_to(w, 3.0)  # far from the best intercept
    part.measure()
    part.go_to(*part.newton(np.zeros(5), 0.0, 6))
    part.measure()
    np.testing.assert_allclose(part.slopes, 0.0, atol=1e-8)
    assert part.b == pytest.approx(problem.best_offset(spread(part.w)), abs=1e-8)
