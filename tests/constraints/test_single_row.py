"""Linear programs with one row by sorting: optimal by their own multipliers, as good as HiGHS, or left to it."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog

from condgrad.constraints import Polytope
from condgrad.constraints._linear_program import LinearProgram, Outcome
from condgrad.constraints._single_row import SingleRow
from condgrad.constraints.linear_rows import LinearRows
from condgrad.linalg.vectors import DenseVector


def draw(rng):
    """Return a program with ties, zeros, infinite bounds and fixed entries; some have no solution."""
    d = int(rng.integers(1, 9))
    some = rng.random() < 0.5
    a = rng.integers(-2, 3, d).astype(float) if some else rng.standard_normal(d)
    cost = rng.integers(-2, 3, d).astype(float) if rng.random() < 0.5 else rng.standard_normal(d)
    low = np.where(rng.random(d) < 0.25, -np.inf, rng.integers(-3, 1, d).astype(float))
    high = np.where(rng.random(d) < 0.25, np.inf, np.where(np.isfinite(low), low, 0.0) + rng.integers(0, 4, d))
    b = np.array([a @ np.clip(rng.integers(-3, 4, d), low, high) + float(rng.integers(-1, 2) * (rng.random() < 0.2))])
    A = scipy.sparse.csr_array(a[None]) if rng.random() < 0.3 else a[None]
    sides = {"A_eq": A, "b_eq": b} if rng.random() < 0.5 else {"A_ub": A, "b_ub": b}
    return a, b[0], cost, LinearRows(low, high, **sides)


@pytest.mark.parametrize("seed", range(4))
def test_what_it_finds_is_optimal(seed):
    rng, count = np.random.default_rng(seed), 0
    for _ in range(250):
        a, b, cost, rows = draw(rng)
        sides = (rows.A_ub, rows.b_ub, rows.A_eq, rows.b_eq)
        expected = linprog(cost, *sides, bounds=np.column_stack([rows.low, rows.high]))
        found = SingleRow(rows).minimise(cost)
        if found is None:
            continue
        x, (y,) = found
        count += 1
        assert expected.status == 0 and cost @ x == pytest.approx(expected.fun, abs=1e-9)
        assert (x >= rows.low).all() and (x <= rows.high).all()
        missed = a @ x - b
        assert missed <= 1e-12 and (y <= 0.0 or rows.b_ub is None)
        assert abs(missed) <= 1e-12 or (y == 0.0 and rows.b_eq is None)
        rest = cost - a * y
        assert (np.isclose(rest, 0.0, atol=1e-12) | (x == np.where(rest > 0.0, rows.low, rows.high))).all()
        assert np.count_nonzero((x > rows.low) & (x < rows.high)) <= 1
    assert count >= 100


def test_other_programs_are_left_to_highs():
    shares = LinearRows(np.zeros(2), np.full(2, np.inf), A_eq=np.ones((1, 2)), b_eq=-np.ones(1))
    assert SingleRow(shares).minimise(np.ones(2)) is None
    assert LinearProgram(shares).minimise(np.ones(2)).outcome is Outcome.INFEASIBLE
    free = LinearRows(np.full(2, -np.inf), np.full(2, np.inf), A_eq=np.ones((1, 2)), b_eq=np.ones(1))
    assert SingleRow(free).minimise(np.array([1.0, -1.0])) is None


def test_sets_of_one_row_have_exact_vertices_and_multipliers():
    portfolio = Polytope(A_eq=[[1.0, 1.0, 1.0]], b_eq=[2.0], bounds=(0.0, None))
    s = portfolio.lmo(DenseVector(np.array([3.0, 1.0, 1.0])))
    np.testing.assert_array_equal(s.values, [0.0, 2.0, 0.0])
    found = portfolio.multipliers(np.array([3.0, 1.0, 1.0]))
    np.testing.assert_allclose(found.eq, [-1.0])
    np.testing.assert_allclose(found.lower, [2.0, 0.0, 0.0], atol=1e-15)
