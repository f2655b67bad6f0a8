"""Estimators on a device: the same models as in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from stand_in_device import devices

import condgrad as cg
from condgrad.paths.batched import BatchedPaths
from condgrad.storage.device_data import DeviceData


@pytest.fixture(params=devices())
def device(request):
    return request.param()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=300) > 0.0, "yes", "no")
    return X, y, rng.uniform(0.5, 2.0, 300)


def test_a_classifier_is_that_of_memory(data, device):
    X, y, weight = data
    there = cg.ConstrainedLogisticRegression(radius=1.0).fit(DeviceData.of(X, device), y, weight)
    here = cg.ConstrainedLogisticRegression(radius=1.0).fit(X, y, weight)
    assert there.gap_ <= 1e-6
    assert_allclose(there.coef_, here.coef_, atol=1e-3)
    on_device = DeviceData.of(X, device)
    assert_allclose(there.decision_function(on_device), there.decision_function(X), rtol=1e-11, atol=1e-12)
    assert (there.predict(on_device) == there.predict(X)).all()
    assert there.score(on_device, y) == there.score(X, y)


def test_a_default_radius_and_a_regressor(data, device):
    X = data[0]
    y = X[:, 0] - 2.0 * X[:, 3]
    there = cg.ConstrainedRegressor(loss="huber").fit(DeviceData.of(X, device), y)
    here = cg.ConstrainedRegressor(loss="huber").fit(X, y)
    assert there.radius_ == pytest.approx(here.radius_, rel=0.3)
    assert there.score(DeviceData.of(X, device), y) > 0.8


def test_cross_validation_solves_all_folds_at_once(data, device):
    X, y, weight = data
    settings = {"radii": [0.1, 0.5, 2.0], "cv": 3, "class_weight": {"yes": 2.0}}
    there = cg.ConstrainedLogisticRegressionCV(**settings).fit(DeviceData.of(X, device), y, weight)
    here = cg.ConstrainedLogisticRegressionCV(**settings).fit(X, y, weight)
    assert_allclose(there.score_path_, here.score_path_, atol=1e-4)
    assert there.radius_ == here.radius_
    assert_allclose(there.coef_, here.coef_, atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_classes_against_the_rest_are_solved_together(data, device, fit_intercept, monkeypatch):
    X = data[0]
    y = np.argmax(X[:, :3] + np.random.default_rng(1).gumbel(size=(300, 3)), axis=1)
    solve, solved = BatchedPaths.solve_each, []
    monkeypatch.setattr(BatchedPaths, "solve_each", lambda paths, radii: solved.extend(solve(paths, radii)) or solved)
    settings = {"radius": 0.5, "fit_intercept": fit_intercept}
    there = cg.ConstrainedLogisticRegression(**settings).fit(DeviceData.of(X, device), y)
    here = cg.ConstrainedLogisticRegression(**settings).fit(X, y)
    assert len(solved) == 3
    assert [result.n_steps for result in there.result_] == [0, 0, 0]  # the common passes had solved them
    assert (there.gap_ + there.rounding_ <= 1e-6 * 0.7).all()
    assert_allclose(there.coef_, here.coef_, atol=1e-3)
    assert_allclose(there.intercept_, here.intercept_, atol=1e-3)


def test_the_time_ends_what_classes_do_together(data, device):
    X = data[0]
    y = np.argmax(X[:, :3], axis=1)
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        model = cg.ConstrainedLogisticRegression(radius=0.5, max_time=0.0).fit(DeviceData.of(X, device), y)
    assert (np.abs(model.coef_).sum(axis=1) <= 0.5 + 1e-12).all()


def test_other_scores_are_those_of_a_sample(data, device):
    X, y, _ = data
    settings = {"radii": [0.1, 1.0], "cv": 3, "scoring": "accuracy"}
    there = cg.ConstrainedLogisticRegressionCV(**settings).fit(DeviceData.of(X, device), y)
    here = cg.ConstrainedLogisticRegressionCV(**settings).fit(X, y)
    assert_allclose(there.score_path_, here.score_path_)


def test_data_in_memory_are_sent(data, device, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr("condgrad.estimators._linear_model.device_by_name", lambda name: device)
    model = cg.ConstrainedLogisticRegression(radius=1.0, device="cuda").fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.get_params()["device"] == "cuda"
    assert isinstance(model.predict(X), np.ndarray)


def test_an_unknown_device_is_refused_in_a_sentence(data):
    with pytest.raises(ValueError, match="device must be 'cuda' or None"):
        cg.ConstrainedLogisticRegression(device="gpu").fit(*data[:2])


def test_samples_of_a_device_are_rows_of_it(data, device):
    X = data[0]
    there = DeviceData.of(X, device)
    part, places = there.sample(0.1)
    assert_allclose(part.X, X[places])
    assert "300 rows of 8 features" in repr(there)
