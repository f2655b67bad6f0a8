"""TUFW's estimate is the Taylor expansion it claims to be, its bounds hold, and corrective reaches tight gaps."""

import time

import numpy as np
import pytest
import scipy.sparse
from covering import every_choice, product_by_pairs
from tables import EXAMPLES

import condgrad as cg
from condgrad import constraints, losses, rules, theory
from condgrad.linalg.spread import spread_rows
from condgrad.problems.drawn_rows import sample_by_curvature
from condgrad.solvers import TUFW
from condgrad.solvers.full_pass.taylor_model import model_for, takes_few_passes

N, D = 60, 7
RULES = [
    rules.SBD(),
    rules.DBD(),
    rules.SBD(n_steps=50),
    rules.DBD(n_steps=50),
    rules.Empty(),
    rules.Full(),
    rules.RandomBatch(9),
    rules.Cyclic(9),
]


class EveryThird(rules.Rule):
    """A user's own rule: five samples in every third iteration."""

    def sizes(self, k, n):
        return np.where(k % 3 == 0, 5.0, 0.0)


def make_data(kind="dense", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6)
    y = np.where(X @ rng.standard_normal(D) + 0.5 * rng.standard_normal(N) > 0, 1.0, -1.0)
    return {"dense": X, "csr": scipy.sparse.csr_array(X), "csc": scipy.sparse.csc_array(X)}[kind], y


def make_problem(kind="dense", constraint=None, loss=None, **settings):
    X, y = make_data(kind)
    loss = losses.Logistic() if loss is None else loss
    targets = (y + 1) / 2 if isinstance(loss, losses.SigmoidSquared) else y
    return cg.Problem(X, targets, loss, constraints.L1Ball(2.0) if constraint is None else constraint, **settings)


def brute_force_estimate(problem, points, w):
    """g = sum_i weight_i [f'(x_i'b_i) + f''(x_i'b_i) x_i'(w - b_i)] x_i, from the Taylor points themselves."""
    X = problem.matrix.X.toarray() if problem.matrix.is_sparse else problem.matrix.X
    at, now = np.einsum("ij,ij->i", X, points), X @ w
    first, second = problem.loss.derivative(at, problem.y), problem.loss.second_derivative(at, problem.y)
    return X.T @ (problem.samples.weight * (first + second * (now - at)))


@product_by_pairs(
    ("rule", "form", "loss"),
    [*RULES, EveryThird()],
    ["stored", "implicit"],
    [losses.Logistic(), losses.SigmoidSquared()],  # the second has f'' < 0
    ids=str,
)
def test_estimate_equals_brute_force_at_every_step(rule, form, loss):
    problem = make_problem("csr", loss=loss, sample_weight=np.linspace(1.0, 2.0, N))
    solver = TUFW(rule=rule, form=form)
    run = solver.init(problem, None, 0)
    points = None
    for t in range(50):
        w, before = run.w, run.arrays.points.p.values.copy()
        solver.advance(problem, run, t, 1, np.inf)
        X = problem.matrix.X.toarray()
        renewed = run.arrays.points.p.values != before
        points = np.tile(w, (N, 1)) if points is None else np.where(renewed[:, None], w, points)
        np.testing.assert_allclose(run.arrays.points.p.values, np.einsum("ij,ij->i", X, points), atol=1e-12)
        np.testing.assert_allclose(
            run.arrays.r.vector.values, brute_force_estimate(problem, points, run.w), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("form", ["stored", "implicit"])
def test_running_sums_are_computed_anew_from_the_samples(form):
    """Every hundred epochs: rounding errors end here, so that what was there before must not matter."""
    problem = make_problem("csr", sample_weight=np.linspace(1.0, 2.0, N))
    solver, points = TUFW(rule=rules.SBD(), form=form), np.zeros((N, D))
    run = solver.init(problem, None, 0)
    for t in range(30):
        w, before = run.w, run.arrays.points.p.values.copy()
        solver.advance(problem, run, t, 1, np.inf)
        points[run.arrays.points.p.values != before] = w
    arrays = run.arrays
    arrays.q.values[:] = arrays.r.vector.values[:] = 7.0  # wrong on purpose
    arrays.r.shift(7.0)
    if form == "stored":
        arrays.H.H[:] = 7.0
    solver.resynchronise(run.space, arrays)
    estimate = brute_force_estimate(problem, points, run.w)
    np.testing.assert_allclose(arrays.r.vector.values, estimate, rtol=0, atol=1e-13)
    assert arrays.r.along() == pytest.approx(estimate @ run.w, abs=1e-13)
    product = run.space.vector()
    arrays.H.add_product(constraints.DenseVertex(run.w), 1.0, product)
    np.testing.assert_allclose(arrays.q.values + product.values, estimate, rtol=0, atol=1e-13)


def renewed_samples(rule, n_steps):
    """The samples whose Taylor points iterations k = 0, 1, ... renew, and the gradients counted after each."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, D)), np.sign(rng.standard_normal(N))
    problem, solver = cg.Problem(X, y, losses.Logistic(), constraints.L1Ball(2.0)), TUFW(rule=rule)
    run = solver.init(problem, X[0] / 100.0, 0)
    samples, counted = [], []
    for t in range(n_steps):
        before = run.arrays.points.p.values.copy()
        solver.advance(problem, run, t, 1, np.inf)
        samples.append(np.flatnonzero(run.arrays.points.p.values != before))
        counted.append(run.gradient_evaluations)
    return samples, counted


@pytest.mark.parametrize("rule", [*RULES, EveryThird()], ids=repr)
def test_each_iteration_renews_what_its_rule_says(rule):
    samples, counted = renewed_samples(rule, 40)
    sizes = np.array([len(rows) for rows in samples])
    assert sizes[0] == N  # line 2 of algorithm 2.1
    expected = rule.sizes(np.arange(1.0, 40.0), N)  # definitions 3.1, 3.6, 4.1 and 4.6 count from k = 1
    assert (np.floor(expected) <= sizes[1:]).all() and (sizes[1:] <= np.ceil(expected)).all()
    np.testing.assert_array_equal(counted, np.cumsum(sizes))


def test_rules_choose_samples_as_they_say():
    cyclic, _ = renewed_samples(rules.Cyclic(9), 20)
    for k in range(1, 20):
        assert cyclic[k].tolist() == sorted((9 * (k - 1) + np.arange(9)) % N)
    drawn, _ = renewed_samples(rules.RandomBatch(9), 40)
    chosen = np.bincount(np.concatenate(drawn[1:]), minlength=N)
    assert len({tuple(rows) for rows in drawn[1:]}) == 39 and chosen.min() >= 1 and chosen.max() <= 15


@pytest.mark.parametrize("rule", [rules.DBD(), rules.SBD()], ids=repr)
def test_a_run_does_not_depend_on_how_its_steps_are_cut_into_blocks(rule):
    """Between k = 33^2 and 34^2 lie more steps than the solver looks ahead; batches of SBD are rounded at random."""
    problem, K = make_problem(), 1300
    runs = []
    for block in (1.0, 1e6):
        solver, t = TUFW(rule=rule), 0
        run = solver.init(problem, None, 0)
        while t < K:
            run.schedule.block = block
            t += solver.advance(problem, run, t, K - t, np.inf)
        runs.append(run)
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert runs[0].gradient_evaluations == runs[1].gradient_evaluations
    if isinstance(rule, rules.DBD):
        assert runs[0].gradient_evaluations == 37 * N  # the start, and k = 1, 4, ..., 36^2


def test_steps_are_as_long_as_the_papers_say():
    for step_size, gamma in (
        (cg.step_sizes.OpenLoop(), lambda k: 2 / (k + 2)),
        (cg.step_sizes.NonConvex(8), lambda k: 1 / 3),
    ):
        problem, w0 = make_problem(), np.full(D, 0.1)
        solver = TUFW(step_size=step_size)
        run = solver.init(problem, w0, 0)
        for k in range(8):
            before = run.w
            solver.advance(problem, run, k, 1, np.inf)
            s = (run.w - (1 - gamma(k)) * before) / gamma(k)
            assert np.abs(s).sum() == pytest.approx(2.0, abs=1e-9) and np.abs(s).max() == pytest.approx(2.0, abs=1e-9)


@pytest.mark.slow
@every_choice(
    ("kind", "constraint"),
    ["dense", "csr", "csc"],
    [constraints.L1Ball(2.0), constraints.Simplex(), constraints.L2Ball(1.0)],
    ids=str,
)
def test_forms_and_data_kinds_agree(kind, constraint):
    results = [
        cg.minimize(make_problem(k, constraint), TUFW(form=form, adaptive=True), max_steps=60, tol=0, max_epochs=1e9)
        for k, form in (("dense", "stored"), (kind, "stored"), (kind, "implicit"), (kind, "auto"))
    ]
    for result in results[1:]:
        np.testing.assert_allclose(result.state.w, results[0].state.w, rtol=0, atol=1e-10)


def test_full_rule_is_frank_wolfe_and_empty_rule_is_exact_for_quadratics():
    problem = make_problem()
    exact = cg.solvers.FrankWolfe(cg.step_sizes.OpenLoop())
    settings = {"max_steps": 40, "tol": 0, "max_epochs": 1e9}
    np.testing.assert_allclose(
        cg.minimize(problem, TUFW(rule=rules.Full()), **settings).state.w,
        cg.minimize(problem, exact, **settings).state.w,
        atol=1e-12,
    )
    quadratic = make_problem(loss=losses.Squared())
    np.testing.assert_allclose(
        cg.minimize(quadratic, TUFW(rule=rules.Empty()), **settings).state.w,
        cg.minimize(quadratic, exact, **settings).state.w,
        atol=1e-12,
    )


def test_adaptive_step_minimises_the_taylor_model():
    problem = make_problem()
    solver = TUFW(rule=rules.DBD(), adaptive=True)
    run = solver.init(problem, None, 0)
    for t in range(60):
        before = run.w
        solver.advance(problem, run, t, 1, np.inf)
        arrays = run.arrays.points
        X = problem.matrix.X
        H = X.T @ (arrays.t.values[:, None] * X)
        g = X.T @ (arrays.v.values + arrays.t.values * (X @ before - arrays.p.values))
        s = problem.lmo(g).to_dense(D)
        bend, standard = (s - before) @ H @ (s - before), 2 / (t + 2)
        gamma = min(standard, g @ (before - s) / bend) if bend > 0 else standard
        np.testing.assert_allclose(run.w, before + gamma * (s - before), atol=1e-10)


def diameter_3(X, radius):
    return 2 * radius * (np.abs(X) ** 3).sum(axis=0).max() ** (1 / 3)


def test_theorem_3_8_and_theorem_3_3_dominate_measured_errors():
    problem = make_problem()
    D_1, D_2, D_inf, _ = theory.diameters(problem.matrix.X, problem.constraint)
    L, L_hat = problem.loss.smoothness(), problem.loss.curvature_smoothness()
    best = cg.minimize(problem, "corrective", tol=1e-12).objective
    steps = np.array([1, 2, 5, 10, 30, 100])
    deterministic = (2 * L * D_2**2 + 144 * L_hat * diameter_3(problem.matrix.X, 2.0) ** 3) / (N * (steps + 1))
    stochastic = (2 * L * D_2**2 + 134 * L_hat * D_1 * D_inf**2) / (N * (steps + 1))
    settings = {"tol": 0, "max_epochs": 1e9}
    for k, step in enumerate(steps):
        run = cg.minimize(problem, TUFW(rule=rules.DBD()), max_steps=int(step), **settings)
        assert problem.objective(run.state.w) - best <= deterministic[k]
        errors = [
            problem.objective(
                cg.minimize(problem, TUFW(rule=rules.SBD()), max_steps=int(step), random_state=seed, **settings).state.w
            )
            for seed in range(10)
        ]
        assert np.mean(errors) - best <= stochastic[k]


def test_lemma_3_14_holds_at_every_iteration():
    """|(grad F(x^k) - g^k)'(s - t)| <= (L-hat / 2n) sum_i (w_i'(x^k - b_i))^2 |w_i'(s - t)| for vertices s, t."""
    problem = make_problem()
    X, L_hat = problem.matrix.X, problem.loss.curvature_smoothness()
    vertices = np.vstack([2.0 * np.eye(D), -2.0 * np.eye(D)])
    solver = TUFW(rule=rules.SBD())
    run = solver.init(problem, None, 1)
    for t in range(80):
        solver.advance(problem, run, t, 1, np.inf)
        error = problem.gradient(run.w) - run.arrays.r.vector.values
        moved = (X @ run.w - run.arrays.points.p.values) ** 2
        for s in vertices[:4]:
            for v in vertices[4:9]:
                bound = L_hat / (2 * N) * (moved * np.abs(X @ (s - v))).sum()
                assert abs(error @ (s - v)) <= bound + 1e-14


def test_non_convex_average_gap_obeys_theorem_4_8():
    problem = make_problem(loss=losses.SigmoidSquared())
    K = 80
    D_2 = theory.diameters(problem.matrix.X, problem.constraint).D_2
    solver = TUFW(rule=rules.DBD(n_steps=K), step_size=cg.step_sizes.NonConvex(K))
    run = solver.init(problem, None, 0)
    first, gaps = problem.objective(run.w), []
    for t in range(K + 1):
        gaps.append(problem.gap(run.w))
        solver.advance(problem, run, t, 1, np.inf)
    L, L_hat = problem.loss.smoothness(), problem.loss.curvature_smoothness()
    curvature = (L_hat * diameter_3(problem.matrix.X, 2.0) ** 3 + L * D_2**2) / (2 * N)
    assert np.mean(gaps) <= (first + curvature) / np.sqrt(K + 1)  # F* >= 0


def test_rules_as_defined():
    k = np.arange(1, 30)
    assert rules.DBD().sizes(k, 10).nonzero()[0].tolist() == [0, 3, 8, 15, 24]  # k = 1, 4, 9, 16, 25
    assert rules.DBD(n_steps=100).sizes(k, 10).nonzero()[0].tolist() == [2, 5, 8, 11, 14, 17, 20, 23, 26]
    np.testing.assert_allclose(rules.SBD().sizes(k, 10), 10 / np.sqrt(k))
    np.testing.assert_allclose(rules.SBD(n_steps=16).sizes(k, 10), 5.0)
    assert rules.DBD(n_steps=80).sizes(k, 10).nonzero()[0].tolist() == list(range(1, 29, 2))  # floor(80^(1/4)) = 2
    assert (rules.RandomBatch(11).sizes(k, 10) == 10).all()  # there are no more


def test_wrong_settings_get_a_sentence():
    with pytest.raises(TypeError, match="rule must be a rule"):
        TUFW(rule="sbd")
    with pytest.raises(ValueError, match="form must be one of"):
        TUFW(form="dense")
    with pytest.raises(ValueError, match="n_steps of DBD"):
        rules.DBD(n_steps=0)
    with pytest.raises(ValueError, match="does not support an intercept"):
        cg.minimize(make_problem(intercept=True), "tufw")


@pytest.mark.slow
@product_by_pairs(
    ("name", "loss", "intercept"),
    ["L1Ball", "WeightedL1Ball", "Simplex", "NonnegativeL1Ball", "GroupBall", "L2Ball", "LinfBall", "Box",
     "KSparsePolytope", "Hypersimplex", "Polytope"],
    [losses.Squared(), losses.Logistic(), losses.Huber(1.0), losses.Poisson()],
    [False, True],
    ids=str,
)  # fmt: skip
def test_corrective_reaches_a_gap_of_1e_10(name, loss, intercept):
    constraint, d = EXAMPLES[name]
    X, y = make_data()
    y = np.abs(np.round(2 * y + X[:, 0])) if isinstance(loss, losses.Poisson) else y
    X = X[:, :d]
    weight = np.linspace(1.0, 3.0, N)
    problem = cg.Problem(X, y, loss, constraint, intercept=intercept, sample_weight=weight)
    result = cg.minimize(problem, "corrective", tol=1e-10, max_steps=200)
    assert result.gap <= 1e-10
    assert constraint.violation(result.w) <= 1e-9


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_corrective_agrees_with_pairwise_on_every_kind_of_data(kind, dtype):
    X, y = make_data(kind)
    problem = cg.Problem(X.astype(dtype), y, losses.Logistic(), constraints.L1Ball(2.0))
    corrective, pairwise = (cg.minimize(problem, name, tol=1e-11) for name in ("corrective", "pairwise"))
    assert corrective.objective == pytest.approx(pairwise.objective, abs=1e-11)
    np.testing.assert_allclose(corrective.w, pairwise.w, atol=1e-4)


def test_corrective_takes_few_passes_and_makes_the_objective_fall():
    result = cg.minimize(make_problem(), "corrective", tol=1e-11)
    assert result.n_epochs <= 15
    assert (np.diff(result.trace.objective) <= 1e-12).all()


def test_corrective_is_stationary_on_a_non_convex_loss():
    result = cg.minimize(make_problem(loss=losses.SigmoidSquared()), "corrective", tol=1e-8, max_steps=300)
    assert result.gap <= 1e-8
    assert result.lower_bound == -np.inf


def test_corrective_with_more_features_than_samples():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 400))
    y = np.sign(rng.standard_normal(20))
    for loss in (losses.Squared(), losses.Logistic()):
        assert cg.minimize(cg.Problem(X, y, loss, constraints.L1Ball(1.0)), "corrective", tol=1e-10).gap <= 1e-10


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("make", [cg.constraints.L1Ball, cg.constraints.NonnegativeL1Ball])
def test_corrective_from_inside_a_larger_ball_takes_few_passes(kind, make):
    # The atoms of a point inside the ball must not hold two of one feature: sparse curvature has one row for both.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20))
    y = np.where(X[:, :4].sum(axis=1) + rng.standard_normal(300) > 0.0, 1.0, -1.0)
    X = X if kind == "dense" else scipy.sparse.csr_matrix(X).asformat(kind)
    problem = cg.Problem(X, y, cg.losses.Logistic(), make(1.0))
    w = cg.minimize(problem, "corrective", tol=1e-8).w
    for radius in (2.0, 4.0, 50.0):
        result = cg.minimize(problem.over(make(radius)), "corrective", tol=1e-8, w0=w, max_epochs=40)
        assert result.status is cg.Status.CONVERGED and result.n_steps <= 12
        w = result.w


def test_corrective_goes_on_from_a_warm_start():
    problem = make_problem()
    result = cg.minimize(problem, "corrective", tol=1e-10)
    again = cg.minimize(problem, "corrective", w0=result, tol=1e-10)
    assert again.n_steps == 0
    near = cg.minimize(problem, "corrective", w0=0.9 * result.w, tol=1e-10)
    np.testing.assert_allclose(near.w, result.w, atol=1e-4)


# With many samples, corrective sees few of them first -----------------------------------------------------------------

MANY = 20_000


def make_large_problem(kind="csr", loss=None, constraint=None, **settings):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((MANY, 12)) * (rng.random((MANY, 12)) < 0.5)
    p = X @ rng.standard_normal(12) + rng.standard_normal(MANY)
    loss = losses.Logistic() if loss is None else loss
    y = p if loss.is_quadratic else np.sign(p)
    X = {"dense": X, "csr": scipy.sparse.csr_array(X), "csc": scipy.sparse.csc_array(X)}[kind]
    return cg.Problem(X, y, loss, constraints.L1Ball(3.0) if constraint is None else constraint, **settings)


@pytest.mark.slow
@product_by_pairs(
    ("loss", "constraint", "intercept"),
    [losses.Logistic(), losses.Squared()],
    [constraints.L1Ball(2.0), constraints.GroupBall([0, 1, 2] * 4, 2.0), constraints.Box(-0.3, 0.5)],
    [False, True],
    ids=str,
)
def test_corrective_on_many_samples(loss, constraint, intercept):
    problem = make_large_problem("csr", loss, constraint, intercept=intercept, sample_weight=np.linspace(1, 2, MANY))
    result = cg.minimize(problem, "corrective", tol=1e-9)
    assert result.gap <= 1e-9
    assert result.gap == problem.gap(result.w)
    assert result.n_epochs <= 12
    again = cg.minimize(problem, "corrective", tol=1e-9)
    assert result.w.tobytes() == again.w.tobytes()


@pytest.mark.parametrize("kind", ["dense", "csc"])
def test_corrective_on_many_samples_of_any_kind(kind):
    expected = cg.minimize(make_large_problem("csr"), "corrective", tol=1e-10)
    result = cg.minimize(make_large_problem(kind), "corrective", tol=1e-10)
    np.testing.assert_allclose(result.w, expected.w, atol=1e-5)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared()], ids=repr)
def test_a_run_on_many_samples_goes_on_from_a_checkpoint(loss, tmp_path):
    problem = make_large_problem(loss=loss)
    whole = cg.minimize(problem, "corrective", tol=0.0, max_steps=9)
    for max_steps in range(1, 10):
        result = cg.minimize(problem, "corrective", tol=0.0, max_steps=max_steps, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(result.state.w, whole.state.w)
    assert result.n_epochs == whole.n_epochs


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_a_part_is_the_problem_of_the_chosen_samples(kind):
    X, y = make_data()
    weight = np.linspace(1.0, 2.0, N)
    whole = make_problem(kind, sample_weight=weight, intercept=True)
    part = whole.part(N // 7)
    assert whole.part(N) is whole and whole.part(10 * N) is whole
    rows = spread_rows(N, 7)
    X, y, weight = X[rows], y[rows], weight[rows]
    expected = cg.Problem(X, y, losses.Logistic(), part.constraint, sample_weight=weight, intercept=True)
    w = np.linspace(-0.2, 0.3, D)
    assert part.n_samples == expected.n_samples == 9
    assert part.objective(w) == pytest.approx(expected.objective(w), rel=1e-13)
    np.testing.assert_allclose(part.gradient(w), expected.gradient(w), rtol=1e-9, atol=1e-14)


def test_rows_drawn_by_curvature_stand_for_all():
    rng = np.random.default_rng(0)
    d = rng.random(10_000) ** 8
    rows, c = sample_by_curvature(d, 1000)
    assert 500 <= rows.size <= 1001
    assert (np.diff(rows) > 0).all()
    assert c.sum() == pytest.approx(d.sum(), rel=2e-3)
    is_large = d >= d.sum() / 1000
    assert set(np.flatnonzero(is_large)) <= set(rows)  # a row that weighs more than its share is taken as it is
    np.testing.assert_array_equal(c[np.isin(rows, np.flatnonzero(is_large))], d[is_large])
    z = rng.standard_normal(10_000) ** 2
    assert c @ z[rows] == pytest.approx(d @ z, rel=0.1)


@pytest.mark.parametrize("least", [0.0, 5e-324, 1e-310])
def test_curvatures_close_to_zero_draw_rows_with_finite_weights(least):
    """Where classes can be separated, the second derivatives of almost all samples vanish."""
    d = np.zeros(1000)
    d[::2] = least
    rows, c = sample_by_curvature(d, 100)
    assert rows.size <= 101 and np.isfinite(c).all() and (c[d[rows] > 0.0] > 0.0).all()
    assert (d[rows] > 0.0).all()  # rows without curvature are never drawn


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("intercept", [False, True])
def test_curvature_is_not_computed_twice_nor_from_more_rows_than_wanted(kind, intercept):
    problem = make_problem(kind, intercept=intercept)
    vertices = [constraints.Atom(j, 2.0) for j in (5, 0, 3, 6, 1)]
    w = np.linspace(-0.2, 0.3, D)
    look = problem.look(w)
    H = look.curvature(vertices)
    known = np.arange(9.0).reshape(3, 3)
    partly = look.curvature(vertices, known)
    np.testing.assert_array_equal(partly[:3, :3], known)
    np.testing.assert_allclose(partly[3:], H[3:], atol=1e-12)
    np.testing.assert_allclose(partly[:3, 3:], H[:3, 3:], atol=1e-12)
    estimate = look.curvature(vertices, n_rows=20)
    assert 1e-6 < abs(estimate - H).max() < 0.7 * abs(H).max()
    assert np.linalg.eigvalsh(estimate).min() > -1e-12


def test_corrective_sees_all_samples_where_few_have_one_class_only():
    X = np.random.default_rng(0).standard_normal((MANY, 3))
    y = -np.ones(MANY)
    y[np.setdiff1d(np.arange(20), spread_rows(MANY, 5))[:3]] = 1.0
    problem = cg.Problem(X, y, losses.Logistic(), constraints.L1Ball(1.0), intercept=True)
    assert problem.part(MANY // 5) is None
    assert cg.minimize(problem, "corrective", tol=1e-10).gap <= 1e-10
    weight = (y > 0) * 1.0
    weighted = cg.Problem(X, X[:, 0], losses.Squared(), constraints.L1Ball(1.0), sample_weight=weight)
    assert weighted.part(MANY // 5) is None


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_curvature_on_two_atoms_of_one_feature(kind):
    problem, w = make_problem(kind), np.linspace(-0.2, 0.3, D)
    one = problem.look(w).curvature([constraints.Atom(3, 2.0)])[0, 0]
    both = problem.look(w).curvature([constraints.Atom(3, 2.0), constraints.Atom(3, -2.0)])
    np.testing.assert_allclose(both, [[one, -one], [-one, one]], rtol=1e-12)


def test_what_few_samples_tell_is_not_taken_for_all():
    problem = make_large_problem(loss=losses.Squared())
    state = cg.solvers.Corrective().init(problem, None)
    assert state.part.n_samples == -(-problem.n_samples // 5)
    assert state.known_gap == state.gap_estimate == np.inf
    assert cg.solvers.Corrective().evaluate(problem, state) is None
    for t in range(12):
        cg.solvers.Corrective().step(problem, state, t)
    assert state.part is problem
    assert state.known_gap == problem.gap(state.w)
    vertices = [state.atoms.vertex(k) for k in range(len(state.atoms))]
    np.testing.assert_allclose(state.curvature(), problem.look(state.w).curvature(vertices), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_steps", [0, 1, 3, 12])
def test_a_run_saved_by_an_older_version_goes_on(n_steps):
    """Files told one in how many samples was seen, where they tell how many now."""
    problem, solver = make_large_problem(), cg.solvers.Corrective()
    state, other = solver.init(problem, None), solver.init(problem, None)
    for t in range(n_steps):
        solver.step(problem, state, t)
    numbers, arrays = state.snapshot()
    older = {name: value for name, value in numbers.items() if name != "n_rows"}
    older["thinning"] = max(1, problem.n_samples // numbers["n_rows"])
    other.restore(older, arrays)
    assert other.part.n_samples == state.part.n_samples
    for t in range(n_steps, n_steps + 3):
        solver.step(problem, state, t)
        solver.step(problem, other, t)
    np.testing.assert_array_equal(other.w, state.w)


class Asked:
    """A look that notes from how many samples its curvature was wanted."""

    def __init__(self, look, asked):
        self.look, self.asked = look, asked

    def curvature(self, atoms, known, n_rows):
        self.asked.append(n_rows)
        return self.look.curvature(atoms, known, n_rows)


def test_the_curvature_is_estimated_in_the_time_that_is_left():
    problem, solver = make_large_problem(), cg.solvers.Corrective()
    asked = []
    for seconds in (np.inf, 1e9, 1e-9):
        state = solver.init(problem, np.zeros(problem.n_features))
        state.gather()
        state.deadline = time.perf_counter() + seconds
        state._seconds_per_product = 1e-6
        curvature = state.look.curvature
        state.look.curvature = lambda atoms, known, n_rows, ask=curvature: (
            asked.append(n_rows) or ask(atoms, known, n_rows)
        )
        state.curvature()
    assert asked[0] == asked[1] == state.rows_needed  # there is time enough
    assert asked[2] < asked[0]


def test_the_model_suits_the_set():
    """Vertices with one entry are atoms; else features, all or some; vertices only where features are too many."""

    def model(constraint, d=6):
        return type(model_for(cg.Problem(np.ones((9, d)), np.ones(9), cg.losses.Squared(), constraint))).__name__

    groups = cg.constraints.GroupBall(np.arange(2100) // 3, 1.0)
    assert model(cg.constraints.L1Ball(1.0)) == model(cg.constraints.L1Ball(1.0), 2100) == "HullModel"
    assert model(cg.constraints.L2Ball(1.0)) == "FeatureModel"
    polytope = cg.constraints.Polytope(bounds=[(0, 1)] * 600)
    assert model(cg.constraints.Box(0.0, 1.0)) == model(polytope, 600) == "LinearRowsModel"  # linear rows, not too many
    assert model(cg.constraints.Box(0.0, 1.0), 600) != "LinearRowsModel"  # a quadratic program costs many passes
    assert model(cg.constraints.L2Ball(1.0), 2100) == "HullModel"  # all features are in play, and they are too many
    assert model(groups, 2100) == model(cg.constraints.KSparsePolytope(3, 1.0), 2100) == "FeatureModel"
    assert model(cg.constraints.Scale(groups, 2.0), 2100) == "HullModel"  # it does not say
    few = {
        repr(c): takes_few_passes(cg.Problem(np.ones((3, 2100)), np.ones(3), cg.losses.Squared(), c))
        for c in (groups, cg.constraints.L1Ball(1.0), cg.constraints.L2Ball(1.0), cg.constraints.Box(0.0, 1.0))
    }
    assert list(few.values()) == [True, True, False, False]


@pytest.mark.parametrize(
    "constraint", [constraints.L1Ball(1.0), constraints.Simplex(), constraints.NonnegativeL1Ball(1.0)]
)
@pytest.mark.parametrize("n_rows", [6, 40])  # fewer than atoms: they depend on each other
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])  # the minimiser lies inside, on a face, at a vertex
def test_the_model_is_minimised_up_to_rounding_whatever_the_order_of_atoms(constraint, n_rows, size):
    model = model_for(cg.Problem(np.eye(15), np.ones(15), losses.Squared(), constraint))
    rng = np.random.default_rng(n_rows)
    for _ in range(20):
        A = rng.standard_normal((n_rows, 15))
        H, g = A.T @ A / n_rows, size * rng.standard_normal(15)
        x = np.zeros(15) if model.has_origin else np.eye(15)[0]
        z = model.minimise(None, g, H, x, 0.1, is_estimate=False)
        assert np.abs(z).sum() <= 1.0 + 1e-14
        slopes = g + H @ (z - x)
        assert model._gap(slopes, z) <= 1e-10 * model._gap(g, x) + 4e-8 * H.max()  # the little that is added to H
        order = rng.permutation(15)
        other = model.minimise(None, g[order], H[np.ix_(order, order)], x[order], 0.1, is_estimate=False)
        np.testing.assert_allclose(other, z[order], atol=1e-6)  # H may be singular but for what is added to it


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.Huber()], ids=repr)
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_weights_are_repetitions_long_before_the_gap_is_zero(loss, kind):
    X, y = make_data(kind)
    count = np.random.default_rng(3).integers(1, 5, N)
    weighed = cg.Problem(X, y, loss, constraints.L1Ball(2.0), sample_weight=count, intercept=True)
    rows = np.repeat(np.arange(N), count)
    repeated = cg.Problem(X[rows], y[rows], loss, constraints.L1Ball(2.0), intercept=True)
    ends = [cg.minimize(problem, "corrective", tol=1e-3) for problem in (weighed, repeated)]
    np.testing.assert_allclose(ends[1].w, ends[0].w, atol=1e-9)
