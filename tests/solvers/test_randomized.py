"""Randomized Frank-Wolfe: the recurrences, the samples, what a step costs, and where it converges to."""

import itertools

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from tables import ATOMIC
from tables import FOUR_FORMS as FORMS

import condgrad as cg
from condgrad import sample_sizes
from condgrad.linalg.scaled import Scaled
from condgrad.problems.by_feature.quadratic import _S, _SIGMA_W
from condgrad.solvers import Randomized
from condgrad.solvers.stochastic import _schedule, _state
from condgrad.testing.solvers import certified_optimum, tiny_data


def problem_of(loss=None, constraint="l1", form="csc", n=14, d=10, weighted=False, intercept=False, dtype=float):
    X, p, weight = tiny_data(2, n, d)
    loss = cg.losses.Squared() if loss is None else loss
    y = np.sign(p) if isinstance(loss, cg.losses.Logistic) else p
    X = FORMS[form](X.astype(dtype))
    return cg.Problem(
        X, y, loss, ATOMIC[constraint](d), sample_weight=weight if weighted else None, intercept=intercept
    )  # fmt: skip


@pytest.fixture
def interpreted(monkeypatch):
    """Run steps in Python: a step is compiled for every combination, which takes seconds each."""
    monkeypatch.setattr(_state, "run_block", _state.interpreted)


def iterates(problem, solver, steps, **settings):
    found = []
    settings = {"tol": 0.0, "random_state": 0} | settings
    cg.minimize(
        problem, solver, max_steps=steps, evaluate_every=1e-9, callback=lambda p: found.append(p.w.copy()), **settings
    )  # fmt: skip
    return np.array(found)


def walk(problem, solver, steps, w0=None, seed=0):
    """Yield the run after each step."""
    run = solver.init(problem, w0, seed)
    for t in range(steps):
        solver.advance(problem, run, t, 1, np.inf)
        yield run


class Everything:
    """The sample of all atoms."""

    def __init__(self, n):
        self.n = n

    def size(self):
        return self.n

    def at(self, q):
        return q


# The step is that of Frank-Wolfe -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["residuals", "covariates"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("constraint", ATOMIC)
def test_a_sample_of_everything_is_frank_wolfe(interpreted, constraint, intercept, gradient):
    problem = problem_of(constraint=constraint, weighted=True, intercept=intercept)
    n_atoms = problem.constraint.blocks(problem.n_features).size()
    expected = iterates(problem, "fw", 25)
    found = iterates(problem, Randomized(sample_size=int(n_atoms), gradient=gradient), 25)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Huber(0.5)], ids=repr)
def test_a_sample_of_everything_is_frank_wolfe_for_other_losses(interpreted, loss, form, intercept):
    problem = problem_of(loss, "l1", form, weighted=True, intercept=intercept)
    for step_size in (cg.step_sizes.ExactLineSearch(), cg.step_sizes.ShortStep(), cg.step_sizes.OpenLoop()):
        expected = iterates(problem, cg.solvers.FrankWolfe(step_size), 12)
        if isinstance(step_size, cg.step_sizes.OpenLoop):  # kernels count from 1: a first step of 2/3
            continue
        found = iterates(problem, Randomized(sample_size=10, step_size=step_size), 12)
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("gradient", ["residuals", "covariates"])
@pytest.mark.parametrize(("weighted", "intercept"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("constraint", ["l1", "group"])
def test_recurrences_are_brute_force(interpreted, constraint, weighted, intercept, gradient):
    problem = problem_of(constraint=constraint, weighted=weighted, intercept=intercept)
    X, y, weight = problem.matrix.X.toarray(), problem.y, problem.samples.weight
    solver = Randomized(sample_size=3, gradient=gradient)
    for run in walk(problem, solver, 60):
        w, line = run.w, run.arrays.f.line
        p = X @ w
        b = weight @ (y - p) if intercept else 0.0
        assert line.scalars[_S] == pytest.approx(weight @ p**2, rel=1e-12)  # S / n
        assert line.scalars[_SIGMA_W] == pytest.approx(-(weight * y) @ p, rel=1e-12)  # -F / n
        assert line.intercept() == pytest.approx(b, rel=1e-12)
        assert run.objective == pytest.approx(problem.objective(w), rel=1e-12)
        r = X.T @ (weight * (p + b - y))
        assert line.along() == pytest.approx(r @ w, rel=1e-11)
        np.testing.assert_allclose(run.arrays.f.u.to_array(), weight * p, rtol=1e-11, atol=1e-14)
        everything = run.arrays.r.on(run.space.blocks, Everything(run.space.n_blocks))
        run.arrays.f.differentiate(run.space.view.X, everything)
        np.testing.assert_allclose(everything.values, r, atol=1e-13)


@pytest.mark.slow
def test_recurrences_stay_right_over_many_steps():
    problem = problem_of(n=40, d=60)
    solver = Randomized(sample_size=6, gradient="residuals")
    *_, run = walk(problem, solver, 1)
    solver.advance(problem, run, 1, 5000, np.inf)
    while run.kept.t < 5000:
        solver.advance(problem, run, run.kept.t, 5000 - run.kept.t, np.inf)
    assert run.objective == pytest.approx(problem.objective(run.w), rel=1e-12)


def test_derivatives_of_samples_that_w_does_not_touch(interpreted):
    X = scipy.sparse.random(60, 40, density=0.04, random_state=1, format="csc")
    y = np.where(np.arange(60) % 3 == 0, 1.0, -1.0)
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(3.0))
    for run in walk(problem, Randomized(sample_size=5), 25):
        line = run.arrays.f.line
        r = X.T @ run.arrays.f.alpha.values
        np.testing.assert_allclose(r, problem.gradient(run.w), atol=1e-14)
        assert line.along() == pytest.approx(r @ run.w, abs=1e-13)
    assert line.rows.size() < 60


# Forms of data, repeatability --------------------------------------------------------------------------------------


def test_forms_of_data_give_the_same_run():
    runs = [iterates(problem_of(form=form), Randomized(sample_size=4), 40) for form in FORMS]
    for other in runs[1:]:
        np.testing.assert_allclose(other, runs[0], atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "constraint", "intercept"), [(cg.losses.Huber(0.5), "group", True), (cg.losses.Squared(), "group", False)]
)
def test_compiled_runs_equal_interpreted_ones(loss, constraint, intercept, monkeypatch):
    problem = problem_of(loss, constraint, intercept=intercept)
    compiled = iterates(problem, Randomized(sample_size=2, step_tol=1e-12), 30)
    monkeypatch.setattr(_state, "run_block", _state.interpreted)
    np.testing.assert_allclose(iterates(problem, Randomized(sample_size=2, step_tol=1e-12), 30), compiled, atol=1e-9)


@pytest.mark.parametrize("name", ["Poisson", "Pinball", "Welsch", "SigmoidSquared"])
def test_no_loss_is_refused(name):
    X, p, _ = tiny_data(2, 14, 10)
    problem = cg.Problem(X, (p > 0.0) * 1.0, getattr(cg.losses, name)(), cg.constraints.L1Ball(1.0))
    assert cg.minimize(problem, "randomized", max_steps=0).n_steps == 0


def test_float32_data():
    problem = problem_of(form="F", dtype=np.float32)
    double = cg.Problem(problem.matrix.X.astype(float), problem.y, problem.loss, problem.constraint)
    solver = Randomized(sample_size=4)
    np.testing.assert_allclose(iterates(problem, solver, 30), iterates(double, solver, 30), atol=1e-9)


@pytest.mark.parametrize(
    "solver",
    [
        Randomized(sample_size=3),
        Randomized(sample_size=0.5, sampling="blocks", gradient="covariates"),
        Randomized(sample_size=sample_sizes.Shrinking(largest=0.8), gradient="residuals"),
        Randomized(sample_size=8),  # goes over to cached products on the way
    ],
    ids=repr,
)
def test_same_seed_same_run_however_steps_are_cut_into_blocks(solver, monkeypatch, tmp_path):
    def run(**settings):
        return cg.minimize(problem_of(), solver, tol=0.0, random_state=3, **({"max_steps": 400} | settings))

    first = run()
    monkeypatch.setattr(_schedule, "_BLOCK_SECONDS", 1e-7)
    second = run()
    assert first.w.tobytes() == second.w.tobytes()
    assert np.array_equal(first.trace.objective, second.trace.objective)
    assert np.array_equal(first.trace.step, second.trace.step)
    assert first.n_epochs == second.n_epochs
    run(max_steps=150, checkpoint=tmp_path / "run")
    third = run(checkpoint=tmp_path / "run")
    assert third.w.tobytes() == first.w.tobytes()


def test_auto_goes_over_to_cached_products_where_they_pay():
    problem = problem_of(n=40, d=60)
    *_, run = walk(problem, Randomized(sample_size=30), 1)
    assert run.arrays.f.covariates.may_be_used()
    result = cg.minimize(problem, Randomized(sample_size=30), tol=0.0, max_steps=3000, random_state=0)
    forced = cg.minimize(
        problem, Randomized(sample_size=30, gradient="residuals"), tol=0.0, max_steps=3000, random_state=0
    )  # fmt: skip
    assert result.state.arrays.f.covariates.is_used()
    np.testing.assert_allclose(result.trace.objective, forced.trace.objective, rtol=1e-9)
    sparse_steps = cg.minimize(problem, Randomized(sample_size=2), tol=0.0, max_steps=100, random_state=0)
    assert sparse_steps.state.arrays.f.covariates.may_be_used()


def test_a_full_cache_brings_residuals_back(interpreted, monkeypatch):
    monkeypatch.setattr("condgrad.problems.by_feature.covariates._MOST_CACHED", 20)  # two columns
    problem = problem_of()
    found = iterates(problem, Randomized(sample_size=6, gradient="covariates"), 30)
    expected = iterates(problem, Randomized(sample_size=6, gradient="residuals"), 30)
    np.testing.assert_allclose(found, expected, atol=1e-10)


# Samples -----------------------------------------------------------------------------------------------------------


def drawn_samples(solver, d=12, steps=3000):
    problem = problem_of(d=d)
    run = solver.init(problem, None, 1)
    draws, draw = [], run.sampler.draw

    def recorded(sizes, *rest):
        batches = draw(sizes, *rest)
        draws.extend(batches.indices[a:b].copy() for a, b in itertools.pairwise(batches.offsets))
        return batches

    run.sampler.draw = recorded
    while len(draws) < steps:
        solver.advance(problem, run, run.kept.t, steps - run.kept.t, np.inf)
    return np.array(draws)


def test_samples_are_uniform_and_without_replacement():
    draws = drawn_samples(Randomized(sample_size=4))
    assert all(np.unique(sample).size == 4 for sample in draws)
    assert scipy.stats.chisquare(np.bincount(draws.ravel(), minlength=12)).pvalue > 1e-3
    pairs = np.zeros((12, 12))
    for sample in draws:
        pairs[np.ix_(sample, sample)] += 1
    assert scipy.stats.chisquare(pairs[np.triu_indices(12, 1)]).pvalue > 1e-3


def test_contiguous_samples():
    draws = drawn_samples(Randomized(sample_size=4, sampling="blocks"))
    assert ((np.diff(draws, axis=1) % 12) == 1).all()
    assert scipy.stats.chisquare(np.bincount(draws.ravel(), minlength=12)).pvalue > 1e-3


def test_sample_sizes_of_the_paper():
    assert cg.theory.top_sample_size(0.02, 0.98) == 194
    assert sample_sizes.TopShare().size(4_272_227, 0) == 194
    shares = {201_376: (2014, 4028, 6042), 635_376: (6354, 12708, 19062), 4_272_227: (42723, 85445, 128167)}
    for p, expected in shares.items():  # table 3
        assert tuple(sample_sizes.resolve(share, p) for share in (0.01, 0.02, 0.03)) == expected
    for p, s, rho in [(1000, 20, 0.98), (500, 3, 0.5), (50, 49, 0.99)]:
        kappa = cg.theory.relevant_sample_size(p, s, rho)
        assert (1 - s / p) ** kappa <= 1 - rho < (1 - s / p) ** (kappa - 1)  # (12)
        exact = np.prod([1 - s / (p - j) for j in range(kappa)])  # (11)
        assert exact <= 1 - rho + 1e-12
        assert cg.theory.relevant_sample_size(p, s, rho, approximate=True) >= kappa  # (13)


def test_samples_shrink_as_the_support_grows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 200)), rng.standard_normal(60)
    problem = cg.Problem(np.asfortranarray(X), y, cg.losses.Squared(), cg.constraints.L1Ball(3.0))
    rule, sizes, n_active = sample_sizes.Shrinking(confidence=0.9), [], 0
    for run in walk(problem, Randomized(sample_size=rule), 60):
        sizes.append(run.space.batch_size)
        if len(sizes) <= 10:  # a look before each of these steps, and then every time t has grown by a tenth
            assert sizes[-1] == rule.size(200, n_active or 1)
        n_active = np.count_nonzero(run.w)
    assert sizes[0] == 200
    assert sizes[-1] < 60
    assert sizes == sorted(sizes, reverse=True)


# Convergence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", ["l1", "simplex", "group"])
@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Logistic(), cg.losses.Huber(0.5)], ids=repr)
def test_converges_to_the_certified_optimum(interpreted, loss, constraint):
    problem = problem_of(loss, constraint)
    low, high = certified_optimum(problem)
    result = cg.minimize(problem, Randomized(sample_size=2), tol=0.03, max_epochs=400, random_state=0)
    assert result.status is cg.Status.CONVERGED
    assert result.gap == problem.gap(result.w) <= 0.03
    assert low - 1e-12 <= result.objective <= high + 0.03
    assert problem.constraint.violation(result.w) <= 1e-12


def test_the_sampled_gap_is_no_certificate():
    """It is below the gap, so a run must not stop where it alone is small."""
    problem = problem_of(n=40, d=60)
    seen = []
    for run in walk(problem, Randomized(sample_size=2), 200):
        sampled = run.arrays.r.sampled_gap()
        seen.append(sampled)
    assert min(seen) < 0.0  # no sampled vertex went down
    result = cg.minimize(problem, Randomized(sample_size=2), tol=0.05, max_epochs=300, random_state=0)
    assert result.gap <= 0.05 or result.status is not cg.Status.CONVERGED
    gaps = result.trace.gap
    assert (gaps[:-1] > 0.05).all()


def test_expected_error_is_below_the_bound():
    problem = problem_of(n=40, d=60)
    _, optimum = certified_optimum(problem)
    steps = np.array([1, 3, 10, 30, 100, 300])
    for kappa in (3, 30):
        errors = np.zeros(steps.size)
        for seed in range(30):
            solver = Randomized(sample_size=kappa)
            run = solver.init(problem, None, seed)
            for k, stop in enumerate(steps):
                while run.kept.t < stop:
                    solver.advance(problem, run, run.kept.t, stop - run.kept.t, np.inf)
                errors[k] += (run.objective - optimum) / 30
        start = problem.objective(problem.constraint.start(60).to_dense(60)) - optimum
        assert start <= cg.theory.randomized_bound(problem, 0, kappa / 60)  # h_0 <= 2 C_f
        assert (errors <= cg.theory.randomized_bound(problem, steps, kappa / 60)).all()
        if kappa == 30:  # proposition 2 as it is stated
            assert (errors <= cg.theory.randomized_bound(problem, steps, 1.0)).all()


def test_proposition_2_does_not_hold_for_every_sample_size():
    """X = I, y between e_1 and e_2, from the best vertex e_1: before e_2 is drawn, F stays above F(e_1 / 2)."""
    p, k = 1000, 150
    y = np.zeros(p)
    y[:2] = 0.5
    problem = cg.Problem(scipy.sparse.identity(p, format="csc"), y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    w0 = np.zeros(p)
    w0[0] = 1.0
    errors = []
    for seed in range(20):
        solver = Randomized(sample_size=1)
        run = solver.init(problem, w0, seed)
        while run.kept.t < k:
            solver.advance(problem, run, run.kept.t, k - run.kept.t, np.inf)
        errors.append(run.objective)  # F* = 0
    assert np.mean(errors) > 1.5 * cg.theory.randomized_bound(problem, k, 1.0)
    assert np.mean(errors) <= cg.theory.randomized_bound(problem, k, 1 / p)


def test_elastic_net_by_appended_rows():
    X, y, _ = tiny_data(2, 30, 12)
    c = 0.4
    tall = scipy.sparse.vstack([X, np.sqrt(30 * c) * scipy.sparse.identity(12)]).tocsc()
    problem = cg.Problem(tall, np.concatenate([y, np.zeros(12)]), cg.losses.Squared(), cg.constraints.L1Ball(1.5))
    result = cg.minimize(problem, Randomized(sample_size=4), tol=2e-3, random_state=0, max_epochs=3000)
    assert result.status is cg.Status.CONVERGED
    plain = ((X @ result.w - y) ** 2).sum() / 60 + c * (result.w**2).sum() / 2
    assert result.objective * 42 / 30 == pytest.approx(plain)


# The stopping rule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", ATOMIC)
def test_stops_at_the_first_small_step(interpreted, constraint):
    problem = problem_of(constraint=constraint)
    step_tol = 0.02
    solver = Randomized(sample_size=4, step_tol=step_tol)
    path = iterates(problem, solver._replace(step_tol=0.0), 200)
    changes = np.abs(np.diff(path, axis=0)).max(axis=1)
    first = int(np.flatnonzero((changes > 1e-7) & (changes <= step_tol))[0]) + 1
    result = cg.minimize(problem, solver, tol=0.0, max_steps=200, random_state=0)
    assert result.status is cg.Status.SMALL_STEP
    assert result.n_steps == first
    assert result.gap == problem.gap(result.w)


@pytest.mark.parametrize(("patience", "expected"), [(3.0, 9), (1.0, 3), (0.0, 1)])
def test_stops_where_no_vertex_goes_down(patience, expected):
    """At an unconstrained optimum no step is possible; it ends after ``patience`` times as many atoms as there are."""
    X = np.eye(6)
    problem = cg.Problem(X, np.zeros(6), cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    solver = Randomized(sample_size=2, step_tol=1e-3, patience=patience)
    run = solver.init(problem, np.zeros(6), 0)
    steps = 0
    while not run.is_done:
        steps += solver.advance(problem, run, steps, 100, np.inf)
    assert steps == expected


def test_small_steps_are_said_to_be_no_certificate():
    assert "gap" in str(cg.Status.SMALL_STEP)


# What a step costs -------------------------------------------------------------------------------------------------


class Counted:
    """Slices or a vector that count the entries they touch."""

    def __init__(self, inner, touched):
        self.inner, self.touched = inner, touched

    def dot_slice(self, k, v):
        if isinstance(k, Counted):  # a vector, asked for <slice v of k, self>
            return k.dot_slice(v, self.inner.values)
        self.touched[0] += int(self.inner.n_stored(k))
        return self.inner.dot_slice(k, v)

    def add_slice(self, k, c, out):
        self.touched[0] += int(self.inner.n_stored(k))
        self.inner.add_slice(k, c, out)

    def at(self, j):
        self.touched[0] += 1
        return self.inner.at(j)

    def add_at(self, j, delta):
        self.touched[0] += 1
        self.inner.add_at(j, delta)

    def shrink(self, factor):
        self.touched[0] += self.inner.size()
        self.inner.shrink(factor)

    def to_array(self):
        return self.inner.to_array()


def entries_touched(n, d, per_column, steps=40, kappa=6):
    """The entries of X, of w and of the residuals that single steps touch."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.choice(n, per_column, replace=False) for _ in range(d)])
    X = scipy.sparse.csc_matrix(
        (rng.standard_normal(rows.size), rows, per_column * np.arange(d + 1)), shape=(n, d)
    )  # fmt: skip
    problem = cg.Problem(X, rng.standard_normal(n), cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    solver = Randomized(sample_size=kappa, gradient="residuals")
    run = solver.init(problem, np.zeros(d), 0)
    touched = np.zeros(1)
    run.space.view = run.space.view._replace(X=Counted(run.space.view.X, touched))
    state = run.arrays
    run.arrays = state._replace(
        w=Scaled(Counted(state.w.vector, touched), state.w.scale),
        f=state.f._replace(u=Scaled(Counted(state.f.u.vector, touched), state.f.u.scale)),
    )
    counts = []
    for t in range(steps):
        before = touched[0]
        solver.advance(problem, run, t, 1, np.inf)
        counts.append(touched[0] - before)
    return np.array(counts)


def test_a_step_costs_the_sampled_columns(interpreted):
    counts = entries_touched(50, 40, 5)
    assert counts.max() <= 6 * 5 + 3 * 5 + 4  # the sample, the chosen column and its residuals, a few entries of w
    np.testing.assert_array_less(entries_touched(5000, 4000, 5), counts.max() + 1)


def test_counting_notices_full_passes(interpreted):
    def shrink_all(self, factor):
        self.vector.shrink(factor)

    original = Scaled.shrink
    try:
        Scaled.shrink = shrink_all
        assert entries_touched(500, 400, 5, steps=5).max() > 500
    finally:
        Scaled.shrink = original


# Errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sample_size": 0}, "sample_size must be a whole number of at least 1, a share in"),
        ({"sample_size": 2.5}, "sample_size must be a whole number"),
        ({"sample_size": "all"}, "sample_size must be a whole number"),
        ({"sample_size": True}, "sample_size must be a whole number"),
        ({"sampling": "importance"}, "atoms are drawn with equal probabilities"),
        ({"sampling": "random"}, "sampling must be one of"),
        ({"step_tol": -1.0}, "step_tol of Randomized must be a number of at least 0; got -1.0"),
        ({"patience": -1.0}, "patience of Randomized must be a number of at least 0; got -1.0"),
        ({"gradient": "exact"}, "gradient of Randomized must be one of auto, residuals, covariates; got 'exact'"),
        ({"step_size": 0.1}, "step_size must be a rule"),
    ],
)
def test_wrong_settings(settings, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        Randomized(**settings)


@pytest.mark.parametrize(
    ("rule", "settings", "sentence"),
    [
        (sample_sizes.TopShare, {"share": 0.0}, r"share must be a number in \(0, 1\); got 0.0"),
        (sample_sizes.TopShare, {"confidence": 1.0}, r"confidence must be a number in \(0, 1\); got 1.0"),
        (sample_sizes.HitRelevant, {"n_relevant": 0}, "n_relevant must be a number of at least 1; got 0"),
        (sample_sizes.Shrinking, {"largest": 1.5}, r"largest must be a share in \(0, 1\]; got 1.5"),
    ],
)
def test_wrong_rules(rule, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        rule(**settings)


def test_problems_that_it_refuses():
    problem = problem_of()
    with pytest.raises(ValueError, match="sample_size is 11, but there are only 10 atoms; use at most 10"):
        cg.minimize(problem, Randomized(sample_size=11))
    with pytest.raises(ValueError, match="gradient='covariates' needs a loss whose derivative is linear"):
        cg.minimize(problem_of(cg.losses.Huber()), Randomized(gradient="covariates"))
    for constraint in (cg.constraints.L2Ball(1.0), cg.constraints.Scale(cg.constraints.Simplex(), -1.0)):
        other = cg.Problem(problem.matrix.X, problem.y, problem.loss, constraint)
        with pytest.raises(TypeError, match="there are no atoms to sample; use 'fw'"):
            cg.minimize(other, "randomized")
    counts = cg.Problem(problem.matrix.X, np.arange(14.0), cg.losses.Poisson(), problem.constraint, intercept=True)
    with pytest.raises(ValueError, match="ShortStep needs a bound of the curvature"):
        cg.minimize(counts, Randomized(step_size=cg.step_sizes.ShortStep()))
    with pytest.raises(TypeError, match="Backtracking needs the objective along a line"):
        cg.minimize(problem, Randomized(step_size=cg.step_sizes.Backtracking()))
    with pytest.raises(ValueError, match=r"share must be a number in \(0, 1\]; got 0"):
        cg.theory.randomized_bound(problem, 1, 0)


def test_open_loop_needs_no_line_search(interpreted):
    problem = problem_of()
    result = cg.minimize(
        problem, Randomized(sample_size=5, step_size=cg.step_sizes.OpenLoop()), tol=0.1, random_state=0
    )
    assert result.status is cg.Status.CONVERGED
