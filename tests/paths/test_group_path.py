"""Paths over balls of groups: certified points, against `minimize` and a cone program, on all kinds of data."""

import numpy as np
import pytest
import scipy.sparse

import condgrad as cg
from condgrad.paths import packed_columns, smooth
from condgrad.paths.engine import End
from condgrad.paths.group_bounds import GroupBounds
from condgrad.paths.group_engine import GroupEngine
from condgrad.paths.group_gauge import group_gauge_of
from condgrad.paths.leaps import Leaps
from condgrad.paths.least_squares import Goal
from condgrad.paths.minimized import Walk
from condgrad.paths.packed_columns import PackedColumns
from condgrad.problems.linear import Problem
from condgrad.run.result import Status

LABELS = np.repeat(np.arange(20), [1, 2, 3, 4] * 5)
BALLS = {
    "group": lambda r: cg.constraints.GroupBall(LABELS, r),
    "scattered": lambda r: cg.constraints.GroupBall(np.arange(50) % 12, r),
    "weighted": lambda r: cg.constraints.WeightedGroupBall(LABELS, r, np.linspace(0.5, 2.0, 20)),
    "non-negative": lambda r: cg.constraints.WeightedGroupBall(LABELS, r, np.ones(20), is_nonnegative=True),
    "sparse group": lambda r: cg.constraints.SparseGroupBall(LABELS, r, l1_weight=0.4),
}


def table(n=80, d=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    X[np.abs(X) < 0.3] = 0.0
    w = np.zeros(d)
    w[[0, 1, 2, 6, 7, 8, 9, 16, 17, 18, 19]] = rng.standard_normal(11) + 1.0
    return X, X @ w + 0.5 * rng.standard_normal(n)


def targets_of(loss, y):
    if loss in ("logistic", "squared-hinge"):
        return np.where(y > np.median(y), 1.0, -1.0)
    return np.round(np.exp(np.clip(y, -2.0, 2.0))) if loss == "poisson" else y


def check(X, y, loss, make, found, *, tol, **settings):
    """Every point of the path is inside its ball, and an evaluation of its own certifies it."""
    radii, coefs, info = found
    assert info.status is Status.CONVERGED
    scale = Problem(X, y, cg.losses.by_name(loss), make(1.0), **settings).loss_scale()
    for k, radius in enumerate(radii):
        w = coefs[:, [k]].toarray().ravel()
        if radius == 0.0:
            assert not w.any()
            continue
        problem = Problem(X, y, cg.losses.by_name(loss), make(radius), **settings)
        at = problem.evaluate(w)
        assert problem.constraint.violation(w) <= 1e-9 * radius
        assert info.gap[k] + info.rounding[k] <= tol * scale * (1.0 + 1e-12)
        slack = 1e-12 + info.rounding[k] + at.rounding
        assert info.gap[k] >= at.gap - slack  # a point on a line has a bound of its gap
        if loss != "squared":
            assert info.gap[k] == pytest.approx(at.gap, abs=slack)
        assert info.objective[k] == pytest.approx(at.objective, rel=1e-9)
        assert info.intercept[k] == pytest.approx(at.intercept, abs=1e-6)


@pytest.mark.parametrize("ball", list(BALLS))
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_points_are_certified_and_those_of_minimize(ball, loss):
    X, y = table()
    y, make = targets_of(loss, y), BALLS[ball]
    found = cg.radius_path(X, y, loss=loss, constraint=make, n_radii=12, eps=0.05, tol=1e-7)
    check(X, y, loss, make, found, tol=1e-7)
    for k in (3, 11):
        problem = Problem(X, y, cg.losses.by_name(loss), make(found[0][k]))
        other = cg.minimize(problem, tol=1e-9 * problem.loss_scale())
        assert found[2].objective[k] == pytest.approx(other.objective, abs=2e-7 * problem.loss_scale())
        np.testing.assert_allclose(found[1][:, [k]].toarray().ravel(), other.w, atol=5e-3)


@pytest.mark.parametrize("loss", ["huber", "pseudo-huber", "poisson", "squared-hinge"])
def test_other_smooth_losses(loss):
    X, y = table()
    y = targets_of(loss, y)
    settings = {"sample_weight": np.linspace(0.0, 2.0, y.size)}
    found = cg.radius_path(X, y, loss=loss, constraint=BALLS["group"], n_radii=8, eps=0.1, tol=1e-5, **settings)
    check(X, y, loss, BALLS["group"], found, tol=1e-5, **settings)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("ball", ["weighted", "sparse group"])
def test_intercept_weights_and_offset(loss, ball):
    X, y = table()
    X[:, 3] += 100.0  # a column whose mean is far from zero
    X[:, 7] = 1.0  # a constant one takes no part
    y = targets_of(loss, y)
    rng = np.random.default_rng(1)
    own = {"sample_weight": rng.uniform(0.0, 2.0, y.size), "offset": 0.3 * rng.standard_normal(y.size)}
    common = {"loss": loss, "constraint": BALLS[ball], "n_radii": 8, "eps": 0.1, "tol": 1e-6}
    found = cg.radius_path(X, y, fit_intercept=True, **common, **own)
    check(X, y, loss, BALLS[ball], found, tol=1e-6, intercept=True, **own)


@pytest.mark.parametrize("ball", ["group", "sparse group"])
def test_dense_and_sparse_data_and_float32_lead_to_the_same_points(ball):
    X, y = table()
    settings = {"loss": "logistic", "constraint": BALLS[ball], "radii": [0.5, 2.0, 4.0], "tol": 1e-8}
    y = targets_of("logistic", y)
    dense = cg.radius_path(X, y, **settings)
    for other in (np.asfortranarray(X), scipy.sparse.csr_array(X), scipy.sparse.csc_array(X)):
        radii, coefs, info = cg.radius_path(other, y, **settings)
        np.testing.assert_allclose(coefs.toarray(), dense[1].toarray(), atol=1e-3)
        np.testing.assert_allclose(info.objective, dense[2].objective, atol=1e-8)
        check(other, y, "logistic", BALLS[ball], (radii, coefs, info), tol=1e-8)
    narrow = X.astype(np.float32)
    check(narrow, y, "logistic", BALLS[ball], cg.radius_path(narrow, y, **settings), tol=1e-8)


@pytest.mark.parametrize("ball", list(BALLS))
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_penalties_have_the_solutions_of_their_radii(ball, loss):
    X, y = table()
    y, settings = targets_of(loss, y), {"loss": loss, "constraint": BALLS[ball], "tol": 1e-9}
    radii, coefs, info = cg.radius_path(X, y, radii=[0.5, 1.5, 3.0], **settings)
    found, again, there = cg.radius_path(X, y, alphas=info.alpha, **settings)
    assert there.status is Status.CONVERGED
    np.testing.assert_allclose(found, radii, rtol=1e-2)
    np.testing.assert_allclose(again.toarray(), coefs.toarray(), atol=2e-2)
    # F + alpha times the norm is within the gap of its minimum: no point found over a ball is better.
    assert (
        there.objective + info.alpha * found <= info.objective + info.alpha * radii + there.gap + there.rounding
    ).all()


def test_penalties_against_a_cone_program():
    cvxpy = pytest.importorskip("cvxpy")
    X, y = table()
    alphas = [0.3, 0.1]
    _, coefs, info = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], alphas=alphas, tol=1e-9)
    for k, alpha in enumerate(alphas):
        w = cvxpy.Variable(50)
        norm = sum(cvxpy.norm(w[np.flatnonzero(g == LABELS)]) for g in range(20))
        best = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(X @ w - y) / (2 * y.size) + alpha * norm)).solve()
        assert info.objective[k] + alpha * info.radius[k] == pytest.approx(best, rel=1e-6)
        np.testing.assert_allclose(coefs[:, [k]].toarray().ravel(), w.value, atol=1e-3)


def test_more_features_than_samples_and_few_passes():
    X, y = table(n=60, d=400, seed=2)
    labels = np.repeat(np.arange(80), 5)

    def make(radius):
        return cg.constraints.GroupBall(labels, radius)

    found = cg.radius_path(X, y, loss="squared", constraint=make, n_radii=50, eps=0.05, tol=1e-4)
    check(X, y, "squared", make, found, tol=1e-4)
    assert found[2].passes < 50.0  # about one look at each column for a point, and fewer


def lines_of(ball, **settings):
    """An engine, and two ends with points between them."""
    X, y = table()
    problem = Problem(X, y, cg.losses.Squared(), BALLS[ball](1.0), **settings)
    gauge = group_gauge_of(problem.constraint)
    assert gauge is not None
    return problem, gauge, GroupEngine(problem, gauge)


@pytest.mark.parametrize("ball", list(BALLS))
@pytest.mark.parametrize("is_penalised", [False, True])
@pytest.mark.parametrize("has_intercept", [False, True])
def test_points_on_lines_are_what_an_evaluation_finds(ball, is_penalised, has_intercept):
    weight = np.random.default_rng(3).random(80) + 0.1
    problem, gauge, engine = lines_of(ball, sample_weight=weight, intercept=has_intercept)
    shares = (0.5, 0.3) if is_penalised else (2.0, 3.0)
    ends = []
    for share in shares:
        target = share * engine.largest if is_penalised else share
        ends.append(End(target, engine.solve(Goal(target, is_penalised), 1e-6), engine.mark()))
    targets = np.linspace(ends[0].target, ends[1].target, 6)
    for target, point in zip(targets, engine.between(*ends, targets, is_penalised), strict=True):
        w = np.zeros(problem.n_features)
        w[point.features] = point.x * engine.columns.scale[point.features]
        assert point.norm == pytest.approx(gauge.norm(w))
        radius = point.norm if is_penalised else target
        at = Problem(*table(), cg.losses.Squared(), gauge.ball(radius), sample_weight=weight,
                     intercept=has_intercept).evaluate(w)  # fmt: skip
        assert point.objective == pytest.approx(at.objective, rel=1e-10)
        assert point.gap >= at.gap - point.rounding - at.rounding
        assert not is_penalised or point.gap <= 0.2 * engine.scale
        if has_intercept:
            assert point.offset == pytest.approx(at.intercept, abs=1e-9)


def test_the_gap_on_the_line_is_at_most_the_bend_of_the_path():
    """Between exact solutions: t (1 - t) ((a_0 - a_1) (n_1 - n_0) - ||R_0 - R_1||^2), and less where groups turn."""
    _, _, engine = lines_of("group")
    left, right = (
        End(target, engine.solve(Goal(target, True), 1e-12), engine.mark())
        for target in (0.4 * engine.largest, 0.3 * engine.largest)
    )
    bend = (left.target - right.target) * (right.point.norm - left.point.norm)
    bend -= np.mean((left.residual.R - right.residual.R) ** 2)
    for t in (0.2, 0.5, 0.7):
        target = (1.0 - t) * left.target + t * right.target
        (point,) = engine.between(left, right, np.array([target]), is_penalised=True)
        assert 0.0 < point.gap <= t * (1.0 - t) * bend + 1e-10


def test_rough_paths_take_most_points_from_lines(monkeypatch):
    solved, solve = [], GroupEngine.solve

    def counted(self, goal, tol):
        solved.append(goal.target)
        return solve(self, goal, tol)

    monkeypatch.setattr(GroupEngine, "solve", counted)
    X, y = table(n=60, d=50, seed=5)
    largest = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], radii=[1e-6], tol=1e-6)[2].alpha[0]
    solved.clear()
    alphas = largest * np.geomspace(1.0, 0.05, 100)
    found = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], alphas=alphas, tol=1e-3)
    check(X, y, "squared", BALLS["group"], found, tol=1e-3)
    assert len(solved) < 50


@pytest.mark.parametrize("what", ["alphas", "radii"])
def test_a_leap_that_is_too_long_is_filled_in(monkeypatch, what):
    monkeypatch.setattr(Leaps, "_growth", lambda self, *ends: 40.0)
    X, y = table()
    targets = {"alphas": np.geomspace(1.0, 0.05, 40), "radii": np.linspace(0.1, 6.0, 40)}[what]
    found = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], tol=1e-5, **{what: targets})
    check(X, y, "squared", BALLS["group"], found, tol=1e-5)


def test_the_same_target_may_be_given_many_times():
    X, y = table()
    radii = np.repeat([0.5, 2.0, 4.0], 7)
    found = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], radii=radii, tol=1e-3)
    check(X, y, "squared", BALLS["group"], found, tol=1e-3)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_packed_columns_have_the_products_of_all_features(has_intercept):
    problem, _, engine = lines_of("weighted", intercept=has_intercept)
    data, features = engine.data, np.array([3, 11, 0, 40, 7, 25])
    packed = PackedColumns(data.columns, data.zero.d)
    G = np.full((6, 6), np.nan)
    packed.fill(G[:2, :2], features[:2], 0)
    packed.fill(G[:5, :5], features[:5], 2)
    kept = np.array([1, 4, 2])
    packed.keep(kept)
    after = np.full((4, 4), np.nan)
    after[:3, :3] = G[np.ix_(kept, kept)]
    new = np.append(features[kept], features[5])
    packed.fill(after, new, 3)
    wanted = problem.feature_curvature(new, data.columns.scale[new], data.zero.d)
    np.testing.assert_allclose(after, wanted, atol=1e-12)


def test_columns_that_would_take_too_much_memory_are_not_copied(monkeypatch):
    X, y = table()
    wanted = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], n_radii=8, eps=0.05, tol=1e-8)
    monkeypatch.setattr(packed_columns, "_MOST_ENTRIES", 10 * len(y))
    found = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], n_radii=8, eps=0.05, tol=1e-8)
    check(X, y, "squared", BALLS["group"], found, tol=1e-8)
    np.testing.assert_allclose(found[2].objective, wanted[2].objective, rtol=1e-6)


def test_the_engine_of_groups_serves_these_problems():
    X, y = table()
    for make in BALLS.values():
        problem = Problem(X, y, cg.losses.Squared(), make(1.0))
        assert smooth.serves(problem, make, "auto")
    other = Problem(X, y, cg.losses.Squared(), cg.constraints.L2Ball(1.0))
    assert not smooth.serves(other, cg.constraints.L2Ball, "auto")


def test_a_function_may_return_other_sets():
    X, y = table()

    def make(radius):
        return cg.constraints.GroupBall(LABELS, radius) if radius <= 1.0 else cg.constraints.L2Ball(radius)

    _, _, info = cg.radius_path(X, y, loss="squared", constraint=make, radii=[0.5, 2.0], tol=1e-6)
    assert info.status is Status.CONVERGED
    ball = cg.minimize(Problem(X, y, cg.losses.Squared(), cg.constraints.L2Ball(2.0)), tol=1e-8)
    assert info.objective[1] == pytest.approx(ball.objective, rel=1e-5)


def test_where_the_working_set_is_too_large_minimize_takes_over(monkeypatch):
    monkeypatch.setattr("condgrad.paths.group_engine._MOST_FEATURES", 10)
    X, y = table()
    found = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], radii=[0.5, 4.0], tol=1e-5)
    check(X, y, "squared", BALLS["group"], found, tol=1e-5)


def test_bounds_hold_while_points_move():
    """The engine's bound of every group is at least its dual norm, computed anew."""
    X, y = table()
    problem = Problem(X, targets_of("logistic", y), cg.losses.Logistic(), BALLS["sparse group"](1.0), intercept=True)
    path = smooth.SmoothPath(problem, BALLS["sparse group"], tol=1e-3, interrupts=None)
    engine = path.engine
    assert isinstance(engine, GroupEngine)
    for radius in np.linspace(0.2, 4.0, 12):
        path.advance(np.array([radius]))
        engine.bounds.move(engine.at.R)
        sizes = engine.data.dual_norms(engine.at, np.arange(20))
        inside = np.isin(np.arange(20), engine.set.groups)
        assert (engine.bounds._B * engine.bounds._key + engine.bounds._D * engine.bounds.reach >= sizes)[~inside].all()
        assert (np.linalg.norm(engine.at.R * np.sqrt(problem.samples.weight)) * engine.data.reach >= sizes).all()


def test_budget_of_passes_and_radius_zero():
    X, y = table()
    _, coefs, info = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], radii=[0.0, 1.0], tol=1e-6)
    assert not coefs[:, [0]].toarray().any()
    assert info.alpha[0] > info.alpha[1]
    _, _, short = cg.radius_path(X, y, loss="squared", constraint=BALLS["group"], radii=[3.0], tol=0.0, max_epochs=0.5)
    assert short.status in (Status.MAX_EPOCHS, Status.ROUNDING)


def test_targets_that_nothing_explains():
    X = np.eye(6)[:, :4]
    y = np.array([0.0, 0.0, 0.0, 0.0, 1.0, -1.0])
    _, coefs, info = cg.radius_path(
        X, y, loss="squared", constraint=lambda r: cg.constraints.GroupBall([0, 0, 1, 1], r), radii=[1.0, 2.0]
    )
    assert info.status is Status.CONVERGED
    assert not coefs.toarray().any()


@pytest.mark.parametrize("kind", ["softmax", "tasks"])
@pytest.mark.parametrize("is_grouped", [False, True])
def test_paths_of_several_outputs_begin_where_the_last_points_lead(kind, is_grouped):
    X, y = table(n=120)
    k = 3

    def make(radius):
        ball = cg.constraints.GroupBall(np.tile(np.arange(50), k), radius)  # a group for each column of W
        return ball if is_grouped else cg.constraints.L1Ball(radius)

    if kind == "softmax":
        classes = np.digitize(y, np.quantile(y, [0.3, 0.7]))
        problem = cg.SoftmaxProblem(X, classes, make(1.0), intercept=True)
    else:
        Y = np.column_stack([y, -y, y**2])
        problem = cg.MultiOutputProblem(X, Y, cg.losses.Squared(), make(1.0), intercept=True)
    radii = np.geomspace(0.1, 6.0, 15)
    n_epochs, walks = [], [Walk(problem, make, tol=1e-5 * problem.loss_scale()) for _ in range(2)]
    walks[1].start_at = lambda radius: walks[1].w  # the last solution itself
    for walk in walks:
        results = [walk.to(radius) for radius in radii]
        n_epochs.append(sum(result.n_epochs for result in results))
        assert all(result.status is Status.CONVERGED for result in results)
    for radius, found in zip(radii, smooth.solutions(problem, make, "auto", radii, tol=1e-5), strict=True):
        at = problem.over(make(radius)).evaluate(found.w)
        assert make(radius).violation(found.w) <= 1e-12 * radius
        assert at.gap + at.rounding <= 1e-5 * problem.loss_scale() * (1.0 + 1e-9)
    assert n_epochs[0] < n_epochs[1]


def test_bounds_hold_where_a_residual_turns_towards_a_group():
    """From a residual that a group does not see to the one that it sees best: here the bound is sharp."""
    weight = np.full(3, 1.0 / 3.0)
    X = np.array([[3.0, 1.0], [1.0, 2.0], [0.0, 0.0]])
    _, (largest, _), V = np.linalg.svd(np.sqrt(weight)[:, None] * X)
    unseen, best = np.array([0.0, 0.0, 1.0]), X @ V[0] / largest  # of norm 1 under the weights
    bounds = GroupBounds(weight, np.array([largest]), np.array([np.linalg.norm(X)]), unseen, 0.0)
    bounds.set_known(np.array([0]), np.array([0.0]))
    for share in (1.0, 0.5):
        bounds.move(share * best)
        size = np.linalg.norm(X.T @ (weight * share * best))
        assert size == pytest.approx(share * largest)
        assert bounds.above(size * (1.0 - 1e-9)).size == 1 and bounds.above(size * (1.0 + 1e-9)).size == 0


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_balls_whose_radii_go_up_and_down_are_certified(tol):
    """A line certifies nothing beyond its ends; radii that a function makes of others may turn back."""
    X, y = table()
    make = lambda r: BALLS["group"](0.5 + (7.0 * r) % 1.0 * 6.0)  # noqa: E731
    settings = {"loss": "squared", "constraint": make, "radii": np.linspace(0.2, 6.0, 60), "tol": tol}
    check(X, y, "squared", make, cg.radius_path(X, y, **settings), tol=tol)


def test_points_beyond_the_ends_of_a_line_have_no_certificate():
    X, y = table()
    problem = Problem(X, y, cg.losses.Squared(), BALLS["group"](1.0))
    engine = GroupEngine(problem, group_gauge_of(problem.constraint))
    zero = End(0.0, engine.zero(), engine.mark_of_zero())
    one = End(1.0, engine.solve(Goal(1.0, False), 1e-9), engine.mark())
    inside, beyond = engine.between(zero, one, np.array([0.5, 1.5]), False)
    assert np.isfinite(inside.gap) and beyond.norm <= 1.5 * (1.0 + 1e-12)  # it is inside of its ball
    assert beyond.gap == np.inf


@pytest.mark.parametrize("seed", [22, 29, 97, 127, 184])
def test_group_paths_of_least_squares_do_not_get_stuck_at_zero(seed, monkeypatch):
    """A guess of the multiplier above its largest value has zero as its solution: the search must lead on from it."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 200)), 4 * int(rng.integers(3, 40))
    X = rng.standard_normal((n, d))
    y = X[:, :8].sum(axis=1) + rng.standard_normal(n)
    tol, n_radii = float(rng.choice([1e-1, 1e-2, 1e-3, 1e-6])), int(rng.choice([10, 50, 100]))
    monkeypatch.setattr(Walk, "to", lambda *_: pytest.fail("the engine gave up"))
    make = lambda r: cg.constraints.GroupBall(np.arange(d) // 4, r)  # noqa: E731
    check(
        X, y, "squared", make, cg.radius_path(X, y, loss="squared", constraint=make, n_radii=n_radii, tol=tol), tol=tol
    )


def test_a_path_over_groups_whose_columns_have_large_means_ends(monkeypatch):
    """Columns that are nearly equal leave hardly a digit; every run that the path needs still gets on, or says not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40)) * 10.0 ** rng.uniform(-3, 3, 40) + 1e6
    y = np.exp(0.3 * rng.standard_normal(60))
    make = lambda r: cg.constraints.GroupBall(np.arange(40) // 2, r)  # noqa: E731
    loss = cg.losses.Tweedie(1.4)
    of_unit = Problem(X, y, loss, make(1.0))
    largest = np.linalg.norm(of_unit.gradient(np.zeros(40)).reshape(20, 2), axis=1).max()
    runs, go = [], Walk.to
    monkeypatch.setattr(Walk, "to", lambda self, radius: runs.append(go(self, radius)) or runs[-1])
    _, _, info = cg.radius_path(X, y, loss=loss, constraint=make, alphas=largest * np.array([0.5, 0.1, 0.01, 1e-3]))
    assert info.status in (Status.CONVERGED, Status.ROUNDING, Status.STALLED)
    assert max((result.n_steps for result in runs), default=0) < 100
