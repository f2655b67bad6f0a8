"""The deterministic solvers reach the optimum that SciPy finds, on every kind of data, feasible at every step."""

import functools
import itertools
import math

import numpy as np
import pytest
import references
from covering import every_pair, product_by_pairs
from tables import BY_RADIUS, FORMS, VERTICES
from tables import TWO_LOSSES as LOSSES

import condgrad as cg
from condgrad.problems.segment import towards
from condgrad.solvers import AwayStep, BlendedPairwise, FrankWolfe, Pairwise
from condgrad.step_sizes import Backtracking, OpenLoop, ShortStep

LINEAR = {
    "away": AwayStep,
    "pairwise": Pairwise,
    "bpcg": BlendedPairwise,
    "bpcg-eager": lambda step_size=None: BlendedPairwise(step_size, lazy=False),
}
KINDS = ("l1", "simplex")
EVERY_STEP = 1e-9  # a record after each step


@functools.cache
def data(loss, seed=0, n=24, d=6):
    """Half of the entries are zero, and all are exact in float32: every form holds the same numbers."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    X[:, 0] += 0.5
    X = X.astype(np.float32).astype(float)
    p = X @ rng.uniform(-1.0, 2.0, d) + 0.3 * rng.standard_normal(n)
    y = np.where(p > np.median(p), 1.0, -1.0) if loss == "Logistic" else p + 0.7
    weight = rng.integers(0, 4, n)  # zero weights too
    weight[:2] = 1
    return X, y, weight


@functools.cache
def reference(loss, kind, radius, weighted, intercept):
    X, y, weight = data(loss)
    found = references.Reference(
        X, y, loss, VERTICES[kind](X.shape[1], radius), weight=weight if weighted else None, intercept=intercept
    )
    return found, *found.optimum()


def problem_of(loss, kind, radius, weighted=False, intercept=False, form="C"):
    X, y, weight = data(loss)
    return cg.Problem(
        FORMS[form](X), y, LOSSES[loss], BY_RADIUS[kind](radius),
        sample_weight=weight if weighted else None, intercept=intercept,
    )  # fmt: skip


CASES = list(itertools.product(LOSSES, KINDS, (False, True), (False, True)))


@every_pair(
    ("solver", "form", "loss", "kind", "weighted", "intercept"),
    [
        (solver, form, *case)
        for solver in LINEAR
        for form in (FORMS if solver in ("pairwise", "bpcg") else ("C", "csr"))
        for case in CASES
    ],
)
def test_linear_solvers_reach_the_optimum(solver, loss, kind, weighted, intercept, form):
    radius = 2.0
    exact, w_best, F_best = reference(loss, kind, radius, weighted, intercept)
    problem = problem_of(loss, kind, radius, weighted, intercept, form)
    result = cg.minimize(problem, LINEAR[solver](), tol=1e-10, max_epochs=5000)
    assert result.status is cg.Status.CONVERGED
    assert result.gap <= 1e-10
    assert result.gap == problem.gap(result.w)
    assert exact.is_feasible(result.w)
    assert exact.objective(result.w) - F_best == pytest.approx(0.0, abs=1.1e-10)
    assert result.objective == pytest.approx(exact.objective(result.w), rel=1e-13, abs=1e-14)
    assert result.gap == pytest.approx(exact.gap(result.w), rel=1e-6, abs=1e-13)
    assert result.lower_bound <= F_best + 1e-14
    assert result.intercept == pytest.approx(exact.best_intercept(result.w), rel=1e-8, abs=1e-8)
    np.testing.assert_allclose(result.w, w_best, atol=1e-4)


@product_by_pairs(("solver", "loss", "kind", "radius"), LINEAR, LOSSES, KINDS, [0.01, 50.0])
def test_linear_solvers_at_other_radii(solver, loss, kind, radius):
    """At a radius of 50 the optimum is inside."""
    exact, _, F_best = reference(loss, kind, radius, False, False)
    result = cg.minimize(problem_of(loss, kind, radius), LINEAR[solver](), tol=1e-10, max_epochs=20_000)
    assert result.status is cg.Status.CONVERGED
    assert abs(exact.objective(result.w) - F_best) <= 1.1e-10
    assert exact.is_feasible(result.w)


@product_by_pairs(
    ("solver", "loss", "kind", "step_size"),
    LINEAR,
    LOSSES,
    KINDS,
    [ShortStep(), ShortStep("lipschitz"), Backtracking()],
    ids=str,
)
def test_linear_solvers_with_other_steps(solver, loss, kind, step_size):
    exact, _, F_best = reference(loss, kind, 2.0, True, False)
    problem = problem_of(loss, kind, 2.0, weighted=True, form="csr")
    result = cg.minimize(problem, LINEAR[solver](step_size), tol=1e-9, max_epochs=20_000)
    assert result.status is cg.Status.CONVERGED
    assert abs(exact.objective(result.w) - F_best) <= 1.1e-9


@pytest.mark.parametrize(("loss", "kind", "weighted", "intercept"), CASES)
def test_open_loop_keeps_the_bound(loss, kind, weighted, intercept):
    """Equation 10: F(w_t) - F* <= 2 L D_2^2 / (n t), here with D_2^2 / n the largest weighted mean of (x_i'd)^2."""
    radius = 2.0
    exact, _, F_best = reference(loss, kind, radius, weighted, intercept)
    L = {"Squared": 1.0, "Logistic": 0.25}[loss]
    P = exact.X @ exact.vertices.T
    diameter = max(exact.weight @ (P[:, i] - P[:, j]) ** 2 for i in range(P.shape[1]) for j in range(i))
    seen = []
    problem = problem_of(loss, kind, radius, weighted, intercept)
    result = cg.minimize(
        problem, FrankWolfe(OpenLoop()), tol=0.0, max_steps=300, evaluate_every=EVERY_STEP,
        callback=lambda progress: seen.append((progress.step, exact.objective(progress.w))),
    )  # fmt: skip
    assert result.status is cg.Status.MAX_STEPS
    assert [t for t, _ in seen] == list(range(301))
    for t, F in seen[1:]:
        assert F_best - 1e-14 <= F <= F_best + 2.0 * L * diameter / t


@pytest.mark.parametrize("form", ["C", "csr"])
@pytest.mark.parametrize("kind", KINDS)
def test_open_loop_is_the_textbook_loop(kind, form):
    """Twenty steps written out, with gamma_t = 2 / (t + 2) for t = 0, 1, ..."""
    exact, _, _ = reference("Logistic", kind, 2.0, True, False)
    problem = problem_of("Logistic", kind, 2.0, weighted=True, form=form)
    w = problem.constraint.start(problem.n_features).to_dense(problem.n_features)
    for t in range(20):
        s = exact.vertices[(exact.vertices @ exact.gradient(w)).argmin()]
        w = w + 2.0 / (t + 2.0) * (s - w)
    last = []
    cg.minimize(
        problem, FrankWolfe(OpenLoop()), tol=0.0, max_steps=20, evaluate_every=EVERY_STEP,
        callback=lambda progress: last.append(progress.w.copy()),
    )  # fmt: skip
    np.testing.assert_allclose(last[-1], w, rtol=1e-12, atol=1e-14)


ALL = {"fw": FrankWolfe, **LINEAR}


@product_by_pairs(
    ("solver", "loss", "kind", "step_size", "form", "intercept"),
    ALL,
    LOSSES,
    KINDS,
    [None, ShortStep(), ShortStep("lipschitz"), Backtracking()],
    ["csc", "F"],
    [False, True],
    ids=str,
)
def test_each_step_is_feasible_exact_and_down(solver, loss, kind, step_size, intercept, form):
    problem = problem_of(loss, kind, 2.0, intercept=intercept, form=form)
    _exact, _, F_best = reference(loss, kind, 2.0, False, intercept)
    previous = [math.inf]

    def check(progress):
        assert problem.constraint.violation(progress.w) <= 1e-14 * 2.0
        F = problem.objective(progress.w)
        assert progress.objective == pytest.approx(F, rel=1e-12, abs=1e-13)
        assert progress.gap == pytest.approx(problem.gap(progress.w), rel=1e-9, abs=1e-12)
        assert previous[0] + 1e-13 >= F >= F_best - 1e-13
        assert progress.lower_bound <= F_best + 1e-13
        previous[0] = F

    cg.minimize(problem, ALL[solver](step_size), tol=1e-9, max_steps=60, evaluate_every=EVERY_STEP, callback=check)
    assert previous[0] < math.inf


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_weights_are_repeated_rows(loss, intercept):
    X, y, weight = data(loss)
    ball = cg.constraints.L1Ball(2.0)
    weighted = cg.Problem(X, y, LOSSES[loss], ball, sample_weight=weight, intercept=intercept)
    repeated = cg.Problem(np.repeat(X, weight, axis=0), np.repeat(y, weight), LOSSES[loss], ball, intercept=intercept)
    w = np.random.default_rng(1).uniform(-0.3, 0.3, X.shape[1])
    assert weighted.objective(w) == pytest.approx(repeated.objective(w), rel=1e-13)
    np.testing.assert_allclose(weighted.gradient(w), repeated.gradient(w), rtol=1e-10, atol=1e-13)
    results = [cg.minimize(problem, "pairwise", tol=1e-11) for problem in (weighted, repeated)]
    np.testing.assert_allclose(results[0].w, results[1].w, atol=1e-5)
    assert results[0].objective == pytest.approx(results[1].objective, abs=2e-11)


@pytest.mark.parametrize("form", ["C", "csr"])
@pytest.mark.parametrize("solver", ALL)
def test_the_same_run_twice(solver, form):
    problem = problem_of("Logistic", "l1", 2.0, intercept=True, form=form)
    results = [cg.minimize(problem, ALL[solver](), tol=1e-8, max_steps=200) for _ in range(2)]
    assert results[0].w.tobytes() == results[1].w.tobytes()
    for column in set(cg.Trace.columns) - {"seconds"}:
        np.testing.assert_array_equal(results[0].trace[column], results[1].trace[column])


# What an active set must keep true -------------------------------------------------------------------------------


@product_by_pairs(
    ("solver", "kind", "step_size"), LINEAR, KINDS, [None, OpenLoop(), ShortStep(), Backtracking()], ids=str
)
def test_active_set_is_the_iterate(solver, kind, step_size):
    problem = problem_of("Squared", kind, 2.0, form="csc")
    rule = LINEAR[solver](step_size)
    state = rule.init(problem, None)
    n_dropped = 0
    for t in range(200):
        before = {state.active.vertex(k).key() for k in range(len(state.active))}
        rule.step(problem, state, t)
        active = state.active
        assert active.weights.min() > 0.0  # an atom without weight has left
        assert active.weights.sum() == pytest.approx(1.0, abs=1e-13)
        keys = [active.vertex(k).key() for k in range(len(active))]
        assert len(set(keys)) == len(keys)
        n_dropped += len(before - set(keys))
        w = sum(weight * active.vertex(k).to_dense(problem.n_features) for k, weight in enumerate(active.weights))
        np.testing.assert_allclose(state.w, w, atol=1e-13)
        np.testing.assert_allclose(state.point.p, problem.matrix.dot(state.w), atol=1e-12)
        assert problem.constraint.violation(state.w) <= 1e-13
    assert n_dropped > 0 or isinstance(step_size, OpenLoop)
    support = {active.vertex(k).index for k in range(len(active))}
    assert set(np.flatnonzero(abs(state.w) > 1e-14)) <= support


@pytest.mark.parametrize("solver", LINEAR)
def test_warm_start_from_the_inside(solver):
    """A point inside the ball is a combination of vertices, and the run from there stays feasible."""
    problem = problem_of("Logistic", "l1", 2.0)
    w0 = np.array([0.5, -0.25, 0.0, 0.0, 0.1, 0.0])
    state = LINEAR[solver]().init(problem, w0)
    np.testing.assert_allclose(state.w, w0, atol=1e-15)
    result = cg.minimize(problem, LINEAR[solver](), w0=w0, tol=1e-10)
    assert result.status is cg.Status.CONVERGED
    assert result.trace.objective[0] == pytest.approx(problem.objective(w0), rel=1e-14)


@pytest.mark.parametrize("solver", LINEAR)
def test_atom_with_all_the_weight(solver):
    """An atom whose weight rounds to 1 beside a tiny one: an away step has no end there, and must not divide by 0."""
    problem = cg.Problem(np.eye(2), [1.0, 1.0], cg.losses.Squared(), cg.constraints.Simplex())
    w0 = np.array([1.0, 1e-20])
    result = cg.minimize(problem, LINEAR[solver](), w0=w0, tol=1e-12)
    np.testing.assert_allclose(result.w, [0.5, 0.5], atol=1e-6)


# Other sets ------------------------------------------------------------------------------------------------------


def signs(d):
    return np.array(list(itertools.product((-1.0, 1.0), repeat=d)))


def k_sparse(d, k):
    rows = []
    for chosen in itertools.combinations(range(d), k):
        for sign in signs(k):
            rows.append(np.zeros(d))
            rows[-1][list(chosen)] = sign
    return np.array(rows)


HULL = np.random.default_rng(5).standard_normal((9, 4))
POLYTOPES = {
    "Box": (cg.constraints.Box(-0.5, 0.4), references.box_vertices([-0.5] * 4, [0.4] * 4)),
    "Box-arrays": (cg.constraints.Box([-0.5, 0.0, -1.0, 0.1], [0.4, 0.2, 1.0, 0.1]),
                   references.box_vertices([-0.5, 0.0, -1.0, 0.1], [0.4, 0.2, 1.0, 0.1])),
    "LinfBall": (cg.constraints.LinfBall(0.3), 0.3 * signs(4)),
    "KSparsePolytope": (cg.constraints.KSparsePolytope(k=2, radius=0.5), 0.5 * k_sparse(4, 2)),
    "Hypersimplex": (cg.constraints.Hypersimplex(k=2, radius=0.5), 0.5 * abs(k_sparse(4, 2))),
    "ConvexHull": (cg.constraints.ConvexHull(HULL), HULL),
    "Polytope": (
        cg.constraints.Polytope(A_ub=[[1.0, 1.0, 1.0, 1.0]], b_ub=[1.0], bounds=(0.0, None)),
        np.vstack([np.zeros(4), np.eye(4)]),
    ),
    "Product": (
        cg.constraints.Product([cg.constraints.Simplex(), cg.constraints.L1Ball(0.5)], sizes=[2, 2]),
        np.array([[*a, *b] for a in np.eye(2) for b in references.l1_vertices(2, 0.5)]),
    ),
    "NonnegativeL1Ball": (cg.constraints.NonnegativeL1Ball(0.8), np.vstack([np.zeros(4), 0.8 * np.eye(4)])),
    "WeightedL1Ball": (
        cg.constraints.WeightedL1Ball(1.0, weights=[1.0, 2.0, 4.0, 0.5]),
        np.vstack([np.diag([1.0, 0.5, 0.25, 2.0]), -np.diag([1.0, 0.5, 0.25, 2.0])]),
    ),
    "Shift": (cg.constraints.Shift(cg.constraints.L1Ball(1.0), offset=[0.3, 0.0, 0.0, -0.3]),
              references.l1_vertices(4, 1.0) + [0.3, 0.0, 0.0, -0.3]),
    "Scale": (cg.constraints.Scale(cg.constraints.Simplex(), -2.0), -2.0 * np.eye(4)),
}  # fmt: skip


@product_by_pairs(("solver", "name", "form", "warm"), LINEAR, POLYTOPES, ["C", "csr"], [False, True])
def test_polytopes(solver, name, form, warm):
    constraint, vertices = POLYTOPES[name]
    X, y, _ = data("Logistic", n=30, d=4)
    problem = cg.Problem(FORMS[form](X), y, cg.losses.Logistic(), constraint)
    exact = references.Reference(X, y, "Logistic", vertices)
    tol = 1e-8 if name == "Polytope" else 1e-10  # HiGHS finds vertices to 1e-10
    w0 = vertices.mean(axis=0) if warm else None
    result = cg.minimize(problem, LINEAR[solver](), tol=tol, w0=w0, max_epochs=5000)
    assert result.status is cg.Status.CONVERGED
    assert exact.is_feasible(result.w)
    assert exact.gap(result.w) <= 2.0 * tol  # all vertices, listed by hand: the optimum is certified


ROUND = {
    "L2Ball": (cg.constraints.L2Ball(0.6), lambda w: np.linalg.norm(w) / 0.6),
    "LpBall": (cg.constraints.LpBall(p=3.0, radius=0.6), lambda w: np.linalg.norm(w, 3.0) / 0.6),
    "GroupBall": (
        cg.constraints.GroupBall(groups=[0, 1, 0, 1], radius=0.6),
        lambda w: (np.linalg.norm(w[[0, 2]]) + np.linalg.norm(w[[1, 3]])) / 0.6,
    ),
}


@product_by_pairs(("solver", "name", "form"), ALL, ROUND, ["C", "csr"])
def test_round_sets(solver, name, form):
    constraint, gauge = ROUND[name]
    X, y, _ = data("Squared", n=30, d=4)
    problem = cg.Problem(FORMS[form](X), y, cg.losses.Squared(), constraint)
    result = cg.minimize(
        problem, ALL[solver](), tol=1e-5, max_epochs=20_000, callback=lambda progress: gauge(progress.w) > 1.0 + 1e-12
    )
    assert result.status is cg.Status.CONVERGED
    # The dual norm, by another way than the oracle: <r, w> - min over the ball, over many points of its boundary.
    r = X.T @ (X @ result.w - y) / len(y)
    points = np.random.default_rng(2).standard_normal((2000, 4))
    points = points / np.array([gauge(point) for point in points])[:, None]
    assert r @ result.w - (points @ r).min() <= result.gap + 1e-12


class UserSimplex:
    """A user's own set: nothing but an oracle."""

    def lmo(self, r):
        s = np.zeros_like(r)
        s[r.argmin()] = 2.0
        return s


@pytest.mark.parametrize("solver", ALL)
def test_users_own_set(solver):
    X, y, _ = data("Squared")
    exact, _, F_best = reference("Squared", "simplex", 2.0, False, False)
    problem = cg.Problem(X, y, cg.losses.Squared(), UserSimplex())
    result = cg.minimize(problem, ALL[solver](), tol=1e-4 if solver == "fw" else 1e-10)
    assert result.status is cg.Status.CONVERGED
    assert exact.objective(result.w) - F_best <= result.gap + 1e-12
    again = cg.minimize(problem, ALL[solver](), tol=1e-3, w0=exact.vertices.mean(axis=0))
    assert again.status is cg.Status.CONVERGED


@pytest.mark.parametrize("solver", LINEAR)
def test_users_own_compiled_atomic_set_from_a_warm_start(solver):
    """It has atoms but no ``decompose``: the active set starts with w0 itself."""
    problem = cg.Problem(*data("Squared")[:2], cg.losses.Squared(), atomic_set()(2.0))
    result = cg.minimize(problem, LINEAR[solver](), tol=1e-10, w0=np.full(6, 2.0 / 6.0))
    assert result.status is cg.Status.CONVERGED


@functools.cache
def atomic_set():
    from typing import NamedTuple

    from condgrad.constraints import Atom, constraint_set

    @constraint_set
    class Mixtures(NamedTuple):
        radius: float
        vertex = Atom
        is_polytope = True

        def lmo(self, r):
            return Atom(r.argmin(), self.radius)

    return Mixtures


def test_auto_takes_any_atomic_set():
    """What "auto" chooses must serve sets that know their oracle alone, and multiples of others."""
    X, y, _ = data("Squared")
    _, _, F_best = reference("Squared", "simplex", 2.0, False, False)
    for constraint in (atomic_set()(2.0), cg.constraints.Scale(cg.constraints.Simplex(), 2.0), UserSimplex()):
        result = cg.minimize(cg.Problem(X, y, cg.losses.Squared(), constraint), tol=1e-6)
        assert result.status is cg.Status.CONVERGED
        assert abs(result.objective - F_best) <= 1.1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_gradient_follows_the_rows_that_a_step_moves(loss, form):
    """On sparse data a pairwise step renews the gradient by the rows of two columns; full passes come in between."""
    rng = np.random.default_rng(8)
    X = FORMS[form](rng.standard_normal((300, 80)) * (rng.random((300, 80)) < 0.02))
    y = np.sign(X @ rng.standard_normal(80) + 0.1)
    problem = cg.Problem(X, y, LOSSES[loss], cg.constraints.L1Ball(3.0), sample_weight=rng.random(300))
    solver = Pairwise()
    state = solver.init(problem, None)
    touched = [0]
    for t in range(120):
        solver.step(problem, state, t)
        touched.append(state.point._touched)
        np.testing.assert_allclose(state.point.p, problem.matrix.dot(state.w), rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.point.r, problem.gradient(state.w), rtol=0, atol=1e-13)
    growth = np.diff(touched)
    assert np.count_nonzero(growth > 0) > 60  # most steps touch some rows only
    assert 1 < np.count_nonzero(growth < 0) < 60  # and all is computed anew where they have touched as much as a pass
    assert max(touched) < problem.matrix.n_stored


@pytest.mark.parametrize("form", ["C", "csr"])
def test_lazy_blended_pairwise_spares_gradients_and_oracle_calls(form):
    X, y, _ = data("Logistic", n=60, d=30)
    problem = cg.Problem(FORMS[form](X), y, LOSSES["Logistic"], cg.constraints.L1Ball(8.0))
    lazy, eager = (cg.minimize(problem, BlendedPairwise(lazy=lazy), tol=1e-8) for lazy in (True, False))
    assert lazy.status is eager.status is cg.Status.CONVERGED
    assert lazy.n_lmo < 0.7 * eager.n_lmo
    assert lazy.n_lmo < lazy.n_steps
    box = cg.Problem(FORMS[form](X), y, LOSSES["Logistic"], cg.constraints.Box(-1.0, 1.0))
    assert BlendedPairwise().init(problem, None).phi > 0.0
    assert BlendedPairwise().init(box, None).phi is None  # its vertices are no single features


@pytest.mark.parametrize("form", ["C", "csr"])
def test_a_point_is_evaluated_though_nobody_has_looked(form):
    X, y, weight = data("Logistic")
    problem = cg.Problem(FORMS[form](X), y, LOSSES["Logistic"], cg.constraints.L1Ball(1.0), sample_weight=weight)
    point = problem.point(np.zeros(X.shape[1]))
    for differentiates in (False, True):
        point.move(towards(point, point.s, point.gap), 0.3, asks=False)
        if differentiates:
            point.differentiate()
        assert point.gap == np.inf
        found, exact = point.evaluate(), problem.evaluate(point.w)
        assert found.gap == point.gap == pytest.approx(exact.gap, rel=1e-12)
        np.testing.assert_allclose(found.gradient, exact.gradient, rtol=0, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_lazy_asks_the_oracle_less_often(loss):
    """Every vertex that it takes is good enough for Phi, and the oracle is asked where none of those seen is."""
    X, y, _ = data(loss)
    calls = []

    def lmo(r):
        calls.append(r)
        s = np.zeros(r.size)
        s[np.argmax(np.abs(r))] = -np.sign(r[np.argmax(np.abs(r))])
        return s

    lazy = cg.solvers.LazyFrankWolfe()
    problem = cg.Problem(X, y, LOSSES[loss], cg.constraints.OracleSet(lmo))
    state = lazy.init(problem, None)
    calls.clear()
    for t in range(60):
        w, seen, phi, n_calls = state.w.copy(), list(state.seen.vertices), state.phi, len(calls)
        r = problem.gradient(w)
        gaps = [r @ (w - v.values) for v in seen]
        gap = problem.over(cg.constraints.L1Ball(1.0)).gap(w)
        lazy.step(problem, state, t)
        assert len(calls) - n_calls == (max(gaps) < phi / 2.0)
        lowered = phi if max(*gaps, gap) >= phi / 2.0 else min(phi / 2.0, gap)
        assert state.phi == pytest.approx(lowered, rel=1e-9)
        d = state.w - w  # towards a vertex that is good enough
        assert r @ d <= 1e-14
        assert problem.objective(state.w) <= problem.objective(w) + 1e-14
    assert len(calls) < 40
    assert len(state.seen) <= 12  # no vertex is kept twice
    found = cg.minimize(problem, lazy, tol=1e-4)
    assert found.status is cg.Status.CONVERGED
    assert found.n_lmo < cg.minimize(problem, "fw", tol=1e-4).n_lmo  # records ask it too, but thin out


@pytest.mark.parametrize("form", ["C", "csr"])
def test_steps_among_atoms_do_not_hide_the_gap(form):
    """The target is inside the simplex: all features have weight in the end, and none of them a gap for long."""
    target = np.random.default_rng(0).random(1000)
    target /= target.sum()
    problem = cg.Problem(FORMS[form](np.eye(1000)), target, cg.losses.Squared(), cg.constraints.Simplex())
    result = cg.minimize(problem, "bpcg", tol=1e-10, max_steps=5000)
    assert result.status is cg.Status.CONVERGED
    assert result.n_steps < 4000
    assert result.gap > 1e-13  # it does not go on when it is done


def test_lazy_refuses_an_accuracy_below_one():
    with pytest.raises(ValueError, match=r"accuracy of LazyFrankWolfe must be a number of at least 1; got 0\.5"):
        cg.solvers.LazyFrankWolfe(accuracy=0.5)
