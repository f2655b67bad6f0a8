"""The estimators: scikit-learn's own checks, and what is ours beyond them.

Most of the time is scikit-learn's checks. Kernels are cached, so that only a first run compiles.
"""

import importlib
import itertools
import pickle

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import condgrad as cg
from condgrad import datasets

EACH = [
    cg.ConstrainedClassifier(),
    cg.ConstrainedClassifier(multi_class="multinomial"),
    cg.ConstrainedRegressor(),
    cg.ConstrainedLogisticRegression(),
    cg.ConstrainedLasso(),
    cg.ConstrainedElasticNet(),
    cg.ConstrainedQuantileRegressor(),
    cg.SquareRootLasso(),
]
# Those that validate fit several times in each check, by what the estimators above are made of.
WITH_VALIDATION = [
    cg.ConstrainedLogisticRegressionCV(n_radii=3),
    cg.ConstrainedLassoCV(n_radii=3),
    cg.ConstrainedClassifierCV(n_radii=3),
    cg.ConstrainedRegressorCV(n_radii=3),
    cg.ConstrainedElasticNetCV(n_radii=3),
]
OF_FITS = {  # checks that no other test of this file makes
    "check_estimators_dtypes", "check_estimators_nan_inf", "check_estimators_pickle", "check_fit2d_1sample",
    "check_methods_subset_invariance", "check_n_features_in", "check_parameters_default_constructible",
    "check_sample_weights_not_overwritten",
}  # fmt: skip
WITH_OTHER_PARAMETERS = [
    cg.ConstrainedClassifier(loss="squared-hinge", constraint="l2"),
    cg.ConstrainedRegressor(loss="huber"),
    cg.ConstrainedLogisticRegressionCV(),
    cg.ConstrainedLassoCV(),
    cg.ConstrainedClassifierCV(),
    cg.ConstrainedRegressorCV(),
    cg.ConstrainedElasticNetCV(),
]
TIGHT = {"tol": 1e-10}  # for comparisons to 1e-6 in coefficients
ESTIMATORS = [
    cg.ConstrainedClassifier(loss="squared-hinge", constraint="l2", **TIGHT),
    cg.ConstrainedRegressor(loss="huber", tol=1e-10),
    cg.ConstrainedLogisticRegression(**TIGHT),
    cg.ConstrainedLasso(**TIGHT),
    cg.ConstrainedElasticNet(**TIGHT),
    cg.ConstrainedLogisticRegressionCV(n_radii=3, cv=2, **TIGHT),
    cg.ConstrainedLassoCV(n_radii=3, cv=2, **TIGHT),
]
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
}
R = datasets.simulate_regression(60, 12, n_informative=4, noise=0.3, random_state=0)
C = datasets.simulate_classification(80, 10, n_informative=4, random_state=0)
NOISY = C.X[:, 0] + 0.5 * C.X[:, 1] + np.random.default_rng(2).standard_normal(80)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 80)
THREE = np.argmax(C.X[:, :3] + 0.5 * np.random.default_rng(1).standard_normal((80, 3)), axis=1)


@pytest.mark.slow
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="hundreds of fits take minutes when interpreted")
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")  # in data of scikit-learn's own
@parametrize_with_checks(EACH)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def name_of(check):
    return getattr(check, "func", check).__name__


@pytest.mark.slow
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="hundreds of fits take minutes when interpreted")
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, marks=[] if name_of(check) in OF_FITS else [pytest.mark.campaign])
        for one in WITH_VALIDATION
        for estimator, check in estimator_checks_generator(one)
    ],
    ids=lambda part: name_of(part) if callable(part) else type(part).__name__,
)
def test_scikit_learn_checks_of_validation(estimator, check):
    check(estimator)


@pytest.mark.campaign
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="hundreds of fits take minutes when interpreted")
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")
@parametrize_with_checks(WITH_OTHER_PARAMETERS)
def test_scikit_learn_checks_with_other_parameters(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_all_forms_of_data_give_one_model(estimator):
    data = C if sklearn.base.is_classifier(estimator) else R
    X = data.X.astype(np.float32).astype(np.float64)
    first = clone(estimator).fit(X, data.y)
    for form, make in FORMS.items():
        other = clone(estimator).set_params(tol=1e-10).fit(make(X), data.y)
        np.testing.assert_allclose(other.coef_, first.coef_, atol=1e-5 if form == "float32" else 1e-6, err_msg=form)
        np.testing.assert_allclose(other.intercept_, first.intercept_, atol=1e-5, err_msg=form)


def test_the_lasso_is_that_of_scikit_learn():
    penalised = Lasso(alpha=0.2, tol=1e-12).fit(R.X, R.y)
    model = cg.ConstrainedLasso(radius=np.abs(penalised.coef_).sum(), tol=1e-12).fit(R.X, R.y)
    np.testing.assert_allclose(model.coef_, penalised.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(penalised.intercept_, abs=1e-6)


@pytest.mark.parametrize(
    ("form", "intercept", "weighted", "wide"),
    [*itertools.product(("C", "F", "csr", "csc"), (True, False), (True, False), (False,)), ("C", True, True, True)],
)
def test_the_elastic_net_is_that_of_scikit_learn(form, intercept, weighted, wide):
    X, y = (R.X[:8], R.y[:8]) if wide else (R.X, R.y + 5.0)
    weight = WEIGHT[: y.size] if weighted else None
    settings = {"alpha": 0.3, "l1_ratio": 0.4, "fit_intercept": intercept, "tol": 1e-13, "max_iter": 100_000}
    penalised = ElasticNet(**settings).fit(X, y, sample_weight=weight)
    radius = np.abs(penalised.coef_).sum()
    model = cg.ConstrainedElasticNet(radius, l2=0.3 * 0.6, fit_intercept=intercept, tol=1e-11)
    model.fit(FORMS[form](X), y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, penalised.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(penalised.intercept_, abs=1e-6)
    residuals = y - X @ model.coef_ - model.intercept_
    objective = 0.5 * np.average(residuals**2, weights=weight) + 0.5 * 0.18 * model.coef_ @ model.coef_
    assert model.result_.objective == pytest.approx(objective, rel=1e-8)
    assert model.trace_.objective[-1] == pytest.approx(objective, rel=1e-6)


def test_an_elastic_net_without_l2_is_the_lasso():
    net = cg.ConstrainedElasticNet(radius=2.0, l2=0.0).fit(R.X, R.y)
    np.testing.assert_array_equal(net.coef_, cg.ConstrainedLasso(radius=2.0).fit(R.X, R.y).coef_)


def test_the_gap_is_that_of_the_problem():
    model = cg.ConstrainedLogisticRegression(radius=2.0, constraint="l2").fit(C.X, C.y)
    ball = cg.constraints.L2Ball(2.0)
    problem = cg.Problem(C.X, C.y, cg.losses.Logistic(), ball, intercept=True)
    assert model.gap_ == model.result_.gap == pytest.approx(problem.gap(model.coef_[0]), abs=1e-12)
    assert model.gap_ <= 1e-6 * np.log(2.0)
    assert len(model.trace_) >= 2
    assert model.radius_ == 2.0


def test_more_classes_are_one_problem_each():
    model = cg.ConstrainedClassifier(radius=1.5).fit(C.X, THREE)
    assert model.coef_.shape == (3, 10)
    assert len(model.result_) == len(model.trace_) == model.gap_.size == model.radius_.size == 3
    for k in range(3):
        one = cg.ConstrainedClassifier(radius=1.5).fit(C.X, k == THREE)
        np.testing.assert_array_equal(model.coef_[k], one.coef_[0])
    np.testing.assert_allclose(model.predict_proba(C.X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(C.X), model.predict_proba(C.X).argmax(axis=1))


def test_outputs_are_one_problem_each():
    Y = np.column_stack([R.y, -3.0 * R.y + R.X[:, 0]])
    model = cg.ConstrainedLasso().fit(R.X, Y)
    assert model.predict(R.X).shape == Y.shape
    for k in range(2):
        one = cg.ConstrainedLasso().fit(R.X, Y[:, k])
        np.testing.assert_array_equal(model.coef_[k], one.coef_)
        assert model.intercept_[k] == one.intercept_


def test_class_weight_weighs_samples():
    labels = np.where(C.y > 0, "yes", "no")
    named = cg.ConstrainedLogisticRegression(radius=2.0, class_weight={"yes": 3.0, "no": 1.0})
    weighed = cg.ConstrainedLogisticRegression(radius=2.0)
    named.fit(C.X, labels, sample_weight=WEIGHT)
    weighed.fit(C.X, labels, sample_weight=WEIGHT * np.where(C.y > 0, 3.0, 1.0))
    np.testing.assert_array_equal(named.coef_, weighed.coef_)
    counts = np.bincount((C.y > 0).astype(int), weights=WEIGHT)
    share = counts.sum() / (2.0 * counts)
    named.set_params(class_weight="balanced").fit(C.X, labels, sample_weight=WEIGHT)
    weighed.set_params(class_weight=dict(zip(("no", "yes"), share, strict=True)))
    weighed.fit(C.X, labels, sample_weight=WEIGHT)
    np.testing.assert_allclose(named.coef_, weighed.coef_, atol=1e-12)


def test_samples_without_weight_are_as_if_never_given():
    weight = np.where(np.arange(80) % 3 == 0, 0.0, WEIGHT)
    whole = cg.ConstrainedLogisticRegression().fit(C.X, C.y, sample_weight=weight)
    part = cg.ConstrainedLogisticRegression().fit(C.X[weight > 0], C.y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_array_equal(whole.coef_, part.coef_)


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": cg.losses.SmoothedHinge(0.5), "constraint": cg.constraints.KSparsePolytope(2, 1.5)},
        {"loss": "sigmoid-squared", "fit_intercept": False, "radius": 3.0, "solver": "pairwise"},
        {"loss": "squared", "constraint": "nonnegative-l1", "solver": cg.solvers.AwayStep()},
        {"constraint": "simplex"},
        {"constraint": "linf", "radius": 0.5},
        {"radius": 2.0, "solver": "sfw", "tol": 1e-2, "random_state": 0, "max_iter": 100_000},
    ],
    ids=str,
)
def test_any_loss_set_and_solver(settings):
    model = cg.ConstrainedClassifier(**settings)
    first = clone(model).fit(C.X, C.y)
    again = clone(model).fit(C.X, C.y)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert first.score(C.X, C.y) > 0.6
    assert hasattr(first, "predict_proba") == (settings.get("loss", "logistic") in ("logistic", "sigmoid-squared"))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(C.X), first.predict(C.X))


def test_poisson_predicts_means():
    counts = np.random.default_rng(0).poisson(np.exp(0.5 * R.X[:, 0]))
    model = cg.ConstrainedRegressor("poisson").fit(R.X, counts)
    np.testing.assert_allclose(model.predict(R.X), np.exp(R.X @ model.coef_ + model.intercept_))
    assert model.predict(R.X).mean() == pytest.approx(counts.mean(), rel=1e-6)


def test_seeds():
    settings = {"radius": 2.0, "solver": "sfw", "max_iter": 20}
    coefs = []
    for state in (3, 3, np.random.RandomState(3), np.random.RandomState(3), 4):
        model = cg.ConstrainedLogisticRegression(random_state=state, **settings)
        with pytest.warns(ConvergenceWarning, match=r"raise max_iter \(now 20\)"):
            coefs.append(model.fit(C.X, C.y).coef_)
    assert (coefs[0] == coefs[1]).all() and (coefs[2] == coefs[3]).all()
    assert (coefs[0] != coefs[4]).any()


def test_warm_starts_go_on():
    model = cg.ConstrainedLogisticRegression(radius=2.0, warm_start=True, tol=1e-9).fit(C.X, C.y)
    cold = model.n_iter_
    model.sparsify().fit(C.X, C.y)
    assert model.n_iter_ < cold
    best = cg.ConstrainedLogisticRegression(radius=1.0, tol=1e-9).fit(C.X, C.y)
    np.testing.assert_allclose(model.set_params(radius=1.0).fit(C.X, C.y).coef_, best.coef_, atol=1e-5)
    model.set_params(constraint=cg.constraints.Simplex(1.0), radius=None).fit(C.X, C.y)  # coef_ is not in it
    assert model.coef_.sum() == pytest.approx(1.0)
    model.fit(C.X[:, :5], C.y)
    assert model.coef_.shape == (1, 5)


@pytest.mark.parametrize("estimator", [cg.ConstrainedLasso(1.0), cg.ConstrainedLogisticRegression(1.0)], ids=str)
def test_sparse_coefficients(estimator):
    model = clone(estimator).fit(C.X, C.y)
    coef, answer = model.coef_.copy(), model.predict(C.X)
    assert scipy.sparse.issparse(model.sparsify().coef_)
    for X in (C.X, scipy.sparse.csr_matrix(C.X), scipy.sparse.csc_array(C.X)):
        np.testing.assert_allclose(model.predict(X), answer, rtol=1e-12)
    np.testing.assert_array_equal(model.densify().coef_, coef)
    np.testing.assert_array_equal(model.densify().coef_, coef)


def test_a_pickle_does_not_hold_the_data():
    X = np.random.default_rng(0).standard_normal((3000, 10))
    model = cg.ConstrainedLasso(radius=1.0).fit(X, X[:, 0] + X[:, 1])
    assert len(pickle.dumps(model)) < 10_000 < X.nbytes


def test_names_of_features():
    names = [f"x{k}" for k in range(12)]
    for frame in (pd.DataFrame(R.X, columns=names), pytest.importorskip("polars").DataFrame(R.X, schema=names)):
        model = cg.ConstrainedLasso(radius=2.0).fit(frame, R.y)
        assert list(model.feature_names_in_) == names
        np.testing.assert_allclose(model.predict(frame), R.X @ model.coef_ + model.intercept_)


# Warnings


def test_a_gap_above_tol_is_said_with_a_remedy():
    model = cg.ConstrainedClassifier(radius=2.0, solver="fw", max_iter=3)
    with pytest.warns(
        ConvergenceWarning, match=r"gap .* above tol .*3 of 3 problems.*raise max_iter \(now 3\)"
    ) as said:
        model.fit(C.X, THREE)
    assert len(said) == 1
    assert said[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match=r"raise max_time"):
        model.set_params(max_iter=1e9, max_time=0.0, tol=0.0).fit(C.X, THREE)
    with pytest.warns(ConvergenceWarning, match=r"rounding allows no smaller gap"):
        cg.ConstrainedLasso(radius=2.0, tol=0.0, solver="pairwise").fit(R.X, R.y)


def test_a_radius_that_does_nothing_is_pointed_out_once():
    with pytest.warns(cg.RadiusWarning, match="does not bind") as said:
        cg.ConstrainedClassifier("squared", radius=1e3).fit(C.X, THREE)
    assert len(said) == 1
    assert said[0].filename == __file__
    with pytest.warns(cg.RadiusWarning, match="next to constant"):
        cg.ConstrainedLasso(radius=1e-7).fit(R.X, R.y)
    with pytest.warns(cg.RadiusWarning, match="next to constant"):
        cg.ConstrainedLasso(radius=1e-4).fit(R.X, R.y)
    # Warnings are errors here: a radius that binds, one of the rule's own, and a set with a size of its own are silent.
    cg.ConstrainedLasso(radius=2.0).fit(R.X, R.y)
    cg.ConstrainedLasso().fit(R.X, R.y)
    cg.ConstrainedLasso().fit(R.X, np.full(60, 0.1))
    cg.ConstrainedRegressor(constraint=cg.constraints.L1Ball(1e3)).fit(R.X, R.y)


@pytest.mark.parametrize(
    ("module", "model", "y"),
    [
        ("paths.allowed_sets", cg.ConstrainedLogisticRegression(), C.y),
        ("paths.allowed_sets", cg.ConstrainedLogisticRegression(radius=1.0), THREE),
        ("paths.allowed_sets", cg.ConstrainedLogisticRegressionCV(radii=[1.0, 2.0], solver="corrective"), C.y),
        ("estimators.lasso_cv", cg.ConstrainedLassoCV(), C.y),
    ],
)
def test_an_interrupt_ends_a_fit_of_several_runs(module, model, y, monkeypatch):
    module = importlib.import_module(f"condgrad.{module}")

    def interrupted(problem, *args, **settings):
        return cg.minimize(problem, *args, **settings)._replace(status=cg.Status.INTERRUPTED)

    def interrupted_path(*args, **settings):
        *path, info = cg.lasso_path(*args, **settings)
        return *path, info._replace(status=cg.Status.INTERRUPTED)

    if hasattr(module, "minimize"):
        monkeypatch.setattr(module, "minimize", interrupted)
    else:
        monkeypatch.setattr(module, "is_tall", lambda X, n_targets: False)  # no moments, but a path for each fold
        monkeypatch.setattr(module, "lasso_path", interrupted_path)
    with pytest.raises(KeyboardInterrupt):
        model.fit(C.X, y)


def test_an_interrupted_fit_of_one_run_keeps_what_is_certified(monkeypatch):
    module = importlib.import_module("condgrad.paths.allowed_sets")

    def interrupted(problem, *args, **settings):
        result = cg.minimize(problem, *args, **settings | {"max_steps": 1})
        return result._replace(status=cg.Status.INTERRUPTED)

    monkeypatch.setattr(module, "minimize", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = cg.ConstrainedLogisticRegression(radius=2.0, tol=1e-12).fit(C.X, C.y)
    assert 0.0 < model.gap_ < 1.0


# The radius


@pytest.mark.parametrize("constraint", ["l1", "nonnegative-l1", "l2", "linf"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_radius_max_is_where_the_multiplier_has_fallen_to_its_share(loss, constraint):
    data = R if loss == "squared" else C
    radius = cg.radius_max(data.X, data.y, loss=loss, constraint=constraint, eps=0.1)
    make, f = cg.constraints.by_name(constraint), cg.losses.by_name(loss)
    problem = cg.Problem(data.X, data.y, f, make(radius), intercept=True)
    w = cg.minimize(problem, tol=1e-6).w
    unit = cg.Problem(data.X, data.y, f, make(1.0), intercept=True)
    rates = [r @ -unit.lmo(r).to_dense(r.size) for r in (problem.gradient(w), problem.gradient(0.0 * w))]
    assert rates[0] == pytest.approx(0.1 * rates[1], rel=0.1)


def test_radius_max_follows_units_and_data():
    radius = cg.radius_max(R.X, R.y)
    assert cg.radius_max(R.X, 1000.0 * R.y) == pytest.approx(1000.0 * radius, rel=0.02)
    assert cg.radius_max(0.01 * R.X, R.y) == pytest.approx(100.0 * radius, rel=0.02)
    assert cg.radius_max(scipy.sparse.csc_matrix(R.X), R.y) == pytest.approx(radius, rel=0.02)
    assert cg.radius_max(R.X, R.y, eps=0.5) < cg.radius_max(R.X, R.y, eps=0.1) < radius
    assert cg.radius_max(R.X, np.full(60, 0.3)) == 0.0
    assert cg.radius_max(R.X, R.y, loss=cg.losses.Welsch(10.0), fit_intercept=False) > 0.0
    separable = np.where(C.X[:, 0] > 0, 1.0, -1.0)
    assert 1.0 < cg.radius_max(C.X, separable, loss="logistic") < 1e6


def test_the_default_radius_of_few_samples_is_the_rule():
    X, y = R.X[:25], R.y[:25]
    model = cg.ConstrainedLasso().fit(X, y)
    assert model.radius_ == float(f"{cg.radius_max(X, y, eps=0.1):.1e}")
    assert np.abs(model.coef_).sum() == pytest.approx(model.radius_)
    assert cg.ConstrainedRegressor(constraint="simplex").fit(R.X, R.y).radius_ == 1.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cg.radius_max(R.X, R.y, eps=2.0), "eps must be a number between 0 and 1; got 2.0"),
        (lambda: cg.radius_max(R.X, R.y, constraint="simplex"), "contains zero; 'simplex' does not"),
        (lambda: cg.radius_max(R.X, R.y, constraint="lp"), r"takes more than a radius; pass .*LpBall"),
        (lambda: cg.ConstrainedLasso(radius=-1.0).fit(R.X, R.y), "radius must be a positive number"),
        (lambda: cg.ConstrainedLasso(radius=0.0).fit(R.X, R.y), "radius must be a positive number"),
        (lambda: cg.ConstrainedLasso(tol="x").fit(R.X, R.y), "tol must be a number"),
        (lambda: cg.ConstrainedElasticNet(l2=-1).fit(R.X, R.y), "l2 must be a finite number of at least 0; got -1"),
        (lambda: cg.ConstrainedRegressor("sqared").fit(R.X, R.y), "Did you mean 'squared'"),
        (lambda: cg.ConstrainedRegressor(constraint="l3").fit(R.X, R.y), "there is no constraint set named 'l3'"),
        (lambda: cg.ConstrainedRegressor(solver="fww").fit(R.X, R.y), "no solver named 'fww'"),
        (lambda: cg.ConstrainedRegressor("welsch").fit(R.X, R.y), "not convex.*use fit_intercept=False"),
        (
            lambda: cg.ConstrainedRegressor(constraint=cg.constraints.L1Ball(1.0), radius=2.0).fit(R.X, R.y),
            "radius is for a constraint given by name",
        ),
        (lambda: cg.ConstrainedClassifier().fit(C.X, np.ones(80)), "only one class"),
        (lambda: cg.ConstrainedLasso().fit(R.X, R.y, sample_weight=np.zeros(60)), "(?i)sample.weight.* zero|non-zero"),
        (lambda: cg.ConstrainedLasso().fit(R.X, R.y, sample_weight=-np.ones(60)), "must not be negative; got -1"),
        (lambda: cg.ConstrainedLassoCV(selection="x").fit(R.X, R.y), "selection must be 'best' or"),
        (lambda: cg.ConstrainedLassoCV(radii=[-1.0, 2.0]).fit(R.X, R.y), "radii must be finite and positive; got -1"),
        (lambda: cg.ConstrainedLassoCV(n_radii=0).fit(R.X, R.y), "n_radii must be a whole number of at least 1"),
        (lambda: cg.ConstrainedLassoCV(eps=1.5).fit(R.X, R.y), "eps must be a number between 0 and 1"),
        (
            lambda: cg.ConstrainedLogisticRegressionCV(constraint=cg.constraints.Box(0.0, 1.0)).fit(C.X, C.y),
            "a set with a radius, or a function",
        ),
        (lambda: cg.ConstrainedLogisticRegressionCV(cv=KFold(2)).fit(C.X, np.sort(C.y)), "leaves a class without"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_probabilities_belong_to_logits():
    with pytest.raises(AttributeError, match="predict_proba"):
        cg.ConstrainedClassifier("squared-hinge").fit(C.X, C.y).predict_proba(C.X)


# Cross-validation


@pytest.mark.parametrize("form", ["C", "csr"])
def test_lasso_cv_against_single_fits(form):
    radii, folds, X, weight = [0.5, 2.0, 6.0], KFold(3), FORMS[form](R.X), WEIGHT[:60]
    model = cg.ConstrainedLassoCV(radii=radii, cv=folds, tol=1e-10).fit(X, R.y, sample_weight=weight)
    for f, (train, test) in enumerate(folds.split(R.X)):
        for k, radius in enumerate(radii):
            one = cg.ConstrainedLasso(radius, tol=1e-10)
            one.fit(R.X[train], R.y[train], sample_weight=weight[train])
            errors = (R.y[test] - one.predict(R.X[test])) ** 2
            assert model.mse_path_[k, f] == pytest.approx(np.average(errors, weights=weight[test]), rel=1e-4)
    assert model.radius_ == radii[int(model.mse_path_.mean(axis=1).argmin())]
    best = cg.ConstrainedLasso(model.radius_, tol=1e-10).fit(R.X, R.y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-5)
    assert model.coef_path_.shape == (12, 3)
    assert model.gap_ <= 1e-10 * 0.5 * R.y.var() * 2.0


def test_logistic_cv_against_single_fits():
    radii, folds = [0.5, 2.0, 6.0], StratifiedKFold(3)
    model = cg.ConstrainedLogisticRegressionCV(radii=radii, cv=folds, tol=1e-8).fit(C.X, THREE)
    for f, (train, test) in enumerate(folds.split(C.X, THREE)):
        for k, radius in enumerate(radii):
            one = cg.ConstrainedLogisticRegression(radius, tol=1e-8).fit(C.X[train], THREE[train])
            logs = one.predict_log_proba(C.X[test])[np.arange(test.size), THREE[test]]
            assert model.score_path_[k, f] == pytest.approx(logs.mean(), rel=1e-3)
    assert model.radius_ == radii[int(model.score_path_.mean(axis=1).argmax())]
    assert model.result_[0].status is cg.Status.CONVERGED


@pytest.mark.parametrize(
    ("make", "y", "path"),
    [
        (cg.ConstrainedLassoCV, NOISY, lambda model: -model.mse_path_),
        (cg.ConstrainedLogisticRegressionCV, C.y, lambda model: model.score_path_),
    ],
)
def test_one_standard_error_threads_and_grids(make, y, path):
    best = make(n_radii=25, cv=4).fit(C.X, y)
    assert best.radii_.size == 25
    assert best.radii_[0] == pytest.approx(0.01 * best.radii_[-1])
    parallel = make(n_radii=25, cv=4, n_jobs=2).fit(C.X, y)
    np.testing.assert_array_equal(path(parallel), path(best))
    np.testing.assert_array_equal(parallel.coef_, best.coef_)
    careful = make(n_radii=25, cv=4, selection="one-standard-error").fit(C.X, y)
    scores = path(best)
    k = int(scores.mean(axis=1).argmax())
    floor = scores.mean(axis=1)[k] - scores[k].std(ddof=1) / 2.0
    assert careful.radius_ == best.radii_[np.flatnonzero(scores.mean(axis=1) >= floor)[0]] < best.radius_


def test_scoring_of_logistic_cv():
    model = cg.ConstrainedLogisticRegressionCV(n_radii=4, cv=3, scoring="accuracy")
    model.fit(C.X, C.y, sample_weight=WEIGHT)
    assert set(np.unique(model.score_path_ <= 1.0)) == {True}
    assert model.score(C.X, C.y) == np.mean(model.predict(C.X) == C.y)


# Notebooks


def test_the_picture_in_a_notebook():
    model = cg.ConstrainedLasso(radius=1.0)
    assert "<svg xmlns" not in model._repr_html_().split("condgrad-report")[-1]
    assert "condgrad-report" not in model._repr_html_()
    page = model.fit(R.X, R.y)._repr_html_()
    assert model._repr_mimebundle_()["text/html"].count("condgrad-report") == page.count("condgrad-report") == 1
    own = page.split("condgrad-report")[1]
    assert f"{model.gap_:.3g}" in own
    assert f"{np.count_nonzero(model.coef_)} of 12" in own
    assert own.count("<polyline") == 1
    several = cg.ConstrainedClassifier(radius=1.0).fit(C.X, THREE).sparsify()._repr_html_()
    assert several.split("condgrad-report")[1].count("<polyline") == 3
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
