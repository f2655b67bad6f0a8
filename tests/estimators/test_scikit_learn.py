"""The estimators inside scikit-learn's machinery: data frames, pipelines, searches, metadata routing."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import condgrad as cg
from condgrad import datasets

C = datasets.simulate_classification(90, 6, n_informative=3, random_state=0)
R = datasets.simulate_regression(90, 6, n_informative=3, noise=0.3, random_state=0)
NAMES = [f"x{k}" for k in range(6)]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pytest.importorskip("polars").DataFrame(X, schema=NAMES),
}
WEIGHT = np.random.default_rng(0).uniform(0.2, 3.0, 90)
MODELS = [
    cg.ConstrainedClassifier("squared-hinge", radius=1.0),
    cg.ConstrainedRegressor("huber", radius=1.0),
    cg.ConstrainedLogisticRegression(radius=1.0),
    cg.ConstrainedLasso(radius=1.0),
    cg.ConstrainedElasticNet(radius=1.0),
    cg.ConstrainedQuantileRegressor(radius=1.0),
    cg.SquareRootLasso(),
    cg.ConstrainedLogisticRegressionCV(radii=[0.5, 1.0], cv=2),
    cg.ConstrainedLassoCV(radii=[0.5, 1.0], cv=2),
    cg.ConstrainedClassifierCV("squared-hinge", radii=[0.5, 1.0], cv=2),
    cg.ConstrainedRegressorCV("huber", radii=[0.5, 1.0], cv=2),
    cg.ConstrainedElasticNetCV(radii=[0.5, 1.0], cv=2),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def data_for(model):
    return C if sklearn.base.is_classifier(model) else R


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@every_model
@pytest.mark.parametrize("kind", FRAMES)
def test_frames_give_names_and_the_model_of_their_arrays(model, kind):
    data, frame = data_for(model), FRAMES[kind]
    fitted = clone(model).fit(frame(data.X), data.y)
    assert list(fitted.feature_names_in_) == NAMES and fitted.n_features_in_ == 6
    plain = clone(model).fit(data.X, data.y)
    np.testing.assert_allclose(fitted.coef_, plain.coef_, atol=1e-4)  # the columns of a frame lie apart
    np.testing.assert_allclose(fitted.predict(frame(data.X)), plain.predict(data.X), atol=1e-3)
    swapped = frame(data.X)[NAMES[::-1]]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(swapped)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(data.X)


@every_model
def test_clones_and_pickles_give_the_same_model(model):
    data = data_for(model)
    first = clone(model).fit(data.X, data.y)
    for other in (clone(first).fit(data.X, data.y), pickle.loads(pickle.dumps(first))):
        assert other.get_params() == first.get_params()
        np.testing.assert_array_equal(other.predict(data.X), first.predict(data.X))
        assert other.gap_ == first.gap_


@every_model
def test_the_html_of_a_fitted_model_shows_its_gap(model):
    data = data_for(model)
    fitted = clone(model).fit(data.X, data.y)
    assert "Frank-Wolfe gap" in fitted._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("kind", FRAMES)
def test_set_output_reaches_a_model_at_the_end_of_a_pipeline(kind):
    pipeline = make_pipeline(StandardScaler(), cg.ConstrainedLogisticRegression(radius=1.0)).set_output(transform=kind)
    pipeline.fit(FRAMES[kind](C.X), C.y)
    assert list(pipeline[-1].feature_names_in_) == NAMES
    selector = SelectFromModel(cg.ConstrainedLasso(radius=1.0), threshold=1e-9).set_output(transform=kind)
    chosen = selector.fit_transform(FRAMES[kind](R.X), R.y)
    assert list(chosen.columns) == [NAMES[j] for j in np.flatnonzero(selector.estimator_.coef_)]


@every_model
def test_weights_are_routed_through_a_pipeline(model, routing):
    data = data_for(model)
    asks = clone(model).set_fit_request(sample_weight=True)
    pipeline = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=False)), ("model", asks)])
    pipeline.fit(data.X, data.y, sample_weight=WEIGHT)
    scaled = StandardScaler().fit_transform(data.X)
    np.testing.assert_array_equal(pipeline[-1].coef_, clone(model).fit(scaled, data.y, sample_weight=WEIGHT).coef_)
    silent = Pipeline([("model", clone(model).set_fit_request(sample_weight=None))])
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        silent.fit(data.X, data.y, sample_weight=WEIGHT)


def test_weights_are_routed_through_a_search(routing):
    model = cg.ConstrainedLasso().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"radius": [0.5, 1.0, 2.0]}, cv=3).fit(R.X, R.y, sample_weight=WEIGHT)
    best = cg.ConstrainedLasso(search.best_params_["radius"]).fit(R.X, R.y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(search.best_estimator_.coef_, best.coef_)
    scores = cross_validate(model, R.X, R.y, cv=3, params={"sample_weight": WEIGHT})
    assert scores["test_score"].shape == (3,)


def test_requests_of_partial_fit(routing):
    model = cg.ConstrainedClassifier(radius=1.0, solver="sfw", fit_intercept=False)
    model.set_partial_fit_request(classes=True, sample_weight=True)
    asked = model.get_metadata_routing().partial_fit.requests
    assert asked == {"classes": True, "sample_weight": True, "offset": None}


def test_a_search_over_losses_sets_and_solvers():
    grid = {
        "loss": ["logistic", "squared-hinge"],
        "constraint": ["l1", "l2"],
        "solver": ["auto", "pairwise", cg.solvers.FrankWolfe()],
    }
    model = cg.ConstrainedClassifier(radius=0.2, tol=1e-2)
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(C.X, C.y)
    assert search.best_score_ > 0.6 and len(search.cv_results_["params"]) == 12


def test_several_outputs_are_those_of_single_models():
    Y = np.column_stack([R.y, R.X[:, 0] - R.y, R.X[:, 1]])
    ours = cg.ConstrainedRegressor("huber", radius=1.0).fit(R.X, Y, sample_weight=WEIGHT)
    theirs = MultiOutputRegressor(cg.ConstrainedRegressor("huber", radius=1.0)).fit(R.X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(ours.predict(R.X), theirs.predict(R.X), rtol=1e-12)
    assert ours.gap_.shape == ours.intercept_.shape == (3,)
    assert ours.score(R.X, Y) == pytest.approx(theirs.score(R.X, Y), rel=1e-12)


@pytest.mark.parametrize("multi_class", ["ovr", "multinomial"])
def test_warm_starts_follow_the_classes(multi_class):
    y = np.argmax(C.X[:, :3], axis=1)
    model = cg.ConstrainedLogisticRegression(radius=2.0, warm_start=True, tol=1e-9, multi_class=multi_class)
    first = model.fit(C.X, y).n_iter_
    assert model.fit(C.X, y).n_iter_ < first
    assert model.fit(C.X, C.y).coef_.shape == (1, 6)  # other classes: begins anew
    assert model.fit(C.X, y).coef_.shape == (3, 6)
