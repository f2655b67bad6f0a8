"""radius_path with penalties, and over weighted and non-negative l1 balls: every point certified in both senses."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from certificates import measured
from covering import product_by_pairs
from test_smooth_path import LOSSES, data

import condgrad as cg
from condgrad import constraints
from condgrad.linalg.interrupts import Interrupts
from condgrad.losses import loss as make_loss
from condgrad.paths import penalised, smooth, smooth_engine
from condgrad.paths.gauges import gauge_of
from condgrad.paths.least_squares import Goal
from condgrad.paths.minimized import Walk
from condgrad.paths.smooth import SmoothPath
from condgrad.paths.smooth_engine import SmoothEngine
from condgrad.testing import check_loss

WEIGHTS = np.random.default_rng(5).uniform(0.3, 3.0, 40)
SETS = {
    "l1": constraints.L1Ball,
    "nonnegative": constraints.NonnegativeL1Ball,
    "weighted": lambda radius: constraints.WeightedL1Ball(radius, WEIGHTS),
}
FORMS = {
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_matrix,
    "float32": lambda X: X.astype(np.float32),
}


@pytest.fixture
def no_minimize(monkeypatch):
    """Let no point be left to minimize."""

    def refuse(*args, **kwargs):
        raise AssertionError("minimize was called")

    monkeypatch.setattr("condgrad.paths.allowed_sets.minimize", refuse)


def column(coefs, k):
    return coefs[:, [k]].toarray().ravel()


def check(problem, make, coefs, info, tol):
    """Judge every point by a look of the problem over the ball of its radius."""
    for k in np.flatnonzero(info.radius > 0.0):
        w, ball = column(coefs, k), make(info.radius[k])
        assert ball.violation(w) <= 1e-12 * max(1.0, info.radius[k])
        found = measured(problem.over(ball)).evaluate(w)
        assert found.gap <= info.gap[k] + info.rounding[k] + found.rounding
        assert info.rounding[k] >= 0.3 * found.rounding
        assert info.gap[k] + info.rounding[k] <= tol * problem.loss_scale()
        assert info.objective[k] == pytest.approx(found.objective, abs=info.rounding[k] + 1e-14)
        assert info.intercept[k] == pytest.approx(found.intercept, abs=1e-7)


@product_by_pairs(("loss", "name", "form", "intercept"), LOSSES, SETS, FORMS, [False, True])
def test_points_are_those_of_minimize(loss, name, form, intercept, no_minimize):
    X, y, weight = data(loss)
    X, make = FORMS[form](X), SETS[name]
    settings = {"loss": LOSSES[loss], "constraint": make, "fit_intercept": intercept, "sample_weight": weight}
    problem = cg.Problem(X, y, LOSSES[loss], make(1.0), sample_weight=weight, intercept=intercept)
    radii, coefs, info = cg.radius_path(X, y, n_radii=5, eps=0.05, tol=1e-8, **settings)
    assert info.status is cg.Status.CONVERGED
    check(problem, make, coefs, info, 1e-8)
    for k, radius in enumerate(radii):
        exact = cg.minimize(problem.over(make(radius)), "corrective", tol=1e-9 * problem.loss_scale())
        assert info.objective[k] == pytest.approx(exact.objective, abs=1.2e-8 * problem.loss_scale())
    r = problem.gradient(column(coefs, 3))
    assert info.alpha[3] == pytest.approx(-constraints.best_vertex(make(1.0), r).to_dense(40) @ r)


@product_by_pairs(("loss", "name", "form", "intercept"), LOSSES, SETS, FORMS, [False, True])
def test_penalties_have_the_solutions_of_their_radii(loss, name, form, intercept, no_minimize):
    X, y, weight = data(loss)
    X, make, tol = FORMS[form](X), SETS[name], 1e-6
    settings = {"loss": LOSSES[loss], "constraint": make, "fit_intercept": intercept, "sample_weight": weight}
    problem = cg.Problem(X, y, LOSSES[loss], make(1.0), sample_weight=weight, intercept=intercept)
    radii, _, exact = cg.radius_path(X, y, radii=[2.0, 0.2, 0.7], tol=1e-9, **settings)
    radii_of_alphas, coefs, info = cg.radius_path(X, y, alphas=exact.alpha, tol=tol, **settings)
    assert info.status is cg.Status.CONVERGED
    np.testing.assert_array_equal(info.alpha, exact.alpha)
    np.testing.assert_array_equal(info.radius, radii_of_alphas)
    check(problem, make, coefs, info, tol)
    norms = [gauge_of(make(1.0)).norm(column(coefs, k)) for k in range(3)]
    np.testing.assert_allclose(info.radius, norms, rtol=1e-12)
    excess = info.objective + info.alpha * info.radius - (exact.objective + exact.alpha * radii)
    assert (excess <= info.gap + info.rounding + 1e-14).all()
    assert (excess >= -2e-9 * problem.loss_scale()).all()


def test_steps_do_not_lead_in_circles(no_minimize):
    """A step to a smaller gap made F larger here, and the next one F smaller and the gap larger, 300 times."""
    X, y, weight = data("huber")
    settings = {"loss": LOSSES["huber"], "constraint": SETS["nonnegative"], "sample_weight": weight}
    problem = cg.Problem(X, y, LOSSES["huber"], SETS["nonnegative"](1.0), sample_weight=weight)
    for alpha in (0.1350, 0.13561525, 0.1362):
        _, _, info = cg.radius_path(X, y, alphas=[alpha], fit_intercept=False, tol=1e-6, **settings)
        assert info.status is cg.Status.CONVERGED
        engine = SmoothEngine(problem)
        engine.solve(Goal(alpha, is_penalised=True), 1e-6)
        assert engine.n_evaluated < 40


def test_a_penalty_that_is_too_large_gives_zero():
    X, y, _ = data("logistic")
    largest = np.abs(cg.Problem(X, y, LOSSES["logistic"], SETS["l1"](1.0)).gradient(np.zeros(40))).max()
    _, coefs, info = cg.radius_path(X, y, alphas=[0.9 * largest, largest, 5.0])
    assert info.status is cg.Status.CONVERGED and (np.diff(coefs.indptr) > 0).tolist() == [True, False, False]
    assert info.radius[1:].tolist() == [0.0, 0.0]
    assert (info.gap[1:] <= info.rounding[1:]).all()  # `largest` is itself rounded


def test_no_feature_has_the_right_sign():
    X = np.random.default_rng(0).random((30, 4))
    for given in ({"radii": [1.0, 2.0]}, {"alphas": [0.1]}, {"n_radii": 3}):
        settings = {"loss": "squared", "constraint": "nonnegative-l1", **given}
        _, coefs, info = cg.radius_path(X, -X.sum(axis=1), **settings)
        assert info.status is cg.Status.CONVERGED and coefs.nnz == 0


@pytest.mark.parametrize("name", SETS)
def test_atoms_come_and_go(name, monkeypatch, no_minimize):
    """Radii up and down with a working set that keeps no idle atoms, and features that are there twice."""
    monkeypatch.setattr(smooth_engine, "_IDLE", 0)
    X, y, _ = data("logistic", d=20)
    X, make = np.asfortranarray(np.column_stack([X, X])), SETS[name]
    problem = cg.Problem(X, y, LOSSES["logistic"], make(1.0))
    with Interrupts() as interrupts:
        path = SmoothPath(problem, make, tol=1e-8, interrupts=interrupts)
        for radius in (8.0, 0.3, 9.0, 0.2, 6.0, 20.0):
            (point,) = path.advance(np.array([radius]))
            w = np.zeros(40)
            w[point.features] = point.w
            found = problem.over(make(radius)).evaluate(w)
            assert make(radius).violation(w) <= 1e-12 * radius
            assert found.gap <= point.certified_gap + found.rounding and point.certified_gap <= 1e-8 * path.scale


@pytest.mark.parametrize("name", SETS)
def test_what_the_engine_cannot_do_is_left_to_minimize(name, monkeypatch):
    monkeypatch.setattr(smooth_engine, "_MOST_ATOMS", 4)
    X, y, _ = data("logistic", d=12)
    weights = WEIGHTS[:12]
    make = SETS[name] if name != "weighted" else lambda radius: constraints.WeightedL1Ball(radius, weights)
    problem = cg.Problem(X, y, LOSSES["logistic"], make(1.0), intercept=True)
    settings = {"constraint": make, "fit_intercept": True}
    radii, _, exact = cg.radius_path(X, y, radii=[0.1, 1.0, 4.0], tol=1e-8, **settings)
    _, coefs, info = cg.radius_path(X, y, alphas=exact.alpha, tol=1e-6, **settings)
    assert info.status is exact.status is cg.Status.CONVERGED
    check(problem, make, coefs, info, 1e-6)
    np.testing.assert_allclose(info.radius, radii, rtol=0.02)


def test_a_search_for_the_radius_of_a_penalty_ends(monkeypatch):
    monkeypatch.setattr(smooth_engine, "_MOST_ATOMS", 4)
    monkeypatch.setattr(penalised, "_MOST_SOLVES", 2)
    X, y, _ = data("logistic", d=12)
    _, coefs, info = cg.radius_path(X, y, alphas=[1e-3], tol=1e-9)
    assert info.status is not cg.Status.CONVERGED
    found = cg.Problem(X, y, LOSSES["logistic"], SETS["l1"](info.radius[0])).evaluate(column(coefs, 0))
    assert found.gap <= info.gap[0] + info.rounding[0] + found.rounding


def test_a_function_may_make_other_balls_than_it_says():
    X, y, _ = data("logistic")

    def make(radius):
        return constraints.WeightedL1Ball(2.0 * radius, WEIGHTS + (radius > 1.5))

    radii, coefs, info = cg.radius_path(X, y, constraint=make, radii=[0.5, 2.0, 1.0, 3.0], tol=1e-7)
    assert info.status is cg.Status.CONVERGED
    problem = cg.Problem(X, y, LOSSES["logistic"], make(1.0))
    for k, radius in enumerate(radii):
        w = column(coefs, k)
        found = problem.over(make(radius)).evaluate(w)
        assert make(radius).violation(w) <= 1e-12
        assert found.gap <= info.gap[k] + info.rounding[k] + found.rounding
    r = problem.gradient(column(coefs, 0))
    assert info.alpha[0] == pytest.approx(-constraints.best_vertex(make(1.0), r).to_dense(40) @ r)
    _, _, info = cg.radius_path(X, y, constraint=lambda radius: constraints.L1Ball(2.0 * radius), n_radii=2, eps=0.1)
    assert info.alpha[1] == pytest.approx(0.2 * np.abs(problem.gradient(np.zeros(40))).max(), rel=0.03)


def test_the_largest_radius_over_other_balls():
    X, y, _ = data("logistic")
    for make in SETS.values():
        problem = cg.Problem(X, y, LOSSES["logistic"], make(1.0))
        radius = smooth.largest_radius(problem, make, 0.05)
        w = cg.minimize(problem.over(make(radius)), tol=1e-9).w
        at_zero, there = (
            -constraints.best_vertex(make(1.0), problem.gradient(v)).to_dense(40) @ problem.gradient(v)
            for v in (np.zeros(40), w)
        )
        assert there == pytest.approx(0.05 * at_zero, rel=0.02)


def test_nearly_flat_losses_have_penalised_points():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    y, loss = X[:, :5] @ np.ones(5) + rng.standard_t(2, 100), cg.losses.Pinball(0.5, 0.05)
    _, coefs, info = cg.radius_path(X, y, loss=loss, alphas=[0.1, 0.01], tol=1e-4)
    assert info.status is cg.Status.CONVERGED
    check(cg.Problem(X, y, loss, SETS["l1"](1.0)), SETS["l1"], coefs, info, 1e-4)


def test_losses_with_kinks_take_few_steps():
    """The curvature that models of such losses get where there is none must not stay when steps are good."""
    X, y, _ = data("squared-hinge")
    engine = smooth_engine.SmoothEngine(cg.Problem(X, y, LOSSES["squared-hinge"], SETS["l1"](1.0)))
    for alpha in (0.05, 0.01, 0.0026):
        point = engine.solve(smooth.Goal(alpha, is_penalised=True), 1e-9)
        assert point.certified_gap <= 1e-9 * engine.scale
    assert engine.n_evaluated <= 60  # with such a curvature left, 700


@make_loss
class Unbounded(NamedTuple):
    """The logistic loss less p: it falls for ever as p grows."""

    def value(self, p, y):
        return np.logaddexp(0.0, p) - (1.0 + y) * p

    def derivative(self, p, y):
        return 0.5 + 0.5 * np.tanh(0.5 * p) - (1.0 + y)

    def second_derivative(self, p, y):
        t = np.tanh(0.5 * p)
        return 0.25 * (1.0 - t * t)

    def smoothness(self):
        return 0.25

    def least_value(self, y):
        return np.full(y.shape, -np.inf)


def test_a_loss_without_a_lower_bound_has_radii_and_no_penalties():
    X, y, _ = data("logistic", d=12)
    X, y = X - X.mean(axis=0), 0.5 + 0.5 * y
    radii, coefs, info = cg.radius_path(X, y, loss=Unbounded(), n_radii=3, eps=0.5, tol=1e-6)
    assert info.status is cg.Status.CONVERGED and radii[-1] > 0.0
    check(cg.Problem(X, y, Unbounded(), SETS["l1"](1.0)), SETS["l1"], coefs, info, 1e-6)
    with pytest.raises(ValueError, match="alphas need a convex loss that is bounded from below; Unbounded is not"):
        cg.radius_path(X, y, loss=Unbounded(), alphas=[0.1])


@make_loss
class BelowZero(NamedTuple):
    """The squared loss less 10, whose lower bound is not 0, as it says."""

    def value(self, p, y):
        return 0.5 * (p - y) * (p - y) - 10.0

    def derivative(self, p, y):
        return p - y

    def second_derivative(self, p, y):
        return 1.0 + 0.0 * p

    def smoothness(self):
        return 1.0

    def least_value(self, y):
        return np.zeros(y.shape)


def test_a_wrong_lower_bound_certifies_nothing():
    with pytest.raises(AssertionError, match="but least_value is 0: return a lower bound there, or -inf"):
        check_loss(BelowZero())
    X, y, _ = data("squared", d=12)
    _, _, info = cg.radius_path(X, y, loss=BelowZero(), alphas=[0.1])
    assert info.status is not cg.Status.CONVERGED and info.gap[0] == np.inf
    radii, coefs, info = cg.radius_path(X, y, loss=BelowZero(), radii=[0.1], tol=1e-12)
    at = cg.Problem(X, y, BelowZero(), constraints.L1Ball(radii[0])).evaluate(coefs.toarray()[:, 0])
    assert info.gap[0] + info.rounding[0] >= at.gap  # that of Frank-Wolfe does not need the bound


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"radii": [1.0]}, "give radii or alphas, not both: each radius has its alpha, which info reports."),
        ({"alphas": [0.0]}, "alphas must be finite and positive; got 0."),
        (
            {"constraint": "l2"},
            "alphas are penalties of a norm, so constraint must be an l1 ball, a weighted or a ",
        ),
        ({"constraint": "simplex"}, "alphas are penalties of a norm"),
        (
            {"solver": "corrective"},
            "alphas need data in memory and solver='auto'; got solver='corrective'. Give radii ",
        ),
        ({"l2": 0.1}, "alphas of radius_path need l2=0; got l2=0.1. Give radii instead."),
        ({"loss": "welsch"}, "alphas need a convex loss that is bounded from below; Welsch is not. Give radii instead"),
        ({"constraint": lambda r: constraints.L1Ball(2.0 * r)}, "alphas need a function that makes the ball of radius"),
    ],
)
def test_bad_penalties_get_one_sentence(kwargs, message):
    with pytest.raises(ValueError, match="alphas") as error:
        cg.radius_path([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], **({"alphas": [0.1]} | kwargs))
    assert str(error.value).startswith(message)


def test_rough_multipliers_do_not_lead_the_search_for_a_radius_astray():
    """Over balls these points were solved too roughly: their multipliers closed in on a wrong radius."""
    X = np.array([[0.0, -0.31922567, 0.0, 0.0, 0.0, -0.23377249, 0.0, -0.73240208]]).T
    y = [0.46361851, -1.17855295, -0.21419633, -0.25863525, 0.13135127, -1.20750409, -0.17557913, -3.12197233]
    loss, tol = cg.losses.Huber(0.7), 0.0022716284761545684
    problem = cg.Problem(X, y, loss, cg.constraints.NonnegativeL1Ball(1.0))
    alphas = np.abs(problem.gradient(np.zeros(1))).max() * np.geomspace(0.9, 0.02, 25)
    make, scale = cg.constraints.NonnegativeL1Ball, problem.loss_scale()
    path = penalised.PenalisedPath(Walk(problem, make), gauge_of(make(1.0)), tol=tol, scale=scale)
    for alpha in alphas:
        (found,) = path.advance(np.array([alpha]))
        assert found.certified_gap <= tol * scale
