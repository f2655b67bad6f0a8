"""CSV files in blocks: pyarrow, or numpy for numbers, parses what is plain; else the csv module finds the line."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from condgrad.storage.sources.arrow import words_of_arrow
from condgrad.storage.sources.base import Place
from condgrad.storage.sources.categories import Words
from condgrad.storage.sources.delimited import decode, is_number, rows_of
from condgrad.storage.sources.tables import Column, TableReader
from condgrad.storage.sources.text import Block, Text

HEADERS = ("auto", "yes", "no")
_FIRST_ROWS = 1000  # rows that show which columns have words
_FIRST_BYTES = 2**20  # of text that these rows are in, or most of them
_PIECE_BYTES = 2**20  # of text that a thread of pyarrow parses at a time; it must have whole rows
_FIELD_BYTES = 64  # more than a number has


class CsvFile(TableReader):
    """Text with a delimiter, plain or compressed. A column has words if none of its first 1,000 fields is a number.

    Parameters
    ----------
    text : Text
        Its name ends in .tsv if tabs are between its fields.
    header : {"auto", "yes", "no"}
        Whether the first row names the columns; "auto": it does if none of its fields is a number.
    delimiter : str, optional
        If it is not a comma, nor a tab in a .tsv file.
    is_sample : callable, optional
        Tells of the fields of a first row that they are not names, though none is a number.
    advice : str
        What to do about a word in a column of numbers.
    """

    def __init__(
        self,
        text: Text,
        header: str = "auto",
        *,
        delimiter: str | None = None,
        is_sample: Callable[[list[str]], bool] | None = None,
        advice: str = "",
    ) -> None:
        if header not in HEADERS:
            raise ValueError(f"header must be 'auto', 'yes' or 'no'; got {header!r}.")
        self._file, self.name, self._advice = text, text.name, advice
        self._delimiter = delimiter or ("\t" if ".tsv" in text.name else ",")
        self.identity = {**text.identity, "format": "csv", "header": header} if text.identity else None
        self.column_names, self._begin = None, (0, 1)
        block = next(self._blocks(n_bytes=_FIRST_BYTES), None)
        rows = [] if block is None else list(itertools.islice(self._rows(block), _FIRST_ROWS))
        if block is None or not rows:
            raise ValueError(f"{self.name} holds no samples.")
        (number, fields), self.width = rows[0], len(rows[0][1])
        self.first_line = number
        has_names = not any(map(is_number, fields)) and not (is_sample is not None and is_sample(fields))
        if header == "yes" or (header == "auto" and has_names):
            self.column_names = [field.strip() for field in fields]
            head = b"".join(itertools.islice(io.BytesIO(block.text), number))
            self._begin = (len(head), number + 1)
            del rows[0]
        self.is_text = [_has_words([fields[k] for _, fields in rows if k < len(fields)]) for k in range(self.width)]

    def _blocks(self, place: Place | None = None, n_bytes: int | None = None) -> Generator[Block, None, None]:
        yield from self._file.blocks(place, b'"' if len(self._delimiter) == 1 else None, n_bytes)

    def blocks(
        self, are_words: Sequence[bool], place: Place | None = None
    ) -> Generator[tuple[list[Column], Place], None, None]:
        """Yield the columns of some lines."""
        for columns, block in self.columns(are_words, place):
            yield [column for column in columns if column is not None], block.place

    def columns(
        self, are_words: Sequence[bool | None], place: Place | None = None
    ) -> Generator[tuple[list[Column | None], Block], None, None]:
        """Yield the columns of some lines, and these lines; columns of kind None are not read, and are None, too."""
        arrow = _arrow_csv()
        for block in self._blocks(place or self._begin):
            if not block.text.strip():
                continue
            if arrow is not None:
                columns = self._by_arrow(arrow, block, are_words)
            else:
                columns = None if any(are_words) or None in are_words else self._plain_numbers(block)
            columns = self._field_by_field(block, are_words) if columns is None else columns
            if columns:
                yield columns, block

    def lines(self, block: Block | None = None) -> Generator[tuple[int, list[str]], None, None]:
        """Yield the rows below the header, or those of a block, as their fields, with the numbers of their lines."""
        for each in self._blocks(self._begin) if block is None else (block,):
            yield from self._rows(each)

    def title(self, k: int) -> str:
        """Return how errors call a column."""
        return repr(self.column_names[k]) if self.column_names else str(k + 1)

    def share(self, place: Place) -> float | None:
        """Return which share of the bytes lies before a place."""
        return self._file.share(place)

    def _rows(self, block: Block) -> Generator[tuple[int, list[str]], None, None]:
        text = decode(block.text, self.name, block.line)
        yield from rows_of(text, self._delimiter, self.name, block.line)

    def _by_arrow(self, arrow: Any, block: Block, are_words: Sequence[bool | None]) -> list[Column | None] | None:
        """Return the columns that pyarrow finds, None if anything is unusual."""
        import pyarrow

        text, delimiter = block.text, self._delimiter
        if delimiter == "::" and b"\t" not in text:
            text, delimiter = text.replace(b"::", b"\t"), "\t"
        if len(delimiter) > 1 or delimiter == " " or b"\0" in text:  # several spaces are one delimiter
            return None
        has_quotes = len(self._delimiter) == 1
        kinds = {True: pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), False: pyarrow.float64()}
        names = [str(k) for k in range(self.width)]
        read = {name: kinds[is_word] for name, is_word in zip(names, are_words, strict=True) if is_word is not None}
        try:
            table = arrow.read_csv(
                pyarrow.BufferReader(text),
                arrow.ReadOptions(column_names=names, block_size=max(_PIECE_BYTES, _FIELD_BYTES * self.width)),
                arrow.ParseOptions(delimiter=delimiter, quote_char='"' if has_quotes else False,
                                   newlines_in_values=has_quotes and b'"' in text),
                arrow.ConvertOptions(column_types=read, include_columns=list(read), null_values=[""],
                                     strings_can_be_null=False),
            ).unify_dictionaries().combine_chunks()  # fmt: skip
        except pyarrow.ArrowException:
            return None
        if table.num_rows == 0:
            return None
        columns: list[Column | None] = [None] * self.width
        for name, column in zip(table.column_names, table.columns, strict=True):
            columns[int(name)] = words_of_arrow(column.chunk(0)) if are_words[int(name)] else column.to_numpy()
        numbers = [column for column in columns if isinstance(column, np.ndarray)]
        words = [column for column in columns if isinstance(column, Words)]
        has_blank_rows = not numbers and np.all([column.is_missing() for column in words], axis=0).any()
        return columns if not has_blank_rows and all(np.isfinite(column).all() for column in numbers) else None

    def _plain_numbers(self, block: Block) -> list[Column | None] | None:
        """Return the columns if they hold finite numbers only, else None."""
        if b"_" in block.text or b'"' in block.text:  # numbers have neither; the csv module reads quoted fields
            return None
        try:
            lines = io.StringIO(decode(block.text, self.name, block.line))
            table = np.loadtxt(lines, delimiter=self._delimiter, comments=None, ndmin=2)
        except ValueError:
            return None
        return list(table.T) if table.shape[1] == self.width and np.isfinite(table).all() else None

    def _field_by_field(self, block: Block, are_words: Sequence[bool | None]) -> list[Column | None]:
        numbers, rows = [], []
        for number, fields in self._rows(block):
            if len(fields) != self.width:
                raise ValueError(f"{self.name}, line {number}: there must be {self.width} fields; got {len(fields)}.")
            numbers.append(number)
            rows.append(fields)
        return [
            None if is_word is None
            else Words.of_list(map(str.strip, fields)) if is_word
            else self._floats(k, fields, numbers)
            for k, (is_word, fields) in enumerate(zip(are_words, zip(*rows, strict=True), strict=bool(rows)))
        ]  # fmt: skip

    def _floats(self, k: int, fields: Sequence[str], lines: Sequence[int]) -> np.ndarray:
        for field, line in zip(fields, lines, strict=True):
            if not field.strip():
                raise ValueError(f"{self.name}, line {line}: column {self.title(k)} has no value.")
            if not is_number(field):
                raise ValueError(
                    f"{self.name}, line {line}: column {self.title(k)} must hold a finite number; got "
                    f"{field.strip()[:40]!r}.{self._advice}"
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
