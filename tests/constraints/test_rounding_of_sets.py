"""Sets bound the rounding of their oracles and how far their points are apart: compared with exact arithmetic."""

import functools
import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from tables import EXAMPLES, METRIC, ROWS, SET_NAMES, SETS, disc

from condgrad.constraints import (
    Birkhoff,
    Box,
    ConvexHull,
    ConvexHullOfUnion,
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
    LimitedL1Ball,
    LinearImage,
    LinearlyConstrained,
    LinfBall,
    LpBall,
    MatroidBasePolytope,
    MinkowskiSum,
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
    Spectraplex,
    TotalVariationBall,
    WeightedGroupBall,
    WeightedL1Ball,
    WeightedNuclearBall,
    best_vertex,
)
from condgrad.constraints._linear_program import LinearProgram
from condgrad.testing import check_constraint_set

DIGITS = 60
LAST_DIGITS = Decimal("1e-50")  # what that many digits are good for, relatively


def directions(d, seed=0):
    """Directions at which rounding matters: ties, near ties, zeros, entries over 24 decades, tiny and huge ones."""
    rng = np.random.default_rng(seed)
    random = rng.standard_normal((6, d))
    ties = rng.integers(-1, 2, (4, d)).astype(float)
    near_ties = (1.0 + rng.integers(-2, 3, (6, d)) * 2.0**-52) * rng.choice([-1.0, 1.0], (6, d))
    decades = random * 10.0 ** rng.uniform(-12.0, 12.0, (6, d))
    thirds = np.ones((1, d)) / 3.0
    scaled = np.vstack([1e-300 * random[:2], 1e300 * random[:2], 1e-12 * near_ties[:2], 1e12 * near_ties[:2]])
    return np.vstack([random, ties, near_ties, decades, thirds, -thirds, scaled, np.zeros((1, d))])


def exact(values):
    return [Decimal(float(value)) for value in np.ravel(values)]


def as_dense(A):
    return A.toarray() if scipy.sparse.issparse(A) else A


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def norm(values):
    return sum((x * x for x in values), Decimal(0)).sqrt()


# The smallest <r, w> over a set without rounding, by formulas or by trying all vertices.


@functools.singledispatch
def lowest(constraint, r):
    raise NotImplementedError(type(constraint).__name__)


def formula(*classes):
    def register(function):
        for cls in classes:
            lowest.register(cls)(function)
        return function

    return register


@formula(L1Ball)
def _(ball, r):
    return -Decimal(ball.radius) * max(map(abs, r))


@formula(WeightedL1Ball)
def _(ball, r):
    return -Decimal(ball.radius) * max(abs(x) / w for x, w in zip(r, exact(ball.weights), strict=True))


@formula(NonnegativeL1Ball)
def _(ball, r):
    return Decimal(ball.radius) * min(0, *r)


@formula(Simplex)
def _(simplex, r):
    return Decimal(simplex.radius) * min(r)


@formula(L2Ball)
def _(ball, r):
    return -Decimal(ball.radius) * norm(r)


@formula(LinfBall)
def _(ball, r):
    return -Decimal(ball.radius) * sum(map(abs, r))


@formula(Box)
def _(box, r):
    lower, upper = (exact(np.broadcast_to(bound, len(r))) for bound in (box.lower, box.upper))
    return sum(min(x * a, x * b) for x, a, b in zip(r, lower, upper, strict=True))


@formula(LpBall)
def _(ball, r):
    p = Decimal(ball.p)
    q = p / (p - 1)
    total = sum((abs(x) ** q for x in r if x), Decimal(0))
    return -Decimal(ball.radius) * total ** (1 / q) if total else Decimal(0)


@formula(KSparsePolytope)
def _(polytope, r):
    return -Decimal(polytope.radius) * sum(sorted(map(abs, r))[-polytope.k :])


@formula(KSupportBall)
def _(ball, r):
    return -Decimal(ball.radius) * norm(sorted(map(abs, r))[-ball.k :])


@formula(Hypersimplex)
def _(polytope, r):
    return Decimal(polytope.radius) * sum(sorted(r)[: polytope.k])


@formula(Knapsack)
def _(sack, r):
    total, left = Decimal(0), Decimal(sack.budget)
    prices, upper = exact(sack.prices), exact(sack.upper)
    for j in sorted(range(len(r)), key=lambda j: r[j] / prices[j]):
        amount = min(upper[j], left / prices[j]) if r[j] < 0 else Decimal(0)
        total, left = total + r[j] * amount, left - prices[j] * amount
    return total


@formula(LimitedL1Ball)
def _(ball, r):
    total, left = Decimal(0), Decimal(ball.radius)
    weights, lower, upper = (np.broadcast_to(part, len(r)) for part in (ball.weights, ball.lower, ball.upper))
    limits = [-low if x > 0 else high for x, low, high in zip(r, exact(lower), exact(upper), strict=True)]
    weights = exact(weights)
    for j in sorted(range(len(r)), key=lambda j: -abs(r[j]) / weights[j] if weights[j] else -Decimal("inf")):
        amount = min(limits[j], left / weights[j]) if weights[j] else limits[j]
        total, left = total - abs(r[j]) * amount, left - weights[j] * amount
    return total


def groups_of(members, offsets, r):
    return [[r[j] for j in members[first:last]] for first, last in itertools.pairwise(offsets)]


@formula(GroupBall)
def _(ball, r):
    return -Decimal(ball.radius) * max(map(norm, groups_of(ball.members, ball.offsets, r)))


@formula(WeightedGroupBall)
def _(ball, r):
    r = [min(x, Decimal(0)) for x in r] if ball.is_nonnegative else r
    norms = map(norm, groups_of(ball.members, ball.offsets, r))
    return -Decimal(ball.radius) * max(x / Decimal(float(c)) for x, c in zip(norms, ball.weights, strict=True))


@formula(LatentGroupBall)
def _(ball, r):
    return -Decimal(ball.radius) * max(map(norm, groups_of(ball.groups, ball.offsets, r)))


@formula(SparseGroupBall)
def _(ball, r):
    weight = Decimal(ball.l1_weight)

    def dual_norm(group):
        low, high = Decimal(0), norm(group)
        for _ in range(180):
            t = (low + high) / 2
            is_below = norm([max(abs(x) - weight * t, Decimal(0)) for x in group]) > t
            low, high = (t, high) if is_below else (low, t)
        return low

    return -Decimal(ball.radius) * max(map(dual_norm, groups_of(ball.members, ball.offsets, r)))


@formula(OrderedWeightedL1Ball)
def _(ball, r):
    sums = itertools.accumulate(sorted(map(abs, r), reverse=True))
    return -Decimal(ball.radius) * max(a / b for a, b in zip(sums, itertools.accumulate(exact(ball.weights))))


@formula(FusedBall)
def _(ball, r):
    d, weight, best = len(r), Decimal(ball.l1_weight), Decimal(0)
    for first, last in itertools.combinations_with_replacement(range(d), 2):
        cost = weight * (last + 1 - first) + (first > 0) + (last < d - 1)
        best = max(best, abs(sum(r[first : last + 1])) / cost)
    return -Decimal(ball.radius) * best


@formula(TotalVariationBall)
def _(ball, r):
    # The best point between two vectors of signs whose total variation is within the budget.
    budget = Decimal(ball.radius) / (2 * Decimal(ball.bound))
    points = []
    for signs in itertools.product([-1, 1], repeat=len(r)):
        points.append((sum(a != b for a, b in itertools.pairwise(signs)), dot(signs, r)))
    best = min(value for jumps, value in points if jumps <= budget)
    for (few, a), (many, b) in itertools.product(points, points):
        if few <= budget < many:
            best = min(best, a + (b - a) * (budget - few) / (many - few))
    return Decimal(ball.bound) * best


@formula(IsotonicBox)
def _(box, r):
    lower, upper = Decimal(box.lower), Decimal(box.upper)
    return min(lower * sum(r[:k]) + upper * sum(r[k:]) for k in range(len(r) + 1))


@formula(Permutahedron)
def _(polytope, r):
    return dot(sorted(r, reverse=True), exact(polytope.values))


@formula(Birkhoff)
def _(polytope, r):
    n = polytope.n
    return min(sum(r[i * n + j] for i, j in enumerate(p)) for p in itertools.permutations(range(n)))


@formula(FlowPolytope)
def _(flows, r):
    def shortest_from(node):
        if node == flows.sink:
            return Decimal(0)
        ways = [r[e] + shortest_from(head) for e, (tail, head) in enumerate(flows.edges) if tail == node]
        return min(ways, default=Decimal("Infinity"))

    return shortest_from(flows.source)


@formula(MatroidBasePolytope)
def _(polytope, r):
    choices = itertools.combinations(range(len(r)), polytope.rank)
    return min(sum(r[j] for j in features) for features in choices if polytope.is_independent(np.array(features)))


@formula(SpanningTreePolytope)
def _(trees, r):
    def is_tree(edges):
        incidence = np.zeros((len(edges), trees.n_nodes))
        for k, e in enumerate(edges):
            incidence[k, trees.edges[e]] = 1.0, -1.0
        return np.linalg.matrix_rank(incidence) == len(edges)

    choices = itertools.combinations(range(len(r)), trees.n_nodes - 1)
    return min(sum(r[e] for e in edges) for edges in choices if is_tree(edges))


@formula(ConvexHull)
def _(hull, r):
    return min(dot(exact(atom), r) for atom in hull.atoms)


def solved(A, b):
    """Return the solution of a square system of fractions or decimals, or None where it has no single one."""
    rows = [[*row, side] for row, side in zip(A, b, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if rows[pivot][k] == 0:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


@formula(Ellipsoid)
def _(ellipsoid, r):
    A = [exact(row) for row in ellipsoid.A]
    return dot(exact(ellipsoid.center), r) - dot(r, solved(A, r)).sqrt()


def largest_root(total, determinant):
    """Return the larger root of x^2 - total x + determinant."""
    return (total + (total * total - 4 * determinant).sqrt()) / 2


@formula(NuclearBall)
def _(ball, r):
    rows = [r[: len(r) // 2], r[len(r) // 2 :]]
    (a, b), (_, c) = [[dot(x, y) for y in rows] for x in rows]
    return -Decimal(ball.radius) * largest_root(a + c, a * c - b * b).sqrt()


@formula(WeightedNuclearBall)
def _(ball, r):
    weights = [a * b for a, b in itertools.product(exact(ball.row_weight), exact(ball.column_weight))]
    return lowest(NuclearBall(ball.radius), [x / w.sqrt() if w else w for x, w in zip(r, weights, strict=True)])


@formula(Spectraplex, PSDTraceBall, Fantope)
def _(spectral, r):
    a, b, c = r[0], (r[1] + r[2]) / 2, r[3]
    value = -largest_root(-a - c, a * c - b * b)
    if isinstance(spectral, Fantope):
        return value
    return Decimal(spectral.trace) * (min(value, Decimal(0)) if isinstance(spectral, PSDTraceBall) else value)


@formula(Scale)
def _(scaled, r):
    return lowest(scaled.constraint, [Decimal(scaled.factor) * x for x in r])


@formula(Shift)
def _(shifted, r):
    return lowest(shifted.constraint, r) + dot(exact(shifted.offset), r)


@formula(Product)
def _(product, r):
    ends = [0, *np.cumsum(product.sizes)]
    return sum(lowest(block, r[a:b]) for block, (a, b) in zip(product.sets, itertools.pairwise(ends), strict=True))


@formula(MinkowskiSum)
def _(total, r):
    return sum(lowest(one, r) for one in total.sets)


@formula(ConvexHullOfUnion)
def _(hull, r):
    return min(lowest(one, r) for one in hull.sets)


@formula(LinearImage)
def _(image, r):
    return lowest(image.constraint, [dot(exact(column), r) for column in as_dense(image.A).T])


@functools.cache
def vertices_of(polytope):
    """Return the vertices of a polytope with few features, by trying all choices of tight rows in fractions."""
    rows = [] if polytope.A_ub is None else [*zip(as_dense(polytope.A_ub), polytope.b_ub, strict=True)]
    for j, (low, high) in enumerate(polytope.bounds):
        e = np.eye(polytope.n_features)[j]
        rows += [(sign * e, sign * side) for sign, side in ((-1.0, low), (1.0, high)) if np.isfinite(side)]
    fixed = [] if polytope.A_eq is None else [*zip(as_dense(polytope.A_eq), polytope.b_eq, strict=True)]
    rows, fixed = ([([*map(Fraction, a)], Fraction(float(b))) for a, b in part] for part in (rows, fixed))
    found = []
    for tight in itertools.combinations(rows, polytope.n_features - len(fixed)):
        w = solved(*zip(*fixed, *tight, strict=True))
        if w is not None and all(sum(x * y for x, y in zip(a, w, strict=True)) <= b for a, b in rows):
            found.append([Decimal(x.numerator) / Decimal(x.denominator) for x in w])
    return found


@formula(Polytope)
def _(polytope, r):
    return min(dot(w, r) for w in vertices_of(polytope))


@formula(LinearlyConstrained)
def _(cut, r):
    return min(dot(w, r) for w in vertices_of(AS_POLYTOPES[id(cut)]))


CUT_BALL = LinearlyConstrained(L1Ball(2.0), ROWS[:2, :3], [0.3, 0.2])
CUT_SIMPLEX = LinearlyConstrained(Simplex(0.1), ROWS[:2, :3], [0.05, 0.03])
SIGNS = np.array([*itertools.product([-1.0, 1.0], repeat=3)])
AS_POLYTOPES = {
    id(CUT_BALL): Polytope(np.vstack([SIGNS, ROWS[:2, :3]]), [2.0] * 8 + [0.3, 0.2]),
    id(CUT_SIMPLEX): Polytope(ROWS[:2, :3], [0.05, 0.03], np.ones((1, 3)), [0.1], bounds=(0.0, None)),
}
# Sets beside those of the table for which the formulas are right; here they hold for matrices of two rows.
OTHERS = [
    (Spectraplex(2, trace=3.0), 4),
    (PSDTraceBall(2, trace=0.1), 4),
    (Fantope(2, k=1), 4),
    (L2Ball(0.1), 1000),
    (L2Ball(1e-12), 30),
    (LpBall(1.3, 0.1), 40),
    (WeightedL1Ball(0.1, 10.0 ** np.linspace(-12.0, 12.0, 30)), 30),
    (Knapsack(10.0 ** np.linspace(-6.0, 6.0, 20), 0.1, 10.0 ** np.linspace(6.0, -6.0, 20)), 20),
    (LimitedL1Ball(0.1, 10.0 ** np.linspace(-6.0, 6.0, 20), -(10.0 ** np.linspace(6.0, -6.0, 20)), 0.1), 20),
    (LimitedL1Ball(0.1, np.arange(20) % 3, -1e6, 0.1), 20),
    (OrderedWeightedL1Ball(0.1, np.linspace(0.7, 0.1, 60)), 60),
    (KSupportBall(7, 0.1), 60),
    (GroupBall(np.arange(60) // 7, 0.1), 60),
    (SparseGroupBall(np.arange(30) // 7, 0.1, 0.3), 30),
    (SparseGroupBall(np.arange(12) // 7, 0.1, 1e6), 12),
    (FusedBall(0.1, 0.01), 30),
    (TotalVariationBall(0.7, 0.3), 7),
    (TotalVariationBall(1e-6, 0.3), 6),
    (IsotonicBox(1e6, 1e6 + 0.1), 50),
    (Birkhoff(5), 25),
    (ConvexHull(np.random.default_rng(2).standard_normal((20, 30)) / 3.0), 30),
    (Ellipsoid(METRIC / 3.0, [1e6, 2.0, 0.1, 0.0]), 4),
    (Ellipsoid(np.diag(10.0 ** np.linspace(-12.0, 12.0, 7))), 7),
    (Ellipsoid(np.diag(10.0 ** np.linspace(-3.0, 3.0, 51)) + 0.1), 51),
    (Shift(L2Ball(0.1), [1e6, 0.1, 0.2, -1e6]), 4),
    (Shift(KSupportBall(2, 0.1), [1e6, 0.1, 0.2, -1e6]), 4),
    (Scale(L2Ball(0.1), -0.3), 5),
    (Scale(FusedBall(0.1, 0.7), 1.0 / 3.0), 5),
    (LinearImage(np.random.default_rng(3).standard_normal((5, 40)), LinfBall(0.1)), 5),
    (MinkowskiSum([Shift(L2Ball(0.1), [1e3] * 3), Shift(L1Ball(0.1), [-1e3] * 3)]), 3),
    (Polytope(np.vstack([ROWS[:5, :3], -ROWS[:5, :3]]), np.full(10, 0.1)), 3),
    (Polytope([[1.0, 1.0, 1.0]], [0.1], bounds=(0.0, 1e6)), 3),
    (Polytope(A_eq=[[1.0, 0.3, 1.0]], b_eq=[0.1], bounds=(0.0, None)), 3),
    (CUT_BALL, 3),
    (CUT_SIMPLEX, 3),
]
NO_FORMULA = (GraphTotalVariationBall, OracleSet, LinearlyConstrained, Spectraplex, PSDTraceBall, Fantope)
EXACT = [pair for pair in SETS if not isinstance(pair[0], NO_FORMULA) and getattr(pair[0], "shape", None) != (1, 1)]
EXACT += OTHERS
with_formula = pytest.mark.parametrize(("constraint", "d"), EXACT, ids=[f"{one!r}-{d}" for one, d in EXACT])
every_set = pytest.mark.parametrize(("constraint", "d"), SETS, ids=SET_NAMES)


def search_of_set():
    """Each set; where a formula knows the best value, a search tells little more: one example of a class is enough."""
    has_formula = {id(one) for one, _ in EXACT}
    for one, d in SETS:
        is_first = EXAMPLES[type(one).__name__][0] is one
        yield pytest.param(one, d, marks=[] if is_first or id(one) not in has_formula else [pytest.mark.campaign])


def rounding_at(constraint, r):
    """Return the vertex at r and the bound of its rounding, after a look whether that is small."""
    s = best_vertex(constraint, r)
    rounding = constraint.oracle_rounding(r, s)
    assert isinstance(rounding, float)
    assert rounding >= 0.0
    scale = np.abs(r).max() or 1.0
    dense = s.to_dense(r.size)
    sizes = np.abs(r / scale) * np.abs(dense)
    # The error of a decomposition is relative to all of the matrix.
    size = np.linalg.norm(r / scale) * np.linalg.norm(dense) if hasattr(constraint, "shape") else sizes.sum()
    assert rounding / scale <= 1e-9 * (size + unit_reach(constraint, r.size))
    return dense, rounding


REACHES: dict = {}


def unit_reach(constraint, d):
    if id(constraint) not in REACHES:  # sets of arrays have no hash
        REACHES[id(constraint)] = (constraint, constraint.reach(np.ones(d)))
    return REACHES[id(constraint)][1]


@with_formula
def test_no_vertex_is_worse_than_its_rounding_says(constraint, d):
    with localcontext(prec=DIGITS):
        for r in directions(d):
            s, rounding = rounding_at(constraint, r)
            value = dot(exact(r), exact(s))
            assert value - lowest(constraint, exact(r)) <= Decimal(rounding) + LAST_DIGITS * dot(
                exact(abs(r)), exact(abs(s))
            )


@pytest.mark.slow
@pytest.mark.parametrize(("constraint", "d"), list(search_of_set()), ids=SET_NAMES)
def test_no_point_of_the_set_is_better_than_its_rounding_says(constraint, d):
    rng = np.random.default_rng(1)
    others = [best_vertex(constraint, r).to_dense(d) for r in rng.standard_normal((10, d))]
    for r in directions(d, seed=2):
        s, rounding = rounding_at(constraint, r)
        scale = np.abs(r).max() or 1.0
        moved = [r / scale + 1e-8 * v for v in rng.standard_normal((4, d))]
        points = np.array([*others, *(best_vertex(constraint, v).to_dense(d) for v in moved)])
        values = (points - s).astype(np.longdouble) @ (r / scale)
        # The points are rounded themselves, and those of linear programs lie in the set up to 1e-10.
        assert (values >= -rounding / scale - 1e-9 * np.abs(points).max() * np.abs(r / scale).sum()).all()


@pytest.mark.slow
@every_set
def test_no_points_are_farther_apart_than_the_reach(constraint, d):
    rng = np.random.default_rng(3)
    for c in (np.ones(d), rng.uniform(0.0, 1.0, d), 10.0 ** rng.uniform(-12.0, 12.0, d), np.eye(d)[0], np.zeros(d)):
        signs = rng.choice([-1.0, 1.0], (40, d))
        points = np.array([best_vertex(constraint, r).to_dense(d) for r in [*(c * signs), *np.eye(d), *-np.eye(d)]])
        farthest = max((np.abs(points - w) @ c).max() for w in points)
        reach = constraint.reach(c)
        assert isinstance(reach, float)
        size = np.abs(points).max() * c.max()
        assert farthest <= reach + 1e-9 * size
        assert reach <= 4.0 * d * max(farthest, size)  # and it is not far off


def test_a_wide_set_of_a_user_is_measured_by_random_signs():
    ball = OracleSet(lambda r: -r / np.linalg.norm(r))
    assert 2.0 * 20.0 <= ball.reach(np.ones(400)) <= 4.0 * 400.0 + 1e-6
    corner = OracleSet(lambda r: -np.sign(r[0]) * np.eye(r.size)[0])
    assert 2.0 <= corner.reach(np.ones(400)) <= 4.0 * 20.0 + 1e-6


def cube_cut(scale):
    """Sets of the size of ``scale``, with a value for every kind of rows."""
    A = np.vstack([ROWS, -ROWS])
    return [
        Polytope(A, scale * np.ones(18)),
        Polytope(A, scale * np.ones(18), bounds=(-1e3 * scale, None)),
        Polytope(np.ones((1, 4)), [scale], ROWS[:1], [0.1 * scale], bounds=(0.0, None)),
        Polytope(np.ones((1, 4)), [scale], bounds=(0.0, 1e6 * max(scale, 1.0))),
        LinearlyConstrained(L1Ball(scale), ROWS[:2], scale * np.array([0.3, 0.2])),
        LinearlyConstrained(Simplex(scale), ROWS[:1], [0.3 * scale]),
        LinearlyConstrained(Box(-scale, scale), ROWS[:2], scale * np.array([0.3, 0.2])),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale", [1e-12, 1.0, 1e12, *(pytest.param(10.0**k, marks=pytest.mark.campaign) for k in (-9, -6, -3, 3, 6, 9))]
)
def test_linear_programs_are_as_exact_at_every_scale(scale):
    for constraint in cube_cut(scale):
        points = [best_vertex(constraint, r).to_dense(4) for r in directions(4)]
        size = np.ptp(points, axis=0).max()
        assert 0.01 * scale <= size <= 100.0 * scale
        assert max(constraint.violation(w) for w in points) <= 1e-9 * size
        for r in directions(4):
            rounding_at(constraint, r)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_small_set_is_empty_where_its_constraints_say_so(scale):
    with pytest.raises(ValueError, match="is empty"):
        Polytope([[1.0, 1.0], [-1.0, -1.0]], [scale, -2.0 * scale], bounds=(0.0, scale))
    with pytest.raises(ValueError, match="is empty"):
        LinearlyConstrained(L1Ball(scale), [[-1.0, -1.0]], [-2.0 * scale])


def test_a_polytope_solves_one_linear_program_for_a_vertex_and_its_rounding(monkeypatch):
    polytope = Polytope(np.vstack([ROWS, -ROWS]), np.ones(18), bounds=(-5.0, 5.0))
    calls = []
    minimise = LinearProgram.minimise
    monkeypatch.setattr(LinearProgram, "minimise", lambda self, cost: calls.append(1) or minimise(self, cost))
    for r in directions(4)[:5]:
        polytope.oracle_rounding(r, best_vertex(polytope, r))
    assert len(calls) == 5


def test_check_constraint_set_looks_at_rounding_and_reach():
    class Loose(OracleSet):
        def oracle_rounding(self, r, s):
            return 0.5

    class Negative(OracleSet):
        def oracle_rounding(self, r, s):
            return -1e-16

    class Short(OracleSet):
        def reach(self, c):
            return float(c.max())

    for cls, words in ((Loose, "which are small; got 0.5"), (Negative, "at least 0; got -1e-16"), (Short, "reach of")):
        with pytest.raises(AssertionError, match=words):
            check_constraint_set(cls(disc), 3)
