"""Passes over the data with several vectors at once: every form of the data, one thread and several."""

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg import threads
from condgrad.linalg.matrix import Matrix

RNG = np.random.default_rng(0)
N, D, K = 90, 7, 3
X = RNG.standard_normal((N, D))
X[np.abs(X) < 0.4] = 0.0
X[:, 2] = 1000.0 + RNG.standard_normal(N)  # a column that is centred
W, A = RNG.standard_normal((K, D)), RNG.standard_normal((K, N))
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
}


@pytest.mark.parametrize("is_small", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", FORMS)
def test_products_with_several_vectors(form, dtype, centred, is_small, monkeypatch):
    monkeypatch.setattr("condgrad.linalg.matrix._SMALL_PASS", np.inf if is_small else 0)
    data = X.astype(dtype)
    matrix, Z = Matrix(FORMS[form](data)), data.astype(np.float64)
    if centred:
        matrix = matrix.centred(np.full(N, 1.0 / N))
        assert matrix.shift is not None
        Z = Z - matrix.shift
    scores, gradient = matrix.dot_each(W), matrix.transpose_dot_each(A)
    assert scores.dtype == gradient.dtype == np.float64
    assert scores.flags.c_contiguous and gradient.flags.c_contiguous
    np.testing.assert_allclose(scores, W @ Z.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, A @ Z, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(matrix.dot_each(np.zeros((K, D))), np.zeros((K, N)))
    weight = np.abs(A[0])
    np.testing.assert_allclose(matrix.column_squares(weight), weight @ Z**2, rtol=1e-12)
    np.testing.assert_allclose(matrix.column_norms(weight) ** 2, weight @ Z**2, rtol=1e-12)
    rows, columns = np.array([3, 70, 5]), np.array([2, 0, 2])
    np.testing.assert_allclose(matrix.block(rows, columns), Z[rows][:, columns], rtol=1e-12)
    np.testing.assert_allclose(matrix.chosen(rows).dot_each(W), W @ Z[rows].T, rtol=1e-12, atol=1e-12)
    for c in range(K):  # one vector at a time has the same sums
        np.testing.assert_allclose(matrix.dot(W[c]), scores[c], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_threads_agree_up_to_rounding(form, centred, monkeypatch):
    monkeypatch.setattr(threads, "_MIN_WORK", 10)
    monkeypatch.setattr("condgrad.linalg.matrix._SMALL_PASS", 0)
    matrix = Matrix(FORMS[form](X))
    matrix = matrix.centred(np.full(N, 1.0 / N)) if centred else matrix
    with threads.at_most(1):
        alone = matrix.dot_each(W), matrix.transpose_dot_each(A)
    monkeypatch.setattr(threads, "n_threads", lambda: 3)
    assert len(threads.cut(N, 1000.0)) == 4
    together = matrix.dot_each(W), matrix.transpose_dot_each(A)
    for one, several in zip(alone, together, strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-12, atol=1e-9)


def test_float32_is_converted_a_block_at_a_time(monkeypatch):
    monkeypatch.setattr("condgrad.linalg.matrix._CONVERTED", 5 * D)
    single = X.astype(np.float32)
    np.testing.assert_allclose(Matrix(single).dot_each(W), W @ single.astype(np.float64).T, rtol=1e-12)
    np.testing.assert_allclose(Matrix(single).transpose_dot_each(A), A @ single.astype(np.float64), rtol=1e-12)
