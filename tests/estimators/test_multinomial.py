"""Multinomial logistic regression: the problem of all classes together, and the estimators over it."""

import pickle

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

import condgrad as cg
from condgrad.constraints import Atom, DenseVertex, GroupBall, L1Ball, L2Ball, LinfBall

RNG = np.random.default_rng(0)
N, D, K = 150, 8, 3
X = RNG.standard_normal((N, D))
X[np.abs(X) < 0.4] = 0.0
Y = np.argmax(X[:, :K] + 0.7 * RNG.standard_normal((N, K)) + [0.0, 0.5, -0.5], axis=1)
WEIGHT = RNG.uniform(0.5, 2.0, N)
LABELS = np.array(["ash", "birch", "cedar"])[Y]
COLUMNS = GroupBall(np.tile(np.arange(D), K), 3.0)
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
}


def plain_objective(w, b):
    S = X @ w.reshape(K, D).T + b
    return float(np.average(scipy.special.logsumexp(S, axis=1) - S[np.arange(N), Y], weights=WEIGHT))


@pytest.mark.parametrize("intercept", [False, True])
def test_objective_gradient_and_curvature_belong_together(intercept):
    problem = cg.SoftmaxProblem(X, Y, L1Ball(5.0), sample_weight=WEIGHT, intercept=intercept)
    w = 0.3 * np.random.default_rng(1).standard_normal(K * D)
    best = np.zeros(K)
    if intercept:
        best = scipy.optimize.minimize(lambda b: plain_objective(w, b), best, tol=1e-12).x
        best -= best.mean()
    np.testing.assert_allclose(problem.best_intercept(w), best, atol=1e-6)
    assert problem.objective(w) == pytest.approx(plain_objective(w, problem.best_intercept(w)), rel=1e-14)
    h, unit = 1e-5, np.eye(K * D)
    slopes = [(problem.objective(w + h * e) - problem.objective(w - h * e)) / (2 * h) for e in unit]
    np.testing.assert_allclose(problem.gradient(w), slopes, atol=1e-9)
    atoms = [Atom(j, 1.0 + j % 3) for j in (0, 3, D, D + 3, 2 * D + 1)]
    bends = [(problem.gradient(w + h * a.to_dense(K * D)) - problem.gradient(w - h * a.to_dense(K * D))) for a in atoms]
    wanted = np.array([[bend @ a.to_dense(K * D) for a in atoms] for bend in bends]) / (2 * h)
    dense = [DenseVertex(a.to_dense(K * D)) for a in atoms]
    for form, make in FORMS.items():
        other = cg.SoftmaxProblem(make(X), Y, L1Ball(5.0), sample_weight=WEIGHT, intercept=intercept)
        for given in (atoms, dense):
            found = other.look(w)
            np.testing.assert_allclose(found.curvature(given), wanted, atol=1e-9, err_msg=form)
            assert found.gap == pytest.approx(problem.gap(w), rel=1e-12)


@pytest.mark.parametrize(
    "ball", [L1Ball(5.0), COLUMNS, L2Ball(2.0), LinfBall(0.5)], ids=lambda ball: type(ball).__name__
)
@pytest.mark.parametrize("intercept", [False, True])
def test_solvers_agree_and_the_bound_holds(ball, intercept):
    problem = cg.SoftmaxProblem(X, Y, ball, sample_weight=WEIGHT, intercept=intercept)
    exact = cg.minimize(problem, tol=1e-10)
    assert exact.status is cg.Status.CONVERGED and exact.solver.startswith("Corrective()")
    assert ball.contains(exact.w, 1e-9)
    other = cg.minimize(problem, cg.solvers.FrankWolfe(cg.step_sizes.Backtracking()), tol=1e-10, max_epochs=60)
    assert ball.contains(other.w, 1e-9)
    assert other.lower_bound - 1e-12 <= exact.objective <= other.objective + 1e-12


def test_a_loose_ball_gives_the_model_of_scikit_learn():
    penalised = LogisticRegression(C=0.05, tol=1e-10, max_iter=10_000).fit(X, Y, sample_weight=WEIGHT)
    radius = float(np.linalg.norm(penalised.coef_))
    model = cg.ConstrainedLogisticRegression(radius, constraint="l2", multi_class="multinomial", tol=1e-10)
    model.fit(X, LABELS, sample_weight=WEIGHT)
    np.testing.assert_allclose(model.coef_, penalised.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, penalised.intercept_ - penalised.intercept_.mean(), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), penalised.predict_proba(X), atol=1e-5)
    assert list(model.classes_) == ["ash", "birch", "cedar"] and model.gap_ <= 1e-10 * np.log(3.0)


@pytest.mark.parametrize("constraint", ["l1", "group", "linf", "nonnegative-l1", COLUMNS])
def test_estimators_over_sets(constraint):
    model = cg.ConstrainedClassifier(constraint=constraint, multi_class="multinomial").fit(X, LABELS)
    assert model.coef_.shape == (K, D) and model.intercept_.shape == (K,) and isinstance(model.gap_, float)
    assert model.gap_ <= 1e-6 * np.log(3.0)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert model.score(X, LABELS) > 0.6
    if constraint == "group":  # whole features are out
        assert 0 < np.count_nonzero(np.abs(model.coef_).sum(axis=0)) < D
        assert np.linalg.norm(model.coef_, axis=0).sum() == pytest.approx(model.radius_)
    for make in FORMS.values():
        np.testing.assert_allclose(clone(model).fit(make(X), LABELS).coef_, model.coef_, atol=1e-3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(clone(model).fit(X, LABELS).coef_, model.coef_)


def test_two_classes_are_one_problem_either_way():
    settings = {"radius": 2.0}
    one = cg.ConstrainedLogisticRegression(**settings).fit(X, Y == 0)
    for constraint in ("l1", "group"):
        both = cg.ConstrainedLogisticRegression(**settings, constraint=constraint, multi_class="multinomial")
        np.testing.assert_array_equal(one.coef_, both.fit(X, Y == 0).coef_)


def test_the_curvature_has_no_rounding_of_a_null_direction_in_it():
    rng = np.random.RandomState(0)
    few = np.asfortranarray(3.0 * rng.uniform(size=(20, 3)))
    ball = GroupBall(np.tile(np.arange(3), 3), 23.0)  # nearly all chances are 0 or 1
    problem = cg.SoftmaxProblem(few, few[:, 0].astype(int), ball, intercept=True)
    result = cg.minimize(problem, tol=1e-8)
    assert result.status is cg.Status.CONVERGED
    bends = np.linalg.eigvalsh(problem.look(result.w).curvature([Atom(j, 1.0) for j in range(9)]))
    assert bends.min() > -1e-15


def test_data_without_curvature():
    corners = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1], [-1, -2], [2, 2], [-2, -2]], dtype=float)
    model = cg.ConstrainedLogisticRegressionCV(
        multi_class="multinomial", constraint="group", n_radii=3, cv=2, tol=1e-10
    )
    assert model.fit(corners, np.repeat([1, 2, 3], 3)).gap_ <= 1e-9


def test_the_flattest_of_problems_over_the_group_ball():
    ball = GroupBall([0, 0, 1], 2.0)
    for problem in (
        cg.Problem(np.eye(3), [9.0, 8.0, 7.0], cg.losses.Huber(1e-3), ball),  # linear over the whole ball
        cg.Problem(np.full((4, 3), 1e-160), [1.0, -1.0, 1.0, 1.0], cg.losses.Logistic(), ball),
    ):
        assert cg.minimize(problem, "corrective", tol=1e-12).gap < 1e-6


def test_warm_starts_and_class_weights():
    model = cg.ConstrainedLogisticRegression(4.0, multi_class="multinomial", warm_start=True, tol=1e-9).fit(X, Y)
    cold = model.n_iter_
    assert model.fit(X, Y).n_iter_ < cold
    weights = {0: 3.0, 1: 1.0, 2: 0.5}
    model.set_params(class_weight=weights, tol=1e-9).fit(X, Y)
    other = cg.ConstrainedLogisticRegression(4.0, multi_class="multinomial", tol=1e-9)
    other.fit(X, Y, sample_weight=np.array([weights[c] for c in Y]))
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)


def test_cross_validation():
    settings = {"constraint": "group", "multi_class": "multinomial"}
    model = cg.ConstrainedLogisticRegressionCV(radii=[0.5, 2.0, 6.0], cv=3, **settings).fit(X, LABELS)
    assert model.coef_.shape == (K, D) and model.score_path_.shape == (3, 3)
    one = cg.ConstrainedLogisticRegression(model.radius_, **settings).fit(X, LABELS)
    np.testing.assert_allclose(model.coef_, one.coef_, atol=1e-3)
    default = cg.ConstrainedLogisticRegressionCV(n_radii=3, cv=2, scoring="accuracy", multi_class="multinomial")
    assert default.fit(X, LABELS).score(X, LABELS) > 0.6


def test_thinned_passes_end_in_a_certificate_of_all_samples():
    rng = np.random.default_rng(3)
    big = rng.standard_normal((9000, 6))
    y = np.argmax(big[:, :4] + rng.standard_normal((9000, 4)), axis=1)
    problem = cg.SoftmaxProblem(big, y, L1Ball(3.0), intercept=True)
    result = cg.minimize(problem, tol=1e-9)
    assert result.status is cg.Status.CONVERGED and problem.gap(result.w) <= 1e-9


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cg.SoftmaxProblem(X, Y - 1.0, L1Ball(1.0)), "class numbers 0, 1, ..., k - 1; got -1"),
        (lambda: cg.SoftmaxProblem(X, Y + 0.5, L1Ball(1.0)), "got 0.5|got 1.5|got 2.5"),
        (lambda: cg.SoftmaxProblem(X, Y, L1Ball(1.0), n_classes=2), "contains the class 2, but n_classes=2"),
        (lambda: cg.SoftmaxProblem(X, Y, L1Ball(1.0), n_classes=1), "n_classes must be an integer of at least 2"),
        (lambda: cg.SoftmaxProblem(X, Y, L1Ball(1.0), n_classes=4, intercept=True), "class 3 has none"),
        (lambda: cg.SoftmaxProblem(X, Y, GroupBall([0, 1], 1.0)), "3 classes and 8 columns of X make n_features=24"),
        (lambda: cg.ConstrainedClassifier(multi_class="both").fit(X, Y), "must be 'ovr' or 'multinomial'; got 'both'"),
        (lambda: cg.ConstrainedClassifier("squared", multi_class="multinomial").fit(X, Y), "needs loss='logistic'"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("solver", ["sfw", "tufw", "randomized"])
def test_solvers_of_single_samples_are_refused_in_a_sentence(solver):
    model = cg.ConstrainedLogisticRegression(1.0, multi_class="multinomial", solver=solver)
    with pytest.raises(TypeError, match="which this SoftmaxProblem does not offer; use one of 'fw', 'lazy', 'away'"):
        model.fit(X, Y)


def test_a_short_run_warns_and_is_feasible():
    model = cg.ConstrainedLogisticRegression(2.0, multi_class="multinomial", solver="pairwise", max_iter=5)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, Y)
    assert np.abs(model.coef_).sum() <= 2.0 + 1e-12


@pytest.mark.slow
def test_scikit_learn_checks_of_classifiers():
    model = cg.ConstrainedLogisticRegression(multi_class="multinomial", tol=1e-9)
    wanted = ("classifiers", "weight", "sparse", "pickle", "fit2d", "idempotent", "dtype")
    for estimator, check in estimator_checks_generator(model):
        if any(word in str(check) for word in wanted):
            is_extreme = "class_weight" in str(check)  # weights of 1000 and 0.0001: rounding allows no tighter gap
            check(estimator.set_params(tol=1e-6) if is_extreme else estimator)


def test_other_targets_are_checked_as_the_first_ones_were():
    X, ball = np.eye(4), cg.constraints.L1Ball(1.0)
    problem = cg.SoftmaxProblem(X, [0, 1, 2, 0], ball, intercept=True)
    with pytest.raises(ValueError, match="needs samples of all 3 classes; class 2 has none"):
        problem.with_targets([0, 1, 1, 0])
    without = cg.SoftmaxProblem(X, [0, 1, 2, 0], ball)
    assert without.with_targets([0, 1, 1, 0]).y.tolist() == [0, 1, 1, 0]
