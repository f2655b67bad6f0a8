"""Products of many dense vectors with a few others, beside those of NumPy."""

import numpy as np
import pytest

from condgrad.linalg import few_products
from condgrad.linalg.few_products import are_few, fill_products


def filled(vectors, few, first, room=3):
    G = np.full((len(vectors) + room, len(vectors) + room), np.nan)
    fill_products(vectors, few, first, G)
    return G


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n_few", [1, 2, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("length", [1, 511, 512, 1300])
def test_the_columns_and_the_rows_of_the_few_are_filled_in(kind, n_few, length):
    rng = np.random.default_rng(n_few)
    vectors, h = rng.standard_normal((15, length)).astype(kind), rng.random(length).astype(kind)
    for size in (n_few, n_few + 1, 15):
        first = size - n_few
        G = filled(vectors[:size], vectors[first:size] * h, first)
        expected = (vectors[:size].astype(float) * h) @ vectors[:size].T.astype(float)
        expected[:first, :first] = np.nan  # these are known, and stay
        np.testing.assert_allclose(G[:size, :size], expected, atol=1e-4 if kind is np.float32 else 1e-12)
        assert (G[first:size, :size] == G[:size, first:size].T).all()
        assert np.isnan(G[size:]).all() and np.isnan(G[:, size:]).all()


def test_ranges_of_vectors_do_not_change_a_bit(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((13, 700)).astype(np.float32)
    few = vectors[8:] * rng.random(700).astype(np.float32)
    whole = filled(vectors, few, 8)
    monkeypatch.setattr(few_products.threads, "cut", lambda n, *_: np.array([0, 3, 4, 9, n]))
    np.testing.assert_array_equal(filled(vectors, few, 8), whole)


def test_one_vector_and_many_are_left_to_a_blas():
    assert [are_few(count) for count in (1, 2, 16, 17)] == [False, True, True, False]
