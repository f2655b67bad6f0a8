"""Allowance: what each coefficient costs and where it may lie, and the l1 balls of all radii under these terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.oracle_set import as_constraint_set
from condgrad.constraints.polytopes.linearly_constrained import LinearlyConstrained
from condgrad.constraints.sparse.l1_ball import L1Ball
from condgrad.constraints.sparse.limited_l1_ball import LimitedL1Ball
from condgrad.constraints.sparse.nonnegative_l1_ball import NonnegativeL1Ball
from condgrad.constraints.sparse.weighted_l1_ball import WeightedL1Ball
from condgrad.linalg.names import suggestion

Key: TypeAlias = str | int  # the name of a feature, or its number
PerFeature: TypeAlias = ArrayLike | Mapping[Key, float] | None
Which: TypeAlias = bool | Sequence[bool] | Sequence[str] | np.ndarray | None


class Allowance(NamedTuple):
    """Weights and limits of all coefficients, None where there are none.

    A feature of weight 0 is *free*. Where it has no limits of its own, a set needs some: ``ball`` takes them.
    """

    weights: np.ndarray | None
    lower: np.ndarray | None
    upper: np.ndarray | None

    @property
    def is_plain(self) -> bool:
        """Whether all sets are plain l1 balls."""
        return self.weights is None and self.lower is None and self.upper is None

    @property
    def excludes_zero(self) -> bool:
        """Whether limits leave out zero, so that small radii have no set."""
        return (self.lower is not None and bool((self.lower > 0.0).any())) or (
            self.upper is not None and bool((self.upper < 0.0).any())
        )

    @property
    def unlimited(self) -> np.ndarray:
        """The free features that lack a limit."""
        if self.weights is None:
            return np.empty(0, np.int64)
        return np.flatnonzero((self.weights == 0.0) & ~np.isfinite(self.limits()).all(axis=0))

    def ball(self, radius: float, limits: np.ndarray | None = None) -> ConstraintSet:
        """Return the simplest set of this radius; ``limits`` are those of the ``unlimited`` features, as sizes.

        With radius 0 all features that cost something are 0.
        """
        if self.is_plain:
            return as_constraint_set(L1Ball(radius))  # type: ignore[call-arg]
        lower, upper = self.limits()
        is_open = not np.isfinite(lower).any() and not np.isfinite(upper).any()
        if is_open and self.weights is not None and self.weights.min() > 0.0 and radius > 0.0:
            return as_constraint_set(WeightedL1Ball(radius, self.weights))  # type: ignore[call-arg]
        if self.weights is None and not lower.any() and (upper == np.inf).all() and radius > 0.0:
            return as_constraint_set(NonnegativeL1Ball(radius))  # type: ignore[call-arg]
        free = self.unlimited
        if free.size:
            own = np.abs(np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0)))[free]
            sizes = np.maximum(np.ones(free.size) if limits is None else limits, 2.0 * own)
            lower[free], upper[free] = np.maximum(lower[free], -sizes), np.minimum(upper[free], sizes)
        if radius == 0.0:
            is_paid = np.ones(lower.size, dtype=bool) if self.weights is None else self.weights > 0.0
            lower[is_paid] = upper[is_paid] = 0.0
        around_zero = np.minimum(lower, 0.0), np.maximum(upper, 0.0)
        ball = as_constraint_set(LimitedL1Ball(radius or 1.0, self.weights, *around_zero))  # type: ignore[call-arg]
        if (lower <= 0.0).all() and (upper >= 0.0).all():
            return ball
        return LinearlyConstrained(ball, bounds=np.column_stack([lower, upper]))

    def limits(self) -> np.ndarray:
        """Return lower and upper limits as two rows."""
        given = next(part for part in (self.weights, self.lower, self.upper) if part is not None)
        lower = np.full(given.size, -np.inf) if self.lower is None else self.lower
        upper = np.full(given.size, np.inf) if self.upper is None else self.upper
        return np.array([lower, upper])


def as_allowance(
    feature_weight: PerFeature,
    positive: Which,
    lower: PerFeature,
    upper: PerFeature,
    n_features: int,
    names: Iterable[object] | None,
) -> Allowance:
    """Return what users ask for as arrays; ``names`` are those of the features, None where they have none."""
    known = None if names is None else [str(name) for name in names]
    weights = _per_feature(feature_weight, "feature_weight", 1.0, n_features, known)
    low = _per_feature(lower, "lower", -np.inf, n_features, known)
    high = _per_feature(upper, "upper", np.inf, n_features, known)
    if weights is not None and not (np.isfinite(weights) & (weights >= 0.0)).all():
        bad = weights[~(np.isfinite(weights) & (weights >= 0.0))][0]
        raise ValueError(f"feature_weight must be finite and at least 0 (0 leaves a feature free); got {bad:g}.")
    chosen = _which(positive, "positive", n_features, known)
    if chosen is not None:
        low = np.where(chosen, np.maximum(0.0, -np.inf if low is None else low), -np.inf if low is None else low)
    if low is not None and high is not None and (low > high).any():
        j = int((low > high).argmax())
        what = f"feature {j}" if known is None else f"feature {known[j]!r}"
        raise ValueError(
            f"lower (or positive) must not exceed upper; {what} would lie between {low[j]:g} and {high[j]:g}."
        )
    weights = None if weights is None or (weights == 1.0).all() else weights
    low = None if low is None or (low == -np.inf).all() else low
    high = None if high is None or (high == np.inf).all() else high
    return Allowance(weights, low, high)


def unnamed(n_features: int) -> list[str]:
    """Return how features are called that have no names."""
    return [f"x{j}" for j in range(n_features)]


def place_of(key: Key, name: str, n_features: int, known: list[str] | None) -> int:
    """Return the number of the feature that a key of the parameter ``name`` stands for."""
    if isinstance(key, str):
        if known is None:
            place = int(key[1:]) if key[1:].isdecimal() else n_features
            if place < n_features and key == f"x{place}":
                return place
            raise ValueError(
                f"{name} names the feature {key!r}, but X has no names; its features are x0 to x{n_features - 1}."
            )
        if key not in known:
            raise ValueError(f"{name} names the feature {key!r}, which X does not have.{suggestion(key, known)}")
        return known.index(key)
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not 0 <= key < n_features:
        raise ValueError(f"{name} must name features, or number them from 0 to {n_features - 1}; got {key!r}.")
    return int(key)


def _per_feature(
    value: PerFeature, name: str, default: float, n_features: int, known: list[str] | None
) -> np.ndarray | None:
    """Return one number for each feature."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        array = np.full(n_features, default)
        for key, number in value.items():
            entry = _as_float(number, name)
            if entry.ndim > 0:
                raise TypeError(f"{name} must have one number for each feature; got {number!r} for {key!r}.")
            array[place_of(key, name, n_features, known)] = entry
    else:
        array = _as_float(value, name)
        array = np.full(n_features, array) if array.ndim == 0 else array
    if array.shape != (n_features,):
        raise ValueError(
            f"{name} must be a number, a dict by feature, or an array of one number per feature, {n_features}; "
            f"got shape {array.shape}."
        )
    if np.isnan(array).any():
        raise ValueError(f"{name} must hold numbers; got nan for feature {int(np.isnan(array).argmax())}.")
    return array


def _as_float(value: object, name: str) -> np.ndarray:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must hold real numbers; got {value!r}.") from None


def _which(value: Which, name: str, n_features: int, known: list[str] | None) -> np.ndarray | None:
    """Return a mask of the chosen features, None where there are none."""
    if value is None or isinstance(value, bool | np.bool_):
        return np.ones(n_features, dtype=bool) if value else None
    entries = list(value) if isinstance(value, Iterable) else [value]
    if entries and all(isinstance(entry, str) for entry in entries) and not isinstance(value, str):
        mask = np.zeros(n_features, dtype=bool)
        mask[[place_of(key, name, n_features, known) for key in entries]] = True
        return mask
    mask = np.asarray(value)
    if mask.dtype != bool or mask.shape != (n_features,):
        raise ValueError(
            f"{name} must be True or False, a mask with one of them per feature ({n_features}), or a list of names; "
            f"got {value!r}."
        )
    return mask if mask.any() else None
