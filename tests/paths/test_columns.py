"""Products with chosen columns, several at a time, beside those of NumPy."""

import numpy as np
import pytest
import scipy.sparse

from condgrad.linalg.matrix import Matrix
from condgrad.paths.columns import make_columns
from condgrad.paths.working_set import correlate_atoms, predict_atoms

N, D = 53, 11
FORMS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csc": scipy.sparse.csc_matrix}


@pytest.mark.parametrize("count", range(10))
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_chosen_columns_are_added_and_multiplied_in_any_number(form, dtype, has_intercept, count):
    rng = np.random.default_rng(count)
    X = rng.standard_normal((N, D)).astype(dtype)
    X[:, 4] += 1000.0  # a column that is centred, where there is an intercept
    weight = rng.random(N)
    weight /= weight.sum()
    matrix = Matrix(FORMS[form](X))
    if has_intercept:
        matrix = matrix.centred(weight)
    columns = make_columns(matrix, weight, has_intercept, standardize=True)
    raw = X.astype(np.float64) - (matrix.shift if matrix.shift is not None else 0.0)
    features, x, a = rng.permutation(D)[:count], rng.standard_normal(count + 2), rng.standard_normal(N)
    x[rng.random(count + 2) < 0.3] = 0.0
    start, stop = min(1, count), count
    used = features[start:stop]
    p, found = np.full(N, np.nan), np.full(count, np.nan)
    predict_atoms(columns, features, x, p, start, stop)
    expected = (raw[:, used] * columns.scale[used]) @ x[start:stop]
    np.testing.assert_allclose(p, expected, rtol=1e-9, atol=1e-9)
    largest = correlate_atoms(columns, features, a, a.sum(), x, 0.5, found, start, stop)
    centred = (raw[:, used] - columns.mean[used]) * columns.scale[used]
    np.testing.assert_allclose(found[start:stop], centred.T @ a - 0.5 * x[start:stop], rtol=1e-8, atol=1e-8)
    assert largest == np.abs(found[start:stop]).max(initial=0.0)
    assert np.isnan(found[:start]).all()
