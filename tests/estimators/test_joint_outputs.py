"""Regressors of several outputs: one problem each, or one problem together."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

import condgrad as cg
from condgrad.constraints import GroupBall

RNG = np.random.default_rng(0)
N, D, K = 80, 6, 4
X = RNG.standard_normal((N, D))
X[np.abs(X) < 0.3] = 0.0
TRUTH = np.outer([1.0, 0.3, -1.0, 0.5], [1.0, -1.0, 0.5, 0.0, 0.0, 2.0])  # of rank one
Y = X @ TRUTH.T + [1.0, 0.0, -2.0, 0.5] + 0.1 * RNG.standard_normal((N, K))
WEIGHT = RNG.integers(1, 4, N).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("constraint", ["l1", "group", "nuclear", "l2", GroupBall(np.tile(np.arange(D), K), 3.0)])
def test_joint_fits(constraint, loss):
    model = cg.ConstrainedRegressor(loss, constraint=constraint, multi_output="joint").fit(X, Y)
    assert model.coef_.shape == (K, D) and model.intercept_.shape == (K,) and model.n_outputs_ == K
    assert isinstance(model.gap_, float) and model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.5
    norms = {
        "l1": lambda W: np.abs(W).sum(),
        "group": lambda W: np.linalg.norm(W, axis=0).sum(),
        "nuclear": lambda W: np.linalg.norm(W, "nuc"),
        "l2": np.linalg.norm,
    }
    if isinstance(constraint, str):
        assert norms[constraint](model.coef_) <= model.radius_ * (1.0 + 1e-9)
    for make in (np.asfortranarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        np.testing.assert_allclose(clone(model).fit(make(X), Y).coef_, model.coef_, atol=5e-3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_joint_fit_is_the_problem():
    model = cg.ConstrainedRegressor(constraint="nuclear", radius=2.0, multi_output="joint", tol=1e-9)
    model.fit(X, Y, sample_weight=WEIGHT)
    ball = cg.constraints.NuclearBall(2.0, shape=(K, D))
    problem = cg.MultiOutputProblem(X, Y, cg.losses.Squared(), ball, sample_weight=WEIGHT, intercept=True)
    result = cg.minimize(problem, tol=1e-9 * problem.loss_scale())
    np.testing.assert_allclose(model.coef_.ravel(), result.w, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, result.intercept, atol=1e-6)
    assert (np.linalg.svd(model.coef_)[1] > 1e-3).sum() < K


def test_separate_outputs_are_as_before():
    model = cg.ConstrainedRegressor(radius=1.0).fit(X, Y)
    for c in range(K):
        one = cg.ConstrainedRegressor(radius=1.0).fit(X, Y[:, c])
        np.testing.assert_array_equal(model.coef_[c], one.coef_)
    assert model.gap_.shape == (K,)


def test_one_output_is_the_same_either_way():
    one = cg.ConstrainedRegressor(radius=2.0, tol=1e-9).fit(X, Y[:, 0])
    for constraint, y in (("l1", Y[:, 0]), ("group", Y[:, 0]), ("l1", Y[:, :1])):
        joint = cg.ConstrainedRegressor(radius=2.0, constraint=constraint, multi_output="joint", tol=1e-9).fit(X, y)
        np.testing.assert_allclose(np.ravel(joint.coef_), one.coef_, atol=1e-5)
        assert joint.coef_.ndim == y.ndim


def test_files_and_warm_starts(tmp_path):
    model = cg.ConstrainedRegressor("huber", constraint="group", radius=2.0, multi_output="joint", warm_start=True)
    cold = model.fit(X, Y).n_iter_
    assert model.fit(X, Y).n_iter_ <= cold
    model.save(tmp_path / "model.npz")
    loaded = cg.load_model(tmp_path / "model.npz")
    assert loaded.kind == "outputs" and len(loaded.gap) == 1
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_sentences():
    with pytest.raises(ValueError, match="multi_output must be 'separate' or 'joint'; got 'both'"):
        cg.ConstrainedRegressor(multi_output="both").fit(X, Y)
    with pytest.raises(ValueError, match="takes more than a radius"):
        cg.ConstrainedRegressor(constraint="nuclear", radius=1.0).fit(X, Y)
    with pytest.raises(TypeError, match="which this MultiOutputProblem does not offer"):
        cg.ConstrainedRegressor(radius=1.0, solver="sfw", multi_output="joint").fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        cg.ConstrainedRegressor(radius=3.0, solver="fw", max_iter=3, multi_output="joint").fit(X, Y)


@pytest.mark.slow
def test_scikit_learn_checks_of_regressors():
    model = cg.ConstrainedRegressor(multi_output="joint", tol=1e-9)
    wanted = ("regressor", "weight", "sparse", "pickle", "fit2d", "idempotent", "dtype")
    for estimator, check in estimator_checks_generator(model):
        if any(word in str(check) for word in wanted):
            check(estimator)
