"""Gram matrices of a working set that grows and shrinks: sparse atoms by rows, dense ones in single precision."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.linalg import few_products
from condgrad.linalg.gram_model import empty_model, factor
from condgrad.linalg.matrix import Matrix
from condgrad.paths import atom_rows, packed_columns
from condgrad.paths.atom_rows import AtomRows
from condgrad.paths.columns import columns_of
from condgrad.paths.gauges import PLAIN
from condgrad.paths.packed_columns import RoughColumns
from condgrad.paths.smooth_curvature import Curvature
from condgrad.paths.smooth_data import MemoryData
from condgrad.paths.working_set import Atoms
from condgrad.problems.linear import Problem

N, D = 90, 40


def columns(X, rng):
    matrix = Matrix(X)
    found = columns_of(matrix.contiguous_columns, D, matrix.n_stored, np.full(N, 1.0 / N), False, False)
    found.scale[:] = rng.uniform(0.5, 2.0, D)
    return found


def sparse_data(rng):
    X = np.where(rng.random((N, D)) < rng.random(D) ** 2, rng.standard_normal((N, D)), 0.0)
    X[5:9], X[:, 3] = 0.0, 0.0  # samples and a feature without entries
    return X


def working_sets(rng):
    """Yield features and the number of those that were there before, or 0 for a matrix of all of them."""
    features = np.empty(0, np.int64)
    for _ in range(12):
        first = features.size
        outside = np.setdiff1d(np.arange(D), features)
        features = np.concatenate([features, rng.permutation(outside)[: rng.integers(1, 7)]])
        yield features, first
        if rng.random() < 0.4:
            yield features, 0
        if rng.random() < 0.3:
            features = features[rng.random(features.size) < 0.6]


def check_working_sets(grams, X, rng, tol):
    Z = columns(X, rng)
    dense = (X.toarray() if scipy.sparse.issparse(X) else X) * Z.scale
    for features, first in working_sets(rng):
        h = np.where(rng.random(N) < 0.3, 0.0, rng.random(N))
        expected = dense[:, features].T @ (h[:, None] * dense[:, features])
        G = np.full((D, D), np.nan)
        G[:first, :first] = expected[:first, :first]
        grams.fill(G, Atoms(Z, features), features, h, first)
        np.testing.assert_allclose(G[: features.size, : features.size], expected, rtol=tol, atol=tol)
        assert np.isnan(G[features.size :]).all() and np.isnan(G[:, features.size :]).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form", [scipy.sparse.csc_matrix, scipy.sparse.csr_matrix])
def test_sparse_grams_follow_the_working_set(form, seed):
    rng = np.random.default_rng(seed)
    check_working_sets(AtomRows(N), form(sparse_data(rng)), rng, 1e-12)


def test_sparse_grams_are_sums_over_ranges_of_samples(monkeypatch):
    ranges = {N: np.array([0, 20, 21, N])}  # of samples; one range of features is enough
    monkeypatch.setattr(atom_rows.threads, "cut", lambda n, *_: ranges.get(n, np.array([0, n])))
    rng = np.random.default_rng(1)
    check_working_sets(AtomRows(N), scipy.sparse.csc_matrix(sparse_data(rng)), rng, 1e-12)


def test_sums_over_ranges_of_samples_add_no_numbers_that_nobody_has_written(monkeypatch):
    ranges = {N: np.array([0, 20, 21, N])}
    monkeypatch.setattr(atom_rows.threads, "cut", lambda n, *_: ranges.get(n, np.array([0, n])))
    rng = np.random.default_rng(1)
    Z, h, features = columns(scipy.sparse.csc_matrix(sparse_data(rng)), rng), rng.random(N), np.arange(12)
    G, grams = np.full((12, 12), np.inf), AtomRows(N)
    grams.fill(G, Atoms(Z, features), features, h, 0)
    expected, empty = G.copy(), np.empty

    def unwritten(shape, dtype=np.float64):
        memory = empty(shape, dtype)
        memory[:] = -np.inf if np.dtype(dtype).kind == "f" else 0
        return memory

    monkeypatch.setattr(atom_rows.np, "empty", unwritten)
    G[:] = np.inf  # whose sum with -inf is a warning
    grams.fill(G, Atoms(Z, features), features, h, 0)
    np.testing.assert_array_equal(G, expected)


@pytest.mark.parametrize(("block", "most"), [(1, 0), (100, 0), (10**6, 3), (10**6, 512)])
def test_dense_grams_in_single_precision_follow_the_working_set(monkeypatch, block, most):
    monkeypatch.setattr(packed_columns, "_BLOCK", block)
    monkeypatch.setattr(few_products, "_MOST", most)  # vectors up to which there is no call of a BLAS
    rng = np.random.default_rng(2)
    check_working_sets(RoughColumns(N, D), rng.standard_normal((N, D)), rng, 1e-3)


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_single_precision_refuses_what_it_cannot_hold(size):
    rng = np.random.default_rng(3)
    Z = columns(size * rng.standard_normal((N, D)), rng)
    features, h = np.arange(4), np.ones(N)
    assert not RoughColumns(N, D).fill(np.empty((4, 4)), Atoms(Z, features), features, h, 0)
    assert not RoughColumns(N, D).fill(np.empty((4, 4)), Atoms(Z, features), features, h, 2)


def test_a_working_set_without_new_atoms_is_known():
    rng = np.random.default_rng(3)
    Z, features, h, G = columns(rng.standard_normal((N, D)), rng), np.arange(4), np.ones(N), np.empty((4, 4))
    grams = RoughColumns(N, D)
    assert grams.fill(G, Atoms(Z, features), features, h, 0)
    before = G.copy()
    assert grams.fill(G, Atoms(Z, features), features, h, 4)
    np.testing.assert_array_equal(G, before)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_grams_of_few_atoms_have_all_digits(has_intercept):
    rng = np.random.default_rng(6)
    X, d = rng.standard_normal((N, 8)) + 0.1, rng.random(N)
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    problem = Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0), intercept=has_intercept)
    data = MemoryData(problem, PLAIN)
    curvature, features = Curvature(problem, data, d), np.array([3, 0, 7, 5])
    Z = X[:, features] - (np.average(X[:, features], axis=0, weights=d) if has_intercept else 0.0)
    expected, G = Z.T @ (d[:, None] * Z), np.full((6, 6), np.nan)
    curvature.fill(G, Atoms(data.columns, features[:2]), features[:2], 0)
    curvature.fill(G, Atoms(data.columns, features), features, 2)
    np.testing.assert_allclose(G[:4, :4], expected, rtol=1e-12)  # single precision would have errors of 1e-7


def model_of(G):
    model = empty_model(G.shape[0])
    model.G[:] = G
    model.append(G.shape[0])
    return model


def test_a_factor_in_single_precision():
    X = np.random.default_rng(4).standard_normal((600, 260))
    model, support = model_of(X.T @ X), np.arange(5, 255)
    factor(model, support, is_rough=True)
    U = np.triu(model.U[:250, :250])
    expected = np.linalg.cholesky(model.G[5:255, 5:255]).T
    assert model.n_support() == 250 and (model.support[:250] == support).all()
    np.testing.assert_allclose(U, expected, atol=1e-4 * expected.max())
    assert np.abs(U - expected).max() > 0.0  # it is that of single precision
    factor(model, support)
    np.testing.assert_allclose(np.triu(model.U[:250, :250]), expected, atol=1e-11 * expected.max())


def test_a_factor_of_nearly_dependent_atoms_has_all_digits():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((600, 260))
    X[:, 1] = X[:, 0] + 1e-3 * rng.standard_normal(600)
    model, support = model_of(X.T @ X), np.arange(260)
    factor(model, support, is_rough=True)
    U = np.triu(model.U)
    np.testing.assert_allclose(U.T @ U, model.G, atol=1e-10 * model.G.max())


def test_a_factor_without_atoms_has_no_support():
    model = model_of(np.eye(3))
    factor(model, np.empty(0, np.int64))
    assert model.n_support() == 0 and not model.is_in.any()
