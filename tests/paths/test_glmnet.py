"""The same numbers as glmnet: what docs/coming_from.md says, against solutions that glmnet/reference.R has stored."""

import csv
from pathlib import Path

import numpy as np
import pytest

import condgrad as cg

FOLDER = Path(__file__).with_name("glmnet")
TOL = 1e-13  # of the loss: coefficients are then right to about its root
FACTORS = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.5])
FACTORS *= 6 / FACTORS.sum()  # as glmnet scales them: their sum is the number of features


def _table(name):
    with (FOLDER / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


DATA = {name: np.array([float(row[name]) for row in _table("data.csv")]) for name in _table("data.csv")[0]}
X = np.stack([DATA[f"x{j}"] for j in range(1, 7)], axis=1)
Y, WEIGHT, SIGNS = (
    DATA["y"],
    DATA["weight"],
    2.0 * DATA["label"] - 1.0,
)  # labels are -1 and 1 for paths, 0 and 1 for glmnet


def deviation(values, weight=None):
    """The standard deviation as glmnet has it: over n, not n - 1, and weighted where samples are."""
    mean = np.average(values, axis=0, weights=weight)
    return np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))


SURVIVAL = np.stack([DATA["time"], DATA["event"]], axis=1)
SCALES = deviation(X)


def theirs(model):
    """The penalties of a model of glmnet; its intercepts and coefficients: (n_penalties, n_outputs), and 6 for each."""
    rows = [row for row in _table("solutions.csv") if row["model"] == model]
    lambdas = np.unique([float(row["lambda"]) for row in rows])[::-1]
    values = np.array([[float(row[name]) for name in ("intercept", *(f"b{j}" for j in range(1, 7)))] for row in rows])
    values = values.reshape(-1, lambdas.size, 7).transpose(1, 0, 2)
    return lambdas, values[..., 0], values[..., 1:]


def agree(model, coefs, intercepts=None, k=slice(None)):
    """Compare with all penalties of a model, or with one of them: 1e-6 of the largest coefficient."""
    _, b, w = theirs(model)
    found = np.reshape(coefs, w[k].shape)
    np.testing.assert_allclose(found, w[k], rtol=1e-6, atol=1e-6 * np.abs(w[k]).max())
    if intercepts is not None:
        np.testing.assert_allclose(np.reshape(intercepts, b[k].shape), b[k], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("lasso", {}),
        ("lasso-standardized", {"standardize": True}),
        ("lasso-weights", {"sample_weight": WEIGHT}),
        ("lasso-weights-standardized", {"sample_weight": WEIGHT, "standardize": True}),
        ("lasso-factors", {"feature_weight": FACTORS}),
        ("lasso-no-intercept", {"fit_intercept": False}),
        ("lasso-no-intercept-standardized", {"fit_intercept": False, "feature_weight": SCALES}),
        ("lasso-positive", {"positive": True}),
    ],
)
def test_the_lasso(model, settings):
    lambdas, _, _ = theirs(model)
    _, coefs, info = cg.lasso_path(X, Y, alphas=lambdas, tol=TOL, **{"fit_intercept": True} | settings)
    agree(model, coefs.toarray().T, info.intercept)


@pytest.mark.parametrize(
    ("model", "settings"),
    [("net", {}), ("net-standardized", {"standardize": True}), ("net-weights", {"sample_weight": WEIGHT})],
)
def test_the_elastic_net_has_its_l2_term_divided_by_the_deviation_of_y(model, settings):
    for k, penalty in enumerate(theirs(model)[0]):
        l2 = penalty * 0.4 / deviation(Y, settings.get("sample_weight"))
        _, coefs, info = cg.lasso_path(X, Y, alphas=[0.6 * penalty], l2=l2, tol=TOL, fit_intercept=True, **settings)
        agree(model, coefs.toarray(), info.intercept, k)


@pytest.mark.parametrize("model", ["net", "net-standardized"])
def test_the_elastic_net_of_the_estimator(model):
    penalty, settings = theirs(model)[0][1], {"standardize": model != "net", "tol": 1e-11}
    ours = cg.ConstrainedElasticNet(alpha=0.6 * penalty, l2=penalty * 0.4 / deviation(Y), **settings).fit(X, Y)
    agree(model, ours.coef_, ours.intercept_, 1)


def test_excluded_features_are_left_out():
    lambdas, _, _ = theirs("lasso-excluded")
    used = np.array([0, 2, 3, 5])  # exclude = c(2, 5)
    _, found, info = cg.lasso_path(X[:, used], Y, alphas=lambdas, tol=TOL, fit_intercept=True)
    coefs = np.zeros((lambdas.size, 6))
    coefs[:, used] = found.toarray().T
    agree("lasso-excluded", coefs, info.intercept)


def test_free_features_have_a_radius():
    """The factors 0, 1, 1, 1, 1, 1 become 6 / 5 times as large, which the penalty tells."""
    lambdas, _, coefs = theirs("lasso-free")
    weights = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    for k, penalty in enumerate(lambdas):
        radius = weights @ np.abs(coefs[k, 0])
        model = cg.ConstrainedLasso(radius, feature_weight=weights, tol=1e-11).fit(X, Y)
        agree("lasso-free", model.coef_, model.intercept_, k)
        assert model.alpha_ == pytest.approx(penalty * 6 / 5, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "y", "settings"),
    [
        ("logistic", SIGNS, {}),
        ("logistic-standardized", SIGNS, {"standardize": True}),
        ("logistic-weights-factors", SIGNS, {"sample_weight": WEIGHT, "feature_weight": FACTORS}),
        ("poisson-offset", DATA["count"], {"loss": "poisson", "offset": DATA["offset"]}),
    ],
)
def test_penalties_of_other_losses(model, y, settings):
    lambdas, _, _ = theirs(model)
    _, coefs, info = cg.radius_path(X, y, alphas=lambdas, tol=TOL, fit_intercept=True, **settings)
    agree(model, coefs.toarray().T, info.intercept)


@pytest.mark.parametrize(
    ("model", "y", "settings"),
    [
        ("logistic-net", SIGNS, {}),
        ("poisson-net-offset", DATA["count"], {"loss": "poisson", "offset": DATA["offset"]}),
    ],
)
def test_elastic_nets_of_other_losses_have_a_radius_and_tell_the_penalty(model, y, settings):
    lambdas, _, coefs = theirs(model)
    for k, penalty in enumerate(lambdas):
        radius = np.abs(coefs[k, 0]).sum()
        of_path = {"radii": [radius], "l2": 0.4 * penalty, "tol": TOL, "fit_intercept": True}  # not divided by anything
        _, found, info = cg.radius_path(X, y, **of_path, **settings)
        agree(model, found.toarray(), info.intercept, k)
        assert info.alpha == pytest.approx(0.6 * penalty, rel=1e-6)


@pytest.mark.parametrize("model", ["logistic", "logistic-standardized"])
def test_logistic_regression_of_the_estimator(model):
    penalty, settings = theirs(model)[0][1], {"standardize": model != "logistic", "tol": 1e-11}
    ours = cg.ConstrainedLogisticRegression(C=1.0 / (penalty * Y.size), **settings).fit(X, DATA["label"])
    agree(model, ours.coef_, ours.intercept_, 1)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("cox", {}),
        ("cox-standardized", {"feature_weight": SCALES}),
        ("cox-weights", {"sample_weight": WEIGHT}),
    ],
)
def test_cox(model, settings):
    lambdas, _, _ = theirs(model)
    _, coefs, _ = cg.cox_path(X, SURVIVAL, alphas=lambdas, tol=TOL, **settings)
    agree(model, coefs.toarray().T)


def norm_of_rows(coefs):
    """The sum over features of the l2 norms of their coefficients for all outputs."""
    return float(np.linalg.norm(coefs, axis=0).sum())


def test_several_responses():
    lambdas, _, coefs = theirs("mgaussian")
    for k, penalty in enumerate(lambdas):
        model = cg.ConstrainedMultiTaskLasso(norm_of_rows(coefs[k]), tol=3e-11)
        model.fit(X, np.stack([Y, DATA["other"]], axis=1))
        agree("mgaussian", model.coef_, model.intercept_, k)
        assert model.alpha_ == pytest.approx(penalty, rel=1e-6)


@pytest.mark.parametrize("model", ["multinomial", "multinomial-grouped"])
def test_several_classes(model):
    lambdas, b, coefs = theirs(model)
    for k in range(lambdas.size):
        if model == "multinomial":
            ball = cg.constraints.L1Ball(float(np.abs(coefs[k]).sum()))
        else:
            ball = cg.constraints.GroupBall(np.tile(np.arange(6), 3), norm_of_rows(coefs[k]))
        problem = cg.SoftmaxProblem(X, DATA["kind"], ball, intercept=True)
        result = cg.minimize(problem, tol=TOL)
        agree(model, result.w, result.intercept - np.mean(result.intercept) + b[k].mean(), k)
