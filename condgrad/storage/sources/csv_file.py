"""CSV files in blocks: pyarrow, or numpy for numbers, parses what is plain; else the csv module finds the line."""

from __future__ import annotations

import io
import itertools
import pathlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from condgrad.storage.sources.arrow import words_of_arrow
from condgrad.storage.sources.base import Place
from condgrad.storage.sources.categories import Words
from condgrad.storage.sources.delimited import decode, is_number, rows_of
from condgrad.storage.sources.tables import Column, TableReader
from condgrad.storage.sources.text import Block, TextFile

HEADERS = ("auto", "yes", "no")
_FIRST_ROWS = 1000  # rows that show which columns have words


class CsvFile(TableReader):
    """A CSV file, plain or compressed. A column has words if none of its first 1,000 fields is a number."""

    def __init__(self, path: pathlib.Path, header: str = "auto") -> None:
        if header not in HEADERS:
            raise ValueError(f"header must be 'auto', 'yes' or 'no'; got {header!r}.")
        self._file, self.name = TextFile(path), path.name
        self._delimiter = "\t" if ".tsv" in path.suffixes else ","
        self.identity = {**self._file.identity, "format": "csv", "header": header}
        self.column_names, self._begin = None, (0, 1)
        block = next(self._file.blocks(quote=b'"'), None)
        rows = [] if block is None else list(itertools.islice(self._rows(block), _FIRST_ROWS))
        if block is None or not rows:
            raise ValueError(f"{self.name} has no samples.")
        (number, fields), self._width = rows[0], len(rows[0][1])
        if header == "yes" or (header == "auto" and not any(map(is_number, fields))):
            self.column_names = [field.strip() for field in fields]
            head = b"".join(itertools.islice(io.BytesIO(block.text), number))
            self._begin = (len(head), number + 1)
            del rows[0]
        self.is_text = [_has_words([fields[k] for _, fields in rows if k < len(fields)]) for k in range(self._width)]

    def blocks(
        self, are_words: Sequence[bool], place: Place | None = None
    ) -> Generator[tuple[list[Column], Place], None, None]:
        """Yield the columns of some lines."""
        arrow = _arrow_csv()
        for block in self._file.blocks(place or self._begin, quote=b'"'):
            if not block.text.strip():
                continue
            if arrow is not None:
                columns = self._by_arrow(arrow, block, are_words)
            else:
                columns = None if any(are_words) else self._plain_numbers(block)
            yield self._field_by_field(block, are_words) if columns is None else columns, block.place

    def share(self, place: Place) -> float | None:
        """Return which share of the bytes lies before a place."""
        return self._file.share(place)

    def _rows(self, block: Block) -> Generator[tuple[int, list[str]], None, None]:
        text = decode(block.text, self.name, block.line)
        yield from rows_of(text, self._delimiter, self.name, block.line)

    def _by_arrow(self, arrow: Any, block: Block, are_words: Sequence[bool]) -> list[Column] | None:
        """Return the columns that pyarrow finds, None if anything is unusual."""
        import pyarrow

        kinds = {True: pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), False: pyarrow.float64()}
        names = [str(k) for k in range(self._width)]
        try:
            table = arrow.read_csv(
                io.BytesIO(block.text),
                arrow.ReadOptions(column_names=names, block_size=len(block.text) + 1),
                arrow.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in block.text),
                arrow.ConvertOptions(
                    column_types={name: kinds[is_word] for name, is_word in zip(names, are_words, strict=True)},
                    null_values=[""],
                    strings_can_be_null=False,
                ),
            ).combine_chunks()
        except pyarrow.ArrowException:
            return None
        columns = [words_of_arrow(column.chunk(0)) if is_word else column.to_numpy()
                   for column, is_word in zip(table.columns, are_words, strict=True)]  # fmt: skip
        are_finite = all(isinstance(column, Words) or np.isfinite(column).all() for column in columns)
        return columns if are_finite else None

    def _plain_numbers(self, block: Block) -> list[Column] | None:
        """Return the columns if they hold finite numbers only, else None."""
        if b"_" in block.text or b'"' in block.text:  # numbers have neither; the csv module reads quoted fields
            return None
        try:
            lines = io.StringIO(decode(block.text, self.name, block.line))
            table = np.loadtxt(lines, delimiter=self._delimiter, comments=None, ndmin=2)
        except ValueError:
            return None
        return list(table.T) if table.shape[1] == self._width and np.isfinite(table).all() else None

    def _field_by_field(self, block: Block, are_words: Sequence[bool]) -> list[Column]:
        numbers, rows = [], []
        for number, fields in self._rows(block):
            if len(fields) != self._width:
                raise ValueError(f"{self.name}, line {number}: there must be {self._width} fields; got {len(fields)}.")
            numbers.append(number)
            rows.append(fields)
        return [
            Words.of_list(map(str.strip, fields)) if is_word else self._floats(k, fields, numbers)
            for k, (is_word, fields) in enumerate(zip(are_words, zip(*rows, strict=True), strict=True))
        ]

    def _floats(self, k: int, fields: Sequence[str], lines: Sequence[int]) -> np.ndarray:
        for field, line in zip(fields, lines, strict=True):
            if not is_number(field):
                title = repr(self.column_names[k]) if self.column_names else str(k + 1)
                raise ValueError(
                    f"{self.name}, line {line}: column {title} must hold a finite number; got {field[:40]!r}."
                    + (" If the column has words, name it in categories." if field.strip() else "")
                )
        return np.array(list(map(float, fields)))


def _arrow_csv() -> Any:
    """Return the reader of pyarrow, which is ten times faster than ours, None if pyarrow is not installed."""
    try:
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow.csv


def _has_words(fields: Sequence[str]) -> bool:
    """Return whether a column has words only; one word among numbers is more likely an error."""
    present = [field for field in fields if field.strip()]
    return bool(present) and not any(map(is_number, present))
