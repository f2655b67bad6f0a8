"""MultiOutputProblem: several targets over one set, against closed forms, single problems and extended precision."""

import numpy as np
import pytest
import scipy.sparse
from certificates import HAS_LONG, LONG, Truth, measured

import condgrad as cg
from condgrad.constraints import Atom, DenseVertex, GroupBall, L1Ball, L2Ball, NuclearBall
from condgrad.linalg import threads
from condgrad.losses import Huber, Logistic, Pinball, Poisson, PseudoHuber, Squared, Welsch

RNG = np.random.default_rng(0)
N, D, K = 60, 5, 3
X = RNG.standard_normal((N, D))
X[np.abs(X) < 0.4] = 0.0
TRUTH = np.outer([1.0, -0.5, 2.0], [1.0, 0.0, -1.0, 0.0, 0.5])
Y = X @ TRUTH.T + [1.0, 0.0, -2.0] + 0.1 * RNG.standard_normal((N, K))
WEIGHT = RNG.integers(1, 4, N).astype(float)
FEATURES = np.tile(np.arange(D), K)
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
}
SETS = {
    "l1": L1Ball(3.0),
    "group": GroupBall(FEATURES, 2.0),
    "nuclear": NuclearBall(2.0, shape=(K, D)),
    "l2": L2Ball(1.5),
}


def as_one_problem(loss, constraint, weight=None):
    """Return the same as a Problem with a sample for each pair of an output and a sample, W row by row; F / K."""
    rows = scipy.sparse.kron(scipy.sparse.eye(K), scipy.sparse.csr_matrix(X), format="csr")
    weight = None if weight is None else np.tile(weight, K)
    return cg.Problem(rows, Y.T.ravel(), loss, constraint, sample_weight=weight)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5), PseudoHuber(1.0), Pinball(0.3, 0.5)], ids=repr)
@pytest.mark.parametrize("form", FORMS)
def test_a_look_is_that_of_one_large_problem(loss, form):
    ball = SETS["l1"]
    problem = cg.MultiOutputProblem(FORMS[form](X), Y, loss, ball, sample_weight=WEIGHT)
    expected = as_one_problem(loss, ball, WEIGHT)
    w = 0.1 * np.random.default_rng(1).standard_normal(K * D)
    look, other = problem.look(w), expected.look(w)
    assert look.objective == pytest.approx(K * other.objective, rel=1e-13)
    assert problem.objective(w) == pytest.approx(look.objective, rel=1e-14)
    np.testing.assert_allclose(look.gradient, K * other.gradient, rtol=1e-11, atol=1e-13)
    assert look.gap == pytest.approx(K * other.gap, rel=1e-11)
    assert 0.0 < look.evaluation.rounding < 1e-11
    atoms = [Atom(j, 1.0 + j % 2) for j in (0, 3, D, D + 3, 2 * D)]
    dense = [DenseVertex(a.to_dense(K * D)) for a in atoms]
    for given in (atoms, dense):
        found = look.curvature(given)
        np.testing.assert_allclose(found, K * other.curvature(given), rtol=1e-11, atol=1e-13)
        grown = problem.look(w).curvature(given, found[:2, :2])  # the products of new atoms with the known ones
        np.testing.assert_allclose(grown, found, rtol=1e-11, atol=1e-13)
    assert problem.null_objective() == pytest.approx(problem.objective(np.zeros(K * D)), rel=1e-14)
    assert problem.lipschitz() >= K * expected.smoothness() * (1.0 - 1e-9)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_one_output_is_a_problem(loss, intercept):
    ball = L1Ball(1.5)
    problem = cg.MultiOutputProblem(X, Y[:, :1], loss, ball, sample_weight=WEIGHT, intercept=intercept)
    single = cg.Problem(X, Y[:, 0], loss, ball, sample_weight=WEIGHT, intercept=intercept)
    result, expected = cg.minimize(problem, tol=1e-10), cg.minimize(single, tol=1e-10)
    np.testing.assert_allclose(result.w, expected.w, atol=1e-6)
    assert result.objective == pytest.approx(expected.objective, abs=1e-10)
    np.testing.assert_allclose(problem.best_intercept(result.w), [single.best_intercept(result.w)], atol=1e-12)
    atoms = [Atom(0, 1.0), Atom(3, -1.0), DenseVertex(np.linspace(-1.0, 1.0, D))]
    for w in (np.zeros(D), result.w):
        assert problem.evaluate(w).rounding == pytest.approx(measured(single).evaluate(w).rounding, rel=0.05, abs=0.0)
        np.testing.assert_allclose(problem.look(w).curvature(atoms), single.look(w).curvature(atoms), atol=1e-12)
        np.testing.assert_allclose(
            problem.look(w).curvature(atoms[:2]), single.look(w).curvature(atoms[:2]), atol=1e-12
        )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", SETS)
def test_a_loose_set_gives_least_squares(name, intercept):
    loose = {
        "l1": L1Ball(1e3),
        "group": GroupBall(FEATURES, 1e3),
        "nuclear": NuclearBall(1e3, (K, D)),
        "l2": L2Ball(1e3),
    }
    problem = cg.MultiOutputProblem(X, Y, Squared(), loose[name], sample_weight=WEIGHT, intercept=intercept)
    result = cg.minimize(problem, "corrective", tol=1e-7)
    design = np.column_stack([X, np.ones(N)]) if intercept else X
    root = np.sqrt(WEIGHT)[:, None]
    exact = np.linalg.lstsq(root * design, root * Y, rcond=None)[0]
    residual = np.average(np.sum((Y - design @ exact) ** 2, axis=1), weights=WEIGHT) / 2
    assert result.objective - residual <= result.gap + result.rounding
    assert result.objective >= residual - 1e-12
    np.testing.assert_allclose(result.w.reshape(K, D).T, exact[:D], atol=2e-3)
    if intercept:
        np.testing.assert_allclose(result.intercept, exact[D], atol=2e-3)


def test_a_nuclear_ball_shrinks_singular_values():
    """With X = I the solution is the projection of Y, whose singular values all shrink by one number."""
    target = np.random.default_rng(2).standard_normal((6, 4))
    problem = cg.MultiOutputProblem(np.eye(6), target, Squared(), NuclearBall(3.0, shape=(4, 6)))
    result = cg.minimize(problem, "corrective", tol=1e-9)
    np.testing.assert_allclose(result.w, problem.constraint.project(target.T.ravel()), atol=1e-4)
    assert result.gap + result.rounding <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)], ids=repr)
@pytest.mark.parametrize("name", SETS)
def test_every_solver_that_fits(name, loss):
    problem = cg.MultiOutputProblem(X, Y, loss, SETS[name], sample_weight=WEIGHT, intercept=True)
    best = cg.minimize(problem, tol=1e-9)
    assert best.status is cg.Status.CONVERGED and best.solver.startswith("Corrective()")
    assert problem.constraint.contains(best.w, 1e-9)
    for solver in ("fw", "lazy", "away", "pairwise", "bpcg"):
        result = cg.minimize(problem, solver, tol=1e-3, max_epochs=3000)
        assert problem.constraint.contains(result.w, 1e-9), solver
        assert best.lower_bound - 1e-12 <= result.objective <= best.objective + result.gap + result.rounding, solver
        assert result.gap <= 5e-2, solver
        np.testing.assert_allclose(result.intercept, problem.best_intercept(result.w), atol=1e-12)


@pytest.mark.parametrize("rule", [cg.step_sizes.ShortStep(), cg.step_sizes.Backtracking()], ids=repr)
@pytest.mark.parametrize("loss", [Squared(), PseudoHuber(1.0)], ids=repr)
def test_step_sizes_go_down(loss, rule):
    problem = cg.MultiOutputProblem(X, Y, loss, L1Ball(3.0))
    result = cg.minimize(problem, cg.solvers.FrankWolfe(rule), tol=0.0, max_steps=200, evaluate_every=1)
    assert (np.diff(result.trace.objective) <= 1e-12).all()


def test_a_move_along_a_line_makes_one_pass(monkeypatch):
    problem = cg.MultiOutputProblem(X, Y, Huber(0.5), L1Ball(3.0), intercept=True)
    result = cg.minimize(problem, "fw", tol=0.0, max_steps=7)
    passes = []
    monkeypatch.setattr(
        cg.MultiOutputProblem, "scores", lambda self, w: passes.append(w) or type(self).__base__.scores(self, w)
    )
    again = cg.minimize(problem, "fw", tol=0.0, max_steps=7)
    np.testing.assert_array_equal(result.w, again.w)
    assert len(passes) <= 5  # the start and the certificates: the scores follow the moves


@pytest.mark.parametrize("intercept", [False, True])
def test_forms_precisions_and_threads_agree(intercept, monkeypatch):
    single = X.astype(np.float32)
    expected = {}
    for dtype in (np.float32, np.float64):
        for form, make in FORMS.items():
            data = make(single.astype(dtype))
            problem = cg.MultiOutputProblem(data, Y, Huber(0.5), SETS["nuclear"], intercept=intercept)
            result = cg.minimize(problem, tol=1e-9)
            expected.setdefault("w", result.w)
            np.testing.assert_allclose(result.w, expected["w"], atol=1e-5, err_msg=f"{form}, {dtype}")
    w = expected["w"]
    one = problem.look(w)
    monkeypatch.setattr(threads, "_MIN_WORK", 10)
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    two = problem.look(w)
    assert one.objective == pytest.approx(two.objective, rel=1e-14)
    np.testing.assert_allclose(one.gradient, two.gradient, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("loss", [Squared(), PseudoHuber(1.0)], ids=repr)
def test_weights_are_repetitions(loss):
    rows = np.repeat(np.arange(N), WEIGHT.astype(int))
    for intercept in (False, True):
        settings = {"intercept": intercept}
        weighted = cg.MultiOutputProblem(X, Y, loss, SETS["group"], sample_weight=WEIGHT, **settings)
        repeated = cg.MultiOutputProblem(X[rows], Y[rows], loss, SETS["group"], **settings)
        w = cg.minimize(weighted, tol=1e-9).w
        np.testing.assert_allclose(w, cg.minimize(repeated, tol=1e-9).w, atol=1e-6)
        assert weighted.objective(w) == pytest.approx(repeated.objective(w), rel=1e-13)


def test_groups_of_features_are_selected_for_all_outputs():
    result = cg.minimize(cg.MultiOutputProblem(X, Y, Squared(), GroupBall(FEATURES, 1.5), intercept=True), tol=1e-9)
    used = np.flatnonzero(np.abs(result.w.reshape(K, D)).sum(axis=0) > 1e-6)
    assert set(used) <= {0, 2, 4} and used.size > 0


def test_other_losses():
    counts = np.random.default_rng(3).poisson(np.exp(0.3 * X @ TRUTH.T)).astype(float)
    for loss, targets in ((Poisson(), counts), (Logistic(), np.sign(Y)), (Huber(0.1), Y)):
        for intercept in (False, True):
            problem = cg.MultiOutputProblem(X, targets, loss, SETS["nuclear"], intercept=intercept)
            assert cg.minimize(problem, tol=1e-7).status is cg.Status.CONVERGED
    step = cg.solvers.FrankWolfe(cg.step_sizes.ShortStep())
    poisson = cg.MultiOutputProblem(X, counts, Poisson(), L1Ball(0.5), intercept=True)
    assert (np.diff(cg.minimize(poisson, step, max_steps=20, tol=0.0, evaluate_every=1).trace.objective) <= 1e-9).all()


def test_parts_of_many_samples_end_in_a_certificate_of_all():
    rng = np.random.default_rng(4)
    big = rng.standard_normal((9000, 6))
    targets = big @ rng.standard_normal((6, 4)) + rng.standard_normal((9000, 4))
    for loss in (Squared(), Huber(0.5)):
        problem = cg.MultiOutputProblem(big, targets, loss, L1Ball(3.0), intercept=True)
        result = cg.minimize(problem, tol=1e-8)
        assert result.status is cg.Status.CONVERGED and problem.gap(result.w) <= 1e-8


def test_the_same_problem_over_another_set_and_for_other_targets():
    problem = cg.MultiOutputProblem(X, Y, Squared(), L1Ball(1.0), intercept=True)
    wider = problem.over(L1Ball(2.0))
    assert wider.matrix is problem.matrix and wider.reach == pytest.approx(2.0 * problem.reach)
    other = problem.with_targets(2.0 * Y)
    fresh = cg.MultiOutputProblem(X, 2.0 * Y, Squared(), L1Ball(1.0), intercept=True)
    w = np.zeros(K * D)
    assert other.objective(w) == fresh.objective(w) and other.fingerprint() == fresh.fingerprint()
    assert problem.fingerprint() != other.fingerprint()
    np.testing.assert_array_equal(other.Y, 2.0 * Y)


def test_checkpoints_go_on(tmp_path):
    problem = cg.MultiOutputProblem(X, Y, Huber(0.5), SETS["l1"], intercept=True)
    for solver in ("pairwise", "corrective"):
        whole = cg.minimize(problem, solver, tol=0.0, max_steps=12)
        cg.minimize(problem, solver, tol=0.0, max_steps=5, checkpoint=tmp_path / solver)
        rest = cg.minimize(problem, solver, tol=0.0, max_steps=12, checkpoint=tmp_path / solver)
        np.testing.assert_array_equal(rest.w, whole.w)


@pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")
@pytest.mark.parametrize("loss", [Squared(), Huber(0.7), PseudoHuber(0.5)], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_certificates_in_extended_precision(loss, intercept):
    rng = np.random.default_rng(5)
    for scale in (1.0, 1e6):
        data = rng.standard_normal((40, 4)) * [1.0, 1e-5, 1e3, 1.0] + [0.0, 0.0, 0.0, 1e7 * intercept]
        targets = scale * rng.standard_normal((40, 3))
        weight = 10.0 ** rng.uniform(-3, 3, 40)
        problem = cg.MultiOutputProblem(
            data, targets, loss, L1Ball(scale / 10), sample_weight=weight, intercept=intercept
        )
        truths = [Truth(data.astype(LONG), y, weight, loss, intercept) for y in targets.T]
        result = cg.minimize(problem, tol=1e-9 * problem.loss_scale())
        for w in (result.w, np.zeros(12), problem.lmo(rng.standard_normal(12)).to_dense(12)):
            found, W = problem.evaluate(w), w.reshape(3, 4)
            r = np.concatenate([truth.gradient(row) for truth, row in zip(truths, W, strict=True)])
            gap = r @ w.astype(LONG) + LONG(scale / 10) * np.abs(r).max()
            value = sum(truth.objective(row) for truth, row in zip(truths, W, strict=True))
            assert gap <= found.gap + found.rounding
            assert found.lower_bound <= value
            assert found.rounding <= 1e-5 * problem.loss_scale()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: cg.MultiOutputProblem(X, Y[:, 0], Squared(), L1Ball(1.0)),
            r"got shape \(60,\). Use Y.reshape\(-1, 1\)",
        ),
        (lambda: cg.MultiOutputProblem(X, Y[1:], Squared(), L1Ball(1.0)), "X has 60 rows, Y has 59"),
        (
            lambda: cg.MultiOutputProblem(X, np.full((N, 2), np.nan), Squared(), L1Ball(1.0)),
            "Y has 120 entries that are",
        ),
        (lambda: cg.MultiOutputProblem(X, scipy.sparse.eye(N), Squared(), L1Ball(1.0)), r"Use Y.toarray\(\)"),
        (lambda: cg.MultiOutputProblem(X, Y, Logistic(), L1Ball(1.0)), "y must be -1 or 1 for Logistic"),
        (lambda: cg.MultiOutputProblem(X, Y, Squared(), GroupBall([0, 1], 1.0)), "3 outputs and 5 columns of X make"),
        (lambda: cg.MultiOutputProblem(X, Y, Squared(), NuclearBall(1.0, (D, K))), r"use shape=\(3, 5\)"),
        (lambda: cg.MultiOutputProblem(X, Y, Squared(), L1Ball(1.0)).with_targets(Y[:, :2]), "Y must have 3 columns"),
        (lambda: cg.MultiOutputProblem(X, Y, Welsch(), L1Ball(1.0), intercept=True), "not convex|convex"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_solvers_of_single_samples_are_refused_in_a_sentence():
    problem = cg.MultiOutputProblem(X, Y, Squared(), L1Ball(1.0))
    with pytest.raises(TypeError, match="solve one Problem for each output"):
        cg.minimize(problem, "sfw")
    with pytest.raises(TypeError, match="loss must be an object"):
        cg.MultiOutputProblem(X, Y, Squared, L1Ball(1.0))
    with pytest.raises(TypeError, match="intercept must be True or False"):
        cg.MultiOutputProblem(X, Y, Squared(), L1Ball(1.0), intercept="yes")


def test_snapshots_of_older_versions_have_no_scores():
    problem = cg.SoftmaxProblem(X, np.arange(N) % K, L1Ball(2.0), intercept=True)
    point, other = problem.point(np.zeros(K * D)), problem.point(np.zeros(K * D))
    point.reset(problem.lmo(point.r).to_dense(K * D))
    numbers, arrays = point.snapshot()
    del arrays["S"]
    other.restore(numbers, arrays)
    np.testing.assert_array_equal(other.S, point.S)
    assert other.gap == point.gap
