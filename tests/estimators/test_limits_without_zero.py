"""Limits and rows that leave out zero: grids begin beyond the least norm that they allow."""

import numpy as np
import pytest
from constrained_optima import optimum
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import condgrad as cg

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 5))
Y = X @ [1.0, -0.5, 0.0, 0.8, 0.0] + 0.5 * RNG.standard_normal(80) + 2.0
LIMITS = {"lower": {0: 0.2, 4: 0.1}, "upper": {1: -0.3}}
LOWER, UPPER = np.array([0.2, -np.inf, -np.inf, -np.inf, 0.1]), np.array([np.inf, -0.3, np.inf, np.inf, np.inf])
ROWS = {"A_ub": np.array([[-1.0, -1.0, 0.0, 0.0, 0.0]]), "b_ub": [-1.0], "A_eq": np.eye(5)[[2]], "b_eq": [0.3]}


def least_norm_of_rows(weights):
    A_ub, A_eq = (np.hstack([ROWS[name], -ROWS[name]]) for name in ("A_ub", "A_eq"))
    return linprog(np.tile(weights, 2), A_ub, ROWS["b_ub"], A_eq, ROWS["b_eq"]).fun


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_cross_validation_begins_at_the_least_norm(loss):
    make = cg.ConstrainedLassoCV if loss == "squared" else cg.ConstrainedRegressorCV
    given = {} if loss == "squared" else {"loss": loss}
    model = make(n_radii=5, cv=3, tol=1e-8, **given, **LIMITS).fit(X, Y)
    assert 0.6 < model.radii_[0] < 0.8
    assert np.isfinite(model.score_path_).all() and (np.diff(model.radii_) > 0.0).all()
    best, _ = optimum(X, Y, cg.losses.by_name(loss), radius=model.radius_, lower=LOWER, upper=UPPER)
    assert model.result_.objective == pytest.approx(best, rel=1e-6)
    assert (model.coef_ >= LOWER - 1e-12).all() and (model.coef_ <= UPPER + 1e-12).all()


def test_classes_and_given_radii():
    model = cg.ConstrainedLogisticRegressionCV(radii=[0.7, 2.0], cv=3, **LIMITS).fit(X, Y > 2.0)
    assert model.radii_.tolist() == [0.7, 2.0]
    with pytest.raises(ValueError, match=r"below the radius 0\.6; got 0\.5"):
        cg.ConstrainedLogisticRegressionCV(radii=[0.5, 2.0], cv=3, **LIMITS).fit(X, Y > 2.0)


@pytest.mark.parametrize("weights", [np.ones(5), np.array([0.5, 2.0, 3.0, 1.0, 1.0])], ids=["plain", "weighted"])
def test_rows_that_leave_out_zero(weights):
    least = least_norm_of_rows(weights)
    model = cg.ConstrainedLassoCV(n_radii=4, cv=3, tol=1e-8, rows=ROWS, feature_weight=weights).fit(X, Y)
    assert least < model.radii_[0] < 1.2 * least
    best, _ = optimum(X, Y, cg.losses.Squared(), radius=model.radius_, weights=weights, **ROWS)
    assert model.result_.objective == pytest.approx(best, rel=1e-6)
    chosen = cg.ConstrainedLasso(rows=ROWS, feature_weight=weights).fit(X, Y)  # radius=None
    assert chosen.radius_ > least and chosen.gap_ <= 1e-6 * np.var(Y)


def test_a_free_feature_with_limits_costs_nothing():
    terms = {"lower": {0: 1.5}, "feature_weight": {0: 0.0}}
    model = cg.ConstrainedLassoCV(n_radii=4, cv=3, **terms).fit(X, Y)
    assert model.coef_[0] == pytest.approx(1.5) and model.radii_[0] < 0.1
    assert cg.ConstrainedLasso(**terms).fit(X, Y).coef_[0] == pytest.approx(1.5)


def test_targets_that_say_nothing():
    with pytest.warns(ConvergenceWarning, match="the loss of a constant model, 0"):  # which no limit allows
        model = cg.ConstrainedLasso(**LIMITS).fit(X, np.zeros(80))
    assert model.radius_ >= 0.6
    np.testing.assert_allclose(np.abs(model.coef_[[0, 1, 4]]), [0.2, 0.3, 0.1], atol=1e-2)
