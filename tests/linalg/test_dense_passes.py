"""Passes over dense data: long slices are added four at a time, and few features are read alone."""

import numpy as np
import pytest

from condgrad.linalg import matrix as matrix_module
from condgrad.linalg.dense_slices import _LONG
from condgrad.linalg.matrix import Matrix


def matrices(n, d, seed):
    """Return dense matrices of all kinds with their entries."""
    rng = np.random.default_rng(seed)
    X, shift = rng.standard_normal((n, d)), rng.standard_normal(d)
    yield Matrix(X), X
    yield Matrix(np.asfortranarray(X)), X
    yield Matrix(X.astype(np.float32)), X.astype(np.float32).astype(np.float64)
    yield Matrix(X, shift), X - shift


@pytest.mark.parametrize("n_zero", [0, 1, 6, 11])
def test_sums_of_long_slices_are_those_of_all_with_a_coefficient(n_zero):
    for matrix, X in matrices(11, _LONG + 3, n_zero):
        c = np.random.default_rng(n_zero).standard_normal(11)
        c[:n_zero] = 0.0
        np.testing.assert_allclose(matrix.transpose_dot(c), c @ X, atol=1e-12)
        out = np.ones(X.shape[1])
        matrix.add_range(2, c[2:9], out)
        np.testing.assert_allclose(out, 1.0 + c[2:9] @ X[2:9], atol=1e-12)
    for matrix, X in matrices(_LONG, 7, n_zero):
        w = np.where(np.arange(7) < n_zero, 0.0, 1.5)
        np.testing.assert_allclose(matrix.dot(w), X @ w, atol=1e-12)


@pytest.mark.parametrize("used", [[], [3], [1, 38], list(range(40))])
def test_predictions_of_few_features_are_those_of_all(used, monkeypatch):
    monkeypatch.setattr(matrix_module, "_WIDE", 1)
    w = np.zeros(40)
    w[used] = np.random.default_rng(0).standard_normal(len(used))
    for matrix, X in matrices(9, 40, 0):
        out = np.full(6, np.nan)
        matrix.dot_range(2, w, out)
        np.testing.assert_allclose(out, X[2:8] @ w, atol=1e-13)
