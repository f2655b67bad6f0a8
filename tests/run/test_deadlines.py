"""What takes long looks at the clock: max_time is that of a fit, and pieces of a step end with it."""

import importlib
import time

import numpy as np
import pytest

import condgrad as cg
from condgrad.linalg.interrupts import at_most, time_left
from condgrad.paths import factor_walk
from condgrad.paths.radius_search import radius_at
from condgrad.problems.active_set import AtomStack
from condgrad.solvers.full_pass.taylor_model import model_for

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 8))
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.standard_normal(40)
THREE = np.digitize(Y, [-1.0, 1.0])


def quadratic(n_atoms):
    A = np.random.default_rng(1).standard_normal((n_atoms, n_atoms))
    return 100.0 * A @ A.T / n_atoms, np.random.default_rng(2).standard_normal(n_atoms)


@pytest.mark.parametrize(
    "ball",
    [cg.constraints.L1Ball(5.0), cg.constraints.L2Ball(5.0), cg.constraints.Box(-1.0, 2.0),
     cg.constraints.TotalVariationBall(2.0, 1.0)],
    ids=repr,
)  # fmt: skip
def test_the_minimisation_of_a_model_ends_at_the_deadline(ball):
    problem = cg.Problem(np.eye(60), np.ones(60), cg.losses.Squared(), ball)
    H, g = quadratic(60)
    atoms, x = AtomStack(np.arange(60), np.ones(60)), np.full(60, 1.0 / 60)
    whole = model_for(problem).minimise(atoms, g, H, x, 1e-9)
    late = model_for(problem).minimise(atoms, g, H, x, 1e-9, deadline=time.perf_counter() + 1e6)
    np.testing.assert_array_equal(late, whole)
    cut = model_for(problem).minimise(atoms, g, H, x, 1e-9, deadline=0.0)

    def value(z):
        return g @ (z - x) + 0.5 * (z - x) @ H @ (z - x)

    assert value(whole) < value(cut) <= 0.0  # some steps at most


def spy(monkeypatch, module, name="minimize_over"):
    """Note the seconds that every run that a module makes has: its max_time, or what the call around it has left."""
    module, given = importlib.import_module(module), []
    real = getattr(module, name)

    def minimize(*args, max_time=None, **settings):
        given.append(time_left() if max_time is None else max_time)
        return real(*args, max_time=max_time, **settings)

    monkeypatch.setattr(module, name, minimize)
    return given


@pytest.mark.filterwarnings("ignore")
def test_the_problems_of_a_fit_share_its_time(monkeypatch):
    given = spy(monkeypatch, "condgrad.estimators._linear_model")
    searched = spy(monkeypatch, "condgrad.paths.radius_search")
    cg.ConstrainedLogisticRegression(max_time=3e6, multi_class="ovr").fit(X, THREE)
    assert len(given) == 3 and 0.9e6 < given[0] <= 1e6 and given[1] <= 1.5e6 and given[2] <= 3e6
    assert searched and 0.4e6 < searched[0] <= 0.5e6
    given.clear()
    cg.ConstrainedLogisticRegression(multi_class="ovr").fit(X, THREE)
    assert given == [None] * 3


def test_the_search_for_a_radius_ends_with_its_time(monkeypatch):
    searched = spy(monkeypatch, "condgrad.paths.radius_search")
    problem = cg.Problem(X, Y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    with at_most(0.0):
        assert 0.0 < radius_at(problem, cg.constraints.L1Ball, 0.01) < np.inf and not searched
    with at_most(1e6):
        in_time = radius_at(problem, cg.constraints.L1Ball, 0.01)
    assert in_time == radius_at(problem, cg.constraints.L1Ball, 0.01)


def note_deadlines(monkeypatch):
    """Note the deadline of every refit that the choice of a radius makes."""
    deadlines, real = [], factor_walk.refit

    def refit(problem, place, sweeps, deadline):
        deadlines.append(deadline)
        return real(problem, place, sweeps, deadline)

    monkeypatch.setattr(factor_walk, "refit", refit)
    return deadlines


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [cg.MatrixCompletion, cg.MatrixCompletionCV])
def test_the_choice_of_a_radius_leaves_time_for_the_fit(monkeypatch, estimator):
    given = spy(monkeypatch, "condgrad.estimators.matrix_completion", "minimize")
    deadlines = note_deadlines(monkeypatch)
    rows, columns = np.divmod(np.random.default_rng(0).permutation(120)[:90], 10)
    values = np.sin(rows * columns)
    now = time.perf_counter()
    estimator(max_time=1e6, tol=1e-2).fit(rows, columns, values)
    assert len(deadlines) > 1 and all(0.4e6 < deadline - now <= 0.5e6 + 1e3 for deadline in deadlines)
    assert len(given) == 1 and 0.9e6 < given[0] <= 1e6
    given.clear()
    deadlines.clear()
    model = estimator(max_time=0.0, tol=1e-2, cv=2) if estimator is cg.MatrixCompletionCV else estimator(max_time=0.0)
    model.fit(rows, columns, values)
    assert given == [0.0] and model.result_.status is cg.Status.MAX_TIME
    n_folds = 2 if estimator is cg.MatrixCompletionCV else 1
    assert len(deadlines) == n_folds and max(deadlines) < time.perf_counter()  # the first radius is always tried


@pytest.mark.parametrize("name", ["corrective", "low-rank"])
def test_a_run_tells_its_state_the_deadline(name, monkeypatch):
    if name == "low-rank":
        rows, columns = np.divmod(np.arange(40), 5)
        ball = cg.constraints.NuclearBall(1.0)
        problem = cg.CompletionProblem(rows, columns, np.sin(rows * columns), cg.losses.Squared(), ball)
    else:
        problem = cg.Problem(X, Y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    now = time.perf_counter()
    assert now + 50.0 < cg.minimize(problem, name, max_time=100.0).state.deadline < time.perf_counter() + 100.0
    assert cg.minimize(problem, name).state.deadline == np.inf
