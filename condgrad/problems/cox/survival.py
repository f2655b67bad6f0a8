"""Survival: the time of every sample, whether its event was seen then, and its stratum, from what users have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg import convert

_WANTED = (
    "y must tell times and events: two columns (time, and 1 for an event or 0 for a censored sample), or a structured "
    "array or data frame with one boolean column, the events"
)


class Survival(NamedTuple):
    """What is known about the samples.

    Attributes
    ----------
    time : array of float
        The time of the event, or the last time at which there was none yet.
    event : array of bool
        Whether the event happened then; otherwise the sample is censored.
    stratum : array of int
        The number of the stratum: risks are compared within strata only.
    """

    time: np.ndarray
    event: np.ndarray
    stratum: np.ndarray

    def at(self, places: slice | np.ndarray) -> Survival:
        """Return what is known about some samples."""
        return Survival(self.time[places], self.event[places], self.stratum[places])


def as_survival(y: Any, n_samples: int, stratum: np.ndarray | None = None) -> Survival:
    """Return the times and events that a user gave, checked; all samples are in one stratum by default."""
    time, event = as_times_and_events(y, n_samples)
    return Survival(time, event, np.zeros(n_samples, np.int64) if stratum is None else stratum)


def as_times_and_events(y: Any, n_samples: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return one time and one event for each sample; by default there are as many samples as y has rows."""
    columns = _two_columns(y)
    n_samples = len(columns[0]) if n_samples is None else n_samples
    time, event = (convert.as_vector(column, "y", n_samples) for column in columns)
    is_event = event == 1.0
    if not (is_event | (event == 0.0)).all():
        wrong = event[~(is_event | (event == 0.0))][0]
        raise ValueError(f"{_WANTED}; got the event {wrong:g}.")
    return time, is_event


def as_strata(strata: ArrayLike | None, n_samples: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the number of the stratum of every sample, and the labels of the strata (None where none were given)."""
    if strata is None:
        return np.zeros(n_samples, np.int64), None
    given = np.asarray(strata)
    if given.shape != (n_samples,):
        raise ValueError(f"strata must have one label per sample, shape ({n_samples},); got shape {given.shape}.")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ValueError("strata has labels that are nan; give these samples a stratum, or leave them out.")
    try:
        labels, codes = np.unique(given, return_inverse=True)
    except TypeError:
        raise ValueError("strata must be labels that can be sorted: all words, or all numbers.") from None
    return codes.astype(np.int64), labels


def _two_columns(y: Any) -> tuple[Any, Any]:
    """Return times and events as they are given."""
    names = getattr(getattr(y, "dtype", None), "names", None)  # of a structured array
    if names is None and hasattr(y, "columns"):
        names = list(y.columns)
    if names is not None:
        if len(names) != 2:
            raise ValueError(f"{_WANTED}; got {len(names)} columns.")
        columns = [y[name] for name in names]
        are_events = [str(column.dtype).lower() in ("bool", "boolean") for column in columns]
        if sum(are_events) == 1:
            return (columns[1], columns[0]) if are_events[0] else (columns[0], columns[1])
        if hasattr(y, "columns") and not any(are_events):
            return columns[0], columns[1]
        raise ValueError(f"{_WANTED}; of the columns {list(names)}, {sum(are_events)} are boolean.")
    try:
        table = np.asarray(y)
    except ValueError:  # rows of different lengths
        raise ValueError(f"{_WANTED}; got rows of different lengths.") from None
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"{_WANTED}; got shape {table.shape}.")
    return table[:, 0], table[:, 1]
