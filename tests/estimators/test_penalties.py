"""The ways in and out by penalties: alpha, C, alpha_."""

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression
from sklearn.utils.fixes import parse_version

import condgrad as cg
from condgrad import datasets

R = datasets.simulate_regression(60, 12, n_informative=4, noise=0.3, random_state=0)
C = datasets.simulate_classification(80, 10, n_informative=4, random_state=0)
L1 = {"l1_ratio": 1} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 80)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_the_lasso_and_the_elastic_net_of_scikit_learn(form, alpha):
    X, weight = form(R.X), WEIGHT[:60]
    ours = cg.ConstrainedLasso(alpha=alpha, tol=1e-10).fit(X, R.y, sample_weight=weight)
    theirs = Lasso(alpha, tol=1e-12).fit(X, R.y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.alpha_ == pytest.approx(alpha, rel=1e-4)
    assert ours.radius_ == pytest.approx(np.abs(theirs.coef_).sum(), rel=1e-5)
    again = cg.ConstrainedLasso(ours.radius_, tol=1e-10).fit(X, R.y, sample_weight=weight)
    assert again.alpha_ == pytest.approx(alpha, rel=1e-3)
    ours = cg.ConstrainedElasticNet(alpha=0.7 * alpha, l2=0.3 * alpha, tol=1e-10).fit(X, R.y)
    theirs = ElasticNet(alpha, l1_ratio=0.7, tol=1e-12).fit(X, R.y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_c_of_scikit_learn(weight):
    ours = cg.ConstrainedLogisticRegression(C=0.5, tol=1e-10).fit(C.X, C.y, sample_weight=weight)
    theirs = LogisticRegression(C=0.5, **L1, solver="saga", tol=1e-10, max_iter=50_000)
    theirs.fit(C.X, C.y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    total = 80 if weight is None else weight.sum()
    assert 1.0 / (ours.alpha_ * total) == pytest.approx(0.5, rel=1e-4)


def test_a_large_penalty_gives_zero_with_a_certificate():
    model = cg.ConstrainedLasso(alpha=1e3).fit(R.X, R.y)
    assert not model.coef_.any() and model.intercept_ == pytest.approx(R.y.mean())
    assert model.result_.status is cg.Status.CONVERGED
    assert model.alpha_ == pytest.approx(np.abs(R.X.T @ (R.y - R.y.mean())).max() / 60)


def test_each_class_has_its_multiplier():
    y = np.argmax(C.X[:, :3], axis=1)
    model = cg.ConstrainedLogisticRegression(C=2.0, tol=1e-9).fit(C.X, y)
    np.testing.assert_allclose(model.alpha_, 1.0 / (2.0 * 80), rtol=1e-3)
    assert model.radius_.shape == (3,)
    whole = cg.ConstrainedRegressor(constraint=cg.constraints.Box(-1.0, 1.0)).fit(R.X, R.y)
    with pytest.raises(AttributeError, match="alpha_ needs a set with a radius"):
        whole.alpha_  # noqa: B018


@pytest.mark.parametrize("terms", [{"rows": "sum = 0"}, {"upper": 0.5}, {"feature_weight": {0: 0.0}}])
def test_a_penalty_goes_without_rows_limits_and_free_features(terms):
    with pytest.raises(ValueError, match="alpha and C are penalties of all features"):
        cg.ConstrainedLasso(alpha=0.1, **terms).fit(R.X, R.y)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("n", [60, 9], ids=["tall", "wide"])
def test_penalties_of_weighted_coefficients_of_one_sign(form, n):
    X, y, deviations = R.X[:n], R.y[:n], R.X[:n].std(axis=0)
    model = cg.ConstrainedLasso(alpha=0.05, standardize=True, positive=True).fit(form(X), y)
    same = cg.ConstrainedLasso(alpha=0.05, positive=True).fit((X - X.mean(axis=0)) / deviations, y)
    np.testing.assert_allclose(model.coef_ * deviations, same.coef_, atol=1e-5)
    assert model.coef_.min() == 0.0 < model.coef_.max() and model.radius_ == pytest.approx(same.radius_, rel=1e-5)
    weight = np.linspace(0.5, 2.0, 12)
    model = cg.ConstrainedLogisticRegression(C=1.0, feature_weight=weight, positive=True, tol=1e-9).fit(form(X), y > 0)
    same = cg.ConstrainedLogisticRegression(C=1.0, positive=True, tol=1e-9).fit(X / weight, y > 0)
    np.testing.assert_allclose(model.coef_ * weight, same.coef_, atol=1e-4)


def test_which_terms_go_without_a_penalty():
    with pytest.raises(ValueError, match=r"alpha with l2 .* goes without feature_weight and positive; give a radius"):
        cg.ConstrainedElasticNet(alpha=0.1, l2=0.1, positive=True).fit(R.X, R.y)
    for terms in ({"upper": 1.0}, {"feature_weight": np.arange(12.0)}, {"positive": np.arange(12) > 5}):
        with pytest.raises(ValueError, match="alpha and C are penalties of all features, and go without"):
            cg.ConstrainedLasso(alpha=0.1, **terms).fit(R.X, R.y)
