"""Paths on a device, all radii and folds at once: every point is certified, and is the solution."""

import numpy as np
import pytest
from stand_in_device import devices

import condgrad as cg
from condgrad.linalg.interrupts import Interrupts
from condgrad.paths import batched
from condgrad.paths.batched import BatchedPath, BatchedPaths
from condgrad.problems.rows.choice import rows_on_device


@pytest.fixture(params=devices())
def device(request):
    return request.param()


def data(n=500, d=20):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return X, y, rng.integers(0, 3, n)


def problem_on(device, X, y, weight=None, intercept=False):
    rows = rows_on_device(X, y, cg.losses.Logistic(), weight, intercept, device)
    return cg.Problem.of_rows(rows, cg.constraints.L1Ball(1.0), intercept=intercept)


@pytest.mark.parametrize("intercept", [False, True])
def test_all_folds_and_radii_are_solved_and_certified(device, intercept, monkeypatch):
    monkeypatch.setattr(batched, "_ROWS", 100)  # curvatures from few samples, which are too rough at first
    X, y, fold = data()
    folds = [(fold != k).astype(float) for k in range(3)]
    radii = np.geomspace(0.02, 4.0, 12)
    paths = BatchedPaths([problem_on(device, X, y, v, intercept) for v in folds], cg.constraints.L1Ball, tol=1e-6)
    for path, v in zip(paths.solve(radii), folds, strict=True):
        for radius, point in zip(radii, path, strict=True):
            ball = cg.constraints.L1Ball(radius)
            problem = cg.Problem(X, y, cg.losses.Logistic(), ball, sample_weight=v, intercept=intercept)
            best = cg.minimize(problem, tol=1e-9)
            assert np.abs(point.w).sum() <= radius * (1.0 + 1e-12)
            assert point.certified_gap <= 1e-6 * problem.loss_scale()
            assert point.objective - best.objective <= point.certified_gap + 1e-12
            assert point.alpha == pytest.approx(np.abs(best.gradient).max(), abs=1e-4)
    assert paths.n_alone == 0
    assert paths.n_points < 5 * 3 * radii.size


def test_models_of_few_features_find_those_they_lack(device, monkeypatch):
    monkeypatch.setattr(batched, "_ALL", 4)
    monkeypatch.setattr(batched, "_FEWEST", 2)
    X, y, _ = data()
    paths = BatchedPaths([problem_on(device, X, y)], cg.constraints.L1Ball, tol=1e-6)
    (path,) = paths.solve(np.array([0.5, 2.0]))
    assert all(point.certified_gap <= 1e-6 * paths.scales[0] for point in path)


def test_points_that_are_left_are_solved_alone(device, monkeypatch):
    monkeypatch.setattr(batched, "_MOST_ROUNDS", 1)
    X, y, _ = data()
    paths = BatchedPaths([problem_on(device, X, y)], cg.constraints.L1Ball, tol=1e-6)
    (path,) = paths.solve(np.array([0.5, 2.0]))
    assert paths.n_alone == 2
    assert all(point.certified_gap <= 1e-6 * paths.scales[0] for point in path)


def test_a_path_begins_at_radius_zero(device):
    X, y, _ = data()
    problem = problem_on(device, X, y)
    assert batched.serves(problem, cg.constraints.L1Ball, "auto")
    assert not batched.serves(problem, cg.constraints.L1Ball, "fw")
    assert not batched.serves(problem, cg.constraints.L2Ball, "auto")
    with Interrupts() as interrupts:
        path = BatchedPath(problem, cg.constraints.L1Ball, tol=1e-5, interrupts=interrupts)
        (zero,) = path.advance(np.array([0.0, 1.0]))
        (one,) = path.advance(np.array([1.0]))
    assert zero.features.size == 0
    assert one.certified_gap <= 1e-5 * path.scale


def test_waves_visit_every_place_once():
    for size in (1, 2, 7, 8, 9, 100):
        waves = batched._waves(size)
        assert sorted(place for wave in waves for place in wave) == list(range(size))
