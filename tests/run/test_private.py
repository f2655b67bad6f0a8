"""Differential privacy: the distribution of a draw, the accounting, and what neighbouring data can show."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import condgrad as cg
from condgrad.linalg.draw_tree import draw, draw_tree, n_uniforms, rebuild
from condgrad.run.private import PrivateGradient, clipped, step_epsilon

RNG = np.random.default_rng(0)


def chances(r, radius, factor):
    """The exponential mechanism written out: first the vertices +radius e_j, then -radius e_j."""
    scores = factor * radius * np.concatenate((-r, r))
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def drawn(r, radius, factor, count, seed=1):
    """How often each vertex is drawn, in the order of ``chances``."""
    tree, rng = draw_tree(np.array(r), factor * radius), np.random.default_rng(seed)
    counts = np.zeros(2 * len(r))
    for _ in range(count):
        j, sign = draw(tree, rng.random(n_uniforms(tree)))
        counts[j + (len(r) if sign > 0.0 else 0)] += 1  # a positive r_j has its larger chance at -radius e_j
    return counts


@pytest.mark.parametrize("d", [1, 4, 8, 37])
def test_draws_have_the_distribution_of_the_exponential_mechanism(d):
    r = np.random.default_rng(d).standard_normal(d) / 5.0
    counts, expected = drawn(r, 2.0, 3.0, 20_000), 20_000 * chances(r, 2.0, 3.0)
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    assert stats.chisquare(counts, np.full(2 * d, 10_000 / d)).pvalue < 1e-10  # the test can fail


def test_a_tree_that_was_changed_entry_by_entry_is_a_new_one():
    rng = np.random.default_rng(0)
    tree = draw_tree(np.zeros(100), 3.0)
    for _ in range(3000):
        tree.add_at(int(rng.integers(100)), float(rng.standard_normal()))
    fresh = draw_tree(tree.values.copy(), 3.0)
    np.testing.assert_allclose(tree.tree[1:], fresh.tree[1:], rtol=1e-13)
    sums = np.logaddexp.reduce(np.concatenate((3.0 * tree.values, -3.0 * tree.values)))
    assert tree.tree[1] == pytest.approx(sums, rel=1e-13)
    huge = draw_tree(np.array([1e6, -2e6, 3.0]), 1e3)  # exp of these would overflow
    assert np.isfinite(huge.tree[1]) and draw(huge, np.full(n_uniforms(huge), 0.5)) == (1, -1.0)
    rebuild(huge)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.PseudoHuber(0.5)])
def test_replacing_a_sample_changes_all_scores_by_at_most_the_sensitivity_in_every_step(form, loss):
    """Also where derivatives are renewed only for some samples: which ones must not depend on other samples."""
    rng = np.random.default_rng(2)
    n, d, radius, bound = 15, 40, 3.0, 1.5
    sensitivity, largest = 2.0 * radius * loss.lipschitz() * bound / n, 0.0
    for _ in range(20):
        X = clipped(rng.uniform(-3.0, 3.0, (n, d)) * (rng.random((n, d)) < 0.15), bound)
        y = rng.choice([-1.0, 1.0], n)
        other, z = X.copy(), y.copy()
        other[0], z[0] = np.sign(rng.standard_normal(d)) * bound * (rng.random(d) < 0.5), -y[0]
        pair = [PrivateGradient(form(A), b, loss, radius, 1.0) for A, b in ((X, y), (other, z))]
        for t in range(30):
            largest = max(largest, radius * np.abs(pair[0].r - pair[1].r).max())
            j, v = int(rng.integers(d)), radius * float(rng.choice([-1.0, 1.0]))
            for run in pair:
                run.move(j, v, 2.0 / (t + 2.0))
    assert 0.2 * sensitivity < largest <= sensitivity * (1.0 + 1e-12)


def test_sparse_steps_have_the_gradient_up_to_what_they_say():
    """w is exact; r is X' alpha, and alpha is at most a tenth of the shrinking behind."""
    rng = np.random.default_rng(3)
    X, y = sp.random_array((60, 30), density=0.1, format="csr", rng=rng), rng.choice([-1.0, 1.0], 60)
    run, w = PrivateGradient(X, y, cg.losses.Logistic(), 2.0, 1.0), np.zeros(30)
    exact = 0
    for t in range(200):
        j, v, gamma = int(rng.integers(30)), float(rng.choice([-2.0, 2.0])), 2.0 / (t + 2.0)
        run.move(j, v, gamma)
        w *= 1.0 - gamma
        w[j] += gamma * v
        np.testing.assert_allclose(run.w, w, atol=1e-13)
        np.testing.assert_allclose(run.r, X.T @ run.alpha, atol=1e-13)
        fresh = cg.losses.Logistic().derivative(X @ w, y) / 60
        exact += np.allclose(run.alpha, fresh, atol=1e-15)
        assert np.abs(run.alpha - fresh).max() <= 0.25 * np.abs(X @ w).max() * (1.0 / 0.9 - 1.0) / 60 + 1e-15
    assert 20 <= exact <= 150  # steps after which all derivatives are new
    dense = PrivateGradient(X.toarray(), y, cg.losses.Logistic(), 2.0, 1.0)
    dense.move(3, 2.0, 0.5)
    np.testing.assert_allclose(dense.alpha, cg.losses.Logistic().derivative(X.toarray() @ dense.w, y) / 60)


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
    np.testing.assert_allclose(found.w, cg.minimize_private(form(tame), y, loss, 2.0, **settings).w, atol=1e-12)
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
