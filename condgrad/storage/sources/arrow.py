"""Tables of pyarrow: the columns of a record batch as words or numbers; Arrow files (IPC, Feather) in batches."""

from __future__ import annotations

import pathlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from condgrad.storage.sources.base import BATCH_BYTES, Place
from condgrad.storage.sources.categories import Words, as_word
from condgrad.storage.sources.tables import Column, TableReader
from condgrad.storage.sources.text import file_identity


def words_of_arrow(column: Any) -> Words:
    """Return a column of words from an array of pyarrow, a dictionary or not; what is missing is the empty word."""
    import pyarrow

    encoded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    words = [as_word(value) for value in encoded.dictionary.to_pylist()]
    places = encoded.indices.cast("int64").fill_null(len(words)).to_numpy(zero_copy_only=False)
    return Words([*words, ""], places)


class ArrowTable(TableReader):
    """A table whose rows pyarrow returns in record batches."""

    def _set_schema(self, schema: Any) -> None:
        import pyarrow.types as types

        self.column_names = list(schema.names)
        self.is_text = [
            bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))
            for kind in schema.types
        ]

    def _columns(self, batch: Any, are_words: Sequence[bool], first: int) -> list[Column]:
        """Return the columns of a record batch, which begins with row ``first``."""
        return [self._column(batch, k, is_word, first) for k, is_word in enumerate(are_words)]

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


class ArrowFile(ArrowTable):
    """An Arrow file, compressed or not. Its place is the number of a record batch, and that of its first row."""

    def __init__(self, path: pathlib.Path) -> None:
        self.name, self._path = path.name, path
        self.identity = {**file_identity(path), "format": "arrow"}
        file, _ = open_arrow(path)
        self._n_batches = file.num_record_batches
        self._set_schema(file.schema)
        if not any(file.get_batch(k).num_rows for k in range(self._n_batches)):
            raise ValueError(f"{self.name} holds no samples.")

    def blocks(
        self, are_words: Sequence[bool], place: Place | None = None
    ) -> Generator[tuple[list[Column], Place], None, None]:
        """Yield the columns of some rows."""
        begin, row = (0, 0) if place is None else place
        n_rows = max(1, BATCH_BYTES // (8 * len(are_words)))
        file, _ = open_arrow(self._path)
        for k in range(begin, self._n_batches):
            batch = file.get_batch(k)
            for start in range(0, batch.num_rows, n_rows):
                yield self._columns(batch.slice(start, n_rows), are_words, row + start), (k, row)
            row += batch.num_rows

    def share(self, place: Place) -> float:
        """Return which share of the record batches lies before a place."""
        return place[0] / self._n_batches


def open_arrow(path: pathlib.Path) -> tuple[Any, int]:
    """Return an Arrow file, mapped to memory, and the address where it begins; raise one sentence if it is none."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError("Arrow files need pyarrow: pip install condgrad[parquet].") from None
    try:
        mapped = pyarrow.memory_map(str(path))
        return pyarrow.ipc.open_file(mapped), _begin_of(mapped)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}.") from None
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path.name} could not be read as an Arrow file: {str(error).rstrip('.')}.") from None


def _begin_of(mapped: Any) -> int:
    mapped.seek(0)
    return int(mapped.read_buffer(1).address)
