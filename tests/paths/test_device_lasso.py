"""lasso_path for X on a device: the path of memory, certified on moments that are taken there."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from stand_in_device import devices

import condgrad as cg
from condgrad.paths import lasso
from condgrad.storage.device_data import DeviceData


@pytest.fixture(params=devices())
def device(request):
    return request.param()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12)) + 1.0
    X[:, 11] = 0.0  # a feature without entries
    return X, X[:, 0] - 2.0 * X[:, 3] + rng.standard_normal(300) + 3.0, rng.uniform(0.5, 2.0, 300)


SETTINGS = [
    {"radii": [0.0, 0.3, 2.0], "fit_intercept": True},
    {"alphas": [0.5, 0.05, 0.005], "fit_intercept": True},
    {"radii": [0.3, 2.0], "standardize": True},
    {"alphas": [0.5, 0.05], "standardize": True, "fit_intercept": True},
    {"alphas": [0.5, 0.05], "l2": 0.1},
    {"radii": [0.3, 2.0], "standardize": True, "l2": 0.1, "fit_intercept": True},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_path_is_that_of_memory_and_certified(data, device, settings):
    X, y, weight = data
    of_samples = {"sample_weight": weight, "offset": np.linspace(-1.0, 1.0, y.size)}
    radii, coefs, info = cg.lasso_path(DeviceData.of(X, device), y, **settings, **of_samples)
    expected, known, there = cg.lasso_path(X, y, **settings, **of_samples, tol=1e-10)
    assert info.status == cg.Status.CONVERGED
    assert_allclose(radii, expected, atol=1e-3)
    assert_allclose(coefs.toarray(), known.toarray(), atol=2e-3)
    assert_allclose(info.intercept, there.intercept, atol=2e-3)
    assert_allclose(info.alpha, there.alpha, atol=1e-4)
    values, best = info.objective, there.objective
    if "alphas" in settings:
        values, best = values + info.alpha * info.radius, best + there.alpha * there.radius
    assert (values - best <= info.gap + info.rounding + 1e-9).all()
    assert (info.relative_gap <= 1e-6).all()


def test_penalties_just_below_the_largest_are_certified(device):
    """Twenty features enter within a thousandth of alpha, where points between solved ones exceed it by a little."""
    rng, d = np.random.default_rng(0), 301
    R = np.triu(1e-3 * rng.standard_normal((d, d)), 1) + np.eye(d)
    X, y = np.sqrt(d) * R[:, :-1], np.sqrt(d) * (R[:, :20].sum(axis=1) + R[:, -1])
    _, _, info = cg.lasso_path(DeviceData.of(X, device), y, n_radii=100)
    _, _, again = cg.lasso_path(DeviceData.of(X, device), y, alphas=info.alpha)
    assert again.status is cg.Status.CONVERGED
    assert again.relative_gap.max() <= 1e-6


def test_a_default_grid_and_sparse_rows(data, device):
    X, y, _ = data
    sparse = scipy.sparse.csr_matrix(X * (X > 1.0))
    radii, coefs, info = cg.lasso_path(DeviceData.of(sparse, device), y, n_radii=5)
    expected, known, _ = cg.lasso_path(sparse, y, n_radii=5)
    assert_allclose(radii, expected, rtol=1e-3)
    assert_allclose(coefs.toarray(), known.toarray(), atol=1e-2)
    assert info.status == cg.Status.CONVERGED


def test_features_that_repeat_others(data, device):
    X, y, _ = data
    twice = np.hstack([X, X[:, :4]])
    info = cg.lasso_path(DeviceData.of(twice, device), y, radii=[1.0, 2.0])[2]
    assert info.status == cg.Status.CONVERGED
    assert_allclose(info.objective, cg.lasso_path(X, y, radii=[1.0, 2.0])[2].objective, rtol=1e-5)


def test_fewer_samples_than_features(data, device):
    X, y, _ = data
    info = cg.lasso_path(DeviceData.of(X[:7], device), y[:7], n_radii=20, fit_intercept=True)[2]
    assert info.status == cg.Status.CONVERGED
    assert_allclose(info.objective, cg.lasso_path(X[:7], y[:7], radii=info.radius, fit_intercept=True)[2].objective)


def test_a_path_ends_early_with_the_points_that_it_has(data, device):
    X, y, _ = data
    there, seen = DeviceData.of(X, device), []
    radii, coefs, info = cg.lasso_path(there, y, n_radii=9, callback=lambda point: seen.append(point) or len(seen) == 3)
    assert (info.status, radii.size, coefs.shape) == (cg.Status.STOPPED, 3, (12, 3))
    assert_allclose(seen[-1].w, coefs.toarray()[:, -1])
    radii, _, info = cg.lasso_path(there, y, n_radii=9, max_time=0.0)
    assert (info.status, radii.size) == (cg.Status.MAX_TIME, 1)
    assert info.relative_gap[0] <= 1e-6


def test_what_cannot_be_done_is_refused_in_a_sentence(data, device, monkeypatch):
    X, y, _ = data
    there = DeviceData.of(X, device)
    for settings in ({"n_radii": None}, {"engine": "randomized"}):
        with pytest.raises(ValueError, match="needs engine='exact', and n_radii"):
            cg.lasso_path(there, y, **settings)
    monkeypatch.setattr(lasso, "MOST_FEATURES", 8)
    with pytest.raises(ValueError, match="at most 8 features; got 12"):
        cg.lasso_path(there, y, n_radii=3)
    device.most_bytes = 0
    with pytest.raises(TypeError, match="memory of the device"):
        cg.lasso_path(DeviceData.of(X, device), y, n_radii=3)
