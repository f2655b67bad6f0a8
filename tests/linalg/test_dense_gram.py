"""Gram matrices of dense columns: the rough ones agree with those in double precision, or are those."""

import numpy as np
import pytest

from condgrad.linalg.dense_gram import DenseColumns
from condgrad.linalg.gram import weighted_gram
from condgrad.linalg.matrix import Matrix


def columns(order="C", dtype=np.float64, scale=1.0, k=150):
    rng = np.random.default_rng(3)
    X = np.asarray(scale * rng.standard_normal((400, 200)) + scale, dtype=dtype, order=order)
    features, values = rng.permutation(200)[:k], rng.choice([-2.5, 2.5], k)
    shift = scale * rng.standard_normal(200)
    return X, shift, features, values, rng.random(400)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("is_shifted", [False, True])
def test_a_gram_matrix_is_that_of_the_formula(order, dtype, is_shifted):
    X, shift, features, values, d = columns(order, dtype)
    shift = shift if is_shifted else np.zeros(200)
    some = np.array([3, 7, 11, 300, 20])
    for rows, weight in ((None, d), (some, d[:5])):
        A = (X[slice(None) if rows is None else rows][:, features] - shift[features]).astype(float) * values
        exact = A.T @ (weight[:, None] * A)
        held = DenseColumns(X, shift if is_shifted else None, features, values)
        size = np.sqrt(np.outer(exact.diagonal(), exact.diagonal()))
        assert (np.abs(held.gram(weight, rows, 0) - exact) <= 1e-5 * size).all()
        rough = held.rough_gram(weight, rows)
        assert (np.abs(rough - exact) <= 1e-5 * size).all()
        np.testing.assert_array_equal(rough, rough.T)
        np.linalg.cholesky(rough + 1e-5 * np.diag(rough.diagonal()))  # the ridge makes up for rounding


def test_all_columns_are_not_copied_but_give_the_same():
    X, _, _, _, d = columns()
    every = np.arange(200)
    whole = DenseColumns(X, None, every, np.ones(200))
    assert whole.are_all
    np.testing.assert_allclose(whole.gram(d, None, 0), X.T @ (d[:, None] * X), rtol=1e-12)
    turned = DenseColumns(X, None, every[::-1], np.ones(200))
    np.testing.assert_allclose(turned.gram(d, None, 0)[::-1, ::-1], X.T @ (d[:, None] * X), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e25, 1e-25])
def test_what_single_precision_cannot_hold_is_multiplied_in_double(scale):
    X, _, features, values, d = columns(scale=scale)
    held = DenseColumns(X, None, features, values)
    np.testing.assert_array_equal(held.rough_gram(d, None), held.gram(d, None, 0))


def test_few_columns_and_sparse_data_are_exact():
    import scipy.sparse

    X, _, features, values, d = columns(k=20)
    np.testing.assert_array_equal(Matrix(X).rough_gram(features, values, d), Matrix(X).gram(features, values, d))
    S = Matrix(scipy.sparse.csr_matrix(X))
    np.testing.assert_array_equal(S.rough_gram(features, values, d), S.gram(features, values, d))


def test_equal_weights_of_single_precision_data_are_multiplied_in_double_precision():
    X = columns(dtype=np.float32)[0]
    for weight in (np.full(400, 1 / 400), np.linspace(0.9, 1.1, 400) / 400):
        exact = X.astype(float).T @ (weight[:, None] * X)
        np.testing.assert_allclose(weighted_gram(X, weight, 0), exact, rtol=1e-12, atol=1e-13)
    assert np.isfinite(weighted_gram(np.float32(1e20) * X, np.full(400, 1 / 400), 0)).all()
