"""Parquet, by pyarrow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from condgrad.cli._columns import Wanted
from condgrad.cli._samples import Data


def parse_parquet(content: bytes, name: str, wanted: Wanted) -> Data:
    """Return what the bytes of a Parquet file hold."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install condgrad[parquet].") from None
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(content))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{name} could not be read as a Parquet file: {str(error).rstrip('.')}.") from None
    features, target, weights = wanted.columns(table.column_names, table.num_columns, name)
    if table.num_rows == 0:
        raise ValueError(f"{name} holds no samples.")
    X = np.column_stack([_numbers(table, k, name) for k in features])
    names = tuple(table.column_names[k] for k in features)
    weight = None if weights is None else _numbers(table, weights, name)
    if target is None:
        return Data(X, None, names, name, weight)
    kind = table.column(target).type
    is_word = wanted.labels and (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))
    y = _words(table, target, name) if is_word else _numbers(table, target, name)
    return Data(X, y, names, name, weight)


def _numbers(table: Any, k: int, name: str) -> np.ndarray:
    values = _present(table, k, name)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name}: column {table.column_names[k]!r} must hold numbers; got {table.column(k).type}.")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{name}, row {row + 1}: column {table.column_names[k]!r} must hold a finite number; "
                         f"got {values[row]}.")  # fmt: skip
    return values


def _words(table: Any, k: int, name: str) -> np.ndarray:
    return _present(table, k, name).astype(str)


def _present(table: Any, k: int, name: str) -> np.ndarray:
    column = table.column(k)
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise ValueError(f"{name}, row {row + 1}: column {table.column_names[k]!r} has no value.")
    return column.to_numpy()
