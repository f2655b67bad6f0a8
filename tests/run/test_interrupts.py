"""Ctrl-C: a request ends what runs, and one that comes too late for that is passed on."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import condgrad as cg
from condgrad.linalg.interrupts import Interrupts
from condgrad.paths import factor_walk, smooth_engine
from condgrad.paths.radius_search import radius_at
from condgrad.paths.smooth_course import DONE
from condgrad.paths.smooth_engine import SmoothEngine

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 6))
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(30) > 0.0, 1.0, -1.0)


def make(radius=3.0):
    return cg.Problem(X, Y, cg.losses.Logistic(), cg.constraints.L1Ball(radius))


def press(*_):
    signal.raise_signal(signal.SIGINT)


def at_the_end(tol):
    """Return a callback that presses once, at the first record that certifies the answer: nothing is left to stop."""
    pressed = []

    def callback(progress):
        if progress.gap <= tol and not pressed:
            pressed.append(progress.step)
            press()

    return callback


@contextlib.contextmanager
def handler(function):
    """Have ``function`` handle Ctrl-C."""
    before = signal.signal(signal.SIGINT, function)
    try:
        yield
        assert signal.getsignal(signal.SIGINT) is function
    finally:
        signal.signal(signal.SIGINT, before)


def pressed_after_run(monkeypatch, place, at):
    """Let run number ``at`` of those that ``place`` calls be met by Ctrl-C when it has converged; return them all."""
    runs, real = [], cg.minimize

    def minimize(*given, **settings):
        runs.append(len(runs))
        is_met = runs[-1] == at
        result = real(*given, **settings, callback=at_the_end(settings["tol"]) if is_met else None)
        assert not is_met or result.status is cg.Status.CONVERGED
        return result

    monkeypatch.setattr(place, minimize)
    return runs


def test_a_request_in_the_last_step_ends_the_loop_around_the_runs():
    tol = 1e-6
    seen = []
    with handler(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        for k in range(3):
            seen.append(k)
            cg.minimize(make(), "pairwise", tol=tol, callback=at_the_end(tol))
    assert seen == [0]


def test_a_request_that_was_acted_on_goes_no_further():
    heard = []
    with handler(lambda *given: heard.append(given)):
        result = cg.minimize(make(), "fw", tol=0.0, callback=lambda progress: progress.step == 3 and press())
    assert result.status is cg.Status.INTERRUPTED and not heard


class Pressing:
    """Stochastic Frank-Wolfe, during whose steps Ctrl-C is pressed."""

    def __init__(self):
        self.inner = cg.solvers.SFW()
        self.requires = self.inner.requires
        self.refresh, self.evaluate = self.inner.refresh, self.inner.evaluate

    def init(self, *given):
        """Return a state that never guesses its gap, which would end the run before the request is heard."""
        state = self.inner.init(*given)
        state.__class__ = type("Blind", (type(state),), {"gap_estimate": np.inf})
        return state

    def advance(self, problem, state, t, max_steps, max_epochs):
        for k in range(30):
            self.inner.advance(problem, state, t + k, 1, np.inf)
        press()
        return 30


def test_a_request_that_was_acted_on_is_told_whatever_the_gap():
    """Whoever makes several runs has only the status to hear of it."""
    tol = 0.0
    for _ in range(2):
        with handler(lambda *given: pytest.fail("the request was acted on")):
            result = cg.minimize(make(), Pressing(), tol=tol, evaluate_every=1e9, random_state=0)
        assert result.status is cg.Status.INTERRUPTED
        tol = result.gap + result.rounding
    assert result.gap + result.rounding <= tol


@pytest.mark.parametrize("stop", ["callback", "error"])
def test_a_request_that_another_end_came_before_is_passed_on(stop):
    def callback(progress):
        press()
        if stop == "error":
            raise RuntimeError("mine")
        return True

    heard = []
    expected = pytest.raises(RuntimeError) if stop == "error" else contextlib.nullcontext()
    with handler(lambda *given: heard.append(given)), expected:
        assert cg.minimize(make(), "fw", callback=callback).status is cg.Status.STOPPED
    assert len(heard) == 1


def test_a_user_who_ignores_the_signal_is_not_met_by_it():
    with handler(signal.SIG_IGN):
        assert cg.minimize(make(), "fw", callback=lambda progress: press() or True).status is cg.Status.STOPPED
        assert cg.minimize(make(), "fw", tol=0.0, max_steps=5, callback=press).status is cg.Status.MAX_STEPS


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell that ignores signals")
def test_a_process_that_was_started_to_ignore_it_goes_on(tmp_path):
    """As `nohup` and `&` in a script start one: no run ends, no command, and nothing else hears it."""
    code = """
        import os, signal
        import numpy as np
        import condgrad as cg
        from condgrad.cli import main

        def press(progress=None):
            signal.raise_signal(signal.SIGINT)

        press()
        X = np.random.default_rng(0).standard_normal((30, 6))
        y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
        problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
        assert cg.minimize(problem, "fw", tol=0.0, max_steps=9, callback=press).status is cg.Status.MAX_STEPS
        assert cg.lasso_path(X, y, n_radii=4, callback=press)[2].status is cg.Status.CONVERGED
        np.savez("data.npz", X=X, y=y)
        real = cg.minimize
        import condgrad.paths.allowed_sets as module
        module.minimize = lambda *given, **settings: real(*given, **settings, callback=press)
        assert main(["fit", "data.npz", "--radius", "1", "--out", "m.npz", "--quiet"]) == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    """
    command = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, textwrap.dedent(code)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert cg.load_model(tmp_path / "m.npz").status is cg.Status.CONVERGED


def test_the_second_one_is_not_passed_on_again():
    heard = []
    with handler(lambda *given: heard.append(given)), pytest.raises(KeyboardInterrupt):
        cg.minimize(make(), "fw", callback=lambda progress: press() or press())
    assert not heard


def test_inside_each_other_they_share_one_request():
    with handler(lambda *given: pytest.fail("the request was acted on")), Interrupts() as outer:
        with Interrupts() as inner:
            press()
        assert outer.heard() and inner.heard()


def waits_for_a_press(started):
    """Return a callback that holds its run in the middle until Ctrl-C was heard: a run may end sooner than it comes."""

    def callback(_):
        started.set()
        while not Interrupts().heard():
            time.sleep(0.001)

    return callback


def test_a_run_in_another_thread_hears_it():
    results, started = [], threading.Event()
    with Interrupts() as interrupts:
        callback = waits_for_a_press(started)
        thread = threading.Thread(target=lambda: results.append(cg.minimize(make(), "fw", tol=0.0, callback=callback)))
        thread.start()
        started.wait(60)
        press()
        thread.join(60)
        assert interrupts.heard()
    assert results[0].status is cg.Status.INTERRUPTED


def test_radius_path_stops_after_a_request_in_the_last_step_of_a_point(monkeypatch):
    runs = pressed_after_run(monkeypatch, "condgrad.paths.allowed_sets.minimize", 1)
    radii, coefs, info = cg.radius_path(X, Y, radii=[0.5, 1.0, 1.5, 2.0], tol=1e-4, solver="corrective")
    assert info.status is cg.Status.INTERRUPTED and len(runs) == 2
    assert radii.tolist() == [0.5, 1.0] and coefs.shape[1] == 2


def test_radius_path_passes_on_a_request_after_its_last_point(monkeypatch):
    heard = []
    pressed_after_run(monkeypatch, "condgrad.paths.allowed_sets.minimize", 1)
    with handler(lambda *given: heard.append(given)):
        radii, _, info = cg.radius_path(X, Y, radii=[0.5, 1.0], tol=1e-4, solver="corrective")
    assert info.status is cg.Status.CONVERGED and radii.size == 2 and len(heard) == 1


@pytest.mark.parametrize("place", ["alone", "in a path"])
def test_the_search_for_a_radius_hears_it(monkeypatch, place):
    runs = pressed_after_run(monkeypatch, "condgrad.paths.allowed_sets.minimize", 0)
    if place == "alone":
        with handler(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
            radius_at(make(), cg.constraints.L1Ball, 0.01)
        assert len(runs) == 1
    else:
        radii, _, info = cg.radius_path(X, Y, n_radii=5, tol=1e-4, solver="corrective")
        assert info.status is cg.Status.INTERRUPTED and radii.size == 0
        assert len(runs) == 2  # the next one looks before its first step


def pressed_on_record(monkeypatch, place, at):
    """Let record number ``at`` of the points of all paths be met by Ctrl-C; return the list of records."""
    records, real = [], cg.lasso_path

    def callback(progress):
        records.append(progress.step)
        if len(records) == at:
            press()

    monkeypatch.setattr(place, lambda *given, **settings: real(*given, **settings, callback=callback))
    return records


@pytest.mark.parametrize("fold", [0, 1, 3])
def test_lasso_cv_hears_it_wherever_it_comes(monkeypatch, fold):
    # The path of all data has four points, then each of three folds; the last point of one is where it comes.
    monkeypatch.setattr("condgrad.estimators.lasso_cv.is_tall", lambda X, n_targets: False)
    records = pressed_on_record(monkeypatch, "condgrad.estimators.lasso_cv.lasso_path", 4 * (fold + 1))
    with handler(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        cg.ConstrainedLassoCV(n_radii=4, cv=3).fit(X, Y)
    assert len(records) == 4 * (fold + 1)


@pytest.mark.parametrize("run", [0, 3, 5])
def test_logistic_cv_hears_it_wherever_it_comes(monkeypatch, run):
    runs = pressed_after_run(monkeypatch, "condgrad.paths.allowed_sets.minimize", run)
    model = cg.ConstrainedLogisticRegressionCV(radii=[0.5, 1.0], cv=3, solver="corrective")
    with handler(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert len(runs) - 1 in (run, run + 1) and not hasattr(model, "coef_")


def pressed_after_solution(monkeypatch, at):
    """Let solution number ``at`` of the engine of paths be met by Ctrl-C; return the list of their goals."""
    goals, real = [], SmoothEngine.advance

    def advance(self, targets, is_penalised, tol):
        goals.append(targets[0])
        points = real(self, targets[:1], is_penalised, tol)
        if len(goals) == at:
            press()
        return points

    monkeypatch.setattr(SmoothEngine, "advance", advance)
    return goals


def test_the_engine_of_paths_hears_it_between_solutions(monkeypatch):
    goals = pressed_after_solution(monkeypatch, 2)
    radii, coefs, info = cg.radius_path(X, Y, radii=[0.5, 1.0, 1.5, 2.0], tol=1e-9)
    assert info.status is cg.Status.INTERRUPTED and len(goals) in (2, 3)
    assert 1 <= radii.size == coefs.shape[1] <= 2


def test_points_of_a_search_over_several_targets_are_kept(monkeypatch):
    """Ctrl-C comes while a search is at its third target: the two points before it are not lost."""
    real, done = smooth_engine.turn, []

    def turn(search, *given):
        needs = real(search, *given)
        done.append(int(search.course[DONE]))
        if done[-1] == 2:
            press()
        return needs

    monkeypatch.setattr(smooth_engine, "turn", turn)
    monkeypatch.setattr(smooth_engine, "_MOST_WORK", 0.0)  # it returns after every pass
    radii, coefs, info = cg.radius_path(X, Y, radii=np.linspace(0.5, 2.0, 20), tol=1e-6)
    assert info.status is cg.Status.INTERRUPTED and max(done) == 2
    assert 2 <= radii.size == coefs.shape[1] < 20
    assert (info.relative_gap <= 1e-6).all()


def test_folds_in_other_threads_hear_it(monkeypatch):
    """The main thread waits for the folds; they end, and KeyboardInterrupt comes out of ``fit``."""
    module = sys.modules["condgrad.paths.allowed_sets"]
    real, started = module.minimize, threading.Event()

    def minimize(*given, **settings):
        return real(*given, **settings, callback=waits_for_a_press(started))

    monkeypatch.setattr(module, "minimize", minimize)

    def press_once_started():
        started.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press_once_started)
    thread.start()
    with handler(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        cg.ConstrainedLogisticRegressionCV(radii=[1.0], cv=2, n_jobs=2, solver="fw").fit(X, Y)
    thread.join()


@pytest.mark.parametrize("estimator", [cg.MatrixCompletion(), cg.MatrixCompletionCV(cv=2)], ids=["one", "cv"])
def test_completion_hears_it_while_a_radius_is_chosen(monkeypatch, estimator):
    rng = np.random.default_rng(1)
    rows, columns = np.divmod(rng.permutation(108)[:80], 9)
    fits, real = [], factor_walk.refit

    def refit(*given):
        fits.append(len(fits))
        if len(fits) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(*given)

    monkeypatch.setattr(factor_walk, "refit", refit)
    with handler(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        estimator.fit(rows, columns, rng.standard_normal(80))
    assert len(fits) == 2
