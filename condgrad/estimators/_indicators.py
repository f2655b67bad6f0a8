"""IndicatorColumns: the columns of a data frame, those of words as sparse indicator columns, one group each."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.linalg.callers import level_of_user
from condgrad.storage.outside_rows import OutsideRows

_CATEGORICAL = ("category", "categorical", "enum")  # how the types of columns of categories begin
_NUMBERS = "fiub"


class IndicatorColumns(NamedTuple):
    """What a frame looked like: its columns, and for each its categories, or None for a column of numbers.

    No dense indicator is ever made: a row of the sparse matrix has one entry for each column of words, of 12 bytes.
    """

    columns: tuple[str, ...]
    categories: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, frame: Any) -> IndicatorColumns | None:
        """Return what the columns of a frame are; None where X is no frame, or all its columns are numbers."""
        if isinstance(frame, OutsideRows) or not hasattr(frame, "columns") or len(getattr(frame, "shape", ())) != 2:
            return None
        names = tuple(frame.columns)
        found = tuple(_categories(frame[name], name) for name in names)
        return None if all(each is None for each in found) else cls(names, found)

    @property
    def sizes(self) -> np.ndarray:
        """The number of features of each column."""
        return np.array([1 if each is None else each.size for each in self.categories])

    @property
    def feature_names(self) -> list[str]:
        """The names of the features: of a column, or of a column and a category."""
        pairs = zip(self.columns, self.categories, strict=True)
        return [
            str(name) if word is None else f"{name}={word}"
            for name, words in pairs
            for word in ([None] if words is None else words.tolist())
        ]

    def encode(self, frame: Any) -> scipy.sparse.csr_array:
        """Return the features of a frame with these columns; an unknown category is a row of zeros, with a warning."""
        missing = [name for name in self.columns if name not in tuple(getattr(frame, "columns", ()))]
        if missing:
            raise ValueError(f"X must be a frame with the columns of the fit; {missing[0]!r} is missing.")
        n_rows, first, unknown = int(frame.shape[0]), 0, []
        rows, features, values = [], [], []
        for name, words, size in zip(self.columns, self.categories, self.sizes.tolist(), strict=True):
            given = np.asarray(frame[name])
            if words is None:
                places = np.arange(n_rows)
                codes, entries = np.zeros(n_rows, np.int64), given.astype(np.float64)
            else:
                codes = _places(given, words)
                if (codes < 0).any():
                    unknown.append(f"{name}={given[codes < 0][0]}")
                places = np.flatnonzero(codes >= 0)
                codes, entries = codes[places], np.ones(places.size)
            rows.append(places)
            features.append(first + codes)
            values.append(entries)
            first += size
        if unknown:
            warnings.warn(
                f"X has categories that the fit has not seen, such as {unknown[0]}; they count as none of the others.",
                UserWarning,
                stacklevel=level_of_user(),
            )
        n_entries = sum(part.size for part in rows)
        kind = scipy.sparse.get_index_dtype(maxval=max(n_entries, n_rows, first))  # 12 bytes an entry, not 16
        at = np.concatenate(rows).astype(kind), np.concatenate(features).astype(kind)
        return scipy.sparse.coo_array((np.concatenate(values), at), shape=(n_rows, first)).tocsr()


def _categories(column: Any, name: object) -> np.ndarray | None:
    """Return the different words of a column in their order, None for a column of numbers."""
    values = np.asarray(column)
    is_of_categories = str(getattr(column, "dtype", "")).lower().startswith(_CATEGORICAL)
    if values.dtype.kind in _NUMBERS and not is_of_categories:
        return None
    if _is_missing(values).any():
        raise ValueError(f"column {name!r} has missing values; give them a category of their own.")
    try:
        return np.unique(values)
    except TypeError:
        raise ValueError(f"column {name!r} mixes words and numbers; make them all words.") from None


def _is_missing(values: np.ndarray) -> np.ndarray:
    """Return which values are None or not equal to themselves."""
    return np.array([x is None or x != x for x in values.tolist()], dtype=bool)


def _places(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the places of values among the known words, -1 for others."""
    place = {word: k for k, word in enumerate(words.tolist())}
    return np.array([place.get(value, -1) for value in values.tolist()], dtype=np.int64)


def expanded(labels: Sequence[object], sizes: np.ndarray) -> np.ndarray:
    """Return numbers of the groups of all features, from one label for each column and its number of features.

    >>> expanded(["a", "b", "a"], np.array([1, 2, 1]))
    array([0, 1, 1, 0])
    """
    numbers = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return np.repeat([numbers[label] for label in labels], sizes)
