"""CSV as X, y and weights, by the reader of `condgrad convert`; errors name their line."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from condgrad.cli._columns import Columns, Wanted
from condgrad.cli._samples import Data
from condgrad.storage.sources.base import joined
from condgrad.storage.sources.categories import Words
from condgrad.storage.sources.csv_file import CsvFile
from condgrad.storage.sources.delimited import is_number
from condgrad.storage.sources.tables import Column
from condgrad.storage.sources.text import Block, Text


def read_csv(text: Text, wanted: Wanted, report: Callable[[int, float | None], object]) -> Data:
    """Return what a CSV text holds."""
    reader = CsvFile(text, wanted.header)
    columns = wanted.columns(reader.column_names, reader.width, text.name)
    kinds = _kinds(reader.width, columns, wanted.labels)
    parts: dict[int, list[Column]] = {k: [] for k, kind in enumerate(kinds) if kind is not None}
    n = 0
    for found, block in reader.columns(kinds):
        for k, own in parts.items():
            own.append(cast("Column", found[k]))
        target = None if columns.target is None else found[columns.target]
        if isinstance(target, Words) and target.is_missing().any():
            _name_missing(reader, block, columns)
        n += _size(cast("Column", found[columns.features[0]]))
        report(n, block.share)
    if n == 0:
        raise ValueError(f"{text.name} holds no samples.")
    X = np.empty((n, len(columns.features)))
    for j, k in enumerate(columns.features):
        X[:, j] = joined(cast("list[np.ndarray]", parts[k]), np.float64)
    y, weight = (None if k is None else _values(parts[k]) for k in (columns.target, columns.weights))
    names = reader.column_names
    return Data(X, y, None if names is None else tuple(names[k] for k in columns.features), text.name, weight)


def _kinds(width: int, columns: Columns, labels: bool) -> list[bool | None]:
    """Return for every column whether it is read as words; None for one that is not read."""
    kinds: list[bool | None] = [None] * width
    for k in columns.features:
        kinds[k] = False
    if columns.target is not None:
        kinds[columns.target] = labels
    if columns.weights is not None:
        kinds[columns.weights] = False
    return kinds


def _size(column: Column) -> int:
    return column.places.size if isinstance(column, Words) else column.size


def _values(parts: list[Column]) -> np.ndarray:
    """Return a column of numbers, or of words if some of them are no numbers."""
    if not isinstance(parts[0], Words):
        return joined(cast("list[np.ndarray]", parts), np.float64)
    columns = cast("list[Words]", parts)
    counts = [np.bincount(column.places, minlength=len(column.values)) for column in columns]
    used = {word for column, count in zip(columns, counts, strict=True)
            for word, number in zip(column.values, count, strict=True) if number}  # fmt: skip
    if all(map(is_number, used)):
        return np.concatenate([_as_numbers(column) for column in columns])
    return np.concatenate([np.array(column.values)[column.places] for column in columns])


def _as_numbers(column: Words) -> np.ndarray:
    return np.array([float(word) if is_number(word) else np.nan for word in column.values])[column.places]


def _name_missing(reader: CsvFile, block: Block, columns: Columns) -> None:
    """Raise for the first line of a block that lacks its target."""
    assert columns.target is not None
    for number, fields in reader.lines(block):
        if not fields[columns.target].strip():
            title = reader.title(columns.target)
            raise ValueError(f"{reader.name}, line {number}: the target in column {title} is missing.")
