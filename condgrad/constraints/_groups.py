"""Groups of features, as users write them and as kernels read them: members[offsets[g]:offsets[g + 1]] is group g."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.constraints._parameters import to_array


def members_by_label(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return members and offsets of the groups of features with the same label.

    >>> members_by_label(np.array([7, 5, 7]))
    (array([1, 0, 2]), array([0, 1, 3]))
    """
    sizes = np.unique(groups, return_counts=True)[1]
    return np.argsort(groups, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])


def features_of(chosen: np.ndarray, members: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the features of the chosen groups, one group after the other.

    >>> features_of(np.array([1, 0]), np.array([1, 0, 2]), np.array([0, 1, 3]))
    array([0, 2, 1])
    """
    return np.concatenate([members[:0], *(members[offsets[g] : offsets[g + 1]] for g in chosen)])


def members_of_lists(owner: str, groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return members and offsets of groups that are listed one by one, and may share features.

    >>> members_of_lists("LatentGroupBall", [[0, 1], [1, 2]])
    (array([0, 1, 1, 2]), array([0, 2, 4]))
    """
    if isinstance(groups, str) or not hasattr(groups, "__len__") or len(groups) == 0:
        raise ValueError(f"groups of {owner} must be a list of lists of features; got {groups!r}.")
    lists = [_as_features(owner, g, features) for g, features in enumerate(groups)]
    members = np.concatenate(lists)
    missing = np.setdiff1d(np.arange(members.max() + 1), members)
    if missing.size:
        raise ValueError(
            f"groups of {owner} must cover all features; got no group with feature {missing[0]}. "
            "Give it a group of its own."
        )
    return members, np.concatenate([[0], np.cumsum([features.size for features in lists])])


def _as_features(owner: str, g: int, features: object) -> np.ndarray:
    array = to_array(owner, f"group {g}", features)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"group {g} of {owner} must be a list of at least one feature; got {features!r}.")
    if array.dtype.kind not in "iu":
        raise TypeError(f"group {g} of {owner} must hold the numbers of features; got an array of type {array.dtype}.")
    if array.min() < 0 or np.unique(array).size < array.size:
        raise ValueError(f"group {g} of {owner} must hold different features, counted from 0; got {array.tolist()}.")
    return array.astype(np.int64)
