"""ConstrainedQuantileRegressor against linear programs: the bound of the true pinball loss holds."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.base import clone
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import condgrad as cg

RNG = np.random.default_rng(0)
N, D = 80, 4
X = RNG.standard_normal((N, D))
Y = 5.0 + X @ [2.0, -1.0, 0.5, 0.0] + (1.0 + np.abs(X[:, 1])) * RNG.standard_normal(N)
WEIGHT = RNG.uniform(0.5, 2.0, N)


def exact(q, radius, weight=None):
    """Return the least mean pinball loss over the l1 ball, as a linear program in (u, v, b+, b-, e+, e-)."""
    share = np.full(N, 1.0 / N) if weight is None else weight / weight.sum()
    ones = np.ones((N, 1))
    cost = np.concatenate([np.zeros(2 * D + 2), q * share, (1.0 - q) * share])
    A_eq = np.hstack([X, -X, ones, -ones, np.eye(N), -np.eye(N)])
    A_ub = np.concatenate([np.ones(2 * D), np.zeros(2 + 2 * N)])[None]
    return scipy.optimize.linprog(cost, A_ub, [radius], A_eq, Y, method="highs").fun


@pytest.mark.parametrize("q", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_the_bound_holds_and_is_small(q, weight):
    model = cg.ConstrainedQuantileRegressor(q, radius=1.5).fit(X, Y, weight)
    excess = mean_pinball_loss(Y, model.predict(X), alpha=q, sample_weight=weight) - exact(q, 1.5, weight)
    null = mean_pinball_loss(Y, np.full(N, np.quantile(Y, q)), alpha=q, sample_weight=weight)
    assert -1e-9 <= excess <= model.quantile_gap_ <= 1.2e-3 * null
    finer = clone(model).set_params(width=model.width_ / 100.0).fit(X, Y, weight)
    fine = mean_pinball_loss(Y, finer.predict(X), alpha=q, sample_weight=weight)
    assert fine == pytest.approx(exact(q, 1.5, weight), rel=1e-5)
    assert finer.quantile_gap_ < 0.1 * model.quantile_gap_


def test_without_a_budget_it_is_the_model_of_scikit_learn():
    known = QuantileRegressor(quantile=0.7, alpha=0.0).fit(X, Y)
    with pytest.warns(cg.RadiusWarning):
        model = cg.ConstrainedQuantileRegressor(0.7, radius=9.0, width=1e-4).fit(X, Y)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)


def test_a_wide_parabola_is_bounded_all_the_same():
    model = cg.ConstrainedQuantileRegressor(0.3, radius=1.5, width=5.0).fit(X, Y)
    excess = mean_pinball_loss(Y, model.predict(X), alpha=0.3) - exact(0.3, 1.5)
    assert excess <= model.quantile_gap_ <= 0.5 * 5.0 * 0.49 + model.gap_ + model.rounding_


def test_several_outputs_and_offsets():
    both = cg.ConstrainedQuantileRegressor(0.5, radius=1.5).fit(X, np.column_stack([Y, -Y]))
    assert both.quantile_gap_.shape == (2,) and both.coef_.shape == (2, D)
    offset = RNG.standard_normal(N)
    moved = cg.ConstrainedQuantileRegressor(0.5, radius=1.5).fit(X, Y + offset, offset=offset)
    np.testing.assert_allclose(moved.coef_, cg.ConstrainedQuantileRegressor(0.5, radius=1.5).fit(X, Y).coef_, atol=1e-4)


@pytest.mark.parametrize(("settings", "message"), [({"quantile": 1.0}, "between 0 and 1"), ({"width": 0.0}, "width")])
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        cg.ConstrainedQuantileRegressor(radius=1.0).set_params(**settings).fit(X, Y)
