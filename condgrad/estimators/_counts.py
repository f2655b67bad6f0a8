"""Counts as users have them: successes beside failures, and exposures, as the shares, weights and offsets of a loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import on_host
from condgrad.storage.cluster_rows import is_dask
from condgrad.storage.outside_rows import OutsideRows


def shares_of(y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of successes among trials, and the weights times the trials; y are successes and failures."""
    counts = np.asarray(y, dtype=np.float64)
    if counts.min() < 0.0:
        raise ValueError(f"successes and failures must not be negative; got {counts.min():g}.")
    if counts.max() <= 1.0 and (counts != np.round(counts)).any():
        raise ValueError(
            "two columns of y are successes and failures for Binomial, and these are shares; fit one column at a time, "
            "with the trials as sample_weight."
        )
    trials = counts.sum(axis=1)
    weight = trials if weight is None else trials * weight
    if not weight.any():
        raise ValueError("y has no trials: successes and failures are all zero, or have no weight.")
    return counts[:, 0] / np.where(trials > 0.0, trials, 1.0), weight


def refuse_counts(y: Any) -> Any:
    """Return the labels of a classifier, or raise where they look like successes beside failures."""
    shape = getattr(y, "shape", ())  # labels may be any object that becomes an array
    if len(shape) == 2 and shape[1] == 2:
        raise ValueError(
            "y of a classifier must be one label per sample; got two columns. For successes and failures use "
            "ConstrainedRegressor(loss='binomial')."
        )
    return y


def with_exposure(X: Data | OutsideRows, offset: ArrayLike | None, exposure: ArrayLike) -> np.ndarray:
    """Return the offsets, with the logarithms of exposures added to them."""
    if is_dask(X):
        raise ValueError("exposure takes data in memory or on disk; for Dask data, give offset=log(exposure).")
    n_samples = X.shape[0] if isinstance(X, OutsideRows) else _num_samples(X)
    values = convert.as_vector(on_host(exposure), "exposure", n_samples)
    if values.min() <= 0.0:
        raise ValueError(f"exposure must be positive; got {values.min():g}. Leave samples without exposure out.")
    own = 0.0 if offset is None else convert.as_vector(on_host(offset), "offset", n_samples)
    return np.log(values) + own
