"""Step sizes: the exact ones against brute force, the others against the inequality that defines them."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from covering import every_pair
from tables import FORMS, LOSSES

import condgrad as cg
from condgrad.linalg.convert import as_number
from condgrad.problems.linear_point import PredictionPoint
from condgrad.problems.segment import away_from, between, towards
from condgrad.solvers import AwayStep, FrankWolfe, Pairwise
from condgrad.step_sizes import (
    AutoConditioned,
    Backtracking,
    ExactLineSearch,
    LogAdaptive,
    OpenLoop,
    SecantSearch,
    ShortStep,
    StepSize,
)


def point_of(loss, form, intercept=False, weighted=False, seed=0, n=15, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    y = {"Poisson": rng.poisson(2.0, n)}.get(loss, rng.choice([-1.0, 1.0], n))
    weight = rng.random(n) if weighted else None
    ball = cg.constraints.L1Ball(3.0)
    problem = cg.Problem(FORMS[form](X), y, LOSSES[loss], ball, sample_weight=weight, intercept=intercept)
    w = rng.dirichlet(np.ones(d)) * 2.0
    return problem, PredictionPoint(problem, w)


def lines(point):
    """Segments of the three kinds, all downhill."""
    r, atom = point.r, cg.constraints.Atom
    yield towards(point, point.s, point.gap)
    k = int(np.argmax(r))
    v = atom(k, 3.0)
    slope = float(r @ point.w - 3.0 * r[k])
    yield (
        away_from(point, v, slope, 0.4) if slope < 0.0 else towards(point, atom(k, -3.0), -(-3.0 * r[k] - r @ point.w))
    )
    yield between(point, v, point.s, float(r @ point.s.to_dense(r.size) - 3.0 * r[k]), 0.3)


CONVEX = [name for name, loss in LOSSES.items() if loss.is_convex]
CASES = list(itertools.product(CONVEX, ("C", "csr"), (False, True), (False, True)))


def phi(problem, point, line):
    """F along the line, written out from w: no margins, no supports."""
    direction = np.zeros(problem.n_features)
    line.add_to(direction, 1.0)
    direction -= line.pull * point.w
    return lambda gamma: problem.objective(point.w + gamma * direction)


@every_pair(("loss", "form", "intercept", "weighted", "seed"), [(*case, seed) for case in CASES for seed in range(3)])
def test_exact_line_search_is_the_minimum(loss, form, intercept, weighted, seed):
    problem, point = point_of(loss, form, intercept, weighted, seed)
    for line in lines(point):
        F = phi(problem, point, line)
        gamma = ExactLineSearch().at(0, line)
        assert 0.0 <= gamma <= line.max_step
        grid = np.linspace(0.0, line.max_step, 51)
        near = grid[np.argmin([F(step) for step in grid])]
        spread = line.max_step / 50
        brute = scipy.optimize.minimize_scalar(
            F, bounds=(max(0.0, near - spread), min(line.max_step, near + spread)), method="bounded",
            options={"xatol": 1e-12},
        )  # fmt: skip
        assert F(gamma) <= min(brute.fun, F(0.0), F(line.max_step)) + 1e-13 * abs(brute.fun)
        assert gamma == pytest.approx(brute.x, abs=1e-5 * line.max_step)


@every_pair(("loss", "form", "intercept", "weighted"), CASES)
def test_segment_knows_its_slope_and_length(loss, form, intercept, weighted):
    problem, point = point_of(loss, form, intercept, weighted)
    for line in lines(point):
        F = phi(problem, point, line)
        h = 1e-5 * line.max_step
        assert line.slope == pytest.approx((F(h) - F(0.0)) / h, rel=1e-2, abs=1e-6)
        assert line.change(0.5 * line.max_step) == pytest.approx(F(0.5 * line.max_step) - F(0.0), rel=1e-9, abs=1e-12)
        direction = np.zeros(problem.n_features)
        line.add_to(direction, 1.0)
        direction -= line.pull * point.w
        assert line.squared_length() == pytest.approx(direction @ direction, rel=1e-13)


@every_pair(
    ("loss", "form", "intercept", "weighted", "rule"),
    [(*case, rule) for rule in (ShortStep(), ShortStep("lipschitz")) for case in CASES],
    ids=str,
)
def test_short_step_bound_holds_on_the_whole_segment(loss, form, intercept, weighted, rule):
    """The curvature is a bound, and the step minimises the quadratic model that it gives."""
    problem, point = point_of(loss, form, intercept, weighted)
    if loss == "Poisson" and intercept and rule.curvature == "lipschitz":
        pytest.skip("no bound of the predictions with a free intercept")
    for line in lines(point):
        F = phi(problem, point, line)
        if rule.curvature == "lipschitz":
            curvature = problem.smoothness() * line.squared_length()
        else:
            curvature = line.curvature()
        for gamma in np.linspace(0.0, line.max_step, 21):
            model = F(0.0) + gamma * line.slope + 0.5 * gamma**2 * curvature
            assert F(gamma) <= model + 1e-12 * abs(model)
        gamma = rule.begin(problem).at(0, line)
        assert gamma == pytest.approx(min(line.max_step, -line.slope / curvature), rel=1e-12)


@pytest.mark.parametrize("form", ["C", "csr"])
def test_curvature_of_predictions_has_the_weights_of_the_samples(form):
    problem, point = point_of("Squared", form, weighted=True)
    X = problem.matrix.X.toarray() if form == "csr" else problem.matrix.X
    for line in lines(point):
        assert line.curvature() == pytest.approx(problem.samples.weight @ (X @ line.direction()) ** 2, rel=1e-12)


def test_curvature_of_predictions_is_the_smaller_one():
    problem, point = point_of("Logistic", "C")
    for line in lines(point):
        assert line.curvature() <= problem.smoothness() * line.squared_length() * (1 + 1e-12)


def test_predictions_on_a_segment_stay_below_what_it_says():
    """The intercept moves along: ten predictions fall from 0 to -2, and the eleventh rises above its 2."""
    X = scipy.sparse.csc_matrix(np.array([[-1.0]] * 10 + [[1.0]]))
    problem = cg.Problem(X, np.ones(11), cg.losses.Poisson(), cg.constraints.L1Ball(2.0), intercept=True)
    point = problem.point(np.zeros(1))
    line = point.segment(pull=0.0, parts=[(1.0, cg.constraints.Atom(0, 2.0))], slope=-1.0, max_step=1.0)
    reached = [np.abs(X @ w + problem.best_intercept(w)).max() for w in np.linspace(0.0, 2.0, 21)[:, None]]
    assert 2.2 < max(reached) <= line._largest_prediction()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["C", "csr"])
def test_lipschitz_constant(form, weighted):
    problem, _ = point_of("Logistic", form, weighted=weighted)
    X = problem.matrix.X.toarray() if form == "csr" else problem.matrix.X
    gram = X.T @ (problem.samples.weight[:, None] * X)
    assert problem.smoothness() == pytest.approx(0.25 * np.linalg.eigvalsh(gram)[-1], rel=1e-10)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("entry", [0.0, 2.0])
def test_lipschitz_constant_of_few_columns(d, entry):
    for X in (np.full((3, d), entry), scipy.sparse.csr_matrix(np.full((3, d), entry))):
        problem = cg.Problem(X, [1.0, 2.0, 3.0], cg.losses.Squared(), cg.constraints.L2Ball(1.0))
        assert problem.smoothness() == pytest.approx(d * entry**2, rel=1e-12)


@every_pair(("loss", "form", "intercept", "weighted"), CASES)
def test_backtracking_keeps_its_bound(loss, form, intercept, weighted):
    """Pedregosa et al., algorithm 2: F(w + gamma d) <= F(w) + gamma slope + gamma^2 M |d|^2 / 2, at each step."""
    problem, _ = point_of(loss, form, intercept, weighted)
    checked, most = [], []

    class Watched(StepSize):
        def begin(self, problem):
            self.rule = Backtracking().begin(problem)
            return self

        def at(self, t, line):
            gamma = self.rule.at(t, line)
            M = self.rule._M
            assert 0.0 <= gamma <= line.max_step
            bound = gamma * line.slope + 0.5 * gamma**2 * M * line.squared_length()
            F = phi(problem, line.point, line)
            assert F(gamma) - F(0.0) <= bound + 1e-12 * max(1.0, abs(F(0.0)))
            most.append(line.curvature() / line.squared_length())
            assert 2.0 * max(most) * (1.0 + 1e-12) >= M  # rounding does not drive the estimate away
            checked.append(t)
            return gamma

    for solver in (FrankWolfe, AwayStep, Pairwise):
        checked.clear()
        most.clear()
        cg.minimize(problem, solver(Watched()), tol=1e-12, max_steps=40)
        assert checked == list(range(len(checked)))
        assert checked


def test_open_loop():
    _, point = point_of("Squared", "C")
    line = towards(point, point.s, point.gap)
    assert [OpenLoop().at(t, line) for t in range(4)] == [1.0, 2.0 / 3.0, 0.5, 0.4]
    short = between(point, cg.constraints.Atom(0, 3.0), point.s, -1.0, 0.01)
    assert OpenLoop().at(0, short) == 0.01


@pytest.mark.parametrize(
    "rule",
    [
        OpenLoop(), LogAdaptive(), ShortStep(), ShortStep("lipschitz"), AutoConditioned(), ExactLineSearch(),
        SecantSearch(), Backtracking(),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("solver", [FrankWolfe, AwayStep, Pairwise])
def test_empty_columns(solver, rule):
    """A step between two features that no sample has touches no row at all."""
    X = scipy.sparse.csr_matrix(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]))
    problem = cg.Problem(X, [1.0, 1.0], cg.losses.Squared(), cg.constraints.Simplex())
    state = solver(rule).init(problem, np.array([0.5, 0.5, 0.0]))
    for t in range(5):
        solver(rule).step(problem, state, t)
    line = between(state.point, cg.constraints.Atom(0, 1.0), cg.constraints.Atom(1, 1.0), 0.0, 0.5)
    assert line.rows.size == 0
    assert 0.0 <= rule.begin(problem).at(1, line) <= 0.5
    assert line.change(0.25) == 0.0


@pytest.mark.parametrize(
    "rule",
    [ShortStep(), ShortStep("lipschitz"), AutoConditioned(), ExactLineSearch(), SecantSearch(), Backtracking()],
    ids=repr,
)
@pytest.mark.parametrize("slope", [0.0, 1e-18, 0.5])
def test_no_step_uphill(rule, slope):
    """Rounding can turn the slope at an optimum positive: the step is 0 then, never negative."""
    problem = cg.Problem(np.eye(2), [0.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    point = PredictionPoint(problem, np.zeros(2))
    line = towards(point, point.s, -slope)
    assert rule.begin(problem).at(0, line) == 0.0


def test_step_size_of_your_own():
    class Halves:
        def begin(self, problem):
            return self

        def at(self, t, line):
            return 0.5 * line.max_step

    problem, _ = point_of("Squared", "C")
    result = cg.minimize(problem, FrankWolfe(Halves()), max_steps=3, tol=0.0)
    assert result.n_steps == 3


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ShortStep("hessian"), "curvature of ShortStep must be 'predictions' or 'lipschitz'; got 'hessian'."),
        (lambda: Backtracking(tau=1.0), "tau of Backtracking must be a number above 1; got 1.0."),
        (lambda: Backtracking(tau=math.nan), "tau of Backtracking must be a number above 1; got nan."),
        (lambda: Backtracking(eta=0.0), "eta of Backtracking must be a number in (0, 1]; got 0.0."),
        (lambda: Backtracking(eta=1.5), "eta of Backtracking must be a number in (0, 1]; got 1.5."),
        (lambda: Backtracking(eta="half"), "eta of Backtracking must be a number in (0, 1]; got 'half'."),
        (lambda: as_number(True, "it", low=0.0, what="a number"), "it must be a number; got True."),
    ],
)
def test_settings_get_a_sentence(make, sentence):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == sentence


def test_step_size_must_be_a_rule():
    with pytest.raises(
        TypeError, match=r"^step_size must be a rule of condgrad.step_sizes such as OpenLoop\(\); got 0.1\.$"
    ):
        FrankWolfe(step_size=0.1)


# Newer rules -----------------------------------------------------------------------------------------------------


def test_log_adaptive_is_its_formula():
    for t in (0, 1, 10, 1000):
        order = 2.0 + math.log(t + 1.0)
        assert LogAdaptive().at(t, None) == pytest.approx(order / (t + order), rel=1e-15)
    problem, _ = point_of("Logistic", "C")
    assert LogAdaptive().on_estimates(problem, 1).at(7, None) == LogAdaptive().at(7, None)


def in_ball(radius=0.5):
    """Least squares over an l2 ball whose border holds the solution."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 10))
    return cg.Problem(X, X @ rng.standard_normal(10), cg.losses.Squared(), cg.constraints.L2Ball(radius))


def order_of(problem, solver, first, last):
    """The exponent of t in F(w_t) - F*, from a line through its logarithms between two steps."""
    low = cg.minimize(problem, "corrective", tol=1e-14, max_epochs=500).lower_bound
    trace = cg.minimize(problem, solver, tol=0.0, max_steps=last, evaluate_every=1e-9, max_epochs=1e9).trace
    is_used = trace.step >= first
    return np.polyfit(np.log(trace.step[is_used]), np.log(trace.objective[is_used] - low), 1)[0]


class Fourth(StepSize):
    """The open loop 4 / (t + 4)."""

    def at(self, t, line):
        return min(4.0 / (t + 4.0), line.max_step)


def test_log_adaptive_is_as_fast_as_every_open_loop_where_the_set_is_strongly_convex():
    """Over the ball l / (t + l) converges like t^-l: 2 and 4 do, and the log-adaptive one is faster than both."""
    orders = [order_of(in_ball(), FrankWolfe(rule), 30, 300) for rule in (OpenLoop(), Fourth(), LogAdaptive())]
    assert orders[0] == pytest.approx(-2.0, abs=0.3)
    assert orders[1] == pytest.approx(-4.0, abs=0.6)
    assert orders[2] < -5.0


@every_pair(("loss", "form", "intercept", "weighted"), CASES)
def test_secant_search_ends_where_the_slope_is_small(loss, form, intercept, weighted):
    problem, point = point_of(loss, form, intercept, weighted)
    for line in lines(point):
        gamma = SecantSearch(tol=0.05, max_slopes=60).at(0, line)
        end = line.slope + line.turn(gamma)
        assert abs(end) <= 0.05 * abs(line.slope) * (1 + 1e-9) or (gamma == line.max_step and end < 0.0)
        assert phi(problem, point, line)(gamma) < phi(problem, point, line)(0.0)


class LogCosh:
    """Terms log cosh(a_i'w - y_i) as a user would write them, with their means."""

    n_samples, n_features, is_convex = 40, 5, True

    def __init__(self):
        rng = np.random.default_rng(0)
        self.A, self.y = rng.standard_normal((40, 5)), 2.0 * rng.standard_normal(40)

    def value(self, i, w):
        return math.log(math.cosh(self.A[i] @ w - self.y[i]))

    def gradient(self, i, w):
        return math.tanh(self.A[i] @ w - self.y[i]) * self.A[i]


def test_secant_search_uses_fewer_passes_than_the_exact_one():
    """On terms of any form a slope is a pass."""
    problem = cg.GeneralProblem(LogCosh(), cg.constraints.L1Ball(1.0))
    rules = (SecantSearch(), ExactLineSearch())
    quick, exact = (cg.minimize(problem, FrankWolfe(rule), max_steps=30, tol=0.0) for rule in rules)
    assert quick.n_epochs < 0.7 * exact.n_epochs
    assert quick.objective <= exact.objective + 1e-3


@pytest.mark.parametrize("new", [FrankWolfe, AwayStep, Pairwise, cg.solvers.BlendedPairwise])
@pytest.mark.parametrize("loss", ["Squared", "Logistic"])
def test_auto_conditioned_steps_converge(new, loss):
    """Without L: F - F* falls like 1/t at least, and like the exact search on polytopes with away steps."""
    problem, _ = point_of(loss, "C", n=40, d=6)
    run = cg.minimize(problem, new(AutoConditioned()), max_steps=3000, tol=1e-6)
    best = cg.minimize(problem, "corrective", tol=1e-10)
    assert run.objective - best.objective <= (1e-3 if new is FrankWolfe else 1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["Squared", "Logistic"])
def test_auto_conditioned_steps_have_the_rate_of_short_steps(loss, seed):
    """F(w_t) - F* <= 4 L D^2 / (t + 2) for every t, as for short steps with the constant L known, times two."""
    problem, _ = point_of(loss, "C", seed=seed, n=60, d=20)
    best = cg.minimize(problem, "corrective", tol=1e-12)
    trace = cg.minimize(problem, FrankWolfe(AutoConditioned()), tol=0.0, max_steps=400, evaluate_every=1e-9).trace
    constant = problem.smoothness() * problem.constraint.diameter(2, 20) ** 2
    assert (trace.objective - best.lower_bound <= 4.0 * constant / (trace.step + 2.0)).all()


@pytest.mark.parametrize("new", [AwayStep, Pairwise, cg.solvers.BlendedPairwise])
def test_auto_conditioned_steps_are_linear_over_polytopes(new):
    """For a strongly convex F, with away or pairwise steps: each tenfold accuracy costs as many steps as the last."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 10))
    problem = cg.Problem(X, X @ rng.standard_normal(10), cg.losses.Squared(), cg.constraints.L1Ball(2.0))
    steps = [cg.minimize(problem, new(AutoConditioned()), tol=tol, max_epochs=10**5).n_steps for tol in (1e-5, 1e-10)]
    assert steps[1] <= 4 * steps[0] + 20


def test_auto_conditioned_steps_come_close_to_stationary_points():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    problem = cg.Problem(X, 3.0 * rng.standard_normal(40), cg.losses.Welsch(), cg.constraints.L1Ball(3.0))
    result = cg.minimize(problem, FrankWolfe(AutoConditioned()), tol=3e-3, max_steps=3000)
    assert result.status is cg.Status.CONVERGED


@pytest.mark.parametrize("rule", [AutoConditioned(), SecantSearch()], ids=repr)
def test_a_gradient_that_the_rule_has_computed_is_not_computed_again(rule):
    """On general terms: the last slope of the search is that at the new point, whose gradient the next step needs."""
    problem = cg.GeneralProblem(LogCosh(), cg.constraints.L1Ball(1.0))
    state = FrankWolfe(rule).init(problem, None)
    for t in range(8):
        FrankWolfe(rule).step(problem, state, t)
        np.testing.assert_allclose(state.point.r, problem.gradient(state.w), rtol=1e-10, atol=1e-12)
    if isinstance(rule, AutoConditioned):
        assert state.gradient_evaluations == 40 * (1 + 1 + 8)  # the start, the first quotient, one for each step


@pytest.mark.parametrize(
    "rule", [OpenLoop(), LogAdaptive(), AutoConditioned(), SecantSearch(), Backtracking(), ExactLineSearch()], ids=repr
)
def test_rules_take_matrices_in_factors(rule):
    rng = np.random.default_rng(0)
    rows, columns = np.divmod(rng.permutation(200)[:120], 20)
    ball = cg.constraints.NuclearBall(8.0)
    problem = cg.CompletionProblem(rows, columns, rng.standard_normal(120), cg.losses.Huber(1.0), ball, shape=(10, 20))
    result = cg.minimize(problem, FrankWolfe(rule), max_steps=60, tol=1e-6)
    assert result.gap < 0.05 * result.trace.gap[0]
    point = problem.point(result.w)
    dense = point.s.as_factored().to_dense() - point.Z.to_dense()
    assert towards(point, point.s, point.gap).squared_length() == pytest.approx(np.sum(dense**2), rel=1e-10)


def test_auto_conditioned_constant_is_the_largest_quotient():
    """For a quadratic, the quotient along d is d'Hd / d'd exactly."""
    problem, point = point_of("Squared", "C")
    rule, largest = AutoConditioned().begin(problem), 0.0
    H = problem.matrix.X.T @ (problem.samples.weight[:, None] * problem.matrix.X)
    for t, line in enumerate(lines(point)):
        d = line.direction()
        quotient = d @ H @ d / (d @ d)
        largest = max(largest, quotient) if t == 0 else largest
        gamma = rule.at(t, line)
        assert gamma == pytest.approx(min(line.max_step, -line.slope / (largest * (d @ d))), rel=1e-6)
        largest = max(largest, quotient)  # known after the step
    with pytest.raises(TypeError, match="stochastic solvers cannot use it"):
        cg.minimize(problem, cg.solvers.SFW(step_size=AutoConditioned()))


def test_bad_settings_of_the_secant_search():
    with pytest.raises(ValueError, match=r"tol of SecantSearch must be a number in \[0, 1\); got 1.0"):
        SecantSearch(tol=1.0)
    with pytest.raises(ValueError, match="max_slopes of SecantSearch"):
        SecantSearch(max_slopes=0)
