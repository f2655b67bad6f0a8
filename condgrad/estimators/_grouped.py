"""GroupedFeatures: groups of features that are zero together, with weights, signs, and columns of words as groups."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from condgrad import constraints
from condgrad.estimators._fits import Budget
from condgrad.estimators._linear_model import ConstrainedLinearModel
from condgrad.estimators._observations import Observations
from condgrad.estimators.indicators import expanded
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.settings import as_flag
from condgrad.storage.outside_rows import OutsideRows

SQRT_SIZE = "sqrt-size"


class GroupedFeatures(ConstrainedLinearModel):
    """Base of the estimators over balls of groups: which features belong together, and what each group costs."""

    feature_groups: object = None
    group_weight: ArrayLike | None = None
    l1_weight: float = 0.0
    positive: bool = False
    constraint = "group"

    feature_groups_: np.ndarray

    def _validated(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        **settings: object,
    ) -> Observations:
        data = super()._validated(X, y, sample_weight, offset, **settings)
        if self.indicators_ is None:
            columns, sizes = getattr(self, "feature_names_in_", None), np.ones(data.X.shape[1], np.int64)
        else:
            columns, sizes = self.indicators_.columns, self.indicators_.sizes
        self.feature_groups_ = expanded(self._labels(columns, sizes.size), sizes)
        return data

    def _labels(self, columns: Any, n_columns: int) -> list[object]:
        """Return the label of every column."""
        given = self.feature_groups
        if given is None:
            return list(range(n_columns))
        if isinstance(given, Mapping):
            if columns is None:
                raise ValueError(
                    "feature_groups is a dict of column names, but X has no names; give one label per column."
                )
            strange = [name for name in given if name not in tuple(columns)]
            if strange:
                raise ValueError(f"feature_groups names the column {strange[0]!r}, which X does not have.")
            return [given.get(name, ("alone", name)) for name in columns]
        labels = list(np.asarray(given).tolist()) if np.iterable(given) and not isinstance(given, str) else []
        if len(labels) != n_columns:
            raise ValueError(
                f"feature_groups must be one label for each of the {n_columns} columns of X; got {given!r}."
            )
        return labels

    def _weights(self) -> np.ndarray:
        """Return the weight of each group, in the order of the numbers of ``feature_groups_``."""
        n_groups, given = int(self.feature_groups_.max()) + 1, self.group_weight
        if given is None:
            return np.ones(n_groups)
        if isinstance(given, str):
            if given != SQRT_SIZE:
                raise ValueError(f"group_weight must be 'sqrt-size', one number per group, or None; got {given!r}.")
            return np.sqrt(np.bincount(self.feature_groups_))
        if np.shape(given) != (n_groups,):
            raise ValueError(f"group_weight must be {n_groups} numbers, one per group; got {given!r}.")
        weights = convert.as_vector(given, "group_weight", n_groups)
        if weights.min() <= 0.0:
            raise ValueError(f"group_weight must be positive; got {weights.min():g}.")
        return weights

    def _budget(self, data: Observations) -> Budget:
        radius, weights = None if self.radius is None else float(self.radius), self._weights()
        if self.l1_weight > 0.0:
            make: Any = functools.partial(
                constraints.SparseGroupBall, self.feature_groups_, l1_weight=float(self.l1_weight)
            )
        elif self.positive or (weights != 1.0).any():
            make = functools.partial(
                constraints.WeightedGroupBall, self.feature_groups_, weights=weights, is_nonnegative=bool(self.positive)
            )
        else:
            make = functools.partial(constraints.GroupBall, self.feature_groups_)
        return Budget(None, make, radius)

    def _check_settings(self) -> None:
        super()._check_settings()
        convert.as_number(self.l1_weight, "l1_weight", low=0.0, what="a number of at least 0")
        as_flag(self.positive, "positive")
        if self.l1_weight > 0.0 and (self.positive or self.group_weight is not None):
            raise ValueError(
                "l1_weight > 0 (the sparse group lasso) goes without positive and group_weight; leave one of them out."
            )
