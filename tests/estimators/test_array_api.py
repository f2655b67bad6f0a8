"""Arrays of other libraries: estimators take them, and predictions come back where X came from."""

import os
import subprocess
import sys
import types

import numpy as np
import pytest
from stand_in_device import COMPILER, StandIn

import condgrad as cg
from condgrad.estimators._like import like
from condgrad.linalg.device import arrays

SCRIPT = """
import sys
import numpy as np
import sklearn
import condgrad as cg

library = __import__(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.standard_normal((80, 3))
y, weight = (X[:, 0] + rng.standard_normal(80) > 0.0).astype(int), rng.uniform(0.5, 2.0, 80)
asarray = library.asarray
there = asarray(X), asarray(y), asarray(weight)
here = cg.ConstrainedLogisticRegression(radius=0.5).fit(X, y, weight)
model = cg.ConstrainedLogisticRegression(radius=0.5).fit(*there)  # without dispatch, as scikit-learn's own: NumPy
assert isinstance(model.predict(there[0]), np.ndarray)
with sklearn.config_context(array_api_dispatch=True):
    model = cg.ConstrainedLogisticRegression(radius=0.5).fit(*there)
    assert np.allclose(model.coef_, here.coef_, atol=1e-6)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found = getattr(model, method)(there[0])
        assert type(found) is type(there[0]), (method, type(found))
        assert np.allclose(np.from_dlpack(found), getattr(model, method)(X)), method
    assert abs(model.score(*there) - here.score(X, y, weight)) < 1e-12
    model = cg.ConstrainedRegressor(radius=0.5).fit(there[0], asarray(X[:, 0]))
    assert type(model.predict(there[0])) is type(there[0])
    assert model.score(there[0], asarray(X[:, 0])) > 0.1
    chosen = cg.ConstrainedLogisticRegressionCV(radii=[0.1, 1.0], cv=2).fit(*there)
    assert type(chosen.predict(there[0])) is type(there[0])
"""


@pytest.mark.parametrize("library", ["array_api_strict", pytest.param("torch", marks=pytest.mark.campaign)])
def test_predictions_come_back_as_arrays_of_the_same_library(library):
    pytest.importorskip(library, reason="an optional library of arrays")
    # scikit-learn wants this setting before it is imported.
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, library], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class OnGPU(np.ndarray):
    """An array of NumPy that says that it is one of CuPy."""

    __module__ = "cupy"

    def get(self):
        """Return it as an array of NumPy."""
        return np.array(self)


@pytest.fixture
def gpu(monkeypatch):
    """Return how arrays get to the stand-in of a GPU."""
    device = StandIn()
    cupy = types.SimpleNamespace(asarray=lambda array: np.asarray(array).view(OnGPU))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr("condgrad.storage.device_data.device_by_name", lambda name: device)
    monkeypatch.setattr("condgrad.problems.rows.choice.device_by_name", lambda name: device)
    return cupy.asarray


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler, which runs the kernels in place of a GPU")
def test_arrays_on_a_gpu_stay_there(gpu):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = (X[:, 0] + rng.standard_normal(80) > 0.0).astype(int)
    model = cg.ConstrainedLogisticRegression(radius=0.5).fit(gpu(X), gpu(y), gpu(np.ones(80)))
    for method in ("predict", "predict_proba", "decision_function"):
        found = getattr(model, method)(gpu(X))
        assert type(found) is OnGPU
        np.testing.assert_allclose(found.get(), getattr(model, method)(X), rtol=1e-12)
    assert model.score(gpu(X), gpu(y)) == model.score(X, y)
    words = cg.ConstrainedLogisticRegression(radius=0.5).fit(gpu(X), np.where(y > 0, "yes", "no"))
    assert set(words.predict(gpu(X))) == {"no", "yes"}  # no array of CuPy holds words
    radii, _, info = cg.lasso_path(gpu(X), gpu(X[:, 0]), radii=[0.5])
    assert radii == [0.5]
    assert info.status == cg.Status.CONVERGED


def test_what_runs_in_memory_alone_is_said_in_a_sentence(gpu):
    X = gpu(np.eye(6))
    with pytest.raises(TypeError, match=r"MultiOutputProblem needs X in the memory of the host; pass X\.get\(\)"):
        cg.MultiOutputProblem(X, np.eye(6)[:, :2], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    with pytest.raises(ValueError, match="on a GPU are fitted one problem at a time; use multi_output='separate'"):
        cg.ConstrainedRegressor(radius=1.0, multi_output="joint").fit(X, np.eye(6)[:, :2])


def test_entries_of_a_matrix_come_to_the_host(gpu):
    rows, columns = np.divmod(np.arange(12), 4)
    model = cg.MatrixCompletion(radius=2.0).fit(gpu(rows), gpu(columns), gpu(np.arange(12.0) / 12.0))
    assert model.predict(rows, columns).shape == (12,)


def test_arrays_of_numpy_stay_as_they_are():
    y = np.arange(3)
    assert arrays.on_host(y) is y
    assert like(y, y) is y
    assert not arrays.is_foreign([1.0, 2.0])
