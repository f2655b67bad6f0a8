"""A run that stops and goes on is the run that never stopped; anything else is refused with a sentence."""

import errno
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import scipy.sparse
from tables import QUADRATIC_ONLY

import condgrad as cg
from condgrad.run.sealed_file import pack, unpack, write_file

SETTINGS = {"tol": 1e-13, "random_state": 3, "evaluate_every": 5}


def make_problem(constraint=None, loss=None, *, seed=0, intercept=False):
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(60, 8, 0.5, random_state=seed, format="csr")
    y = np.where(rng.random(60) < 0.5, -1.0, 1.0)
    constraint = cg.constraints.L1Ball(3.0) if constraint is None else constraint
    return cg.Problem(X, y, cg.losses.Logistic() if loss is None else loss, constraint, intercept=intercept)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(cg.solvers.REGISTERED) - {"low-rank"}))
def test_stopping_and_going_on_changes_nothing(name, tmp_path):
    problem = make_problem(loss=cg.losses.Squared() if name in QUADRATIC_ONLY else None)
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
        solver = cg.solvers.SFW()
        state = solver.init(problem, None, seed)
        iterates = []
        for t in range(5):
            solver.advance(problem, state, t, 1, np.inf)
            iterates.append(state.w)
        counts[next(k for k, w in enumerate(iterates) if np.array_equal(w, state.random_iterate))] += 1
    assert ((counts - 80) ** 2 / 80).sum() < 18.5  # the 0.999 quantile of chi-square with 4 degrees of freedom


@pytest.mark.slow
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
    here = pathlib.Path(__file__).parent
    child = subprocess.Popen([sys.executable, "-c", script, path, here, here.parent, here.parents[1]])
    deadline = time.monotonic() + 120
    while not path.exists() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.01)
    time.sleep(0.2)
    child.send_signal(signal.SIGKILL)
    child.wait()
    steps = unpack(path, ("checkpoint", 3))[0]["numbers"]["run"]["t"]
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


BY_LINEAR_PROGRAMS = {
    "polytope": lambda bound: cg.constraints.Polytope(np.ones((1, 5)), [bound], bounds=(0.0, 1.0)),
    "sparse rows": lambda bound: cg.constraints.Polytope(
        scipy.sparse.eye_array(5), np.full(5, bound), bounds=(0.0, None)
    ),
    "cut": lambda bound: cg.constraints.LinearlyConstrained(cg.constraints.L1Ball(bound), np.ones((1, 5)), [0.5]),
    "graph": lambda bound: cg.constraints.GraphTotalVariationBall([[0, 1], [1, 2], [2, 3], [3, 4]], bound, 1.0),
}


@pytest.mark.parametrize("name", BY_LINEAR_PROGRAMS)
def test_runs_over_sets_of_linear_programs_resume(tmp_path, name):
    """Another object of the set is the same set, whatever its linear program has kept; another set is not."""
    X = np.random.default_rng(0).standard_normal((30, 5))
    y = X @ np.array([0.3, 0.1, 0.2, 0.25, 0.15])  # within the sets, where Frank-Wolfe steps are slow

    def run(bound, max_steps):
        problem = cg.Problem(X, y, cg.losses.Squared(), BY_LINEAR_PROGRAMS[name](bound))
        return cg.minimize(problem, "fw", tol=0.0, max_steps=max_steps, checkpoint=tmp_path / "run.npz")

    run(1.0, 3)
    assert run(1.0, 6).n_steps == 6
    with pytest.raises(ValueError, match="belongs to another problem"):
        run(1.5, 6)


def _at_most(k):
    return lambda features: features.size <= k


MATROID_RULES = [
    cg.constraints.uniform_matroid(2), cg.constraints.uniform_matroid(3),
    cg.constraints.partition_matroid([0, 0, 1, 1, 1], [1, 1]),
    cg.constraints.partition_matroid([0, 1, 1, 1, 0], [1, 1]),
    _at_most(2), _at_most(3),  # two functions of one name
    lambda features: not {0, 1} <= set(features) and features.size <= 2,
]  # fmt: skip


def test_rules_of_a_matroid_are_told_apart():
    def fingerprint(rule):
        matroid = cg.constraints.MatroidBasePolytope(5, rule)
        return cg.Problem(np.eye(5), np.ones(5), cg.losses.Squared(), matroid).fingerprint()

    assert len({fingerprint(rule) for rule in MATROID_RULES}) == len(MATROID_RULES)
    assert fingerprint(_at_most(2)) == fingerprint(_at_most(2))
    same = cg.constraints.partition_matroid(np.array([0, 0, 1, 1, 1]), np.array([1, 1]))
    assert fingerprint(same) == fingerprint(MATROID_RULES[2])


@pytest.mark.parametrize("every", [0.0, 1e9])  # when one is due, and at the end of the run
def test_a_full_disk_costs_the_checkpoint_and_not_the_run(tmp_path, monkeypatch, every):
    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    problem = make_problem()
    plain = cg.minimize(problem, "fw", max_steps=5, **SETTINGS)
    monkeypatch.setattr("condgrad.run.checkpoint.write_file", full)
    with pytest.warns(RuntimeWarning, match="could not be written .No space left.*no file to resume from"):
        result = cg.minimize(
            problem, "fw", max_steps=5, checkpoint=cg.Checkpoint(tmp_path / "run.npz", every=every), **SETTINGS
        )
    np.testing.assert_array_equal(result.w, plain.w)
    assert (result.status, result.gap) == (plain.status, plain.gap) and not list(tmp_path.iterdir())


def test_the_last_whole_checkpoint_outlives_a_full_disk(tmp_path, monkeypatch):
    file = tmp_path / "run.npz"
    problem = make_problem()
    cg.minimize(problem, "fw", max_steps=5, checkpoint=file, **SETTINGS)
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    with pytest.warns(RuntimeWarning, match="the file contains the last save"):
        cg.minimize(problem, "fw", max_steps=9, checkpoint=file, **SETTINGS)
    monkeypatch.setattr(os, "fsync", real)
    assert unpack(file, ("checkpoint", 3))[0]["numbers"]["run"]["t"] == 5
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_a_checkpoint_sets_what_a_run_has_and_nothing_else(tmp_path):
    file = tmp_path / "run.npz"
    problem, solver = make_problem(), cg.solvers.FrankWolfe(cg.step_sizes.Backtracking())
    cg.minimize(problem, solver, max_steps=5, checkpoint=file, **SETTINGS)
    header, arrays = unpack(file, ("checkpoint", 3))
    header["numbers"]["run"] |= {"limits": None, "record": 1, "unknown": 2}
    header["numbers"]["rule"] |= {"tau": 1e9, "_unknown": 3, "at": 4}
    own = {name: value for name, value in header.items() if name not in ("format", "format_version")}
    write_file(file, pack("checkpoint", 3, own, arrays))
    result = cg.minimize(problem, solver, max_steps=9, checkpoint=file, **SETTINGS)
    assert result.n_steps == 9
    assert vars(result.state.rule).keys() == {"tau", "eta", "_M"} and result.state.rule.tau == 2.0
