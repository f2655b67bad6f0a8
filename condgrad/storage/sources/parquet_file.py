"""Parquet files in batches, by pyarrow."""

from __future__ import annotations

import pathlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from condgrad.storage.sources.arrow import words_of_arrow
from condgrad.storage.sources.base import BATCH_BYTES, Place
from condgrad.storage.sources.tables import Column, TableReader
from condgrad.storage.sources.text import file_identity


class ParquetFile(TableReader):
    """A Parquet file. Its place is the number of a row; row groups before it are not read."""

    def __init__(self, path: pathlib.Path) -> None:
        try:
            import pyarrow.parquet
        except ImportError:
            raise ImportError("Parquet files need pyarrow: pip install condgrad[parquet].") from None
        self.name = path.name
        self.identity = {**file_identity(path), "format": "parquet"}
        self._path, self._arrow = path, pyarrow
        with self._open() as file:
            schema, self._n_rows = file.schema_arrow, file.metadata.num_rows
            groups = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        self._ends = np.cumsum([0, *groups])
        self.column_names = list(schema.names)
        self.is_text = [self._is_text(kind) for kind in schema.types]
        if self._n_rows == 0:
            raise ValueError(f"{self.name} has no samples.")

    def _open(self) -> Any:
        try:
            return self._arrow.parquet.ParquetFile(self._path)
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise ValueError(f"{self.name} could not be read as a Parquet file: {str(error).rstrip('.')}.") from None

    def _is_text(self, kind: Any) -> bool:
        types = self._arrow.types
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))

    def blocks(
        self, are_words: Sequence[bool], place: Place | None = None
    ) -> Generator[tuple[list[Column], Place], None, None]:
        """Yield the columns of some rows."""
        first = 0 if place is None else place[0]
        group = int(np.searchsorted(self._ends, first, "right")) - 1
        row = int(self._ends[group])
        n_rows = max(1, BATCH_BYTES // (8 * len(are_words)))
        with self._open() as file:
            groups = list(range(group, len(self._ends) - 1))
            try:
                for batch in file.iter_batches(n_rows, row_groups=groups):
                    rest, start = batch.slice(max(0, first - row)), max(first, row)
                    row += batch.num_rows
                    if rest.num_rows:
                        yield [self._column(rest, k, is_word, start) for k, is_word in enumerate(are_words)], (start,)
            except (self._arrow.ArrowException, OSError) as error:
                raise ValueError(f"{self.name} could not be read: {str(error).rstrip('.')}.") from None

    def share(self, place: Place) -> float:
        """Return which share of the rows lies before a place."""
        return place[0] / self._n_rows

    def _column(self, batch: Any, k: int, is_word: bool, first: int) -> Column:
        column, title = batch.column(k), repr(batch.schema.names[k])
        if is_word:
            return words_of_arrow(column)
        if column.null_count:
            row = first + column.is_null().to_pylist().index(True)
            raise ValueError(f"{self.name}, row {row + 1}: column {title} has no value.")
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{self.name}: column {title} must hold numbers; got {column.type}. If it has "
                "categories, name it in categories."
            )
        if not np.isfinite(values).all():
            row = first + int(np.argmin(np.isfinite(values)))
            raise ValueError(f"{self.name}, row {row + 1}: column {title} must hold a finite number.")
        return values.astype(np.float64)
