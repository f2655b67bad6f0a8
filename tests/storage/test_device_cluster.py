"""Partitions on the devices of workers: the same answers and certificates, the same bits from run to run."""

import functools
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from simulated import SimulatedRows
from stand_in_device import COMPILER, StandIn, devices

import condgrad as cg
from condgrad.linalg.device.failures import DeviceMemoryError
from condgrad.problems.rows import choice
from condgrad.problems.rows.cluster import PartitionedRows
from condgrad.problems.rows.worker_samples import WorkerSamples
from condgrad.storage import partitions
from condgrad.storage.partitions import DevicePart, HostPart, Partition
from condgrad.testing import check_rows


@pytest.fixture(params=devices())
def find_device(request):
    return request.param


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 + rng.logistic(size=300) > 0.0, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, 300), rng.standard_normal(300)


def split(*arrays, n_parts=3):
    borders = np.linspace(0, arrays[0].shape[0], n_parts + 1).astype(int)
    return [tuple(each[a:b] for each in arrays) for a, b in itertools.pairwise(borders)]


def logistic(X, y=None, **settings):
    return cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.5), **settings)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_a_run_is_that_of_memory_and_repeats_to_the_bit(data, find_device, kind, intercept):
    X, y, weight, offset = data
    here = logistic(X, y, sample_weight=weight, offset=offset, intercept=intercept)
    rows = SimulatedRows(split(kind(X), y, weight, offset), 2).on_devices(find_device)
    assert all(isinstance(part.value.rows, DevicePart) for part in rows.partitions)
    runs = [cg.minimize(logistic(rows, intercept=intercept), tol=1e-7) for _ in range(2)]
    assert runs[0].status is cg.Status.CONVERGED
    assert abs(runs[0].objective - cg.minimize(here, tol=1e-10).objective) <= 1e-7
    assert here.look(runs[0].w).gap <= runs[0].gap + 1e-6
    if kind is np.asarray:
        assert np.array_equal(runs[0].w, runs[1].w)
        assert runs[0].gap == runs[1].gap


def test_a_cross_validation_on_devices_chooses_on_a_sample(data, find_device):
    X, y, _, _ = data
    rows = SimulatedRows(split(X, y), 2).on_devices(find_device)
    model = cg.ConstrainedLassoCV(n_radii=5, cv=3).fit(rows)
    assert_allclose(model.coef_, cg.ConstrainedLassoCV(n_radii=5, cv=3).fit(X, y).coef_, atol=1e-3)
    with pytest.raises(TypeError, match="lasso_path needs X in memory"):
        cg.lasso_path(rows, None)


def test_targets_may_stay_with_the_workers(data, find_device):
    X, y, _, _ = data
    rows = SimulatedRows(split(X, y), 2).on_devices(find_device)
    there = PartitionedRows(rows, WorkerSamples(rows, cg.losses.Logistic()), True)
    problem = cg.Problem.of_rows(there, cg.constraints.L1Ball(1.5), intercept=True)
    result = cg.minimize(problem, tol=1e-7)
    assert abs(result.objective - cg.minimize(logistic(X, y, intercept=True), tol=1e-10).objective) <= 1e-7


def test_large_means_cost_no_digits(data, find_device):
    X, y, _, _ = data
    far = X + 1e6
    here, rows = logistic(far, y, intercept=True), SimulatedRows(split(far, y), 2)
    assert_allclose(rows.on_devices(find_device).moments, rows.moments, rtol=1e-12)
    there = logistic(rows.on_devices(find_device), intercept=True)
    w = cg.minimize(here, tol=1e-8).w
    assert there.look(w).gap == pytest.approx(here.look(w).gap, abs=1e-7)


def test_several_classes_and_predictions(data, find_device, monkeypatch):
    X, _, _, _ = data
    monkeypatch.setattr(SimulatedRows, "on_devices", functools.partialmethod(SimulatedRows.on_devices, find_device))
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    rows = SimulatedRows(split(X, labels.astype(float)), 2)
    model = cg.ConstrainedLogisticRegression(radius=0.5, device="cuda").fit(rows)
    assert_allclose(model.coef_, cg.ConstrainedLogisticRegression(radius=0.5).fit(X, labels).coef_, atol=5e-3)
    assert_allclose(rows.on_devices().dot_each(model.coef_), model.coef_ @ X.T, atol=1e-12)
    with pytest.raises(ValueError, match="device must be 'cuda'"):
        cg.ConstrainedLogisticRegression(radius=0.5, device="tpu").fit(rows)


def test_a_partition_travels_between_workers(data, find_device):
    X = scipy.sparse.csr_matrix(np.where(np.abs(data[0]) > 1.0, data[0], 0.0))
    for entries in (data[0].astype(np.float32), X):
        part = partitions.to_device(Partition(HostPart(entries), data[1], None), find_device)
        arrived = pickle.loads(pickle.dumps(part))
        assert arrived.rows.kind == part.rows.kind == HostPart(entries).kind
        assert arrived.rows.checksum() == part.rows.checksum()
        assert partitions.to_device(arrived, find_device) is arrived


class Small(StandIn):
    """A device without memory."""

    def free_bytes(self):
        return 0


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler, which runs the kernels")
def test_a_partition_that_is_too_large_is_refused_in_a_sentence(data):
    with pytest.raises(DeviceMemoryError, match="does not fit into the free memory of the processor; use more workers"):
        SimulatedRows(split(data[0], data[1]), 2).on_devices(Small)


def test_without_a_gpu_one_sentence(data):
    try:
        logistic(SimulatedRows(split(data[0], data[1]), 2), device="cuda")
    except (ImportError, RuntimeError) as error:
        assert "device='cuda'" in str(error)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_workers_of_dask_with_a_device_each(data, find_device, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs dask.distributed")
    array = pytest.importorskip("dask.array", reason="needs Dask's arrays")
    X, y, _, _ = data
    monkeypatch.setattr(choice, "on_devices", lambda rows, name: rows.on_devices(find_device))
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster):
        there = logistic(array.from_array(X, chunks=(70, 8)), array.from_array(y, chunks=70), device="cuda")
        result = cg.minimize(there, tol=1e-7)
    assert abs(result.objective - cg.minimize(logistic(X, y), tol=1e-10).objective) <= 1e-7


@pytest.mark.campaign
def test_partitions_on_devices_fulfil_the_contract(find_device):
    def make(X, samples, has_intercept):
        return PartitionedRows(SimulatedRows(split(X, samples.y), 2).on_devices(find_device), samples, has_intercept)

    check_rows(make)
