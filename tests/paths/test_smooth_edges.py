"""Paths of smooth losses on data where their models do not lead to the ball."""

import numpy as np
import pytest

import condgrad as cg
from condgrad.paths import smooth_engine


@pytest.mark.parametrize("seed", [285, 213])
def test_points_that_end_outside_of_the_ball_are_solved_from_inside(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 3, 5]))
    X = rng.standard_normal((n, int(rng.choice([1, 3])))) * 5.0
    y = rng.standard_normal(n) * 5.0
    radii, coefs, info = cg.radius_path(X, y, loss="huber", n_radii=5, tol=1e-4, fit_intercept=True, random_state=0)
    assert (np.abs(coefs.toarray()).sum(axis=0) <= radii * (1.0 + 1e-9)).all()
    assert (info.gap <= 1e-4 * np.abs(y).max()).all()


def simulated(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, :3].sum(axis=1) + rng.standard_normal(n) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_zero_serves_for_small_radii_and_rough_tolerances(fit_intercept):
    X, y = simulated(60, 5, 0)
    radii = [0.0, 1e-9, 1e-6, 0.5]
    _, coefs, info = cg.radius_path(X, y, radii=radii, tol=1e-3, fit_intercept=fit_intercept)
    assert info.status is cg.Status.CONVERGED
    assert info.n_nonzero[:3].tolist() == [0, 0, 0]
    assert info.n_nonzero[3] > 0
    _, coefs, info = cg.radius_path(X, y, radii=radii[1:3], tol=1e-3, fit_intercept=fit_intercept)
    assert coefs.nnz == 0
    assert info.status is cg.Status.CONVERGED


@pytest.mark.parametrize("little", [0.0, 1e-3, 5e-3])
def test_what_is_expected_of_rounding_need_not_hold(monkeypatch, little):
    monkeypatch.setattr(smooth_engine, "_ROUGH", 0.0)
    monkeypatch.setattr(smooth_engine, "_LITTLE", little)
    X, y = simulated(300, 20, 1)
    for tol in (1e-4, 1e-8, 1e-10):
        _, _, info = cg.radius_path(X, y, n_radii=20, tol=tol)
        assert info.status is cg.Status.CONVERGED
        assert (info.gap + info.rounding <= tol * np.log(2.0)).all()
