"""Extent: the largest absolute value of the entries, and whether all of them are 1."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.linalg import extent
from condgrad.linalg.extent import Extent


@pytest.fixture(params=["few", "many"], autouse=True)
def looks(request, monkeypatch):
    """Let few numbers be looked at as they are, and as many would be."""
    monkeypatch.setattr(extent, "_MANY", 1 if request.param == "many" else 10**9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_largest_absolute_value_is_exact(dtype, order):
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = np.asarray(rng.standard_normal((3, 7)) * 10.0 ** rng.integers(-30, 30), dtype=dtype, order=order)
        assert Extent.of(values) == (float(np.abs(values).max()), False)
        assert Extent.of(values[::2, ::3]).largest == float(np.abs(values[::2, ::3]).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ones_are_told_from_other_numbers(dtype):
    ones = np.ones(40, dtype)
    assert Extent.of(ones) == (1.0, True) and Extent.of(0.0 * ones) == (0.0, False)
    assert Extent.of(-ones) == (1.0, False) and Extent.of(2.0 * ones) == (2.0, False)
    for place in (0, 17, 39):
        for other in (0.0, -1.0, 0.5, np.nextafter(dtype(1.0), dtype(2.0)), np.nextafter(dtype(1.0), dtype(0.0))):
            values = ones.copy()
            values[place] = other
            assert not Extent.of(values).is_one
    assert Extent.of(np.empty(0, dtype)) == (0.0, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_found(dtype, bad):
    for place in (0, 19, 39):
        values = np.linspace(-1.0, 1.0, 40).astype(dtype)
        values[place] = bad
        assert not np.isfinite(Extent.of(values).largest)


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
def test_data_with_such_a_number_are_refused(kind):
    X = np.arange(1.0, 13.0).reshape(4, 3)
    X[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"X has 1 entry that is not finite, the first at position \(2, 1\): inf"):
        cg.Problem(kind(X), np.ones(4), cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    X[2, 1] = -1e61
    with pytest.raises(ValueError, match=r"X has entries up to 1\.0e\+61; scale it below 1e\+60"):
        cg.Problem(kind(X), np.ones(4), cg.losses.Squared(), cg.constraints.L1Ball(1.0))
