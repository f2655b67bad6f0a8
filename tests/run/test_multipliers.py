"""result.multipliers: the conditions of Karush, Kuhn and Tucker at the answer, for sets with linear rows."""

import pickle

import numpy as np
import pytest

import condgrad as cg
from condgrad.constraints import Box, IsotonicBox, Knapsack, L1Ball, L2Ball, LinearlyConstrained, Polytope, Simplex

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 6))
Y = np.sign(X @ np.array([1.0, -1.0, 0.5, 0.0, 2.0, -0.5]) + RNG.standard_normal(200))
A_UB, B_UB = RNG.standard_normal((3, 6)) * [[1.0], [10.0], [0.1]], np.array([0.1, 2.0, 0.01])
A_EQ, B_EQ = np.ones((1, 6)), np.array([0.5])
STEPS = np.eye(6)[:-1] - np.eye(6)[1:]
PRICES = np.arange(1.0, 7.0)
NO_ROWS, NO_SIDES = np.zeros((0, 6)), np.zeros(0)

SETS = {
    "Polytope": (Polytope(A_UB, B_UB, A_EQ, B_EQ, bounds=(-1.0, 1.0)), A_UB, B_UB, A_EQ, B_EQ, -1.0, 1.0),
    "LinearlyConstrained": (
        LinearlyConstrained(Box(-9.0, 9.0), A_UB, B_UB, bounds=(-0.3, 0.4)), A_UB, B_UB, NO_ROWS, NO_SIDES, -0.3, 0.4,
    ),
    "Box": (Box(-0.2, 0.3), NO_ROWS, NO_SIDES, NO_ROWS, NO_SIDES, -0.2, 0.3),
    "Simplex": (Simplex(2.0), NO_ROWS, NO_SIDES, A_EQ, np.array([2.0]), 0.0, 2.0),
    "Knapsack": (
        Knapsack(PRICES, 2.0, upper=0.4), PRICES[None], np.array([2.0]), NO_ROWS, NO_SIDES, 0.0, 0.4,
    ),
    "IsotonicBox": (IsotonicBox(-1.0, 1.0), STEPS, np.zeros(5), NO_ROWS, NO_SIDES, -1.0, 1.0),
}  # fmt: skip


def solve(constraint, solver="auto", **settings):
    return cg.minimize(cg.Problem(X, Y, cg.losses.Logistic(), constraint, **settings), solver, tol=1e-10)


@pytest.mark.parametrize("name", SETS)
def test_the_answer_and_its_multipliers_satisfy_all_conditions(name):
    constraint, A_ub, b_ub, A_eq, b_eq, low, high = SETS[name]
    result = solve(constraint)
    found, w = result.multipliers, result.w
    stationary = result.gradient + A_ub.T @ found.ub + A_eq.T @ found.eq - found.lower + found.upper
    np.testing.assert_allclose(stationary + found.normal, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.normal, 0.0, atol=1e-9)
    assert min(part.min(initial=0.0) for part in (found.ub, found.lower, found.upper)) >= 0.0
    products = found.ub @ (b_ub - A_ub @ w) + found.lower @ (w - low) + found.upper @ (high - w)
    assert abs(products + found.eq @ (b_eq - A_eq @ w) - result.gap) <= result.rounding + 1e-12
    assert max(part.max(initial=0.0) for part in (found.ub, found.lower, found.upper)) > 1e-3  # something is tight


def test_multipliers_are_rates_of_the_optimum():
    """b_ub grows by e: F* decreases by e times the multiplier."""
    at = solve(SETS["Polytope"][0])
    for row in range(3):
        moved = [
            solve(Polytope(A_UB, B_UB + e * np.eye(3)[row], A_EQ, B_EQ, bounds=(-1.0, 1.0))) for e in (-1e-4, 1e-4)
        ]
        rate = (moved[0].objective - moved[1].objective) / 2e-4
        assert rate == pytest.approx(at.multipliers.ub[row], abs=1e-4)


def test_every_solver_and_an_intercept_have_them():
    constraint = SETS["Polytope"][0]
    best = solve(constraint).multipliers
    for solver in ("corrective", "pairwise"):
        for one, other in zip(solve(constraint, solver).multipliers, best, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
    free = solve(constraint, intercept=True)
    stationary = free.gradient + A_UB.T @ free.multipliers.ub + A_EQ.T @ free.multipliers.eq
    np.testing.assert_allclose(stationary - free.multipliers.lower + free.multipliers.upper, 0.0, atol=1e-9)


def test_the_normal_of_a_cut_l1_ball_is_lambda_times_the_signs():
    result = solve(LinearlyConstrained(L1Ball(1.5), A_eq=A_EQ, b_eq=[0.0]))
    normal, w = result.multipliers.normal, result.w
    price = np.abs(normal).max()
    assert price > 1e-3
    np.testing.assert_allclose(normal[w != 0.0], price * np.sign(w[w != 0.0]), atol=1e-7)


def test_sets_without_rows_have_none():
    assert solve(L2Ball(1.0)).multipliers is None
    assert solve(L1Ball(1.0)).multipliers is None


def test_a_pickled_result_keeps_them():
    result = solve(SETS["Polytope"][0])
    copy = pickle.loads(pickle.dumps(result))
    for one, other in zip(copy.multipliers, result.multipliers, strict=True):
        np.testing.assert_array_equal(one, other)
