"""Softmax with X on a device: the answers and certificates of memory, by arrays that stay there."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from stand_in_device import devices
from strict_device import StrictArray, StrictStandIn

import condgrad as cg
from condgrad.linalg.device import scored
from condgrad.problems.active_set import AtomStack
from condgrad.storage.device_data import DeviceData

K, D = 3, 6


@pytest.fixture(params=devices())
def device(request, monkeypatch):
    monkeypatch.setattr(scored, "_TILE", 8 * D * 100)  # bytes: a hundred rows, so that there are several tiles
    return StrictStandIn() if request.param.__name__ == "StandIn" else request.param()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, D))
    y = np.argmax(X[:, :K] + rng.gumbel(size=(250, K)), axis=1)
    return X, y, rng.uniform(0.5, 2.0, 250)


def groups(radius):
    return cg.constraints.GroupBall(np.tile(np.arange(D), K), radius)


def both(data, device, constraint, **settings):
    X, y, weight = data
    there = cg.SoftmaxProblem(DeviceData.of(X, device), y, constraint, sample_weight=weight, **settings)
    return there, cg.SoftmaxProblem(X, y, constraint, sample_weight=weight, **settings)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("constraint", [cg.constraints.L1Ball(2.0), groups(2.0)], ids=["l1", "groups"])
def test_a_fit_is_that_of_memory_and_certified(data, device, constraint, intercept):
    there, here = both(data, device, constraint, intercept=intercept)
    result = cg.minimize(there, tol=1e-8)
    assert result.status == cg.Status.CONVERGED
    assert abs(result.objective - cg.minimize(here, tol=1e-10).objective) <= 1e-8
    look, known = there.look(result.w), here.look(result.w)
    assert abs(look.gap - known.gap) <= 1e-13 * known.objective
    assert look.evaluation.rounding == pytest.approx(known.evaluation.rounding, rel=0.1)
    assert_allclose(there.best_intercept(result.w), here.best_intercept(result.w), atol=1e-12)
    assert there.null_objective() == pytest.approx(here.null_objective(), rel=1e-13)
    assert there.loss_scale() == pytest.approx(here.loss_scale(), rel=1e-13)


def test_curvatures_are_those_of_memory(data, device):
    w, atoms = np.full(K * D, 0.1), AtomStack(np.array([0, 3, 7, 14]), np.array([1.0, -1.0, 2.0, 1.0]))
    there, here = (problem.look(w) for problem in both(data, device, groups(2.0), intercept=True))
    assert_allclose(there.curvature(atoms), here.curvature(atoms), rtol=1e-10, atol=1e-13)
    vertices = [here.problem.lmo(r) for r in np.random.default_rng(1).standard_normal((3, K * D))]
    assert_allclose(there.curvature(vertices), here.curvature(vertices), rtol=1e-10, atol=1e-13)
    whole = here.curvature(atoms)
    assert_allclose(there.curvature(atoms, n_rows=60), whole, atol=0.4 * np.abs(whole).max())


def test_large_means_cost_no_digits(data, device):
    X, y, weight = data
    there, here = both((X + 1e6, y, weight), device, cg.constraints.L1Ball(2.0), intercept=True)
    w = cg.minimize(here, tol=1e-7).w
    assert there.look(w).gap == pytest.approx(here.look(w).gap, abs=1e-12)
    assert_allclose(there.best_intercept(w), here.best_intercept(w), rtol=1e-9)


def test_solvers_along_lines_and_other_targets(data, device):
    there, here = both(data, device, cg.constraints.L1Ball(2.0))
    result = cg.minimize(there, "away", tol=1e-2, max_epochs=30)
    assert result.objective - cg.minimize(here, tol=1e-9).objective <= result.gap + result.rounding + 1e-9
    other = there.with_targets(2 - data[1])
    assert other.objective(result.w) == pytest.approx(here.with_targets(2 - data[1]).objective(result.w), rel=1e-12)
    assert other.fingerprint() != there.fingerprint()
    assert there.part(100).n_samples < 250


def test_estimators_fit_all_classes_together_there(data, device):
    X, y, weight = data
    names = np.array(["a", "b", "c"])[y]
    for settings in ({"radius": 1.0}, {"radius": 1.0, "constraint": "group"}, {}):
        model = cg.ConstrainedClassifier(multi_class="multinomial", **settings)
        there = model.fit(DeviceData.of(X, device), names, weight)
        assert np.max(there.gap_) <= 1e-6 * 1.2
        here = cg.ConstrainedClassifier(multi_class="multinomial", **settings | {"radius": there.radius_})
        assert_allclose(there.coef_, here.fit(X, names, weight).coef_, atol=1e-3)
        assert_allclose(there.predict_proba(DeviceData.of(X, device)), there.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("plain", devices())
def test_sparse_rows_are_swept_once_for_each_class(data, plain):
    X, y, _ = data
    X = scipy.sparse.csr_matrix(X * (np.abs(X) > 0.5))
    ball = cg.constraints.L1Ball(2.0)
    there = cg.SoftmaxProblem(DeviceData.of(X, plain()), y, ball, intercept=True)
    result = cg.minimize(there, tol=1e-7)
    assert result.status == cg.Status.CONVERGED
    known = cg.SoftmaxProblem(X, y, ball, intercept=True).look(result.w)
    assert abs(there.look(result.w).gap - known.gap) <= 1e-13 * known.objective


def test_what_cannot_be_done_there_is_said_in_a_sentence(data, device):
    X, y, _ = data
    device.most_bytes = 0
    with pytest.raises(ValueError, match="SoftmaxProblem needs an X that the GPU can hold"):
        cg.SoftmaxProblem(DeviceData.of(X, device), y, cg.constraints.L1Ball(1.0))
    device.most_bytes = np.inf
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        cg.SoftmaxProblem(DeviceData.of(bad, device), y, cg.constraints.L1Ball(1.0))


def test_strict_arrays_refuse_those_of_the_host():
    there = StrictArray(np.ones(3))
    assert (there + 1.0).get().tolist() == [2.0, 2.0, 2.0]
    for mix in (lambda: there + np.ones(3), lambda: there[np.array([0])], lambda: np.asarray(there)):
        with pytest.raises(TypeError):
            mix()
