"""Paths of smooth losses on data where their models do not lead to the ball."""

import numpy as np
import pytest

import condgrad as cg


@pytest.mark.parametrize("seed", [285, 213])
def test_points_that_end_outside_of_the_ball_are_solved_from_inside(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 3, 5]))
    X = rng.standard_normal((n, int(rng.choice([1, 3])))) * 5.0
    y = rng.standard_normal(n) * 5.0
    radii, coefs, info = cg.radius_path(X, y, loss="huber", n_radii=5, tol=1e-4, fit_intercept=True, random_state=0)
    assert (np.abs(coefs.toarray()).sum(axis=0) <= radii * (1.0 + 1e-9)).all()
    assert (info.gap <= 1e-4 * np.abs(y).max()).all()
