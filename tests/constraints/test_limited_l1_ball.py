"""LimitedL1Ball: the l1 ball with limits for each coefficient, and with free features."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from certificates import LONG, Truth
from tables import targets

import condgrad as cg
from condgrad.constraints import (
    Box,
    L1Ball,
    LimitedL1Ball,
    LinearlyConstrained,
    NonnegativeL1Ball,
    WeightedL1Ball,
    best_vertex,
)

D = 8


def random_ball(seed, d=D):
    """Return a ball with free features, one-sided limits, features fixed at zero and features without limits."""
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], d)
    lower, upper = -rng.choice([0.0, 0.3, np.inf], d), rng.choice([0.0, 0.2, 0.7, np.inf], d)
    is_free = weights == 0.0
    lower[is_free], upper[is_free] = -1.5, np.where(rng.random(d) < 0.5, 0.0, 1.0)[is_free]
    return LimitedL1Ball(1.3, weights, lower, upper)


def as_program(ball):
    """Return the set as rows over (u, v), w = u - v, for linprog."""
    limits = [(0.0, high) for high in np.concatenate([ball.upper, -ball.lower])]
    return {"A_ub": np.tile(ball.weights, 2)[None], "b_ub": [ball.radius], "bounds": limits}


@pytest.mark.parametrize("seed", range(6))
def test_the_oracle_solves_the_linear_program(seed):
    ball = random_ball(seed)
    for r in np.random.default_rng(seed).standard_normal((5, D)):
        expected = scipy.optimize.linprog(np.concatenate([r, -r]), **as_program(ball)).fun
        assert r @ best_vertex(ball, r).to_dense(D) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_the_projection_is_the_nearest_point(seed):
    ball = random_ball(seed)
    for v in np.random.default_rng(seed).standard_normal((4, D)) * [[3.0], [0.1], [1.0], [50.0]]:
        w = ball.project(v)
        assert ball.violation(w) <= 1e-12
        assert (v - w) @ (best_vertex(ball, w - v).to_dense(D) - w) <= 1e-11 * np.abs(v).max() ** 2


@pytest.mark.parametrize("seed", range(6))
def test_a_point_is_decomposed_into_few_vertices(seed):
    ball = random_ball(seed)
    w = ball.project(np.random.default_rng(seed).standard_normal(D))
    parts = ball.decompose(w)
    assert len(parts) <= D + 2
    assert sum(weight for weight, _ in parts) == pytest.approx(1.0)
    assert sum(weight * s.to_dense(D) for weight, s in parts) == pytest.approx(w, abs=1e-12)
    free = ball.weights == 0.0
    for _, s in parts:
        values = s.to_dense(D)
        at_limit = (values == 0.0) | np.isclose(values, ball.lower) | np.isclose(values, ball.upper)
        assert (np.isclose(values, ball.lower) | np.isclose(values, ball.upper))[free].all()
        assert np.count_nonzero(~at_limit[~free]) <= 1
        assert ball.violation(values) <= 1e-12


ALIKE = {
    "plain": (LimitedL1Ball(1.5), L1Ball(1.5)),
    "weighted": (LimitedL1Ball(1.5, [1.0, 2.0, 0.5, 1.0]), WeightedL1Ball(1.5, [1.0, 2.0, 0.5, 1.0])),
    "non-negative": (LimitedL1Ball(1.5, lower=0.0), NonnegativeL1Ball(1.5)),
    "box": (LimitedL1Ball(1.0, 0.0, -0.5, 2.0), Box(-0.5, 2.0)),
}


@pytest.mark.parametrize("name", ALIKE)
def test_it_contains_the_sets_that_it_generalises(name):
    ours, theirs = ALIKE[name]
    rng = np.random.default_rng(0)
    for r in rng.standard_normal((10, 4)):
        assert r @ best_vertex(ours, r).to_dense(4) == pytest.approx(r @ best_vertex(theirs, r).to_dense(4))
        assert ours.project(r) == pytest.approx(theirs.project(r), abs=1e-12)
        assert ours.contains(0.5 * r) == theirs.contains(0.5 * r)
    assert ours.is_symmetric == theirs.is_symmetric
    assert ours.diameter(np.inf, 4) == pytest.approx(theirs.diameter(np.inf, 4))


def test_a_set_of_any_dimension_is_restricted_to_itself():
    ball = LimitedL1Ball(2.0, lower=0.0, upper=0.5)
    assert ball.n_features is None
    assert ball.restricted(np.array([1, 3])) is ball
    named = LimitedL1Ball(2.0, lower=0.0, upper=0.5, size=4)
    assert named.n_features == 4
    assert named.restricted(np.array([1, 3])).upper.tolist() == [0.5, 0.5]
    assert repr(ball) == "LimitedL1Ball(radius=2.0, lower=0, upper=0.5)"
    assert repr(named) == "LimitedL1Ball(radius=2.0, lower=[0, 0, 0, 0], upper=[0.5, 0.5, 0.5, 0.5])"


WRONG = {
    "radius": (lambda: LimitedL1Ball(0.0), "radius of LimitedL1Ball must be positive"),
    "negative weight": (lambda: LimitedL1Ball(1.0, [1.0, -1.0]), "weights .* must be at least 0; got -1.0"),
    "free, no limits": (lambda: LimitedL1Ball(1.0, [1.0, 0.0]), "must be finite where .* the weight 0 at feature 1"),
    "zero outside": (lambda: LimitedL1Ball(1.0, lower=0.5), "0 must lie between lower and upper .* got .* 0.5"),
    "nan": (lambda: LimitedL1Ball(1.0, upper=[1.0, np.nan]), "0 must lie between lower and upper"),
    "lengths": (lambda: LimitedL1Ball(1.0, [1.0, 1.0], upper=[1.0] * 3), r"of one length; got lengths \[2, 3\]"),
    "features": (lambda: LimitedL1Ball(1.0, [1.0, 1.0]).check_features(3), "length 2, but the data have 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parameters_are_refused_in_one_sentence(name):
    make, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        make()


# Problems over it.


LOSSES = {
    "squared": cg.losses.Squared(),
    "huber": cg.losses.Huber(0.7),
    "logistic": cg.losses.Logistic(),
    "squared hinge": cg.losses.SquaredHinge(),
    "poisson": cg.losses.Poisson(),
}


def clinical(n, d, loss, seed=0):
    """Return data, and a ball with three free features, and limits of some others, that cuts off the optimum."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    w = np.zeros(d)
    w[:10] = rng.standard_normal(10)
    y = targets(loss, X @ w / 2.0 + 0.5 * rng.standard_normal(n))
    weights = np.where(np.arange(d) < 3, 0.0, rng.choice([0.5, 1.0, 2.0], d))
    lower, upper = np.where(np.arange(d) % 3 == 0, 0.0, -np.inf), np.where(np.arange(d) % 4 == 1, 0.2, np.inf)
    lower[:3], upper[:3] = -50.0, 50.0
    return X, y, LimitedL1Ball(1.2, weights, lower, upper)


def true_gap(problem, X, y, w):
    """Return the gap at w in extended precision: <r, w> - min <r, .>."""
    truth = Truth(X.astype(LONG), y, np.ones(y.size), problem.loss, problem.has_intercept)
    r = truth.gradient(w)
    s = best_vertex(problem.constraint, r.astype(float))
    return r @ w - r[s.indices] @ s.values


@pytest.mark.parametrize("shape", [(150, 30), (60, 200)])
@pytest.mark.parametrize("name", LOSSES)
def test_few_passes_reach_a_gap_that_holds_in_extended_precision(name, shape):
    X, y, ball = clinical(*shape, LOSSES[name])
    problem = cg.Problem(X, y, LOSSES[name], ball, intercept=shape[0] < 100)
    result = cg.minimize(problem, tol=1e-9)
    assert result.status is cg.Status.CONVERGED and result.n_epochs <= 25
    assert ball.violation(result.w) <= 1e-12
    assert true_gap(problem, X, y, result.w) <= result.gap + result.rounding
    assert np.abs(problem.gradient(result.w)[:3]).max() <= 1e-9  # free features are minimised exactly
    assert np.abs(result.w[:3]).max() < 50.0


@pytest.mark.campaign
@pytest.mark.parametrize("name", LOSSES)
def test_an_interior_point_method_finds_the_same_objective(name):
    cp = pytest.importorskip("cvxpy")
    X, y, ball = clinical(150, 30, LOSSES[name])
    w = cp.Variable(30)
    p = X @ w
    values = {
        "squared": cp.square(p - y) / 2.0,
        "huber": cp.huber(p - y, 0.7) / 2.0,
        "logistic": cp.logistic(-cp.multiply(y, p)),
        "squared hinge": cp.square(cp.pos(1.0 - cp.multiply(y, p))),
        "poisson": cp.exp(p) - cp.multiply(y, p),
    }
    limits = [w[ball.lower > -np.inf] >= ball.lower[ball.lower > -np.inf], w[:3] <= 50.0, w[5::4] <= 0.2]
    program = cp.Problem(cp.Minimize(cp.sum(values[name]) / 150), [ball.weights @ cp.abs(w) <= ball.radius, *limits])
    program.solve(solver="CLARABEL")
    problem = cg.Problem(X, y, LOSSES[name], ball)
    assert cg.minimize(problem, tol=1e-9).objective == pytest.approx(problem.objective(w.value), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("form", ["csr", "csc", "float32"])
def test_data_of_any_form_give_the_same_model(form):
    X, y, ball = clinical(150, 30, LOSSES["logistic"])
    X[np.abs(X) < 0.5] = 0.0
    X = X.astype(np.float32)
    w = cg.minimize(cg.Problem(X.astype(float), y, LOSSES["logistic"], ball), tol=1e-10).w
    other = X if form == "float32" else scipy.sparse.csr_array(X.astype(float)).asformat(form)
    assert cg.minimize(cg.Problem(other, y, LOSSES["logistic"], ball), tol=1e-10).w == pytest.approx(w, abs=1e-4)


def test_a_row_more_is_a_cut():
    X, y, ball = clinical(150, 30, LOSSES["squared"])
    balanced = LinearlyConstrained(ball, A_eq=np.ones((1, 30)), b_eq=[0.0])
    result = cg.minimize(cg.Problem(X, y, LOSSES["squared"], balanced), tol=1e-8)
    assert result.status is cg.Status.CONVERGED
    assert abs(result.w.sum()) <= 1e-8 and ball.violation(result.w) <= 1e-8


@pytest.mark.parametrize("seed", range(40))
def test_vertices_of_points_on_the_boundary_are_in_the_set(seed):
    """Steps may give a vertex any weight, so one of a tiny weight must be feasible too, whatever rounding has left."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(60, 150))
    lower = np.where(rng.random(d) < 0.5, 0.0, np.where(rng.random(d) < 0.3, -rng.uniform(0.1, 2.0, d), -np.inf))
    upper = np.where(rng.random(d) < 0.3, rng.uniform(0.1, 2.0, d), np.inf)
    weights = rng.choice([1.0, 0.5, 2.0, 1e-3], d)
    w = np.clip(rng.standard_normal(d) * 10.0 ** rng.uniform(-6.0, 0.0, d), lower, upper)
    ball = LimitedL1Ball(float(weights @ np.abs(w)), weights, lower, upper)
    parts = ball.decompose(w)
    assert max(ball.violation(v.to_dense(d)) for _, v in parts) <= 1e-12 * ball.radius
    together = sum(share * v.to_dense(d) for share, v in parts)
    np.testing.assert_allclose(together, w, atol=1e-10 * np.abs(w).max())
    assert sum(share for share, _ in parts) == pytest.approx(1.0) and len(parts) <= d + 2


def test_quadratic_corrections_stay_in_the_set():
    """From a start on the boundary with many features, whose vertices are those of its decomposition."""
    rng = np.random.default_rng(0)
    d = 100
    X, is_positive = rng.standard_normal((1000, d)), np.arange(d) % 2 == 0
    y = X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(1000)
    radii, coefs, info = cg.lasso_path(X, y, fit_intercept=True, positive=is_positive, n_radii=5)
    assert info.status is cg.Status.CONVERGED
    dense = coefs.toarray()
    assert (dense[is_positive] >= 0.0).all() and (np.abs(dense).sum(axis=0) <= radii * (1.0 + 1e-9)).all()
