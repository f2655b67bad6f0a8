"""Products of dense vectors with some of them, beside those of NumPy."""

import numpy as np
import pytest

from condgrad.linalg import few_products
from condgrad.linalg.few_products import are_few, fill_products, fill_range


def filled(vectors, h, first, room=3):
    G = np.full((len(vectors) + room, len(vectors) + room), np.nan)
    fill_products(vectors, h, first, G)
    return G


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n_few", [1, 2, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("length", [1, 1023, 1024, 2600])
def test_the_columns_and_the_rows_of_the_few_are_filled_in(kind, n_few, length):
    rng = np.random.default_rng(n_few)
    vectors, h = rng.standard_normal((15, length)).astype(kind), rng.random(length)
    for size in (n_few, n_few + 1, 15):
        first = size - n_few
        G, of_others = filled(vectors[:size], h, first), np.full((18, 18), np.nan)
        expected = (vectors[:size].astype(float) * h) @ vectors[:size].T.astype(float)
        expected[:first, :first] = np.nan  # these are known, and stay
        of_rounding = 16.0 * np.finfo(kind).eps * length  # of sums of so many terms, which are about one
        np.testing.assert_allclose(G[:size, :size], expected, rtol=0.0, atol=of_rounding)
        assert (G[first:size, :size] == G[:size, first:size].T).all()
        assert np.isnan(G[size:]).all() and np.isnan(G[:, size:]).all()
        fill_range(vectors[:size], vectors[first:size] * h.astype(kind), first, of_others, 0, size)
        np.testing.assert_array_equal(of_others[:size, :size], G[:size, :size])


def test_ranges_of_vectors_do_not_change_a_bit(monkeypatch):
    rng = np.random.default_rng(0)
    vectors, h = rng.standard_normal((13, 1700)).astype(np.float32), rng.random(1700)
    whole = filled(vectors, h, 8)
    monkeypatch.setattr(few_products.threads, "cut", lambda n, *_: np.array([0, 3, 4, 9, n]))
    np.testing.assert_array_equal(filled(vectors, h, 8), whole)


def test_many_vectors_are_left_to_a_blas():
    assert [are_few(count) for count in (1, 16, 17)] == [True, True, False]
