"""Columns of data that are stored by rows."""

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg import gathered_columns
from condgrad.linalg.matrix import Matrix


def make(dtype=np.float64):
    rng = np.random.default_rng(0)
    return scipy.sparse.random_array((60, 40), density=0.2, format="csr", dtype=dtype, rng=rng)


def dense_of(columns):
    parts = (columns.data, columns.indices.astype(int), columns.indptr.astype(int))
    return scipy.sparse.csc_array(parts, shape=(60, columns.indptr.size - 1)).toarray()


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [[3, 1, 17], [], [39], list(range(40))])
def test_gathered_columns_are_those_of_the_matrix(features, dtype, form):
    X, features = make(dtype).asformat(form), np.array(features, dtype=np.int64)
    columns, places = Matrix(X).gathered(features)
    np.testing.assert_array_equal(dense_of(columns)[:, places], X.toarray()[:, features])
    assert columns.data.dtype == dtype


def test_columns_are_read_once_and_new_ones_join_them():
    X = make()
    matrix, dense, returned = Matrix(X), X.toarray(), []
    for features in ([7, 2, 30], [30, 7], [39, 7], list(range(5, 40)), [12, 2], list(range(40))):
        columns, places = matrix.gathered(np.array(features))
        returned.append((features, columns, places))
        for asked, those, there in returned:  # what came before stays as it was
            np.testing.assert_array_equal(dense_of(those)[:, there], dense[:, asked])
    n_columns = [columns.indptr.size - 1 for _, columns, _ in returned]
    assert n_columns == [3, 3, 4, 36, 36, 40]


def test_many_columns_that_nobody_asks_for_are_forgotten():
    X = make()
    matrix = Matrix(X)
    matrix.gathered(np.arange(30))
    columns, places = matrix.gathered(np.array([35, 3]))
    np.testing.assert_array_equal(dense_of(columns)[:, places], X.toarray()[:, [35, 3]])
    assert columns.indptr.size - 1 == 2


def test_threads_that_ask_at_the_same_time_get_their_own_columns(monkeypatch):
    X, find, inner = make(), gathered_columns._find, []
    matrix = Matrix(X)
    matrix.gathered(np.array([3, 7]))

    def interrupted(*arguments):
        monkeypatch.setattr(gathered_columns, "_find", find)
        inner.append(matrix.gathered(np.array([9, 3, 20])))  # another thread, while the first one reads the rows
        return find(*arguments)

    monkeypatch.setattr(gathered_columns, "_find", interrupted)
    found = [([7, 12], *matrix.gathered(np.array([7, 12]))), ([9, 3, 20], *inner[0])]
    found.append(([12, 20, 3], *matrix.gathered(np.array([12, 20, 3]))))
    for features, columns, places in found:
        np.testing.assert_array_equal(dense_of(columns)[:, places], X.toarray()[:, features])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 15, 16, 61])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_columns_are_copied_once_in_single_precision(order, n, dtype):
    X = np.asarray(np.random.default_rng(0).standard_normal((n, 8)), dtype=dtype, order=order)
    matrix = Matrix(X)
    for features in ([6, 1], [1, 3, 6], [0, 7]):
        columns, places = matrix.gathered(np.array(features))
        np.testing.assert_array_equal(columns.values[places], X.astype(np.float32)[:, features].T)
    kept = columns.values.copy()
    matrix.X[:] = 0.0
    matrix.gathered(np.array([0, 1, 3, 6, 7]))
    np.testing.assert_array_equal(columns.values[[0, 1, 3, 6, 7]], kept[[0, 1, 3, 6, 7]])


def test_what_is_subtracted_from_dense_columns_is_not_lost_in_single_precision():
    X = 1e9 + np.arange(20.0).reshape(10, 2)
    columns, _ = Matrix(X).minus(np.full(2, 1e9)).gathered(np.arange(2))
    np.testing.assert_array_equal(columns.values, (X - 1e9).T)
