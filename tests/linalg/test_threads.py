"""How many threads passes over the data use: those that the work pays for, and never more than anyone has left them."""

import subprocess
import sys
import threading

import numba
import numpy as np
import pytest
import threadpoolctl

import condgrad as cg
from condgrad.estimators import _cross_validation
from condgrad.linalg import threads

MANY = 10**9


@pytest.fixture(autouse=True)
def four(monkeypatch):
    """Have four threads, whatever the machine has, and no limits."""
    monkeypatch.setattr(threads.config, "NUMBA_NUM_THREADS", 4)
    monkeypatch.setattr(threads.parallel, "_is_initialized", False, raising=False)
    monkeypatch.setattr(threads, "_left_by_threadpoolctl", lambda: 4)


def n_ranges(work=MANY):
    return len(threads.cut(1000, work)) - 1


def test_small_work_stays_on_one_thread():
    assert n_ranges() == 4
    assert n_ranges(38 * 7129) == 1 and n_ranges(2 * threads._MIN_WORK) == 2
    assert len(threads.cut(3, MANY)) - 1 == 3


def test_small_work_asks_nobody(monkeypatch):
    monkeypatch.setattr(threads, "n_threads", None)
    assert n_ranges(1000) == 1


def test_threads_of_numba(monkeypatch):
    monkeypatch.setattr(threads.parallel, "_is_initialized", True, raising=False)
    monkeypatch.setattr(threads.parallel, "get_num_threads", lambda: 2)
    assert threads.n_threads() == 2 and n_ranges() == 2
    code = """
        import numba
        from condgrad.linalg import threads
        assert threads.n_threads() == int(numba.config.NUMBA_NUM_THREADS)
        numba.set_num_threads(1)
        assert threads.n_threads() == 1
    """
    subprocess.run([sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines())], check=True)


def test_limits_of_threadpoolctl(monkeypatch):
    monkeypatch.undo()
    with threadpoolctl.threadpool_limits(1):
        assert threads.n_threads() == 1
        assert n_ranges() == 1
    assert threads.n_threads() == min(numba.config.NUMBA_NUM_THREADS, threads._left_by_threadpoolctl())


def test_a_share_is_for_one_thread_and_for_a_while():
    found = []
    with threads.at_most(2):
        assert threads.n_threads() == 2
        with threads.at_most(3):
            assert threads.n_threads() == 2
        with threads.at_most(0):
            assert threads.n_threads() == 1
        other = threading.Thread(target=lambda: found.append(threads.n_threads()))
        other.start()
        other.join()
    assert found == [4] and threads.n_threads() == 4


@pytest.mark.parametrize(("n_jobs", "share"), [(None, 4), (1, 4), (2, 2), (3, 1), (4, 1), (8, 1)])
def test_folds_side_by_side_share_the_threads(n_jobs, share):
    seen = _cross_validation.on_threads([(lambda k: (k, threads.n_threads()), k) for k in range(4)], n_jobs)
    assert seen == [(k, share) for k in range(4)]


@pytest.mark.slow
def test_processes_of_joblib_get_their_share_by_the_environment():
    code = """
        import joblib
        def count():
            from condgrad.linalg import threads
            return threads.n_threads()
        if __name__ == "__main__":
            with joblib.parallel_config("loky", inner_max_num_threads=1):
                print(joblib.Parallel(2)(joblib.delayed(count)() for _ in range(2)))
    """
    text = "\n".join(line[8:] for line in code.splitlines())
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[1, 1]"


def test_lasso_path_of_short_wide_data_hands_no_look_over(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((38, 7129))
    split = []
    real = threads.run

    def run(task, borders):
        split.append(len(borders) > 2)
        return real(task, borders)

    monkeypatch.setattr(threads, "run", run)
    cg.lasso_path(X, X[:, 0], n_radii=10)
    assert sum(split) <= 2 < len(split)  # the means and norms of all columns may be worth it, once
