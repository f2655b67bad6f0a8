"""Differential privacy: the distribution of a draw, the accounting, and what neighbouring data can show."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import condgrad as cg
from condgrad.run.private import clipped, draw_vertex, step_epsilon

RNG = np.random.default_rng(0)


def chances(r, radius, factor):
    """The exponential mechanism written out: first the vertices +radius e_j, then -radius e_j."""
    scores = factor * radius * np.concatenate((-r, r))
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def test_draws_have_the_distribution_of_the_exponential_mechanism():
    r, rng = np.array([0.3, -0.1, 0.0, 0.25]), np.random.default_rng(1)
    counts = np.zeros(8)
    for _ in range(20_000):
        v = draw_vertex(r, 2.0, 3.0, rng)
        j = int(np.flatnonzero(v)[0])
        assert abs(v[j]) == 2.0
        counts[j if v[j] > 0.0 else j + 4] += 1
    expected = 20_000 * chances(r, 2.0, 3.0)
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    assert stats.chisquare(counts, np.full(8, 2500.0)).pvalue < 1e-10  # the test can fail


@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Huber(0.7), cg.losses.Pinball(0.8, 0.5)])
def test_replacing_a_sample_changes_the_chances_by_a_bounded_factor(loss):
    """For random neighbours, extreme ones among them: every chance changes by at most exp(step_epsilon)."""
    n, d, radius, bound, spent = 12, 5, 3.0, 1.5, 0.4
    sensitivity = 2.0 * radius * loss.lipschitz() * bound / n
    largest = 0.0
    for _ in range(300):
        X = clipped(RNG.uniform(-3.0, 3.0, (n, d)), bound)
        y = RNG.choice([-1.0, 1.0], n)
        w = RNG.dirichlet(np.ones(d)) * radius * RNG.choice([-1.0, 1.0], d)
        other, z = X.copy(), y.copy()
        other[0], z[0] = np.sign(RNG.standard_normal(d)) * bound, -y[0]
        found = [
            np.log(chances(A.T @ loss.derivative(A @ w, b) / n, radius, spent / (2.0 * sensitivity)))
            for A, b in ((X, y), (other, z))
        ]
        largest = max(largest, np.abs(found[0] - found[1]).max())
    assert 0.05 * spent < largest <= spent


def test_accounting():
    assert step_epsilon(1.0, 0.0, 50) == 0.02
    for epsilon, delta, T in ((0.1, 1e-5, 10), (1.0, 1e-6, 100), (5.0, 1e-9, 2000)):
        spent = step_epsilon(epsilon, delta, T)
        rho = T * spent**2 / 8.0
        if spent > epsilon / T:
            assert rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta)) == pytest.approx(epsilon, rel=1e-9)
        assert spent >= epsilon / T
        assert step_epsilon(epsilon, delta, 4 * T) < spent < step_epsilon(2.0 * epsilon, delta, T)
    assert step_epsilon(1.0, 1e-6, 1) == 1.0  # one step: basic composition is better


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
def test_clipping_bounds_what_one_sample_can_do(form):
    X, y = RNG.uniform(-1.0, 1.0, (200, 6)), RNG.choice([-1.0, 1.0], 200)
    wild = X.copy()
    wild[0] *= 1e9
    settings = {"epsilon": 3.0, "delta": 1e-6, "feature_bound": 1.0, "random_state": 3}
    loss = cg.losses.Logistic()
    tame = wild.copy()
    tame[0] = np.clip(tame[0], -1.0, 1.0)
    found = cg.minimize_private(form(wild), y, loss, 2.0, **settings)
    np.testing.assert_allclose(found.w, cg.minimize_private(tame, y, loss, 2.0, **settings).w, atol=1e-12)
    assert np.abs(found.w).sum() <= 2.0 + 1e-12
    assert found.sensitivity == pytest.approx(2.0 * 2.0 / 200)
    assert not hasattr(found, "gap") and not hasattr(found, "objective")


def test_much_budget_is_frank_wolfe():
    """With a huge epsilon the best vertex is drawn nearly always, and F comes close to the optimum."""
    X = RNG.uniform(-1.0, 1.0, (2000, 8))
    y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(2000) > 0.0, 1.0, -1.0)
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(2.0))
    best = cg.minimize(problem, "corrective", tol=1e-8).objective
    costs = {}
    for epsilon in (0.05, 1e6):
        result = cg.minimize_private(
            X, y, cg.losses.Logistic(), 2.0, epsilon=epsilon, delta=1e-6, feature_bound=1.0, n_steps=300, random_state=0
        )
        costs[epsilon] = problem.objective(result.w) - best
    assert costs[1e6] <= 1e-2 < costs[0.05]


def test_refusals():
    X, y = np.ones((4, 2)), np.array([1.0, -1.0, 1.0, -1.0])
    settings = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 1.0}
    with pytest.raises(ValueError, match=r"Squared\(\) has no bounded slope"):
        cg.minimize_private(X, y, cg.losses.Squared(), 1.0, **settings)
    with pytest.raises(ValueError, match=r"delta must be a number in \[0, 1\); got 2.0"):
        cg.minimize_private(X, y, cg.losses.Logistic(), 1.0, **(settings | {"delta": 2.0}))
    for name in ("epsilon", "feature_bound"):
        with pytest.raises(ValueError, match=f"{name}"):
            cg.minimize_private(X, y, cg.losses.Logistic(), 1.0, **(settings | {name: 0.0}))
    with pytest.raises(ValueError, match="n_steps must be a whole number of at least 1; got 0"):
        cg.minimize_private(X, y, cg.losses.Logistic(), 1.0, n_steps=0, **settings)
