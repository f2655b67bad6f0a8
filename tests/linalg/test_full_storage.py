"""Sparse data that store nearly all entries are arrays to kernels, whatever format they came in."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.linalg.coded_matrix import matrix_of


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_needs_less_memory_as_an_array_becomes_one(make, dtype):
    X = np.random.default_rng(0).standard_normal((300, 80)).astype(dtype)
    full = matrix_of(make(X))
    assert not full.is_sparse and full.X.dtype == dtype
    np.testing.assert_array_equal(full.X, X)
    assert full.rows_are_native == (make is scipy.sparse.csr_array)
    X[:, :60] = 0.0
    assert matrix_of(make(X)).is_sparse
    X[:, 60:] = 1.0
    assert matrix_of(make(X)).is_sparse, "ones take no memory"


def test_fits_agree_with_those_of_the_array():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 80))
    y = np.sign(X[:, 0] + rng.standard_normal(300))
    w = [
        cg.minimize(cg.Problem(given, y, cg.losses.Logistic(), cg.constraints.L1Ball(2.0)), tol=1e-9).w
        for given in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_array(X))
    ]
    np.testing.assert_allclose(w[1], w[0], atol=1e-6)
    np.testing.assert_allclose(w[2], w[0], atol=1e-6)
