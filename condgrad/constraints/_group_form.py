"""GroupForm: balls of groups as one norm of scaled coefficients, for solvers that know this norm."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from condgrad.constraints.sparse.group_ball import GroupBall
from condgrad.constraints.sparse.sparse_group_ball import SparseGroupBall
from condgrad.constraints.sparse.weighted_group_ball import WeightedGroupBall
from condgrad.linalg.group_norm import GroupNorm


class GroupForm(NamedTuple):
    """The ball of all w whose x_j = price_j w_j have a norm of at most ``radius``.

    Group g of the norm holds the features members[offsets[g]:offsets[g + 1]], which have the same price.
    """

    norm: GroupNorm
    radius: float
    members: np.ndarray
    offsets: np.ndarray
    price: np.ndarray  # of each feature, in their own order

    def is_same_but_radius(self, other: GroupForm) -> bool:
        """Return whether another ball differs in its radius alone."""
        return self.norm == other.norm and all(
            np.array_equal(mine, its) for mine, its in zip(self[2:], other[2:], strict=True)
        )


def group_form(constraint: object) -> GroupForm | None:
    """Return the norm whose ball a set is, or None where it is no ball of groups."""
    if not isinstance(constraint, GroupBall | WeightedGroupBall | SparseGroupBall):
        return None
    members, offsets = cast("np.ndarray", constraint.members), cast("np.ndarray", constraint.offsets)
    price, norm = np.ones(members.size), GroupNorm(0.0, False)
    if isinstance(constraint, WeightedGroupBall):
        price[members] = np.repeat(np.asarray(constraint.weights), np.diff(offsets))
        norm = GroupNorm(0.0, bool(constraint.is_nonnegative))
    elif isinstance(constraint, SparseGroupBall):
        norm = GroupNorm(float(constraint.l1_weight), False)
    return GroupForm(norm, float(constraint.radius), members, offsets, price)
