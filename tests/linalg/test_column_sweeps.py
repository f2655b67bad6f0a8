"""Sweeps over columns of sparse data."""

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg.column_sweeps import measure, sweep
from condgrad.linalg.dense_slices import DenseSlices
from condgrad.linalg.matrix import Matrix


def make(n, d):
    rng = np.random.default_rng(0)
    return scipy.sparse.random_array((n, d), density=0.2, format="csr", rng=rng)


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("is_dense", [False, True])
def test_many_sweeps_lead_to_the_minimum_with_a_penalty(has_intercept, l2, is_dense):
    X = make(200, 12)
    A, rng = X.toarray(), np.random.default_rng(1)
    d, alpha, price = rng.random(200) + 0.1, rng.standard_normal(200), rng.random(12) + 0.5
    slopes, bends = np.empty(12), np.empty(12)
    columns, chosen = Matrix(X).gathered(np.arange(12))
    columns = DenseSlices(np.ascontiguousarray(A.T)) if is_dense else columns
    measure(columns, chosen, alpha, d, slopes, bends)
    np.testing.assert_allclose(slopes, A.T @ alpha, atol=1e-12)
    np.testing.assert_allclose(bends, d @ A**2, atol=1e-12)
    w, a, penalty, orders = np.zeros(12), np.zeros(200), 0.8, rng.permuted(np.tile(chosen, (300, 1)), axis=1)
    multiplier, shift = sweep(
        columns, chosen, d, a, alpha.sum(), slopes, bends, l2, price, w, penalty, 0.0, orders, has_intercept
    )
    assert multiplier == penalty  # nothing holds the norm
    np.testing.assert_allclose(a, d * (A @ w + shift), atol=1e-10)
    a += alpha
    slopes = A.T @ a + l2 * w
    assert np.count_nonzero(w) in range(3, 12)
    np.testing.assert_allclose(slopes[w != 0.0], -penalty * (price * np.sign(w))[w != 0.0], atol=1e-8)
    # Later sweeps are over the coefficients in use, which the first sweep has found.
    assert abs(a.sum()) <= 1e-8 * np.abs(a).sum() or not has_intercept


def test_the_multiplier_follows_until_the_norm_is_one():
    X = make(200, 12)
    A, rng = X.toarray(), np.random.default_rng(1)
    d, alpha, price = rng.random(200) + 0.1, 5.0 * rng.standard_normal(200), np.full(12, 0.9)
    bends, w, a = d @ A**2, np.zeros(12), np.zeros(200)
    columns, chosen = Matrix(X).gathered(np.arange(12))
    orders, slopes = np.tile(np.arange(12), (2000, 1)), A.T @ alpha
    multiplier, _ = sweep(columns, chosen, d, a, 0.0, slopes, bends, 0.0, price, w, 1.0, 1.0, orders, False)
    assert abs(price @ np.abs(w) - 1.0) <= 1e-8 and multiplier > 1.0
    np.testing.assert_allclose((slopes + A.T @ a)[w != 0.0], -multiplier * (price * np.sign(w))[w != 0.0], atol=1e-7)
