"""Parameters of constraint sets: converted to the form that kernels read, or refused in one sentence."""

from __future__ import annotations

import reprlib

import numpy as np


def as_integer(owner: str, name: str, value: object) -> int:
    """Return ``value`` as an int."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise TypeError(f"{name} of {owner} must be an integer; got {' '.join(reprlib.repr(value).split())}.")


def as_positive_integer(owner: str, name: str, value: object) -> int:
    """Return ``value`` as an int of at least one."""
    number = as_integer(owner, name, value)
    if number < 1:
        raise ValueError(f"{name} of {owner} must be at least 1; got {number}.")
    return number


def as_real(owner: str, name: str, value: object) -> float:
    """Return ``value`` as a float."""
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return float(value)
    raise TypeError(f"{name} of {owner} must be a real number; got {' '.join(reprlib.repr(value).split())}.")


def check_at_most_features(owner: str, k: int, n_features: int, remedy: str = "") -> None:
    """Raise ValueError where ``k``, a number of features, is larger than ``n_features``."""
    if k > n_features:
        raise ValueError(f"k of {owner} must be at most the number of features, {n_features}; got {k}.{remedy}")


def as_reals(owner: str, name: str, value: object, n_dims: int = 1, *, is_finite: bool = True) -> np.ndarray:
    """Return ``value`` as a new float64 array with ``n_dims`` dimensions and at least one entry."""
    array = to_array(owner, name, value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} of {owner} must hold real numbers; got an array of type {array.dtype}.")
    array = np.array(array, dtype=np.float64, order="C")
    if array.ndim != n_dims or array.size == 0:
        raise ValueError(f"{name} of {owner} must be a non-empty {n_dims}-D array; got shape {array.shape}.")
    if is_finite and not np.isfinite(array).all():
        raise ValueError(f"{name} of {owner} must be finite; got {_first_bad(array)!r} among its values.")
    return array


def as_labels(owner: str, name: str, value: object) -> np.ndarray:
    """Return ``value`` as a 1-D int64 array with at least one entry."""
    array = to_array(owner, name, value)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} of {owner} must hold one label per feature; got an array of shape {array.shape}.")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} of {owner} must hold integer labels; got an array of type {array.dtype}.")
    return np.array(array, dtype=np.int64)


def to_array(owner: str, name: str, value: object) -> np.ndarray:
    """Return ``value`` as an array of whatever type and shape it has."""
    try:
        return np.asarray(value)
    except ValueError:  # rows of different lengths
        raise ValueError(f"{name} of {owner} must be an array; got rows of different lengths.") from None


def shown(array: np.ndarray) -> str:
    """Return an array in at most one short line, for a repr.

    >>> shown(np.arange(100.0))
    '[0, 1, ..., 98, 99]'
    """
    entries = [f"{value:g}" for value in (array if array.size <= 6 else (*array[:2], *array[-2:]))]
    if array.size > 6:
        entries.insert(2, "...")
    return "[" + ", ".join(entries) + "]"


def _first_bad(array: np.ndarray) -> float:
    return float(array[~np.isfinite(array)][0])
