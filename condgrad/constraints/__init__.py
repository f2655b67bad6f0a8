"""Constraint sets: compact convex sets known by their linear minimisation oracle, one file each."""

from typing import Any

from condgrad.constraints._protocol import ConstraintSet, best_vertex, constraint_set
from condgrad.constraints.balls.box import Box
from condgrad.constraints.balls.ellipsoid import Ellipsoid
from condgrad.constraints.balls.l2_ball import L2Ball
from condgrad.constraints.balls.linf_ball import LinfBall
from condgrad.constraints.balls.lp_ball import LpBall
from condgrad.constraints.combinatorial.birkhoff import Birkhoff
from condgrad.constraints.combinatorial.flow_polytope import FlowPolytope
from condgrad.constraints.combinatorial.matroid_base_polytope import (
    MatroidBasePolytope,
    partition_matroid,
    uniform_matroid,
)
from condgrad.constraints.combinatorial.permutahedron import Permutahedron
from condgrad.constraints.combinatorial.spanning_tree_polytope import SpanningTreePolytope
from condgrad.constraints.combined.convex_hull_of_union import ConvexHullOfUnion
from condgrad.constraints.combined.linear_image import LinearImage
from condgrad.constraints.combined.minkowski_sum import MinkowskiSum
from condgrad.constraints.combined.product import Product
from condgrad.constraints.combined.scale import Scale
from condgrad.constraints.combined.shift import Shift
from condgrad.constraints.matrices.fantope import Fantope
from condgrad.constraints.matrices.nuclear_ball import NuclearBall
from condgrad.constraints.matrices.psd_trace_ball import PSDTraceBall
from condgrad.constraints.matrices.spectraplex import Spectraplex
from condgrad.constraints.matrices.weighted_nuclear_ball import WeightedNuclearBall
from condgrad.constraints.neighbours.fused_ball import FusedBall
from condgrad.constraints.neighbours.graph_total_variation_ball import GraphTotalVariationBall
from condgrad.constraints.neighbours.isotonic_box import IsotonicBox
from condgrad.constraints.neighbours.total_variation_ball import TotalVariationBall
from condgrad.constraints.oracle_set import OracleSet, as_constraint_set
from condgrad.constraints.polytopes.convex_hull import ConvexHull
from condgrad.constraints.polytopes.hypersimplex import Hypersimplex
from condgrad.constraints.polytopes.knapsack import Knapsack
from condgrad.constraints.polytopes.linearly_constrained import LinearlyConstrained
from condgrad.constraints.polytopes.polytope import Polytope
from condgrad.constraints.polytopes.simplex import Simplex
from condgrad.constraints.sparse.group_ball import GroupBall
from condgrad.constraints.sparse.k_sparse_polytope import KSparsePolytope
from condgrad.constraints.sparse.k_support_ball import KSupportBall
from condgrad.constraints.sparse.l1_ball import L1Ball
from condgrad.constraints.sparse.latent_group_ball import LatentGroupBall
from condgrad.constraints.sparse.nonnegative_l1_ball import NonnegativeL1Ball
from condgrad.constraints.sparse.ordered_weighted_l1_ball import OrderedWeightedL1Ball
from condgrad.constraints.sparse.sparse_group_ball import SparseGroupBall
from condgrad.constraints.sparse.weighted_l1_ball import WeightedL1Ball
from condgrad.constraints.vertices import Atom, DenseVertex, SparseVertex
from condgrad.linalg.names import Registry

REGISTERED = Registry(
    "constraint set",
    {
        "l1": L1Ball,
        "weighted-l1": WeightedL1Ball,
        "nonnegative-l1": NonnegativeL1Ball,
        "simplex": Simplex,
        "l2": L2Ball,
        "linf": LinfBall,
        "box": Box,
        "lp": LpBall,
        "k-sparse": KSparsePolytope,
        "hypersimplex": Hypersimplex,
        "knapsack": Knapsack,
        "group": GroupBall,
        "ordered-weighted-l1": OrderedWeightedL1Ball,
        "k-support": KSupportBall,
        "sparse-group": SparseGroupBall,
        "latent-group": LatentGroupBall,
        "fused": FusedBall,
        "total-variation": TotalVariationBall,
        "graph-total-variation": GraphTotalVariationBall,
        "isotonic": IsotonicBox,
        "ellipsoid": Ellipsoid,
        "permutahedron": Permutahedron,
        "birkhoff": Birkhoff,
        "flow": FlowPolytope,
        "spanning-tree": SpanningTreePolytope,
        "matroid-base": MatroidBasePolytope,
        "convex-hull": ConvexHull,
        "polytope": Polytope,
        "linearly-constrained": LinearlyConstrained,
        "product": Product,
        "minkowski-sum": MinkowskiSum,
        "convex-hull-of-union": ConvexHullOfUnion,
        "linear-image": LinearImage,
        "nuclear": NuclearBall,
        "weighted-nuclear": WeightedNuclearBall,
        "spectraplex": Spectraplex,
        "psd-trace": PSDTraceBall,
        "fantope": Fantope,
    },
)

__all__ = [
    "Atom",
    "ConstraintSet",
    "DenseVertex",
    "OracleSet",
    "Scale",
    "Shift",
    "SparseVertex",
    "as_constraint_set",
    "best_vertex",
    "by_name",
    "constraint_set",
    "partition_matroid",
    "uniform_matroid",
]
__all__ += [cls.__name__ for cls in REGISTERED.values()]
__all__.sort()


def by_name(name: str) -> Any:
    """Return the class of the set called ``name``.

    >>> by_name("l1")(radius=2.0)
    L1Ball(radius=2.0)
    """
    return REGISTERED.find(name)
