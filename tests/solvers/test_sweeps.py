"""corrective on sparse data with many features: F over the atoms by sweeps, without Gram matrices."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.problems.linear_look import LinearLook
from condgrad.run.result import Status
from condgrad.solvers.full_pass import sweeps
from condgrad.solvers.full_pass.sweeps import Sweeps


def make(n=600, d=1500, per_row=30, seed=0, dtype=np.float64):
    """Return texts: many features with few entries each, and classes that some of them tell."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array((n, d), density=per_row / d, format="csr", rng=rng, dtype=dtype)
    w = np.zeros(d)
    w[rng.choice(d, 150, replace=False)] = rng.standard_normal(150)
    return X, np.where(X @ w + 0.5 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


@pytest.fixture(autouse=True)
def many_atoms(monkeypatch):
    """Sweeps begin with fewer atoms than on data of users, so that small data are enough."""
    monkeypatch.setattr(sweeps, "_MANY_ATOMS", 100)


@pytest.fixture
def no_gram(monkeypatch):
    """No curvature on so many atoms is allowed."""
    curvature = LinearLook.curvature

    def small(self, atoms, known=None, n_rows=np.inf):
        assert len(atoms) < sweeps._MANY_ATOMS
        return curvature(self, atoms, known, n_rows)

    monkeypatch.setattr(LinearLook, "curvature", small)


def reference(problem, monkeypatch):
    """Return the least value of F, by models on all pairs of atoms."""
    with monkeypatch.context() as patch:
        patch.setattr(Sweeps, "suited_to", classmethod(lambda cls, problem: None))
        found = cg.minimize(problem, "corrective", tol=1e-9, max_steps=300)
    assert found.status is Status.CONVERGED
    return found.objective


@pytest.mark.parametrize("settings", [{}, {"intercept": True}, {"l2": 1e-3}, {"sample_weight": np.arange(600.0)}])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_the_answer_is_certified_without_gram_matrices(form, settings, no_gram):
    X, y = make()
    problem = cg.Problem(X.asformat(form), y, cg.losses.Logistic(), cg.constraints.L1Ball(60.0), **settings)
    found = cg.minimize(problem, "corrective", tol=1e-7, max_steps=60)
    assert found.status is Status.CONVERGED and found.gap <= 1e-7
    assert problem.gap(found.w) <= 1.01e-7 and np.abs(found.w).sum() <= 60.0 * (1.0 + 1e-12)
    assert np.count_nonzero(found.w) > sweeps._MANY_ATOMS


@pytest.mark.parametrize(
    "loss", [cg.losses.Squared(), cg.losses.Huber(0.5), cg.losses.SquaredHinge(), cg.losses.Logistic()]
)
def test_it_is_the_answer_of_models(loss, monkeypatch):
    X, y = make(seed=1)
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(40.0))
    best = reference(problem, monkeypatch)
    found = cg.minimize(problem, "corrective", tol=1e-7, max_steps=200)
    assert found.status is Status.CONVERGED
    assert abs(found.objective - best) <= 2e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_columns_and_dense_data_agree(dtype):
    X, y = make(dtype=dtype)
    ball = cg.constraints.WeightedL1Ball(40.0, np.linspace(0.5, 2.0, 1500))
    objectives = []
    for data in (X, X.tocsc(), X.toarray()):
        problem = cg.Problem(data, y, cg.losses.Logistic(), ball)
        found = cg.minimize(problem, "corrective", tol=1e-8, max_steps=100)
        assert found.status is Status.CONVERGED and ball.violation(found.w) <= 1e-10
        objectives.append(found.objective)
    assert max(objectives) - min(objectives) <= 2e-8


def test_a_ball_that_does_not_bind(no_gram):
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1e4), l2=0.01)
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=60)
    assert found.status is Status.CONVERGED and np.abs(found.w).sum() < 0.9e4


def test_equal_columns_and_columns_without_entries():
    X, y = make(d=1200)
    empty = scipy.sparse.csr_array((600, 100))
    X = scipy.sparse.hstack([X, X, empty]).tocsr()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(60.0))
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=200)
    assert found.status is Status.CONVERGED and not found.w[2400:].any()


def test_models_take_over_where_sweeps_lead_nowhere(monkeypatch):
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(60.0))
    calls = []

    def stay(self, look, atoms, x, deadline):
        calls.append(len(atoms))
        return x

    monkeypatch.setattr(Sweeps, "minimise", stay)
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=200)
    assert found.status is Status.CONVERGED and len(calls) == 1


@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Logistic()])
def test_models_and_sweeps_take_turns(loss, monkeypatch):
    """The curvature that a model has computed is that of fewer atoms than there are after sweeps."""
    sizes, minimise = [], Sweeps.minimise

    def counted(self, look, atoms, x, deadline):
        sizes.append(len(atoms))
        return minimise(self, look, atoms, x, deadline)

    def judge(self, before, gap, is_still):
        self.are_slow = True  # so that a model follows

    monkeypatch.setattr(sweeps, "_MANY_ATOMS", 250)  # the first model has 200 atoms
    monkeypatch.setattr(Sweeps, "minimise", counted)
    monkeypatch.setattr(Sweeps, "judge", judge)
    X, y = make(seed=1)
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(60.0))
    found = cg.minimize(problem, "corrective", tol=1e-7, max_steps=100)
    assert len(sizes) == 1 and sizes[0] >= 250
    assert found.status is Status.CONVERGED and problem.gap(found.w) <= 1.01e-7


def test_a_run_that_is_continued_remembers_that_sweeps_are_slow(tmp_path):
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(60.0))
    solver = cg.solvers.Corrective()
    state = solver.init(problem, None)
    solver.step(problem, state, 0)
    for are_slow in (False, True):
        state.model.sweeps.are_slow = are_slow
        other = solver.init(problem, None)
        other.restore(*state.snapshot())
        assert other.model.sweeps.are_slow == are_slow


def test_few_features_and_dense_data_are_left_to_models():
    X, y = make(d=500)
    ball = cg.constraints.L1Ball(5.0)
    assert Sweeps.suited_to(cg.Problem(X, y, cg.losses.Logistic(), ball)) is None
    X, y = make()
    assert Sweeps.suited_to(cg.Problem(X.toarray(), y, cg.losses.Logistic(), ball)) is None
    assert Sweeps.suited_to(cg.Problem(X, y, cg.losses.Logistic(), ball)) is not None
