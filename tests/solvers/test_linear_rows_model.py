"""corrective over sets of linear rows: few passes, feasible iterates, and what happens if a quadratic program fails."""

import time

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import condgrad as cg
from condgrad.constraints import Box, IsotonicBox, Knapsack, KSparsePolytope, L1Ball, LinearlyConstrained, Polytope
from condgrad.linalg.quadratic_program import QuadraticProgram
from condgrad.problems.active_set import VertexStack
from condgrad.solvers.full_pass.linear_rows_model import LinearRowsModel
from condgrad.solvers.full_pass.taylor_model import model_for

D = 8
STEPS = np.eye(D)[:-1] - np.eye(D)[1:]
SETS = {
    "monotone": LinearlyConstrained(Box(-1.0, 1.0), STEPS, np.zeros(D - 1)),
    "sparse monotone": Polytope(scipy.sparse.csr_array(STEPS), np.zeros(D - 1), bounds=(-1.0, 1.0)),
    "log-contrast": LinearlyConstrained(L1Ball(1.5), A_eq=np.ones((1, D)), b_eq=[0.0]),
    "portfolio": Polytope(A_eq=np.ones((1, D)), b_eq=[1.5], bounds=(0.0, None)),
    "repeated rows": Polytope(np.vstack([STEPS, STEPS, np.ones((2, D))]), np.zeros(2 * D), bounds=(-1.0, 1.0)),
    "isotonic": IsotonicBox(-1.0, 1.0),
    "box": Box(-0.2, 0.3),
    "knapsack": Knapsack(np.arange(1.0, D + 1.0), 2.0),
    "k-sparse": KSparsePolytope(3, 0.4),
}


def make(constraint, loss=None, n=400, **settings):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    y = np.sign(X @ np.linspace(-1.0, 1.0, D)[rng.permutation(D)] + rng.standard_normal(n))
    return cg.Problem(X, y, cg.losses.Logistic() if loss is None else loss, constraint, **settings)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Squared(), cg.losses.SquaredHinge()], ids=repr)
def test_few_passes_reach_the_optimum_of_other_solvers(name, loss):
    problem = make(SETS[name], loss)
    assert isinstance(model_for(problem), LinearRowsModel) or name == "isotonic"  # many rows, but a fast oracle
    seen = []
    result = cg.minimize(problem, "corrective", tol=1e-9, callback=lambda progress: seen.append(progress.w) and None)
    assert result.status is cg.Status.CONVERGED and result.n_epochs <= 15
    assert max(SETS[name].violation(w) for w in seen) <= 1e-9
    rough = cg.minimize(problem, "pairwise", tol=1e-6)
    assert -1e-9 <= rough.objective - result.objective <= 1e-6


def test_one_model_solves_a_quadratic_problem():
    for intercept in (False, True):
        result = cg.minimize(make(SETS["monotone"], cg.losses.Squared(), intercept=intercept), tol=1e-9)
        assert result.n_steps == 1 and result.n_epochs == 2.0


def test_auto_chooses_it_and_starts_close_to_the_origin():
    problem = make(SETS["portfolio"])
    result = cg.minimize(problem)
    assert result.solver.startswith("Corrective() (auto: few passes")
    _, w = model_for(problem).start(None)
    np.testing.assert_allclose(w, 1.5 / D)
    _, w = model_for(make(SETS["monotone"])).start(None)
    assert not w.any()


@pytest.mark.parametrize("answer", ["none", "outside"])
def test_frank_wolfe_steps_replace_failed_programs(monkeypatch, answer):
    minimise = QuadraticProgram.minimise

    def fail(self, guess=None, deadline=np.inf):
        found = minimise(self, guess, deadline)
        return None if answer == "none" else found._replace(x=found.x + 1.0)

    monkeypatch.setattr(QuadraticProgram, "minimise", fail)
    for name in ("monotone", "portfolio", "log-contrast"):
        result = cg.minimize(make(SETS[name]), "corrective", tol=1e-2, max_steps=300)
        assert result.status is cg.Status.CONVERGED
        assert SETS[name].violation(result.w) <= 1e-9


def test_a_run_ends_at_its_deadline_and_in_the_set():
    problem = make(SETS["repeated rows"])
    model = model_for(problem)
    _, x = model.start(None)
    look = problem.look(x)
    atoms, _ = model.start(x)
    H = look.curvature(atoms)
    z = model.minimise(atoms, look.gradient, H, x, 0.1, deadline=time.perf_counter())
    assert SETS["repeated rows"].violation(z) <= 1e-9


@pytest.mark.parametrize("name", ["monotone", "log-contrast", "portfolio"])
def test_stopping_and_going_on_changes_nothing(name, tmp_path):
    problem = make(SETS[name], n=5000)
    settings = {"solver": "corrective", "tol": 0.0}
    whole = cg.minimize(problem, max_steps=6, **settings)
    for max_steps in (2, 4, 6):
        result = cg.minimize(problem, max_steps=max_steps, checkpoint=tmp_path / "run.npz", **settings)
    np.testing.assert_array_equal(result.state.w, whole.state.w)


def test_checkpoints_of_older_versions_with_vertices_can_be_read():
    """Their atoms were vertices of the set; w goes on from their combination."""
    problem = make(SETS["monotone"])
    solver = cg.solvers.Corrective()
    state = solver.init(problem, None)
    vertices = VertexStack([problem.lmo(r) for r in np.random.default_rng(0).standard_normal((3, D))])
    weights = np.array([0.5, 0.3, 0.2])
    arrays = {f"atoms.{name}": part for name, part in vertices.to_arrays().items()} | {"x": weights}
    numbers, _ = state.snapshot()
    state.restore(numbers, arrays | {"curvature": np.eye(3)})
    np.testing.assert_allclose(state.w, vertices.combination(weights, D))
    assert len(state.atoms) == D
    solver.step(problem, state, 0)
    assert state.look.gap < 0.5


def test_the_same_call_gives_the_same_answer_whatever_ran_before():
    """A set that is used by another run in between: no run depends on the history of the set's linear programs."""
    first = cg.minimize(make(SETS["monotone"]), "fw", max_steps=30, tol=0.0)
    cg.minimize(make(SETS["monotone"], cg.losses.Squared()), "pairwise", max_steps=17, tol=0.0)
    again = cg.minimize(make(SETS["monotone"]), "fw", max_steps=30, tol=0.0)
    np.testing.assert_array_equal(first.w, again.w)


@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Squared()], ids=repr)
def test_units_of_the_columns_do_not_matter(loss):
    problem = make(SETS["monotone"], loss)
    units = 10.0 ** np.linspace(-2.0, 2.0, D)
    bounds = np.column_stack([-1.0 / units, 1.0 / units])
    other = cg.Problem(
        problem.matrix.X * units, problem.y, loss, Polytope(STEPS * units, np.zeros(D - 1), bounds=bounds)
    )
    one, scaled = (cg.minimize(each, "corrective", tol=1e-8) for each in (problem, other))
    assert scaled.gap <= 1e-8 and scaled.n_epochs <= 15  # linear programs in such units may round more than that
    np.testing.assert_allclose(scaled.w * units, one.w, atol=1e-5)


def test_a_rough_answer_counts_only_if_it_is_better_than_a_frank_wolfe_step(monkeypatch):
    """Interior points that stop early are inside the set, but may be worse than the present point."""
    problem = make(SETS["monotone"])
    model = model_for(problem)
    atoms, x = model.start(None)
    look = problem.look(x)
    H = look.curvature(atoms)
    best = model.minimise(atoms, look.gradient, H, x, 0.1)
    exact = QuadraticProgram.minimise

    def value(z):
        return look.gradient @ (z - x) + (z - x) @ H @ (z - x) / 2.0

    for t, lower, upper in ((-1.0, None, 0.0), (0.999, value(best) + 1e-12, value(best) * 0.999)):
        rough = x + t * (best - x) if t > 0.0 else np.sort(-best)
        monkeypatch.setattr(
            QuadraticProgram, "minimise", lambda *args, at=rough: exact(*args)._replace(x=at, is_exact=False)
        )
        found = value(model.minimise(atoms, look.gradient, H, x, 0.1))
        assert found < upper and (lower is None or found >= lower)


@pytest.mark.parametrize(("n_samples", "sizes"), [(9_000, {9_000}), (40_000, {4_000, 40_000})])
def test_newton_steps_are_prepared_on_one_small_part_or_on_none(n_samples, sizes, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 6))
    y = np.where(rng.random(n_samples) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, 6))), 1.0, -1.0)
    problem = cg.Problem(X, y, cg.losses.Logistic(), Box(-0.5, 0.5))
    seen, look = set(), cg.Problem.look
    monkeypatch.setattr(cg.Problem, "look", lambda self, w: seen.add(self.n_samples) or look(self, w))
    result = cg.minimize(problem, "corrective", tol=1e-9)
    assert result.status is cg.Status.CONVERGED and seen == sizes
    expected = scipy.optimize.minimize(problem.objective, np.zeros(6), jac=problem.gradient, bounds=[(-0.5, 0.5)] * 6)
    assert result.objective <= expected.fun + 1e-12


@pytest.mark.parametrize("seed", [50, 83, 86])
def test_the_last_steps_of_interior_points_do_not_overflow(seed):
    """Warnings are errors: slacks shrink to 1e-100 here, where the model is nearly linear."""
    rng = np.random.default_rng(seed)
    X, y, A = 1e3 * rng.standard_normal((2, 1)), 3e8 * rng.standard_normal(2), rng.standard_normal((2, 1))
    constraint = LinearlyConstrained(L1Ball(1e8), A, 1e8 * np.abs(rng.standard_normal(2)))
    result = cg.minimize(cg.Problem(X, y, cg.losses.Huber(0.7), constraint), tol=1e-6, max_steps=60)
    assert constraint.violation(result.w) <= 1e-6


def test_a_loss_that_vanishes_far_away_is_minimised_to_zero():
    """Classes can be separated: numbers of the model fall to 1e-300, where their products would vanish."""
    rng = np.random.default_rng(2)
    X, y = 1e-3 * rng.standard_normal((5, 9)), np.where(rng.standard_normal(5) > 0.0, 1.0, -1.0)
    constraint = LinearlyConstrained(Box(-1e8, 1e8), rng.standard_normal((2, 9)), 1e8 * np.abs(rng.standard_normal(2)))
    result = cg.minimize(cg.Problem(X, y, cg.losses.Logistic(), constraint), tol=1e-300, max_steps=2000)
    assert result.status is cg.Status.CONVERGED
