"""Lists of sets in one space, for sets that combine several."""

from __future__ import annotations

from collections.abc import Sequence

from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.constraints.vertices import DenseVertex, SparseVertex, Vertex


def as_sets(owner: str, sets: object) -> tuple[list[ConstraintSet], int | None]:
    """Return the sets as constraint sets, and their dimension if one of them fixes it."""
    if not isinstance(sets, Sequence) or hasattr(sets, "lmo") or isinstance(sets, str):
        raise TypeError(f"sets of {owner} must be a list of constraint sets; got {type(sets).__name__}.")
    if not sets:
        raise ValueError(f"{owner} needs at least one set; got none.")
    made = [as_constraint_set(one) for one in sets]
    sizes = sorted({one.n_features for one in made if one.n_features is not None})
    if len(sizes) > 1:
        raise ValueError(f"sets of {owner} must have vectors of one length; got lengths {sizes}.")
    return made, sizes[0] if sizes else None


def common_vertex(sets: list[ConstraintSet]) -> type[Vertex]:
    """Return a kind of vertex that can hold the vertices of all sets, and sums of them."""
    return DenseVertex if any(one.vertex is DenseVertex for one in sets) else SparseVertex
