"""The bases of a matroid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._parameters import as_labels, as_positive_integer, to_array
from condgrad.constraints._protocol import ConstraintSet, as_array
from condgrad.constraints.vertices import SparseVertex, Vertex
from condgrad.linalg.vectors import Vector

_N_COMPARED = 32  # bases by which a checkpoint recognises a rule of the user


class MatroidBasePolytope(ConstraintSet):
    """The convex hull of the bases of a matroid, as vectors of zeros and ones: choose features under a rule.

    The oracle is the greedy algorithm: in the order of r, it takes each feature that keeps the choice independent. It
    calls ``is_independent`` up to d times, and is not compiled; the rules of :func:`uniform_matroid` and
    :func:`partition_matroid` find the base at once, in O(d log d).

    Parameters
    ----------
    n_features : int
        The number of features.
    is_independent : callable
        Takes an increasing array of features and returns whether they are an independent set: subsets of independent
        sets are independent, and of two independent sets of different sizes the larger has a feature that can be added
        to the smaller. :func:`uniform_matroid` and :func:`partition_matroid` return such functions; if the rule is not
        a matroid, the oracle is not exact.

    References
    ----------
    Edmonds (1971). Matroids and the greedy algorithm.

    Examples
    --------
    >>> one_of_each = MatroidBasePolytope(4, partition_matroid([0, 0, 1, 1], capacities=[1, 1]))
    >>> one_of_each.contains([0.3, 0.7, 1.0, 0.0]), one_of_each.contains([1.0, 1.0, 0.0, 0.0])
    (True, False)
    """

    vertex = SparseVertex
    is_polytope = True
    has_absolute_values = True

    def __init__(self, n_features: int, is_independent: Callable[[np.ndarray], bool]) -> None:
        self.n_features: int = as_positive_integer("MatroidBasePolytope", "n_features", n_features)
        if not callable(is_independent):
            raise TypeError(f"is_independent of MatroidBasePolytope must be a function; got {is_independent!r}.")
        self.is_independent = is_independent
        self.rank = self.n_features  # at most
        self.rank = self._base(np.zeros(self.n_features)).size
        if self.rank == 0:
            raise ValueError(
                "MatroidBasePolytope needs an independent feature; is_independent returned False for every one."
            )

    def __repr__(self) -> str:
        return f"MatroidBasePolytope(<{self.n_features} features, rank {self.rank}>)"

    def definition(self) -> tuple[object, ...]:
        """Return what identifies the set for a checkpoint: its rule or, for a rule of your own, bases that it allows.

        Functions that differ can have one name, so some bases are compared that are best for generic costs. Two rules
        that agree on all of them, and have one name, are not told apart.
        """
        rule = self.is_independent
        if isinstance(rule, _AtMost | _Partition):
            return self.n_features, rule
        costs = np.random.default_rng(0).standard_normal((_N_COMPARED, self.n_features))
        name = getattr(rule, "__qualname__", type(rule).__qualname__)
        return self.n_features, name, [self._base(each) for each in costs]

    def lmo(self, r: Vector) -> SparseVertex:
        """Return the base with the smallest sum of entries of r."""
        return SparseVertex(self._base(as_array(r)), np.ones(self.rank))

    def oracle_rounding(self, r: np.ndarray, s: Vertex) -> float:
        """Return 0: the oracle compares entries and copies ones."""
        return 0.0

    def diameter(self, order: float = 2, n_features: int | None = None) -> float:
        """Return the bound by two bases that have as few features in common as their number allows."""
        n_moved = min(self.rank, self.n_features - self.rank)
        return (2.0 * n_moved) ** (1.0 / order) if n_moved > 0 else 0.0

    def _base(self, costs: np.ndarray) -> np.ndarray:
        order = np.argsort(costs, kind="stable")
        if isinstance(self.is_independent, _AtMost | _Partition):
            return np.sort(self.is_independent.base(order))
        is_chosen = np.zeros(self.n_features, dtype=bool)
        count = 0
        for j in order:
            if count == self.rank:  # all bases have the same size
                break
            is_chosen[j] = True
            is_chosen[j] = bool(self.is_independent(np.flatnonzero(is_chosen)))
            count += int(is_chosen[j])
        return np.flatnonzero(is_chosen)


class _AtMost:
    """The rule of a uniform matroid."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __call__(self, features: np.ndarray) -> bool:
        return features.size <= self.k

    def base(self, order: np.ndarray) -> np.ndarray:
        """Return what the greedy algorithm takes of the features in this order."""
        return order[: self.k]


class _Partition:
    """The rule of a partition matroid: the group of each feature, and how many of each group may be chosen."""

    def __init__(self, labels: np.ndarray, limits: np.ndarray) -> None:
        self.labels, self.limits = labels, limits

    def __call__(self, features: np.ndarray) -> bool:
        return bool((np.bincount(self.labels[features], minlength=self.limits.size) <= self.limits).all())

    def base(self, order: np.ndarray) -> np.ndarray:
        """Return what the greedy algorithm takes of the features in this order: the first ones of each group."""
        labels = self.labels[order]
        by_group = np.argsort(labels, kind="stable")
        groups = labels[by_group]
        place = np.arange(order.size) - np.searchsorted(groups, groups)  # among the features of its group
        chosen: np.ndarray = order[by_group[place < self.limits[groups]]]
        return chosen


def uniform_matroid(k: int) -> Callable[[np.ndarray], bool]:
    """Return the rule "at most k features".

    >>> uniform_matroid(2)(np.array([0, 5]))
    True
    """
    return _AtMost(as_positive_integer("uniform_matroid", "k", k))


def partition_matroid(groups: ArrayLike, capacities: ArrayLike) -> Callable[[np.ndarray], bool]:
    """Return the rule "of group g at most capacities[g] features".

    Parameters
    ----------
    groups : array of int, of shape (n_features,)
        The group of each feature, counted from 0.
    capacities : array of int
        How many features of each group may be chosen.

    Examples
    --------
    >>> rule = partition_matroid([0, 0, 1], capacities=[1, 1])
    >>> rule(np.array([0, 2])), rule(np.array([0, 1]))
    (True, False)
    """
    labels = as_labels("partition_matroid", "groups", groups)
    limits = to_array("partition_matroid", "capacities", capacities)
    if limits.ndim != 1 or limits.dtype.kind not in "iu" or limits.min(initial=0) < 0:
        raise ValueError(f"capacities of partition_matroid must be integers of at least 0; got {capacities!r}.")
    if labels.min() < 0 or labels.max() >= limits.size:
        raise ValueError(
            f"groups of partition_matroid must be numbers from 0 to {limits.size - 1}, one per capacity; "
            f"got {labels.min()} to {labels.max()}."
        )
    return _Partition(labels, np.array(limits, dtype=np.int64))
