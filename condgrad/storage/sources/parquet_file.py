"""Parquet files in batches, by pyarrow."""

from __future__ import annotations

import pathlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from condgrad.storage.sources.arrow import ArrowTable
from condgrad.storage.sources.base import BATCH_BYTES, Place
from condgrad.storage.sources.tables import Column
from condgrad.storage.sources.text import file_identity


class ParquetFile(ArrowTable):
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
        self._set_schema(schema)
        if self._n_rows == 0:
            raise ValueError(f"{self.name} holds no samples.")

    def _open(self) -> Any:
        try:
            return self._arrow.parquet.ParquetFile(self._path)
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise ValueError(f"{self.name} could not be read as a Parquet file: {str(error).rstrip('.')}.") from None

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
                        yield self._columns(rest, are_words, start), (start,)
            except (self._arrow.ArrowException, OSError) as error:
                raise ValueError(f"{self.name} could not be read: {str(error).rstrip('.')}.") from None

    def share(self, place: Place) -> float:
        """Return which share of the rows lies before a place."""
        return place[0] / self._n_rows
