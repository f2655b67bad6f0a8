"""corrective with many atoms: F over them by sweeps, without Gram matrices."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad import datasets
from condgrad.problems.linear_look import LinearLook
from condgrad.run.result import Status
from condgrad.solvers.full_pass import sweeps
from condgrad.solvers.full_pass.descent import Descended
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
    monkeypatch.setattr(sweeps, "_SPARSE", sweeps._SPARSE._replace(many=100))
    monkeypatch.setattr(sweeps, "_DENSE", sweeps._DENSE._replace(many=100))


@pytest.fixture
def no_gram(monkeypatch):
    """No curvature on so many atoms is allowed."""
    curvature = LinearLook.curvature

    def small(self, atoms, known=None, n_rows=np.inf):
        assert len(atoms) < sweeps._SPARSE.many
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
    assert np.count_nonzero(found.w) > sweeps._SPARSE.many


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

    def stay(self, look, atoms, x, limits):
        calls.append(len(atoms))
        return Descended(atoms, x, 0)

    monkeypatch.setattr(Sweeps, "minimise", stay)
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=200)
    assert found.status is Status.CONVERGED and len(calls) == 1


@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Logistic()])
def test_models_and_sweeps_take_turns(loss, monkeypatch):
    """The curvature that a model has computed is that of fewer atoms than there are after sweeps."""
    sizes, minimise = [], Sweeps.minimise

    def counted(self, look, atoms, x, limits):
        sizes.append(len(atoms))
        return minimise(self, look, atoms, x, limits)

    def judge(self, before, gap, is_still):
        self.n_slow = 99  # so that a model follows

    monkeypatch.setattr(sweeps, "_SPARSE", sweeps._SPARSE._replace(many=250))  # the first model has 200 atoms
    monkeypatch.setattr(Sweeps, "minimise", counted)
    monkeypatch.setattr(Sweeps, "judge", judge)
    X, y = make(seed=1)
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(60.0))
    found = cg.minimize(problem, "corrective", tol=1e-7, max_steps=100)
    assert len(sizes) == 1 and sizes[0] >= 250
    assert found.status is Status.CONVERGED and problem.gap(found.w) <= 1.01e-7


def test_some_slow_steps_in_sequence_are_forgiven():
    X, y = make()
    steps = Sweeps.suited_to(cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(60.0)))
    for gap, is_still, n_slow in ((0.9, False, 1), (0.9, False, 2), (0.1, False, 0), (0.9, False, 1)):
        steps.judge(1.0, gap, is_still)
        assert steps.n_slow == n_slow and not steps.are_slow
    for _ in range(2):
        steps.judge(1.0, 0.9, False)
    assert steps.are_slow
    steps.judge(1.0, 0.1, False)
    assert not steps.are_slow
    steps.judge(1.0, 0.9, True)  # nowhere at all
    assert steps.are_slow


@pytest.fixture
def sizes_of_models(monkeypatch):
    """Note how many atoms the models have."""
    sizes, curvature = [0], LinearLook.curvature

    def noted(self, atoms, known=None, n_rows=np.inf):
        sizes.append(len(atoms))
        return curvature(self, atoms, known, n_rows)

    monkeypatch.setattr(LinearLook, "curvature", noted)
    return sizes


def largest_model(seed, radius, sizes, **settings):
    """Solve a problem whose classes can be separated; return the size of the largest model that this took."""
    sizes[:] = [0]
    data = datasets.simulate_text(1000, 10_000, 80, random_state=seed)
    problem = cg.Problem(data.X, data.y, cg.losses.Logistic(), cg.constraints.L1Ball(radius), **settings)
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=60)
    assert found.status is Status.CONVERGED and problem.gap(found.w) <= 1.01e-6
    return max(sizes)


@pytest.mark.parametrize("settings", [{}, {"intercept": True}])
def test_classes_that_can_be_separated_need_no_models_in_a_ball_that_does_not_bind(settings, sizes_of_models):
    """On the way to a distant boundary the gap grows while F falls, and some steps lead no closer."""
    assert largest_model(1, 3e4, sizes_of_models, **settings) <= sweeps._SPARSE.many


def test_they_seldom_need_models_at_the_boundary(sizes_of_models):
    """There rounding decides where sweeps end: they give up once in six runs, about."""
    cases = [(seed, intercept) for seed in range(1, 6) for intercept in (False, True)]
    found = [largest_model(seed, 3e3, sizes_of_models, intercept=intercept) for seed, intercept in cases]
    assert np.count_nonzero(np.array(found) > sweeps._SPARSE.many) <= 6


def test_a_run_that_is_continued_remembers_that_sweeps_are_slow(tmp_path):
    X, y = make()
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(60.0))
    solver = cg.solvers.Corrective()
    state = solver.init(problem, None)
    solver.step(problem, state, 0)
    for n_slow in (0, 1, 3):
        state.model.sweeps.n_slow = n_slow
        other = solver.init(problem, None)
        other.restore(*state.snapshot())
        assert other.model.sweeps.n_slow == n_slow and other.model.sweeps.are_slow == (n_slow == 3)


def test_few_features_are_left_to_models():
    X, y = make(d=500)
    ball = cg.constraints.L1Ball(5.0)
    assert Sweeps.suited_to(cg.Problem(X, y, cg.losses.Logistic(), ball)) is None
    assert Sweeps.suited_to(cg.Problem(X[:, :90].toarray(), y, cg.losses.Logistic(), ball)) is None
    assert Sweeps.suited_to(cg.Problem(X[:90].toarray(), y[:90], cg.losses.Logistic(), ball)) is None
    assert Sweeps.suited_to(cg.Problem(X.toarray(), y, cg.losses.Logistic(), ball)) is not None
    assert Sweeps.suited_to(cg.Problem(X.toarray(), y, cg.losses.Squared(), ball)) is None
    X, y = make()
    assert Sweeps.suited_to(cg.Problem(X, y, cg.losses.Logistic(), ball)) is not None


def make_dense(n=500, d=300, seed=0, common=1.0):
    """Return features with a common part, and classes that a fifth of them tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + common * rng.standard_normal((n, 1))
    return X, np.where(X[:, : d // 5] @ rng.standard_normal(d // 5) + 2.0 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


@pytest.fixture
def no_large_gram(monkeypatch):
    """Where sweeps are made on dense data, no curvature is computed."""
    curvature = LinearLook.curvature

    def small(self, atoms, known=None, n_rows=np.inf):
        assert len(atoms) < sweeps._DENSE.many
        return curvature(self, atoms, known, n_rows)

    monkeypatch.setattr(LinearLook, "curvature", small)


@pytest.mark.parametrize("settings", [{}, {"intercept": True}, {"l2": 1e-3}, {"sample_weight": np.arange(500.0)}])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_answer_on_dense_data_is_certified_without_gram_matrices(order, settings, no_large_gram):
    X, y = make_dense()
    problem = cg.Problem(np.asarray(X, order=order), y, cg.losses.Logistic(), cg.constraints.L1Ball(20.0), **settings)
    found = cg.minimize(problem, "corrective", tol=1e-8, max_steps=60)
    assert found.status is Status.CONVERGED and problem.gap(found.w) <= 1.01e-8
    assert np.abs(found.w).sum() <= 20.0 * (1.0 + 1e-12)
    assert np.count_nonzero(found.w) > sweeps._DENSE.many


def test_dense_columns_far_from_zero_keep_their_digits(no_large_gram, monkeypatch):
    monkeypatch.setattr(sweeps, "_DENSE", sweeps._DENSE._replace(fewest=20))
    X, y = make_dense()
    problem = cg.Problem(X + 1e9, y, cg.losses.Logistic(), cg.constraints.L1Ball(20.0), intercept=True)
    found = cg.minimize(problem, "corrective", tol=1e-5, max_steps=60)
    assert found.status is Status.CONVERGED


@pytest.mark.parametrize("loss", [cg.losses.Huber(0.5), cg.losses.SquaredHinge(), cg.losses.Logistic()])
def test_it_is_the_answer_of_models_on_dense_data(loss, monkeypatch):
    X, y = make_dense(seed=1)
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(15.0))
    best = reference(problem, monkeypatch)
    found = cg.minimize(problem, "corrective", tol=1e-7, max_steps=200)
    assert found.status is Status.CONVERGED and abs(found.objective - best) <= 2e-7


def test_a_small_support_of_dense_data_is_left_to_models(monkeypatch):
    def never(self, look, atoms, x, limits):
        raise AssertionError("sweeps over a few atoms")

    monkeypatch.setattr(Sweeps, "minimise", never)
    X, y = make_dense(common=0.0)
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(0.5))
    found = cg.minimize(problem, "corrective", tol=1e-7, max_steps=60)
    assert found.status is Status.CONVERGED and 0 < np.count_nonzero(found.w) < sweeps._DENSE.some


def test_models_take_over_where_sweeps_over_dense_columns_are_slow(monkeypatch):
    """Neighbouring features are almost equal: then coordinates descend slowly, and models cost less."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((400, 300)), axis=1)
    y = np.where(X @ rng.standard_normal(300) + 30.0 * rng.standard_normal(400) > 0.0, 1.0, -1.0)
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(20.0))
    sizes, curvature = [], LinearLook.curvature

    def counted(self, atoms, known=None, n_rows=np.inf):
        sizes.append(len(atoms))
        return curvature(self, atoms, known, n_rows)

    monkeypatch.setattr(LinearLook, "curvature", counted)
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=100)
    assert found.status is Status.CONVERGED and max(sizes) > sweeps._DENSE.some


@pytest.mark.parametrize("scale", [1e-50, 1e20, 1e50])
def test_entries_that_single_precision_cannot_hold(scale):
    X, y = make_dense()
    problem = cg.Problem(scale * X, y, cg.losses.Logistic(), cg.constraints.L1Ball(10.0 / scale))
    found = cg.minimize(problem, "corrective", tol=1e-6, max_steps=200)
    assert found.status is Status.CONVERGED
