"""Corrective variants for a quadratic F against boxes in plain NumPy, over polytopes given by all their vertices."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from references import l1_vertices, simplex_vertices

import condgrad as cg
from condgrad.solvers import Polyatomic, QuadraticCorrection

POINTS = np.random.default_rng(3).standard_normal((9, 5))
# Sets, and all their vertices as rows.
POLYTOPES = {
    "L1Ball": (lambda: cg.constraints.L1Ball(1.5), 1.5 * np.array(l1_vertices(5, 1.0))),
    "Simplex": (lambda: cg.constraints.Simplex(2.0), np.array(simplex_vertices(5, 2.0))),
    "Box": (lambda: cg.constraints.Box(-0.4, 0.3), np.array(list(itertools.product([-0.4, 0.3], repeat=5)))),
    "ConvexHull": (lambda: cg.constraints.ConvexHull(POINTS), POINTS),
}
SOLVERS = {
    "minimum-norm": QuadraticCorrection(),
    "affine": QuadraticCorrection("affine"),
    "polyatomic": Polyatomic(),
    "two at a time": Polyatomic(n_atoms=2),
}


def make(constraint, form=np.asarray, dtype=np.float64, n=14, **settings):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5)).astype(dtype)
    y = X @ np.array([2.0, -1.0, 0.5, 1.0, -2.0]) + 0.3 * rng.standard_normal(n)
    return cg.Problem(form(X), y, cg.losses.Squared(), POLYTOPES[constraint][0](), **settings), X.astype(float), y


# The boxes: they have all vertices V, and weights x of all of them ----------------------------------------------------


class Box:
    """F(w) = ||Xw - y||^2 / (2n) and its gradient, over the hull of the rows of V."""

    def __init__(self, X, y, V):
        self.X, self.y, self.V = X, y, V
        self.H = X.T @ X / len(y)

    def slopes(self, x):
        return self.V @ (self.X.T @ (self.X @ (x @ self.V) - self.y) / len(self.y))

    def line(self, x, d):
        """The minimiser of F over x + gamma d, 0 <= gamma <= 1."""
        q = d @ self.V
        slope, curvature = self.slopes(x) @ d, q @ self.H @ q
        return min(1.0, -slope / curvature) if curvature > 0.0 else 1.0

    def affine_minimiser(self, x):
        """The minimiser over the affine hull of the vertices with weight, as weights."""
        held = np.flatnonzero(x)
        base, others = self.V[held[0]], self.V[held[1:]]
        A = (others - base) @ self.X.T
        c = np.linalg.lstsq(A.T, self.y - self.X @ base, rcond=None)[0]
        z = np.zeros(x.size)
        z[held[1:]], z[held[0]] = c, 1.0 - c.sum()
        return z


def box_correction(box, x, n_steps, correction):
    """A Frank-Wolfe step with line search; then Wolfe's walk, or the affine minimiser if it is in the hull."""
    for _ in range(n_steps):
        s = np.zeros(x.size)
        s[box.slopes(x).argmin()] = 1.0
        x = x + box.line(x, s - x) * (s - x)
        if correction == "minimum-norm":
            while True:
                z = box.affine_minimiser(x)
                if (z >= 0.0).all():
                    x = z
                    break
                negative = z < 0.0
                ratios = np.where(negative, x / np.where(negative, x - z, 1.0), np.inf)
                k = int(ratios.argmin())
                x = x + ratios[k] * (z - x)
                x[k] = 0.0
        else:
            z = box.affine_minimiser(x)
            if (z >= 0.0).all():
                x = z
            else:
                g, held = box.slopes(x), np.flatnonzero(x)
                v, a = held[g[held].argmax()], held[g[held].argmin()]
                d = np.zeros(x.size)
                d[a], d[v] = x[v], -x[v]
                gamma = box.line(x, d)
                x = x + gamma * d
                x[v] = 0.0 if gamma == 1.0 else x[v]
        yield x @ box.V


def start_of(problem, V):
    start = problem.start()[0]
    return (np.abs(V - start).max(axis=1) < 1e-12).astype(float)


@pytest.mark.parametrize("constraint", POLYTOPES)
@pytest.mark.parametrize("correction", ["minimum-norm", "affine"])
def test_quadratic_corrections_are_the_box(constraint, correction):
    problem, X, y = make(constraint)
    V = POLYTOPES[constraint][1]
    solver = QuadraticCorrection(correction)
    state = solver.init(problem, None)
    expected = list(box_correction(Box(X, y, V), start_of(problem, V), 12, correction))
    best = cg.minimize(problem, "pairwise", tol=1e-12, max_epochs=10**5).objective
    n_compared = 0
    for t, w in enumerate(expected):
        if problem.objective(state.w) - best < 1e-9:
            break  # from here on rounding decides
        solver.step(problem, state, t)
        np.testing.assert_allclose(state.w, w, atol=1e-8, err_msg=f"step {t}")
        assert problem.constraint.violation(state.w) <= 1e-12
        n_compared += 1
    assert n_compared >= 1


@pytest.mark.parametrize("n_atoms", [1, 3, 100])
@pytest.mark.parametrize("constraint", ["L1Ball", "Simplex", "ConvexHull"])  # best_vertices of the last knows only one
def test_polyatomic_lets_in_the_vertices_above_the_threshold_and_corrects_partly(constraint, n_atoms, monkeypatch):
    """Pairwise steps choose among equal slopes by rounding, so each step is checked by what it promises."""
    problem, X, y = make(constraint)
    V, solver = POLYTOPES[constraint][1], Polyatomic(n_atoms)
    n_known = {"L1Ball": 5, "Simplex": 5, "ConvexHull": 1}[constraint]  # vertices that best_vertices returns
    state, entered = solver.init(problem, None), []
    let_in = type(state).let_in
    monkeypatch.setattr(type(state), "let_in", lambda self, found: (entered.append(found), let_in(self, found)))
    for t in range(4):
        w, held = state.w, [state.atoms.vertex(k).to_dense(5) for k in range(len(state.atoms))]
        r = X.T @ (X @ w - y) / len(y)
        gap = r @ w - (V @ r).min()
        if gap < 1e-9:
            break
        solver.step(problem, state, t)
        above = [v @ r for v in V if r @ (w - v) >= (1.0 - 2.0 / (t + 2.0)) * gap - 1e-12]
        new = {v.key(): v.to_dense(5) for v in entered[-1]}.values()
        np.testing.assert_allclose(sorted(v @ r for v in new), sorted(above)[: min(n_atoms, n_known)], atol=1e-9)
        r = X.T @ (X @ state.w - y) / len(y)
        hull_gap = r @ state.w - min(r @ v for v in (*held, *new))
        assert hull_gap <= gap / (t + 2.0) + 1e-9
        assert problem.objective(state.w) < problem.objective(w)
    assert t >= 1


# Runs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("constraint", POLYTOPES)
def test_they_reach_the_optimum_on_every_kind_of_data(name, constraint):
    ends = []
    for form, dtype in ((np.asarray, float), (np.asfortranarray, float), (np.asarray, np.float32),
                        (scipy.sparse.csr_array, float), (scipy.sparse.csc_array, np.float32)):  # fmt: skip
        problem, _, _ = make(constraint, form, dtype)
        result = cg.minimize(problem, SOLVERS[name], tol=1e-8, max_epochs=3000)
        assert result.status is cg.Status.CONVERGED
        ends.append(result.objective)
    assert np.ptp(ends) < 1e-5  # float32 rounds the data
    assert ends[0] == pytest.approx(ends[1], abs=2e-8) == pytest.approx(ends[3], abs=2e-8)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    "settings", [{"intercept": True}, {"sample_weight": np.arange(1.0, 15.0)}, {"l2": 0.3}], ids=str
)
def test_they_take_intercepts_weights_and_penalties(name, settings):
    problem, _, _ = make("Box", **settings)
    found = cg.minimize(problem, SOLVERS[name], tol=1e-8, max_epochs=3000)
    best = cg.minimize(problem, "corrective", tol=1e-10)
    assert found.status is cg.Status.CONVERGED and found.objective <= best.objective + 1e-8


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("constraint", ["L1Ball", "ConvexHull"])
def test_a_resumed_run_is_the_same_run(name, constraint, tmp_path):
    problem, _, _ = make(constraint)
    whole = cg.minimize(problem, SOLVERS[name], max_steps=5, tol=0.0)
    cg.minimize(problem, SOLVERS[name], max_steps=2, tol=0.0, checkpoint=tmp_path / "run.npz")
    resumed = cg.minimize(problem, SOLVERS[name], max_steps=5, tol=0.0, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(resumed.w, whole.w)
    assert resumed.n_lmo == whole.n_lmo and resumed.trace.epoch[-1] == whole.trace.epoch[-1]


@pytest.mark.parametrize("name", SOLVERS)
def test_a_warm_start_between_vertices_and_the_end_by_rounding(name):
    problem, _, _ = make("L1Ball")
    w0 = np.array([0.2, -0.3, 0.0, 0.1, 0.0])
    result = cg.minimize(problem, SOLVERS[name], w0=w0, tol=0.0, max_epochs=3000)
    assert result.trace.objective[0] == pytest.approx(problem.objective(w0))
    assert result.gap <= 1e-10 and result.status in (cg.Status.STALLED, cg.Status.ROUNDING, cg.Status.CONVERGED)


def test_equal_columns_do_not_matter():
    """Vertices whose predictions depend on each other: the linear systems are singular."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.standard_normal((20, 3)), 3, axis=1)
    y = X @ np.arange(9.0) + rng.standard_normal(20)
    for constraint in (cg.constraints.L1Ball(3.0), cg.constraints.Box(-0.5, 0.5)):
        problem = cg.Problem(X, y, cg.losses.Squared(), constraint)
        for name, solver in SOLVERS.items():
            result = cg.minimize(problem, solver, tol=1e-7, max_epochs=3000)
            assert result.status is cg.Status.CONVERGED, (name, constraint)


def test_rows_on_disk(tmp_path):
    """A pass is a read of all rows; corrections between passes read none but the predictions of new vertices."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 8))
    y = X @ np.array([1.0, -1.0, 0.5, 0, 0, 0, 0, 0]) + rng.standard_normal(600)
    rows = cg.rows.convert((X, y), tmp_path / "rows", chunk_bytes=2**13, random_state=0)
    problem = cg.Problem(rows, None, cg.losses.Squared(), cg.constraints.L1Ball(1.2))
    best = cg.minimize(cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(1.2)), tol=1e-10).objective
    for solver in SOLVERS.values():
        result = cg.minimize(problem, solver, tol=1e-7, max_epochs=3000)
        assert result.status is cg.Status.CONVERGED and result.objective == pytest.approx(best, abs=1e-6)


def test_refusals():
    X, y = np.eye(3), np.array([1.0, -1.0, 1.0])
    problem = cg.Problem(X, y, cg.losses.Logistic(), cg.constraints.L1Ball(1.0))
    for name in ("quadratic-correction", "polyatomic"):
        with pytest.raises(TypeError, match=r"is for a quadratic F, .* Use 'corrective', which takes any loss"):
            cg.minimize(problem, name)
    with pytest.raises(ValueError, match=r"correction of QuadraticCorrection must be .* got 'exact'"):
        QuadraticCorrection("exact")
    with pytest.raises(ValueError, match="n_atoms of Polyatomic must be a number of at least 1; got 0"):
        Polyatomic(n_atoms=0)


def test_auto_takes_corrections_for_rough_answers_where_taylor_models_would_begin_with_vertices():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 196)), rng.standard_normal(300)
    edges = np.array([(i, j) for i in range(98) for j in (i + 1, i + 2)])
    sparse, dense = cg.constraints.FlowPolytope(edges, 0, 98), cg.constraints.Permutahedron(np.linspace(-0.1, 0.1, 196))

    def chosen(constraint, loss=cg.losses.Squared(), rows=300, d=196, tol=1e-2):  # noqa: B008
        problem = cg.Problem(X[:rows, :d], np.sign(y[:rows]), loss, constraint)
        result = cg.minimize(problem, tol=0.0, relative_tol=tol)
        assert result.gap <= tol * result.trace.gap[0]
        return result.solver

    assert chosen(sparse).startswith("QuadraticCorrection") and "few vertices" in chosen(sparse)
    assert chosen(dense).startswith("QuadraticCorrection")
    others = [
        chosen(dense, tol=1e-4), chosen(sparse, tol=1e-4),
        chosen(sparse, cg.losses.Logistic()), chosen(sparse, rows=190),
        chosen(cg.constraints.L1Ball(1.0)), chosen(cg.constraints.L2Ball(0.2)),
        chosen(cg.constraints.LinfBall(0.02)),  # a quadratic program in all features
        chosen(cg.constraints.KSparsePolytope(2, 0.5)),  # few features are enough
        chosen(cg.constraints.Permutahedron(np.linspace(-0.1, 0.1, 36)), d=36),  # the curvature is cheap
    ]  # fmt: skip
    assert all(name.startswith("Corrective") for name in others)
