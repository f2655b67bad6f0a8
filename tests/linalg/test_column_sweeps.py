"""Columns of data that are stored by rows, and sweeps over them."""

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg.column_sweeps import columns_of, measure, sweep
from condgrad.linalg.matrix import Matrix


def make(n=60, d=40, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return scipy.sparse.random_array((n, d), density=0.2, format="csr", dtype=dtype, rng=rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [[3, 1, 17], [], [39], list(range(40))])
def test_columns_of_rows_are_those_of_the_matrix(features, dtype):
    X, features = make(dtype=dtype), np.array(features, dtype=np.int64)
    columns = columns_of(Matrix(X).rows, features, 40)
    shape = (60, features.size)
    found = scipy.sparse.csc_array((columns.data, columns.indices.astype(int), columns.indptr.astype(int)), shape=shape)
    np.testing.assert_array_equal(found.toarray(), X.toarray()[:, features])
    assert columns.data.dtype == dtype


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_a_matrix_gathers_columns_once(form):
    X = make().asformat(form)
    matrix, dense = Matrix(X), X.toarray()

    def values(features):
        columns, places = matrix.gathered(np.array(features))
        shape = (60, columns.indptr.size - 1)
        parts = (columns.data, columns.indices.astype(int), columns.indptr.astype(int))
        return columns, scipy.sparse.csc_array(parts, shape=shape).toarray()[:, places]

    first, found = values([7, 2, 30])
    np.testing.assert_array_equal(found, dense[:, [7, 2, 30]])
    again, found = values([30, 7])
    np.testing.assert_array_equal(found, dense[:, [30, 7]])
    assert again is first
    _, found = values([39, 7])  # beyond the last one that is known
    np.testing.assert_array_equal(found, dense[:, [39, 7]])


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_many_sweeps_lead_to_the_minimum_with_a_penalty(has_intercept, l2):
    X = make(200, 12)
    A, rng = X.toarray(), np.random.default_rng(1)
    d, alpha, price = rng.random(200) + 0.1, rng.standard_normal(200), rng.random(12) + 0.5
    chosen, slopes, bends = np.arange(12), np.empty(12), np.empty(12)
    columns = columns_of(Matrix(X).rows, chosen, 12)
    measure(columns, chosen, alpha, d, slopes, bends)
    np.testing.assert_allclose(slopes, A.T @ alpha, atol=1e-12)
    np.testing.assert_allclose(bends, d @ A**2, atol=1e-12)
    w, a, penalty = np.zeros(12), alpha.copy(), 0.8
    multiplier, shift = sweep(columns, chosen, d, a, bends, l2, price, w, penalty, 0.0, 300, has_intercept)
    assert multiplier == penalty  # nothing holds the norm
    np.testing.assert_allclose(a, alpha + d * (A @ w + shift), atol=1e-10)
    slopes = A.T @ a + l2 * w
    assert np.count_nonzero(w) in range(3, 12)
    np.testing.assert_allclose(slopes[w != 0.0], -penalty * (price * np.sign(w))[w != 0.0], atol=1e-8)
    # Later sweeps are over the coefficients in use, which the first sweep has found.
    assert abs(a.sum()) <= 1e-8 * np.abs(a).sum() or not has_intercept


def test_the_multiplier_follows_until_the_norm_is_one():
    X = make(200, 12)
    A, rng = X.toarray(), np.random.default_rng(1)
    d, alpha, price = rng.random(200) + 0.1, 5.0 * rng.standard_normal(200), np.full(12, 0.9)
    chosen, bends, w, a = np.arange(12), d @ A**2, np.zeros(12), alpha.copy()
    columns = columns_of(Matrix(X).rows, chosen, 12)
    multiplier, _ = sweep(columns, chosen, d, a, bends, 0.0, price, w, 1.0, 1.0, 2000, False)
    assert abs(price @ np.abs(w) - 1.0) <= 1e-8 and multiplier > 1.0
    np.testing.assert_allclose((A.T @ a)[w != 0.0], -multiplier * (price * np.sign(w))[w != 0.0], atol=1e-7)
