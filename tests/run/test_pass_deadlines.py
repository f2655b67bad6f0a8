"""max_time within a pass over chunks: the pass is given up after the present chunk, and the result is certified."""

import threading
import time

import numpy as np
import pytest

import condgrad as cg
from condgrad.linalg.interrupts import Interrupts, PassInterruptedError
from condgrad.storage.stored_rows import StoredRows

N, D = 3000, 10


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = np.where(X @ np.r_[2.0, -1.0, np.zeros(D - 2)] + rng.logistic(size=N) > 0.0, 1.0, -1.0)
    return cg.rows.convert((X, y), tmp_path / "rows", chunk_bytes=2**14, random_state=0)


@pytest.fixture
def time_ends(monkeypatch):
    """A function that lets an hour go by in the middle of a read, with the number of reads made before it."""
    late, real, chunks = [], time.perf_counter, StoredRows.chunks
    monkeypatch.setattr(time, "perf_counter", lambda: real() + 3600.0 * len(late))

    def within_read(rows, number):
        del late[:]
        before = rows.n_reads

        def slow(self, share=1.0, order=None):
            for k, chunk in enumerate(chunks(self, share, order)):
                if share == 1.0 and k == 3 and not late and self.n_reads - before > number:
                    late.append(True)
                yield chunk

        monkeypatch.setattr(StoredRows, "chunks", slow)

    return within_read


def logistic(rows, **settings):
    return cg.Problem(rows, loss=cg.losses.Logistic(), constraint=cg.constraints.L1Ball(3.0), **settings)


def readers():
    return [thread for thread in threading.enumerate() if "condgrad-reader" in thread.name]


@pytest.mark.parametrize("intercept", [False, True])
def test_a_pass_is_given_up_when_the_time_is_over(rows, time_ends, intercept):
    problem = logistic(rows, intercept=intercept)
    whole = cg.minimize(problem, tol=0.0, max_steps=30)
    time_ends(rows, 2)
    result = cg.minimize(problem, tol=0.0, max_time=1800.0)
    assert result.status is cg.Status.MAX_TIME and not readers()
    assert 2.0 < result.n_reads < 3.0  # some more chunks were read ahead
    assert result.gap == result.trace.gap.min() and result.gap + result.rounding < np.inf
    assert result.objective - whole.objective <= result.gap + result.rounding
    assert result.lower_bound <= whole.objective


def test_the_first_pass_is_finished(rows, time_ends):
    time_ends(rows, 0)
    result = cg.minimize(logistic(rows), tol=0.0, max_time=1800.0)
    assert result.status is cg.Status.MAX_TIME and result.n_reads == 1.0
    assert result.gap == pytest.approx(logistic(rows).gap(result.w))


def test_a_start_that_is_given_can_be_the_result(rows, time_ends):
    w0 = np.r_[1.0, np.zeros(D - 1)]
    time_ends(rows, 1)
    result = cg.minimize(logistic(rows), "corrective", w0=w0, tol=0.0, max_time=1800.0)
    assert result.status is cg.Status.MAX_TIME and result.n_reads < 2.0 and result.n_steps == 0
    np.testing.assert_array_equal(result.w, w0)


def test_steps_over_chunks_return_the_best_record_and_can_be_resumed(rows, time_ends, monkeypatch, tmp_path):
    problem, solver = logistic(rows), cg.solvers.SAGA(batch_size=20)
    settings = {"max_epochs": 6, "tol": 0.0, "random_state": 0}
    whole = cg.minimize(problem, solver, **settings)
    assert whole.trace.epoch.tolist() == [0, 1, 2, 4, 6]
    time_ends(rows, 7)  # four epochs and three records: this is the record after the fourth epoch
    result = cg.minimize(problem, solver, max_time=1800.0, checkpoint=tmp_path / "run", **settings)
    assert result.status is cg.Status.MAX_TIME and result.n_epochs == 4 and not readers()
    assert result.gap == whole.trace.gap[:3].min()
    monkeypatch.undo()
    resumed = cg.minimize(problem, solver, checkpoint=tmp_path / "run", **settings)
    np.testing.assert_array_equal(resumed.w, whole.w)
    np.testing.assert_array_equal(resumed.trace.gap, whole.trace.gap)


@pytest.mark.filterwarnings("ignore:FrankWolfe reads all")
def test_an_iterate_without_certificate_gets_one(rows, time_ends):
    time_ends(rows, 12)
    result = cg.minimize(logistic(rows), "fw", tol=0.0, max_time=1800.0)
    assert result.status is cg.Status.MAX_TIME and 13.0 < result.n_reads < 14.0
    assert result.gap == pytest.approx(logistic(rows).gap(result.w)) and result.rounding < np.inf


@pytest.mark.filterwarnings("ignore:.*max_time")
def test_estimators_stop_within_a_pass(rows, time_ends):
    time_ends(rows, 2)
    model = cg.ConstrainedLogisticRegression(radius=3.0, tol=1e-12, max_time=1800.0).fit(rows)
    assert model.result_.status is cg.Status.MAX_TIME and model.result_.n_reads < 3.0


def test_a_deadline_belongs_to_its_own_run():
    heard = []

    def other_thread():
        Interrupts.end_pass()
        heard.append("nothing")

    with Interrupts() as outer:
        outer.end_passes_at(0.0)
        with Interrupts():
            Interrupts.end_pass()
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
        with pytest.raises(PassInterruptedError):
            Interrupts.end_pass()
    Interrupts.end_pass()
    assert heard == ["nothing"]
