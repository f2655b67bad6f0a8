"""Examples of sets, losses and forms of data, for all tests.

A new set needs one line in SETS, and every test that asks for "each set" meets it.
"""

import numpy as np
import scipy.sparse
from references import box_vertices, l1_vertices, simplex_vertices

from condgrad import losses
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
    partition_matroid,
    uniform_matroid,
)

# Sets ----------------------------------------------------------------------------------------------------------------

POINTS = np.random.default_rng(3).standard_normal((8, 5))
ROWS = np.random.default_rng(1).standard_normal((9, 4))
METRIC = ROWS.T @ ROWS
DAG = [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4], [0, 4]]
GRAPH = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 2]]


def disc(r):
    """The oracle of the ball of radius 1, as a user would write it."""
    size = np.abs(r).max() or 1.0
    return -(r / size) / max(np.linalg.norm(r / size), 1e-300)


# Sets and the number of features to try them with. The first example of a class is the one that solvers meet: it has
# five features where it can choose, and it cuts off the optimum of small random problems.
SETS = [
    (L1Ball(1.5), 5),
    (L1Ball(2.0), 1),
    (WeightedL1Ball(1.0, [0.5, 1.0, 2.0, 0.1, 5.0]), 5),
    (WeightedL1Ball(1.0, [1e12, 2e12]), 2),
    (NonnegativeL1Ball(1.5), 5),
    (NonnegativeL1Ball(3.0), 1),
    (LimitedL1Ball(1.2, [1.0, 0.5, 0.0, 2.0, 1.0], [-np.inf, -0.5, -0.2, 0.0, -1.0], [np.inf, 0.4, 0.3, 0.7, 0.0]), 5),
    (LimitedL1Ball(1.5, lower=0.0, upper=0.6), 4),
    (LimitedL1Ball(2.0), 1),
    (Simplex(), 5),
    (Simplex(2.0), 1),
    (L2Ball(0.9), 5),
    (L2Ball(1e-6), 1),
    (LinfBall(0.4), 5),
    (Box(-0.5, 0.8), 5),
    (Box(-1, [1, 2, 3]), 3),
    (Box([1.0], [1.0]), 1),
    (LpBall(1.5, 1.2), 5),
    (LpBall(1.01, 2.0), 5),
    (LpBall(3.0, 2.0), 5),
    (LpBall(500.0, 2.0), 5),
    (KSparsePolytope(2, 0.7), 5),
    (KSparsePolytope(5, 1.5), 5),
    (KSparsePolytope(1, 1.0), 1),
    (Knapsack([1.0, 2.0, 0.5, 1.0, 3.0], budget=1.5, upper=0.6), 5),
    (Knapsack([1.0, 2.0, 0.5, 4.0], budget=3.0, upper=[1.0, 2.0, 2.0, 5.0]), 4),
    (Knapsack([1.0, 2.0, 4.0], budget=3.0), 3),
    (Knapsack([1e3], budget=2.0, upper=1e-9), 1),
    (Hypersimplex(2, 0.7), 5),
    (Hypersimplex(5, 2.0), 5),
    (GroupBall([7, -1, 7, 3, -1], 1.0), 5),
    (GroupBall([0], 2.0), 1),
    (WeightedGroupBall([7, -1, 7, 3, -1], 1.0, [2.0, 0.5, 1.0]), 5),
    (WeightedGroupBall([7, -1, 7, 3, -1], 1.0, [2.0, 0.5, 1.0], is_nonnegative=True), 5),
    (WeightedGroupBall([0], 2.0, [3.0]), 1),
    (ConvexHull(POINTS), 5),
    (ConvexHull([[1.0, 2.0]]), 2),
    (Polytope(np.ones((1, 5)), [1.0], bounds=(-0.3, 0.9)), 5),
    (Polytope(np.vstack([ROWS, -ROWS]), np.ones(18)), 4),
    (Polytope(scipy.sparse.csr_matrix([[1.0, 1.0, 1.0]]), [2.0], [[1, -1, 0]], [0.5], bounds=(0, None)), 3),
    (Product([L1Ball(1.0), Box(0.0, 0.5)], [3, 2]), 5),
    (Product([Simplex(), L1Ball(2.0), L2Ball(1.0)], [2, 3, 2]), 7),
    (Product([Simplex(), KSparsePolytope(2, 1.0)], [2, 3]), 5),
    (Scale(Simplex(), -1.5), 5),
    (Scale(L1Ball(2.0), 3.0), 4),
    (Scale(WeightedL1Ball(2.0, [1.0, 2.0, 3.0]), -3.0), 3),
    (Scale(GroupBall([0, 1, 0], 2.0), -2.0), 3),
    (Scale(Polytope(A_eq=[[1, 1, 1]], b_eq=[2], bounds=(0, 1)), -1.0), 3),
    (Shift(L1Ball(1.0), [0.2, 0.0, -0.3, 0.0, 0.0]), 5),
    (Shift(Simplex(2.0), [1.0, 2.0, 3.0]), 3),
    (Shift(Scale(Box(0.0, 1.0), -2.0), [1.0, 2.0, 3.0]), 3),
    (Shift(Product([Simplex(), L1Ball(2.0)], [2, 2]), [1.0, 2.0, 3.0, 4.0]), 4),
    (OrderedWeightedL1Ball(1.5, [2.0, 1.5, 1.0, 0.5, 0.2]), 5),
    (OrderedWeightedL1Ball(2.0, [3.0, 2.0, 1.0, 0.5, 0.0]), 5),
    (OrderedWeightedL1Ball(2.0, [1.0]), 1),
    (KSupportBall(2, 0.9), 5),
    (KSupportBall(5, 1.5), 5),
    (KSupportBall(1, 1.5), 4),
    (SparseGroupBall([7, -1, 7, 3, -1], 1.5, 0.5), 5),
    (SparseGroupBall([0], 2.0), 1),
    (LatentGroupBall([[0, 1, 2], [2, 3], [3, 4, 0]], 1.0), 5),
    (FusedBall(1.5, 0.5), 5),
    (FusedBall(2.0, 5.0), 4),
    (FusedBall(2.0), 1),
    (TotalVariationBall(1.0, 0.7), 5),
    (TotalVariationBall(1.0, 2.0), 5),
    (TotalVariationBall(9.0, 2.0), 5),
    (TotalVariationBall(9.0, 2.0), 1),
    (GraphTotalVariationBall([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]], 1.0, 0.7), 5),
    (GraphTotalVariationBall(GRAPH, 1.5, 1.0), 5),
    (GraphTotalVariationBall(GRAPH, 1.5, 1.0, [1, 2, 3, 1, 2, 3]), 5),
    (IsotonicBox(-0.5, 0.8), 5),
    (IsotonicBox(1.0, 1.0), 3),
    (Ellipsoid(POINTS.T @ POINTS, [0.1, 0.0, 0.0, -0.1, 0.0]), 5),
    (Ellipsoid(METRIC, [1, 2, 3, 4]), 4),
    (Ellipsoid([[4.0]]), 1),
    (Permutahedron([-1.0, -0.3, 0.0, 0.4, 1.0]), 5),
    (Permutahedron([3.0, 1.0, 1.0, 7.0]), 4),
    (Permutahedron([3.0]), 1),
    (NuclearBall(1.0, shape=(2, 3)), 6),
    (NuclearBall(2.0, shape=(1, 1)), 1),
    (WeightedNuclearBall(2.0, [1.0, 0.5], [0.2, 1.0, 3.0]), 6),
    (WeightedNuclearBall(2.0, [1.0, 0.0], [0.2, 1.0]), 4),
    (Spectraplex(2), 4),
    (Spectraplex(3), 9),
    (Spectraplex(1, trace=2.0), 1),
    (PSDTraceBall(2, trace=0.8), 4),
    (PSDTraceBall(3, trace=2.0), 9),
    (PSDTraceBall(1), 1),
    (Fantope(2, k=1), 4),
    (Fantope(3, k=2), 9),
    (Fantope(2, k=2), 4),
    (Birkhoff(2), 4),
    (Birkhoff(3), 9),
    (Birkhoff(1), 1),
    (FlowPolytope([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]], 0, 3), 5),
    (FlowPolytope(DAG, 0, 4), 8),
    (FlowPolytope([[0, 1]], 0, 1), 1),
    (SpanningTreePolytope([[0, 1], [1, 2], [2, 0], [2, 3], [3, 0]]), 5),
    (SpanningTreePolytope(GRAPH), 6),
    (MatroidBasePolytope(5, partition_matroid([0, 0, 1, 1, 1], [1, 2])), 5),
    (MatroidBasePolytope(5, uniform_matroid(2)), 5),
    (LinearlyConstrained(L1Ball(1.5), A_eq=np.ones((1, 5)), b_eq=[0.0]), 5),
    (LinearlyConstrained(L1Ball(2.0), ROWS[:2], [0.3, 0.2], np.ones((1, 4)), [0.0]), 4),
    (LinearlyConstrained(WeightedL1Ball(1.0, [1, 2, 3, 4]), scipy.sparse.csr_array(ROWS[:2]), [0.1, 0.1]), 4),
    (LinearlyConstrained(KSparsePolytope(2, 1.0), bounds=[(0.1, 1), (None, -0.1), (None, None), (0, 0)]), 4),
    (LinearlyConstrained(NonnegativeL1Ball(2.0), ROWS[:2], [0.3, 0.2], bounds=(None, 1)), 4),
    (LinearlyConstrained(Simplex(2.0), ROWS[:1], [0.3]), 4),
    (LinearlyConstrained(Hypersimplex(2), ROWS[:1], [0.3]), 4),
    (LinearlyConstrained(Box(-1.0, 1.0), ROWS[:2], [0.3, 0.2]), 4),
    (LinearlyConstrained(LinfBall(1.0), bounds=[(0, None)] * 3), 3),
    (LinearlyConstrained(Polytope(ROWS[:2], [0.1, 0.1], bounds=(-1, 2)), -ROWS[:2], [0.3, 0.3]), 4),
    (MinkowskiSum([L1Ball(0.5), LinfBall(0.2)]), 5),
    (MinkowskiSum([Simplex(), KSparsePolytope(2, 1.0)]), 3),
    (MinkowskiSum([L2Ball(1.0), Box(0, [1, 2, 3])]), 3),
    (ConvexHullOfUnion([L1Ball(1.0), Simplex(1.5)]), 5),
    (ConvexHullOfUnion([L1Ball(2.0), LinfBall(0.8)]), 4),
    (ConvexHullOfUnion([L2Ball(1.0), Simplex(2.0)]), 3),
    (LinearImage(POINTS[:5], L1Ball(0.5)), 5),
    (LinearImage(scipy.sparse.csr_array(ROWS[:3]), Simplex()), 3),
    (LinearImage(np.eye(3), L2Ball(1.0)), 3),
    (OracleSet(lambda r: np.where(r > 0, -0.3, 0.6), is_polytope=True), 5),
    (OracleSet(disc), 4),
    (OracleSet(lambda r: np.where(r > 0, -1, 1), is_polytope=True, n_features=3), 3),
]
SET_NAMES = [f"{constraint!r}-{d}" for constraint, d in SETS]
EXAMPLES = {type(constraint).__name__: (constraint, d) for constraint, d in reversed(SETS)}  # the first of each class

# Sets of a given size.
BY_RADIUS = {
    "l1": L1Ball,
    "simplex": Simplex,
    "l2": L2Ball,
    "box": lambda radius: Box(-radius, radius),
}
# All vertices of some of them, which references.py knows by itself.
VERTICES = {
    "l1": l1_vertices,
    "simplex": simplex_vertices,
    "box": lambda d, radius: box_vertices([-radius] * d, [radius] * d),
}
# Sets whose vertices live on single features or groups, for any even number of features.
ATOMIC = {
    "l1": lambda d: L1Ball(3.0),
    "simplex": lambda d: Simplex(5.0),
    "nonnegative l1": lambda d: NonnegativeL1Ball(5.0),
    "weighted l1": lambda d: WeightedL1Ball(4.0, weights=np.linspace(0.5, 2.0, d)),
    "group": lambda d: GroupBall(groups=np.arange(d) % (d // 2), radius=3.0),
    "scaled l1": lambda d: Scale(L1Ball(1.0), 3.0),
}

# Losses --------------------------------------------------------------------------------------------------------------

LOSSES = {
    "Squared": losses.Squared(),
    "Logistic": losses.Logistic(),
    "Huber": losses.Huber(0.3),
    "SquaredHinge": losses.SquaredHinge(),
    "Poisson": losses.Poisson(),
    "SigmoidSquared": losses.SigmoidSquared(),
}
TWO_LOSSES = {name: LOSSES[name] for name in ("Squared", "Logistic")}  # those that references.py has formulas for


def targets(loss, y):
    """Return targets that a loss takes, made of any numbers."""
    choices = (y, np.where(y > 0.0, 1.0, -1.0), (y > 0.0) * 1.0, np.abs(np.round(y)), np.abs(y) + 0.1)
    return next(choice for choice in choices if _is_taken(loss, choice))


def _is_taken(loss, y):
    try:
        loss.check_targets(y)
    except ValueError:
        return False
    return True


# Forms of the data ---------------------------------------------------------------------------------------------------


def with_long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


FOUR_FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_matrix,
}
FORMS = FOUR_FORMS | {
    "C-float32": lambda X: np.ascontiguousarray(X, dtype=np.float32),
    "F-float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "csr-float32": lambda X: scipy.sparse.csr_array(X, dtype=np.float32),
    "csc-float32": lambda X: scipy.sparse.csc_array(X, dtype=np.float32),
    "csr-int64": lambda X: with_long_indices(scipy.sparse.csr_array(X)),
    "csc-int64": lambda X: with_long_indices(scipy.sparse.csc_array(X)),
}

# Solvers for the squared loss alone.
QUADRATIC_ONLY = ("polyatomic", "quadratic-correction")
