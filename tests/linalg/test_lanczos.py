"""Lanczos and EntryGram: singular values of sparse matrices from both sides, their vectors, products in one pass."""

import numpy as np
import pytest

from condgrad.linalg.entries import Entries
from condgrad.linalg.entry_gram import EntryGram
from condgrad.linalg.lanczos import Lanczos


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (200, 15)])
@pytest.mark.parametrize("with_guess", [False, True])
def test_lanczos_bounds_the_norm_from_both_sides_at_every_step(shape, with_guess):
    rng = np.random.default_rng(3)
    for trial in range(5):
        G = rng.standard_normal(shape) * (rng.random(shape) < 0.3)
        norm = np.linalg.norm(G, 2)
        guess = rng.standard_normal(shape[1]) if with_guess else None
        lanczos = Lanczos((G.T @ G).dot, shape, np.random.default_rng(trial), guess)
        for _ in range(shape[1]):
            lanczos.extend(1)
            assert lanczos.largest() <= norm * (1 + 1e-12)
            assert lanczos.bound() >= norm
        assert lanczos.bound() <= norm * (1 + 1e-9)


def test_lanczos_knows_what_it_cannot_know():
    """A start that is almost orthogonal to the best vector must not be trusted: the bound stays above the norm."""
    n = 200
    values = np.concatenate([[3.0], np.linspace(2.0, 0.1, n - 1)])

    class Unlucky:
        def standard_normal(self, size):
            start = np.random.default_rng(0).standard_normal(size)
            start[0] = 1e-7  # far less than a random start has, and far more than the chance of 1e-10 allows
            return start

    lanczos = Lanczos(lambda v: values**2 * v, (n, n), Unlucky())
    for _ in range(12):
        lanczos.extend(1)
        assert lanczos.bound() >= 3.0
        if lanczos.n_steps == 5:
            assert lanczos.largest() < 2.1


def test_lanczos_pairs_are_singular_values_and_vectors():
    rng = np.random.default_rng(4)
    G = rng.standard_normal((50, 30)) @ np.diag(0.7 ** np.arange(30))
    lanczos = Lanczos((G.T @ G).dot, G.shape, rng)
    lanczos.extend(25)
    s, V = lanczos.pairs(5)
    np.testing.assert_allclose(s, np.linalg.svd(G)[1][:5], rtol=1e-10)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(G @ V, axis=0), s, rtol=1e-6)
    np.testing.assert_allclose(lanczos.values()[:5], s, rtol=1e-10)
    assert lanczos.values().size == lanczos.n_steps == 25
    assert lanczos.pairs(0)[1].shape == (30, 0)


def test_lanczos_of_zero_and_of_low_rank():
    zero = np.zeros((5, 4))
    lanczos = Lanczos((zero.T @ zero).dot, zero.shape, np.random.default_rng(0))
    lanczos.extend(3)
    assert lanczos.is_exhausted
    assert lanczos.bound() == 0.0
    G = np.outer(np.arange(1.0, 6.0), np.arange(1.0, 5.0))
    lanczos = Lanczos((G.T @ G).dot, G.shape, np.random.default_rng(0))
    lanczos.extend(4)
    assert lanczos.is_exhausted
    np.testing.assert_allclose(lanczos.bound(), np.linalg.norm(G, 2), rtol=1e-10)


def test_lanczos_claims_nothing_before_its_first_step():
    assert Lanczos(np.eye(3).dot, (3, 3), np.random.default_rng(0)).bound() == np.inf


def test_a_guess_that_cancels_the_random_start_is_left_out():
    G = np.array([[3.0], [4.0]])
    for guess in (np.ones(1), -np.ones(1)):
        lanczos = Lanczos((G.T @ G).dot, G.shape, np.random.default_rng(0), guess)
        lanczos.extend(3)
        assert lanczos.largest() == pytest.approx(5.0) and 5.0 <= lanczos.bound() < 5.0 + 1e-9


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (7, 7)])
def test_a_gram_of_entries_is_the_smaller_one(shape):
    rng = np.random.default_rng(6)
    dense = rng.standard_normal(shape) * (rng.random(shape) < 0.4)
    dense[3] = 0.0  # a row without entries
    entries = Entries(*np.nonzero(dense), shape)
    gram = EntryGram(entries, dense[entries.rows, entries.columns])
    small = dense.T if gram.is_wide else dense
    assert gram.is_wide == (shape[0] < shape[1]) and gram.shape == small.shape and gram.shape[1] == min(shape)
    x = rng.standard_normal(min(shape))
    np.testing.assert_allclose(gram.dot(x), small.T @ (small @ x), atol=1e-12)
    lanczos = Lanczos(gram.dot, gram.shape, rng)
    lanczos.extend(min(shape))
    U, s, V = gram.triplets(*lanczos.pairs(4))
    np.testing.assert_allclose(s, np.linalg.svd(dense)[1][:4], rtol=1e-10)
    np.testing.assert_allclose(dense @ V, U * s, atol=1e-7)
    np.testing.assert_allclose(dense.T @ U, V * s, atol=1e-7)


def test_the_triplets_of_a_zero_matrix_are_zero():
    entries = Entries(np.array([0, 1, 2]), np.array([0, 1, 0]), (3, 2))
    gram = EntryGram(entries, np.zeros(3))
    lanczos = Lanczos(gram.dot, gram.shape, np.random.default_rng(0))
    lanczos.extend(2)
    U, s, _ = gram.triplets(*lanczos.pairs(1))
    assert s == 0.0 and not U.any()
