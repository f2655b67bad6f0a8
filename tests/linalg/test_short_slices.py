"""Products with sparse slices: short ones in one loop, or in the order of their lengths; ones, which are not read."""

import numpy as np
import pytest
import scipy.sparse

from condgrad import Problem
from condgrad.constraints import L1Ball
from condgrad.linalg import passes
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.sparse_slices import SparseOnes, SparseSlices
from condgrad.losses import Logistic
from condgrad.problems.rows import memory


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


@pytest.mark.parametrize("n", [256, 300, 512, 1100])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_of_different_lengths_are_used_in_their_order(n, index):
    lengths = np.random.default_rng(n).integers(0, 30, n)
    lengths[7] = 100  # longer than any that is counted
    X = ragged(lengths, index=index, d=120)
    matrix, rng = Matrix(X), np.random.default_rng(3)
    v, c = rng.standard_normal(120), rng.standard_normal(n)
    c[::5] = 0.0
    order = passes.order_of_lengths(matrix.rows.indptr)
    blocks = np.arange(n) // 256
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    np.testing.assert_array_equal(order // 256, blocks)  # within blocks
    sizes = np.minimum(lengths[order], 64)
    assert (np.diff(sizes)[np.diff(blocks) == 0] >= 0).all()
    whole = np.full(n, np.nan)
    matrix.dot_range(0, v, whole)
    np.testing.assert_allclose(whole, X @ v, atol=1e-12)
    middle = min(257, n)
    for first, stop in ((0, n), (0, 255), (1, n), (256, n), (100, 256), (255, middle), (n, n), (3, 5), (n - 1, n)):
        out, total = np.full(stop - first, np.nan), np.ones(120)
        matrix.dot_range(first, v, out)
        np.testing.assert_array_equal(out, whole[first:stop])
        matrix.add_range(first, c[first:stop], total)
        np.testing.assert_allclose(total, 1.0 + X[first:stop].T @ c[first:stop], atol=1e-12)


def test_rows_that_are_alike_long_or_few_have_no_order():
    for lengths in ([5] * 400, [30, 31] * 200, [1, 2, 3] * 10, [3] * 300 + [4] * 300):
        assert passes.order_of_lengths(Matrix(ragged(lengths)).rows.indptr) is None
    assert passes.order_of_lengths(Matrix(ragged([1, 2, 3, 4] * 100)).rows.indptr) is not None


@pytest.mark.parametrize("lengths", [[5] * 40, [3, 0, 5, 1, 0], list(range(30)) * 20, [35] * 30])
def test_entries_that_are_all_one_are_not_read(lengths):
    X = ragged(lengths)
    X.data[:] = 1.0
    ones, rng = matrix_of(X), np.random.default_rng(4)
    assert isinstance(ones.rows_of_passes, SparseOnes)
    assert ones.n_bytes == X.indices.nbytes
    assert isinstance(ones.chosen(slice(2, None)).rows_of_passes, SparseOnes)
    v, c, n = rng.standard_normal(40), rng.standard_normal(len(lengths)), len(lengths)
    whole = np.full(n, np.nan)
    ones.dot_range(0, v, whole)
    np.testing.assert_allclose(whole, X @ v, rtol=1e-13, atol=1e-13)
    for first, stop in ((0, n), (1, n), (2, n - 1)):
        out, total = np.full(stop - first, np.nan), np.ones(40)
        ones.dot_range(first, v, out)
        np.testing.assert_array_equal(out, whole[first:stop])
        ones.add_range(first, c[first:stop], total)
        np.testing.assert_allclose(total, 1.0 + X[first:stop].T @ c[first:stop], atol=1e-12)


def test_ones_in_any_order_are_not_read():
    X = scipy.sparse.csr_matrix((np.ones(3, np.float32), [2, 0, 1], [0, 2, 3]), (2, 3))
    assert isinstance(matrix_of(X).rows_of_passes, SparseOnes)
    np.testing.assert_array_equal(matrix_of(X).dot(np.array([1.0, 2.0, 4.0])), [5.0, 2.0])


def test_other_entries_are_read():
    X = ragged([2, 3, 1])
    for entry in (2.0, -1.0, 0.0):
        X.data[:] = 1.0
        X.data[4] = entry
        assert isinstance(matrix_of(X).rows_of_passes, SparseSlices)
    X.data[:] = 1.0
    twice = scipy.sparse.csr_matrix((np.ones(2), np.zeros(2, int), [0, 2]), (1, 1))  # its one entry is 2
    assert isinstance(matrix_of(twice).rows_of_passes, SparseSlices)
    assert isinstance(matrix_of(X).minus(np.ones(40)).rows_of_passes, SparseSlices)


def test_a_pass_over_large_data_of_ones():
    X = ragged([20] * 300, d=60)
    X.data[:] = 1.0
    y, w = np.where(np.arange(300) % 3 == 0, 1.0, -1.0), np.random.default_rng(5).standard_normal(60) / 100.0
    problem = Problem(X, y, Logistic(), L1Ball(1.0))
    dense = Problem(X.toarray(), y, Logistic(), L1Ball(1.0))
    small = problem.look(w)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_LARGE", 0)
        large = problem.look(w)
    for look in (small, large):
        np.testing.assert_allclose(look.gradient, dense.look(w).gradient, rtol=1e-12)
        assert look.objective == pytest.approx(dense.look(w).objective, rel=1e-13)
