"""Tables on a device: moments of samples that stay there, up to their rounding, and what they cannot tell."""

import numpy as np
import pytest
import scipy.sparse
from certificates import HAS_LONG, LONG
from stand_in_device import devices
from strict_device import StrictStandIn

import condgrad as cg
from condgrad.engine import device_table
from condgrad.engine.device_table import DeviceTable
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.sparse import OneHotOnDevice
from condgrad.linalg.rounding import gamma
from condgrad.losses import Squared
from condgrad.problems.rows.choice import rows_on_device
from condgrad.storage.device_data import DeviceData

N, D = 500, 7


@pytest.fixture(params=devices())
def device(request):
    return request.param()


def dense(X, device):
    if type(device).__name__ == "StandIn":
        device = StrictStandIn()  # whose arrays are not mixed with those of the host
    return DeviceData.of(X, device), X


def single(X, device):
    return dense(X.astype(np.float32), device)


def far(X, device):
    return dense(X + 1e6, device)


def bfloat16(X, device):
    bits = X.astype(np.float32).view(np.uint32) >> np.uint32(16)
    there = DenseOnDevice(device, device.to_device(bits.astype(np.uint16)))
    return DeviceData(there), (bits << np.uint32(16)).view(np.float32)


def sparse(X, device):
    X = X * (X > 1.0)
    return DeviceData.of(scipy.sparse.csr_matrix(X), device), X


def one_hot(X, device):
    codes = (X[:, :2] > 0.0).T.astype(np.int32) + np.array([[0], [2]], dtype=np.int32)
    return DeviceData(OneHotOnDevice(device, device.to_device(codes), 4)), (codes[:, :, None] == np.arange(4)).sum(
        axis=0
    )


def table_of(given, y, device_weight, offset, has_intercept):
    rows = rows_on_device(given, y, Squared(), device_weight, has_intercept, given.matrix.device, offset)
    return DeviceTable(rows, is_centred=has_intercept)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + rng.uniform(-3.0, 3.0, D)
    return X, X @ rng.standard_normal(D) + rng.standard_normal(N) + 1e3


@pytest.mark.parametrize("kind", [dense, single, far, bfloat16, sparse, one_hot])
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
def test_moments_are_those_of_extended_precision_up_to_their_rounding(
    kind, has_intercept, weighted, data, device, monkeypatch
):
    monkeypatch.setattr(device_table, "GATHERED", 8 * (D + 2) * 150)  # bytes: several pieces
    (given, X), y, rng = kind(data[0], device), data[1], np.random.default_rng(1)
    weight, offset = (rng.uniform(0.0, 2.0, N), rng.standard_normal(N)) if weighted else (None, None)
    table = table_of(given, y, weight, offset, has_intercept)
    assert (np.abs(table.shift).max() > 1e5) == (kind is far and has_intercept)
    assert (table.y_shift > 900.0) == has_intercept
    sets = [None, np.arange(50, 450), rng.permutation(N)[:333]]
    for places, found in zip(sets, table.moments_of(sets), strict=True):
        at = slice(None) if places is None else places
        exact_y, v = y.astype(LONG), np.ones(N, LONG)
        if weighted:
            exact_y, v = exact_y - offset, weight.astype(LONG) / weight.astype(LONG).sum()
        U = np.column_stack([X.astype(LONG) - table.shift, exact_y - table.y_shift, np.ones(N)])[at]
        wanted = U.T @ (v[at][:, None] * U)
        norms = np.sqrt(wanted.diagonal())
        norms[-2] += abs(table.y_shift) * np.sqrt(wanted[-1, -1])  # an offset is subtracted from the targets as given
        assert found.length < 100
        assert (np.abs(found.M - wanted) <= gamma(found.length) * np.outer(norms, norms)).all()


def test_squares_that_lost_their_digits_are_told_from_those_of_nothing(data, device):
    X, y = data
    weight = np.ones(N)
    weight[7] = 0.0
    for entry, is_exact in ((0.0, True), (1e-160, False)):
        X[:, 2] = entry
        X[7, 2] = 1.0  # of a sample that does not count
        for given, of_samples in ((X, weight), (scipy.sparse.csr_matrix(X), weight)):
            table = table_of(DeviceData.of(given, device), y, of_samples, None, False)
            assert table.moments_of([None])[0].are_exact_enough == is_exact
    with pytest.raises(ValueError, match="leave the range of floats"):
        cg.lasso_path(DeviceData.of(X, device), y, sample_weight=weight)


@pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
@pytest.mark.parametrize("grid", ["radii", "alphas"])
def test_points_that_rounding_leaves_uncertified_say_so(grid, data, device):
    X, y = data
    _, coefs, info = cg.lasso_path(DeviceData.of(X, device), y, **{grid: [0.5, 2.0]}, tol=1e-16)
    assert info.status is cg.Status.ROUNDING
    exact, W = X.astype(LONG), coefs.toarray().astype(LONG)
    pulls = exact.T @ (y.astype(LONG)[:, None] - exact @ W) / N
    along = (pulls * W).sum(axis=0)
    if grid == "radii":
        gaps = info.radius * np.abs(pulls).max(axis=0) - along
    else:
        gaps = np.abs(W).sum(axis=0) * info.alpha - along  # a lower bound of the gap, up to slopes above alpha
    assert (gaps <= info.gap + info.rounding).all()
    assert (info.rounding <= 1e-9 * y @ y / N).all()
