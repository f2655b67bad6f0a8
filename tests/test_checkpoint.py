"""A run that stops and goes on is the run that never stopped; anything else is refused with a sentence."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.sealed_file import unpack

SETTINGS = {"tol": 1e-13, "random_state": 3, "evaluate_every": 5}


def make_problem(constraint=None, loss=None, *, seed=0, intercept=False):
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(60, 8, 0.5, random_state=seed, format="csr")
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    constraint = cg.constraints.L1Ball(3.0) if constraint is None else constraint
    return cg.Problem(X, y, cg.losses.Logistic() if loss is None else loss, constraint, intercept=intercept)


@pytest.mark.parametrize("name", sorted(set(cg.solvers.REGISTERED) - {"low-rank"}))
def test_stopping_and_going_on_changes_nothing(name, tmp_path):
    problem = make_problem()
    whole = cg.minimize(problem, name, max_steps=90, **SETTINGS)
    for max_steps in (1, 37, 90):
        result = cg.minimize(problem, name, max_steps=max_steps, checkpoint=tmp_path / "run.npz", **SETTINGS)
    assert result.n_steps == whole.n_steps
    np.testing.assert_array_equal(result.w, whole.w)
    np.testing.assert_array_equal(result.state.w, whole.state.w)
    np.testing.assert_array_equal(result.trace.gap, whole.trace.gap)
    assert (result.objective, result.gap, result.lower_bound) == (whole.objective, whole.gap, whole.lower_bound)


@pytest.mark.parametrize(
    "constraint", [cg.constraints.Box(-1.0, 1.0), cg.constraints.GroupBall([0, 0, 1, 1, 2, 2, 3, 3], 2.0)]
)
@pytest.mark.parametrize("name", ["pairwise", "bpcg", "corrective", "sfw"])
def test_vertices_of_any_kind_are_saved(name, constraint, tmp_path):
    problem = make_problem(constraint, intercept=True)
    whole = cg.minimize(problem, name, max_steps=60, **SETTINGS)
    for max_steps in (23, 60):
        result = cg.minimize(problem, name, max_steps=max_steps, checkpoint=tmp_path / "run.npz", **SETTINGS)
    np.testing.assert_array_equal(result.state.w, whole.state.w)


def test_backtracking_remembers_its_estimate(tmp_path):
    problem = make_problem()
    solver = cg.solvers.FrankWolfe(cg.step_sizes.Backtracking())
    whole = cg.minimize(problem, solver, max_steps=40, **SETTINGS)
    for max_steps in (11, 40):
        result = cg.minimize(problem, solver, max_steps=max_steps, checkpoint=tmp_path / "run.npz", **SETTINGS)
    np.testing.assert_array_equal(result.state.w, whole.state.w)


def test_random_iterate_survives(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 0.0, 1.0)
    problem = cg.Problem(make_problem().matrix.X, y, cg.losses.SigmoidSquared(), cg.constraints.L1Ball(3.0))
    whole = cg.minimize(problem, "sfw", max_steps=200, **SETTINGS)
    for max_steps in (50, 120, 200):
        result = cg.minimize(problem, "sfw", max_steps=max_steps, checkpoint=tmp_path / "run.npz", **SETTINGS)
    np.testing.assert_array_equal(result.random_iterate, whole.random_iterate)


def test_random_iterate_is_drawn_uniformly():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 0.0, 1.0)
    problem = cg.Problem(make_problem().matrix.X, y, cg.losses.SigmoidSquared(), cg.constraints.L1Ball(3.0))
    counts = np.zeros(5)
    for seed in range(400):
        state = cg.solvers.SFW().init(problem, None, seed)
        iterates = []
        for t in range(5):
            state.advance(t, 1, np.inf)
            iterates.append(state.w)
        counts[next(k for k, w in enumerate(iterates) if np.array_equal(w, state.random_iterate))] += 1
    assert ((counts - 80) ** 2 / 80).sum() < 18.5  # the 0.999 quantile of chi-square with 4 degrees of freedom


def test_a_killed_process_goes_on_bit_for_bit(tmp_path):
    script = textwrap.dedent(
        """
        import sys
        sys.path[:0] = sys.argv[2:]
        import condgrad as cg
        from test_checkpoint import make_problem
        cg.minimize(make_problem(), "sfw", tol=0, max_epochs=1e9, random_state=3, evaluate_every=5,
                    checkpoint=cg.Checkpoint(sys.argv[1], every=0.0))
        """
    )
    path = tmp_path / "run.npz"
    here = os.path.dirname(__file__)
    child = subprocess.Popen([sys.executable, "-c", script, str(path), here, os.path.dirname(here)])
    deadline = time.monotonic() + 120
    while not path.exists() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.01)
    time.sleep(0.2)
    child.send_signal(signal.SIGKILL)
    child.wait()
    steps = unpack(path, ("checkpoint", 2))[0]["numbers"]["run"]["t"]
    target = steps + 100
    result = cg.minimize(
        make_problem(),
        "sfw",
        tol=0,
        max_epochs=1e9,
        max_steps=target,
        random_state=0,
        evaluate_every=5,
        checkpoint=path,
    )
    whole = cg.minimize(
        make_problem(), "sfw", tol=0, max_epochs=1e9, max_steps=target, random_state=3, evaluate_every=5
    )
    assert steps > 0
    np.testing.assert_array_equal(result.state.w, whole.state.w)
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".npz"] == ["run.npz"]


def test_another_problem_or_solver_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    cg.minimize(make_problem(), "sfw", max_steps=3, checkpoint=path)
    for other in (make_problem(seed=1), make_problem(cg.constraints.L1Ball(4.0)), make_problem(intercept=True)):
        with pytest.raises(ValueError, match="belongs to another problem"):
            cg.minimize(other, "sfw", max_steps=3, checkpoint=path)
    with pytest.raises(ValueError, match="was made by SFW"):
        cg.minimize(make_problem(), "saga", max_steps=3, checkpoint=path)


def test_foreign_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    cg.minimize(make_problem(), "sfw", max_steps=3, checkpoint=path)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[len(damaged) // 2] ^= 0xFF
    for content in (b"", b"not a checkpoint", whole[: len(whole) // 2], bytes(damaged)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a checkpoint"):
            cg.minimize(make_problem(), "sfw", max_steps=3, checkpoint=path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(ValueError, match="not a checkpoint"):
        cg.minimize(make_problem(), "sfw", max_steps=3, checkpoint=path)
    with pytest.raises(ValueError, match="folder of the checkpoint"):
        cg.minimize(make_problem(), "sfw", max_steps=3, checkpoint=tmp_path / "nowhere" / "run.npz")
