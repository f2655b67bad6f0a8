"""A device whose memory is full, or that fails: one sentence, and what the host has stays there."""

import numpy as np
import pytest
from stand_in_device import COMPILER, StandIn

import condgrad as cg
from condgrad.linalg.device import arrays
from condgrad.linalg.device.failures import DeviceError, DeviceMemoryError, explained
from condgrad.paths.points import collect
from condgrad.problems.rows.choice import rows_on_device
from condgrad.storage.device_data import DeviceData

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler, which runs the kernels")


class LostError(RuntimeError):
    """As CuPy raises it."""

    __module__ = "cupy_backends.cuda.api.runtime"


class FullError(MemoryError):
    """As CuPy raises it."""

    __module__ = "cupy.cuda.memory"


class Failing(StandIn):
    """A device that fails after some launches."""

    left = 10**9
    error = LostError("cudaErrorDevicesUnavailable: the device is gone\nmore lines")

    def launch(self, *args):
        self.left -= 1
        if self.left < 0:
            raise self.error
        super().launch(*args)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    return X, np.where(X[:, 0] + rng.logistic(size=200) > 0.0, 1.0, -1.0)


def problem_on(device, X, y):
    rows = rows_on_device(X, y, cg.losses.Logistic(), None, False, device)
    return cg.Problem.of_rows(rows, cg.constraints.L1Ball(1.0))


def test_a_run_returns_its_best_iterate(data, tmp_path):
    device = Failing()
    problem = problem_on(device, *data)
    device.left = 3
    file = tmp_path / "run.ckpt"
    with pytest.warns(RuntimeWarning, match=r"the GPU failed or was lost \(cudaErrorDevicesUnavailable: the device is"):
        result = cg.minimize(problem, "corrective", tol=1e-12, checkpoint=file)
    assert result.status is cg.Status.DEVICE_FAILED
    here = cg.Problem(*data, cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
    assert result.gap == pytest.approx(here.look(result.w).gap, rel=1e-9)
    assert cg.minimize(here, w0=result.w, tol=1e-9).status is cg.Status.CONVERGED


@pytest.mark.parametrize("error", [LostError("gone"), FullError("Out of memory allocating 8 bytes")])
def test_without_any_certificate_there_is_one_sentence(data, error):
    device = Failing()
    problem = problem_on(device, *data)
    device.left, device.error = 0, error
    expected = DeviceMemoryError if isinstance(error, MemoryError) else DeviceError
    with pytest.raises(expected, match=r"the memory of the GPU is full|the GPU failed or was lost") as caught:
        cg.minimize(problem)
    assert "\n" not in str(caught.value)
    with pytest.raises(expected):
        cg.ConstrainedLogisticRegression(radius=1.0).fit(DeviceData.of(data[0], device), data[1])


def test_predictions_and_common_passes(data):
    X, y = data
    device = Failing()
    there = DeviceData.of(X, device)
    model = cg.ConstrainedLogisticRegression(radius=0.5).fit(there, y)
    device.left = 0
    with pytest.raises(DeviceError, match="what is on the host is safe"):
        model.predict(there)
    device.left = 4
    with pytest.raises(DeviceError, match="the GPU failed"):
        cg.ConstrainedLogisticRegression(radius=0.5).fit(there, np.arange(200) % 3)


def test_a_path_keeps_the_points_that_are_done(data):
    class Path:
        n_features, scale, tol, is_penalised, gap_bounds_objective, falls_short = 1, 1.0, 1.0, False, True, False

        def totals(self):
            return 0, 0

        def least_value(self):
            return -np.inf, 1

    point = cg.paths.points.Solved(np.array([0]), np.ones(1), 1.0, 0.1, 0.0, 0.0, 1.0, 0.0, 0.0)

    def walk(n_points):
        for k in range(n_points):
            yield np.array([k]), 1, [point]
        raise LostError("gone")

    radii, _, info = collect(Path(), walk(2), None)
    assert radii.size == 2
    assert info.status is cg.Status.DEVICE_FAILED
    with pytest.raises(DeviceError):
        collect(Path(), walk(0), None)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X, y: (X.astype(int), y), TypeError, "must be float32, float64 or bfloat16; got int"),
        (lambda X, y: (X.astype(np.float16), y), TypeError, "got float16. Convert it first"),
        (lambda X, y: (X[:, 0], y), ValueError, "X must have two dimensions"),
        (lambda X, y: (np.where(X > 2.0, np.nan, X), y), ValueError, "X has entries that are not finite"),
        (lambda X, y: (np.where(X > 2.0, np.inf, X).astype(np.float32), y), ValueError, "X has entries that are not"),
        (lambda X, y: (X, np.where(y > 0.0, np.nan, y)), ValueError, "y has entries that are not finite"),
        (lambda X, y: (X, y[1:]), ValueError, "y must have one entry per sample"),
    ],
)
def test_arrays_of_the_device_are_checked_there(data, monkeypatch, change, error, message):
    monkeypatch.setattr(arrays, "is_on_device", lambda X: isinstance(X, np.ndarray))
    X, y = change(*data)
    before = X.copy(), y.copy()
    with pytest.raises(error, match=message) as caught:
        problem_on(StandIn(), X, y)
    assert "\n" not in str(caught.value)
    assert np.array_equal(X, before[0], equal_nan=True)
    assert np.array_equal(y, before[1], equal_nan=True)


def test_an_error_is_explained_once():
    error = explained(LostError())
    assert explained(error) is error
    assert "LostError" in str(error)
