"""lasso_path: equal to scikit-learn's, certified by brute force, for every kind of data."""

import signal

import numpy as np
import pytest
import scipy.sparse
from covering import every_choice
from sklearn.linear_model import ElasticNet, Lasso
from sklearn.linear_model import lasso_path as sklearn_path

import condgrad as cg
from condgrad.linalg.matrix import Matrix
from condgrad.paths import engine as engine_module
from condgrad.paths import lasso
from condgrad.paths.clusters import factor, find_clusters
from condgrad.paths.columns import make_columns
from condgrad.paths.engine import ExactEngine, GramSolver
from condgrad.paths.leaps import Leaps
from condgrad.paths.least_squares import Goal, LeastSquares, Residual
from condgrad.paths.newton import solve_kkt
from condgrad.paths.oracle import LazyOracle
from condgrad.paths.sweep_solver import SweepSolver
from condgrad.paths.sweeps import sweep
from condgrad.paths.working_set import Atoms, WorkingSet


def regression(n, d, seed, density=1.0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 3.0, d)
    X[rng.random((n, d)) > density] = 0.0
    w = np.where(rng.random(d) < 0.3, rng.standard_normal(d), 0.0)
    return X, X @ w + noise * rng.standard_normal(n)


def gap_from_scratch(X, y, w, radius=None, alpha=None, weight=None, scale=1.0, intercept=0.0):
    """The exact gap relative to the objective at zero, in plain numpy; ``scale`` divides features."""
    X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    weight = np.full(y.size, 1.0 / y.size) if weight is None else weight / weight.sum()
    target = y - weight @ y if intercept is not None and intercept != 0.0 else y
    X, w = X / scale, w * scale
    R = y - X @ w - (intercept or 0.0)
    r = -X.T @ (weight * R)
    zero = 0.5 * weight @ target**2
    if alpha is None:
        return (r @ w + radius * np.abs(r).max()) / zero
    R_R = weight @ R**2
    share = min((weight * R) @ target / R_R, alpha / np.abs(r).max())
    primal = 0.5 * weight @ R**2 + alpha * np.abs(w).sum()
    return (primal - (share * (weight * R) @ target - 0.5 * share**2 * weight @ R**2)) / zero


@pytest.fixture(autouse=True)
def way(request, monkeypatch):
    """These data are small: solve their paths as those of large data all the same, unless a test asks for every way."""
    way = getattr(request, "param", "large")
    if way == "large":
        monkeypatch.setattr(lasso, "_SMALL", 0)
    monkeypatch.setattr(lasso, "is_tall", lambda X, n_targets: way == "tall")


EVERY_WAY = pytest.mark.parametrize("way", ["large", "small", "tall"], indirect=True)

KINDS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_matrix,
    "float32": lambda X: np.asfortranarray(X, dtype=np.float32),
}


@EVERY_WAY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(30, 90), (120, 15), (40, 40)])
def test_equals_scikit_learn(kind, shape):
    X, y = regression(*shape, seed=1, density=0.6)
    X = X.astype(np.float32).astype(np.float64)
    alphas = np.abs(X.T @ y).max() / y.size * np.geomspace(1.0, 1e-2, 12)
    theirs = sklearn_path(X, y, alphas=alphas, tol=1e-12, max_iter=100_000)[1]
    radii, coefs, info = cg.lasso_path(KINDS[kind](X), y, alphas=alphas, tol=1e-10)
    np.testing.assert_allclose(coefs.toarray(), theirs, atol=1e-5 * np.abs(theirs).max())
    np.testing.assert_allclose(radii, np.abs(theirs).sum(axis=0), rtol=1e-5, atol=1e-12)
    assert ((coefs.toarray() != 0) == (np.abs(theirs) > 1e-9)).mean() > 0.99
    mine, other = (0.5 * ((y[:, None] - X @ w) ** 2).mean(axis=0) for w in (coefs.toarray(), theirs))
    np.testing.assert_allclose(mine, other, rtol=1e-6)
    np.testing.assert_allclose(info.objective, mine, rtol=1e-9)
    np.testing.assert_array_equal(info.alpha, alphas)
    assert info.relative_gap.max() <= 1e-10
    assert info.status is cg.Status.CONVERGED


@EVERY_WAY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_gaps_are_exact(kind, tol):
    X, y = regression(50, 200, seed=2, density=0.5)
    X = KINDS[kind](X)
    radii, coefs, info = cg.lasso_path(X, y, n_radii=15, tol=tol)
    assert coefs.format == "csc"
    assert coefs.shape == (200, 15)
    for k in range(15):
        gap = gap_from_scratch(X, y, coefs[:, k].toarray().ravel(), radius=radii[k])
        assert gap <= tol * (1 + 1e-6) + 1e-14
        assert info.relative_gap[k] == pytest.approx(gap, abs=1e-12)
        assert abs(coefs[:, k]).sum() <= radii[k] * (1 + 1e-12)
    np.testing.assert_allclose(radii[1:] / radii[:-1], 100 ** (1 / 14))
    np.testing.assert_array_equal(info.n_nonzero, np.diff(coefs.indptr))


@EVERY_WAY
def test_radius_and_alpha_are_two_names_of_one_solution():
    X, y = regression(60, 80, seed=3)
    radii, coefs, info = cg.lasso_path(X, y, n_radii=10, tol=1e-12)
    radii_again, coefs_again, _ = cg.lasso_path(X, y, alphas=info.alpha, tol=1e-12)
    np.testing.assert_allclose(radii_again, radii, rtol=1e-5)
    np.testing.assert_allclose(coefs_again.toarray(), coefs.toarray(), atol=1e-5 * abs(coefs).max())
    assert info.alpha[-1] == pytest.approx(1e-2 * np.abs(X.T @ y).max() / y.size, rel=1e-2)  # eps * lambda_max


@EVERY_WAY
def test_agrees_with_minimize():
    X, y = regression(40, 60, seed=4)
    radii, coefs, info = cg.lasso_path(X, y, radii=[0.5, 2.0], tol=1e-10)
    for k, radius in enumerate(radii):
        problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(radius))
        result = cg.minimize(problem, "corrective", tol=1e-10)
        assert info.objective[k] == pytest.approx(result.objective, rel=1e-8)
        assert problem.objective(coefs[:, k].toarray().ravel()) == pytest.approx(info.objective[k], rel=1e-12)


@EVERY_WAY
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_intercept(sparse, weighted):
    X, y = regression(50, 70, seed=5, density=0.4)
    X[:, :20] += 3.0
    y = y + 10.0
    weight = np.random.default_rng(5).uniform(0.1, 2.0, 50) if weighted else None
    data = scipy.sparse.csr_matrix(X) if sparse else X
    alphas = np.array([0.5, 0.05])
    _, coefs, info = cg.lasso_path(data, y, alphas=alphas, fit_intercept=True, sample_weight=weight, tol=1e-12)
    for k, alpha in enumerate(alphas):
        model = Lasso(alpha, tol=1e-13, max_iter=100_000).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(coefs[:, k].toarray().ravel(), model.coef_, atol=1e-6)
        assert info.intercept[k] == pytest.approx(model.intercept_, abs=1e-6)
        w = np.ones(50) if weight is None else weight
        gap = gap_from_scratch(X, y, coefs[:, k].toarray().ravel(), alpha=alpha, weight=w, intercept=info.intercept[k])
        assert gap <= 1e-11


@pytest.mark.parametrize("kind", ["F", "csc"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_standardize(kind, fit_intercept):
    X, y = regression(40, 50, seed=6, density=0.5)
    spread = X.std(axis=0) if fit_intercept else np.sqrt((X**2).mean(axis=0))
    kwargs = {"fit_intercept": fit_intercept, "tol": 1e-12, "radii": [0.3, 3.0]}
    _, coefs, info = cg.lasso_path(KINDS[kind](X), y, standardize=True, **kwargs)
    _, plain, plain_info = cg.lasso_path(X / spread, y, **kwargs)
    np.testing.assert_allclose(coefs.toarray() * spread[:, None], plain.toarray(), atol=1e-7)
    np.testing.assert_allclose(info.intercept, plain_info.intercept, atol=1e-7)
    np.testing.assert_allclose(np.abs(coefs.toarray() * spread[:, None]).sum(axis=0), [0.3, 3.0], rtol=1e-9)


@EVERY_WAY
def test_weights_count_samples():
    X, y = regression(30, 20, seed=7)
    weight = np.array([0, 1, 2] * 10)
    rows = np.repeat(np.arange(30), weight)
    for intercept in (False, True):
        kwargs = {"alphas": [0.3, 0.01], "tol": 1e-12, "fit_intercept": intercept}
        _, coefs, info = cg.lasso_path(X, y, sample_weight=weight, **kwargs)
        _, repeated, other = cg.lasso_path(X[rows], y[rows], **kwargs)
        np.testing.assert_allclose(coefs.toarray(), repeated.toarray(), atol=1e-7)
        np.testing.assert_allclose(info.objective, other.objective, rtol=1e-8)


@EVERY_WAY
@pytest.mark.parametrize("kind", ["F", "csc"])
def test_duplicated_collinear_constant_and_zero_columns(kind):
    X, y = regression(25, 30, seed=8)
    X[:, 10:20] = X[:, :10]  # duplicates
    X[:, 20] = -X[:, 0]
    X[:, 21] = X[:, 1] + X[:, 2]
    X[:, 22] = 0.0
    X[:, 23] = 4.0
    X[:, 24:] = X[:, :6] @ np.random.default_rng(8).standard_normal((6, 6))
    for intercept in (False, True):
        radii, coefs, info = cg.lasso_path(KINDS[kind](X), y, n_radii=20, eps=1e-4, tol=1e-9, fit_intercept=intercept)
        assert info.status is cg.Status.CONVERGED
        for k in range(20):
            w, b = coefs[:, k].toarray().ravel(), info.intercept[k]
            assert gap_from_scratch(X, y, w, radius=radii[k], intercept=b) <= 1.1e-9
        assert not coefs.toarray()[22].any()
        if intercept:
            assert not coefs.toarray()[23].any()


@EVERY_WAY
def test_more_columns_than_samples_until_the_fit_is_perfect():
    X, y = regression(12, 60, seed=9)
    radii, coefs, info = cg.lasso_path(X, y, eps=1e-7, tol=1e-10)
    assert info.status is cg.Status.CONVERGED
    assert info.objective[-1] <= 1e-6 * 0.5 * (y @ y) / 12
    for k in range(radii.size):
        assert gap_from_scratch(X, y, coefs[:, k].toarray().ravel(), radius=radii[k]) <= 1.1e-10


@EVERY_WAY
@pytest.mark.parametrize("kind", ["F", "csc"])
def test_radius_beyond_least_squares(kind):
    X, y = regression(60, 8, seed=10)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    radii = np.abs(best).sum() * np.array([0.5, 1.5, 100.0])
    _, coefs, info = cg.lasso_path(KINDS[kind](X), y, radii=radii, tol=1e-11)
    np.testing.assert_allclose(coefs[:, 1].toarray().ravel(), best, atol=1e-8)
    np.testing.assert_allclose(coefs[:, 2].toarray().ravel(), best, atol=1e-8)
    assert info.alpha[1] < 1e-9 * info.alpha[0]
    assert info.status is cg.Status.CONVERGED


@EVERY_WAY
def test_radius_zero_and_penalties_with_zero_solutions():
    X, y = regression(20, 10, seed=11)
    largest = np.abs(X.T @ y).max() / 20
    _, coefs, info = cg.lasso_path(X, y, radii=[0.0, 1.0])
    assert coefs[:, 0].nnz == 0
    assert info.alpha[0] == pytest.approx(largest)
    assert info.gap[0] == 0.0
    radii, coefs, info = cg.lasso_path(X, y, alphas=[2 * largest, largest])
    assert coefs.nnz == 0
    np.testing.assert_array_equal(radii, 0.0)
    assert info.relative_gap.max() <= 1e-14


@EVERY_WAY
@pytest.mark.parametrize("intercept", [False, True])
def test_nothing_to_explain(intercept):
    X, _ = regression(20, 10, seed=12)
    y = np.full(20, 3.0 if intercept else 0.0)
    radii, coefs, info = cg.lasso_path(X, y, n_radii=5, fit_intercept=intercept)
    assert coefs.nnz == 0
    np.testing.assert_array_equal(radii, 0.0)
    np.testing.assert_array_equal(info.relative_gap, 0.0)
    np.testing.assert_allclose(info.intercept, y[0])
    radii, coefs, info = cg.lasso_path(X, y, radii=[1.0], fit_intercept=intercept)
    assert coefs.nnz == 0


@EVERY_WAY
def test_order_of_the_grid_is_the_users():
    X, y = regression(30, 40, seed=13)
    asked = np.array([2.0, 0.5, 1.0])
    radii, coefs, _ = cg.lasso_path(X, y, radii=asked, tol=1e-12)
    _, ascending, _ = cg.lasso_path(X, y, radii=np.sort(asked), tol=1e-12)
    np.testing.assert_array_equal(radii, asked)
    np.testing.assert_allclose(coefs.toarray(), ascending.toarray()[:, [2, 0, 1]], atol=1e-9)


@pytest.mark.parametrize("kind", ["F", "csc"])
def test_the_oracle_never_misses(kind, monkeypatch):
    """At every call, the largest correlation that the lazy oracle proves is the largest of all."""
    calls = []
    move_and_scan = LazyOracle.move_and_scan

    def checked(self, R, a, mu, threshold, level):
        answer = move_and_scan(self, R, a, mu, threshold, level)
        every = np.array([abs(self.columns.correlation(j, a, mu)) for j in range(self.bounds.key.size)])
        bounds = self.bounds.upper()
        assert every[bounds < every * (1 - 1e-12) - 1e-14].size == 0  # each move allows for rounding of this size
        assert max(answer.largest, threshold) >= every.max() * (1 - 1e-12)
        above = max(threshold, level) * (1 + 1e-12) + 1e-14
        assert set(np.flatnonzero(every > above)) <= set(answer.features)
        calls.append(answer.features.size)
        return answer

    monkeypatch.setattr(LazyOracle, "move_and_scan", checked)
    for seed in range(4):
        X, y = regression(20, 60, seed=seed, density=0.5)
        _, _, info = cg.lasso_path(KINDS[kind](X), y, n_radii=10, tol=1e-7, fit_intercept=bool(seed % 2))
        assert info.relative_gap.max() <= 1e-7
        assert info.columns_seen < 60 * info.n_looks
    assert len(calls) > 40


@pytest.mark.slow
@every_choice(("kind", "fit_intercept"), ["F", "csc"], [False, True])
def test_sweeps_reach_the_same_points(kind, fit_intercept, monkeypatch):
    """The solver for very large working sets, made to serve small ones."""
    X, y = regression(80, 150, seed=14, density=0.4)
    kwargs = {"n_radii": 12, "tol": 1e-9, "fit_intercept": fit_intercept, "standardize": True}
    radii, coefs, _ = cg.lasso_path(KINDS[kind](X), y, **kwargs)
    monkeypatch.setattr(GramSolver, "_is_outgrown", lambda self, tol: True)
    again, swept, info = cg.lasso_path(KINDS[kind](X), y, **kwargs)
    assert info.status is cg.Status.CONVERGED
    np.testing.assert_allclose(again, radii, rtol=1e-3)
    _, swept, info = cg.lasso_path(KINDS[kind](X), y, **{**kwargs, "radii": radii})
    np.testing.assert_allclose(swept.toarray(), coefs.toarray(), atol=1e-3 * abs(coefs).max())
    beyond = 10 * radii[-1:]
    _, _, info = cg.lasso_path(KINDS[kind](X[:, :20]), y, radii=beyond, tol=1e-9)
    assert info.status is cg.Status.CONVERGED


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("is_pruned", [False, True])
def test_penalties_of_a_text_with_near_equal_words(tol, weighted, is_pruned, monkeypatch):
    """Sweeps by cluster and Newton steps, on rare columns of which many are equal or nearly so."""
    if is_pruned:
        monkeypatch.setattr(engine_module, "_IDLE", -10_000)  # no atom stays that has no coefficient
    rng = np.random.default_rng(3)
    X = scipy.sparse.random(150, 400, 0.02, random_state=3, format="csc").tolil()
    X[:, 100:200] = X[:, :100] * 0.5
    X[:, 200:250] = X[:, :50] + scipy.sparse.random(150, 50, 0.004, random_state=4)
    X = X.tocsc()
    y = X[:, :60] @ rng.standard_normal(60) + 0.1 * rng.standard_normal(150)
    weight = rng.uniform(0.5, 2.0, 150) if weighted else None
    monkeypatch.setattr(GramSolver, "_is_outgrown", lambda self, tol: True)
    alphas = np.abs(X.T @ y).max() / 150 * np.geomspace(0.7, 0.01, 25)
    for intercept in (False, True):
        _, coefs, info = cg.lasso_path(X, y, alphas=alphas, tol=tol, sample_weight=weight, fit_intercept=intercept)
        assert info.status is cg.Status.CONVERGED
        for k, alpha in enumerate(alphas):
            w, b = coefs[:, k].toarray().ravel(), info.intercept[k]
            v = np.ones(150) if weight is None else weight
            gap = gap_from_scratch(X, y, w, alpha=alpha, weight=v, intercept=b if intercept else None)
            assert gap <= tol * (1 + 1e-6)


@pytest.mark.parametrize("what", ["alphas", "radii"])
@pytest.mark.parametrize("intercept", [False, True])
def test_points_on_a_line_between_two_solutions_are_certified(what, intercept):
    X, y = regression(60, 200, seed=23)
    y = y + 3.0 * intercept
    Z, z = (X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)
    top = np.abs(Z.T @ z).max() / 60 if what == "alphas" else 10.0
    grid = top * np.geomspace(0.9, 0.05, 100)
    _, coefs, info = cg.lasso_path(X, y, tol=1e-2, fit_intercept=intercept, **{what: grid})
    assert info.status is cg.Status.CONVERGED
    assert info.n_looks < 50
    for k, target in enumerate(grid):
        w = coefs[:, k].toarray().ravel()
        gap = gap_from_scratch(Z, z, w, **{{"alphas": "alpha", "radii": "radius"}[what]: target})
        assert gap <= info.relative_gap[k] * (1 + 1e-9) + 1e-14
        assert info.objective[k] == pytest.approx(0.5 * np.mean((y - X @ w - info.intercept[k]) ** 2))
        assert info.radius[k] == pytest.approx(np.abs(w).sum() if what == "alphas" else target)


@EVERY_WAY
@pytest.mark.parametrize("what", ["alphas", "radii"])
def test_the_same_target_may_be_given_many_times(what):
    X, y = regression(30, 40, seed=29)
    targets = np.repeat([0.2, 0.1, 0.3], 7)
    _, coefs, info = cg.lasso_path(X, y, tol=1e-3, **{what: targets})
    assert info.relative_gap.max() <= 1e-3
    for k, target in enumerate(targets):
        w = coefs[:, k].toarray().ravel()
        assert gap_from_scratch(X, y, w, **{{"alphas": "alpha", "radii": "radius"}[what]: target}) <= 1e-3


def test_the_gap_on_the_line_is_the_bend_of_the_path():
    """Between exact solutions: t (1 - t) ((a_0 - a_1) (n_1 - n_0) - ||R_0 - R_1||^2)."""
    X, y = regression(50, 120, seed=24)
    matrix = Matrix(np.asfortranarray(X))
    engine = ExactEngine(LeastSquares(make_columns(matrix, np.full(50, 0.02), False, False), X.size, y))
    leaps = Leaps(engine, True, 1e-14)
    left, right = (leaps._solve(share * engine.largest, 1e-14) for share in (0.4, 0.3))
    for t in (0.0, 0.2, 0.7, 1.0):
        target = (1.0 - t) * left.target + t * right.target
        (point,) = engine.between(left, right, np.array([target]), is_penalised=True)
        bend = (left.target - right.target) * (right.point.norm - left.point.norm)
        bend -= np.mean((left.residual.R - right.residual.R) ** 2)
        assert point.gap == pytest.approx(t * (1.0 - t) * bend, rel=1e-2, abs=1e-12)


def test_a_leap_that_is_too_long_is_filled_in(monkeypatch):
    monkeypatch.setattr(Leaps, "_growth", lambda self, *ends: 40.0)
    X, y = regression(60, 200, seed=25)
    alphas = np.abs(X.T @ y).max() / 60 * np.geomspace(0.9, 0.05, 50)
    _, coefs, info = cg.lasso_path(X, y, alphas=alphas, tol=1e-5)
    assert info.relative_gap.max() <= 1e-5
    for k, alpha in enumerate(alphas):
        assert gap_from_scratch(X, y, coefs[:, k].toarray().ravel(), alpha=alpha) <= 1e-5


@pytest.mark.parametrize("kind", ["F", "csr"])
@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_elastic_net(kind, is_large, fit_intercept, monkeypatch):
    if is_large:
        monkeypatch.setattr(GramSolver, "_is_outgrown", lambda self, tol: True)
    X, y = regression(40, 90, seed=26, density=0.5)
    X[:, 50:60] = X[:, :10]  # twins share what the Lasso would give to one of them
    y, l2 = y + 2.0, 0.03
    kwargs = {"l2": l2, "tol": 1e-12, "fit_intercept": fit_intercept}
    alphas = np.abs(X.T @ y).max() / 40 * np.array([0.5, 0.1, 0.02])
    radii, coefs, info = cg.lasso_path(KINDS[kind](X), y, alphas=alphas, **kwargs)
    assert info.status is cg.Status.CONVERGED
    for k, alpha in enumerate(alphas):
        share = alpha / (alpha + l2)
        theirs = ElasticNet(alpha + l2, l1_ratio=share, tol=1e-12, max_iter=10**6, fit_intercept=fit_intercept).fit(
            X, y
        )
        np.testing.assert_allclose(coefs[:, k].toarray().ravel(), theirs.coef_, atol=1e-5)
        w, R = theirs.coef_, y - X @ theirs.coef_ - theirs.intercept_
        assert info.objective[k] == pytest.approx(0.5 * np.mean(R**2) + 0.5 * l2 * w @ w, rel=1e-6)
    _, again, info = cg.lasso_path(KINDS[kind](X), y, radii=radii, **kwargs)
    np.testing.assert_allclose(again.toarray(), coefs.toarray(), atol=1e-5)
    for k, radius in enumerate(radii):
        w = again[:, k].toarray().ravel()
        r = l2 * w - X.T @ (y - X @ w - info.intercept[k]) / 40
        assert r @ w + radius * np.abs(r).max() == pytest.approx(info.gap[k], abs=1e-12)


def test_points_on_lines_with_l2():
    X, y = regression(40, 90, seed=27)
    alphas = np.abs(X.T @ y).max() / 40 * np.geomspace(1.0, 0.05, 60)
    _, coefs, info = cg.lasso_path(X, y, alphas=alphas, l2=0.1, tol=1e-2)
    assert info.n_looks < 40
    rows, zeros = np.vstack([X, np.sqrt(40 * 0.1) * np.eye(90)]), np.concatenate([y, np.zeros(90)])
    for k, alpha in enumerate(alphas):
        w = coefs[:, k].toarray().ravel()
        gap = gap_from_scratch(rows, zeros, w, alpha=alpha * 40 / 130)  # alpha is for means over 40 samples
        assert gap <= info.relative_gap[k] * (1 + 1e-9) + 1e-14
        assert info.objective[k] == pytest.approx(0.5 * np.mean((y - X @ w) ** 2) + 0.05 * w @ w)
    assert info.relative_gap.max() <= 1e-2


@pytest.mark.parametrize("kind", ["F", "csc"])
def test_smaller_radii_after_larger_ones(kind, monkeypatch):
    """Where a line is split, or filled in, the engine comes back from a point that lies outside of the smaller ball."""
    X, y = regression(40, 60, seed=32, density=0.5)
    matrix = Matrix(KINDS[kind](X))
    for is_large in (False, True):
        if is_large:
            monkeypatch.setattr(GramSolver, "_is_outgrown", lambda self, tol: True)
        engine = ExactEngine(LeastSquares(make_columns(matrix, np.full(40, 1 / 40), False, False), X.size, y))
        for radius in (1.0, 2.0, 0.5, 1.5, 0.1):
            point = engine.solve(Goal(radius, is_penalised=False), tol=1e-8)
            w = np.zeros(60)
            w[point.features] = point.x
            assert np.abs(w).sum() <= radius * (1 + 1e-12)
            assert gap_from_scratch(X, y, w, radius=radius) <= 1e-8
        radii = cg.lasso_path(KINDS[kind](X), y, n_radii=None, tol=1e-3)[0]
        assert radii.size < 100


def test_every_radius_is_certified():
    X, y = regression(50, 120, seed=28)
    for tol, most in ((1e-2, 40), (1e-4, 150)):
        radii, coefs, info = cg.lasso_path(X, y, n_radii=None, tol=tol)
        assert info.status is cg.Status.CONVERGED
        assert radii[0] == 0.0
        assert coefs[:, 0].nnz == 0
        assert (np.diff(radii) > 0.0).all()
        assert radii.size < most
        assert radii[-1] == pytest.approx(cg.lasso_path(X, y, n_radii=1, tol=tol)[0][0])
        for radius in np.random.default_rng(0).uniform(0.0, radii[-1], 200):
            k = np.searchsorted(radii, radius)
            t = (radius - radii[k - 1]) / (radii[k] - radii[k - 1])
            w = ((1.0 - t) * coefs[:, k - 1] + t * coefs[:, k]).toarray().ravel()
            assert gap_from_scratch(X, y, w, radius=radius) <= tol * (1 + 1e-9)
    radii, _, info = cg.lasso_path(X, np.zeros(50), n_radii=None)
    assert radii.tolist() == [0.0]
    _, _, info = cg.lasso_path(X, y, n_radii=None, callback=lambda progress: progress.step == 3)
    assert info.status is cg.Status.STOPPED
    assert info.radius.size == 3


@EVERY_WAY
@pytest.mark.parametrize("what", ["alphas", "radii"])
@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_rounding_in_the_model_is_not_certified_away(what, offset):
    """Features far from zero lose most of their digits in the Gram matrix: the gap counts what that costs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 20))
    y = X[:, :3] @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(12)
    grid = {"alphas": [1.0, 0.1, 0.01], "radii": [0.5, 2.0, 3.0]}[what]
    _, coefs, info = cg.lasso_path(X + offset, y, fit_intercept=True, tol=1e-6, **{what: grid})
    shifted = (X + offset).astype(np.longdouble)
    Z, z = shifted - shifted.mean(axis=0), y.astype(np.longdouble) - y.mean()
    for k, target in enumerate(grid):
        w = coefs[:, k].toarray().ravel().astype(np.longdouble)
        R = z - Z @ w
        r, zero = Z.T @ R / 12, 0.5 * np.mean(z**2)
        if what == "radii":
            gap = (target * np.abs(r).max() - r @ w) / zero
        else:
            share = min(z @ R / (R @ R), target / np.abs(r).max())
            primal = 0.5 * R @ R / 12 + target * np.abs(w).sum()
            gap = (primal - (share * R @ z - 0.5 * share**2 * R @ R) / 12) / zero
        assert gap <= info.relative_gap[k] + 1e-8
    if info.status is cg.Status.CONVERGED:
        assert info.relative_gap.max() <= 1e-6


def test_a_path_that_is_to_be_certified_everywhere_ends_where_rounding_has_won():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 20))
    y = X[:, :3] @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(12)
    _, _, info = cg.lasso_path(X + 1e6, y, n_radii=None, fit_intercept=True, tol=1e-4)
    assert info.radius.size < 1000
    radii, _, info = cg.lasso_path(X, y, n_radii=None, tol=0.0)
    assert info.status is cg.Status.ROUNDING
    assert radii.size < 100
    whole = cg.lasso_path(X, y, n_radii=None, tol=1e-3)[2].radius.size
    _, _, info = cg.lasso_path(X, y, n_radii=None, tol=1e-3, callback=lambda progress: progress.step == whole)
    assert info.status is cg.Status.CONVERGED  # there was nothing left to stop


@EVERY_WAY
def test_points_come_from_the_sparse_end_on():
    X, y = regression(30, 40, seed=31)
    for what in ("alphas", "radii"):
        seen = []
        cg.lasso_path(X, y, callback=lambda p: seen.append(p.objective) and False, **{what: [0.3, 1.0, 0.1, 0.6]})  # noqa: B023
        assert seen == sorted(seen, reverse=True)


def test_clusters_hold_the_gram_matrix_of_near_equal_columns():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((80, 30)) < 0.05, rng.standard_normal((80, 30)), 0.0)
    X[:3, 10:13] = X[5:8, 20] = 1.0
    X[rng.random(80) < 0.9, 25:] = 1.0
    columns = make_columns(Matrix(scipy.sparse.csc_matrix(X)), np.full(80, 1 / 80), True, False)
    order, clusters = find_clusters(columns, np.arange(30), 0.0, np.empty(0, np.int64))
    Z = X - X.mean(axis=0)
    G = Z.T @ Z / 80
    assert sorted(order) == list(range(30))
    sizes = np.diff(clusters.starts)
    assert sizes.max() >= 3
    for b, size in enumerate(sizes):
        members = order[clusters.starts[b] : clusters.starts[b + 1]]
        block = clusters.gram[clusters.offsets[b] : clusters.offsets[b] + size**2].reshape(size, size)
        np.testing.assert_allclose(block, G[np.ix_(members, members)], atol=1e-14)


def test_clusters_stay_together_when_features_enter_or_leave():
    X = np.zeros((60, 12))
    for k in range(12):
        X[5 * (k // 3) : 5 * (k // 3) + 4, k] = 1.0 + 0.1 * k  # three nearly equal columns in each of four clusters
    columns = make_columns(Matrix(scipy.sparse.csc_matrix(X)), np.full(60, 1 / 60), False, False)
    features = np.arange(12)
    order, clusters = find_clusters(columns, features, 0.0, np.empty(0, np.int64))
    assert np.diff(clusters.starts).tolist() == [3, 3, 3, 3]
    features, label = features[order], clusters.labels()
    apart = make_columns(Matrix(scipy.sparse.csc_matrix(np.eye(60)[:, :12])), np.full(60, 1 / 60), False, False)
    _, again = find_clusters(apart, features, 0.0, label)  # nothing is linked there any more, but it is not asked again
    np.testing.assert_array_equal(again.starts, clusters.starts)
    kept = np.array([0, 2, 3, 9, 10])
    _, fewer = find_clusters(columns, features[kept], 0.0, label[kept])
    assert np.diff(fewer.starts).tolist() == [2, 1, 2]
    order, more = find_clusters(columns, np.append(features[kept], features[4]), 0.0, label[kept])
    assert sorted(np.diff(more.starts).tolist()) == [2, 2, 2]  # the new one joins its kin


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("has_intercept", [False, True])
def test_residuals_that_sweeps_keep_are_those_of_the_predictions(has_intercept, weighted):
    X, y = regression(40, 20, seed=30, density=0.5)
    rng = np.random.default_rng(30)
    weight = rng.dirichlet(np.ones(40)) if weighted else np.full(40, 1 / 40)
    y = y - weight @ y if has_intercept else y
    matrix = Matrix(scipy.sparse.csc_matrix(X + 2.0 * (X != 0.0)))
    columns, features = make_columns(matrix, weight, has_intercept, False), np.arange(20)
    order, clusters = find_clusters(columns, features, 0.1, np.empty(0, np.int64))
    x, R, a = np.zeros(20), y.copy(), weight * y
    mu = a.sum() if has_intercept else 0.0
    mu = sweep(columns, order, clusters, False, x, 0.05, 0.1, 1e-12, a, mu, 0.0 if weighted else 1 / 40)
    quadratic = LeastSquares(columns, matrix.n_stored, y, has_intercept=has_intercept, l2=0.1)
    kept = quadratic.follow(mu, x, Residual(R, a))
    assert np.count_nonzero(x) > 3
    p, fresh = Atoms(columns, order).predict(x), Residual(np.empty(40), np.empty(40))
    np.testing.assert_allclose(kept[:6], quadratic.renew(p, x, fresh)[:6], atol=1e-12)
    np.testing.assert_allclose(R, fresh.R, atol=1e-12)
    np.testing.assert_allclose(a, fresh.a, atol=1e-14)


@EVERY_WAY
def test_ctrl_c_keeps_the_points_that_are_done():
    X, y = regression(30, 50, seed=15)

    def press(progress):
        if progress.step == 4:
            signal.raise_signal(signal.SIGINT)

    radii, coefs, info = cg.lasso_path(X, y, n_radii=20, callback=press)
    assert info.status is cg.Status.INTERRUPTED
    assert 4 <= radii.size == coefs.shape[1] == info.gap.size < 20
    assert info.relative_gap.max() <= 1e-6


def test_small_data_are_left_to_the_engine_of_smooth_losses(monkeypatch):
    monkeypatch.undo()
    X, y = regression(30, 50, seed=3)
    calls, solve = [], lasso.radius_path
    monkeypatch.setattr(lasso, "radius_path", lambda *args, **settings: calls.append(1) or solve(*args, **settings))
    for kind in ("C", "csc", "float32"):
        cg.lasso_path(
            KINDS[kind](X), y, n_radii=3, sample_weight=np.arange(1.0, 31.0), feature_weight=np.arange(1.0, 51.0)
        )
    assert len(calls) == 3
    many = scipy.sparse.csc_matrix((np.ones(501), (np.arange(501), np.arange(501))))
    cg.lasso_path(many, np.arange(501.0), radii=[1.0])
    for settings in ({"n_radii": None}, {"l2": 0.1}, {"standardize": True}):
        cg.lasso_path(X, y, tol=1e-2, **settings)
    monkeypatch.setattr(lasso, "_SMALL", X.size - 1)
    cg.lasso_path(X, y, n_radii=3)
    assert len(calls) == 3


@pytest.mark.slow
@pytest.mark.parametrize("inside", ["search", "point", "sweeps"])
def test_ctrl_c_is_heard_inside_a_point_and_inside_the_search_for_the_radius(inside, monkeypatch):
    X, y = regression(60, 90, seed=15)
    alphas = None if inside == "search" else np.abs(X.T @ y).max() / 60 * np.geomspace(0.9, 0.01, 10)
    calls, owner = [], {"sweeps": SweepSolver}.get(inside, WorkingSet)
    name = {"sweeps": "_sweep"}.get(inside, "renew")
    if inside == "sweeps":
        monkeypatch.setattr(GramSolver, "_is_outgrown", lambda self, tol: True)
    method = getattr(owner, name)

    def press(self, *args):
        calls.append(1)
        if len(calls) == 6:
            signal.raise_signal(signal.SIGINT)
        return method(self, *args)

    monkeypatch.setattr(owner, name, press)
    radii, coefs, info = cg.lasso_path(X, y, alphas=alphas, tol=1e-9)
    assert info.status is cg.Status.INTERRUPTED
    assert radii.size == coefs.shape[1] == info.gap.size < 10
    assert radii.size == 0 if inside == "search" else info.relative_gap.max() <= 1e-9
    assert 6 <= len(calls) <= 8  # it stopped right there


@EVERY_WAY
def test_callback_sees_points_and_may_stop():
    X, y = regression(30, 50, seed=16)
    seen = []
    _, coefs, info = cg.lasso_path(X, y, n_radii=20, callback=lambda p: seen.append(p) or p.step == 5)
    assert info.status is cg.Status.STOPPED
    assert [p.step for p in seen] == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(coefs[:, 4].toarray().ravel(), seen[-1].w)


@EVERY_WAY
def test_verbose_shows_points(capsys):
    X, y = regression(20, 10, seed=17)
    cg.lasso_path(X, y, n_radii=3, verbose=True)
    assert capsys.readouterr().err.count("gap") == 3


@EVERY_WAY
def test_same_path_to_the_bit():
    X, y = regression(40, 80, seed=18)
    first, second = (cg.lasso_path(X, y, n_radii=10)[1] for _ in range(2))
    assert (first != second).nnz == 0


@EVERY_WAY
def test_a_tolerance_below_rounding_ends():
    X, y = regression(20, 30, seed=19)
    _, _, info = cg.lasso_path(X, y, n_radii=5, tol=0.0)
    assert info.relative_gap.max() < 1e-12


@EVERY_WAY
def test_info_is_shown_in_a_line():
    X, y = regression(20, 30, seed=20)
    info = cg.lasso_path(X, y, n_radii=5)[2]
    assert repr(info).startswith("PathInfo(5 points, relative gaps up to ")
    assert info.passes == info.columns_seen / 30
    assert (info.seconds > 0.0).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_randomized_engine_walks_the_same_radii(fit_intercept):
    X, y = regression(30, 40, seed=22)
    kwargs = {"n_radii": 6, "tol": 1e-4, "fit_intercept": fit_intercept}
    radii, coefs, info = cg.lasso_path(X, y, **kwargs)
    for engine in ("randomized", cg.solvers.Randomized(sample_size=0.5, step_tol=1e-4)):
        again, walked, other = cg.lasso_path(X, y, engine=engine, random_state=0, **kwargs)
        np.testing.assert_allclose(again, radii)
        np.testing.assert_allclose(walked.toarray(), coefs.toarray(), atol=0.2 * abs(coefs).max())
        np.testing.assert_allclose(other.objective, info.objective, atol=0.02 * info.objective[0])
        assert (other.objective >= info.objective - info.gap - 1e-12).all()
        assert other.status in (cg.Status.SMALL_STEP, cg.Status.CONVERGED)
        assert 0 < other.passes < 10_000
    exact = cg.lasso_path(X, y, engine=cg.solvers.Randomized(sample_size=40), **kwargs | {"tol": 1e-2})[2]
    assert exact.status is cg.Status.CONVERGED  # without a step_tol it runs on to the certificate
    zero = [
        cg.lasso_path(X, y, radii=[0.0], engine=name, fit_intercept=fit_intercept)[2]
        for name in ("exact", "randomized")
    ]
    assert zero[0].alpha[0] == pytest.approx(zero[1].alpha[0])
    assert zero[0].objective[0] == pytest.approx(zero[1].objective[0])
    assert zero[0].intercept[0] == pytest.approx(zero[1].intercept[0])


@EVERY_WAY
@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_radii": 0}, "n_radii must be a whole number of at least 1, or None; got 0."),
        ({"n_radii": 2.5}, "n_radii must be a whole number of at least 1, or None; got 2.5."),
        ({"n_radii": None, "engine": "randomized"}, "n_radii=None needs engine='exact': the randomized engine "),
        ({"l2": -1.0}, "l2 must be a number of at least 0; got -1.0."),
        ({"l2": np.inf}, "l2 must be finite; got inf."),
        ({"n_radii": np.inf}, "n_radii must be a whole number of at least 1, or None; got inf."),
        ({"radii": np.array([1 + 1j])}, "radii must be a sequence of numbers; got array([1.+1.j])."),
        ({"l2": 1.0, "engine": "randomized"}, "engine='randomized' takes radii of features as they are, without l2"),
        ({"eps": 1.5}, "eps must be a number between 0 and 1; got 1.5."),
        ({"tol": -1.0}, "tol must be a number of at least 0; got -1.0."),
        ({"radii": [-1.0]}, "radii must be finite and at least 0; got -1."),
        ({"radii": [np.nan]}, "radii must be finite and at least 0; got nan."),
        ({"radii": []}, "radii must be a sequence of numbers; got shape (0,)."),
        ({"alphas": [0.0]}, "alphas must be finite and positive; got 0."),
        ({"alphas": "x"}, "alphas must be a sequence of numbers; got 'x'."),
        ({"alphas": [1.0], "radii": [1.0]}, "give radii or alphas, not both: each radius has its alpha, which info "),
        ({"engine": "fast"}, "engine must be 'exact', 'randomized' or a solver Randomized(...); got 'fast'."),
        ({"engine": "randomized", "alphas": [1.0]}, "engine='randomized' takes radii of features as they are, "),
        ({"fit_intercept": 1}, "fit_intercept must be True or False; got 1."),
        ({"callback": 3}, "callback must be callable with one argument, a Progress; got 3."),
        ({"sample_weight": [1.0]}, "sample_weight must have one entry per sample: X has 2 rows, sample_weight has 1."),
    ],
)
def test_bad_input_gets_one_sentence(kwargs, message):
    with pytest.raises((ValueError, TypeError)) as error:
        cg.lasso_path([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0], **kwargs)
    assert str(error.value).startswith(message)


def test_columns_are_centred_and_scaled_by_formula():
    X, y = regression(30, 12, seed=21, density=0.5)
    X[:, 3] = 2.5
    weight = np.random.default_rng(21).uniform(0.0, 1.0, 30)
    weight /= weight.sum()
    for data in (X, scipy.sparse.csc_matrix(X)):
        columns = make_columns(Matrix(data), weight, True, True)
        Z = X - weight @ X
        spread = np.sqrt(weight @ Z**2)
        Z = np.divide(Z, spread, out=np.zeros_like(Z), where=spread > 1e-12)
        R = y - weight @ y
        found = [columns.correlation(j, weight * y, float(weight @ y)) for j in range(12)]
        np.testing.assert_allclose(found, Z.T @ (weight * R), atol=1e-12)
        assert columns.norm[3] == 0.0
        engine = ExactEngine(LeastSquares(columns, data.size, R, has_intercept=True))
        assert engine.largest == pytest.approx(np.abs(Z.T @ (weight * R)).max())


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_equal_features_of_one_sample_stay_with_the_gram_matrix(size, monkeypatch):
    """With a ridge all of them share one coefficient; sweeps, which a short column invites, would take for ever."""

    def sweeps(*given):
        raise AssertionError("200 atoms are few for a dense factor")

    monkeypatch.setattr("condgrad.paths.gram_solver.SweepSolver", sweeps)
    X = scipy.sparse.csc_matrix(np.full((1, 200), size))
    _, coefs, info = cg.lasso_path(X, [1.3], l2=0.1, tol=1e-10, fit_intercept=False)
    assert info.status is cg.Status.CONVERGED
    last = coefs[:, -1].toarray().ravel()
    # (size^2 200 + l2) x = size y - alpha, for all 200 of them
    np.testing.assert_allclose(last, (size * 1.3 - info.alpha[-1]) / (200 * size**2 + 0.1), rtol=1e-6)


def test_newton_steps_go_along_directions_that_the_ridge_alone_bends():
    X = scipy.sparse.csc_matrix(np.full((1, 300), 1000.0))
    columns = make_columns(Matrix(X), np.ones(1), False, False)
    working = WorkingSet(LeastSquares(columns, 300, np.ones(1), l2=0.1))
    working.admit(np.arange(300))
    order, clusters = find_clusters(columns, working.features, 0.1, np.empty(0, np.int64))
    working.arrange(order)
    b = np.random.default_rng(0).standard_normal(300)
    d = solve_kkt(working, np.arange(300), factor(clusters, np.ones(300, bool)), b, 1e-6, 100)
    assert np.abs(1e6 * d.sum() + 0.1 * d - b).max() <= 1e-4


def test_newton_steps_stop_at_zero_where_signs_would_change_and_correct_the_others():
    rng = np.random.default_rng(3)
    Z = scipy.sparse.random(200, 40, density=0.1, random_state=rng, format="csc")
    G, target = Z.T.toarray() @ Z.toarray() / 200, np.where(np.arange(40) % 4 == 0, -1.0, 1.0)
    y = Z @ target  # the minimiser without a penalty; ten signs are others than those of the start
    columns = make_columns(Matrix(Z), np.full(200, 1 / 200), False, False)
    working = WorkingSet(LeastSquares(columns, Z.nnz, y))
    working.admit(np.arange(40))
    working.x[:] = 0.5
    solver = SweepSolver(working, 0.01, 1.0)
    wanted = target[working.features]  # the solver has changed the order
    G = G[np.ix_(working.features, working.features)]
    d = solver._step_with_signs(np.arange(40), G @ (wanted - 0.5), 1e-9)
    assert (d[wanted < 0.0] == -0.5).all()
    free = wanted > 0.0
    np.testing.assert_allclose((G @ (wanted - 0.5 - d))[free], 0.0, atol=1e-8)


@EVERY_WAY
def test_tiny_penalties_of_small_data_are_certified():
    X, y = regression(6, 12, seed=30)
    alphas = np.abs(X.T @ y).max() / 6 * np.array([1e-2, 1e-6, 1e-9])
    _, coefs, info = cg.lasso_path(X, y, alphas=alphas, tol=1e-8)
    assert info.status is cg.Status.CONVERGED
    assert (info.gap + info.rounding <= 1e-8 * 0.5 * np.mean(y * y)).all()
    for k, alpha in enumerate(alphas):
        assert gap_from_scratch(X, y, coefs[:, k].toarray().ravel(), alpha=alpha) <= 1.1e-8


def test_a_ball_that_does_not_bind_leaves_ridge_regression(monkeypatch):
    """With thousands of small coefficients their signs took fifty searches of hundreds of steps, at each radius."""
    X, y = regression(100, 1200, seed=5)
    y, searches, descend = y - y.mean(), [], SweepSolver._descend

    def counted(self, alpha, tol):
        searches.append(alpha)
        descend(self, alpha, tol)

    monkeypatch.setattr(SweepSolver, "_descend", counted)
    _, coefs, info = cg.lasso_path(X, y, radii=[1e4], l2=0.01, tol=1e-4, fit_intercept=False)
    assert info.status is cg.Status.CONVERGED and 0 < len(searches) < 40
    ridge = X.T @ np.linalg.solve(X @ X.T + 0.01 * y.size * np.eye(y.size), y)
    least = 0.5 * np.mean((y - X @ ridge) ** 2) + 0.005 * ridge @ ridge
    assert least <= info.objective[0] <= least + info.gap[0] + info.rounding[0]
    np.testing.assert_allclose(coefs.toarray().ravel(), ridge, atol=0.02)
