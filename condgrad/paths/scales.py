"""Scales of features: the deviations that standardisation divides by, and a warning where scales are far apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from condgrad.linalg.callers import level_of_user
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.spread import spread_rows
from condgrad.paths.columns import make_columns

SCALE_FIRST = "divide them by their standard deviations, as StandardScaler does"
ADVICE = f"give standardize=True or feature_weight, or {SCALE_FIRST}"
_APART = 1e3  # ratio of the ranges of two columns beyond which the warning comes; ages and zeros and ones are at 1e2
_SAMPLED = 1000  # rows from which the ranges are estimated
_CONSTANT = 1e-12  # share of its largest entry below which the range of a column is rounding


class ScaleWarning(UserWarning):
    """Columns of very different scale share one budget, which then is for those with large entries alone."""


def deviations(matrix: Matrix, weight: np.ndarray, has_intercept: bool) -> np.ndarray:
    """Return the standard deviations of all features, or without an intercept their root mean squares.

    A feature that is constant, and so takes no part, has its size in place of zero, or one. ``weight`` sums to one.
    """
    columns = make_columns(matrix, weight, has_intercept, standardize=True)
    sizes = np.where(columns.mean == 0.0, 1.0, np.abs(columns.mean))
    np.divide(1.0, columns.scale, out=sizes, where=columns.scale > 0.0)
    return sizes


def warn_of_scales(X: Any, remedy: str) -> None:
    """Warn if the largest range of a column of dense data is more than a thousand times the smallest one.

    Ranges are those of a thousand rows. Zeros and ones have a range of one however rare they are, where deviations
    would depend on that. Sparse data, and what is not in memory, are left alone.
    """
    ranges = _ranges(X)
    if ranges is None or not (ranges > 0.0).any():
        return
    ratio = float(ranges.max() / ranges[ranges > 0.0].min())
    if ratio > _APART:
        warnings.warn(
            f"the columns of X have ranges that differ by a factor of {ratio:.1g}, and share one budget, which is then "
            f"spent on the large ones; {remedy}.",
            ScaleWarning,
            stacklevel=level_of_user(),
        )


def _ranges(X: Any) -> np.ndarray | None:
    """Return the ranges of the columns, 0 where they are constant; None for data that are left alone."""
    if isinstance(X, CodedData):
        found = _ranges(X.numbers.T)
        return found if found is None or X.n_fields == 0 else np.append(found, 1.0)
    if not (isinstance(X, np.ndarray) or hasattr(X, "iloc")) or len(X.shape) != 2 or 0 in X.shape:
        return None  # no array, and no data frame
    rows = spread_rows(X.shape[0], max(1, X.shape[0] // _SAMPLED))
    some = np.asarray(X.iloc[rows] if hasattr(X, "iloc") else X[rows])
    if some.dtype.kind not in "fiu":
        return None
    some = some.astype(np.float64)
    low, high = some.min(axis=0), some.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None  # the checks of the data tell more
    with np.errstate(over="ignore"):
        return np.where(high - low > _CONSTANT * np.maximum(np.abs(low), np.abs(high)), high - low, 0.0)
