"""CSV: numpy parses plain numbers; anything else is read field by field, so that errors name their line."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.cli._columns import Wanted
from condgrad.storage.sources.delimited import decode, is_number, rows_of


def parse_csv(
    content: bytes, name: str, delimiter: str, wanted: Wanted
) -> tuple[Any, np.ndarray | None, tuple[str, ...] | None]:
    """Return X, y and the names of the features of a CSV text."""
    text = decode(content, name)
    first = next(rows_of(text, delimiter, name), None)
    if first is None:
        raise ValueError(f"{name} holds no samples.")
    number, fields = first
    has_header = wanted.header == "yes" or (wanted.header == "auto" and not any(map(is_number, fields)))
    names = [field.strip() for field in fields] if has_header else None
    features, target = wanted.columns(names, len(fields), name)
    table = _plain_numbers(text, delimiter, number if has_header else number - 1, len(fields))
    if table is not None:
        X, y = table[:, features], None if target is None else table[:, target]
    else:
        X, y = _field_by_field(text, delimiter, name, fields, has_header, features, target, wanted.labels)
    return X, y, None if names is None else tuple(names[k] for k in features)


def _plain_numbers(text: str, delimiter: str, skip: int, width: int) -> np.ndarray | None:
    """Return the table if it holds finite numbers only, else None."""
    if "_" in text or '"' in text:  # numbers have neither; quoted fields are left to the csv module
        return None
    lines = text.splitlines()[skip:]
    if not any(map(str.strip, lines)):
        return None
    try:
        table = np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError:
        return None
    return table if table.shape[1] == width and np.isfinite(table).all() else None


def _field_by_field(
    text: str, delimiter: str, name: str, first: list[str], has_header: bool, features: list[int], target: int | None,
    labels: bool,
) -> tuple[np.ndarray, np.ndarray | None]:  # fmt: skip
    rows, targets = [], []
    titles = [repr(field.strip()) if has_header else str(k + 1) for k, field in enumerate(first)]
    lines = rows_of(text, delimiter, name)
    if has_header:
        next(lines)
    for number, fields in lines:
        if len(fields) != len(first):
            raise ValueError(f"{name}, line {number}: there must be {len(first)} fields; got {len(fields)}.")
        for k in features if target is None or labels else [*features, target]:
            if not is_number(fields[k]):
                raise ValueError(
                    f"{name}, line {number}: column {titles[k]} must hold a finite number; got {fields[k][:40]!r}."
                )
        rows.append([float(fields[k]) for k in features])
        if target is not None:
            if not fields[target].strip():
                raise ValueError(f"{name}, line {number}: the target in column {titles[target]} is missing.")
            targets.append(fields[target].strip())
    if not rows:
        raise ValueError(f"{name} holds no samples.")
    return np.array(rows), None if target is None else _as_targets(targets)


def _as_targets(targets: list[str]) -> np.ndarray:
    if all(map(is_number, targets)):
        return np.array(list(map(float, targets)))
    return np.array(targets)
