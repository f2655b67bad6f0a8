"""Certificates hold in floating point: gap + rounding, lower bounds and statuses, judged in extended precision."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from certificates import HAS_LONG, LONG, Drawn, Truth, check, improved, judge

import condgrad as cg
from condgrad.constraints import Atom, DenseVertex
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.rounding import UNIT, Bounds, Sizes, bounds, gamma, prediction_error
from condgrad.linalg.spread import spread_rows
from condgrad.problems.evaluation import Evaluation, Support, certify, vertex_rounding
from condgrad.problems.linear_certificates import BoundedColumns, MeasuredColumns
from condgrad.problems.samples import Samples

needs_long = pytest.mark.skipif(not HAS_LONG, reason="np.longdouble has no more digits than a float here")


@pytest.mark.slow
@needs_long
@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(k, marks=pytest.mark.campaign) for k in range(10, 64))])
def test_no_certificate_is_false(seed):
    drawn, _, wrong = judge(seed)
    assert not wrong, (drawn.description, wrong)


def drawn_from(X, y, loss, constraint, *, intercept=True, weight=None, tol=1e-6):
    weight = np.ones(len(y)) if weight is None else weight
    problem = cg.Problem(X, y, loss, constraint, sample_weight=weight, intercept=intercept)
    dense = X.toarray() if scipy.sparse.issparse(X) else X
    return Drawn(problem, dense.astype(LONG), np.asarray(y, dtype=float), weight, "auto", tol, "")


LARGE_MEANS = {
    "three samples about 1e8": (
        1e8 + np.array([[0.0], [1.0], [2.0]]),
        np.array([0.1, 1.2, 1.9]),
        cg.losses.Huber(0.7),
        cg.constraints.L1Ball(1000.0),
    ),
    "squares about 1e6": (
        1e6 + np.array([[0.3, 0.2], [1.1, -0.4], [-0.7, 0.9]]),
        np.array([1.0, -2.0, 0.5]),
        cg.losses.Squared(),
        cg.constraints.L1Ball(10.0),
    ),
}


@needs_long
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("name", LARGE_MEANS)
def test_large_means_with_an_intercept(name, form):
    X, y, loss, constraint = LARGE_MEANS[name]
    drawn = drawn_from(form(X), y, loss, constraint)
    result = cg.minimize(drawn.problem)
    assert result.status is cg.Status.CONVERGED
    assert not check(drawn, result)
    assert result.rounding < 1e-8


@pytest.mark.parametrize("solver", ["auto", "fw", "pairwise", "sfw", "randomized", "tufw"])
@pytest.mark.parametrize("loss", [cg.losses.Huber(1.0), cg.losses.Squared()])
def test_time_stamps_take_no_more_steps_than_centred_ones(loss, solver):
    if solver == "tufw" and isinstance(loss, cg.losses.Huber):
        pytest.skip("one case of the solver is enough: it takes no intercept")
    rng = np.random.default_rng(0)
    spread = np.round(1e5 * rng.standard_normal((100, 2)))
    y = spread[:, 0] / 1e5 + 0.1 * rng.standard_normal(100)
    intercept = solver != "tufw"
    runs = [
        cg.minimize(
            cg.Problem(X, y, loss, cg.constraints.L1Ball(8e-6), intercept=intercept),
            solver,
            tol=1e-9,
            max_epochs=300,
            random_state=0,
        )
        for X in (spread - (0.0 if not intercept else spread.mean(axis=0)), spread + (1.7e9 if intercept else 0.0))
    ]
    assert runs[0].status is runs[1].status
    assert runs[1].n_epochs <= 1.5 * runs[0].n_epochs + 2
    np.testing.assert_allclose(runs[0].w, runs[1].w, rtol=1e-3, atol=1e-9)
    assert runs[0].objective == pytest.approx(runs[1].objective, rel=1e-6)


@pytest.mark.slow
def test_predictions_of_time_stamps_use_the_intercept_of_the_columns_as_given():
    rng = np.random.default_rng(1)
    X = 1.7e9 + 1e5 * rng.standard_normal((60, 2))
    y = (X[:, 0] - 1.7e9) / 1e5
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0), intercept=True)
    result = cg.minimize(problem, tol=1e-12)
    np.testing.assert_allclose(X @ result.w + result.intercept, y, atol=1e-4)
    radii, coefs, info = cg.lasso_path(X, y, n_radii=5, fit_intercept=True, tol=1e-9)
    assert info.status is cg.Status.CONVERGED
    np.testing.assert_allclose(X @ coefs[:, -1].toarray().ravel() + info.intercept[-1], y, atol=0.1)
    assert info.radius.size == radii.size


@pytest.mark.parametrize("form", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centred_matrices_are_the_data_less_the_shift(form, dtype):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 4)).astype(dtype)
    X[:, 1] += dtype(1000.0)
    X[:, 2][rng.random(30) < 0.5] = 0.0
    X[:, 3] = dtype(7.0)
    data = np.asarray(X, order=form) if form in "CF" else getattr(scipy.sparse, f"{form}_matrix")(X)
    weight = rng.random(30)
    centred = Matrix(data).centred(weight / weight.sum())
    assert centred.shift is not None
    np.testing.assert_array_equal(centred.shift != 0.0, [False, True, False, True])
    Z, v, w = X.astype(np.float64) - centred.shift, rng.standard_normal(30), rng.standard_normal(4)
    np.testing.assert_allclose(centred.dot(w), Z @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(centred.transpose_dot(v), v @ Z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(centred.column_norms(weight), np.sqrt(weight @ Z**2), rtol=1e-12)
    np.testing.assert_allclose(centred.row_norms(), np.sqrt((Z**2).sum(axis=1)), rtol=1e-12)
    assert centred.largest_entry() == pytest.approx(np.abs(Z).max(), rel=1e-15)
    rows, values = centred.column(1)
    np.testing.assert_allclose(values, Z[:, 1] if rows is None else Z[rows, 1], atol=1e-12)
    features, ones = np.array([1, 3, 0]), np.ones(3)
    np.testing.assert_allclose(
        centred.gram(features, ones, weight), (Z[:, features].T * weight) @ Z[:, features], atol=1e-9
    )
    np.testing.assert_allclose(centred.thinned(3).dot(w), (Z @ w)[spread_rows(len(Z), 3)], atol=1e-12)
    assert Matrix(X[:, [0]]).centred(weight).shift is None


@pytest.mark.slow
@needs_long
@pytest.mark.filterwarnings("ignore::condgrad.ScaleWarning")  # scales are as far apart as they can be
def test_lasso_paths_are_certified_beyond_rounding():
    rng = np.random.default_rng(3)
    for seed in range(6):
        n, d = int(rng.integers(2, 40)), int(rng.integers(1, 30))
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, d)
        X += np.abs(X).max(axis=0) * 10.0 ** rng.uniform(-2, 7, d)
        y = rng.standard_normal(n)
        radii, coefs, info = cg.lasso_path(X, y, n_radii=6, fit_intercept=True, tol=1e-10)
        truth = Truth(X.astype(LONG), y, np.ones(n), cg.losses.Squared(), True)
        for k, radius in enumerate(radii):
            if radius == 0.0:
                continue
            w = coefs[:, k].toarray().ravel()
            better = improved(truth, cg.constraints.L1Ball(float(radius)), w, steps=10)
            excess = truth.objective(w.astype(LONG)) - truth.objective(better)
            assert excess <= info.gap[k] + info.rounding[k], (seed, k)
        is_certified = (info.gap + info.rounding <= 1e-10 * 0.5 * np.var(y)).all()
        assert (info.status is cg.Status.CONVERGED) == is_certified
        assert info.status in (cg.Status.CONVERGED, cg.Status.ROUNDING, cg.Status.STALLED)


@needs_long
def test_softmax_certificates():
    rng = np.random.default_rng(4)
    for intercept in (False, True):
        X = rng.standard_normal((40, 3)) * [1.0, 1e-5, 1e2] + [0.0, 0.0, 1e9 * intercept]
        y = np.arange(40) % 3
        problem = cg.SoftmaxProblem(X, y, cg.constraints.L1Ball(5.0), intercept=intercept)
        result = cg.minimize(problem, tol=1e-7)
        assert result.status is cg.Status.CONVERGED
        W, b = result.w.reshape(3, 3).astype(LONG), result.intercept.astype(LONG)
        if intercept:  # rounding of b itself, which is large, is none of the certificate's business
            continue
        S = X.astype(LONG) @ W.T + b
        P = np.exp(S - S.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        P[np.arange(40), y] -= 1
        r = (P.T @ X.astype(LONG) / 40).ravel()
        gap = r @ result.w.astype(LONG) + 5 * np.abs(r).max()
        assert abs(gap - result.gap) <= result.rounding


def test_a_tolerance_below_rounding_is_said_to_be_one():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(0.5))
    result = cg.minimize(problem, tol=0.0)
    assert result.status is cg.Status.ROUNDING
    assert "raise tol" in str(result.status)
    assert 0.0 <= result.gap <= result.rounding < 1e-12
    assert cg.minimize(problem, tol=2.1 * result.rounding).status is cg.Status.CONVERGED
    assert cg.minimize(problem, tol=max(0.9 * result.rounding, result.gap)).status is cg.Status.ROUNDING


def test_a_trace_says_where_its_records_are_certified():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((50, 8)), rng.standard_normal(50)
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(0.5))
    result = cg.minimize(problem, "away", tol=1e-9, evaluate_every=1)
    assert np.isfinite(result.trace.rounding[[0, -1]]).all()  # the start and the end are looked at afresh
    assert np.isnan(result.trace.rounding[1:-1]).any()
    assert result.trace.gap.min() >= 0.0
    assert result.lower_bound <= result.objective
    assert result.lower_bound >= result.objective - result.gap - 3.0 * result.rounding - 1e-13


def test_gamma():
    assert gamma(3) == pytest.approx(3 * UNIT)
    assert gamma(3) > 3 * UNIT
    assert gamma(1e17) == np.inf


SIZES = Sizes(slope=2.0, prediction=3.0, target=5.0, value=7.0, balance=1e-3)
SETTINGS = {"n_samples": 1000, "reach": 13.0, "free_reach": 1.0, "delta": 1e-9, "slope_error": 1e-8}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"reach": 0.0}, (1000 * UNIT * 2.0 + 1e-8) * 13.0),  # the sums X'alpha, and the derivatives
        ({"slope_error": 0.0}, 1e-8 * 13.0),
        ({"delta": 0.0}, 2.0 * 2.0 * 1e-9),  # the predictions
        ({"free_reach": 0.0}, 1e-3),  # derivatives that do not sum to zero
        ({"n_samples": 1}, 999 * UNIT * 2.0 * 13.0),
    ],
)
def test_every_part_counts_in_the_bound_of_the_gap(change, part):
    whole, rest = bounds(SIZES, **SETTINGS), bounds(SIZES, **(SETTINGS | change))
    assert whole.gap - rest.gap >= part * (1.0 - 1e-6)
    assert whole.objective >= rest.objective


def test_the_bound_of_the_objective_counts_its_parts():
    whole = bounds(SIZES, **SETTINGS).objective
    assert whole >= 1000 * UNIT * 7.0
    assert whole - bounds(SIZES._replace(value=0.0), **SETTINGS).objective >= 1000 * UNIT * 7.0
    assert whole - bounds(SIZES._replace(slope=0.0), **SETTINGS).objective >= 2.0 * 1e-9  # predictions that are off


def test_every_part_counts_in_the_errors_of_predictions_and_derivatives():
    assert prediction_error(SIZES, 10, 11.0) >= 10 * UNIT * 11.0 + 2 * UNIT * 3.0
    p, y = np.array([2.0, -1.0, 0.5]), np.array([1.0, -1.0, 1.0])
    for loss in (cg.losses.Logistic(), cg.losses.Squared(), cg.losses.Huber(0.7), cg.losses.Poisson()):
        samples = Samples(loss, np.abs(y), np.full(3, 1 / 3))
        seen = samples.expand(p, 0.0)
        curvature = np.sqrt(np.mean(np.asarray(loss.second_derivative(p, np.abs(y))) ** 2))
        plain = seen.totals.slope_error(loss, 0.0, 0.0)
        assert plain >= 8 * UNIT * (seen.totals.sizes.slope + (0.0 if loss.rounds_relatively else curvature * 0.5))
        moved = seen.totals.slope_error(loss, 1.0, 1.0)
        assert moved - plain >= curvature * 0.999  # predictions that are off by 1


def test_a_certificate_is_made_of_its_bounds():
    r, s = np.ones(2), Atom(0, 1.0)
    made = certify(True, 4.0, r, -1e-17, s, 0.0, Bounds(gap=0.5, objective=0.25))
    assert made.gap == 0.0
    assert made.rounding == 0.5
    assert made.is_certified
    assert 4.0 - 0.5 - 0.25 - 1e-12 <= made.lower_bound < 4.0 - 0.5 - 0.25
    assert certify(True, 4.0, r, 1.0, s, 0.0, Bounds(0.5, 0.25)).lower_bound < 4.0 - 1.0 - 0.5 - 0.25
    assert certify(False, 4.0, r, 1.0, s, 0.0, Bounds(0.5, 0.25)).lower_bound == -np.inf
    assert not Evaluation(4.0, r, 1.0, s, 0.0).is_certified


def test_the_oracle_and_the_sums_of_the_gap_count():
    class Doubtful:
        def oracle_rounding(self, r, s):
            return 0.125

    assert vertex_rounding(Doubtful(), np.ones(3), Support.of(np.zeros(3)), Atom(0, 1.0)) >= 0.125
    r, w = np.full(100, 1e8), np.full(100, 1e8)
    doubt = vertex_rounding(Doubtful(), r, Support.of(w), Atom(3, 1.0))
    assert doubt > 0.125 + 100 * UNIT * 1e18
    alone = vertex_rounding(Doubtful(), r, Support.of(np.zeros(100)), Atom(3, 1e8))
    assert alone >= 0.125 + 1 * UNIT * 1e16


@pytest.mark.parametrize("loss", [cg.losses.Logistic(), cg.losses.Squared(), cg.losses.Huber(0.3)])
def test_the_best_intercepts_of_all_points_lie_in_the_range(loss):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 3))
    y = rng.choice([-1.0, 1.0], 40)
    problem = cg.Problem(X, y, loss, cg.constraints.L1Ball(4.0), intercept=True)
    problem.evaluate(np.zeros(3))
    low, high = problem._certificates.intercept_range
    for _ in range(50):
        w = rng.standard_normal(3)
        w *= 4.0 * rng.random() / np.abs(w).sum()
        assert low <= problem.best_offset(w) <= high
    assert np.isfinite([low, high]).all()


def test_a_record_that_follows_the_iterate_certifies_nothing():
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((30, 5)), rng.standard_normal(30)
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    point = problem.point(problem.start()[0])
    assert point.evaluate().is_certified
    line = point.segment(pull=1.0, parts=[(1.0, point.s)], slope=-point.gap, max_step=1.0)
    point.move(line, 0.25)
    assert not point.evaluate().is_certified
    assert point.evaluate().lower_bound == -np.inf
    point.reset(point.w)
    fresh = problem.evaluate(point.w)
    assert point.evaluate().rounding == pytest.approx(fresh.rounding, abs=0.0)
    assert point.evaluate().lower_bound == pytest.approx(fresh.lower_bound, abs=1e-14)


def test_the_lower_bound_of_a_run_is_proved_by_a_fresh_pass():
    rng = np.random.default_rng(9)
    X, y = rng.standard_normal((60, 10)), rng.standard_normal(60)
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    best = cg.minimize(problem, tol=1e-13).objective
    for steps in (3, 10, 30, 70, 100, 150):
        run = cg.minimize(problem, "fw", max_steps=steps, tol=0.0, evaluate_every=1e-9)
        records = (run.trace.objective - run.trace.gap).max()
        assert run.lower_bound <= best
        assert run.lower_bound < records  # rounding is taken off
        assert run.lower_bound >= records - 0.02 * (run.objective - records) - 1e-12  # the best of them was looked at


def test_a_point_outside_of_the_set_reaches_farther():
    X, y = np.eye(3), np.ones(3)
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    inside, outside = problem.evaluate(np.zeros(3)), problem.evaluate(np.full(3, 100.0))
    assert outside.rounding > 100.0 * inside.rounding
    far = problem.with_targets(np.full(3, 100.0)).evaluate(np.full(3, 100.0))  # without a slope: predictions alone
    assert far.rounding >= 7 * UNIT * 170.0 * 170.0


def test_a_path_says_where_rounding_stands_in_the_way():
    rng = np.random.default_rng(12)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    scale = 0.5 * float(np.mean(y * y))
    _, _, info = cg.lasso_path(X, y, n_radii=4, tol=1e-9)
    assert info.status is cg.Status.CONVERGED
    assert (info.gap + info.rounding <= 1e-9 * scale).all() and (info.rounding > 0.0).all()
    _, _, info = cg.lasso_path(X, y, n_radii=4, tol=1e-3 * float(info.rounding.max()) / scale)
    assert info.status is cg.Status.ROUNDING


@pytest.mark.slow
def test_completion_is_certified_with_its_rounding():
    rng = np.random.default_rng(10)
    rows, columns = np.divmod(np.arange(60), 10)
    values = np.outer(rng.standard_normal(6), rng.standard_normal(10)).ravel() + 3.0
    kept = rng.random(60) < 0.8
    for biases in (False, True):
        problem = cg.CompletionProblem(
            rows[kept], columns[kept], values[kept], cg.losses.Squared(), cg.constraints.NuclearBall(5.0),
            shape=(6, 10), biases=biases,
        )  # fmt: skip
        result = cg.minimize(problem, tol=1e-7)
        assert result.status is cg.Status.CONVERGED
        assert 0.0 < result.rounding < 1e-8
        assert result.lower_bound <= cg.minimize(problem, tol=1e-9).objective


def test_general_terms_are_certified_with_their_rounding():
    class Distances:
        is_convex = True
        centres = np.random.default_rng(11).standard_normal((20, 3)) + 1e4

        def value(self, i, w):
            return 0.5 * np.sum((w - self.centres[i]) ** 2)

        def gradient(self, i, w):
            return w - self.centres[i]

    problem = cg.GeneralProblem(Distances(), cg.constraints.L1Ball(1.0), n_samples=20, n_features=3)
    result = cg.minimize(problem, "pairwise", tol=1e-6)
    assert result.status is cg.Status.CONVERGED
    assert 20 * UNIT * 1e4 <= result.rounding < 1e-7


def coded(seed):
    """Return a problem on numbers beside codes: scales, large means, float32, a field with one category alone."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 60)), int(rng.integers(0, 3))
    numbers = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-6, 6, p) + 10.0 ** rng.uniform(-3, 9, p)
    numbers = numbers.astype(np.float32) if rng.random() < 0.3 else numbers
    codes = np.column_stack([rng.integers(0, size, n) for size in (3, 1, 5)])
    X = cg.CodedData.from_codes(codes, numbers if p else None, (3, 1, 6))
    loss = (cg.losses.Squared(), cg.losses.Logistic())[seed % 2]
    y = rng.choice([-1.0, 1.0], n) if seed % 2 else 10.0 ** rng.uniform(-3, 3) * rng.standard_normal(n)
    y[0], y[-1] = -1.0, 1.0
    weight = 10.0 ** rng.uniform(-6, 6, n) if rng.random() < 0.3 else np.ones(n)
    ball = (cg.constraints.L1Ball, cg.constraints.Simplex)[int(rng.integers(2))](float(10.0 ** rng.uniform(-2, 2)))
    has_intercept = bool(rng.random() < 0.5)
    problem = cg.Problem(X, y, loss, ball, sample_weight=weight, intercept=has_intercept)
    solver = ("auto", "pairwise", "sfw")[seed % 3]
    return Drawn(
        problem, X.toarray().astype(LONG), y, weight, solver, 10.0 ** rng.uniform(-13, -3), f"{ball}, {solver}"
    )


@pytest.mark.slow
@needs_long
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.campaign) for k in range(6, 24))])
def test_certificates_on_codes_are_true(seed):
    drawn = coded(seed)
    result = cg.minimize(drawn.problem, drawn.solver, tol=drawn.tol, max_epochs=60, random_state=seed)
    assert not check(drawn, result), drawn.description


@needs_long
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("ball", [cg.constraints.L1Ball, cg.constraints.LinfBall])
def test_columns_that_are_not_measured_bound_rounding_as_well(kind, size, ball):
    rng = np.random.default_rng(4)
    X = size * rng.standard_normal((50, 8)) * np.geomspace(0.01, 1.0, 8)
    y = np.where(X[:, 0] + X[:, 7] > 0.0, 1.0, -1.0)
    drawn = drawn_from(kind(X), y, cg.losses.Logistic(), ball(3.0 / size), intercept=False)
    problem = drawn.problem
    at_start = problem.look(np.zeros(8)).evaluation
    assert at_start.rounding <= 1e-3 * at_start.gap and "measures" not in vars(problem.rows)
    measured = MeasuredColumns(problem.column_sizes, float(np.abs(X).max()), problem.constraint)
    bounded = BoundedColumns(float(np.abs(X).max()), 8, problem.constraint)
    for _ in range(5):
        w = problem.constraint.project(rng.standard_normal(8) / size)
        s = problem.lmo(rng.standard_normal(8))
        spread, farther = measured.norm(slice(None), np.abs(w)), bounded.norm(slice(None), np.abs(w))
        assert spread <= farther
        assert measured.distance(w, s, spread) <= bounded.distance(w, s, farther) <= bounded.reach
        assert measured.distance(w, s, spread) == pytest.approx(measured.sizes @ np.abs(w - s.to_dense(8)))
        assert measured.distance(w, DenseVertex(-w), spread) <= bounded.distance(w, DenseVertex(-w), farther)
    assert measured.reach <= bounded.reach
    result = cg.minimize(problem, "corrective", tol=1e-14)
    assert not check(drawn, result)
    exact = problem.look(result.w).evaluation
    assert exact.rounding == pytest.approx(result.rounding) and exact.rounding < at_start.rounding


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-100, 1e-30, 1.0, 1e30])
@pytest.mark.parametrize("radius", [1e-300, 1e-100, 1e-20, 1.0, 1e50])
def test_a_rounding_is_known_or_infinite(size, radius):
    """Also in results, paths and estimators: the intercept moves by as little as predictions do."""
    X, y = np.array([[1.0], [-0.5], [2.0]]) * size, np.array([1.0, 1.0, -1.0])
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(radius), intercept=True)
    result = cg.minimize(problem, tol=0.0, max_epochs=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence, and a radius that does not bind
        info = cg.radius_path(X, y, radii=[radius], fit_intercept=True)[2]
        model = cg.ConstrainedClassifier(constraint=cg.constraints.L1Ball(radius)).fit(X, y)
    for found in (result, info, model.result_):
        assert not np.isnan([found.gap, found.rounding]).any()
        if np.isinf(found.rounding).any():
            assert found.status is cg.Status.ROUNDING and "inf" in str(found.status)
    if size * radius < 1.0:
        assert result.rounding <= 1e-14
