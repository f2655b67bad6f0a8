"""Constraint sets: compact convex sets known by their linear minimisation oracle, one file each."""

import difflib
from typing import Any

from condgrad.constraints._protocol import ConstraintSet, best_vertex, constraint_set
from condgrad.constraints.box import Box
from condgrad.constraints.convex_hull import ConvexHull
from condgrad.constraints.group_ball import GroupBall
from condgrad.constraints.hypersimplex import Hypersimplex
from condgrad.constraints.k_sparse_polytope import KSparsePolytope
from condgrad.constraints.l1_ball import L1Ball
from condgrad.constraints.l2_ball import L2Ball
from condgrad.constraints.linf_ball import LinfBall
from condgrad.constraints.lp_ball import LpBall
from condgrad.constraints.nonnegative_l1_ball import NonnegativeL1Ball
from condgrad.constraints.oracle_set import OracleSet, as_constraint_set
from condgrad.constraints.polytope import Polytope
from condgrad.constraints.product import Product
from condgrad.constraints.scale import Scale
from condgrad.constraints.shift import Shift
from condgrad.constraints.simplex import Simplex
from condgrad.constraints.vertices import Atom, DenseVertex, SparseVertex
from condgrad.constraints.weighted_l1_ball import WeightedL1Ball

__all__ = [
    "Atom",
    "Box",
    "ConstraintSet",
    "ConvexHull",
    "DenseVertex",
    "GroupBall",
    "Hypersimplex",
    "KSparsePolytope",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "LpBall",
    "NonnegativeL1Ball",
    "OracleSet",
    "Polytope",
    "Product",
    "Scale",
    "Shift",
    "Simplex",
    "SparseVertex",
    "WeightedL1Ball",
    "as_constraint_set",
    "best_vertex",
    "by_name",
    "constraint_set",
]

REGISTERED = {
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
    "group": GroupBall,
    "convex-hull": ConvexHull,
    "polytope": Polytope,
    "product": Product,
}


def by_name(name: str) -> Any:
    """Return the class of the set called ``name``.

    >>> by_name("l1")(radius=2.0)
    L1Ball(radius=2.0)
    """
    if isinstance(name, str) and name in REGISTERED:
        return REGISTERED[name]
    close = difflib.get_close_matches(str(name), REGISTERED, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"no constraint set is called {name!r}; there are {', '.join(REGISTERED)}.{hint}")
