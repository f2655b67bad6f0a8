"""Stochastic solvers over chunks on disk: one read an epoch, the same steps as in memory, resumed bit for bit."""

import copy
import itertools
import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.solvers.stochastic._chunks import Tour

N, D = 3000, 12
OVER_CHUNKS = (
    "sfw", "saga", "mokhtari", "one-sample", "saga-sarah", "boosted-sfw", "boosted-saga", "boosted-mokhtari",
)  # fmt: skip


@pytest.fixture
def stored(tmp_path):
    """A function that writes samples to a new folder of several chunks and opens it."""
    numbers = itertools.count()
    return lambda X, y, chunk_bytes=2**15, **settings: cg.rows.convert(
        (X, y), tmp_path / str(next(numbers)), chunk_bytes=chunk_bytes, random_state=0, **settings
    )


def signs(X):
    rng = np.random.default_rng(1)
    p = X @ np.r_[2.0, -1.0, 0.5, np.zeros(X.shape[1] - 3)]
    return np.where(p + rng.logistic(size=X.shape[0]) > 0.0, 1.0, -1.0)


@pytest.fixture
def dense():
    X = np.random.default_rng(0).standard_normal((N, D))
    return X, signs(X)


@pytest.fixture
def disk(dense, stored):
    """A logistic problem on disk."""
    return problem_of(stored(*dense))


def problem_of(X, y=None, constraint=None, **settings):
    constraint = cg.constraints.L1Ball(4.0) if constraint is None else constraint
    return cg.Problem(X, y, cg.losses.Logistic(), constraint, **settings)


def readers():
    return [thread for thread in threading.enumerate() if "condgrad-reader" in thread.name]


def sfw(batch_size=20, **settings):
    return cg.solvers.SFW(batch_size=batch_size, **settings)


def pair_of(kind, dense, stored):
    """The same problem on disk and in memory."""
    X, y = dense
    if kind == "one-hot":
        codes = np.random.default_rng(2).integers(0, 4, (N, 3)).astype(str)
        y = np.where(codes[:, 0] == "1", 1.0, -1.0) * np.where(np.random.default_rng(3).random(N) < 0.8, 1.0, -1.0)
        rows = stored(codes, y, chunk_bytes=2**11, categories="all")
        X, y = scipy.sparse.vstack([chunk.matrix.chosen(slice(None)).X for chunk in rows.chunks()]).tocsr(), rows.y
    else:
        if kind == "csr":
            X = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0))
        rows = stored(X, y)
    assert rows.kind == {"csr": "sparse"}.get(kind, kind) and rows.n_chunks >= 4
    return problem_of(rows), problem_of(X, y)


@pytest.mark.parametrize("kind", ["dense", "csr", "one-hot"])
def test_it_converges_nearly_as_in_memory(kind, dense, stored):
    disk, memory = pair_of(kind, dense, stored)
    best = cg.minimize(memory, tol=1e-9).objective
    far = memory.objective(np.zeros(memory.n_features)) - best
    saga, sarah = cg.solvers.SAGA(batch_size=20), cg.solvers.SagaSARAH(batch_size=20)
    for solver, factor in ((sfw(), 50.0), (saga, 5.0), (sarah, 5.0)):
        here, there = (cg.minimize(p, solver, max_epochs=30, tol=0.0, random_state=0) for p in (disk, memory))
        assert here.objective - best <= max(1e-3 * far, factor * (there.objective - best))
        assert here.objective - best <= here.gap + here.rounding
        assert disk.constraint.violation(here.w) <= 1e-12
        assert here.gap == pytest.approx(memory.gap(here.w), rel=1e-6, abs=1e-9)


def test_the_table_belongs_to_the_samples(disk):
    """After the steps of an epoch r is X' alpha, with the derivatives of each sample at its own place."""
    solver = sfw(sampling="epoch")
    state = cg.minimize(disk, solver, max_epochs=1, tol=0.0, random_state=0).state
    alpha, r = state.arrays.alpha.values, state.arrays.r.vector.to_array()
    assert (alpha != 0.0).all()
    np.testing.assert_allclose(r, disk.transpose_dot(alpha), atol=1e-12)
    np.testing.assert_array_equal(np.sign(alpha), -np.sign(disk.y))  # of the logistic loss


def test_saga_sarah_reads_no_more_than_its_chunks(disk):
    """Its table belongs to the samples, y is X' alpha of all of them, and r is close to the gradient: no full pass."""
    solver = cg.solvers.SagaSARAH(batch_size=20, sampling="epoch")
    result = cg.minimize(disk, solver, max_epochs=40, tol=0.0, evaluate_every=100, random_state=0)
    assert result.n_reads == pytest.approx(40 / 2 + 2)  # two gradients of a sample for each read, and two records
    arrays, w = result.state.arrays, result.state.w
    np.testing.assert_allclose(arrays.y.values, disk.transpose_dot(arrays.alpha.values), atol=1e-11)
    np.testing.assert_array_equal(np.sign(arrays.alpha.values), -np.sign(disk.y))
    gradient = disk.gradient(w)
    start = disk.gradient(np.zeros(D))
    assert np.abs(arrays.r.vector.to_array() - gradient).max() < 0.1 * np.abs(start).max()


def test_one_chunk_gives_the_steps_of_memory(dense, tmp_path):
    X, y = dense
    np.save(tmp_path / "X.npy", X)
    rows = cg.rows.open(tmp_path / "X.npy", y=y)
    assert rows.n_chunks == 1
    solver = sfw(sampling="cyclic")
    here, there = (
        cg.minimize(p, solver, max_epochs=2, tol=0.0, random_state=0) for p in (problem_of(rows), problem_of(X, y))
    )
    np.testing.assert_allclose(here.w, there.w, atol=1e-10)


@pytest.mark.parametrize("name", OVER_CHUNKS)
def test_an_epoch_is_one_read(disk, name):
    solver = cg.solvers.by_name(name)(batch_size=20)
    result = cg.minimize(disk, solver, max_epochs=6, tol=0.0, evaluate_every=6, random_state=0)
    assert len(result.trace) == 2  # the start and the end
    # saga-sarah evaluates each sample at two points: two epochs of gradients for one read.
    assert result.n_reads == pytest.approx(6 / solver.gradients_per_sample + 2) and result.n_epochs == 6
    assert not readers()


def test_records_are_rare_by_default(disk):
    result = cg.minimize(disk, sfw(), max_epochs=10, tol=0.0, random_state=0)
    np.testing.assert_array_equal(result.trace.epoch, [0, 1, 2, 4, 8, 10])
    assert result.n_reads == pytest.approx(10 + 6)


def test_each_epoch_takes_every_chunk_once_in_random_order(disk):
    tour = Tour(disk, disk.chunk_sizes, np.zeros(1), np.random.default_rng(0))
    orders = []
    for _ in range(3):
        places = []
        for _ in range(disk.chunk_sizes.size):
            tour.move_on()
            place, view = tour.here
            assert view.samples.y.size == place.stop - place.start == tour.n_left
            np.testing.assert_array_equal(view.samples.y, disk.y[place])
            tour.take(tour.n_left)
            places.append(place.start)
        assert tour.is_complete and not readers()
        orders.append(places)
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(orders[2])
    assert orders[0] != orders[1] and orders[1] != orders[2]


def test_batches_of_a_chunk_are_equal_and_take_all_its_samples(disk):
    solver = sfw(batch_size=100)
    state = solver.init(disk, None, 0)
    for _ in range(disk.chunk_sizes.size):
        sizes = state.sizes_at_hand(np.full(1000, 100))
        assert sizes.sum() == state.tour.size and sizes.max() <= 100 and sizes.max() - sizes.min() <= 1
        assert state.sizes_at_hand(np.full(2, 100)).tolist() == sizes[:2].tolist()
        state.tour.take(state.tour.n_left)


@pytest.mark.parametrize("sampling", ["batch", "epoch", "replacement", "blocks", "cyclic"])
def test_the_same_seed_gives_the_same_run(disk, sampling):
    solver = sfw(sampling=sampling)
    runs = [cg.minimize(disk, solver, max_epochs=2, tol=0.0, random_state=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert (runs[0].w != runs[2].w).any()


@pytest.mark.parametrize("epochs", [0.3, 1, 2.6])
def test_a_resumed_run_is_the_same_run(disk, tmp_path, epochs):
    settings = {"tol": 0.0, "random_state": 0, "evaluate_every": 100}
    for solver in (sfw(sampling="epoch"), cg.solvers.OneSample(batch_size=20), cg.solvers.SagaSARAH(batch_size=20)):
        whole = cg.minimize(disk, solver, max_epochs=4, **settings)
        file = tmp_path / f"{type(solver).__name__}.npz"
        cg.minimize(disk, solver, max_epochs=epochs, checkpoint=file, **settings)
        resumed = cg.minimize(disk, solver, max_epochs=4, checkpoint=file, **settings)
        np.testing.assert_array_equal(resumed.w, whole.w)
        assert resumed.n_steps == whole.n_steps


def test_a_copy_of_a_state_makes_the_same_steps(disk):
    solver = sfw()
    result = cg.minimize(disk, solver, max_epochs=0.7, tol=0.0, random_state=0)
    twin = copy.deepcopy(result.state)
    for state in (result.state, twin):
        solver.advance(disk, state, result.n_steps, 5, 1.0)
        state.release()
    np.testing.assert_array_equal(result.state.w, twin.w)
    assert not readers()


def test_it_stops_at_the_tolerance_and_in_time(disk):
    solver = cg.solvers.SAGA(batch_size=20)
    result = cg.minimize(disk, solver, tol=3e-2, random_state=0)
    assert result.status.name == "CONVERGED" and result.gap + result.rounding <= 3e-2
    late = cg.minimize(disk, solver, tol=0.0, max_time=0.0, random_state=0)
    assert late.status.name == "MAX_TIME" and late.n_reads <= 2


def test_a_stop_in_the_middle_of_an_epoch_leaves_no_threads(disk):
    result = cg.minimize(disk, sfw(), max_steps=3, tol=0.0, random_state=0)
    assert result.n_steps == 3 and not readers()


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_returns_the_best_certified_iterate(disk, monkeypatch, tmp_path):
    move_on, visits = Tour.move_on, itertools.count()

    def interrupted(tour):
        if next(visits) == 7:
            os.kill(os.getpid(), signal.SIGINT)
        move_on(tour)

    monkeypatch.setattr(Tour, "move_on", interrupted)
    settings = {"tol": 0.0, "random_state": 0, "checkpoint": tmp_path / "run.npz"}
    result = cg.minimize(disk, sfw(), max_epochs=3, **settings)
    monkeypatch.undo()
    assert result.status.name == "INTERRUPTED" and not readers()
    assert 0.0 < result.n_epochs < 3.0 and result.n_epochs not in result.trace.epoch
    assert result.gap == pytest.approx(disk.gap(result.w)) == result.trace.gap.min()
    resumed = cg.minimize(disk, sfw(), max_epochs=3, **settings)
    whole = cg.minimize(disk, sfw(), max_epochs=3, tol=0.0, random_state=0)
    np.testing.assert_array_equal(resumed.state.w, whole.state.w)


def test_a_warm_start_and_the_refresh_read_all_rows_once_more(disk, monkeypatch):
    monkeypatch.setattr("condgrad.solvers.stochastic._schedule._REFRESH_EPOCHS", 2)
    plain = cg.minimize(disk, sfw(), max_epochs=3, tol=0.0, evaluate_every=9, random_state=0)
    assert plain.n_reads == pytest.approx(3 + 2 + 1)
    warm = cg.minimize(disk, sfw(warm=True), max_epochs=1, tol=0.0, evaluate_every=9, random_state=0)
    assert warm.n_reads == pytest.approx(1 + 2 + 2)  # derivatives at the start, and X' alpha


def test_sets_with_oracles_in_python_work_too(dense, stored):
    class Ball:
        def lmo(self, r):
            s = np.zeros(r.size)
            j = np.abs(r).argmax()
            s[j] = -4.0 * np.sign(r[j])
            return s

    disk = problem_of(stored(*dense), constraint=Ball())
    result = cg.minimize(disk, sfw(batch_size=200), max_epochs=3, tol=0.0, random_state=0)
    assert result.objective < disk.objective(np.zeros(D)) and result.n_epochs == 3


def test_other_solvers_are_refused(disk):
    for name in set(cg.solvers.REGISTERED) - set(OVER_CHUNKS):
        cls = cg.solvers.by_name(name)
        if not cls.requires <= disk.offers and name != "low-rank":
            with pytest.raises(TypeError, match=r"requires .*its rows are not in memory.* 'corrective'.* 'sfw'"):
                cg.minimize(disk, name)
    assert "Corrective" in cg.minimize(disk, tol=1e-3).solver  # "auto" needs fewer reads


def test_what_chunks_cannot_do_is_one_sentence(dense, stored, disk):
    rows = disk.rows.stored
    with pytest.raises(
        TypeError, match=r"chunks of rows do not support an intercept; leave the intercept out: intercept=False"
    ):
        cg.minimize(problem_of(rows, intercept=True), "sfw")
    with pytest.raises(TypeError, match=r"do not support an l2 penalty; l2=0"):
        cg.minimize(problem_of(rows, l2=0.1), "sfw")
    with pytest.raises(ValueError, match=r"batch_size is 2000, but the chunks have at most \d+ samples"):
        cg.minimize(disk, sfw(batch_size=2000))
    with pytest.raises(ValueError, match=r"needs the norms of all rows.*use 'batch'"):
        cg.minimize(disk, sfw(sampling="importance"))
    with pytest.raises(ValueError, match=r"needs a Lipschitz constant.*use OpenLoop\(\)"):
        cg.minimize(disk, sfw(step_size=cg.step_sizes.ShortStep()))
