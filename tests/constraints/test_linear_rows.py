"""Sets as linear rows: the same set, its linear programs by every interface, and its multipliers."""

import copy
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from tables import SETS

import condgrad as cg
from condgrad.constraints import (
    Box,
    Knapsack,
    KSparsePolytope,
    L1Ball,
    LinearlyConstrained,
    LinearRows,
    Polytope,
    best_vertex,
)
from condgrad.constraints import _linear_program as linear_program
from condgrad.constraints._linear_program import LinearProgram, Outcome
from condgrad.constraints._rows import tightened

WITH_ROWS = [(constraint, d) for constraint, d in SETS if constraint.linear_rows(d) is not None]
each_set_with_rows = pytest.mark.parametrize(
    ("constraint", "d"), WITH_ROWS, ids=[type(constraint).__name__ for constraint, _ in WITH_ROWS]
)


def chain(d):
    A = np.eye(d)[:-1] - np.eye(d)[1:]
    return LinearRows(np.full(d, -1.0), np.full(d, 1.0), A, np.zeros(d - 1))


@each_set_with_rows
def test_rows_and_oracle_describe_one_set(constraint, d):
    rows = constraint.linear_rows(d)
    program, inside = LinearProgram(rows), rows.polyhedron()
    for r in np.random.default_rng(0).standard_normal((10, d)):
        s = best_vertex(constraint, r).to_dense(d)
        assert inside.violation(rows.lifted(s)) <= 1e-9
        optimum = program.minimise(rows.cost(r))
        w = rows.coefficients(optimum.x)
        assert constraint.contains(w, 1e-8)
        assert r @ w == pytest.approx(r @ s, abs=1e-8) == rows.cost(r) @ optimum.x


@each_set_with_rows
def test_multipliers_are_stationary_and_prove_the_best_value(constraint, d):
    rows = constraint.linear_rows(d)
    for r in np.random.default_rng(1).standard_normal((5, d)) * 1e-3:
        found = constraint.multipliers(r)
        if rows.is_split and not isinstance(constraint, LinearlyConstrained):
            assert found is None
            continue
        assert min(part.min(initial=0.0) for part in (found.ub, found.lower, found.upper)) >= 0.0
        if isinstance(constraint, LinearlyConstrained | Polytope):
            continue  # their rows are scaled: see below
        rest, value = r - found.lower + found.upper, 0.0
        for A, b, y in ((rows.A_ub, rows.b_ub, found.ub), (rows.A_eq, rows.b_eq, found.eq)):
            if A is not None:
                rest, value = rest + A.T @ y, value - b @ y
        value -= found.upper[found.upper > 0.0] @ rows.high[found.upper > 0.0]
        value += found.lower[found.lower > 0.0] @ rows.low[found.lower > 0.0]
        np.testing.assert_allclose(rest, 0.0, atol=1e-12)
        assert value == pytest.approx(r @ best_vertex(constraint, r).to_dense(d), abs=1e-11)


def test_multipliers_are_in_the_units_of_the_rows_as_given():
    """A row multiplied by 10, with its side, has a tenth of the multiplier."""
    A, b = np.array([[3.0, 4.0], [1.0, -1.0]]), np.array([5.0, 0.5])
    r = np.array([-3.5, -3.0])  # -(1/2) (3, 4) - (2) (1, -1) + (0, 3)
    once = Polytope(A, b, bounds=(-9.0, 9.0)).multipliers(r)
    np.testing.assert_allclose(r + A.T @ once.ub, 0.0, atol=1e-12)
    scaled = Polytope(A * [[10.0], [0.1]], b * [10.0, 0.1], bounds=(-9.0, 9.0)).multipliers(r)
    np.testing.assert_allclose(scaled.ub * [10.0, 0.1], once.ub)
    cut = LinearlyConstrained(Box(-9.0, 9.0), A * [[10.0], [0.1]], b * [10.0, 0.1]).multipliers(r)
    np.testing.assert_allclose(cut.ub, scaled.ub)
    np.testing.assert_allclose(cut.normal, 0.0, atol=1e-12)


def test_multipliers_of_a_cut_ball_belong_to_what_the_user_gave():
    r = np.array([-3.0, -1.0, 2.0])
    bounds = [(None, 0.5), (None, None), (None, None)]
    ball = LinearlyConstrained(L1Ball(2.0), A_eq=[[2.0, 2.0, 2.0]], b_eq=[0.0], bounds=bounds)
    found = ball.multipliers(r)  # the best vertex is (0.5, 0.5, -1)
    np.testing.assert_allclose(best_vertex(ball, r).to_dense(3), [0.5, 0.5, -1.0], atol=1e-9)
    np.testing.assert_allclose(r + 2.0 * found.eq + found.upper - found.lower + found.normal, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.upper, [2.0, 0.0, 0.0], atol=1e-9)  # w_1 <= 0.5 costs what w_2 would gain
    np.testing.assert_allclose(found.lower, 0.0)
    np.testing.assert_allclose(np.abs(found.normal), 1.5, atol=1e-9)  # lambda sign(w)
    inside = LinearlyConstrained(Box(-5.0, 5.0), A_eq=[[1.0, 1.0, 1.0]], b_eq=[0.0]).multipliers(r)
    assert not inside.upper.any() and not inside.lower.any()  # these bounds are the box's
    np.testing.assert_allclose(r + inside.eq + inside.normal, 0.0, atol=1e-12)


def test_linear_programs_depend_on_their_costs_alone():
    """Ties, too: no vertex depends on earlier calls."""
    program = LinearProgram(LinearRows(np.zeros(6), np.ones(6), np.ones((1, 6)), np.array([2.5])))
    costs = [*np.random.default_rng(0).integers(-2, 3, (8, 6)).astype(float), np.zeros(6), -np.ones(6)]
    first = [program.minimise(cost) for cost in costs]
    for cost, optimum in zip(reversed(costs), reversed(first), strict=True):
        again = program.minimise(cost)
        assert again.x.tobytes() == optimum.x.tobytes() and again.ub.tobytes() == optimum.ub.tobytes()


class Changed:
    """An interface whose methods have changed."""

    def setOptionValue(self, option):
        pass


@pytest.mark.parametrize(
    "interfaces", [(), (("no.such.module", "Highs"),), (("condgrad", "Highs"),), ((__name__, "Changed"),)]
)
def test_linprog_serves_where_no_interface_does(monkeypatch, interfaces):
    rows, cost = chain(5), np.array([1.0, -2.0, 0.5, 3.0, -1.0])
    best = LinearProgram(rows).minimise(cost)
    monkeypatch.setattr(linear_program, "_INTERFACES", interfaces)
    program = LinearProgram(rows)
    found = program.minimise(cost)
    assert program._model is False and found.outcome is Outcome.OPTIMAL
    np.testing.assert_allclose(found.x, best.x, atol=1e-9)
    assert rows.b_ub @ found.ub == pytest.approx(rows.b_ub @ best.ub)  # ties have several multipliers
    polytope = Polytope(rows.A_ub, rows.b_ub, bounds=(-1.0, 1.0))
    np.testing.assert_allclose(best_vertex(polytope, cost).to_dense(5), best.x, atol=1e-9)


def test_the_package_highspy_serves_as_well(monkeypatch):
    pytest.importorskip("highspy")
    rows, cost = chain(5), np.array([1.0, -2.0, 0.5, 3.0, -1.0])
    best = LinearProgram(rows).minimise(cost)
    monkeypatch.setattr(linear_program, "_INTERFACES", (("highspy", "Highs"),))
    program = LinearProgram(rows)
    np.testing.assert_allclose(program.minimise(cost).x, best.x, atol=1e-9)
    assert program._model is not False


def test_presolving_does_not_change_the_value():
    rng = np.random.default_rng(0)
    rows = chain(300)._replace(A_ub=scipy.sparse.csr_array(chain(300).A_ub))
    program = LinearProgram(rows)
    for cost in rng.standard_normal((3, 300)):
        optimum = program.minimise(cost)
        assert rows.polyhedron().violation(optimum.x) <= 1e-9
        tails = np.cumsum(cost[::-1])  # vertices step once, from -1 to 1
        assert cost @ optimum.x == pytest.approx(2.0 * min(tails.min(), 0.0) - cost.sum(), abs=1e-9)


def test_an_empty_set_and_an_unbounded_one_have_no_optimum():
    crossed = LinearRows(np.zeros(2), np.ones(2), np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([0.5, -1.5]))
    assert LinearProgram(crossed).minimise(np.ones(2)).outcome is Outcome.INFEASIBLE
    free = LinearRows(np.full(2, -np.inf), np.full(2, np.inf), np.ones((1, 2)), np.ones(1))
    assert LinearProgram(free).minimise(np.ones(2)).outcome is Outcome.OTHER


def test_linear_programs_survive_copies_and_threads():
    polytope = Polytope(chain(20).A_ub, np.zeros(19), bounds=(-1.0, 1.0))
    costs = np.random.default_rng(0).standard_normal((40, 20))
    expected = [best_vertex(polytope, r).to_dense(20) for r in costs]
    for other in (pickle.loads(pickle.dumps(polytope)), copy.deepcopy(polytope)):
        assert np.array_equal([best_vertex(other, r).to_dense(20) for r in costs[:5]], expected[:5])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda r: best_vertex(polytope, r).to_dense(20), costs))
    assert np.array_equal(found, expected)


def test_new_sets_can_be_cut():
    sack = LinearlyConstrained(Knapsack([1.0, 2.0, 1.0], 3.0), A_eq=[[1.0, 0.0, -1.0]], b_eq=[0.0])
    np.testing.assert_allclose(best_vertex(sack, np.array([-1.0, -3.0, -1.0])).to_dense(3), [0.0, 1.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(best_vertex(sack, np.array([-2.0, -3.0, -2.0])).to_dense(3), [1.5, 0.0, 1.5], atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_bounds_that_follow_from_rows_hold_for_every_point(seed):
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    inside, A = rng.standard_normal(d), rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.7)
    b = A @ inside + rng.random(m) * (rng.random(m) < 0.5)
    bounds = np.column_stack([inside - rng.random(d), inside + rng.random(d)])
    bounds[rng.random((d, 2)) < 0.5] = np.inf
    bounds[:, 0] = np.where(bounds[:, 0] == np.inf, -np.inf, bounds[:, 0])
    box = tightened(bounds, [(A, b)])
    assert ((box == bounds) | np.isinf(bounds)).all()
    for j, (side, sign) in itertools.product(range(d), ((0, 1.0), (1, -1.0))):
        found = scipy.optimize.linprog(sign * np.eye(d)[j], A, b, bounds=bounds)
        if found.status == 0:
            assert sign * box[j, side] <= found.fun
        else:
            assert np.isinf(box[j, side])


def test_bounds_follow_from_other_bounds_over_several_rows():
    shares = np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, -1.0, 1.0]])  # a + b + c <= 1, d <= c
    box = tightened(np.array([[0.0, np.inf]] * 3 + [[-1.0, np.inf]]), [(shares, np.array([1.0, 0.0]))])
    np.testing.assert_allclose(box[:, 1], 1.0, rtol=1e-7)
    assert (box[:, 1] >= 1.0).all()


def test_a_polytope_whose_rows_bound_it_needs_few_linear_programs(monkeypatch):
    solved = []
    minimise = LinearProgram.minimise
    monkeypatch.setattr(LinearProgram, "minimise", lambda self, cost: solved.append(cost) or minimise(self, cost))
    shares = Polytope(A_eq=np.ones((1, 8)), b_eq=[2.0], bounds=(0.0, None))
    cg.Problem(np.eye(8), np.ones(8), cg.losses.Squared(), shares)
    assert len(solved) == 2  # the two ends, which show its size
    assert shares.reach(np.ones(8)) == pytest.approx(4.0)


@pytest.mark.parametrize("is_split", [False, True])
def test_far_vertices_show_the_size_of_the_set(is_split):
    inner = KSparsePolytope(2, 3.0) if is_split else Box(-3.0, 3.0)
    balanced = LinearlyConstrained(inner, A_eq=np.ones((1, 4)), b_eq=[0.0])
    for s in balanced.far_vertices(4):
        assert balanced.contains(s.to_dense(4))
        assert np.abs(s.to_dense(4)).max() == pytest.approx(3.0)
    with pytest.raises(ValueError, match="constraint"):
        cg.Problem(
            np.eye(4),
            np.ones(4),
            cg.losses.Squared(),
            LinearlyConstrained(Box(-1e70, 1e70), A_eq=np.ones((1, 4)), b_eq=[0.0]),
        )
