"""Linear programs over a budget and one more row: optimal by their own multipliers, as good as HiGHS, or left to it."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog

import condgrad as cg
from condgrad.constraints import L1Ball, LinearlyConstrained, Polytope, WeightedL1Ball
from condgrad.constraints._budget_and_row import BudgetAndRow
from condgrad.constraints._linear_program import LinearProgram, Outcome
from condgrad.constraints.linear_rows import LinearRows
from condgrad.linalg.vectors import DenseVector


def draw(rng):
    """Return a program with ties and zeros, the budget in either place, used up or not; some have no solution."""
    d = int(rng.integers(1, 9))
    whole = rng.random() < 0.5
    a = rng.integers(-2, 3, d).astype(float) if whole else rng.standard_normal(d)
    cost = rng.integers(-2, 3, d).astype(float) if rng.random() < 0.5 else rng.standard_normal(d)
    prices = rng.integers(1, 3, d).astype(float) if whole else rng.uniform(0.1, 3.0, d)
    budget = float(rng.integers(1, 4))
    high = np.where(rng.random(d) < 0.5, np.inf, budget / prices * rng.uniform(1.0, 2.0, d))
    x = rng.exponential(size=d)
    x *= budget / (prices @ x)
    side = float(a @ x) if rng.random() < 0.7 else float(rng.integers(-3, 4))
    is_equation = rng.random(2) < 0.5
    rows, sides = [prices, a], [budget, side]
    A = [np.array([row for row, flag in zip(rows, is_equation, strict=True) if flag == k]) for k in (False, True)]
    b = [np.array([row for row, flag in zip(sides, is_equation, strict=True) if flag == k]) for k in (False, True)]
    A = [None if part.size == 0 else scipy.sparse.csr_array(part) if rng.random() < 0.3 else part for part in A]
    ub, eq = ((part, None if part is None else side) for part, side in zip(A, b, strict=True))
    return cost, LinearRows(np.zeros(d), high, *ub, *eq)


@pytest.mark.parametrize("seed", range(4))
def test_what_it_finds_is_optimal(seed):
    rng, count = np.random.default_rng(seed), 0
    for _ in range(250):
        cost, rows = draw(rng)
        expected = linprog(
            cost, rows.A_ub, rows.b_ub, rows.A_eq, rows.b_eq, bounds=np.column_stack([rows.low, rows.high])
        )
        found = BudgetAndRow.of(rows).minimise(cost)
        if found is None:  # no solution, or one that rounding hides, as of a single feature
            continue
        x, y = found
        count += 1
        assert expected.status == 0 and cost @ x == pytest.approx(expected.fun, abs=1e-9)
        assert (x >= 0.0).all() and (x <= rows.high).all() and np.count_nonzero(x) <= 2
        _, _, A, low, high = rows.polyhedron()
        A = A.toarray() if scipy.sparse.issparse(A) else A
        assert (A @ x >= low - 1e-12).all() and (A @ x <= high + 1e-12).all()
        rest = cost - A.T @ y
        assert (rest >= -1e-12).all() and np.abs(rest * x).max() <= 1e-12
        is_used = np.isclose(A @ x, high, atol=1e-12)
        assert (is_used | (y == 0.0)).all() and (y[np.isinf(low)] <= 1e-15).all()
    assert count >= 150


def test_other_programs_are_left_to_highs():
    ones = np.ones((1, 3))
    slope = np.array([[1.0, 2.0, 3.0]])
    zero, inf = np.zeros(3), np.full(3, np.inf)
    budget = {"A_ub": np.vstack([ones, slope - 2.0]), "b_ub": np.array([1.0, 0.0])}
    assert BudgetAndRow.of(LinearRows(zero, inf, **budget)) is not None
    assert BudgetAndRow.of(LinearRows(zero, np.full(3, 0.5), **budget)) is None  # these bounds count
    assert BudgetAndRow.of(LinearRows(zero - 1.0, inf, **budget)) is None
    assert BudgetAndRow.of(LinearRows(zero, inf, slope - 2.0, np.ones(1), slope - 3.0, np.ones(1))) is None
    assert BudgetAndRow.of(LinearRows(zero, inf, A_eq=ones, b_eq=np.ones(1))) is None
    cheap = np.array([[1.0, 1.0, 1e-320], [1.0, -1.0, 0.0]])
    assert BudgetAndRow.of(LinearRows(zero, inf, cheap, np.ones(2))) is None
    never = LinearRows(zero, inf, slope, np.array([0.5]), ones, np.ones(1))
    assert BudgetAndRow.of(never).minimise(np.ones(3)) is None
    assert LinearProgram(never).minimise(np.ones(3)).outcome is Outcome.INFEASIBLE


@pytest.mark.parametrize(("side", "end"), [(1.0, 0), (3.0, 2)])
def test_an_end_on_the_side_itself_is_the_solution_where_none_lies_beyond(side, end):
    A = np.array([np.ones(3), [1.0, 2.0, 3.0]])
    rows = LinearRows(np.zeros(3), np.full(3, np.inf), A_eq=A, b_eq=np.array([1.0, side]))
    x, _ = BudgetAndRow.of(rows).minimise(np.array([5.0, 0.0, 5.0]))
    np.testing.assert_array_equal(x, np.eye(3)[end])


def test_steps_of_the_line_lead_to_the_hull_where_many_ends_lie_on_it():
    angle = np.linspace(0.0, np.pi, 2_001)  # all ends are on the hull
    rows = LinearRows(
        np.zeros(angle.size), np.full(angle.size, np.inf), A_eq=np.array([np.ones(angle.size), np.cos(angle)]),
        b_eq=np.array([1.0, 0.37]),
    )  # fmt: skip
    x, y = BudgetAndRow.of(rows).minimise(-np.sin(angle))
    assert -np.sin(angle) @ x == pytest.approx(-np.sqrt(1.0 - 0.37**2), abs=1e-6)
    assert (-np.sin(angle) - y[0] - y[1] * np.cos(angle)).min() >= -1e-12


def test_contrasts_have_exact_vertices_and_multipliers():
    contrast = LinearlyConstrained(L1Ball(2.0), A_eq=np.ones((1, 4)), b_eq=[0.0])
    s = contrast.lmo(DenseVector(np.array([3.0, 1.0, -1.0, 0.5])))
    np.testing.assert_array_equal(s.to_dense(4), [-1.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(contrast.multipliers(np.array([3.0, 1.0, -1.0, 0.5])).eq, [-1.0])
    fund = Polytope(A_eq=[[1.0, 1.0, 1.0]], b_eq=[1.0], A_ub=[[-1.0, -2.0, -3.0]], b_ub=[-2.5], bounds=(0.0, None))
    np.testing.assert_allclose(fund.lmo(DenseVector(np.array([1.0, 5.0, 2.0]))).values, [0.25, 0.0, 0.75])
    np.testing.assert_allclose(fund.multipliers(np.array([1.0, 5.0, 2.0])).ub, [0.5])


def test_a_regression_on_contrasts_is_that_of_highs(monkeypatch):
    rng = np.random.default_rng(3)
    X, weights = rng.standard_normal((80, 12)), rng.uniform(0.5, 2.0, 12)
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(80)

    def solve(inner):
        ball = LinearlyConstrained(inner, A_eq=np.ones((1, 12)), b_eq=[0.0])
        return cg.minimize(cg.Problem(X, y, cg.losses.Squared(), ball), tol=1e-10)

    own = [solve(inner) for inner in (L1Ball(1.5), WeightedL1Ball(1.5, weights))]
    monkeypatch.setattr("condgrad.constraints._linear_program.direct", lambda rows: None)
    for result, inner in zip(own, (L1Ball(1.5), WeightedL1Ball(1.5, weights)), strict=True):
        expected = solve(inner)
        assert result.status is expected.status is cg.Status.CONVERGED
        np.testing.assert_allclose(result.w, expected.w, atol=1e-5)
        np.testing.assert_allclose(result.multipliers.eq, expected.multipliers.eq, atol=1e-5)
