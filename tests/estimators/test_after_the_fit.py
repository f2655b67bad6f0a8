"""What comes after a fit: relaxed models, plain models of scikit-learn, stability selection, frames of traces."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import condgrad as cg
from condgrad import datasets

R = datasets.simulate_regression(60, 12, n_informative=4, noise=0.3, random_state=0)
C = datasets.simulate_classification(80, 10, n_informative=4, random_state=0)
THREE = np.argmax(C.X[:, :3] + 0.5 * np.random.default_rng(1).standard_normal((80, 3)), axis=1)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 80)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_relaxed_lasso_is_least_squares_on_its_features(form):
    X, weight = form(R.X), WEIGHT[:60]
    model = cg.ConstrainedLasso(1.0, tol=1e-9).fit(X, R.y, sample_weight=weight)
    support = np.flatnonzero(model.coef_)
    assert 0 < support.size < 12
    free = cg.relaxed(model, X, R.y, sample_weight=weight)
    plain = LinearRegression().fit(R.X[:, support], R.y, sample_weight=weight)
    np.testing.assert_allclose(free.coef_[support], plain.coef_, atol=1e-6)
    assert np.array_equal(np.flatnonzero(free.coef_), support) and free.intercept_ == pytest.approx(plain.intercept_)
    assert free.gap_ <= 1e-9 * np.average(R.y**2, weights=weight)
    np.testing.assert_allclose(free.predict(X), plain.predict(R.X[:, support]), atol=1e-6)
    assert model.radius_ == 1.0 and not hasattr(free, "radius_")
    half = cg.relaxed(model, X, R.y, blend=0.5, sample_weight=weight)
    np.testing.assert_allclose(half.coef_, 0.5 * (model.coef_ + free.coef_), atol=1e-7)
    excess = half.result_.objective - free.result_.objective
    assert 0.0 < excess <= half.gap_ + half.rounding_ + free.gap_


def test_relaxed_words_keep_the_categories_of_the_fit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(["Bern", "Lyon", "Turin"], 80), "size": rng.standard_normal(80)})
    y = 2.0 * (frame["town"] == "Lyon") + frame["size"] + 0.1 * rng.standard_normal(80)
    model = cg.ConstrainedGroupLasso(1.0).fit(frame, y)
    kept, names = model.indicators_, model.feature_names_in_.copy()
    some = frame["town"] != "Bern"  # the refit sees two of three towns
    free = cg.relaxed(model, frame[some], y[some])
    assert model.indicators_ is kept and free.indicators_ is kept
    np.testing.assert_array_equal(model.feature_names_in_, names)
    assert free.coef_.shape == model.coef_.shape
    np.testing.assert_allclose(free.predict(frame)[some], y[some], atol=0.5)


def test_relaxed_classes_and_signs():
    model = cg.ConstrainedLogisticRegression(1.0, tol=1e-9).fit(C.X, C.y)
    support = np.flatnonzero(model.coef_[0])
    free = cg.relaxed(model, C.X, C.y)
    plain = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000).fit(C.X[:, support], C.y)
    np.testing.assert_allclose(free.coef_[0, support], plain.coef_[0], atol=1e-3)
    each = cg.ConstrainedLogisticRegression(0.5).fit(C.X, THREE)
    assert cg.relaxed(each, C.X, THREE).predict_proba(C.X).shape == (80, 3)
    signed = cg.ConstrainedRegressor(constraint="nonnegative-l1", radius=0.5).fit(R.X, R.y)
    assert (cg.relaxed(signed, R.X, R.y).coef_ >= 0.0).all()
    nothing = cg.ConstrainedLasso(alpha=1e3).fit(R.X, R.y)
    assert not cg.relaxed(nothing, R.X, R.y).coef_.any()


def test_a_sign_of_one_feature_binds_no_other():
    signs = np.sign(LinearRegression().fit(R.X, R.y).coef_)
    some = np.zeros(12, dtype=bool)
    some[np.argmax(signs * np.abs(R.X.T @ R.y))] = True
    model = cg.ConstrainedLasso(3.0, positive=some, tol=1e-9).fit(R.X, R.y)
    support = np.flatnonzero(model.coef_)
    plain = LinearRegression().fit(R.X[:, support], R.y)
    assert (plain.coef_ < 0.0).any() and (plain.coef_[some[support]] >= 0.0).all()
    np.testing.assert_allclose(cg.relaxed(model, R.X, R.y).coef_[support], plain.coef_, atol=1e-6)


def test_a_relaxed_model_has_the_certificates_of_its_own_coefficients():
    model = cg.ConstrainedQuantileRegressor(0.5, radius=0.5).fit(R.X, R.y)
    free = cg.relaxed(model, R.X, R.y, blend=0.5)
    assert free.quantile_gap_ >= free.gap_ > model.quantile_gap_
    root = cg.SquareRootLasso().fit(R.X, R.y)
    free = cg.relaxed(root, R.X, R.y)
    errors = R.y - free.predict(R.X)
    assert free.noise_ == pytest.approx(np.sqrt(np.mean(errors**2))) and free.noise_ < root.noise_
    value, least = (m.noise_ + m.penalty_ * np.abs(m.coef_).sum() for m in (free, root))
    assert value - least <= free.duality_gap_
    with pytest.raises(NotFittedError):
        cg.relaxed(cg.ConstrainedLasso(), R.X, R.y)


@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (cg.ConstrainedLasso(1.0), R.X, R.y),
        (cg.ConstrainedRegressor("huber", radius=1.0), R.X, np.column_stack([R.y, R.X[:, 0]])),
        (cg.ConstrainedRegressor("poisson", radius=0.5), R.X, np.random.default_rng(0).poisson(1.0, 60)),
        (cg.ConstrainedLogisticRegression(1.0), C.X, C.y),
        (cg.ConstrainedLogisticRegression(1.0), C.X, THREE),
        (cg.ConstrainedLogisticRegression(1.0, multi_class="multinomial"), C.X, THREE),
        (cg.ConstrainedClassifier("squared-hinge", radius=1.0), C.X, C.y),
        (cg.ConstrainedClassifier("squared-hinge", radius=1.0), C.X, np.array(["a", "b", "c"])[THREE]),
    ],
)
def test_plain_models_predict_the_same(model, X, y):
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    model.fit(frame, y)
    plain = cg.to_sklearn(model)
    assert type(plain).__module__.startswith("sklearn.")
    if model._estimator_type == "regressor" if hasattr(model, "_estimator_type") else y.dtype.kind == "f":
        np.testing.assert_allclose(plain.predict(frame), model.predict(frame))
    else:
        assert np.array_equal(plain.predict(frame), model.predict(frame))
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name) and hasattr(plain, name):
            np.testing.assert_allclose(getattr(plain, name)(frame), getattr(model, name)(frame), atol=1e-12)


def test_traces_become_frames():
    model = cg.ConstrainedLasso(1.0).fit(R.X, R.y)
    frame = model.trace_.to_frame()
    assert list(frame.columns) == list(model.trace_.columns) and len(frame) == len(model.trace_)
    assert frame["gap"].iloc[-1] == model.trace_.gap[-1]
    polars = pytest.importorskip("polars")
    assert isinstance(model.trace_.to_frame("polars"), polars.DataFrame)
    with pytest.raises(ValueError, match="library must be 'pandas' or 'polars'; got 'dask'"):
        model.trace_.to_frame("dask")


@pytest.mark.slow
@parametrize_with_checks([cg.StabilitySelection(n_subsamples=4, n_radii=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_stable_features_are_those_with_an_effect(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    signal = 2.0 * X[:, 3] - 2.0 * X[:, 7]
    y = signal + 0.5 * rng.standard_normal(200) if loss == "squared" else np.where(signal > 0, "yes", "no")
    settings = {"n_subsamples": 20, "n_radii": 8, "random_state": 0}
    selection = cg.StabilitySelection(loss, **settings).fit(X, y)
    assert np.flatnonzero(selection.get_support()).tolist() == [3, 7]
    assert selection.probabilities_.shape == (30, selection.radii_.size) and selection.expected_false_ > 0.0
    again = cg.StabilitySelection(loss, n_jobs=2, **settings).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(again.probabilities_, selection.probabilities_, atol=0.051)
    assert selection.transform(X).shape == (200, 2)
    model = make_pipeline(cg.StabilitySelection(**settings), LinearRegression()).fit(X, signal)
    assert model.score(X, signal) > 0.99


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cg.relaxed(cg.ConstrainedLasso(1.0).fit(R.X, R.y), R.X, R.y, blend=2.0), "between 0 and 1; got 2"),
        (
            lambda: cg.relaxed(cg.ConstrainedMultiTaskLasso(1.0).fit(R.X, R.X[:, :2]), R.X, R.X[:, :2]),
            "one problem per class or output",
        ),
        (
            lambda: cg.relaxed(cg.ConstrainedLasso(1.0, upper=1.0).fit(R.X, R.y), R.X, R.y),
            "takes no model with lower, upper or rows",
        ),
        (lambda: cg.to_sklearn(cg.ConstrainedLasso(1.0).fit(R.X, R.y, offset=R.y)), "fitted with offsets"),
        (lambda: cg.StabilitySelection(n_subsamples=3).fit(R.X, R.y), "n_subsamples must be an even number"),
        (lambda: cg.StabilitySelection(threshold=0.4).fit(R.X, R.y), "threshold must be above 0.5"),
        (lambda: cg.StabilitySelection("logistic").fit(C.X, THREE), "a loss of two classes; y has 3"),
    ],
)
@pytest.mark.filterwarnings("ignore::condgrad.RadiusWarning")
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
