"""corrective on small dense data: F over few atoms of an l1 ball by Newton's method, between two passes."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.run.result import Status
from condgrad.solvers.full_pass import newton_rounds, taylor_model
from condgrad.solvers.full_pass.descent import Descended
from condgrad.solvers.full_pass.newton_rounds import NewtonRounds


def make(n=80, d=400, seed=0, dtype=np.float64, order="C"):
    """Return few samples of many features, and classes that some of them tell."""
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.standard_normal((n, d)), dtype=dtype, order=order)
    w = np.zeros(d)
    w[rng.choice(d, 10, replace=False)] = rng.standard_normal(10)
    return X, np.where(X @ w + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


@pytest.fixture
def rounds(monkeypatch):
    """Count the calls of rounds."""
    calls, minimise = [], NewtonRounds.minimise

    def counted(self, look, atoms, x, limits):
        calls.append(len(atoms))
        return minimise(self, look, atoms, x, limits)

    monkeypatch.setattr(NewtonRounds, "minimise", counted)
    return calls


def reference(problem, monkeypatch):
    """Return the least value of F, by models alone."""
    with monkeypatch.context() as patch:
        patch.setattr(NewtonRounds, "suited_to", classmethod(lambda cls, problem: None))
        found = cg.minimize(problem, "corrective", tol=1e-10, max_steps=300)
    assert found.status is Status.CONVERGED
    return found.objective


@pytest.mark.parametrize(
    "settings",
    [{}, {"intercept": True}, {"l2": 1e-2}, {"sample_weight": np.arange(80.0)}, {"offset": np.linspace(-1.0, 1.0, 80)}],
)
@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.PseudoHuber(0.5)])
def test_the_answer_is_certified_and_that_of_models(loss, settings, rounds, monkeypatch):
    X, y = make()
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(3.0), **settings)
    best = reference(problem, monkeypatch)
    assert not rounds
    found = cg.minimize(problem, "corrective", tol=1e-9, max_steps=60)
    assert found.status is Status.CONVERGED and rounds
    assert problem.gap(found.w) <= 1.01e-9 and np.abs(found.w).sum() <= 3.0 * (1.0 + 1e-12)
    assert abs(found.objective - best) <= 1.1e-9


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_data_agree(dtype, order, rounds, monkeypatch):
    monkeypatch.setattr("condgrad.linalg.coded_matrix._LARGE", np.inf)  # what is stored as sparse stays so
    X, y = make(dtype=dtype, order=order)
    ball = cg.constraints.WeightedL1Ball(3.0, np.linspace(0.5, 2.0, 400))
    objectives, n_rounds = [], []
    for data in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_array(X)):
        problem = cg.Problem(data, y, cg.losses.Logistic(), ball)
        found = cg.minimize(problem, "corrective", tol=1e-8, max_steps=100)
        assert found.status is Status.CONVERGED and ball.violation(found.w) <= 1e-10
        objectives.append(found.objective)
        n_rounds.append(len(rounds))
    assert n_rounds[2] == n_rounds[0] > 0 and max(objectives) - min(objectives) <= 2e-8


def test_every_iterate_is_feasible_and_the_gaps_are_exact():
    X, y = make(seed=3)
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(5.0), intercept=True)
    solver = cg.solvers.Corrective()
    state = solver.init(problem, None)
    for t in range(8):
        solver.step(problem, state, t)
        assert np.abs(state.w).sum() <= 5.0 * (1.0 + 1e-12)
        assert state.look.gap == pytest.approx(problem.gap(state.w), rel=1e-6, abs=1e-12)


def test_a_ball_that_does_not_bind(rounds):
    X, y = make(d=40)  # fewer than there is room for
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1e3), l2=0.5)
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=60)
    assert found.status is Status.CONVERGED and np.abs(found.w).sum() < 900.0
    assert len(rounds) == found.trace.step[-1] <= 3  # no model took over


def test_models_take_over_where_rounds_lead_nowhere(monkeypatch):
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    calls = []

    def stay(self, look, atoms, x, limits):
        calls.append(len(atoms))
        return Descended(atoms, x, 0)

    monkeypatch.setattr(NewtonRounds, "minimise", stay)
    found = cg.minimize(problem, "corrective", tol=1e-8, max_steps=200)
    assert found.status is Status.CONVERGED and len(calls) == 1


def test_rounds_go_on_as_long_as_they_lead_far_enough():
    X, y = make()
    rounds = NewtonRounds.suited_to(cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0)))
    for gap, is_still, are_slow in ((0.4, False, False), (0.6, False, True), (0.1, False, False), (0.1, True, True)):
        rounds.judge(1.0, gap, is_still)
        assert (rounds.n_slow > 0) == are_slow


def test_models_take_over_where_atoms_become_too_many(monkeypatch, rounds):
    monkeypatch.setattr(newton_rounds, "_MOST_ATOMS", 25)
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(8.0))
    found = cg.minimize(problem, "corrective", tol=1e-8, max_steps=200)
    assert found.status is Status.CONVERGED and rounds and max(rounds) <= 25
    assert np.count_nonzero(found.w) > 25


def test_a_run_that_is_continued_remembers_that_rounds_are_slow():
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    solver = cg.solvers.Corrective()
    state = solver.init(problem, None)
    solver.step(problem, state, 0)
    for are_slow in (False, True):
        for each in state.model.descents:
            each.n_slow = int(are_slow and isinstance(each, newton_rounds.NewtonRounds))
        other = solver.init(problem, None)
        other.restore(*state.snapshot())
        assert [each.n_slow for each in other.model.descents] == [each.n_slow for each in state.model.descents]
        assert any(each.n_slow > 0 for each in other.model.descents) == are_slow


@pytest.mark.parametrize(
    "ball", [cg.constraints.L1Ball(3.0), cg.constraints.WeightedL1Ball(3.0, 0.5 + np.arange(400) % 7 / 4.0)]
)
def test_atoms_join_between_two_passes(ball, monkeypatch):
    """One step leads to the end, though it begins with few of the atoms in use."""
    monkeypatch.setattr(taylor_model, "_FEWEST_NEW", 5)
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), ball)
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=1)
    assert found.status is Status.CONVERGED and np.count_nonzero(found.w) > 5
    looks = found.trace.gradient_evaluations[-1] / 80 - 2  # besides the passes at the start and at the end
    assert 2 <= looks <= newton_rounds._MOST_LOOKS and found.trace.lmo_calls[-1] == looks + 2


def test_no_atoms_join_where_a_pass_over_all_columns_takes_longer_than_a_call(monkeypatch):
    monkeypatch.setattr(newton_rounds, "_MOST_ENTRIES", 80 * 400 - 1)
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=50)
    assert found.status is Status.CONVERGED
    assert found.trace.gradient_evaluations[-1] == 80 * (found.trace.step[-1] + 1) and found.trace.step[-1] >= 2


def test_where_rounds_are_suited(tmp_path, monkeypatch):
    monkeypatch.setattr("condgrad.linalg.coded_matrix._LARGE", np.inf)  # what is stored as sparse stays so
    X, y = make()
    ball, logistic = cg.constraints.L1Ball(3.0), cg.losses.Logistic()
    assert NewtonRounds.suited_to(cg.Problem(X, y, logistic, ball)) is not None
    assert NewtonRounds.suited_to(cg.Problem(scipy.sparse.csr_array(X), y, logistic, ball)) is None
    for loss in (cg.losses.Squared(), cg.losses.Huber(0.5), cg.losses.SquaredHinge(), cg.losses.Welsch()):
        assert NewtonRounds.suited_to(cg.Problem(X, y, loss, ball)) is None
    folder = cg.rows.convert((X, y), tmp_path / "rows")
    assert NewtonRounds.suited_to(cg.Problem(folder, None, logistic, ball)) is None
    X, y = make(n=3001, d=10)
    assert NewtonRounds.suited_to(cg.Problem(X, y, logistic, ball)) is None


def test_atoms_are_gathered_only_for_another_step(monkeypatch):
    asked, plain = [], taylor_model.HullModel.add_candidates

    def counted(self, *args):
        asked.append(self)
        plain(self, *args)

    monkeypatch.setattr(taylor_model.HullModel, "add_candidates", counted)
    X, y = make()
    found = cg.minimize(cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0)), "corrective", tol=1e-6)
    n_steps = int(found.trace.step[-1])
    assert found.status is Status.CONVERGED and 0 < n_steps == len(asked)
    found.state.snapshot()
    found.state.snapshot()  # what is saved has them, once
    assert len(asked) == n_steps + 1


@pytest.mark.parametrize("max_epochs", [1, 2, 3])
def test_looks_of_the_kernel_end_with_the_epochs(max_epochs):
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    found = cg.minimize(problem, "corrective", tol=1e-12, max_epochs=max_epochs)
    assert found.trace.epoch[-1] - found.trace.epoch[0] <= max_epochs
    assert found.status is Status.MAX_EPOCHS or found.gap <= 1e-12  # how close three looks lead depends on rounding
    assert found.objective < problem.null_objective()
    again = cg.minimize(problem, "corrective", tol=1e-12, max_epochs=max_epochs, w0=found)
    assert again.trace.epoch[-1] - again.trace.epoch[0] <= max_epochs
    assert again.objective <= found.objective + 1e-14
