"""Matrix completion: factors, the oracle's bound, biases, fits, and solvers against certified optima."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.linalg.entries import Entries
from condgrad.linalg.factored import Factored
from condgrad.problems.completion import problem as completion
from condgrad.problems.completion.biases import Biases, best_biases
from condgrad.problems.completion.core_steps import improve_core
from condgrad.problems.completion.factor_fit import FactorFit
from condgrad.problems.samples import Samples

SHAPE = (30, 20)


def observed(seed=0, count=300, rank=3, shape=SHAPE, noise=0.1):
    rng = np.random.default_rng(seed)
    place = rng.permutation(shape[0] * shape[1])[:count]
    rows, columns = np.divmod(place, shape[1])
    W = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    return rows, columns, W[rows, columns] + noise * rng.standard_normal(count)


def problem_of(loss=None, radius=15.0, *, biases=False, weight=None, seed=0, constraint=None):
    rows, columns, values = observed(seed)
    if biases:
        values = values + np.linspace(-2, 2, SHAPE[0])[rows] + np.linspace(1, 0, SHAPE[1])[columns]
    ball = cg.constraints.NuclearBall(radius) if constraint is None else constraint
    loss = cg.losses.Squared() if loss is None else loss
    return cg.CompletionProblem(rows, columns, values, loss, ball, shape=SHAPE, biases=biases, sample_weight=weight)


def random_factored(rng, shape=SHAPE, rank=4):
    return Factored(rng.standard_normal((shape[0], rank)), rng.random(rank), rng.standard_normal((shape[1], rank)))


@pytest.fixture(params=["dense", "factors"])
def fits(request, monkeypatch):
    """Let the refits of low-rank be those of narrow matrices, or those of all others."""
    monkeypatch.setattr(completion, "_NARROW", 256 if request.param == "dense" else 0)
    return request.param


# ---- matrices in factors ----


@pytest.mark.parametrize("kind", ["apart", "close", "dependent", "zero column", "many columns"])
def test_compressed_is_exact_for_columns_of_every_kind(kind):
    rng = np.random.default_rng(1)
    W = random_factored(rng, rank=25 if kind == "many columns" else 6)
    if kind in ("close", "dependent"):
        distance = 1e-5 if kind == "close" else 0.0
        W.U[:, 5] = W.U[:, :5].sum(axis=1) + distance * rng.standard_normal(SHAPE[0])
    if kind == "zero column":
        W.V[:, 2] = 0.0
    found = W.compressed(1e-12)
    true = np.linalg.svd(W.to_dense(), compute_uv=False)
    true = true[true > 1e-12 * true[0]]
    np.testing.assert_allclose(found.s, true, atol=1e-12 * true[0])
    np.testing.assert_allclose(found.to_dense(), W.to_dense(), atol=1e-12 * true[0])
    for Q in (found.U, found.V):
        np.testing.assert_allclose(Q.T @ Q, np.eye(true.size), atol=1e-11)


def test_factored_answers_as_the_array():
    rng = np.random.default_rng(0)
    W, other = random_factored(rng), random_factored(rng)
    dense = W.to_dense()
    rows, columns = rng.integers(0, 30, 50), rng.integers(0, 20, 50)
    np.testing.assert_allclose(W.at(rows, columns), dense[rows, columns])
    np.testing.assert_allclose(W.plus(other).to_dense(), dense + other.to_dense())
    np.testing.assert_allclose(W.nuclear_norm(), np.linalg.norm(dense, "nuc"))
    a, b = rng.random(30), rng.random(20)
    np.testing.assert_allclose(W.scaled(a, b, 2.0).to_dense(), 2.0 * a[:, None] * dense * b)
    A, B = W.balanced()
    np.testing.assert_allclose(A @ B.T, dense)


def test_compressed_is_the_singular_value_decomposition():
    W = random_factored(np.random.default_rng(1))
    twice = W.plus(W.scaled(None, None, 2.0)).compressed(1e-12)
    assert twice.rank == 4
    np.testing.assert_allclose(twice.to_dense(), 3.0 * W.to_dense(), atol=1e-12)
    np.testing.assert_allclose(twice.U.T @ twice.U, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(twice.s, np.linalg.svd(3.0 * W.to_dense())[1][:4])
    assert Factored.zero((3, 2)).compressed().rank == 0


def test_entries_answer_as_the_sparse_matrix():
    rng = np.random.default_rng(2)
    rows, columns, values = observed(2)
    entries = Entries(rows, columns, SHAPE)
    values = values[entries.sorting]
    G = scipy.sparse.coo_array((values, (entries.rows, entries.columns)), shape=SHAPE).toarray()
    assert G[rows[7], columns[7]] == values[np.flatnonzero(entries.sorting == 7)[0]]
    x, u = rng.standard_normal(20), rng.standard_normal(30)
    np.testing.assert_allclose(entries.dot(values, x), G @ x)
    np.testing.assert_allclose(entries.transpose_dot(values, u), G.T @ u)
    np.testing.assert_allclose(entries.row_sums(values), G.sum(axis=1))
    np.testing.assert_allclose(entries.column_sums(values), G.sum(axis=0))
    W = random_factored(rng)
    np.testing.assert_allclose(entries.values_of(W.U * W.s, W.V), W.at(entries.rows, entries.columns))
    by_column = entries.by_column
    for j in range(SHAPE[1]):
        part = slice(by_column.indptr[j], by_column.indptr[j + 1])
        assert (entries.columns[by_column.order[part]] == j).all()
        assert (entries.rows[by_column.order[part]] == by_column.others[part]).all()


# ---- the oracle and its bound ----


@pytest.mark.parametrize("biases", [False, True])
def test_the_gap_of_a_problem_is_exact(biases):
    problem = problem_of(biases=biases)
    W = random_factored(np.random.default_rng(5)).scaled(None, None, 0.3)
    evaluation = problem.evaluate(W)
    G = problem.gradient(W).toarray()
    exact = np.vdot(G, W.to_dense()) + 15.0 * np.linalg.norm(G, 2)
    assert exact <= evaluation.gap <= exact * 1.02
    if biases:  # the gradient of a minimum over biases is that at the best ones: no row or column sums are left
        assert np.abs(G.sum(axis=0)).max() < 1e-12
        assert np.abs(G.sum(axis=1)).max() < 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_an_oracle_with_a_goal_makes_fewer_steps_and_never_too_small_a_gap(weighted):
    rows, columns, values = observed(count=3000, shape=(120, 90), noise=1.0)
    ball = cg.constraints.NuclearBall(90.0)
    if weighted:
        ball = cg.constraints.WeightedNuclearBall.of_entries(90.0, rows, columns, (120, 90))
    problem = cg.CompletionProblem(rows, columns, values, cg.losses.Squared(), ball, shape=(120, 90))
    W = cg.minimize(problem, tol=1e-3).w
    G = problem.gradient(W).toarray()
    a, b = (1.0 if scale is None else scale for scale in (problem.row_scale, problem.column_scale))
    exact = np.vdot(G, W.to_dense()) + 90.0 * np.linalg.norm(np.reshape(a, (-1, 1)) * G * b, 2)
    x = problem.in_coordinates(W)
    alpha = problem.derivatives(x, 0.0)

    def asked(goal):
        answer = problem.ask_oracle(alpha, x, np.random.default_rng(0), accuracy=1e-6, goal=goal)
        assert answer.gap >= exact > 0.0
        return answer.gap, answer.search.lanczos.n_steps

    close, far, below = asked(0.0), asked(0.1 * exact), asked(4.0 * exact)
    assert close[0] <= 1.00001 * exact
    assert far[0] <= 2.00001 * exact and far[1] < close[1]
    assert below[0] <= 4.0 * exact and below[1] < close[1]


def test_the_last_step_is_not_computed_twice(monkeypatch):
    problem, calls, real = problem_of(radius=30.0, biases=True), [], completion.CompletionProblem.ask_oracle

    def ask_oracle(self, *given, **settings):
        calls.append(1)
        return real(self, *given, **settings)

    monkeypatch.setattr(completion.CompletionProblem, "ask_oracle", ask_oracle)
    result = cg.minimize(problem, "low-rank", tol=1e-6)
    assert result.status is cg.Status.CONVERGED and len(calls) == result.n_steps + 1
    assert problem.evaluate(result.w).gap <= 1e-6


def test_the_gradient_is_that_of_the_objective():
    problem = problem_of(cg.losses.PseudoHuber(0.5), biases=True)
    rng = np.random.default_rng(6)
    W, D = random_factored(rng).to_dense(), rng.standard_normal(SHAPE)
    step = 1e-6
    slope = (problem.objective(W + step * D) - problem.objective(W - step * D)) / (2 * step)
    np.testing.assert_allclose(slope, np.vdot(problem.gradient(W).toarray(), D), rtol=1e-6)


# ---- biases ----


@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Huber(0.5), cg.losses.PseudoHuber(0.7)])
def test_biases_are_exact(loss):
    problem = problem_of(loss, biases=True)
    p = np.zeros(problem.n_samples)
    biases = problem.best_biases(p)
    alpha = problem.samples.derivatives(problem.predict(p, biases), 0.0)
    scale = np.abs(alpha).sum()
    assert np.abs(problem.entries.row_sums(alpha)).max() <= 1e-11 * scale
    assert np.abs(problem.entries.column_sums(alpha)).max() <= 1e-11 * scale


def test_biases_of_the_squared_loss_are_those_of_least_squares():
    problem = problem_of(biases=True)
    entries, y = problem.entries, problem.samples.y
    Z = np.zeros((y.size, 50))
    Z[np.arange(y.size), entries.rows] = 1.0
    Z[np.arange(y.size), 30 + entries.columns] = 1.0
    fitted = Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    np.testing.assert_allclose(entries.sums_of(*problem.best_biases(np.zeros(y.size))), fitted, atol=1e-10)


def test_a_row_without_entries_has_no_bias():
    rows, columns, values = observed(7)
    kept = rows != 4
    entries = Entries(rows[kept], columns[kept], SHAPE)
    y = values[kept][entries.sorting] + 3.0
    samples = Samples(cg.losses.Squared(), y, np.full(y.size, 1.0 / y.size))
    biases = best_biases(samples, entries, np.zeros(y.size), Biases(np.zeros(30), np.zeros(20)))
    assert biases.rows[4] == 0.0


# ---- fits of factors ----


@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Huber(0.3), cg.losses.Welsch(1.0)])
@pytest.mark.parametrize("scaled", [False, True])
def test_every_sweep_lowers_the_penalised_objective(loss, scaled):
    rng = np.random.default_rng(8)
    problem = problem_of(loss)
    scales = (rng.random(30) + 0.5, rng.random(20) + 0.5) if scaled else (None, None)
    A, B = rng.standard_normal((30, 5)), rng.standard_normal((20, 5))
    lam = 1e-3

    def matrix():
        return Factored(A, np.ones(5), B).scaled(*scales)

    def penalised():
        return problem.objective(matrix()) + 0.5 * lam * ((A**2).sum() + (B**2).sum())

    values = [penalised()]
    for _ in range(20):
        p = problem.in_coordinates(matrix())
        fit = FactorFit(problem.samples, problem.entries, A, B, p, None, *scales)
        fit.sweep(lam)
        A, B = fit.A, fit.B
        values.append(penalised())
    np.testing.assert_allclose(fit.p, problem.in_coordinates(matrix()), atol=1e-5)  # steps have single precision
    assert (np.diff(values) <= 1e-12).all()
    assert values[-1] < 0.3 * values[0]


@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Huber(0.3), cg.losses.Welsch(1.0)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_steps_on_the_core_lower_the_loss_in_the_same_spaces(loss, is_weighted):
    rng = np.random.default_rng(9)
    ball = cg.constraints.NuclearBall(5.0)
    if is_weighted:
        ball = cg.constraints.WeightedNuclearBall(5.0, rng.random(30) + 0.5, rng.random(20) + 0.5)
    problem = problem_of(loss).over(ball)
    Z = Factored(rng.standard_normal((30, 4)), np.ones(4), rng.standard_normal((20, 4))).compressed()
    values = [problem.objective_at(Z.scaled(None, None, 5.0 / Z.s.sum()), None)]
    for steps in (1, 2, 8):
        better = improve_core(problem, Z, None, steps)
        values.append(problem.objective_at(better, None))
        assert better.s.sum() <= 5.0 * (1.0 + 1e-12)
        np.testing.assert_allclose(Z.U @ (Z.U.T @ better.U), better.U, atol=1e-12)
        np.testing.assert_allclose(Z.V @ (Z.V.T @ better.V), better.V, atol=1e-12)
    assert (np.diff(values) < 0.0).all()


def test_steps_on_the_core_leave_a_matrix_where_the_loss_is_flat():
    problem = problem_of(cg.losses.Huber(1e-6)).over(cg.constraints.NuclearBall(1e-3))
    Z = Factored(np.full((30, 1), 30**-0.5), np.array([1e-3]), np.full((20, 1), 20**-0.5))
    assert improve_core(problem, Z, None, 2).to_dense() == pytest.approx(Z.to_dense())


# ---- solvers ----


def certified(problem, **options):
    """The optimum by plain Frank-Wolfe steps on the dense matrix would take long; projected gradients do not."""
    radius = problem.constraint.radius
    ball = cg.constraints.NuclearBall(radius, shape=SHAPE)
    W, Y, momentum = np.zeros(SHAPE), np.zeros(SHAPE), 1.0
    L = problem.samples.weight.max() * problem.loss.smoothness()
    for _ in range(600):
        new = ball.project((Y - problem.gradient(Y).toarray() / L).ravel()).reshape(SHAPE)
        factor = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        Y = new + (momentum - 1) / factor * (new - W)
        W, momentum = new, factor
    return problem.evaluate(W)


@pytest.mark.slow
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Huber(0.5)])
def test_low_rank_finds_the_certified_optimum(loss, biases):
    problem = problem_of(loss, biases=biases)
    best = certified(problem)
    assert best.gap < 1e-5
    result = cg.minimize(problem, tol=1e-6)
    assert result.status is cg.Status.CONVERGED
    assert "LowRank" in result.solver
    assert result.objective <= best.objective + 1e-6
    assert result.objective >= best.objective - best.gap
    assert problem.constraint.violation(result.w) <= 1e-9
    np.testing.assert_allclose(result.objective, problem.objective(result.w), rtol=1e-12)


def test_weights_and_float32_values():
    rng = np.random.default_rng(9)
    weight = rng.random(300) + 0.1
    rows, columns, values = observed()
    ball = cg.constraints.NuclearBall(12.0)
    once = cg.CompletionProblem(rows, columns, values, cg.losses.Squared(), ball, sample_weight=weight)
    again = cg.CompletionProblem(
        rows, columns, values.astype(np.float32).astype(np.float64), cg.losses.Squared(), ball, sample_weight=7 * weight
    )
    single = cg.CompletionProblem(
        rows, columns, values.astype(np.float32), cg.losses.Squared(), ball, sample_weight=weight.astype(np.float32)
    )
    F = [cg.minimize(problem, tol=1e-8).objective for problem in (once, again, single)]
    np.testing.assert_allclose(F, F[0], rtol=1e-6)
    dense = np.full(SHAPE, 0.0)
    dense[rows, columns] = values
    W = cg.minimize(once, tol=1e-8).w.to_dense()
    np.testing.assert_allclose(F[0], 0.5 * np.average((W - dense)[rows, columns] ** 2, weights=weight), rtol=1e-9)


@pytest.mark.parametrize("solver", ["fw", "low-rank"])
def test_every_iterate_is_feasible_and_certified(solver, fits):
    problem = problem_of(cg.losses.Huber(0.5), biases=True)
    optimum = cg.minimize(problem, tol=1e-9).objective
    seen = []

    def look(progress):
        assert problem.constraint.violation(progress.w) <= 1e-8
        assert progress.objective - optimum <= progress.gap + 1e-12
        seen.append(progress.objective)

    cg.minimize(problem, solver, tol=1e-12, max_steps=25, evaluate_every=1, callback=look)
    assert len(seen) >= (10 if solver == "fw" else 5)
    assert (np.diff(seen) <= 1e-12).all()  # an exact line search never goes up


def test_frank_wolfe_is_that_of_the_dense_problem():
    """The same steps as fw over NuclearBall on all entries of a small matrix, one row of X each."""
    rows, columns, values = observed(count=60, shape=(8, 9))
    d = 72
    X = scipy.sparse.csr_matrix((np.ones(60), (np.arange(60), rows * 9 + columns)), shape=(60, d))
    ball = cg.constraints.NuclearBall(6.0, shape=(8, 9))
    dense = cg.Problem(X, values, cg.losses.Squared(), ball)
    factored = cg.CompletionProblem(rows, columns, values, cg.losses.Squared(), ball)
    w0 = np.zeros(d)
    a = cg.minimize(dense, "fw", w0=w0, max_steps=40, tol=0.0, evaluate_every=1)
    b = cg.minimize(factored, "fw", max_steps=40, tol=0.0, evaluate_every=1)
    np.testing.assert_allclose(a.trace.objective, b.trace.objective, rtol=1e-4)
    assert (b.trace.gap >= a.trace.gap * (1 - 1e-3)).all()


def test_solutions_inside_the_ball_and_of_a_tiny_ball():
    rows, columns, values = observed(noise=0.0)
    large = cg.CompletionProblem(rows, columns, values, cg.losses.Squared(), cg.constraints.NuclearBall(1e3))
    assert cg.minimize(large, tol=1e-6).objective <= 1e-6
    small = large.over(cg.constraints.NuclearBall(1e-3))
    result = cg.minimize(small, tol=1e-9)
    assert result.w.rank == 1
    assert result.w.nuclear_norm() == pytest.approx(1e-3)


def test_a_run_that_rounding_stops_says_so():
    result = cg.minimize(problem_of(biases=True), tol=0.0, max_steps=2000)
    assert result.status in (cg.Status.STALLED, cg.Status.ROUNDING)
    assert result.gap < 1e-9


def test_targets_of_zero():
    rows, columns, _ = observed()
    problem = cg.CompletionProblem(rows, columns, np.zeros(300), cg.losses.Squared(), cg.constraints.NuclearBall(1.0))
    result = cg.minimize(problem)
    assert result.status is cg.Status.CONVERGED
    assert result.w.rank == 0


def test_the_weighted_ball_is_the_plain_one_in_its_own_coordinates():
    rng = np.random.default_rng(10)
    p, q = rng.random(30) + 0.2, rng.random(20) + 0.2
    weighted = problem_of(constraint=cg.constraints.WeightedNuclearBall(9.0, p, q))
    result = cg.minimize(weighted, tol=1e-7)
    assert result.status is cg.Status.CONVERGED
    assert np.linalg.norm(np.sqrt(p)[:, None] * result.w.to_dense() * np.sqrt(q), "nuc") <= 9.0 + 1e-8
    G = weighted.gradient(result.w).toarray()
    norm = np.linalg.norm(G / np.sqrt(np.outer(p, q)), 2)
    exact = np.vdot(G, result.w.to_dense()) + 9.0 * norm
    assert exact <= result.gap <= exact + 1e-8 + 0.02 * exact
    ones = problem_of(constraint=cg.constraints.WeightedNuclearBall(15.0, np.ones(30), np.ones(20)))
    np.testing.assert_allclose(
        cg.minimize(ones, tol=1e-8).objective, cg.minimize(problem_of(), tol=1e-8).objective, atol=1e-7
    )


def test_weights_of_a_ball_follow_the_entries():
    rows, columns = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 0])  # 3, 1 and 0 in rows, 2, 1 and 1 in columns
    ball = cg.constraints.WeightedNuclearBall.of_entries(2.0, rows, columns, (3, 3))
    np.testing.assert_allclose(ball.row_weight, [0.5 + 0.5 * 9 / 4, 0.5 + 0.5 * 3 / 4, 0.5])
    np.testing.assert_allclose(ball.column_weight, [0.5 + 0.5 * 6 / 4, 0.875, 0.875])
    bare = cg.constraints.WeightedNuclearBall.of_entries(2.0, rows, columns, (3, 3), smoothing=0.0)
    np.testing.assert_allclose(bare.row_weight, [9 / 4, 3 / 4, 0.0])
    even = cg.constraints.WeightedNuclearBall.of_entries(2.0, rows, columns, (3, 3), smoothing=1.0)
    W = np.random.default_rng(0).standard_normal(9)
    assert even.norm(W) == pytest.approx(np.linalg.norm(W.reshape(3, 3), "nuc"))
    # A weight of 2 is an entry given twice, and one of 0 is none.
    weight = np.array([2.0, 1.0, 0.0, 1.0])
    once = cg.constraints.WeightedNuclearBall.of_entries(2.0, rows, columns, (3, 3), sample_weight=weight)
    twice = cg.constraints.WeightedNuclearBall.of_entries(2.0, rows[[0, 0, 1, 3]], columns[[0, 0, 1, 3]], (3, 3))
    np.testing.assert_allclose(once.row_weight, twice.row_weight)
    np.testing.assert_allclose(once.column_weight, twice.column_weight)


def test_rows_that_were_never_observed_stay_zero_in_the_weighted_ball():
    rows, columns, values = observed()
    kept = rows != 3
    rows, columns, values = rows[kept], columns[kept], values[kept]
    ball = cg.constraints.WeightedNuclearBall.of_entries(1.0, rows, columns, SHAPE)
    problem = cg.CompletionProblem(rows, columns, values, cg.losses.Squared(), ball, shape=SHAPE)
    assert (cg.minimize(problem, tol=1e-6).w.to_dense()[3] == 0.0).all()


@pytest.mark.parametrize("solver", ["fw", "low-rank"])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(solver, fits, tmp_path):
    problem = problem_of(cg.losses.Huber(0.5), radius=30.0, biases=True)
    for tol in (0.0, 1e-5):  # with a goal, too, at which oracles stop earlier
        path = tmp_path / f"run {tol}.npz"
        whole = cg.minimize(problem, solver, tol=tol, max_steps=12)
        cg.minimize(problem, solver, tol=tol, max_steps=2, checkpoint=path)
        rest = cg.minimize(problem, solver, tol=tol, max_steps=12, checkpoint=path)
        assert whole.gap == rest.gap
    np.testing.assert_array_equal(whole.w.to_dense(), rest.w.to_dense())


def test_same_problem_same_run():
    first, second = (cg.minimize(problem_of(biases=True), tol=1e-7) for _ in range(2))
    assert first.trace.to_dict()["gap"].tolist() == second.trace.to_dict()["gap"].tolist()
    np.testing.assert_array_equal(first.w.U, second.w.U)


def test_warm_starts():
    problem = problem_of()
    first = cg.minimize(problem, tol=1e-6)
    wider = problem.over(cg.constraints.NuclearBall(16.0))
    again = cg.minimize(wider, w0=first, tol=1e-6)
    assert again.n_steps <= cg.minimize(wider, tol=1e-6).n_steps
    np.testing.assert_allclose(
        cg.minimize(wider, w0=first.w.to_dense(), tol=1e-6).objective, again.objective, atol=1e-6
    )
    with pytest.raises(ValueError, match="lies outside"):
        cg.minimize(problem.over(cg.constraints.NuclearBall(1.0)), w0=first)


# ---- steps over batches of entries ----


STEP_SOLVERS = ["sfw", "mokhtari", "lu-freund", "saga"]


def dense_twin():
    """The same problem with a row of X for every entry of an 8 x 9 matrix, and in factors."""
    rows, columns, values = observed(count=60, shape=(8, 9))
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    X = scipy.sparse.csr_matrix((np.ones(60), (np.arange(60), rows * 9 + columns)), shape=(60, 72))
    ball = cg.constraints.NuclearBall(6.0, shape=(8, 9))
    loss = cg.losses.Squared()  # without the equal derivatives of Huber, which make best vertices that are not unique
    return cg.Problem(X, values, loss, ball), cg.CompletionProblem(rows, columns, values, loss, ball)


@pytest.mark.parametrize("batch_size", [1, 7, 60])
@pytest.mark.parametrize("name", ["sfw", "mokhtari", "saga"])  # lu-freund first asks the oracle about r = 0
def test_steps_in_factors_are_those_on_the_dense_matrix(name, batch_size):
    dense, factored = dense_twin()
    solver = cg.solvers.by_name(name)(batch_size=batch_size)
    options = {"max_steps": 30, "tol": 0.0, "evaluate_every": 1e-9, "random_state": 3}
    a = cg.minimize(dense, solver, w0=np.zeros(72), **options)
    b = cg.minimize(factored, solver, **options)
    np.testing.assert_allclose(b.trace.objective, a.trace.objective, rtol=1e-3)
    np.testing.assert_allclose(b.trace.gap, a.trace.gap, rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", STEP_SOLVERS)
def test_steps_are_feasible_converge_and_can_be_repeated(name):
    problem = problem_of(cg.losses.Huber(0.5))
    solver = cg.solvers.by_name(name)(batch_size=30)

    def look(progress):
        assert problem.constraint.violation(progress.w) <= 1e-8

    first = problem.gap(np.zeros(SHAPE))
    result = cg.minimize(problem, solver, tol=0.0, max_epochs=40, random_state=0, callback=look)
    assert result.gap < 0.25 * first
    np.testing.assert_allclose(result.objective, problem.objective(result.w), rtol=1e-12)
    again = cg.minimize(problem, solver, tol=0.0, max_epochs=40, random_state=0)
    assert again.gap == result.gap


@pytest.mark.parametrize("name", STEP_SOLVERS)
def test_steps_that_were_stopped_go_on_bit_for_bit(name, tmp_path):
    problem = problem_of(cg.losses.Huber(0.5))
    options = {"tol": 0.0, "random_state": 0}
    solver = cg.solvers.by_name(name)(batch_size=30)
    whole = cg.minimize(problem, solver, max_steps=90, **options)
    for max_steps in (1, 33, 90):
        rest = cg.minimize(problem, solver, max_steps=max_steps, checkpoint=tmp_path / "run.npz", **options)
    assert rest.n_steps == whole.n_steps
    np.testing.assert_allclose(rest.w.to_dense(), whole.w.to_dense(), atol=1e-9)


def test_the_weighted_ball_in_steps():
    rng = np.random.default_rng(10)
    ball = cg.constraints.WeightedNuclearBall(9.0, rng.random(30) + 0.2, rng.random(20) + 0.2)
    problem = problem_of(constraint=ball)
    result = cg.minimize(problem, cg.solvers.SFW(batch_size=50), tol=0.0, max_epochs=60, random_state=0)
    assert ball.violation(result.w) <= 1e-8
    assert result.gap < 0.25 * problem.gap(np.zeros(SHAPE))


def test_steps_do_not_follow_biases():
    with pytest.raises(TypeError, match="do not support biases"):
        cg.minimize(problem_of(biases=True), "sfw")


# ---- what is refused ----


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rows": [0.5, 1.0]}, "rows must be a one-dimensional array of whole numbers"),
        ({"rows": [-1, 1]}, "rows must count from 0; got -1"),
        ({"columns": [0]}, "must have equal lengths; got 2 and 1"),
        ({"rows": [1, 1], "columns": [2, 2]}, "row 1, column 2 is given more than once"),
        ({"shape": (1, 1)}, "is too small for entries up to row 1"),
        ({"shape": 3}, "shape must be a pair"),
        ({"values": [1.0]}, "2"),
        ({"values": [1.0, np.nan]}, "nan"),
        ({"constraint": cg.constraints.L1Ball(1.0)}, "constraint must be a NuclearBall"),
        ({"constraint": cg.constraints.NuclearBall(1.0, shape=(9, 9))}, "matrices of shape"),
        ({"biases": 1}, "biases must be True or False"),
        ({"loss": cg.losses.Logistic(), "values": [-1, 1], "biases": True}, "is infinite; use biases=False"),
        ({"loss": cg.losses.Welsch(), "biases": True}, "is not convex"),
        ({"loss": "squared"}, "loss must be"),
    ],
)
def test_bad_input_gets_a_sentence(change, sentence):
    given = {"rows": [0, 1], "columns": [0, 1], "values": [1.0, 2.0], "loss": cg.losses.Squared()}
    given |= {"constraint": cg.constraints.NuclearBall(1.0)} | change
    with pytest.raises((ValueError, TypeError), match=sentence):
        cg.CompletionProblem(**given)


def test_solvers_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="requires the curvature of F on vertices and iterates that are arrays"):
        cg.minimize(problem_of(), "corrective")
    flat = cg.Problem([[1.0]], [1.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    with pytest.raises(TypeError, match="requires iterates that are matrices in factors"):
        cg.minimize(flat, "low-rank")


# ---- narrow matrices ----


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [cg.losses.Squared(), cg.losses.Huber(0.5)])
def test_fits_of_narrow_matrices_and_of_factors_find_the_same_optimum(shape, weighted, loss, monkeypatch):
    rows, columns, values = observed(count=500, shape=shape, noise=0.5)
    ball = cg.constraints.NuclearBall(40.0)
    if weighted:
        ball = cg.constraints.WeightedNuclearBall.of_entries(40.0, rows, columns, shape)
    found = []
    for most in (256, 0):
        monkeypatch.setattr(completion, "_NARROW", most)
        problem = cg.CompletionProblem(rows, columns, values, loss, ball, shape=shape, biases=True)
        assert problem.is_narrow == (most > 0)
        result = cg.minimize(problem, "low-rank", tol=1e-7)
        assert result.gap <= 1e-7 and ball.violation(result.w) <= 1e-8
        found.append(result.objective)
    assert found[0] == pytest.approx(found[1], abs=2e-7)


def test_a_matrix_is_narrow_if_it_has_few_columns_and_many_of_its_entries():
    ball = cg.constraints.NuclearBall(1.0)

    def is_narrow(shape, count, loss=None, weight=None):
        rows, columns, values = observed(count=count, shape=shape)
        loss = cg.losses.Squared() if loss is None else loss
        return cg.CompletionProblem(rows, columns, values, loss, ball, shape=shape, sample_weight=weight).is_narrow

    assert is_narrow((400, 10), 2000) and is_narrow((10, 400), 2000)
    assert not is_narrow((300, 300), 45_000)  # too many columns
    assert not is_narrow((400, 10), 300)  # too few entries
    assert not is_narrow((400, 10), 2000, weight=np.r_[1000.0, np.ones(1999)])  # one entry decides the step size


def test_a_dense_fit_stops_at_its_deadline():
    problem = problem_of(biases=True)
    Z, biases = Factored.zero(SHAPE), problem.best_biases(np.zeros(problem.n_samples))
    fit = problem.dense_fit(Z, biases)
    fit.improve(10, deadline=0.0)
    assert fit.Z is Z
    fit.improve(10)
    assert problem.objective_at(fit.Z, fit.biases) < problem.objective_at(Z, biases)
    np.testing.assert_array_equal(biases.rows, problem.best_biases(np.zeros(problem.n_samples)).rows)  # unchanged
