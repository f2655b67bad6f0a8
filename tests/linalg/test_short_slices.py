"""Products with short sparse slices, which one loop over all entries computes: empty slices, and any range."""

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg import passes
from condgrad.linalg.matrix import Matrix


def ragged(lengths, dtype=np.float64, index=np.int32, d=40):
    rng = np.random.default_rng(1)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    indices = np.concatenate([np.sort(rng.permutation(d)[:length]) for length in lengths]).astype(index)
    return scipy.sparse.csr_matrix(
        (rng.standard_normal(indices.size).astype(dtype), indices, indptr), (len(lengths), d)
    )


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "lengths",
    [[3, 0, 5, 1], [0, 0, 2], [2, 0, 0], [0, 0, 0], [0], [7], [40, 0, 1, 40, 2, 0], [30] * 5, [0, 40, 0, 0, 3]],
)
def test_products_are_those_of_single_slices_and_the_same_in_every_range(lengths, dtype, index):
    X = ragged(lengths, dtype, index)
    rows, v = Matrix(X).rows, np.random.default_rng(2).standard_normal(40)
    n = len(lengths)
    one_by_one = passes.dot_chosen(rows, np.arange(n), v)
    np.testing.assert_allclose(one_by_one, X.astype(float) @ v, atol=1e-12)
    whole = np.full(n, np.nan)
    passes.dot_slices(rows, 0, v, whole)
    np.testing.assert_allclose(whole, one_by_one, rtol=1e-13, atol=1e-14)
    for first in range(n + 1):
        for stop in range(first, n + 1):
            out = np.full(stop - first, np.nan)
            passes.dot_slices(rows, first, v, out)
            np.testing.assert_array_equal(out, whole[first:stop])
