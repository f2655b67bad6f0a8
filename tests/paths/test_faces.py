"""Least squares with limits and rows on the Gram matrix: minimisers of each radius, and walks that begin there."""

import numpy as np
import pytest
from constrained_optima import optimum

import condgrad as cg
from condgrad.linalg import threads
from condgrad.paths.allowed_sets import columns_of, sets_of
from condgrad.paths.faces import FacePath, Terms
from condgrad.paths.guided_walk import FaceWalk, has_faces, walk_over

N, D = 60, 8


def data(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * rng.uniform(0.5, 2.0, D) + 1.0
    return X, X @ (rng.standard_normal(D) * (rng.random(D) < 0.6)) + 0.5 * rng.standard_normal(N) + 3.0


def some_terms(seed):
    """Return prices, limits and rows that zero satisfies, as keywords of scipy's reference."""
    rng = np.random.default_rng(1000 + seed)
    lower, upper = np.full(D, -np.inf), np.full(D, np.inf)
    lower[:4], upper[2:6] = -rng.uniform(0.0, 0.4, 4), rng.uniform(0.0, 0.4, 4)
    prices = rng.choice([1.0, 0.5, 2.0], D)
    given = {"weights": prices, "lower": lower, "upper": upper}
    if seed % 2:
        given |= {"A_ub": rng.standard_normal((2, D)), "b_ub": np.array([0.0, 0.1])}
    if seed % 3 == 0:
        given |= {"A_eq": rng.standard_normal((1, D)), "b_eq": np.zeros(1)}
    return given


def as_terms(weights, lower, upper, A_ub=None, b_ub=None, A_eq=None, b_eq=None):
    A = np.vstack([np.zeros((0, D)), *(part for part in (A_ub, A_eq) if part is not None)])
    high = np.concatenate([np.zeros(0), *(part for part in (b_ub, b_eq) if part is not None)])
    low = np.concatenate(
        [np.zeros(0) if b_ub is None else np.full(b_ub.size, -np.inf), np.zeros(0) if b_eq is None else b_eq]
    )
    return Terms(weights, lower, upper, A, low, high)


def test_each_radius_has_its_minimiser():
    """Corrections of faces need not end, but where they do, the point is the minimiser."""
    n_found = 0
    for seed in range(12):
        X, y = data(seed)
        given, Z, z = some_terms(seed), X - X.mean(axis=0), y - y.mean()
        faces = FacePath(Z.T @ Z / N, Z.T @ z / N, as_terms(**given))
        for radius in (0.1, 0.4, 0.8, 1.6, 5.0):
            w = faces.at_radius(radius)
            if w is not None:
                n_found += 1
                assert faces.terms.inside(w, radius) is not None
                best, _ = optimum(X, y, cg.losses.Squared(), radius=radius, **given)
                assert 0.5 * np.mean((z - Z @ w) ** 2) == pytest.approx(best, rel=1e-7)
    assert n_found >= 40


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_a_penalty_has_the_minimiser_of_its_radius(seed):
    X, y = data(seed)
    Z, z = X - X.mean(axis=0), y - y.mean()
    faces = FacePath(Z.T @ Z / N, Z.T @ z / N, as_terms(**some_terms(seed)))
    radius = faces.largest_radius(0.2)
    w = faces.at_radius(radius)
    again = FacePath(Z.T @ Z / N, Z.T @ z / N, faces.terms)
    alpha = 0.2 * again.largest_penalty()
    for share in (0.7, 0.4, 0.2):
        other = again.at_penalty(share * again.largest_penalty())
    np.testing.assert_allclose(other, w, atol=1e-8)
    # F falls at the rate alpha as the radius grows.
    near = [0.5 * np.mean((z - Z @ again.at_radius(size)) ** 2) for size in (radius - 1e-4, radius + 1e-4)]
    assert (near[0] - near[1]) / 2e-4 == pytest.approx(alpha, rel=1e-3)


def test_points_outside_are_of_no_use():
    terms = as_terms(np.ones(D), np.full(D, -1.0), np.full(D, 1.0), A_eq=np.ones((1, D)), b_eq=np.zeros(1))
    balanced = np.zeros(D)
    balanced[:2] = 0.5, -0.5
    assert terms.inside(balanced, 1.0) is not None
    assert terms.inside(balanced, 0.9) is None  # the budget
    assert terms.inside(balanced + 1e-3, 2.0) is None  # the row
    assert terms.inside(4.0 * balanced, 9.0) is None  # limits
    plain = terms._replace(A=np.zeros((0, D)), row_low=np.zeros(0), row_high=np.zeros(0))
    assert np.abs(plain.inside(balanced * (1.0 + 1e-13), 1.0)).sum() <= 1.0


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_walks_begin_at_minimisers(l2):
    """One pass certifies each of them; rounding allows no more than that."""
    X, y = data(0)
    sets = sets_of("l1", columns_of(X), None, False, -0.3, 0.5, ["sum = 0"])
    problem = cg.Problem(X, y, cg.losses.Squared(), sets(1.0), intercept=True, l2=l2)
    walk = walk_over(problem, sets, tol=1e-9)
    assert isinstance(walk, FaceWalk)
    for radius in (0.3, 0.9, 2.0):
        result = walk.to(radius)
        assert walk.is_known and result.status is cg.Status.CONVERGED and result.n_steps == 0
        assert sets(radius).violation(result.w) <= 1e-12
    assert not has_faces(problem, sets, "pairwise") and not has_faces(problem, cg.constraints.L1Ball, "auto")
    curved = cg.Problem(X, y, cg.losses.Huber(), sets(1.0), intercept=True)
    assert not has_faces(curved, sets, "auto")


def test_a_walk_without_faces_goes_on_from_what_minimize_finds(monkeypatch):
    X, y = data(1)
    settings = {"lower": -0.2, "upper": 0.3, "fit_intercept": True, "radii": [0.2, 0.6, 1.5], "tol": 1e-9}
    _, known, _ = cg.lasso_path(X, y, **settings)
    found, calls = FacePath.at_radius, []

    def sometimes(faces, radius):
        calls.append(radius)
        return None if len(calls) == 2 else found(faces, radius)

    monkeypatch.setattr(FacePath, "at_radius", sometimes)
    _, coefs, info = cg.lasso_path(X, y, **settings)
    assert info.status is cg.Status.CONVERGED and len(calls) == 3
    np.testing.assert_allclose(coefs.toarray(), known.toarray(), atol=1e-5)


def test_one_blas_thread_ends_with_the_last_block():
    def counts():
        return [pool["num_threads"] for pool in threads._controller().info() if pool["user_api"] == "blas"]

    before = counts()
    first, second = threads.one_blas_thread(), threads.one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert set(counts()) <= {1}
    first.__exit__(None, None, None)
    assert set(counts()) <= {1}
    second.__exit__(None, None, None)
    assert counts() == before
