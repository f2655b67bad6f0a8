"""Constraint sets: compact convex sets known by their linear minimisation oracle, one file each."""

from typing import Any

from condgrad.constraints._protocol import ConstraintSet as ConstraintSet
from condgrad.constraints._protocol import best_vertex as best_vertex
from condgrad.constraints._protocol import constraint_set as constraint_set
from condgrad.constraints.balls.box import Box as Box
from condgrad.constraints.balls.ellipsoid import Ellipsoid as Ellipsoid
from condgrad.constraints.balls.l2_ball import L2Ball as L2Ball
from condgrad.constraints.balls.linf_ball import LinfBall as LinfBall
from condgrad.constraints.balls.lp_ball import LpBall as LpBall
from condgrad.constraints.combinatorial.birkhoff import Birkhoff as Birkhoff
from condgrad.constraints.combinatorial.flow_polytope import FlowPolytope as FlowPolytope
from condgrad.constraints.combinatorial.matroid_base_polytope import MatroidBasePolytope as MatroidBasePolytope
from condgrad.constraints.combinatorial.matroid_base_polytope import partition_matroid as partition_matroid
from condgrad.constraints.combinatorial.matroid_base_polytope import uniform_matroid as uniform_matroid
from condgrad.constraints.combinatorial.permutahedron import Permutahedron as Permutahedron
from condgrad.constraints.combinatorial.spanning_tree_polytope import SpanningTreePolytope as SpanningTreePolytope
from condgrad.constraints.combined.convex_hull_of_union import ConvexHullOfUnion as ConvexHullOfUnion
from condgrad.constraints.combined.linear_image import LinearImage as LinearImage
from condgrad.constraints.combined.minkowski_sum import MinkowskiSum as MinkowskiSum
from condgrad.constraints.combined.product import Product as Product
from condgrad.constraints.combined.scale import Scale as Scale
from condgrad.constraints.combined.shift import Shift as Shift
from condgrad.constraints.linear_rows import LinearRows as LinearRows
from condgrad.constraints.linear_rows import Multipliers as Multipliers
from condgrad.constraints.matrices.fantope import Fantope as Fantope
from condgrad.constraints.matrices.nuclear_ball import NuclearBall as NuclearBall
from condgrad.constraints.matrices.psd_trace_ball import PSDTraceBall as PSDTraceBall
from condgrad.constraints.matrices.spectraplex import Spectraplex as Spectraplex
from condgrad.constraints.matrices.weighted_nuclear_ball import WeightedNuclearBall as WeightedNuclearBall
from condgrad.constraints.neighbours.fused_ball import FusedBall as FusedBall
from condgrad.constraints.neighbours.graph_total_variation_ball import (
    GraphTotalVariationBall as GraphTotalVariationBall,
)
from condgrad.constraints.neighbours.isotonic_box import IsotonicBox as IsotonicBox
from condgrad.constraints.neighbours.total_variation_ball import TotalVariationBall as TotalVariationBall
from condgrad.constraints.oracle_set import OracleSet as OracleSet
from condgrad.constraints.oracle_set import as_constraint_set as as_constraint_set
from condgrad.constraints.polytopes.convex_hull import ConvexHull as ConvexHull
from condgrad.constraints.polytopes.hypersimplex import Hypersimplex as Hypersimplex
from condgrad.constraints.polytopes.knapsack import Knapsack as Knapsack
from condgrad.constraints.polytopes.linearly_constrained import LinearlyConstrained as LinearlyConstrained
from condgrad.constraints.polytopes.polytope import Polytope as Polytope
from condgrad.constraints.polytopes.simplex import Simplex as Simplex
from condgrad.constraints.sparse.group_ball import GroupBall as GroupBall
from condgrad.constraints.sparse.k_sparse_polytope import KSparsePolytope as KSparsePolytope
from condgrad.constraints.sparse.k_support_ball import KSupportBall as KSupportBall
from condgrad.constraints.sparse.l1_ball import L1Ball as L1Ball
from condgrad.constraints.sparse.latent_group_ball import LatentGroupBall as LatentGroupBall
from condgrad.constraints.sparse.limited_l1_ball import LimitedL1Ball as LimitedL1Ball
from condgrad.constraints.sparse.nonnegative_l1_ball import NonnegativeL1Ball as NonnegativeL1Ball
from condgrad.constraints.sparse.ordered_weighted_l1_ball import OrderedWeightedL1Ball as OrderedWeightedL1Ball
from condgrad.constraints.sparse.sparse_group_ball import SparseGroupBall as SparseGroupBall
from condgrad.constraints.sparse.weighted_group_ball import WeightedGroupBall as WeightedGroupBall
from condgrad.constraints.sparse.weighted_l1_ball import WeightedL1Ball as WeightedL1Ball
from condgrad.constraints.vertices import Atom as Atom
from condgrad.constraints.vertices import DenseVertex as DenseVertex
from condgrad.constraints.vertices import SparseVertex as SparseVertex
from condgrad.linalg.names import Registry

REGISTERED = Registry(
    "constraint set",
    {
        "l1": L1Ball,
        "weighted-l1": WeightedL1Ball,
        "nonnegative-l1": NonnegativeL1Ball,
        "limited-l1": LimitedL1Ball,
        "simplex": Simplex,
        "l2": L2Ball,
        "linf": LinfBall,
        "box": Box,
        "lp": LpBall,
        "k-sparse": KSparsePolytope,
        "hypersimplex": Hypersimplex,
        "knapsack": Knapsack,
        "group": GroupBall,
        "weighted-group": WeightedGroupBall,
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
    "LinearRows",
    "Multipliers",
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
