"""Rows with the workers of a Dask cluster: the same bits whatever the workers do, and never a number from a part."""

import contextlib
import itertools
import os
import signal

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.problems.rows import cluster
from condgrad.problems.rows.cluster import PartitionedRows, SparseVector
from condgrad.testing import check_rows

distributed = pytest.importorskip("distributed", reason="needs dask.distributed")
dask = pytest.importorskip("dask", reason="needs dask")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Dask warns about many things of its own


def data(n=4000, d=12):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return X, y


def logistic(X, y=None, **settings):
    return cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.5), **settings)


def cluster_of(n_workers, processes):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None
    )


def delayed(blocks):
    return [dask.delayed(block) for block in blocks]


@pytest.fixture(scope="module")
def threads():
    """A cluster whose workers are threads of this process: nothing to start, nothing to kill."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def processes():
    """A cluster of processes, which can be killed."""
    with cluster_of(2, processes=True) as cluster, distributed.Client(cluster) as client:
        yield client


def rows_of(client, X, y, n_parts=5, weight=None):
    weights = None if weight is None else delayed(np.array_split(weight, n_parts))
    borders = np.linspace(0, X.shape[0], n_parts + 1).astype(int)
    blocks = [X[a:b] for a, b in itertools.pairwise(borders)]
    targets = None if y is None else delayed([y[a:b] for a, b in itertools.pairwise(borders)])
    return cg.rows.from_dask(delayed(blocks), targets, weights, client=client)


def test_cluster_rows_fulfil_the_contract(threads):
    check_rows(lambda X, samples, intercept: PartitionedRows(rows_of(threads, X, None, 3), samples, intercept))


@pytest.mark.parametrize("intercept", [False, True])
def test_runs_are_certified_and_repeat_to_the_bit(threads, intercept):
    X, y = data()
    best = cg.minimize(logistic(X, y, intercept=intercept), tol=1e-10)
    runs = [cg.minimize(logistic(rows_of(threads, X, y), intercept=intercept), tol=1e-7) for _ in range(2)]
    assert runs[0].status.name == "CONVERGED"
    assert runs[0].objective - best.objective <= runs[0].gap + runs[0].rounding
    assert np.array_equal(runs[0].w, runs[1].w)
    assert runs[0].n_reads <= 7


def test_collections_of_dask(threads):
    import dask.array
    import dask.dataframe
    import pandas

    X, y = data()
    expected = logistic(X, y).look(np.full(12, 0.1))
    arrays = cg.rows.from_dask(dask.array.from_array(X, chunks=(900, 7)), dask.array.from_array(y, chunks=1100))
    frame = dask.dataframe.from_pandas(pandas.DataFrame(X, columns=[f"x{j}" for j in range(12)]), npartitions=3)
    target = dask.dataframe.from_pandas(pandas.Series(y), npartitions=3)
    frames = cg.rows.from_dask(frame, target)
    assert frames.feature_names == [f"x{j}" for j in range(12)]
    for rows in (arrays, frames):
        assert logistic(rows).look(np.full(12, 0.1)).gradient == pytest.approx(expected.gradient, abs=1e-14)
    model = cg.ConstrainedLogisticRegression(radius=1.5).fit(dask.array.from_array(X, chunks=(900, 12)), y)
    assert model.coef_ == pytest.approx(cg.ConstrainedLogisticRegression(radius=1.5).fit(X, y).coef_, abs=2e-3)
    assert np.array_equal(model.predict(dask.array.from_array(X, chunks=(900, 12))), model.predict(X))


def test_chunks_of_a_folder_are_read_by_the_workers(threads, tmp_path):
    X, y = data()
    stored = cg.rows.convert((X, y), tmp_path / "rows", chunk_bytes=2**15)
    rows = cg.rows.from_dask(stored, client=threads)
    assert rows.n_chunks == stored.n_chunks
    w = np.full(12, 0.1)
    assert logistic(rows).objective(w) == pytest.approx(logistic(stored).objective(w), abs=1e-14)


def test_weights_and_sparse_rows(threads):
    X, y = data()
    X = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0))
    weight = np.random.default_rng(1).uniform(0.1, 2.0, y.size)
    w = np.full(12, 0.1)
    expected = logistic(X, y, sample_weight=weight).look(w)
    for problem in (
        logistic(rows_of(threads, X, y, 4, weight)),
        logistic(rows_of(threads, X, y, 4), sample_weight=weight),
    ):
        assert problem.look(w).gradient == pytest.approx(expected.gradient, abs=1e-14)


def test_moments_of_the_partitions_give_paths_and_folds(threads, monkeypatch):
    monkeypatch.setattr("condgrad.estimators._cross_validation._SAMPLE_BYTES", 1000)  # a sample would tell otherwise
    X, _ = data()
    y = X[:, 0] - X[:, 1] + np.random.default_rng(2).standard_normal(4000)
    rows = rows_of(threads, X, y, 11)
    paths = [cg.lasso_path(rows, None, n_radii=6, fit_intercept=True) for _ in range(2)]
    assert np.array_equal(paths[0][1].toarray(), paths[1][1].toarray())  # whatever the workers do
    wanted = cg.lasso_path(X, y, radii=paths[0][0], fit_intercept=True)
    assert paths[0][1].toarray() == pytest.approx(wanted[1].toarray(), abs=1e-5)
    model = cg.ConstrainedElasticNetCV(l2=[0.0, 0.1], n_radii=6).fit(rows)
    peer = cg.ConstrainedElasticNetCV(l2=[0.0, 0.1], n_radii=6).fit(X, y)
    assert model.mse_path_ == pytest.approx(peer.mse_path_, rel=1e-6)


def pids(client):
    """The process of each worker that runs now; asking the workers themselves could wait for a dead one."""
    return [worker.pid for worker in client.cluster.workers.values() if worker.pid is not None]


def complete(client):
    """Wait until both workers run; one that died while it started is replaced."""
    client.cluster.scale(2)
    with contextlib.suppress(TimeoutError):  # a busy machine may take longer, and one worker is enough
        client.wait_for_workers(2, timeout=60)


@pytest.mark.parametrize(
    ("is_wide", "kills"), [(False, ((0, 1), (1, 1), (1, 2))), (True, ((1, 1), (2, 2)))], ids=["narrow", "wide"]
)
def test_killed_workers_change_no_bit(processes, is_wide, kills, monkeypatch):
    """A worker is killed between two passes, then one within a pass, then all: partitions are made again.

    With many features the results of the pass are lost, too, and made again before they can answer.
    """
    monkeypatch.setattr(cluster, "_WIDE", 1 if is_wide else 100)
    X, y = data()
    problem = logistic(rows_of(processes, X, y), intercept=is_wide)
    whole = cg.minimize(problem, tol=1e-7)
    for at, n_killed in kills:
        seen, killed = itertools.count(), []

        def kill(progress, seen=seen, at=at, n_killed=n_killed, killed=killed):
            if next(seen) == at:
                killed += pids(processes)[:n_killed]
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        complete(processes)
        result = cg.minimize(problem, tol=1e-7, callback=kill)
        assert killed
        assert np.array_equal(result.w, whole.w)
        assert result.gap == whole.gap


def test_a_lost_scheduler_is_an_error_and_the_checkpoint_goes_on(threads, tmp_path):
    X, y = data()
    whole = cg.minimize(logistic(rows_of(threads, X, y)), tol=1e-7)
    path = tmp_path / "run.ckpt"
    cluster = cluster_of(1, processes=False)
    client = distributed.Client(cluster, set_as_default=False)
    problem = logistic(rows_of(client, X, y))

    def stop(progress):
        if progress.step > 0 and client.status == "running":
            client.close()
            cluster.close()

    with pytest.raises(OSError, match="start the cluster again and continue from the checkpoint"):
        cg.minimize(problem, tol=1e-7, checkpoint=cg.Checkpoint(path, every=0.0), callback=stop)
    again = cg.minimize(logistic(rows_of(threads, X, y)), tol=1e-7, checkpoint=path)
    assert np.array_equal(again.w, whole.w)


def test_large_means_cost_no_digits(threads):
    X, y = data(1000)
    X[:, 1] += 1e8
    args = {"loss": cg.losses.Squared(), "constraint": cg.constraints.L1Ball(0.3), "intercept": True}
    result = cg.minimize(cg.Problem(rows_of(threads, X, y), **args), tol=1e-7)
    assert result.status.name == "CONVERGED"
    assert result.rounding < 1e-8


def test_a_bad_partition_is_an_error_and_no_number(threads):
    X, y = data()
    X[3500, 2] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        rows_of(threads, X, y)

    def broken(partition, first):
        if first > 0:
            raise RuntimeError("this worker has a defect")
        return 1.0

    X[3500, 2] = 0.0
    with pytest.raises(RuntimeError, match="defect"):
        rows_of(threads, X, y).add_up(lambda place: (broken,))


def test_what_travels_is_small(threads):
    """w goes down as its nonzero entries; d = 10^7 with 30 of them takes a kilobyte."""
    w = np.zeros(10_000_000)
    w[::400_000] = 1.0
    sparse = SparseVector.of(w)
    assert sum(part.nbytes for part in sparse[:2]) < 1000
    assert np.array_equal(sparse.to_dense(), w)


def test_sentences(threads):
    X, y = data(100)
    with pytest.raises(ValueError, match="has no targets; pass y"):
        logistic(rows_of(threads, X, None))
    with pytest.raises(ValueError, match="must have the partitions of X: 2; got 3"):
        cg.rows.from_dask(delayed([X, X]), delayed([y, y, y]), client=threads)
    with pytest.raises(ValueError, match="the same features"):
        cg.rows.from_dask(delayed([X, X[:, :3]]), client=threads)
    with pytest.raises(TypeError, match="X must be a Dask array"):
        cg.rows.from_dask(3.0, client=threads)
    assert "partitions of a Dask cluster" in repr(rows_of(threads, X, y))


def test_no_cluster_is_one_sentence(monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match="there is no Dask cluster to work on"):
        cg.rows.from_dask(delayed([np.ones((2, 2))]))
