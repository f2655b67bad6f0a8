"""Every constraint set keeps its promises, finds the best vertex, and refuses wrong parameters in one sentence."""

import inspect
import itertools
import pickle
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from tables import GRAPH, SET_NAMES, SETS, disc

import condgrad as cg
from condgrad import constraints
from condgrad.compiled import is_compiled
from condgrad.constraints import (
    Atom,
    Birkhoff,
    Box,
    ConstraintSet,
    ConvexHull,
    ConvexHullOfUnion,
    DenseVertex,
    Ellipsoid,
    Fantope,
    FlowPolytope,
    FusedBall,
    GraphTotalVariationBall,
    GroupBall,
    Hypersimplex,
    IsotonicBox,
    Knapsack,
    KSparsePolytope,
    KSupportBall,
    L1Ball,
    L2Ball,
    LatentGroupBall,
    LinearImage,
    LinearlyConstrained,
    LinearRows,
    LinfBall,
    LpBall,
    MatroidBasePolytope,
    MinkowskiSum,
    Multipliers,
    NonnegativeL1Ball,
    NuclearBall,
    OracleSet,
    OrderedWeightedL1Ball,
    Permutahedron,
    Polytope,
    Product,
    PSDTraceBall,
    Scale,
    Shift,
    Simplex,
    SpanningTreePolytope,
    SparseGroupBall,
    SparseVertex,
    Spectraplex,
    TotalVariationBall,
    WeightedL1Ball,
    WeightedNuclearBall,
    as_constraint_set,
    best_vertex,
    by_name,
    constraint_set,
    partition_matroid,
    uniform_matroid,
)
from condgrad.constraints._capped import project_capped, systematic_sample
from condgrad.constraints._protocol import has_origin
from condgrad.linalg.selection import smallest, sorted_places
from condgrad.linalg.vectors import DenseVector
from condgrad.testing import check_constraint_set

each_set = pytest.mark.parametrize(("constraint", "d"), SETS, ids=SET_NAMES)


@each_set
def test_the_set_keeps_its_promises(constraint, d):
    check_constraint_set(constraint, d)


def test_every_set_is_in_the_table():
    no_sets = {ConstraintSet, LinearRows, Multipliers, Atom, SparseVertex, DenseVertex}
    classes = {value for value in map(constraints.__dict__.get, constraints.__all__) if inspect.isclass(value)}
    missing = {cls.__name__ for cls in classes - no_sets - {type(constraint) for constraint, _ in SETS}}
    assert not missing, f"give an example of {missing} in SETS of tests/tables.py."
    assert constraints.__all__ == sorted(constraints.__all__)


@each_set
def test_the_set_survives_pickle_and_reads_well(constraint, d):
    assert len(repr(constraint)) < 150
    assert "array(" not in repr(constraint)
    assert "None" not in repr(constraint)
    if not isinstance(constraint, OracleSet):  # a lambda cannot be pickled
        copy = pickle.loads(pickle.dumps(constraint))
        assert (repr(copy), copy.n_features) == (repr(constraint), constraint.n_features)


@each_set
def test_a_nan_is_in_no_set(constraint, d):
    assert not constraint.contains(np.full(d, np.nan))


def test_only_sets_of_compiled_parts_are_compiled():
    assert is_compiled(Shift(Scale(GroupBall([0, 1], 1.0), 2.0), [0.0, 0.0]))
    assert not is_compiled(Scale(Polytope(bounds=[(0, 1)]), 2.0))
    assert not is_compiled(Shift(Scale(OracleSet(disc), 2.0), [0.0, 0.0]))


# The oracle against something that knows nothing of it.


def signed(k, d):
    """All vectors of length d with k entries +-1."""
    for places in itertools.combinations(range(d), k):
        for signs in itertools.product([-1.0, 1.0], repeat=k):
            point = np.zeros(d)
            point[list(places)] = signs
            yield point


def corners(lower, upper):
    return [np.array(corner) for corner in itertools.product(*zip(lower, upper))]


def simplex(d):
    return list(np.eye(d))


WEIGHTS = np.array([1.0, 2.0, 0.5, 4.0])
# Sets and all their vertices, which must be the only answers that the oracle gives.
VERTICES = [
    (L1Ball(2.0), [2.0 * v for v in signed(1, 4)]),
    (WeightedL1Ball(2.0, WEIGHTS), [2.0 * v / WEIGHTS for v in signed(1, 4)]),
    (NonnegativeL1Ball(3.0), [3.0 * v for v in simplex(4)] + [np.zeros(4)]),
    (Simplex(3.0), [3.0 * v for v in simplex(4)]),
    (LinfBall(3.0), [3.0 * v for v in signed(4, 4)]),
    (Box([-1.0, 0.0, 2.0], [1.0, 5.0, 3.0]), corners([-1.0, 0.0, 2.0], [1.0, 5.0, 3.0])),
    (KSparsePolytope(2, 1.5), [1.5 * v for v in signed(2, 4)]),
    (Hypersimplex(2, 3.0), [3.0 * v for v in signed(2, 4) if v.min() >= 0.0]),
    (ConvexHull(np.vstack([np.zeros(2), corners([-1, -1], [1, 1])])), corners([-1, -1], [1, 1])),
    (
        Polytope([[1, 1, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]], [1.0, 0.0, 0.0, 0.0]),
        [*simplex(3), np.zeros(3)],
    ),
    (
        Product([Simplex(), LinfBall(1.0)], [2, 2]),
        [np.concatenate(pair) for pair in itertools.product(simplex(2), signed(2, 2))],
    ),
    (Scale(Simplex(), -2.0), [-2.0 * v for v in simplex(3)]),
    (Scale(Hypersimplex(2), 2.0), [2.0 * v for v in signed(2, 4) if v.min() >= 0.0]),
    (Shift(Simplex(), [1.0, -2.0, 3.0]), [v + [1.0, -2.0, 3.0] for v in simplex(3)]),
]


@pytest.mark.parametrize(("constraint", "vertices"), VERTICES, ids=[repr(constraint) for constraint, _ in VERTICES])
def test_lmo_returns_the_best_of_all_vertices(constraint, vertices):
    vertices = np.array(vertices)
    d = vertices.shape[1]
    rng = np.random.default_rng(0)
    ties = [np.array(r, dtype=float) for r in itertools.product([-1, 0, 1], repeat=min(d, 3))]
    for r in [*rng.standard_normal((20, d)), *(np.resize(r, d) for r in ties)]:
        s = best_vertex(constraint, r).to_dense(d)
        assert np.abs(vertices - s).max(axis=1).min() <= 1e-12  # one of them, for ties and zeros too
        assert r @ s == pytest.approx((vertices @ r).min(), abs=1e-12)
    for order in (1, 2, np.inf):
        exact = max(np.linalg.norm(vertices - v, order, axis=1).max() for v in vertices)
        if isinstance(constraint, Polytope):
            assert constraint.diameter(order) >= exact
        else:
            assert constraint.diameter(order, d) == pytest.approx(exact)


@pytest.mark.parametrize("seed", range(4))
def test_lmo_of_a_convex_hull_solves_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    atoms, r = rng.standard_normal((12, 3)), rng.standard_normal(3)
    expected = linprog(atoms @ r, A_eq=np.ones((1, 12)), b_eq=[1.0]).fun
    assert r @ best_vertex(ConvexHull(atoms), r).values == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_knapsack_is_the_linear_program_and_its_projection(seed):
    rng = np.random.default_rng(seed)
    prices, upper, r = rng.uniform(0.5, 2.0, 6), rng.uniform(0.1, 1.0, 6), rng.standard_normal(6)
    sack = Knapsack(prices, budget=2.0, upper=upper)
    expected = linprog(r, A_ub=prices[None], b_ub=[2.0], bounds=list(zip(np.zeros(6), upper, strict=True))).fun
    assert r @ best_vertex(sack, r).to_dense(6) == pytest.approx(expected)
    for v in (3.0 * r, 0.1 * r, np.abs(r), 50.0 + r):
        w = sack.project(v)
        assert sack.violation(w) <= 1e-12
        assert (v - w) @ (best_vertex(sack, w - v).to_dense(6) - w) <= 1e-12  # no point of the set is nearer
    assert np.array_equal(sack.project(0.1 * upper), 0.1 * upper)


def test_a_knapsack_in_many_features_is_solved_on_few_of_them():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 200))
    y = X[:, :5] @ np.ones(5) + rng.standard_normal(300)
    sack = Knapsack(rng.uniform(0.5, 2.0, 200), budget=2.0, upper=0.6)
    problem = cg.Problem(X, y, cg.losses.Squared(), sack)
    result = cg.minimize(problem, "corrective", tol=1e-10)
    assert result.status is cg.Status.CONVERGED
    assert len(result.state.atoms) < 150
    exact = cg.minimize(problem, "pairwise", tol=1e-8)
    assert result.objective == pytest.approx(exact.objective, abs=1e-7)
    assert sum(weight for weight, _ in sack.decompose(result.w)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "rule",
    [uniform_matroid(3), uniform_matroid(9), partition_matroid([1, 0, 1, 2, 2, 1, 0, 2], [1, 2, 0])],
    ids=["uniform", "all", "partition"],
)
def test_the_base_of_a_known_rule_is_that_of_the_greedy_algorithm(rule):
    at_once, one_by_one = MatroidBasePolytope(8, rule), MatroidBasePolytope(8, lambda features: rule(features))
    assert at_once.rank == one_by_one.rank
    for r in np.random.default_rng(0).integers(-2, 3, (30, 8)).astype(float):  # with ties
        s, expected = best_vertex(at_once, r), best_vertex(one_by_one, r)
        assert np.array_equal(s.indices, expected.indices) and np.array_equal(s.values, expected.values)


@pytest.mark.parametrize(
    ("constraint", "dual_norm"),
    [
        (L2Ball(2.0), lambda r: 2.0 * np.linalg.norm(r)),
        (LpBall(3.0, 2.0), lambda r: 2.0 * np.linalg.norm(r, 1.5)),
        (LpBall(1.25, 2.0), lambda r: 2.0 * np.linalg.norm(r, 5.0)),
        (GroupBall([5, 2, 5, 2, 2], 2.0), lambda r: 2.0 * max(np.linalg.norm(r[[0, 2]]), np.linalg.norm(r[[1, 3, 4]]))),
    ],
    ids=["l2", "l3", "l1.25", "group"],
)
def test_lmo_attains_the_dual_norm(constraint, dual_norm):
    for r in np.random.default_rng(0).standard_normal((20, 5)):
        s = best_vertex(constraint, r).to_dense(5)
        assert r @ s == pytest.approx(-dual_norm(r))
        assert constraint.violation(s) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("constraint", [L2Ball(2.0), LpBall(3.0, 2.0), LpBall(1.5, 2.0), GroupBall([1, 0, 1, 1], 2.0)])
def test_diameters_of_round_sets_are_attained(constraint):
    # The farthest points of a symmetric set are +-s for an s with the largest norm: on a spike or evenly spread.
    spread = np.array([1.0, 0.0, 1.0, 1.0]) if isinstance(constraint, GroupBall) else np.ones(4)
    for order in (1, 2, np.inf):
        longest = max(np.linalg.norm(best_vertex(constraint, r).to_dense(4), order) for r in (spread, np.eye(4)[0]))
        assert constraint.diameter(order, 4) == pytest.approx(2.0 * longest)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.integers(1, 30))
def test_smallest_is_a_stable_sort(keys, k):
    expected = np.sort(np.argsort(keys, kind="stable")[:k])
    assert smallest(np.array(keys, dtype=float), k).tolist() == expected.tolist()


@given(st.lists(st.floats(allow_nan=False), max_size=30) | st.lists(st.integers(-3, 3), max_size=30))
def test_sorted_places_are_a_stable_sort(keys):
    assert sorted_places(np.array(keys, dtype=float)).tolist() == np.argsort(keys, kind="stable").tolist()


def test_smallest_does_not_crash_on_nan():
    assert sorted(sorted_places(np.array([np.nan, 1.0, -np.nan])).tolist()) == [0, 1, 2]
    assert smallest(np.full(5, np.nan), 3).tolist() == [0, 0, 0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12), st.integers(1, 12))
def test_the_projection_onto_the_capped_simplex_is_exact(v, k):
    v, k = np.array(v), min(k, len(v))
    x = project_capped(v, 2.0, 2.0 * k)
    assert x.min() >= 0.0
    assert x.max() <= 2.0
    assert x.sum() == pytest.approx(2.0 * k, rel=1e-12)
    moves = x - v  # equal to -theta inside, larger at 0, smaller at the cap
    inside = moves[(x > 0.0) & (x < 2.0)]
    tol = 1e-9 * (1.0 + np.abs(v).max())
    if inside.size:
        assert np.ptp(inside) <= tol
        assert (moves[x == 0.0] >= inside.max() - tol).all()
        assert (moves[x == 2.0] <= inside.min() + tol).all()


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_systematic_samples_have_the_right_mean(t):
    t = np.array([*t, np.ceil(sum(t)) - sum(t)])
    k = round(t.sum())
    if k == 0:
        return
    mean = np.zeros(t.size)
    for weight, places in systematic_sample(t, k):
        assert np.unique(places).size == k
        mean[places] += weight
    assert np.abs(mean - t).max() <= 1e-10


def test_vertices_of_a_polytope_are_extreme():
    rng = np.random.default_rng(0)
    for digits in (0, 1, 5):  # small integers give degenerate vertices and edges along which costs tie
        half = rng.standard_normal((7, 3)).round(digits)
        A = np.vstack([half, -half, np.eye(3), -np.eye(3)])
        b = np.concatenate([0.1 + rng.random(14), np.full(6, 3.0)])
        polytope = Polytope(A, b)
        for r in [np.zeros(3), -A[0], np.array([1.0, 0.0, 0.0]), rng.standard_normal(3)]:
            s = best_vertex(polytope, r).values
            assert np.linalg.matrix_rank(A[np.abs(A @ s - b) <= 1e-8]) == 3
            assert r @ s == pytest.approx(linprog(r, A, b, bounds=(None, None)).fun, abs=1e-8)


def test_a_polytope_takes_sparse_rows_and_bounds_per_feature():
    A = scipy.sparse.csc_array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    polytope = Polytope(A, [1.0, 0.0], bounds=[(0, None), (0, np.inf), (-1, 1)])
    assert polytope.n_features == 3
    assert best_vertex(polytope, np.array([-1.0, -2.0, 1.0])).values == pytest.approx([0.0, 1.0, -1.0])
    assert polytope.violation(np.array([1.0, 1.0, 0.0])) == pytest.approx(np.sqrt(0.5))  # a distance


def test_zero_and_ties_give_the_first_vertex():
    assert best_vertex(NonnegativeL1Ball(1.0), np.zeros(3)) == Atom(0, 0.0)
    assert best_vertex(Simplex(), np.zeros(3)) == Atom(0, 1.0)
    assert best_vertex(KSparsePolytope(2, 1.0), np.ones(4)).indices.tolist() == [0, 1]
    assert best_vertex(Product([Simplex(), L1Ball(1.0)], [2, 2]), np.zeros(4)).indices.tolist() == [0, 2]


def test_scalar_bounds_fit_any_dimension_and_arrays_one():
    assert Box(0.0, 1.0).n_features is None
    assert Box([0.0], [1.0]).n_features == 1
    assert Box(0.0, 1.0, size=3).n_features == 3
    with pytest.raises(ValueError, match="length 3"):
        Box(0.0, [1.0, 1.0, 1.0]).check_features(4)
    with pytest.raises(ValueError, match="pass n_features"):
        Box(0.0, 1.0).diameter(2)
    assert Box(0.0, 3.0).diameter(np.inf) == LinfBall(1.5).diameter(np.inf) == 3.0


def test_sets_do_not_share_arrays_with_the_caller():
    weights = np.ones(3)
    ball = WeightedL1Ball(1.0, weights)
    weights[0] = -1.0
    assert ball.weights.tolist() == [1.0, 1.0, 1.0]


# Wrong parameters.


WRONG = {
    "negative radius": (lambda: L2Ball(-1.0), ValueError, "radius of L2Ball must be positive and finite; got -1.0"),
    "nan radius": (lambda: Simplex(np.nan), ValueError, "radius of Simplex"),
    "infinite radius": (lambda: LinfBall(np.inf), ValueError, "radius of LinfBall"),
    "zero radius": (lambda: GroupBall([0, 1], 0), ValueError, "radius of GroupBall"),
    "string radius": (lambda: NonnegativeL1Ball("1"), TypeError, "must be a real number; got '1'"),
    "complex radius": (lambda: LpBall(2, 1j), TypeError, "radius of LpBall must be a real number"),
    "boolean radius": (lambda: KSparsePolytope(1, True), TypeError, "radius of KSparsePolytope"),
    "p of 1": (lambda: LpBall(1, 1.0), ValueError, "Use L1Ball"),
    "p of inf": (lambda: LpBall(np.inf, 1.0), ValueError, "LinfBall"),
    "p of nan": (lambda: LpBall(np.nan, 1.0), ValueError, "between 1 and infinity"),
    "k of 0": (lambda: Hypersimplex(0), ValueError, "k of Hypersimplex must be at least 1; got 0"),
    "k of 1.5": (lambda: KSparsePolytope(1.5, 1.0), TypeError, "must be an integer; got 1.5"),
    "k of True": (lambda: Hypersimplex(True), TypeError, "must be an integer"),
    "k above d, sparse": (lambda: KSparsePolytope(4, 1.0).check_features(3), ValueError, "at most the number of"),
    "k above d, simplex": (lambda: Hypersimplex(4).check_features(3), ValueError, "features, 3; got 4"),
    "zero weight": (lambda: WeightedL1Ball(1.0, [1.0, 0.0]), ValueError, "weights of WeightedL1Ball must be positive"),
    "what takes zero weights": (lambda: WeightedL1Ball(1.0, [1.0, 0.0]), ValueError, "LimitedL1Ball takes features of"),
    "nan weight": (lambda: WeightedL1Ball(1.0, [1.0, np.nan]), ValueError, "must be finite; got nan"),
    "tiny weight": (lambda: WeightedL1Ball(1.0, [5e-324, 1.0]), ValueError, "must be finite"),
    "string weights": (lambda: WeightedL1Ball(1.0, ["a", "b"]), TypeError, "must hold real numbers"),
    "complex weights": (lambda: WeightedL1Ball(1.0, [1j, 1.0]), TypeError, "complex128"),
    "object weights": (lambda: WeightedL1Ball(1.0, [None, 1.0]), TypeError, "object"),
    "no weights": (lambda: WeightedL1Ball(1.0, []), ValueError, "non-empty 1-D array"),
    "2-D weights": (lambda: WeightedL1Ball(1.0, np.ones((2, 2))), ValueError, "got shape \\(2, 2\\)"),
    "scalar weights": (lambda: WeightedL1Ball(1.0, 2.0), ValueError, "1-D array"),
    "other dimension": (
        lambda: WeightedL1Ball(1.0, [1, 2]).check_features(3),
        ValueError,
        "length 2, but the data have 3",
    ),
    "zero price": (lambda: Knapsack([1.0, 0.0], 1.0), ValueError, "prices of Knapsack must be positive; got 0.0"),
    "tiny price": (lambda: Knapsack([5e-324], 1.0), ValueError, "budget / prices of Knapsack must be finite"),
    "negative budget": (lambda: Knapsack([1.0], -1.0), ValueError, "budget of Knapsack must be positive"),
    "nan upper": (lambda: Knapsack([1.0], 1.0, np.nan), ValueError, "upper of Knapsack must be positive; got nan"),
    "length of upper": (lambda: Knapsack([1.0], 1.0, [1.0, 2.0]), ValueError, "one entry per price, 1; got 2"),
    "no groups": (lambda: GroupBall([], 1.0), ValueError, "one label per feature"),
    "2-D groups": (lambda: GroupBall([[0, 1]], 1.0), ValueError, "one label per feature"),
    "ragged groups": (lambda: GroupBall([[0, 1], [2]], 1.0), ValueError, "rows of different lengths"),
    "float groups": (lambda: GroupBall([0.0, 1.5], 1.0), TypeError, "integer labels"),
    "lower > upper": (lambda: Box([0, 2], [1, 1]), ValueError, "lower = 2 and upper = 1 at feature 1"),
    "infinite bound": (lambda: Box(0.0, np.inf), ValueError, "upper of Box must be finite"),
    "lengths of bounds": (lambda: Box([0, 0], [1, 1, 1]), ValueError, r"got lengths \[2, 3\]"),
    "size of bounds": (lambda: Box([0, 0], 1.0, size=3), ValueError, "size=3"),
    "string bound": (lambda: Box("a", 1.0), TypeError, "lower of Box"),
    "1-D atoms": (lambda: ConvexHull([1.0, 2.0]), ValueError, "2-D array"),
    "no atoms": (lambda: ConvexHull(np.empty((0, 3))), ValueError, "non-empty"),
    "nan atoms": (lambda: ConvexHull([[np.nan, 1.0]]), ValueError, "finite"),
    "ragged atoms": (lambda: ConvexHull([[1.0], [1.0, 2.0]]), ValueError, "different lengths"),
    "nothing": (lambda: Polytope(), ValueError, "got none of them"),
    "empty": (lambda: Polytope([[1, 0], [-1, 0]], [-1, -1], bounds=(0, 1)), ValueError, "is empty"),
    "zero row": (lambda: Polytope([[0, 0]], [-1], bounds=(0, 1)), ValueError, "is empty"),
    "unbounded": (lambda: Polytope([[1, 1]], [1]), ValueError, "unbounded: entry . of w can go to"),
    "unbounded above": (lambda: Polytope([[-1.0]], [1.0]), ValueError, "entry 0 of w can go to infinity"),
    "unbounded line": (lambda: Polytope(A_eq=[[1, -1]], b_eq=[0]), ValueError, "unbounded"),
    "unbounded ray": (lambda: Polytope([[1, -1]], [0], bounds=(0, None)), ValueError, "unbounded"),
    "no b": (lambda: Polytope([[1, 1]]), ValueError, "Give b_ub too"),
    "no A": (lambda: Polytope(b_eq=[1], bounds=[(0, 1)]), ValueError, "Give A_eq too"),
    "length of b": (lambda: Polytope([[1, 1]], [1, 2]), ValueError, "one entry per row of A_ub, 1; got 2"),
    "nan in sparse": (lambda: Polytope(scipy.sparse.csr_array([[np.nan]]), [1.0]), ValueError, "finite"),
    "columns": (lambda: Polytope([[1, 1]], [1], [[1, 1, 1]], [1]), ValueError, r"got \[2, 3\]"),
    "shape of bounds": (lambda: Polytope([[1, 1]], [1], bounds=(0, 1, 2)), ValueError, r"got shape \(3,\)"),
    "crossed bounds": (lambda: Polytope([[1, 1]], [1], bounds=(1, 0)), ValueError, "low = 1 and high = 0 at feature 0"),
    "string bounds": (lambda: Polytope([[1, 1]], [1], bounds=("a", "b")), TypeError, "bounds of Polytope"),
    "nan bounds": (lambda: Polytope([[1, 1]], [1], bounds=(0, np.nan)), ValueError, "numbers or None"),
    "sizes": (lambda: Product([Simplex()], [1, 2]), ValueError, "got 1 sets and 2 sizes"),
    "no sets": (lambda: Product([], []), ValueError, "one size per set"),
    "one set": (lambda: Product(Simplex(), 3), TypeError, "must be lists"),
    "block size": (lambda: Product([Hypersimplex(3)], [2]), ValueError, "k of Hypersimplex"),
    "no set in a product": (lambda: Product([3], [2]), TypeError, "have a method lmo; got int"),
    "factor 0": (lambda: Scale(Simplex(), 0), ValueError, "factor of Scale must be finite and not 0; got 0.0"),
    "factor nan": (lambda: Scale(Simplex(), np.nan), ValueError, "factor of Scale"),
    "scaled number": (lambda: Scale(2.0, 3.0), TypeError, "have a method lmo; got float"),
    "offset": (lambda: Shift(Simplex(), 1.0), ValueError, "offset of Shift must be a non-empty 1-D array"),
    "length of offset": (lambda: Shift(Box(0, [1, 1]), [1.0]), ValueError, "length 2"),
    "a class": (lambda: as_constraint_set(Simplex), TypeError, "got the class Simplex. Call it"),
    "no oracle": (lambda: as_constraint_set("l1"), TypeError, "got str"),
    "lmo": (lambda: OracleSet(3), TypeError, "lmo of OracleSet must be a function; got 3"),
    "violation": (lambda: OracleSet(disc, violation=1.0), TypeError, "violation of OracleSet must be a function"),
    "n_features": (lambda: OracleSet(disc, n_features=0), ValueError, "n_features of OracleSet"),
    "OWL weights rise": (lambda: OrderedWeightedL1Ball(1.0, [1, 2]), ValueError, "must not increase; got 1 and then 2"),
    "OWL weights negative": (lambda: OrderedWeightedL1Ball(1.0, [1, -1]), ValueError, r"got \[1, -1\]"),
    "OWL weights zero": (lambda: OrderedWeightedL1Ball(1.0, [0, 0]), ValueError, "the first must be positive"),
    "OWL tiny weight": (lambda: OrderedWeightedL1Ball(1.0, [5e-324]), ValueError, "must be finite"),
    "OWL radius": (lambda: OrderedWeightedL1Ball(0.0, [1]), ValueError, "radius of OrderedWeightedL1Ball"),
    "k-support k": (lambda: KSupportBall(0, 1.0), ValueError, "k of KSupportBall must be at least 1; got 0"),
    "k-support above d": (lambda: KSupportBall(4, 1.0).check_features(3), ValueError, "3; got 4. Use L2Ball"),
    "k-support radius": (lambda: KSupportBall(1, -1), ValueError, "radius of KSupportBall"),
    "l1 weight": (lambda: SparseGroupBall([0], 1.0, 0.0), ValueError, "l1_weight of SparseGroupBall"),
    "sparse groups": (lambda: SparseGroupBall([], 1.0), ValueError, "groups of SparseGroupBall"),
    "latent number": (lambda: LatentGroupBall(3, 1.0), ValueError, "must be a list of lists of features; got 3"),
    "latent nothing": (lambda: LatentGroupBall([], 1.0), ValueError, "must be a list of lists of features"),
    "latent empty": (lambda: LatentGroupBall([[0], []], 1.0), ValueError, "group 1 of LatentGroupBall"),
    "latent labels": (
        lambda: LatentGroupBall([0, 1], 1.0),
        ValueError,
        "group 0 .* list of at least one feature; got 0",
    ),
    "latent floats": (lambda: LatentGroupBall([[0.5]], 1.0), TypeError, "numbers of features"),
    "latent twice": (lambda: LatentGroupBall([[0, 0]], 1.0), ValueError, r"different features, .* got \[0, 0\]"),
    "latent negative": (lambda: LatentGroupBall([[-1, 0]], 1.0), ValueError, "counted from 0"),
    "latent gap": (lambda: LatentGroupBall([[0], [2]], 1.0), ValueError, "no group with feature 1"),
    "latent radius": (lambda: LatentGroupBall([[0]], 0.0), ValueError, "radius of LatentGroupBall"),
    "fused weight": (lambda: FusedBall(1.0, 0.0), ValueError, "l1_weight of FusedBall must be positive"),
    "fused radius": (lambda: FusedBall(np.inf), ValueError, "radius of FusedBall"),
    "variation bound": (lambda: TotalVariationBall(1.0, 0.0), ValueError, "bound of TotalVariationBall"),
    "variation radius": (lambda: TotalVariationBall(-1.0, 1.0), ValueError, "radius of TotalVariationBall"),
    "isotonic order": (lambda: IsotonicBox(1.0, 0.0), ValueError, "must not exceed upper; got 1.0 and 0.0"),
    "isotonic infinite": (lambda: IsotonicBox(0.0, np.inf), ValueError, "must be finite"),
    "edges": (
        lambda: SpanningTreePolytope([0, 1]),
        ValueError,
        r"list of pairs of nodes; got an array of shape \(2,\)",
    ),
    "float edges": (lambda: SpanningTreePolytope([[0.0, 1.0]]), TypeError, "numbers of nodes"),
    "negative edges": (lambda: SpanningTreePolytope([[0, -1]]), ValueError, "counted from 0; got -1"),
    "loop": (lambda: SpanningTreePolytope([[0, 1], [1, 1]]), ValueError, "edge 1 from node 1 to itself"),
    "two parts": (lambda: SpanningTreePolytope([[0, 1], [2, 3]]), ValueError, "got a graph of 2 parts"),
    "cycle": (lambda: FlowPolytope([[0, 1], [1, 2], [2, 1]], 0, 2), ValueError, r"a cycle; .* nodes \[1, 2\]"),
    "no path": (lambda: FlowPolytope([[0, 1], [2, 1]], 0, 2), ValueError, "no path leads from 0 to 2"),
    "no node": (
        lambda: FlowPolytope([[0, 1]], 0, 2),
        ValueError,
        "sink of FlowPolytope must be one of the nodes 0 to 1",
    ),
    "same node": (lambda: FlowPolytope([[0, 1]], 1, 1), ValueError, "source and sink of FlowPolytope must differ"),
    "float node": (lambda: FlowPolytope([[0, 1]], 0.0, 1), TypeError, "source of FlowPolytope must be an integer"),
    "graph radius": (lambda: GraphTotalVariationBall(GRAPH, "1", 1.0), TypeError, "must be a real number; got '1'"),
    "graph bound": (lambda: GraphTotalVariationBall(GRAPH, 1.0, 0), ValueError, "bound of GraphTotalVariationBall"),
    "graph weights": (lambda: GraphTotalVariationBall(GRAPH, 1, 1, [1]), ValueError, "one per edge, 6; got 1"),
    "Birkhoff": (lambda: Birkhoff(0), ValueError, "n of Birkhoff must be at least 1"),
    "Birkhoff size": (lambda: Birkhoff(2).check_features(5), ValueError, "length 4, but the data have 5"),
    "no radius for matrices": (lambda: NuclearBall(-1.0), ValueError, "radius of NuclearBall must be positive"),
    "no shape": (lambda: NuclearBall(1.0, shape=3), ValueError, "shape of NuclearBall must be a pair"),
    "no weight": (lambda: WeightedNuclearBall(1.0, [0.0], [1.0]), ValueError, "row_weight of WeightedNuclearBall"),
    "no share": (
        lambda: WeightedNuclearBall.of_entries(1.0, np.arange(2), np.arange(2), (2, 2), smoothing=1.5),
        ValueError,
        "smoothing of WeightedNuclearBall must be a number from 0 to 1; got 1.5.",
    ),
    "no size": (lambda: Spectraplex(0), ValueError, "size of Spectraplex must be at least 1; got 0"),
    "no trace": (lambda: PSDTraceBall(2, 0.0), ValueError, "trace of PSDTraceBall must be positive"),
    "too many dimensions": (lambda: Fantope(2, 3), ValueError, "k of Fantope must be at most the size 2; got 3"),
    "no permutation": (lambda: Permutahedron([]), ValueError, "values of Permutahedron"),
    "metric shape": (lambda: Ellipsoid(np.ones((2, 3))), ValueError, "must be a symmetric matrix"),
    "metric": (lambda: Ellipsoid([[1, 2], [0, 1]]), ValueError, "must be a symmetric matrix"),
    "indefinite": (lambda: Ellipsoid([[1, 2], [2, 1]]), ValueError, "positive definite; got the eigenvalue -1"),
    "length of center": (lambda: Ellipsoid(np.eye(2), [1.0]), ValueError, "one entry per row of A, 2; got 1"),
    "no rule": (
        lambda: MatroidBasePolytope(3, 2),
        TypeError,
        "is_independent of MatroidBasePolytope must be a function",
    ),
    "strict rule": (lambda: MatroidBasePolytope(3, lambda chosen: False), ValueError, "returned False for every"),
    "uniform": (lambda: uniform_matroid(0), ValueError, "k of uniform_matroid"),
    "capacities": (lambda: partition_matroid([0, 1], [1, -1]), ValueError, "integers of at least 0"),
    "capacity missing": (
        lambda: partition_matroid([0, 2], [1, 1]),
        ValueError,
        "from 0 to 1, one per capacity; got 0 to 2",
    ),
    "round and cut": (lambda: LinearlyConstrained(L2Ball(1.0), bounds=[(0, 1)]), TypeError, "or Polytope; got L2Ball"),
    "cut to nothing": (
        lambda: LinearlyConstrained(L1Ball(1.0), A_eq=[[1, 1]], b_eq=[2]),
        ValueError,
        "LinearlyConstrained is empty: no w satisfies",
    ),
    "cut by bounds": (lambda: LinearlyConstrained(Simplex(), bounds=[(2, 3)]), ValueError, "between 2 and 1"),
    "cut columns": (lambda: LinearlyConstrained(Box(0, [1, 1]), [[1.0]], [1.0]), ValueError, r"got \[1, 2\]"),
    "cut without b": (
        lambda: LinearlyConstrained(L1Ball(1.0), [[1.0]]),
        ValueError,
        "b_ub of LinearlyConstrained belong",
    ),
    "cut nowhere": (lambda: LinearlyConstrained(L1Ball(1.0)), ValueError, "got none of them"),
    "sum of one": (lambda: MinkowskiSum(L1Ball(1.0)), TypeError, "must be a list of constraint sets; got L1Ball"),
    "sum of none": (lambda: MinkowskiSum([]), ValueError, "MinkowskiSum needs at least one set"),
    "sum of lengths": (lambda: MinkowskiSum([Box(0, [1]), Box(0, [1, 1])]), ValueError, r"got lengths \[1, 2\]"),
    "sum of k": (
        lambda: MinkowskiSum([Simplex(), KSupportBall(4, 1)]).check_features(3),
        ValueError,
        "k of KSupportBall",
    ),
    "hull of a number": (lambda: ConvexHullOfUnion([3]), TypeError, "have a method lmo; got int"),
    "hull of a string": (lambda: ConvexHullOfUnion("l1"), TypeError, "sets of ConvexHullOfUnion"),
    "hull of k": (lambda: ConvexHullOfUnion([Hypersimplex(4)]).check_features(3), ValueError, "k of Hypersimplex"),
    "map": (lambda: LinearImage([1.0, 2.0], Simplex()), ValueError, "A of LinearImage must be a non-empty 2-D array"),
    "columns of the map": (lambda: LinearImage([[1.0]], Box(0, [1, 1])), ValueError, "length 2"),
    "nan in a map": (lambda: LinearImage(scipy.sparse.csr_array([[np.nan]]), Simplex()), ValueError, "finite"),
    "name": (lambda: by_name("simplx"), ValueError, "Did you mean 'simplex'"),
    "number as name": (lambda: by_name(3), ValueError, "there is no constraint set named 3; known: birkhoff, "),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameters_get_one_sentence(case):
    make, kind, message = WRONG[case]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_by_name():
    assert by_name("l1") is L1Ball
    assert by_name("weighted-l1") is WeightedL1Ball
    assert by_name("k-sparse")(2, radius=1.0) == KSparsePolytope(2, 1.0)


# A user's own sets.


class Diamond:
    """Nothing but an oracle."""

    def lmo(self, r):
        s = np.zeros(r.size)
        j = np.abs(r).argmax()
        s[j] = -np.sign(r[j]) or 1.0
        r[:] = 0.0  # a careless user
        return s


def test_a_users_object_needs_only_an_oracle():
    diamond = as_constraint_set(Diamond())
    assert isinstance(diamond, ConstraintSet)
    assert as_constraint_set(diamond) is diamond
    check_constraint_set(diamond, 4)
    assert diamond.violation(np.array([2.0, 0.0, 0.0])) == pytest.approx(1.0, rel=1e-3)
    assert diamond.contains([0.5, -0.3, 0.2])
    assert not diamond.contains([0.5, -0.3, 0.2 + 1e-6])
    assert diamond.diameter(np.inf, 3) == 2.0


def test_a_users_compiled_set_needs_only_an_oracle():
    @constraint_set
    class Corner(NamedTuple):
        radius: float

        def lmo(self, r):
            values = np.empty(r.size())
            for j in range(r.size()):
                values[j] = self.radius if r.at(j) < 0.0 else 0.0
            return DenseVertex(values)

    check_constraint_set(Corner(2.0), 3)


def test_a_point_outside_a_round_set_is_proven_to_be():
    ball = OracleSet(disc)
    v = disc(np.random.default_rng(0).standard_normal(20))
    assert ball.contains(v)
    assert ball.violation(1.01 * v) == pytest.approx(0.01, rel=1e-2)


def test_the_users_own_tests_are_used():
    w = np.array([0.5, 0.5])
    assert OracleSet(disc, violation=lambda w: 7.0).violation(w) == 7.0
    nowhere = OracleSet(disc, contains=lambda w: False)
    assert not nowhere.contains(w)
    assert nowhere.violation(w) > 0.0
    everywhere = OracleSet(disc, contains=lambda w: True)
    assert everywhere.contains([9.0, 9.0])
    assert everywhere.violation(np.array([9.0, 9.0])) == 0.0

    class Full(Diamond):
        n_features = 2
        is_polytope = True

        def violation(self, w):
            return np.abs(w).sum() - 1.0

    full = as_constraint_set(Full())
    assert (full.n_features, full.is_polytope, full.violation(w)) == (2, True, 0.0)


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (None, TypeError, "array of real numbers; got NoneType"),
        ("abc", TypeError, "got str"),
        (1.0, ValueError, r"shape \(3,\); got shape \(\)"),
        (np.ones(2), ValueError, r"shape \(3,\); got shape \(2,\)"),
        (np.ones((3, 1)), ValueError, r"got shape \(3, 1\)"),
        (np.array([1.0, np.nan, 0.0]), ValueError, "finite numbers; got nan"),
        (np.array([1.0, np.inf, 0.0]), ValueError, "finite numbers; got inf"),
        (np.array([1j, 0.0, 0.0]), TypeError, "real numbers"),
        ([[1.0], [1.0, 2.0]], ValueError, "different lengths"),
        (Atom(3, 1.0), ValueError, "within 3 features; got index 3"),
        (Atom(0, np.nan), ValueError, "finite"),
        (DenseVertex(np.ones(4)), ValueError, r"got shape \(4,\)"),
    ],
    ids=repr,
)
def test_a_wrong_answer_of_an_oracle_gets_one_sentence(answer, kind, message):
    with pytest.raises(kind, match=message):
        best_vertex(OracleSet(lambda r: answer), np.zeros(3))


def test_an_oracle_may_return_vertices_and_lists():
    r = np.zeros(3)
    assert best_vertex(OracleSet(lambda r: Atom(1, 2.0)), r) == Atom(1, 2.0)
    sparse = best_vertex(OracleSet(lambda r: SparseVertex(np.array([2]), np.array([1.0]))), r)
    assert sparse.to_dense(3).tolist() == [0.0, 0.0, 1.0]
    assert best_vertex(OracleSet(lambda r: [1, 2, 3]), r).values.dtype == np.float64


# Sets that break one promise each.


def broken(**changes):
    """A correct box with some methods replaced."""
    methods = {
        "lmo": lambda self, r: DenseVertex(np.where(r.values > 0.0, -1.0, 1.0)),
        "violation": lambda self, w: float(np.abs(w).max() - 1.0),
        "diameter": lambda self, order=2, n_features=None: 2.0 * n_features ** (1.0 / order),
        "project": lambda self, w: np.clip(w, -1.0, 1.0),
        "__repr__": lambda self: "Broken()",
    }
    return type("Broken", (ConstraintSet,), methods | changes)()


def changed_by(r):
    r.values[0] = 5.0
    return DenseVertex(np.ones(r.size()))


def test_the_correct_box_passes():
    check_constraint_set(broken(), 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lmo": lambda self, r: DenseVertex(np.where(r.values > 0.0, 1.0, -1.0))}, "must minimise"),
        ({"lmo": lambda self, r: DenseVertex(np.where(r.values > 0.0, -2.0, 2.0))}, "violation of .* at most 0"),
        ({"lmo": lambda self, r: DenseVertex(-r.values / np.abs(r.values).max(initial=1e-310))}, "finite|minimise"),
        ({"lmo": lambda self, r: DenseVertex(np.full(r.size(), np.nan))}, "finite numbers"),
        ({"lmo": lambda self, r: DenseVertex(np.ones(2))}, "length 3"),
        ({"lmo": lambda self, r: Atom(0, 1.0)}, "must return a DenseVertex"),
        ({"lmo": lambda self, r: changed_by(r)}, "must not change r"),
        ({"violation": lambda self, w: -1.0}, "must be positive"),
        ({"contains": lambda self, w, tol=0.0: True}, "must be False"),
        ({"contains": lambda self, w, tol=0.0: False}, "must be True"),
        ({"diameter": lambda self, order=2, n_features=None: 1.0}, "must bound the distance"),
        ({"project": lambda self, w: np.clip(w, -0.5, 0.5)}, "must return the nearest point"),
        ({"project": lambda self, w: w}, "must return a point of the set"),
        ({"decompose": lambda self, w: [(0.5, DenseVertex(w))]}, "sum to 1"),
        ({"decompose": lambda self, w: [(1.0, DenseVertex(0.0 * w))]}, "must sum to that point"),
        ({"decompose": lambda self, w: [(2.0, DenseVertex(w)), (-1.0, DenseVertex(w))]}, "at least 0"),
        ({"decompose": lambda self, w: [(0.5, DenseVertex(w - 3)), (0.5, DenseVertex(w + 3))]}, "points of the set"),
        ({"start": lambda self, n_features: DenseVertex(np.full(n_features, 3.0))}, "start of"),
    ],
)
def test_a_broken_set_is_caught(changes, message):
    with pytest.raises(AssertionError, match=message), np.errstate(all="ignore"):
        check_constraint_set(broken(**changes), 3)


def test_a_set_that_differs_when_compiled_is_caught(monkeypatch):
    monkeypatch.setattr(
        "condgrad.testing.constraints.best_vertex",
        lambda constraint, r: constraint.lmo(DenseVector(-r)),
    )
    with pytest.raises(AssertionError, match="compiled and interpreted"):
        check_constraint_set(L1Ball(1.0), 3)


@pytest.mark.parametrize(("constraint", "d"), SETS, ids=SET_NAMES)
def test_the_origin_is_found_only_where_it_is(constraint, d):
    if has_origin(constraint, d):
        assert constraint.violation(np.zeros(d)) <= 1e-9
    elif not constraint.is_violation_searched:
        assert constraint.violation(np.zeros(d)) > 0.0


def test_a_short_search_finds_the_origin_of_small_hulls_and_does_not_look_long_for_others():
    triangle = np.array([[2.0, -1.0], [-1.0, 2.0], [-1.0, -1.0]])
    assert has_origin(ConvexHull(triangle), 2) and not has_origin(ConvexHull(triangle + 3.0), 2)
    calls = []

    def lmo(r):
        calls.append(r)
        return -np.sign(r + 1e-3) + np.linspace(-0.99, 0.99, r.size)  # a cube far from its centre

    has_origin(constraints.OracleSet(lmo), 200)
    assert len(calls) <= 12
