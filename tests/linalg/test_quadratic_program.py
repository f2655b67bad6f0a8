"""Quadratic programs: known solutions, the conditions of optimality on random ones, and difficult polyhedra."""

import time

import numpy as np
import pytest
import scipy.sparse

from condgrad.constraints._isotonic import nearest_increasing
from condgrad.linalg import quadratic_program
from condgrad.linalg.polyhedron import Polyhedron
from condgrad.linalg.quadratic_program import Face, QuadraticProgram


def polyhedron(low, high, A=None, row_low=(), row_high=()):
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    A = np.zeros((0, low.size)) if A is None else A
    return Polyhedron(low, high, A, np.asarray(row_low, dtype=float), np.asarray(row_high, dtype=float))


def chain(d):
    """Increasing vectors between -5 and 5."""
    A = np.eye(d)[:-1] - np.eye(d)[1:]
    return polyhedron(np.full(d, -5.0), np.full(d, 5.0), A, np.full(d - 1, -np.inf), np.zeros(d - 1))


def many_rows(d, rng, is_redundant=False):
    A = rng.standard_normal((2 * d, d))
    b = np.abs(rng.standard_normal(2 * d))
    if is_redundant:  # repeated rows, and sums of two rows
        A, b = np.vstack([A, A[:d], A[:d] + A[d:]]), np.concatenate([b, b[:d], b[:d] + b[d:]])
    return polyhedron(np.full(d, -1.0), np.full(d, 1.0), A, np.full(b.size, -np.inf), b)


def equations(d, rng):
    """Equations, one of them twice, a fixed entry, and rows with two sides."""
    A = rng.standard_normal((4, d))
    A = np.vstack([A, A[0]])
    inside = rng.uniform(-0.5, 0.5, d)
    sides = A @ inside
    low, high = np.full(d, -1.0), np.full(d, 1.0)
    low[0] = high[0] = inside[0]
    width = np.array([0.0, 0.0, 0.1, 0.1, 0.0])
    return polyhedron(low, high, A, sides - width, sides + width)


def simplex(d):
    return polyhedron(np.zeros(d), np.full(d, np.inf), np.ones((1, d)), [1.0], [1.0])


def l1_ball(d):
    """The l1 ball in u and v, where w = u - v: the curvature does not see u + v."""
    return polyhedron(np.zeros(2 * d), np.full(2 * d, np.inf), np.ones((1, 2 * d)), [-np.inf], [2.0])


POLYHEDRA = {
    "box": lambda d, rng: polyhedron(np.full(d, -0.3), np.full(d, 0.2)),
    "chain": lambda d, rng: chain(d),
    "sparse chain": lambda d, rng: chain(d)._replace(A=scipy.sparse.csr_array(chain(d).A)),
    "many rows": many_rows,
    "redundant rows": lambda d, rng: many_rows(d, rng, is_redundant=True),
    "equations": equations,
    "simplex": lambda d, rng: simplex(d),
}


def quadratic(d, n, rng):
    X = rng.standard_normal((n, d))
    return X.T @ rng.standard_normal(n) / np.sqrt(n), X.T @ X / n


def assert_optimal(g, H, x, z, P, tol):
    """Check that z is in P, and that the multipliers of its tight rows and bounds prove that it is optimal."""
    assert P.violation(z) <= 1e-9
    slope = g + H @ (z - x)
    products = P.A @ z
    A = P.A.toarray() if scipy.sparse.issparse(P.A) else P.A
    rows = []  # -slope must be a combination of these with weights of at least 0
    for side, sign in ((z - P.low, -1.0), (P.high - z, 1.0)):
        rows += [sign * row for row in np.eye(z.size)[side <= 1e-8]]
    for side, sign in ((products - P.row_low, -1.0), (P.row_high - products, 1.0)):
        rows += [sign * row for row in A[side <= 1e-8]]
    if not rows:
        assert np.abs(slope).max() <= tol
        return
    from scipy.optimize import nnls

    assert nnls(np.array(rows).T, -slope)[1] <= tol * (1.0 + np.abs(g).max())


@pytest.mark.parametrize("name", POLYHEDRA)
@pytest.mark.parametrize("n", [6, 40])  # fewer samples than features: the curvature is singular
def test_the_minimiser_satisfies_the_conditions_of_optimality(name, n):
    rng = np.random.default_rng(0)
    for _ in range(4):
        P = POLYHEDRA[name](12, rng)
        g, H = quadratic(12, n, rng)
        x = np.zeros(12)
        assert_optimal(g, H, x, QuadraticProgram(g, H, x, P).minimise().x, P, 1e-5)


@pytest.mark.parametrize("name", POLYHEDRA)
def test_interior_points_and_guessed_faces_agree(name, monkeypatch):
    rng = np.random.default_rng(1)
    P = POLYHEDRA[name](10, rng)
    g, H = quadratic(10, 40, rng)
    program = QuadraticProgram(g, H, np.zeros(10), P)
    found = program.minimise()
    assert found.is_exact
    x, _ = program._central(np.inf)
    np.testing.assert_allclose(x, found.x, atol=1e-6)
    monkeypatch.setattr(quadratic_program, "_MOST_FACES", 0)
    monkeypatch.setattr(quadratic_program, "_MOST_SINGLE", 0)
    close = program.minimise()
    assert not close.is_exact and P.violation(close.x) <= 1e-9
    np.testing.assert_allclose(close.x, found.x, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_single_corrections_come_to_an_end_where_all_at_once_do_not(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    g, H = quadratic(10, 40, rng)
    units = 10.0 ** rng.uniform(-2.0, 2.0, 10)
    g, H = 5.0 * g * units, H * np.outer(units, units)
    program = QuadraticProgram(g, H, np.zeros(10), polyhedron(-np.ones(10), np.ones(10)))
    found = program.minimise()
    none = Face(np.zeros(10), np.zeros(0))
    monkeypatch.setattr(quadratic_program, "_PATIENCE", -1)
    assert program._from(none, np.inf) is None  # no patience with corrections of all signs
    alone = program._from(none, np.inf, 1000)
    assert alone.is_exact
    np.testing.assert_allclose(alone.x, found.x, atol=1e-9)


def test_a_right_guess_needs_one_system_of_equations(monkeypatch):
    rng = np.random.default_rng(2)
    g, H = quadratic(12, 40, rng)
    program = QuadraticProgram(g, H, np.zeros(12), chain(12))
    found = program.minimise()
    calls = []
    solve = QuadraticProgram._on
    monkeypatch.setattr(QuadraticProgram, "_on", lambda self, face: calls.append(1) or solve(self, face))
    again = program.minimise(found.face)
    assert len(calls) == 1 and np.array_equal(again.x, found.x)


def test_a_wrong_guess_does_no_harm():
    rng = np.random.default_rng(3)
    P = many_rows(8, rng, is_redundant=True)
    g, H = quadratic(8, 40, rng)
    best = QuadraticProgram(g, H, np.zeros(8), P).minimise().x
    for _ in range(5):
        guess = Face(rng.integers(-1, 2, 8), rng.integers(0, 2, P.row_low.size))
        np.testing.assert_allclose(QuadraticProgram(g, H, np.zeros(8), P).minimise(guess).x, best, atol=1e-7)


def test_increasing_vectors_are_isotonic_regressions():
    y = np.random.default_rng(4).standard_normal(30) + np.linspace(-1.0, 1.0, 30)
    program = QuadraticProgram(-y, np.eye(30), np.zeros(30), chain(30))
    refined = program.refine(program.minimise()).x
    np.testing.assert_allclose(refined, nearest_increasing(y), atol=1e-13)


def test_refining_removes_the_ridge():
    rng = np.random.default_rng(5)
    g, H = quadratic(10, 40, rng)
    program = QuadraticProgram(g, H, np.zeros(10), polyhedron(np.full(10, -9.0), np.full(10, 9.0)))
    found = program.minimise()
    exact = -np.linalg.solve(H, g)
    assert 1e-10 < np.abs(found.x - exact).max() < 1e-6
    np.testing.assert_allclose(program.refine(found).x, exact, atol=1e-13)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("is_guessed", [True, False])
def test_a_split_program_is_that_of_the_whole_curvature(seed, is_guessed, monkeypatch):
    if not is_guessed:  # interior points alone
        monkeypatch.setattr(QuadraticProgram, "_from", lambda self, *face: None)
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((9, 6))
    g, H, x = rng.standard_normal(6), A.T @ A, rng.uniform(0.0, 0.1, 12)
    cost, ball = np.append(g, -g), l1_ball(6)
    split = QuadraticProgram(cost, H, x, ball, is_split=True).minimise().x
    whole = QuadraticProgram(cost, np.block([[H, -H], [-H, H]]), x, ball).minimise().x
    np.testing.assert_allclose(split[:6] - split[6:], whole[:6] - whole[6:], atol=1e-6)
    assert ball.violation(split) <= 1e-9


def test_split_absolute_values_have_the_solution_of_the_lasso():
    """Flat directions: u and v may grow together."""
    import condgrad as cg

    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40) * 9.0
    g, H = -X.T @ y / 40, X.T @ X / 40
    found = QuadraticProgram(np.append(g, -g), np.block([[H, -H], [-H, H]]), np.zeros(12), l1_ball(6)).minimise()
    problem = cg.Problem(X, y, cg.losses.Squared(), cg.constraints.L1Ball(2.0))
    lasso = cg.minimize(problem, "pairwise", tol=1e-12).w
    np.testing.assert_allclose(found.x[:6] - found.x[6:], lasso, atol=1e-6)


def test_without_curvature_a_vertex_is_found():
    g = np.array([1.0, -2.0, 0.5])
    for P, vertex in ((polyhedron(-np.ones(3), np.ones(3)), [-1.0, 1.0, -1.0]), (simplex(3), [0.0, 1.0, 0.0])):
        found = QuadraticProgram(g, np.zeros((3, 3)), np.full(3, 1.0 / 3.0), P).minimise()
        np.testing.assert_allclose(found.x, vertex, atol=1e-5)


def test_sizes_of_sets_and_slopes_do_not_matter():
    rng = np.random.default_rng(7)
    g, H = quadratic(8, 40, rng)
    P = many_rows(8, rng)
    best = QuadraticProgram(g, H, np.zeros(8), P).minimise().x
    for length in (1e-6, 1e6):
        for slope in (1e-8, 1e8):
            scaled = QuadraticProgram(slope * g, slope / length * H, np.zeros(8), P.scaled(length)).minimise()
            np.testing.assert_allclose(scaled.x / length, best, atol=1e-7)


def test_an_empty_polyhedron_and_a_deadline_in_the_past_end():
    A = np.array([[1.0, 1.0], [-1.0, -1.0]])
    empty = polyhedron(np.zeros(2), np.ones(2), A, [-np.inf, -np.inf], [0.5, -1.5])
    with np.errstate(all="ignore"):
        assert QuadraticProgram(np.ones(2), np.eye(2), np.zeros(2), empty).minimise() is None
    rng = np.random.default_rng(8)
    g, H = quadratic(12, 40, rng)
    program = QuadraticProgram(g, H, np.zeros(12), many_rows(12, rng))
    found = program.minimise(deadline=time.perf_counter())
    assert found is None or program.polyhedron.violation(found.x) <= 1e-9


def test_a_point_is_a_polyhedron():
    P = polyhedron([0.5, 0.25], [0.5, 0.25])
    assert np.array_equal(QuadraticProgram(np.ones(2), np.eye(2), np.zeros(2), P).minimise().x, [0.5, 0.25])


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e150])
def test_the_minimiser_of_a_multiple_is_the_same(size):
    """Also where an entry has neither slope nor curvature, and rows are long: nothing overflows."""
    box = Polyhedron(np.full(3, -1.0), np.ones(3), np.full((1, 3), 1e6), np.array([-np.inf]), np.array([1e6]))
    H, g = np.diag([1.0, 2.0, 0.0]), np.array([-3.0, -1.0, 0.0])
    found = QuadraticProgram(size * g, size * H, np.zeros(3), box).minimise()
    np.testing.assert_allclose(found.x[:2], [1.0, 0.5], atol=1e-6)
    assert box.violation(found.x) <= 1e-6
    assert QuadraticProgram(size * g, np.zeros((3, 3)), np.zeros(3), box).minimise() is not None
