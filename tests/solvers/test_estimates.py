"""The theory of the estimates, at the steps of real runs: propositions, lemmas, and expectations by enumeration.

Expectations are exact: all batches that a step can draw are tried from the same state, and weighed by their chances.
"""

import copy
import itertools
import math

import numpy as np
import pytest
from references import FORMULAS, Reference, l1_vertices

import condgrad as cg
from condgrad import theory
from condgrad.solvers.stochastic import _state, _workspace
from condgrad.solvers.stochastic.sampling import Batch, Chances, Sampler, Uniform

N, D = 6, 4


@pytest.fixture(autouse=True)
def by_hand(monkeypatch):
    """Steps run as ordinary Python here."""
    monkeypatch.setattr(_state, "run_block", _state.interpreted)


class Listening:
    """A polytope that remembers what its oracle was asked and what it answered."""

    def __init__(self, vertices):
        self.vertices = vertices
        self.asked, self.answered = [], []

    def lmo(self, r):
        self.asked.append(r.copy())
        self.answered.append(self.vertices[int((self.vertices @ r).argmin())])
        return self.answered[-1]

    def contains(self, w):
        return True


def make(loss="Logistic", n=N, d=D, seed=0, weighted=False, constraint=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    p = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    y = np.sign(p) if loss == "Logistic" else p
    weight = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    constraint = Listening(rng.standard_normal((9, d))) if constraint is None else constraint
    problem = cg.Problem(X, y, getattr(cg.losses, loss)(), constraint, sample_weight=weight if weighted else None)
    return problem, X, y, weight / weight.sum()


def outer_gradient(X, y, weight, w, loss="Logistic"):
    """The gradient of f at X w: one derivative a sample."""
    return weight * FORMULAS[loss][1](X @ w, y)


def without_smoothing(run):
    """Let the run report each step's own gap, equation (31)."""
    run.arrays = run.arrays._replace(r=run.arrays.r._replace(smoothing=1.0))
    return run


SOLVERS = {
    "sfw": lambda b: cg.solvers.SFW(batch_size=b),
    "mokhtari": lambda b: cg.solvers.Momentum(batch_size=b),
    "lu-freund": lambda b: cg.solvers.Substitute(batch_size=b),
    "saga": lambda b: cg.solvers.SAGA(batch_size=b),
    "svrf": lambda b: cg.solvers.SVRF(batch_size=1),
    "growing-batch": lambda b: cg.solvers.GrowingBatch(batch_size=b, growth=0.5),
    "spider": lambda b: cg.solvers.Spider(batch_size=b),
    "caspiderg": lambda b: cg.solvers.CurvatureAided(batch_size=b, n_steps=300),
    "one-sample": lambda b: cg.solvers.OneSample(batch_size=b),
}


# The stochastic gap ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("name", SOLVERS)
def test_running_gap_is_the_gap_of_the_estimate(name, b):
    """Equation (31), kept by scalars: max over s of <r, w - s> at the r that the oracle saw; then <r, w> after it."""
    problem, *_ = make(weighted=True)
    listening, vertices = problem.constraint._lmo.__self__, problem.constraint._lmo.__self__.vertices
    solver = SOLVERS[name](b)
    run = without_smoothing(solver.init(problem, None, 1))
    for t in range(80):
        before = run.w
        solver.advance(problem, run, t, 1, np.inf)
        r = listening.asked[-1]
        assert run.known_gap == pytest.approx((r @ before) - (vertices @ r).min(), abs=1e-12)
        assert run.arrays.r.along() == pytest.approx(run.arrays.r.vector.to_array() @ run.w, abs=1e-12)


@pytest.mark.parametrize(
    "constraint", [cg.constraints.L1Ball(2.0), cg.constraints.Simplex(), cg.constraints.L2Ball(1.0)]
)
@pytest.mark.parametrize("name", [*SOLVERS, "sfw-away", "sfw-pairwise"])
def test_running_inner_product_in_compiled_vectors(monkeypatch, name, constraint):
    """With a tree and with a scan, away and pairwise steps among them."""
    if name.startswith("sfw-") and not constraint.is_polytope:
        pytest.skip("single-feature atoms only")
    problem, *_ = make(weighted=True, constraint=constraint)
    solver = cg.solvers.by_name(name)(batch_size=2) if name.startswith("sfw-") else SOLVERS[name](2)
    for tree in (True, False):
        monkeypatch.setattr(_workspace.Workspace, "_tree_pays", lambda self, tree=tree: tree)
        run = without_smoothing(solver.init(problem, None, 2))
        for t in range(60):
            before = run.w
            solver.advance(problem, run, t, 1, np.inf)
            r = run.arrays.r.vector.to_array()
            assert run.arrays.r.along() == pytest.approx(r @ run.w, abs=1e-12)
            if name in ("sfw", "mokhtari", "sfw-away", "sfw-pairwise"):  # r is still what the oracle saw
                assert run.known_gap == pytest.approx(r @ before - r @ problem.lmo(r).to_dense(D), abs=1e-12)


@pytest.mark.parametrize(
    "constraint", [cg.constraints.L1Ball(2.0), cg.constraints.Simplex(1.5), cg.constraints.L2Ball(1.0)]
)
@pytest.mark.parametrize("loss", ["Logistic", "Squared"])
@pytest.mark.parametrize("b", [1, 4])
def test_proposition_1(b, loss, constraint):
    """|g_t - ghat_t| <= D_inf H_t, equation (32), at every step."""
    problem, X, y, weight = make(loss, n=15, constraint=constraint)
    D_inf = theory.diameters(X, constraint).D_inf
    solver = cg.solvers.SFW(batch_size=b)
    run = without_smoothing(solver.init(problem, None, 3))
    errors, bounds = [], []
    for t in range(150):
        gap, gradient = problem.gap(run.w), outer_gradient(X, y, weight, run.w, loss)
        solver.advance(problem, run, t, 1, np.inf)
        H = np.abs(run.arrays.alpha.values - gradient).sum()
        errors.append(abs(gap - run.known_gap))
        bounds.append(D_inf * H)
    errors, bounds = np.array(errors), np.array(bounds)
    assert (errors <= bounds + 1e-13).all()
    assert bounds[-50:].mean() < 0.3 * bounds[:5].mean()  # the bound says something: it shrinks
    assert errors.max() > 1e-3  # and there was something to bound


def test_proposition_1_needs_the_batch_it_was_given():
    """The test above can fail: with the estimate of the step before, equation (32) breaks."""
    problem, X, y, weight = make(n=15, constraint=cg.constraints.L1Ball(2.0))
    D_inf = theory.diameters(X, problem.constraint).D_inf
    solver = cg.solvers.SFW(batch_size=15)
    run = without_smoothing(solver.init(problem, None, 3))
    broken = 0
    for t in range(20):
        gap, gradient, last = problem.gap(run.w), outer_gradient(X, y, weight, run.w), run.known_gap
        solver.advance(problem, run, t, 1, np.inf)
        H = np.abs(run.arrays.alpha.values - gradient).sum()
        broken += abs(gap - last) > D_inf * H + 1e-13
    assert broken > 10


# All batches of a step -------------------------------------------------------------------------------------------


def all_batches(n, b, sampling, importance=None):
    """Pairs (chance, rows) of every batch that a step can draw."""
    if sampling == "batch":
        subsets = list(itertools.combinations(range(n), b))
        return [(1.0 / len(subsets), rows) for rows in subsets]
    if sampling == "blocks":
        return [(1.0 / n, [(first + q) % n for q in range(b)]) for first in range(n)]
    chances = np.full(n, 1.0 / n) if importance is None else importance
    return [(math.prod(chances[i] for i in rows), rows) for rows in itertools.product(range(n), repeat=b)]


def try_step(run, rows, t, u=0.0):
    """Make step t = 1, 2, ... with the given samples on a copy of the arrays, and return the copy."""
    arrays = copy.deepcopy(run.arrays)
    rows = np.array(rows, dtype=np.int64)
    chances = run.sampler.chances
    assert isinstance(chances, Uniform | Chances)
    run.in_kernel.step(run.space.view, arrays, Batch(rows, 0, rows.size, chances, u), t - 1)
    return arrays


def advance_to(t, solver, problem, seed):
    """Return the run after t steps."""
    run = solver.init(problem, None, seed)
    for k in range(t):
        solver.advance(problem, run, k, 1, np.inf)
    return run


GAUSS = [(0.5 * c, 0.5 * (x + 1.0)) for x, c in zip(*np.polynomial.legendre.leggauss(12))]
WAYS = ["batch", "replacement", "blocks", "importance"]


def expected_r(run, t, b, sampling, over_u=False):
    """E[r_t | the past], r being what the oracle sees at step t = 1, 2, ..."""
    listening = run.space.problem.constraint._lmo.__self__
    importance = run.sampler.chances.chances if sampling == "importance" else None
    total, mass = np.zeros(run.space.problem.n_features), 0.0
    for chance, rows in all_batches(run.space.problem.n_samples, b, sampling, importance):
        for c, u in GAUSS if over_u else [(1.0, 0.0)]:
            try_step(run, rows, t, u)
            total += c * chance * listening.asked[-1]
            mass += c * chance
    assert mass == pytest.approx(1.0, abs=1e-12)
    return total


@pytest.mark.parametrize("sampling", WAYS)
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("name", ["saga", "svrf", "growing-batch"])
def test_unbiased(name, b, sampling):
    """E[r_t] is the gradient of F at w_{t-1}, for equal weights and not, from the states of a real run."""
    for weighted in (False, True):
        problem, *_ = make(weighted=weighted, seed=4)
        solver = {
            "saga": cg.solvers.SAGA(batch_size=b, sampling=sampling),
            "svrf": cg.solvers.SVRF(batch_size=1, sampling=sampling),
            "growing-batch": cg.solvers.GrowingBatch(batch_size=b, growth=0.0, sampling=sampling),
        }[name]
        for t in (1, 5, 12):
            run = advance_to(t - 1 if name != "svrf" else t, solver, problem, 5)
            t = t if name != "svrf" else t + 1  # inside a round: the snapshot was taken before its first step
            found = expected_r(run, t, b, sampling)
            np.testing.assert_allclose(found, problem.gradient(run.w), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sampling", WAYS)
@pytest.mark.parametrize("b", [1, 2])
def test_momentum_averages_unbiased_gradients(b, sampling):
    problem, *_ = make(weighted=True, seed=6)
    for t in (1, 4, 9):
        run = advance_to(t - 1, cg.solvers.Momentum(batch_size=b, sampling=sampling), problem, 7)
        rho = 4.0 / (t + 8.0) ** (2.0 / 3.0)
        found = expected_r(run, t, b, sampling)
        expected = (1.0 - rho) * run.arrays.r.vector.to_array() + rho * problem.gradient(run.w)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sampling", WAYS)
@pytest.mark.parametrize("name", ["spider", "caspiderg", "one-sample"])
def test_differences_are_unbiased(name, sampling):
    """E[r_t] = r_{t-1} + grad F(w_t) - grad F(w_{t-1}); for Hessian-vector products over a uniform in [0, 1] too."""
    problem, *_ = make(weighted=True, seed=8)
    solver = {
        "spider": cg.solvers.Spider(batch_size=2, sampling=sampling),
        "caspiderg": cg.solvers.CurvatureAided(batch_size=2, n_steps=900, sampling=sampling),
        "one-sample": cg.solvers.OneSample(batch_size=2, sampling=sampling),
    }[name]
    moved = 0.0
    for t in (3, 4, 7):
        run = solver.init(problem, None, 9)
        for k in range(t - 1):
            before = run.w
            solver.advance(problem, run, k, 1, np.inf)
        gradient, last = problem.gradient(run.w), problem.gradient(before)
        found = expected_r(run, t, 2, sampling, over_u=name != "spider")
        rho = 1.0 / (t - 1.0) if name == "one-sample" else 0.0
        expected = (1.0 - rho) * (run.arrays.r.vector.to_array() + gradient - last) + rho * gradient
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        moved = max(moved, abs(gradient - last).max())
    assert moved > 1e-3


@pytest.mark.parametrize("b", [1, 2, N])
def test_sfw_is_biased_as_the_paper_says(b):
    """E[r_t] = (1 - b/n) r_{t-1} + (b/n) grad F: each entry of alpha is renewed with chance b/n."""
    problem, *_ = make(seed=10)
    run = advance_to(6, cg.solvers.SFW(batch_size=b), problem, 11)
    found = expected_r(run, 7, b, "batch")
    expected = (1.0 - b / N) * run.arrays.r.vector.to_array() + b / N * problem.gradient(run.w)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    if b < N:
        assert abs(found - problem.gradient(run.w)).max() > 1e-3


# Lemma 2 and theorem 1 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [1, 2, 5])
@pytest.mark.parametrize("loss", ["Logistic", "Squared"])
def test_lemma_2(loss, b):
    """E_t H_t <= (1 - b/n) (H_{t-1} + gamma_{t-1} L D_1 / n), equation (13), and the equality (18) on the way."""
    problem, X, y, weight = make(loss, seed=12, constraint=cg.constraints.L1Ball(1.5))
    diameters = theory.diameters(X, problem.constraint)
    assert diameters.is_exact
    L = {"Logistic": 0.25, "Squared": 1.0}[loss]
    solver = cg.solvers.SFW(batch_size=b)
    run = solver.init(problem, None, 13)
    gradient = outer_gradient(X, y, weight, run.w, loss)
    H = np.abs(gradient).sum()  # H_0: alpha_0 = 0
    for t in range(1, 60):
        gradient = outer_gradient(X, y, weight, run.w, loss)
        delta = np.abs(run.arrays.alpha.values - gradient).sum()
        subsets = [rows for _, rows in all_batches(N, b, "batch")]
        expected = np.mean([np.abs(try_step(run, rows, t).alpha.values - gradient).sum() for rows in subsets])
        gamma = 2.0 / (t + 1.0) if t > 1 else 0.0  # w_{-1} = w_0: no step before the first
        assert expected == pytest.approx((1.0 - b / N) * delta, abs=1e-14)
        assert expected <= (1.0 - b / N) * (H + gamma * L * diameters.D_1 / N) + 1e-14
        solver.advance(problem, run, t - 1, 1, np.inf)
        H = np.abs(run.arrays.alpha.values - gradient).sum()


@pytest.mark.parametrize(("b", "loss"), [(1, "Logistic"), (4, "Logistic"), (1, "Squared")])
def test_theorem_1_and_proposition_1_in_expectation(b, loss):
    """Equations (9) and (33) dominate the means over 50 seeds, at every step."""
    problem, X, y, weight = make(loss, n=12, seed=14, constraint=cg.constraints.L1Ball(1.5))
    reference = Reference(X, y, loss, l1_vertices(D, 1.5))
    _, optimum = reference.optimum()
    steps, seeds = 80, 50
    errors, gaps = np.zeros((seeds, steps)), np.zeros((seeds, steps))
    for seed in range(seeds):
        solver = cg.solvers.SFW(batch_size=b)
        run = without_smoothing(solver.init(problem, None, seed))
        for t in range(steps):
            r = X.T @ outer_gradient(X, y, weight, run.w, loss)
            gap = r @ run.w + 1.5 * np.abs(r).max()
            solver.advance(problem, run, t, 1, np.inf)
            gaps[seed, t] = abs(gap - run.known_gap)
            errors[seed, t] = weight @ FORMULAS[loss][0](X @ run.w, y) - optimum
    t = np.arange(1, steps + 1)
    eps_0 = reference.objective(problem.constraint.start(D).to_dense(D)) - optimum
    assert errors.min() >= -1e-12
    assert (errors.mean(axis=0) <= theory.sfw_bound(problem, t, batch_size=b, eps_0=eps_0)).all()
    assert (errors.mean(axis=0) <= theory.sfw_bound(problem, t, batch_size=b)).all()
    assert (gaps.mean(axis=0) <= theory.gap_estimate_bound(problem, t, batch_size=b)).all()
    assert gaps.mean() > 1e-3


# Lu & Freund, and appendix G -------------------------------------------------------------------------------------


def weights_of_vertices(gammas):
    """The weights of w_0 and of s_0, s_1, ... in the last iterate."""
    weights = np.array([1.0])
    for gamma in gammas:
        weights = np.append((1.0 - gamma) * weights, gamma)
    return weights


@pytest.mark.parametrize("b", [1, 2, N])
def test_substitute_iterate_is_an_average_of_vertices(b):
    """w after step t is the average of s_0, ..., s_t with weights 2m + t, m = n/b."""
    problem, *_ = make(seed=16)
    listening = problem.constraint._lmo.__self__
    solver = cg.solvers.Substitute(batch_size=b)
    run = solver.init(problem, None, 17)
    listening.answered.clear()
    for t in range(60):
        solver.advance(problem, run, t, 1, np.inf)
        weights = 2.0 * N / b + np.arange(t + 1)
        average = weights @ np.array(listening.answered) / weights.sum()
        np.testing.assert_allclose(run.w, average, rtol=0, atol=1e-13)


@pytest.mark.parametrize("first", [0, 1])
def test_appendix_g2_prints_another_step(first):
    """4m + t + 1 in place of 4m + t: w_0 never leaves the average, and the weights of the s are not 2m + t."""
    m, T = 6.0, 40
    t = np.arange(first, T + first)
    ours = weights_of_vertices(2.0 * (2.0 * m + np.arange(T)) / ((np.arange(T) + 1.0) * (4.0 * m + np.arange(T))))
    printed = weights_of_vertices(2.0 * (2.0 * m + t) / ((t + 1.0) * (4.0 * m + t + 1.0)))
    wanted = 2.0 * m + np.arange(T)
    np.testing.assert_allclose(ours[1:], wanted / wanted.sum(), rtol=1e-12)
    assert ours[0] == 0.0
    assert printed[0] > 1e-5
    ratio = printed[1:] / (2.0 * m + t)
    assert ratio.max() / ratio.min() > 1.01


def test_substitute_gradient_is_taken_at_the_averaged_prediction():
    """sigma_i is the average of x_i's over the steps that drew i, and alpha_i the derivative there."""
    problem, X, y, weight = make(seed=18)
    listening = problem.constraint._lmo.__self__
    solver = cg.solvers.Substitute()
    run = solver.init(problem, None, 19)
    sigma = X @ run.w
    for t in range(50):
        alpha = run.arrays.alpha.values.copy()
        solver.advance(problem, run, t, 1, np.inf)
        (i,) = np.flatnonzero(run.arrays.alpha.values != alpha)
        delta = 2.0 * N / (2.0 * N + t + 1.0)
        sigma[i] = (1.0 - delta) * sigma[i] + delta * (X[i] @ listening.answered[-1])
        np.testing.assert_allclose(run.arrays.sigma.values, sigma, rtol=0, atol=1e-13)
    seen = run.arrays.alpha.values != 0.0
    assert seen.all()
    np.testing.assert_allclose(run.arrays.alpha.values, weight * FORMULAS["Logistic"][1](sigma, y), rtol=0, atol=1e-14)


# Mokhtari, Hassani & Karbasi, and appendix G ---------------------------------------------------------------------


def test_momentum_is_the_running_average_of_unbiased_gradients():
    """r_t = sum_k rho_k prod_{l > k} (1 - rho_l) g_k, where g_k = f_i'(x_i'w_{k-1}) x_i for the sample i of step k."""
    problem, X, y, _ = make(seed=20)
    listening = problem.constraint._lmo.__self__
    solver = cg.solvers.Momentum()
    run = solver.init(problem, None, 21)
    draws = Sampler(N, "batch", np.random.default_rng(21)).draw(np.ones(60, dtype=int)).indices
    rho = 4.0 / (np.arange(1, 61) + 8.0) ** (2.0 / 3.0)
    gradients, by_coordinate = [], np.zeros(N)
    for t in range(60):
        i = draws[t]
        slope = FORMULAS["Logistic"][1](X[i] @ run.w, y[i])
        gradients.append(slope * X[i])
        by_coordinate[i] = (1.0 - rho[t]) * by_coordinate[i] + rho[t] * slope  # appendix G.1, line 4
        solver.advance(problem, run, t, 1, np.inf)
        weights = [rho[k] * np.prod(1.0 - rho[k + 1 : t + 1]) for k in range(t + 1)]
        np.testing.assert_allclose(listening.asked[-1], weights @ np.array(gradients), rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.arrays.r.vector.to_array(), weights @ np.array(gradients), rtol=0, atol=1e-12)
    # The reading of G.1 is another vector: about n times a gradient, with entries that never decay.
    assert np.linalg.norm(X.T @ by_coordinate - run.arrays.r.vector.to_array()) > 0.1
    angle = (X.T @ by_coordinate) @ run.arrays.r.vector.to_array()
    angle /= np.linalg.norm(X.T @ by_coordinate) * np.linalg.norm(run.arrays.r.vector.to_array())
    assert angle < 0.99
