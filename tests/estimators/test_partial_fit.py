"""Learning batch by batch: feasible at every step, close to the model of all data, certified for its batch."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils import estimator_checks

import condgrad as cg
from condgrad import datasets

C = datasets.simulate_classification(1200, 12, n_informative=4, random_state=0)
R = datasets.simulate_regression(1200, 12, n_informative=4, noise=0.2, random_state=0)
SOLVERS = ["sfw", "saga", "mokhtari", "lu-freund", "one-sample"]
SETTINGS = {"radius": 3.0, "fit_intercept": False, "random_state": 0}


def batches(size):
    order = np.random.default_rng(5).permutation(1200)
    return [order[k : k + size] for k in range(0, 1200, size)]


@pytest.mark.parametrize("solver", SOLVERS)
def test_batches_come_close_to_all_data(solver):
    model = cg.ConstrainedClassifier(solver=solver, **SETTINGS)
    problem = cg.Problem(C.X, C.y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    best = cg.minimize(problem, tol=1e-9).objective
    for rows in batches(100):
        model.partial_fit(C.X[rows], C.y[rows], classes=[-1.0, 1.0])
        assert np.abs(model.coef_).sum() <= 3.0 + 1e-9
        part = cg.Problem(C.X[rows], C.y[rows], cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
        assert model.gap_ == pytest.approx(part.gap(model.coef_[0]), rel=1e-9)
        assert model.result_.objective == pytest.approx(part.objective(model.coef_[0]), rel=1e-12)
    excess = problem.objective(model.coef_[0]) - best
    share = 0.3 if solver == "mokhtari" else 0.06  # its average of gradients forgets the start late
    assert excess < share * (np.log(2.0) - best)
    assert model.n_iter_ == 12
    assert model.result_.n_steps >= 1200


@pytest.mark.parametrize("solver", ["sfw", "saga", "lu-freund", "one-sample", "saga-sarah", "boosted-sfw"])
def test_small_batches_converge_to_all_data(solver):
    """The noise of a batch of 40 samples is larger than the gradient at the end: batches must remember others."""
    model = cg.ConstrainedClassifier(solver=solver, **SETTINGS)
    problem = cg.Problem(C.X, C.y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    best = cg.minimize(problem, tol=1e-9).objective
    for _ in range(12):
        for rows in batches(40):
            model.partial_fit(C.X[rows], C.y[rows], classes=[-1.0, 1.0])
    assert problem.objective(model.coef_[0]) - best < 0.004 * (np.log(2.0) - best)


def test_steps_go_on_from_batch_to_batch():
    model = cg.ConstrainedRegressor(solver="sfw", **SETTINGS)
    rows = batches(300)
    model.partial_fit(R.X[rows[0]], R.y[rows[0]])
    before = model.coef_.copy()
    model.partial_fit(R.X[rows[1]], R.y[rows[1]])
    # The weight of the first 300 steps in w is the product of 1 - 2 / (t + 2) over the next 300: a quarter.
    assert model.result_.n_steps == 600
    assert np.abs(model.coef_ - before).sum() <= 0.76 * 2 * 3.0
    again = cg.ConstrainedRegressor(solver="sfw", **SETTINGS)
    for part in rows[:2]:
        again.partial_fit(R.X[part], R.y[part])
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_more_classes_and_batches_that_lack_some():
    y = np.array(["a", "b", "c"])[np.argmax(C.X[:, :3], axis=1)]
    model = cg.ConstrainedClassifier(solver="sfw", class_weight={"a": 2.0, "b": 1.0, "c": 1.0}, **SETTINGS)
    rows = np.flatnonzero(y == "a")[:50]
    model.partial_fit(C.X[rows], y[rows], classes=["c", "b", "a"])
    assert list(model.classes_) == ["a", "b", "c"] and set(model.predict(C.X)) <= {"a", "b", "c"}
    for rows in batches(200):
        model.partial_fit(scipy.sparse.csr_matrix(C.X[rows]), y[rows], sample_weight=np.ones(200))
    assert model.score(C.X, y) > 0.8
    assert model.gap_.shape == (3,) and len(model.result_) == 3


def test_several_outputs():
    Y = np.column_stack([R.y, -2.0 * R.y])
    model = cg.ConstrainedRegressor(solver="sfw", **SETTINGS)
    for rows in batches(400):
        model.partial_fit(R.X[rows], Y[rows])
    assert model.predict(R.X).shape == Y.shape and model.coef_.shape == (2, 12)
    with pytest.raises(ValueError, match="earlier batches had 2 outputs; this one has 1"):
        model.partial_fit(R.X, R.y)


def test_fit_and_partial_fit_follow_each_other():
    model = cg.ConstrainedRegressor(solver="sfw", tol=0.05, **SETTINGS).fit(R.X, R.y)
    n_steps, near = model.result_.n_steps, model.coef_.copy()
    model.partial_fit(R.X[:100], R.y[:100])
    assert model.result_.n_steps == n_steps + 100
    assert np.abs(model.coef_ - near).sum() < 1.0
    assert model.fit(R.X, R.y).result_.n_steps == n_steps


@pytest.mark.parametrize(
    ("model", "y", "settings", "sentence"),
    [
        (cg.ConstrainedClassifier(solver="sfw", fit_intercept=False), C.y, {"classes": [-1, 1]}, "needs a radius"),
        (cg.ConstrainedClassifier(solver="sfw", **SETTINGS), C.y, {}, "first call of partial_fit needs classes="),
        (cg.ConstrainedClassifier(solver="sfw", **SETTINGS), C.y, {"classes": [1, 2]}, "label .*-1.* not among"),
        (
            cg.ConstrainedClassifier(solver="sfw", class_weight="balanced", **SETTINGS),
            C.y,
            {"classes": [-1, 1]},
            "'balanced' needs all data",
        ),
        (
            cg.ConstrainedClassifier(solver="sfw", multi_class="multinomial", **SETTINGS),
            C.y,
            {"classes": [-1, 0, 1]},
            "use multi_class='ovr'",
        ),
    ],
)
def test_refusals(model, y, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        clone(model).partial_fit(C.X, y, **settings)


def test_classes_stay():
    model = cg.ConstrainedClassifier(solver="sfw", **SETTINGS).partial_fit(C.X, C.y, classes=[-1, 1])
    model.partial_fit(C.X, C.y, classes=[1, -1])
    with pytest.raises(ValueError, match="classes must stay those of the first call"):
        model.partial_fit(C.X, C.y, classes=[0, 1])
    with pytest.raises(ValueError, match="5 features"):
        model.partial_fit(C.X[:, :5], C.y)


@pytest.mark.parametrize(
    "model",
    [
        cg.ConstrainedClassifier(),
        cg.ConstrainedRegressor(solver="pairwise"),
        cg.ConstrainedRegressor(solver="svrf"),
        cg.ConstrainedRegressor(solver="sarah"),
        cg.ConstrainedRegressor(solver=cg.solvers.Randomized()),
        cg.ConstrainedElasticNet(solver="sfw"),
        cg.ConstrainedLogisticRegressionCV(solver="sfw"),
        cg.ConstrainedLassoCV(),
    ],
    ids=repr,
)
def test_other_solvers_do_not_offer_it(model):
    assert not hasattr(model, "partial_fit")


@pytest.mark.parametrize("make", [cg.ConstrainedClassifier, cg.ConstrainedLasso])
def test_scikit_learn_checks(make):
    model = make(solver=cg.solvers.SFW(batch_size=5), **SETTINGS)
    estimator_checks.check_estimators_partial_fit_n_features(make.__name__, model)
