"""GroupGauge: the norm whose balls are the sets of a path over groups of features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from condgrad.constraints import GroupBall, SparseGroupBall, WeightedGroupBall
from condgrad.constraints._group_form import GroupForm, group_form
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.linalg.group_norm import norm_of
from condgrad.paths.gauges import Gauge, gauge_of


class GroupGauge(NamedTuple):
    """The norm of a :class:`~condgrad.constraints._group_form.GroupForm`; ``unit`` is one of its balls."""

    form: GroupForm
    unit: GroupBall | WeightedGroupBall | SparseGroupBall

    def norm(self, w: np.ndarray) -> float:
        """Return the norm of w."""
        form = self.form
        return float(norm_of(form.norm, form.offsets, (form.price * w)[form.members]))

    def ball(self, radius: float) -> ConstraintSet:
        """Return the set of all w with a norm of at most ``radius``."""
        return as_constraint_set(self.unit._replace(radius=radius))

    def radius_of(self, constraint: object) -> float | None:
        """Return the radius of a set that is a ball of this norm, and None for every other set."""
        other = group_form(constraint)
        return other.radius if other is not None and self.form.is_same_but_radius(other) else None


def group_gauge_of(constraint: Any) -> GroupGauge | None:
    """Return the norm whose ball the set is, or None where it is no ball of groups."""
    form = group_form(constraint)
    return None if form is None else GroupGauge(form, constraint)


def any_gauge_of(constraint: object) -> Gauge | GroupGauge | None:
    """Return the norm whose ball the set is, of features or of groups; None where the engines know none."""
    return gauge_of(constraint) or group_gauge_of(constraint)
