"""General problems: TUFW's estimate is the one it claims, linear terms give Problem's runs, answers are certified."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from covering import every_choice

import condgrad as cg
from condgrad import constraints, losses, rules, step_sizes
from condgrad.problems.segment import towards
from condgrad.solvers import TUFW
from condgrad.terms import compiled_terms
from condgrad.testing import check_terms

N, D = 30, 5
ROOT = Path(__file__).parents[2]
RULES = [
    rules.SBD(),
    rules.DBD(),
    rules.SBD(n_steps=40),
    rules.DBD(n_steps=40),
    rules.Empty(),
    rules.Full(),
    rules.RandomBatch(4),
    rules.Cyclic(4),
]


@compiled_terms
class Bumps(NamedTuple):
    """f_i(w) = 1 - exp(-||A_i w - y_i||^2 / 2) with a 2 x d matrix A_i: not convex, and no loss of one prediction."""

    A: Any  # n x 2 x d
    y: Any  # n x 2

    @property
    def n_samples(self):
        return self.A.shape[0]

    @property
    def n_features(self):
        return self.A.shape[2]

    def residual(self, i, k, w):
        total = -self.y[i, k]
        for j in range(w.shape[0]):
            total += self.A[i, k, j] * w[j]
        return total

    def height(self, i, w):
        first, second = self.residual(i, 0, w), self.residual(i, 1, w)
        return np.exp(-0.5 * (first * first + second * second))

    def value(self, i, w):
        return 1.0 - self.height(i, w)

    def gradient(self, i, w):
        out = np.empty(w.shape[0])
        first, second, e = self.residual(i, 0, w), self.residual(i, 1, w), self.height(i, w)
        for j in range(w.shape[0]):
            out[j] = e * (first * self.A[i, 0, j] + second * self.A[i, 1, j])
        return out

    def hessian_product(self, i, w, v):
        out = np.empty(w.shape[0])
        r = self.gradient(i, w)
        a, b, along, e = 0.0, 0.0, 0.0, self.height(i, w)
        for j in range(w.shape[0]):
            a += self.A[i, 0, j] * v[j]
            b += self.A[i, 1, j] * v[j]
            along += r[j] * v[j]
        for j in range(w.shape[0]):
            out[j] = e * (a * self.A[i, 0, j] + b * self.A[i, 1, j]) - along * r[j] / e
        return out


class PlainBumps:
    """The same as ordinary Python."""

    def __init__(self, A, y):
        self.A, self.y = A, y
        self.n_samples, _, self.n_features = A.shape

    def value(self, i, w):
        return 1.0 - np.exp(-0.5 * np.sum((self.A[i] @ w - self.y[i]) ** 2))

    def gradient(self, i, w):
        return (1.0 - self.value(i, w)) * self.A[i].T @ (self.A[i] @ w - self.y[i])

    def hessian(self, i, w):
        r, e = self.gradient(i, w), 1.0 - self.value(i, w)
        return e * self.A[i].T @ self.A[i] - np.outer(r, r) / e

    def hessian_product(self, i, w, v):
        return self.hessian(i, w) @ v


@compiled_terms
class Linear(NamedTuple):
    """f(x_i'w, y_i) for a loss of the library, as general terms."""

    X: Any
    y: Any
    loss: Any

    is_convex = True

    def predict(self, i, w):
        total = 0.0
        for j in range(w.shape[0]):
            total += self.X[i, j] * w[j]
        return total

    def value(self, i, w):
        return self.loss.value(self.predict(i, w), self.y[i])

    def gradient(self, i, w):
        out = np.empty(w.shape[0])
        alpha = self.loss.derivative(self.predict(i, w), self.y[i])
        for j in range(w.shape[0]):
            out[j] = alpha * self.X[i, j]
        return out

    def hessian_product(self, i, w, v):
        out = np.empty(w.shape[0])
        curvature = self.loss.second_derivative(self.predict(i, w), self.y[i]) * self.predict(i, v)
        for j in range(w.shape[0]):
            out[j] = curvature * self.X[i, j]
        return out

    def smoothness(self):
        return self.loss.smoothness() * (self.X**2).sum(axis=1).max()


class PlainLogistic:
    """Convex terms as ordinary Python, with means by array expressions and Hessians of their own."""

    is_convex = True

    def __init__(self, X, y):
        self.X, self.y = X, y

    def value(self, i, w):
        return np.log1p(np.exp(-self.y[i] * (self.X[i] @ w)))

    def gradient(self, i, w):
        return -self.y[i] * self.X[i] / (1.0 + np.exp(self.y[i] * (self.X[i] @ w)))

    def curvature(self, X, w):
        return 0.25 / np.cosh(0.5 * (X @ w)) ** 2

    def hessian_product(self, i, w, v):
        return self.curvature(self.X[i], w) * self.X[i] * (self.X[i] @ v)

    def add_hessian(self, i, w, c, H):
        H += c * self.curvature(self.X[i], w) * np.outer(self.X[i], self.X[i])

    def mean_value(self, w):
        return np.log1p(np.exp(-self.y * (self.X @ w))).mean()

    def mean_gradient(self, w):
        return -self.X.T @ (self.y / (1.0 + np.exp(self.y * (self.X @ w)))) / self.y.size

    def mean_hessian(self, w):
        return self.X.T @ (self.curvature(self.X, w)[:, None] * self.X) / self.y.size


def bumps(plain=False, seed=0):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((N, 2, D)), rng.standard_normal((N, 2))
    return (PlainBumps if plain else Bumps)(A, y)


def linear_data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    return X, np.where(X @ rng.standard_normal(D) + rng.standard_normal(N) > 0, 1.0, -1.0)


def general(terms=None, constraint=None):
    terms = bumps() if terms is None else terms
    return cg.GeneralProblem(terms, constraints.L1Ball(2.0) if constraint is None else constraint)


def linear(constraint=None, plain=False):
    """The same problem twice: as general terms, and as a Problem."""
    X, y = linear_data()
    constraint = constraints.L1Ball(2.0) if constraint is None else constraint
    terms = PlainLogistic(X, y) if plain else Linear(X, y, losses.Logistic())
    return cg.GeneralProblem(terms, constraint, n_samples=N, n_features=D), cg.Problem(
        X, y, losses.Logistic(), constraint
    )


def brute_force_estimate(points, w):
    """(1/n) sum_i [grad f_i(b_i) + hess f_i(b_i) (w - b_i)] from the formulas in arrays."""
    terms = bumps(plain=True)
    parts = [terms.gradient(i, b) + terms.hessian(i, b) @ (w - b) for i, b in enumerate(points)]
    return np.mean(parts, axis=0)


CASES = [(False, constraints.L1Ball(2.0)), (True, constraints.L1Ball(2.0)), (True, constraints.L2Ball(1.0))]


@pytest.mark.slow
@every_choice(("rule", "case"), RULES, CASES, ids=str)
def test_estimate_equals_brute_force_at_every_step(rule, case):
    plain, constraint = case
    problem = general(bumps(plain), constraint)
    solver = TUFW(rule=rule, adaptive=True)
    run = solver.init(problem, None, 0)
    for t in range(30):
        before, w = np.broadcast_to(run.arrays.points.b, (N, D)).copy(), run.w
        solver.advance(problem, run, t, 1, np.inf)
        points = np.broadcast_to(run.arrays.points.b, (N, D))
        renewed = (points != before).any(axis=1)
        np.testing.assert_array_equal(points[renewed], np.tile(w, (renewed.sum(), 1)))  # b_i <- w, and no other change
        estimate = brute_force_estimate(points, run.w)
        np.testing.assert_allclose(run.arrays.r.vector.values, estimate, rtol=0, atol=1e-12)
        assert run.arrays.r.along() == pytest.approx(estimate @ run.w, abs=1e-12)
        assert constraint.contains(run.w, 1e-12)


@pytest.mark.parametrize("rule", [rules.RandomBatch(4), rules.DBD()], ids=repr)
@pytest.mark.parametrize("plain", [False, True])
def test_running_sums_are_computed_anew_from_the_points(rule, plain):
    problem, solver = general(bumps(plain)), TUFW(rule=rule)
    run = solver.init(problem, None, 0)
    for t in range(30):
        solver.advance(problem, run, t, 1, np.inf)
    points = np.broadcast_to(run.arrays.points.b, (N, D)).copy()
    run.arrays.r.shift(7.0)
    for array in (run.arrays.H.H, run.arrays.q.values, run.arrays.r.vector.values):
        array[:] = 7.0  # wrong on purpose
    solver.resynchronise(run.space, run.arrays)
    estimate = brute_force_estimate(points, run.w)
    np.testing.assert_allclose(run.arrays.r.vector.values, estimate, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.arrays.q.values + run.arrays.H.H @ run.w, estimate, rtol=0, atol=1e-13)
    assert run.arrays.r.along() == pytest.approx(estimate @ run.w, abs=1e-13)


@pytest.mark.slow
@every_choice(
    ("rule", "adaptive", "constraint"),
    RULES,
    [False, True],
    [constraints.L1Ball(2.0), constraints.L2Ball(1.0)],
    ids=str,
)
def test_linear_terms_give_the_run_of_problem(rule, adaptive, constraint):
    solver = TUFW(rule=rule, adaptive=adaptive)
    settings = {"max_steps": 60, "tol": 0, "max_epochs": 1e9, "random_state": 3}
    ours, theirs = (cg.minimize(problem, solver, **settings) for problem in linear(constraint))
    np.testing.assert_allclose(ours.state.w, theirs.state.w, rtol=0, atol=1e-10)


def test_exact_answers_are_those_of_problem():
    w = np.linspace(-0.4, 0.4, D)
    for plain in (False, True):
        ours, theirs = linear(plain=plain)
        assert ours.objective(w) == pytest.approx(theirs.objective(w), rel=1e-14)
        np.testing.assert_allclose(ours.gradient(w), theirs.gradient(w), rtol=1e-12)
        assert ours.gap(w) == pytest.approx(theirs.gap(w), rel=1e-12)
        X, t = theirs.matrix.X, theirs.loss.second_derivative(theirs.matrix.X @ w, theirs.y)
        np.testing.assert_allclose(ours.hessian(w), X.T @ (t[:, None] * X) / N, rtol=1e-12, atol=1e-15)
        assert ours.is_convex and not general().is_convex


def test_passes_on_many_threads_are_the_same():
    rng = np.random.default_rng(0)
    n, d = 3000, 20
    X, y = rng.standard_normal((n, d)), np.sign(rng.standard_normal(n))
    problem = cg.GeneralProblem(Linear(X, y, losses.Logistic()), constraints.L1Ball(1.0), n_samples=n, n_features=d)
    w = rng.standard_normal(d) / d
    plain = PlainLogistic(X, y)
    assert problem.objective(w) == pytest.approx(plain.mean_value(w), rel=1e-13)
    np.testing.assert_allclose(problem.gradient(w), plain.mean_gradient(w), rtol=0, atol=1e-14)
    np.testing.assert_allclose(problem.hessian(w), plain.mean_hessian(w), rtol=0, atol=1e-14)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    "solver",
    [
        "pairwise",
        "away",
        "bpcg",
        cg.solvers.Pairwise(step_sizes.Backtracking()),
        cg.solvers.AwayStep(step_sizes.ShortStep()),
    ],
    ids=repr,
)
def test_pass_solvers_certify_the_optimum(solver, plain):
    if plain and "ShortStep" in repr(solver):
        return  # PlainLogistic does not tell its smoothness
    ours, theirs = linear(plain=plain)
    best = cg.minimize(theirs, "corrective", tol=1e-12).objective
    result = cg.minimize(ours, solver, tol=1e-9)
    assert result.status is cg.Status.CONVERGED
    assert result.gap == ours.gap(result.w) <= 1e-9
    assert result.lower_bound <= best + 1e-14 and result.objective <= best + 1e-9


STEP_SIZES = [
    step_sizes.OpenLoop(),
    step_sizes.Backtracking(),
    step_sizes.ShortStep(),
    step_sizes.ShortStep("lipschitz"),
    step_sizes.ExactLineSearch(),
]


@pytest.mark.parametrize("step_size", STEP_SIZES, ids=repr)
def test_fw_with_every_step_size(step_size):
    ours, theirs = linear(constraints.L2Ball(0.5))
    solver = cg.solvers.FrankWolfe(step_size)
    result = cg.minimize(ours, solver, tol=1e-4)
    assert result.status is cg.Status.CONVERGED
    assert result.objective <= cg.minimize(theirs, "corrective", tol=1e-10).objective + 1e-4
    if isinstance(step_size, (step_sizes.OpenLoop, step_sizes.ExactLineSearch)):
        settings = {"max_steps": 20, "tol": 0}
        runs = [cg.minimize(problem, solver, **settings) for problem in (ours, theirs)]
        np.testing.assert_allclose(runs[0].state.w, runs[1].state.w, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [rules.DBD(), rules.SBD()], ids=repr)
def test_tufw_certifies_the_optimum_of_convex_terms(rule):
    ours, theirs = linear()
    best = cg.minimize(theirs, "corrective", tol=1e-12).objective
    result = cg.minimize(ours, TUFW(rule=rule, adaptive=True), tol=1e-4, random_state=0)
    assert result.status is cg.Status.CONVERGED
    assert result.gap == ours.gap(result.w) <= 1e-4
    assert result.lower_bound <= best + 1e-14 <= result.objective + 1e-13


def test_average_gap_of_non_convex_terms_falls_with_the_number_of_steps():
    averages = []
    for K in (10, 80, 640):
        problem = general()
        solver = TUFW(rule=rules.DBD(n_steps=K), step_size=step_sizes.NonConvex(K))
        run, gaps = solver.init(problem, None, 0), []
        for t in range(K + 1):
            gaps.append(problem.gap(run.w))
            solver.advance(problem, run, t, 1, np.inf)
        averages.append(np.mean(gaps))
    assert averages[1] < 0.6 * averages[0] and averages[2] < 0.6 * averages[1]


def test_line_search_on_non_convex_terms_never_goes_up():
    result = cg.minimize(general(), "fw", max_steps=60, tol=1e-8, evaluate_every=1e-9)
    assert (np.diff(result.trace.objective) <= 1e-15).all()
    assert result.lower_bound == -np.inf and result.gap < 0.1 * result.trace.gap[0]


class Wave:
    """2 w - (3 / b) sin(b w) for b = 4 pi: it falls at 0 and at 1, and is higher at 1."""

    n_samples = n_features = 1

    def value(self, i, w):
        return 2.0 * w[0] - 3.0 * np.sin(4.0 * np.pi * w[0]) / (4.0 * np.pi)

    def gradient(self, i, w):
        return 2.0 - 3.0 * np.cos(4.0 * np.pi * w)


def test_line_search_does_not_take_a_far_end_that_is_higher():
    point = general(Wave(), constraints.Box(np.zeros(1), np.ones(1))).point(np.zeros(1))
    line = towards(point, point.s, point.gap)
    gamma = line.minimiser()
    assert 0.0 < gamma < 1.0 and line.change(gamma) < 0.0


def test_short_step_uses_the_smoothness_of_the_terms():
    problem = linear()[0]
    point = problem.point(np.full(D, 0.1))
    line = towards(point, point.s, point.gap)
    expected = point.gap / (problem.terms.smoothness() * np.sum((point.s.to_dense(D) - point.w) ** 2))
    for curvature in ("predictions", "lipschitz"):
        assert step_sizes.ShortStep(curvature).begin(problem).at(0, line) == pytest.approx(
            min(1.0, expected), rel=1e-12
        )
    assert expected < 1.0 and line.short_step() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("solver", [TUFW(rule=rules.SBD()), TUFW(adaptive=True), "pairwise"], ids=repr)
def test_same_seed_same_run_and_compiled_as_plain(solver):
    settings = {"max_steps": 50, "tol": 0, "max_epochs": 1e9, "random_state": 5}
    first, again, plain = (cg.minimize(general(bumps(p)), solver, **settings) for p in (False, False, True))
    assert first.state.w.tobytes() == again.state.w.tobytes()
    np.testing.assert_allclose(plain.state.w, first.state.w, rtol=0, atol=1e-7)  # pairwise: a line search to 1e-8
    assert first.n_epochs == again.n_epochs


@pytest.mark.parametrize("solver", [TUFW(rule=rules.SBD()), TUFW(), "fw"], ids=repr)
@pytest.mark.parametrize("plain", [False, True])
def test_checkpoint_goes_on_bit_for_bit(solver, plain, tmp_path):
    settings = {"tol": 0, "max_epochs": 1e9, "random_state": 1}
    path = tmp_path / "run.npz"
    whole = cg.minimize(general(bumps(plain)), solver, max_steps=40, **settings)
    cg.minimize(general(bumps(plain)), solver, max_steps=17, checkpoint=path, **settings)
    rest = cg.minimize(general(bumps(plain)), solver, max_steps=40, checkpoint=path, **settings)
    assert rest.state.w.tobytes() == whole.state.w.tobytes()
    with pytest.raises(ValueError, match="another problem"):
        cg.minimize(general(bumps(plain, seed=1)), solver, max_steps=40, checkpoint=path, **settings)


class Counting(PlainLogistic):
    """Terms that count the gradients that are asked of them; without means, so that passes call each."""

    mean_value = mean_gradient = mean_hessian = property()  # which hasattr does not see

    def __init__(self, *data):
        super().__init__(*data)
        self.calls = 0

    def gradient(self, i, w):
        self.calls += 1
        return super().gradient(i, w)


@pytest.mark.parametrize("solver", [TUFW(rule=rules.RandomBatch(6)), TUFW(), "fw", "pairwise"], ids=repr)
def test_epochs_count_the_gradients_that_are_taken(solver):
    terms = Counting(*linear_data())
    problem = cg.GeneralProblem(terms, constraints.L1Ball(1.0), n_samples=N, n_features=D)
    terms.calls = 0
    solver = cg.solvers.by_name(solver)() if isinstance(solver, str) else solver
    state = solver.init(problem, None, 0)
    for t in range(10):
        solver.advance(problem, state, t, 1, np.inf)
    assert state.gradient_evaluations == terms.calls


def test_a_set_with_a_python_oracle_and_a_callback():
    product = constraints.Product([constraints.L1Ball(1.0), constraints.L2Ball(0.7)], sizes=[2, 3])
    seen = []
    result = cg.minimize(
        general(constraint=product),
        TUFW(adaptive=True),
        max_steps=50,
        evaluate_every=1,
        callback=lambda p: seen.append(p.gap),
    )
    assert product.contains(result.w, 1e-9) and len(seen) > 3
    assert cg.minimize(general(), callback=lambda p: True).status is cg.Status.STOPPED


def test_auto_says_why():
    assert "TUFW" in (said := cg.minimize(linear()[0], max_steps=1).solver) and "second derivatives" in said
    assert "Backtracking" in (said := cg.minimize(general(), max_steps=1).solver) and "is_convex" in said
    X, y = linear_data()
    first_order = PlainLogistic(X, y)
    methods = {name: getattr(first_order, name) for name in ("value", "gradient")}
    hidden = type("FirstOrder", (), methods | {"is_convex": True})()
    problem = cg.GeneralProblem(hidden, constraints.L1Ball(1.0), n_samples=N, n_features=D)
    assert "FrankWolfe" in (said := cg.minimize(problem, max_steps=1).solver) and "no second derivatives" in said
    wide = cg.GeneralProblem(Linear(np.ones((2, 1001)), y[:2], losses.Logistic()), constraints.L1Ball(1.0),
                             n_samples=2, n_features=1001)  # fmt: skip
    assert "1001 features" in cg.minimize(wide, max_steps=1).solver


def test_solvers_of_predictions_say_so():
    fitting = {"tufw", "fw", "lazy", "away", "pairwise", "bpcg", "boosted"}
    of_curvature = {"corrective", "quadratic-correction", "polyatomic"}
    for name in set(cg.solvers.REGISTERED) - fitting - of_curvature - {"low-rank"}:
        with pytest.raises(TypeError, match=r"requires single .*, which this GeneralProblem does not offer"):
            cg.minimize(general(), name)
    for name in of_curvature:
        with pytest.raises(TypeError, match="requires the curvature of F on vertices, which this GeneralProblem"):
            cg.minimize(general(), name)
    with pytest.raises(TypeError, match=r"requires iterates that are matrices in factors, .*; use one of 'fw'"):
        cg.minimize(general(), "low-rank")


class Importance(rules.RandomBatch):
    sampling = "importance"


class Liar(rules.RandomBatch):
    renews_all = True


def test_wrong_input_gets_a_sentence():
    X, y = linear_data()
    ball, terms = constraints.L1Ball(1.0), PlainLogistic(X, y)
    sizes = {"n_samples": N, "n_features": D}
    for error, match, make in [
        (TypeError, "must be an object, not a class", lambda: cg.GeneralProblem(PlainLogistic, ball, **sizes)),
        (TypeError, r"must have the methods value\(i, w\)", lambda: cg.GeneralProblem(3.0, ball, **sizes)),
        (ValueError, "n_samples is not known", lambda: cg.GeneralProblem(terms, ball, n_features=D)),
        (ValueError, "but the terms have n_samples = 30", lambda: cg.GeneralProblem(bumps(), ball, n_samples=31)),
        (ValueError, "n_features must be a whole number",
         lambda: cg.GeneralProblem(terms, ball, n_samples=N, n_features=2.5)),
        (ValueError, "set of vectors of length 3, but the data have 5",
         lambda: cg.GeneralProblem(terms, constraints.Box(-np.ones(3), np.ones(3)), **sizes)),
        (ValueError, r"must return an array of shape \(5,\)", lambda: general(Wrong())),
        (ValueError, "objective of the terms is not finite",
         lambda: general(Wrong(finite=False)).objective(np.ones(D))),
        (ValueError, "shape", lambda: general().objective(np.ones(3))),
        (ValueError, "form='implicit' needs predictions", lambda: cg.minimize(general(), TUFW(form="implicit"))),
        (ValueError, "a short step needs a Lipschitz constant",
         lambda: cg.minimize(general(), cg.solvers.FrankWolfe(step_sizes.ShortStep()))),
        (ValueError, "needs the norms of the rows of X", lambda: cg.minimize(general(), TUFW(rule=Importance(3)))),
        (ValueError, "has renews_all = True", lambda: cg.minimize(general(), TUFW(rule=Liar(3)))),
        (TypeError, "must be a condgrad.Problem, GeneralProblem, ", lambda: cg.minimize(terms)),
    ]:  # fmt: skip
        with pytest.raises(error, match=match):
            make()
    first_order = Wrong(finite=False)
    with pytest.raises(TypeError, match="requires second derivatives"):
        cg.minimize(cg.GeneralProblem(first_order, ball, n_samples=N, n_features=D), "tufw")


class Wrong:
    n_samples, n_features = N, D

    def __init__(self, finite=True):
        self.finite = finite

    def value(self, i, w):
        return 1.0 if self.finite else np.nan

    def gradient(self, i, w):
        return np.ones(D - 1) if self.finite else np.ones(D)


# check_terms -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_check_terms_passes_right_terms():
    X, y = linear_data()
    for terms in (bumps(), bumps(plain=True), Linear(X, y, losses.Logistic()), PlainLogistic(X, y)):
        check_terms(terms, n_samples=N, n_features=D)


def scaled(method, factor):
    """PlainLogistic with one method wrong by a factor."""

    def wrong(self, *args):
        return factor * getattr(PlainLogistic, method)(self, *args)

    return broken(**{method: wrong})


def broken(**methods):
    return type("Broken", (PlainLogistic,), methods)(*linear_data())


class Concave:
    is_convex = True

    def value(self, i, w):
        return -0.5 * w @ w

    def gradient(self, i, w):
        return -w


class ClaimsToBeConvex(PlainBumps):
    is_convex = True


class OneArray(PlainLogistic):
    out = np.empty(D)

    def gradient(self, i, w):
        self.out[:] = super().gradient(i, w)
        return self.out


class Lopsided(PlainBumps):
    def hessian_product(self, i, w, v):
        return np.triu(self.hessian(i, w)) @ v


class DoubleHessian(PlainLogistic):
    def add_hessian(self, i, w, c, H):
        super().add_hessian(i, w, 2.0 * c, H)


WRONG = [
    ("gradient of .* is not the slope of value", scaled("gradient", -1.0)),
    ("gradient of .* is not the slope of value", scaled("gradient", 1.0001)),
    ("hessian_product of .* is not the slope of gradient", scaled("hessian_product", 0.999)),
    ("hessian_product", Lopsided(bumps().A, bumps().y)),
    ("add_hessian and hessian_product", DoubleHessian(*linear_data())),
    ("mean_value of .* must be the mean", scaled("mean_value", N)),
    ("mean_gradient of .* must be the mean", scaled("mean_gradient", N)),
    ("mean_hessian of .* must be the mean", scaled("mean_hessian", N)),
    ("smoothness of .* is 0.001", broken(smoothness=lambda self: 1e-3)),
    ("value of .* is not finite", broken(value=lambda self, i, w: np.inf)),
    ("value of .* must not change w", broken(value=lambda self, i, w: w.fill(0.0) or 0.0)),
    ("must return an array of its own", OneArray(*linear_data())),
    (r"gradient of .* must return shape \(5,\)", broken(gradient=lambda self, i, w: np.ones(2))),
    ("says is_convex, but the mean Hessian", ClaimsToBeConvex(bumps().A, bumps().y)),
    ("says is_convex, but from", Concave()),
]


@pytest.mark.parametrize(("match", "terms"), WRONG, ids=[match for match, _ in WRONG])
def test_check_terms_finds_what_is_wrong(match, terms):
    with pytest.raises(AssertionError, match=match):
        check_terms(terms, n_samples=N, n_features=D)


@pytest.mark.campaign
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="the example takes long when interpreted")
def test_example_shows_that_second_derivatives_pay(tmp_path):
    command = [sys.executable, "-W", "error", "-c", "import softmax"]  # kernels of a module can be cached
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "examples")])}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    table = dict(re.findall(r"^(fw|tufw).*? ([\d.e+-]+) +[\d.]+ +-?[\d.]+$", run.stdout, flags=re.MULTILINE))
    assert float(table["tufw"]) < float(table["fw"]) < 1.0
