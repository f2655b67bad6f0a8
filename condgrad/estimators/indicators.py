"""IndicatorColumns: the columns of a data frame, those of words as indicators of their categories, known by codes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.linalg.callers import level_of_user
from condgrad.linalg.coded_data import CodedData, Column, Field
from condgrad.storage.outside_rows import OutsideRows

_CATEGORICAL = ("category", "categorical", "enum")  # how the types of columns of categories begin
_WORDS = ("str", "utf8", "large_string")  # and those of words
_NUMBERS = "fiub"


class IndicatorColumns(NamedTuple):
    """What a frame looked like: its columns, and for each its categories, or None for a column of numbers.

    ``encode`` turns a frame of pandas or polars into a :class:`CodedData`: a feature for each column of numbers and for
    each category of a column of words. The linear estimators do this themselves; for :func:`lasso_path`,
    :func:`radius_path` and :class:`Problem` it is done before.

    Examples
    --------
    >>> import condgrad as cg
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 4.0], "town": ["Bern", "Lyon", "Bern"]})
    >>> columns = cg.IndicatorColumns.of(frame)
    >>> columns.encode(frame), columns.feature_names
    (CodedData(3 samples, 3 features: 1 column of numbers, 1 of categories), ['size', 'town=Bern', 'town=Lyon'])
    """

    columns: tuple[str, ...]
    categories: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, frame: Any) -> IndicatorColumns | None:
        """Return what the columns of a frame are; None where X is no frame, or has no column of words."""
        if isinstance(frame, OutsideRows) or not (hasattr(frame, "columns") and hasattr(frame, "dtypes")):
            return None
        if len(getattr(frame, "shape", ())) != 2:
            return None
        kinds = list(frame.dtypes)
        of_words = {kind for kind in set(kinds) if _may_be_words(kind)}  # a frame has few types, but maybe many columns
        if not of_words:
            return None
        names = tuple(frame.columns)
        found = tuple(
            _categories(frame[name], name, kind) if kind in of_words else None
            for name, kind in zip(names, kinds, strict=True)
        )
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

    @property
    def feature_groups(self) -> np.ndarray:
        """The number of the column of each feature: the groups of a group lasso."""
        return np.repeat(np.arange(len(self.columns)), self.sizes)

    def encode(self, frame: Any) -> CodedData | scipy.sparse.csr_array:
        """Return the features of a frame with these columns.

        An unknown category is a row of zeros, with a warning; as it has no code, the features are then a sparse matrix.
        """
        missing = [name for name in self.columns if name not in tuple(getattr(frame, "columns", ()))]
        if missing:
            raise ValueError(f"X must be a frame with the columns of the fit; {missing[0]!r} is missing.")
        columns: list[Column] = []
        unknown: dict[int, np.ndarray] = {}  # the rows without a known category, by the number of their column
        for k, (name, words) in enumerate(zip(self.columns, self.categories, strict=True)):
            given = np.asarray(frame[name])
            if words is None:
                columns.append(_numbers(given, name))
                continue
            codes = _places(given, words)
            if codes.size and codes.min() < 0:
                unknown[k] = np.flatnonzero(codes < 0)
                codes = np.maximum(codes, 0)
            columns.append(Field(codes.astype(np.min_scalar_type(words.size)), words.size))
        coded = CodedData.of_columns(columns)
        if not unknown:
            return coded
        k, rows = next(iter(unknown.items()))
        warnings.warn(
            f"X has categories that the fit has not seen, such as {self.columns[k]}="
            f"{np.asarray(frame[self.columns[k]])[rows[0]]}; they count as none of the others.",
            UserWarning,
            stacklevel=level_of_user(),
        )
        sparse = coded.tocsr()
        for k, rows in unknown.items():
            sparse.data[rows * len(self.columns) + k] = 0.0  # a row has one entry for each column, in their order
        sparse.eliminate_zeros()
        return sparse


def _may_be_words(kind: object) -> bool:
    """Return whether a column of this type can hold words or categories."""
    return str(kind).lower().startswith((*_CATEGORICAL, *_WORDS, "object"))


def _categories(column: Any, name: object, kind: object) -> np.ndarray | None:
    """Return the different words of a column in their order, None for numbers that are stored as objects."""
    values = np.asarray(column).tolist()
    if str(kind).lower().startswith("object") and not any(isinstance(value, str) for value in values):
        return None
    try:
        words = list(dict.fromkeys(values))
        if any(map(_is_missing, words)):
            raise ValueError(f"column {name!r} has missing values; give them a category of their own.")
        words.sort()
    except TypeError:
        raise ValueError(f"column {name!r} mixes words and numbers; make them all words.") from None
    return np.array(words, dtype=object)


def _is_missing(value: object) -> bool:
    """Return whether a value is None, or not equal to itself, as nan and the missing value of pandas are."""
    is_same = value == value
    return value is None or not (isinstance(is_same, bool | np.bool_) and is_same)


def _numbers(given: np.ndarray, name: object) -> np.ndarray:
    """Return a column of numbers as floats."""
    if given.dtype in (np.float32, np.float64):
        return given
    if given.dtype == object and any(map(_is_missing, given.tolist())):
        raise ValueError(f"column {name!r} has missing values; impute them.")
    try:
        if given.dtype.kind not in _NUMBERS + "O":
            raise TypeError(f"its type is {given.dtype}")
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} must hold numbers or words; it could not be converted ({error}).") from None


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
