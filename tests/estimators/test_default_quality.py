"""Estimators predict as well as scikit-learn's as they come: nested cross-validation, and plain defaults.

`benchmarks/peers/default_quality.py` measures the same on more data.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import LassoCV, LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condgrad as cg
from condgrad import datasets

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # scikit-learn's solvers do not converge


def breast():
    return load_breast_cancer(return_X_y=True)


def wine():
    X, y = load_wine(return_X_y=True)
    return X, (y == 1).astype(int)


def odd_digits():
    X, y = load_digits(return_X_y=True)
    return X[:800], y[:800] % 2


def noisy():
    data = datasets.simulate_classification(200, 60, n_informative=6, random_state=0)
    return data.X, data.y


def held_out(model, X, y, n_folds=4):
    """Return predictions and, of classifiers, probabilities of samples that the model has not seen."""
    is_of_classes = hasattr(model, "predict_proba")
    cv = (StratifiedKFold if is_of_classes else KFold)(n_folds, shuffle=True, random_state=0)
    found = np.empty((y.size, 2))
    for train, test in cv.split(X, y):
        scaled = make_pipeline(StandardScaler(), model).fit(X[train], y[train])
        found[test] = scaled.predict_proba(X[test]) if is_of_classes else scaled.predict(X[test])[:, None]
    return found


def scores(model, X, y):
    chances = held_out(model, X, y)
    return accuracy_score(y, chances.argmax(axis=1)), log_loss(y, chances)


@pytest.mark.parametrize("data", [breast, wine, noisy])
def test_cross_validation_of_classes_is_not_behind(data):
    X, y = data()
    other = LogisticRegressionCV(l1_ratios=(1.0,), solver="liblinear", intercept_scaling=10.0, scoring="neg_log_loss")
    accuracy, loss = scores(cg.ConstrainedLogisticRegressionCV(), X, y)
    their_accuracy, their_loss = scores(other, X, y)
    one_sample = 1.0 / y.size
    assert accuracy >= their_accuracy - 0.005 - one_sample and loss <= their_loss + 0.01


def test_cross_validation_of_the_lasso_is_not_behind():
    X, y = load_diabetes(return_X_y=True)
    ours, theirs = (held_out(model, X, y)[:, 0] for model in (cg.ConstrainedLassoCV(), LassoCV()))
    assert np.mean((ours - y) ** 2) <= 1.01 * np.mean((theirs - y) ** 2)


@pytest.mark.parametrize("data", [breast, wine, odd_digits, noisy])
@pytest.mark.parametrize("model", [cg.ConstrainedLogisticRegression(), cg.ConstrainedClassifier("squared-hinge")])
def test_plain_classifiers_are_not_behind(model, data):
    X, y = data()
    accuracy = accuracy_score(y, held_out_classes(model, X, y))
    assert accuracy >= accuracy_score(y, held_out_classes(LogisticRegression(), X, y)) - 0.02


def held_out_classes(model, X, y):
    """Return classes of samples that the model has not seen."""
    found = np.empty_like(y)
    for train, test in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        found[test] = make_pipeline(StandardScaler(), model).fit(X[train], y[train]).predict(X[test])
    return found


@pytest.mark.parametrize("model", [cg.ConstrainedLasso(), cg.ConstrainedRegressor("huber", constraint="l2")])
def test_plain_regressors_are_not_behind(model):
    X, y = load_diabetes(return_X_y=True)
    products = np.hstack([X, *(X[:, j:] * X[:, [j]] for j in range(10))])
    for Z in (X, products):
        ours, theirs = (held_out(each, Z, y)[:, 0] for each in (model, Ridge()))
        assert np.mean((ours - y) ** 2) <= 1.05 * np.mean((theirs - y) ** 2)


def test_columns_of_different_units_do_not_end_the_search():
    X, y = load_wine(return_X_y=True)
    found = [
        cg.ConstrainedLogisticRegression().fit(X[k::2], y[k::2]).score(X[1 - k :: 2], y[1 - k :: 2]) for k in (0, 1)
    ]
    assert np.mean(found) > 0.85  # where the rate has fallen to a tenth it is 0.68


# What must not matter


MANY = datasets.simulate_regression(150, 12, n_informative=4, noise=1.0, random_state=0)
COUNT = np.random.default_rng(0).integers(0, 4, 150)


@pytest.mark.parametrize(
    ("model", "y"), [(cg.ConstrainedLasso(), MANY.y), (cg.ConstrainedLogisticRegression(), MANY.y > MANY.y.mean())]
)
def test_neither_order_nor_form_nor_repetition_of_samples_matters(model, y):
    radius = model.fit(MANY.X, y).radius_
    order = np.random.default_rng(1).permutation(150)
    assert model.fit(MANY.X[order], y[order]).radius_ == radius
    assert model.fit(scipy.sparse.csr_matrix(MANY.X), y).radius_ == radius
    assert model.fit(np.vstack([MANY.X, MANY.X]), np.tile(y, 2)).radius_ == radius
    weighted = model.fit(MANY.X, y, sample_weight=COUNT).radius_
    assert model.fit(np.repeat(MANY.X, COUNT, axis=0), np.repeat(y, COUNT)).radius_ == weighted
    assert model.fit(8.0 * MANY.X, y).radius_ == pytest.approx(radius / 8.0, rel=0.1)


@pytest.mark.parametrize("n", [2, 3, 40])
def test_few_samples_follow_the_rule(n):
    X, y = np.tile(np.eye(2), (20, 1))[:n], np.arange(n) % 2
    model = cg.ConstrainedLogisticRegression().fit(X, y)
    assert model.radius_ == pytest.approx(cg.radius_max(X, 2.0 * y - 1.0, loss="logistic", eps=0.1), rel=0.05)


def test_odd_data():
    rng = np.random.default_rng(0)
    X, rare = rng.standard_normal((300, 5)), np.arange(300) == 7
    few = rng.integers(0, 2, (400, 2)).astype(float)  # four kinds of samples
    chance = 1.0 / (1.0 + np.exp(2.0 - 4.0 * few[:, 0]))
    weight = np.where(np.arange(300) < 50, 1.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cg.ConstrainedLogisticRegression(tol=1e-4).fit(X, rare)
        cg.ConstrainedLogisticRegression().fit(few, rng.random(400) < chance)
        cg.ConstrainedLasso().fit(X, X[:, 0], sample_weight=weight)
        assert cg.ConstrainedLasso().fit(np.ones((300, 2)), X[:, 0]).radius_ == 1.0
        cg.ConstrainedRegressor("sigmoid-squared", fit_intercept=False, tol=1e-2).fit(X, (X[:, 0] > 0.0) * 1.0)
    assert np.abs(cg.ConstrainedLasso().fit(X, X @ np.arange(5.0)).coef_ - np.arange(5.0)).max() < 1e-3
