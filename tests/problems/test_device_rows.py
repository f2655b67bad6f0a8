"""Problems whose rows are on a device: the same answers and certificates as in memory."""

import functools

import numpy as np
import pytest
import scipy.sparse
from certificates import measured
from numpy.testing import assert_allclose
from stand_in_device import devices

import condgrad as cg
from condgrad.linalg.device import arrays
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.device.sparse import OneHotOnDevice
from condgrad.problems.active_set import AtomStack
from condgrad.problems.rows.choice import rows_on_device
from condgrad.storage.device_data import DeviceData
from condgrad.testing import check_rows

BALL = cg.constraints.L1Ball(2.0)


@pytest.fixture(params=devices())
def device(request):
    return request.param()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=400) > 0.0, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, 400)


def problem_on(device, X, y, loss=None, constraint=BALL, *, weight=None, intercept=False, l2=0.0):
    rows = rows_on_device(X, y, loss or cg.losses.Logistic(), weight, intercept, device)
    return cg.Problem.of_rows(rows, constraint, intercept=intercept, l2=l2)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_fit_is_that_of_memory_and_certified(data, device, kind, intercept):
    X, y, weight = data
    there = problem_on(device, kind(X), y, weight=weight, intercept=intercept)
    here = cg.Problem(X, y, cg.losses.Logistic(), BALL, sample_weight=weight, intercept=intercept)
    result = cg.minimize(there, tol=1e-9)
    assert result.status == cg.Status.CONVERGED
    best = cg.minimize(here, tol=1e-11)
    assert abs(result.objective - best.objective) <= 1e-9
    assert abs(result.intercept - best.intercept) <= 1e-3
    look, known = there.look(result.w), here.look(result.w)
    assert abs(look.gap - known.gap) <= 1e-13 * known.objective
    assert there.null_objective() == pytest.approx(here.null_objective(), rel=1e-13)
    assert there.loss_scale() == pytest.approx(here.loss_scale(), rel=1e-13)
    assert there.derivative_size() == pytest.approx(here.derivative_size(), rel=1e-13)


@pytest.mark.parametrize("intercept", [False, True])
def test_offsets_are_added_there(data, device, intercept):
    X, y, weight = data
    offset = np.random.default_rng(1).standard_normal(y.size)
    rows = rows_on_device(X, y, cg.losses.Logistic(), weight, intercept, device, offset)
    there = cg.Problem.of_rows(rows, BALL, intercept=intercept)
    here = cg.Problem(X, y, cg.losses.Logistic(), BALL, sample_weight=weight, intercept=intercept, offset=offset)
    result = cg.minimize(there, tol=1e-8)
    look, known = there.look(result.w), measured(here).look(result.w)
    assert abs(look.gap - known.gap) <= 1e-12
    assert abs(look.evaluation.rounding - known.evaluation.rounding) <= 0.1 * known.evaluation.rounding
    assert there.fingerprint() != problem_on(device, X, y, weight=weight, intercept=intercept).fingerprint()


def test_equal_runs_on_dense_rows_are_equal_to_the_bit(data, device):
    X, y, weight = data
    problem = problem_on(device, X.astype(np.float32), y, weight=weight, intercept=True)
    first, second = (cg.minimize(problem, tol=1e-8) for _ in range(2))
    assert (first.w == second.w).all()
    assert first.gap == second.gap


@pytest.mark.parametrize("solver", ["fw", "away", "pairwise", "bpcg"])
def test_solvers_along_lines_run_there(data, device, solver):
    X, y, _ = data
    there, here = problem_on(device, X, y), cg.Problem(X, y, cg.losses.Logistic(), BALL)
    result = cg.minimize(there, solver, tol=1e-2, max_epochs=30)
    assert result.objective - cg.minimize(here, tol=1e-10).objective <= result.gap + result.rounding + 1e-10


def test_steps_over_single_samples_are_refused_for_the_right_reason(data, device):
    with pytest.raises(TypeError, match="its rows are not in memory"):
        cg.minimize(problem_on(device, *data[:2]), "sfw")


def test_the_curvature_leaves_out_what_an_intercept_takes_up(data, device):
    X, y, weight = data
    atoms, w = AtomStack(np.arange(4), np.ones(4)), np.full(12, 0.1)
    there = problem_on(device, X, y, weight=weight, intercept=True)
    here = cg.Problem(X, y, cg.losses.Logistic(), BALL, sample_weight=weight, intercept=True)
    assert_allclose(there.look(w).curvature(atoms), here.look(w).curvature(atoms), rtol=1e-9, atol=1e-12)


def test_large_means_cost_no_digits(data, device):
    X, y, _ = data
    far = X + 1e6
    there = problem_on(device, far, y, intercept=True)
    here = cg.Problem(far, y, cg.losses.Logistic(), BALL, intercept=True)
    w = cg.minimize(here, tol=1e-8).w
    assert there.look(w).gap == pytest.approx(here.look(w).gap, abs=1e-12)
    assert there.best_intercept(w) == pytest.approx(here.best_intercept(w), rel=1e-9)


def test_every_kind_of_set_and_a_penalty(data, device):
    X, y, _ = data
    for constraint in (cg.constraints.Simplex(2.0), cg.constraints.L2Ball(1.0), cg.constraints.Box(-0.1, 0.2)):
        there = problem_on(device, X, y, cg.losses.Squared(), constraint, l2=0.1)
        here = cg.Problem(X, y, cg.losses.Squared(), constraint, l2=0.1)
        result = cg.minimize(there, tol=1e-8)
        assert abs(result.objective - cg.minimize(here, tol=1e-10).objective) <= 1e-8


def test_a_checkpoint_goes_on_there(data, device, tmp_path):
    X, y, _ = data
    file = tmp_path / "run.ckpt"
    first = cg.minimize(problem_on(device, X, y), tol=1e-9, max_steps=2, checkpoint=file)
    assert first.status != cg.Status.CONVERGED
    result = cg.minimize(problem_on(device, X, y), tol=1e-9, checkpoint=file)
    assert result.status == cg.Status.CONVERGED
    other = problem_on(device, X + 1e-9, y)
    assert other.fingerprint() != problem_on(device, X, y).fingerprint()
    assert problem_on(device, X, -y).fingerprint() != problem_on(device, X, y).fingerprint()


def test_rows_on_disk_are_sent(data, device, tmp_path):
    X, y, _ = data
    for name, source in {"dense": X, "sparse": scipy.sparse.csr_matrix(X * (np.abs(X) > 1.0))}.items():
        stored = cg.rows.convert((source, y), tmp_path / name, chunk_bytes=8192)
        there, here = problem_on(device, stored, None), cg.Problem(stored, None, cg.losses.Logistic(), BALL)
        w = np.full(12, 0.1)
        assert there.look(w).objective == pytest.approx(here.look(w).objective, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X, y: (np.where(X > 2.5, np.nan, X), y), ValueError, "X"),
        (lambda X, y: (X, y[:-1]), ValueError, "y must have one entry per sample"),
        (lambda X, y: (X, np.where(y > 0, 2.0, -1.0)), ValueError, "y must be -1 or 1"),
        (lambda X, y: (X, None), TypeError, "y is missing"),
    ],
)
def test_bad_data_are_refused_in_a_sentence(data, device, change, error, message):
    X, y = change(*data[:2])
    with pytest.raises(error, match=message):
        problem_on(device, X, y)


def test_weights_of_zero_are_refused(data, device):
    X, y, _ = data
    with pytest.raises(ValueError, match="zero for every sample"):
        problem_on(device, X, y, weight=np.zeros(y.size))


def test_one_class_has_no_intercept(data, device):
    X, y, _ = data
    with pytest.raises(ValueError, match="needs both classes"):
        problem_on(device, X, np.ones(y.size), intercept=True)


def test_without_a_gpu_one_sentence():
    with pytest.raises(ValueError, match="device must be 'cuda'"):
        cg.Problem([[1.0]], [1.0], cg.losses.Squared(), BALL, device="tpu")
    try:
        arrays.device_by_name("cuda")
    except (ImportError, RuntimeError) as error:
        assert "device='cuda'" in str(error)


def make_on(device, X, samples, has_intercept):
    offset = samples.offset.to_array()
    return rows_on_device(X, samples.y, samples.loss, samples.weight, has_intercept, device, offset)


@pytest.mark.campaign
def test_rows_on_a_device_fulfil_the_contract(device):
    check_rows(functools.partial(make_on, device), n_samples=600)


@pytest.mark.campaign
def test_bfloat16_rows_fulfil_the_contract(device):
    bits = np.random.default_rng(0).standard_normal((600, 12)).astype(np.float32).view(np.uint32) >> np.uint32(16)

    def make(X, samples, has_intercept):
        stored = DenseOnDevice(device, device.to_device((X.view(np.uint32) >> np.uint32(16)).astype(np.uint16)))
        return make_on(device, DeviceData(stored), samples, has_intercept)

    check_rows(make, data=[(bits << np.uint32(16)).view(np.float32)])


@pytest.mark.campaign
def test_one_hot_rows_fulfil_the_contract(device):
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, 4, 600), rng.integers(4, 11, 600), rng.integers(11, 14, 600)], dtype=np.int32)
    X = scipy.sparse.csr_matrix((np.ones(1800), codes.T.ravel(), np.arange(0, 1801, 3)), shape=(600, 14))

    def make(X, samples, has_intercept):
        there = device.to_device(np.ascontiguousarray(X.indices.reshape(-1, 3).T.astype(np.int32)))
        return make_on(device, DeviceData(OneHotOnDevice(device, there, X.shape[1])), samples, has_intercept)

    check_rows(make, data=[X])
