"""Models with a matrix of coefficients W under a nuclear or group ball: many classes, many outputs."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

import condgrad as cg

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 6))
TRUTH = np.outer([1.0, -1.0, 0.5, 0.0, 0.0, 2.0], [1.0, 0.3, -1.0, 0.0])  # of rank one: 6 features, 4 outputs
Y = X @ TRUTH + 0.1 * RNG.standard_normal((80, 4))


def outputs(constraint, loss=None):
    """Many outputs as one problem: sample (i, c) has the row x_i at the columns of output c, W row by row."""
    rows = scipy.sparse.kron(scipy.sparse.csr_matrix(X), scipy.sparse.eye(4), format="csr")
    return cg.Problem(rows, Y.ravel(), cg.losses.Squared() if loss is None else loss, constraint)


def projected_gradient(problem, ball, steps=2000):
    w = np.zeros(problem.n_features)
    L = problem.smoothness()
    for _ in range(steps):
        w = ball.project(w - problem.gradient(w) / L)
    return problem.evaluate(w)


@pytest.mark.parametrize("solver", ["auto", "fw"])
@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Huber(0.5)])
def test_many_outputs_under_a_nuclear_ball(solver, loss):
    ball = cg.constraints.NuclearBall(2.5, shape=(6, 4))
    problem = outputs(ball, loss)
    best = projected_gradient(problem, ball)
    result = cg.minimize(problem, solver, tol=1e-6, max_epochs=5000, random_state=0)
    assert result.gap <= 1e-6
    assert ball.violation(result.w) <= 1e-9
    assert abs(result.objective - best.objective) <= 1e-6 + best.gap
    assert (np.linalg.svd(result.w.reshape(6, 4))[1] > 1e-2).sum() == 1


def test_many_outputs_under_a_group_ball_select_features():
    ball = cg.constraints.GroupBall(np.repeat(np.arange(6), 4), 2.0)
    result = cg.minimize(outputs(ball), tol=1e-8)
    assert result.gap <= 1e-8
    used = np.flatnonzero(np.abs(result.w.reshape(6, 4)).sum(axis=1) > 1e-6)
    assert set(used) <= {0, 1, 2, 5}


def test_many_classes_under_a_nuclear_ball():
    features, classes = load_iris(return_X_y=True)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    ball = cg.constraints.NuclearBall(3.0, shape=(3, 4))
    problem = cg.SoftmaxProblem(features, classes, ball, intercept=True)
    result = cg.minimize(problem, tol=1e-6)
    assert result.gap <= 1e-6
    W = result.w.reshape(3, 4)
    assert np.linalg.norm(W, "nuc") <= 3.0 + 1e-9
    assert np.linalg.norm(W, "nuc") >= 3.0 - 1e-3
    scores = features @ W.T + result.intercept
    assert np.mean(scores.argmax(axis=1) == classes) > 0.9
