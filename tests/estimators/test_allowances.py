"""feature_weight, positive, lower and upper of the estimators and paths, against scipy and extended precision."""

import numpy as np
import pytest
import scipy.sparse
from certificates import LONG, Truth
from constrained_optima import optimum
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LinearRegression

import condgrad as cg

RNG = np.random.default_rng(0)
N, D = 60, 6
X = RNG.standard_normal((N, D)) + RNG.standard_normal(D)
Y = X @ np.array([3.0, -2.0, 1.0, 0.0, 0.5, -0.5]) + RNG.standard_normal(N)
LABELS = np.where(Y.mean() + RNG.standard_normal(N) < Y, 1.0, -1.0)
FREE = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 0.5])
TERMS = {
    "free": {"feature_weight": FREE},
    "weighted": {"feature_weight": FREE + 0.3},
    "positive": {"positive": True},
    "mask": {"positive": np.array([True, False, True, False, True, True])},
    "limits": {"lower": -0.4, "upper": [0.7, np.inf, 0.2, 0.3, np.inf, 0.1]},
    "all": {"feature_weight": FREE, "positive": [False, False, True, True, True, True], "upper": 0.8},
    "away from zero": {"lower": [0.2, -np.inf, -np.inf, -np.inf, 0.1, -np.inf], "upper": {1: -0.3}},
}


def as_arrays(feature_weight=None, positive=False, lower=None, upper=None):
    """Return the terms as weights, lower and upper limits."""
    low = np.full(D, -np.inf) if lower is None else np.broadcast_to(lower, D)
    if isinstance(upper, dict):
        upper = [upper.get(j, np.inf) for j in range(D)]
    low = np.where(positive, np.maximum(low, 0.0), low)
    return {"weights": feature_weight, "lower": low, "upper": np.inf if upper is None else upper}


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize(
    "model",
    [
        cg.ConstrainedLasso(1.5, tol=1e-9),
        cg.ConstrainedElasticNet(1.5, l2=0.2, tol=1e-9),
        cg.ConstrainedLogisticRegression(1.5, tol=1e-9),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators_reach_the_optimum_and_their_gap_is_true(model, terms):
    y = LABELS if isinstance(model, cg.ConstrainedLogisticRegression) else Y
    fitted = clone(model).set_params(**terms).fit(X, y)
    l2 = fitted.get_params().get("l2", 0.0)
    best, w = optimum(X, y, fitted._loss(), radius=1.5, l2=l2, **as_arrays(**terms))
    assert fitted.result_.objective == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(fitted.coef_.ravel(), w, atol=2e-3)
    truth = Truth(X.astype(LONG), y, np.ones(N), fitted._loss(), True, l2)
    excess = truth.objective(fitted.coef_.ravel()) - truth.objective(w)
    assert excess <= fitted.gap_ + fitted.rounding_ + 1e-12


def test_forms_of_data_agree():
    model = cg.ConstrainedLasso(1.5, feature_weight=FREE, lower=-1.0, tol=1e-9)
    wanted = clone(model).fit(X, Y).coef_
    for data in (np.asfortranarray(X), scipy.sparse.csr_array(X), scipy.sparse.csc_array(X)):
        np.testing.assert_allclose(clone(model).fit(data, Y).coef_, wanted, atol=1e-4)
    np.testing.assert_allclose(clone(model).fit(X.astype(np.float32), Y).coef_, wanted, atol=1e-3)


def test_with_all_features_free_it_is_least_squares():
    with pytest.warns(cg.RadiusWarning, match="does not bind"):
        fitted = cg.ConstrainedLasso(1.0, feature_weight=0.0, tol=1e-10).fit(X, Y)
    plain = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(fitted.coef_, plain.coef_, atol=1e-5)
    assert fitted.intercept_ == pytest.approx(plain.intercept_, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_limits_of_free_features_follow_the_units(scale):
    """A nearly collinear pair has coefficients far beyond the first limits."""
    pair = np.column_stack([X[:, 0], X[:, 0] + 1e-2 * X[:, 1], X[:, 2:]])
    fitted = cg.ConstrainedLasso(1.5, feature_weight=[0, 0, 1, 1, 1, 1], tol=1e-6).fit(pair, scale * Y)
    rest = scale * Y - pair[:, 2:] @ fitted.coef_[2:]
    plain = LinearRegression().fit(pair[:, :2], rest)
    np.testing.assert_allclose(fitted.coef_[:2], plain.coef_, rtol=1e-3)


def test_a_free_column_of_zeros_takes_no_part():
    data = X.copy()
    data[:, 1] = 0.0
    fitted = cg.ConstrainedLasso(1.5, feature_weight=FREE).fit(data, Y)
    assert fitted.coef_[1] == 0.0


def test_names_of_data_frames_stand_for_features():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    by_name = {"feature_weight": {"a": 0.0, "f": 2.0}, "positive": ["c", "d"], "upper": {"e": 0.1}}
    by_place = {"feature_weight": [0, 1, 1, 1, 1, 2], "positive": [False, False, True, True, False, False],
                "upper": {4: 0.1}}  # fmt: skip
    named = cg.ConstrainedLasso(1.0, **by_name).fit(frame, Y)
    np.testing.assert_allclose(named.coef_, cg.ConstrainedLasso(1.0, **by_place).fit(X, Y).coef_, atol=1e-9)
    assert list(named.feature_names_in_) == list("abcdef")
    _, coefs, _ = cg.lasso_path(frame, Y, radii=[1.0], fit_intercept=True, **by_name)
    np.testing.assert_allclose(coefs.toarray()[:, 0], named.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="upper names the feature 'ee', which X does not have"):
        cg.ConstrainedLasso(1.0, upper={"ee": 0.1}).fit(frame, Y)


def test_polars_frames_have_names_too():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({name: X[:, j] for j, name in enumerate("abcdef")})
    named = cg.ConstrainedLasso(1.0, feature_weight={"a": 0.0}).fit(frame, Y)
    plain = cg.ConstrainedLasso(1.0, feature_weight={0: 0.0}).fit(X, Y)
    np.testing.assert_allclose(named.coef_, plain.coef_, atol=1e-9)


def test_the_default_radius_belongs_to_the_features_that_cost():
    fitted = cg.ConstrainedLasso(feature_weight=FREE).fit(X, Y)
    assert 0.0 < fitted.radius_ < np.inf and (FREE * np.abs(fitted.coef_)).sum() <= fitted.radius_ * (1 + 1e-9)
    assert cg.ConstrainedLogisticRegression(positive=True, upper=0.3).fit(X, LABELS).radius_ > 0.0


@pytest.mark.parametrize("intercept", [False, True])
def test_nothing_to_explain_beside_free_features(intercept):
    model = cg.ConstrainedLasso(feature_weight=FREE, fit_intercept=intercept).fit(X, np.zeros(N))
    assert not model.coef_.any() and model.gap_ == 0.0 and model.radius_ == 1.0


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"feature_weight": -1.0}, "finite and at least 0"),
        ({"feature_weight": [1.0, 2.0]}, "one number per feature, 6; got shape"),
        ({"feature_weight": {"a": 0.0}}, "X has no names"),
        ({"lower": {7: 0.0}}, "from 0 to 5; got 7"),
        ({"upper": "much"}, "upper must hold real numbers"),
        ({"lower": np.nan}, "lower must hold numbers; got nan"),
        ({"positive": [True]}, "a mask with one of them per feature"),
        ({"positive": True, "upper": -1.0}, "must not exceed upper"),
        ({"feature_weight": {0: [1.0, 2.0]}}, "one number for each feature; got"),
        ({"radius": 0.0, "feature_weight": FREE}, "radius must be a positive number"),
        ({"rows": 5}, "rows must be sentences"),
    ],
)
def test_bad_terms_are_refused(terms, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cg.ConstrainedLasso(1.0).set_params(**terms).fit(X, Y)


def test_bad_combinations_are_refused():
    with pytest.raises(ValueError, match="need constraint='l1'"):
        cg.ConstrainedRegressor(constraint="l2", positive=True).fit(X, Y)
    with pytest.raises(ValueError, match="need constraint='l1'"):
        cg.ConstrainedRegressor(constraint="group", multi_output="joint", lower=0.0).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="a joint one"):
        cg.ConstrainedRegressor(multi_output="joint", lower=-1.0).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="partial_fit takes no free features"):
        cg.ConstrainedLasso(1.0, feature_weight=FREE, solver="sfw", fit_intercept=False).partial_fit(X, Y)


# Paths


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
def test_paths_reach_the_optima(terms):
    radii, coefs, info = cg.lasso_path(X, Y, n_radii=4, eps=0.1, fit_intercept=True, tol=1e-8, **terms)
    assert info.status is cg.Status.CONVERGED
    for k, radius in enumerate(radii):
        best, _ = optimum(X, Y, cg.losses.Squared(), radius=radius, **as_arrays(**terms))
        assert info.objective[k] == pytest.approx(best, rel=1e-6)
    assert (np.diff(info.alpha) < 1e-12).all() and (info.alpha > 0.0).all()
    fitted = cg.ConstrainedLasso(radii[2], tol=1e-9, **terms).fit(X, Y)
    np.testing.assert_allclose(coefs[:, [2]].toarray()[:, 0], fitted.coef_, atol=1e-3)


def test_alpha_is_the_rate_of_the_objective():
    """With limits and free features, too: F falls by alpha per unit of the radius."""
    terms = TERMS["all"] | {"upper": 0.3}
    step = 1e-3
    _, _, info = cg.radius_path(X, Y, loss="squared", radii=[0.7 - step, 0.7, 0.7 + step], tol=1e-12, **terms)
    rate = (info.objective[0] - info.objective[2]) / (2 * step)
    assert info.alpha[1] == pytest.approx(rate, rel=1e-2)


def test_at_radius_zero_free_features_are_all_there_is():
    _, coefs, info = cg.lasso_path(X, Y, radii=[0.0, 0.5], feature_weight=FREE, fit_intercept=True, tol=1e-9)
    plain = LinearRegression().fit(X[:, :2], Y)
    np.testing.assert_allclose(coefs.toarray()[:, 0], [*plain.coef_, 0, 0, 0, 0], atol=1e-3)
    _, other, _ = cg.radius_path(
        X, Y, loss="squared", radii=[0.0], fit_intercept=True, tol=1e-9,
        constraint=lambda r: cg.constraints.LimitedL1Ball(r, FREE, [-99.0] * D, [99.0] * D),
    )  # fmt: skip
    np.testing.assert_allclose(other.toarray()[:, 0], coefs.toarray()[:, 0], atol=1e-3)
    alpha = np.abs(X.T @ (Y - plain.predict(X[:, :2])) / N)[2:] / FREE[2:]
    assert info.alpha[0] == pytest.approx(alpha.max(), rel=1e-3)


@pytest.mark.parametrize("form", [np.asfortranarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_path_of_what_free_features_leave(form, intercept):
    """Weights (some are 0), offsets, and free columns that depend on each other."""
    weight, offset = RNG.uniform(0.0, 1.0, N) * (np.arange(N) % 5 > 0), RNG.standard_normal(N)
    data = form(np.column_stack([X, X[:, 0] - 2.0 * X[:, 1]]))
    dense = np.asarray(data.toarray() if scipy.sparse.issparse(data) else data, dtype=float)
    settings = {"sample_weight": weight, "offset": offset, "fit_intercept": intercept, "tol": 1e-7}
    radii, coefs, info = cg.lasso_path(data, Y, feature_weight=[*FREE, 0.0], n_radii=4, eps=0.1, **settings)
    assert info.status is cg.Status.CONVERGED and (np.diff(info.alpha) < 0.0).all()
    for k, radius in enumerate(radii):
        best, _ = optimum(dense, Y, cg.losses.Squared(), radius=radius, weights=[*FREE, 0.0], intercept=intercept,
                          sample_weight=weight, offset=offset)  # fmt: skip
        assert info.objective[k] == pytest.approx(best, rel=1e-6)
        w = coefs[:, [k]].toarray()[:, 0]
        errors = Y - dense @ w - offset - info.intercept[k]
        assert 0.5 * np.average(errors**2, weights=weight) == pytest.approx(info.objective[k], rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_path_with_nothing_but_copies_of_free_columns(intercept):
    data = np.column_stack([X[:, :2], X[:, 0] - 2.0 * X[:, 1], X[:, 0]])
    radii, coefs, info = cg.lasso_path(data, Y, feature_weight=[0, 0, 1, 2], n_radii=3, fit_intercept=intercept)
    assert info.status is cg.Status.CONVERGED and not radii.any()
    plain = LinearRegression(fit_intercept=intercept).fit(X[:, :2], Y)
    np.testing.assert_allclose(coefs.toarray()[:, 2], [*plain.coef_, 0.0, 0.0], atol=1e-3)


def test_weights_leave_the_exact_engine():
    weights = FREE + 0.3
    _, coefs, info = cg.lasso_path(X, Y, radii=[0.5, 2.0], feature_weight=weights, fit_intercept=True)
    _, other, _ = cg.radius_path(X, Y, loss="squared", radii=[0.5, 2.0], feature_weight=weights, fit_intercept=True)
    np.testing.assert_allclose(coefs.toarray(), other.toarray(), atol=1e-5)
    _, again, _ = cg.lasso_path(X, Y, alphas=info.alpha, feature_weight=weights, fit_intercept=True)
    np.testing.assert_allclose(again.toarray(), coefs.toarray(), atol=1e-3)


def test_paths_refuse_what_has_no_meaning():
    with pytest.raises(ValueError, match="engine='exact'"):
        cg.lasso_path(X, Y, positive=True, standardize=True)
    with pytest.raises(ValueError, match="Give radii instead"):
        cg.lasso_path(X, Y, alphas=[0.1], feature_weight=FREE)
    with pytest.raises(ValueError, match=r"no coefficients satisfy them below the radius 0\.6; got 0\.5"):
        cg.radius_path(X, Y, loss="squared", radii=[0.5, 1.0], lower=0.1)


# Cross-validation


@pytest.mark.parametrize(
    "model",
    [
        cg.ConstrainedLassoCV(n_radii=4, cv=2),
        cg.ConstrainedElasticNetCV(n_radii=4, cv=2, l2=0.1),
        cg.ConstrainedRegressorCV("huber", n_radii=4, cv=2),
        cg.ConstrainedLogisticRegressionCV(n_radii=4, cv=2),
        cg.ConstrainedClassifierCV("squared-hinge", n_radii=4, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_cross_validation_takes_the_same_terms(model):
    y = LABELS if is_classifier(model) else Y
    terms = {"feature_weight": {"a": 0.0}, "upper": {"c": 0.2}, "positive": ["d"], "rows": ["e <= d"]}
    pd = pytest.importorskip("pandas")
    fitted = clone(model).set_params(**terms).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    w = fitted.coef_.ravel()
    paid = np.abs(w[1:]).sum()
    assert paid <= fitted.radius_ * (1 + 1e-9) and w[2] <= 0.2 + 1e-9 and w[3] >= -1e-9 and w[4] <= w[3] + 1e-7
    assert abs(w[0]) > 0.3
