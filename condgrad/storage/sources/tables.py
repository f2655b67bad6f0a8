"""Tables: columns with names, of numbers or of words; some columns are features, one may be the target."""

from __future__ import annotations

import abc
import collections
from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from condgrad.storage.sources.base import Batch, Place, Source
from condgrad.storage.sources.categories import Encoder, Field, Words
from condgrad.storage.sources.delimited import find_column

Column: TypeAlias = np.ndarray | Words
ALL = "all"


class TableReader(abc.ABC):
    """Reads a table block by block.

    Attributes
    ----------
    name : str
        The name of the table in errors.
    identity : dict or None
        JSON values that tell this table from others; None if it cannot be read at a place again.
    column_names : list of str or None
    is_text : list of bool
        Whether each column has words.
    """

    name: str
    identity: dict[str, Any] | None
    column_names: list[str] | None
    is_text: list[bool]

    @abc.abstractmethod
    def blocks(
        self, are_words: Sequence[bool], place: Place | None = None
    ) -> Generator[tuple[list[Column], Place], None, None]:
        """Yield the columns of some rows, as words or as numbers, and the place of the first of these rows."""

    def share(self, place: Place) -> float | None:
        """Return which share of the table lies before a place, or None if that is not known."""
        return None


class Table(Source):
    """The samples of a table.

    Parameters
    ----------
    reader : TableReader
    target : str, False or None
        The name of the target column; None is the last one if it is no feature of ``like``, False is none at all.
    weight, offset : str or None
        The names of the columns with the weights and with the offsets of samples.
    categories : list of str, "all" or None
        The columns that are categories; with None, those that have words.
    like : Encoder or None
        The columns and the categories of another table, to be used for this one.
    """

    def __init__(
        self,
        reader: TableReader,
        target: str | bool | None = None,
        weight: str | None = None,
        offset: str | None = None,
        categories: Sequence[str] | str | None = None,
        like: Encoder | None = None,
    ) -> None:
        self._reader, self.name = reader, reader.name
        self._names = reader.column_names or [str(k + 1) for k in range(len(reader.is_text))]
        twice = [name for name, count in collections.Counter(self._names).items() if count > 1]
        if twice:
            raise ValueError(f"{self.name} has two columns named {twice[0]!r}; give each its own name.")
        self._target = self._place_of_target(target, like)
        self._weight = None if weight is None else self._place(weight, "weight")
        self._offset = None if offset is None else self._place(offset, "offset")
        self._numbers, self._fields = self._kinds(categories) if like is None else self._same_as(like)
        self._are_words = [k in self._fields for k in range(len(self._names))]
        if self._target is not None and reader.is_text[self._target]:
            self._are_words[self._target] = True
        self._encoder = self._count() if like is None else like
        if reader.identity is not None:
            columns: list[Any] = [self._target, self._weight, self._numbers, self._fields]
            columns += [] if self._offset is None else [self._offset]
            self.identity = {**reader.identity, "columns": columns, "categories": self._encoder.checksum()}

    def _place_of_target(self, target: str | bool | None, like: Encoder | None) -> int | None:
        last = self._names[-1]
        if target is False or (target is None and like is not None and last in like.column_names):
            return None  # new data may have features only
        return self._place(last if target is None else target, "target")

    def _place(self, column: Any, what: str) -> int:
        if not isinstance(column, str):
            raise TypeError(f"{what} must be the name of a column; got {column!r}.")
        return find_column(column, self._reader.column_names, len(self._names), self.name, what)

    def _kinds(self, categories: Sequence[str] | str | None) -> tuple[list[int], list[int]]:
        """Return the places of the features that are numbers, and of those that are categories."""
        features = [k for k in range(len(self._names)) if k not in (self._target, self._weight, self._offset)]
        if not features:
            raise ValueError(f"{self.name} has no features beside the target; use target=False if it has none.")
        if categories is None:
            chosen = {k for k in features if self._reader.is_text[k]}
        elif isinstance(categories, str):
            if categories != ALL:
                raise ValueError(f"categories must be a list of names of columns, 'all' or None; got {categories!r}.")
            chosen = set(features)
        else:
            chosen = {self._place(name, "categories") for name in categories}
        return [k for k in features if k not in chosen], [k for k in features if k in chosen]

    def _same_as(self, like: Encoder) -> tuple[list[int], list[int]]:
        numbers = [self._place(name, "a column") for name in like.numbers]
        return numbers, [self._place(field.name, "a column") for field in like.fields]

    def _count(self) -> Encoder:
        """Return the encoder of this table; only categories need a pass over it."""
        counts: dict[int, collections.Counter[str]] = {
            k: collections.Counter() for k, is_word in enumerate(self._are_words) if is_word
        }
        if counts:
            for columns, _ in self._reader.blocks(self._are_words):
                for k, counter in counts.items():
                    cast("Words", columns[k]).add_counts(counter)
        fields = [Field.of_counts(self._names[k], counts[k]) for k in self._fields]
        return Encoder([self._names[k] for k in self._numbers], fields, self._labels(counts))

    def _labels(self, counts: dict[int, collections.Counter[str]]) -> list[str] | None:
        """Return the classes in their order, None if the target is a number."""
        if self._target is None or self._target not in counts:
            return None
        labels = sorted(counts[self._target])
        if "" in labels:
            raise ValueError(f"{self.name}: column {self._names[self._target]!r} has no target for some samples.")
        return labels

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield rows of the table."""
        for columns, at in self._reader.blocks(self._are_words, place):
            X = self._encoder.encode([columns[k] for k in self._numbers], [columns[k] for k in self._fields])
            y = None if self._target is None else columns[self._target]
            weight, offset = (None if k is None else columns[k] for k in (self._weight, self._offset))
            yield Batch(X, self._encoder.targets(y) if isinstance(y, Words) else y, weight, at, offset)

    def share(self, place: Place) -> float | None:
        """Return which share of the table lies before a place."""
        return self._reader.share(place)

    def facts(self) -> dict[str, Any]:
        """Return what the columns are; columns of numbers without a header have no names."""
        has_names = self._reader.column_names is not None or self._fields
        return self._encoder.facts() | ({} if has_names else {"feature_names": None})

    def shared_arrays(self) -> dict[str, np.ndarray]:
        """Return the categories of the fields."""
        return self._encoder.arrays()
