"""Ratings: some entries of a matrix, one per line of a text, with the names of row and column."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from condgrad.storage.sources.base import joined
from condgrad.storage.sources.categories import Words
from condgrad.storage.sources.csv_file import CsvFile
from condgrad.storage.sources.delimited import decode, find_column, guess_delimiter
from condgrad.storage.sources.text import Block, Text, TextFile, suffix_of

_USUAL = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_FIRST_BYTES = 2**20  # of text in which the delimiter is searched for, at a time
_PARTS = ("row", "column", "value")


class Ratings(NamedTuple):
    """Some entries of a matrix.

    Attributes
    ----------
    rows, cols : arrays of int
        The places.
    values : array or None
        The observed values there; None for a file of places only.
    shape : pair of int
    name : str
    row_labels, col_labels : tuple of str or None
        The names of rows and columns.
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None
    shape: tuple[int, int]
    name: str
    row_labels: tuple[str, ...] | None = None
    col_labels: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Ratings({self})"

    def __str__(self) -> str:
        return f"{self.name}: {self.rows.size} entries of a {self.shape[0]} x {self.shape[1]} matrix"


def read_ratings(path: str | os.PathLike[str], columns: str | None = None, header: str = "auto") -> Ratings:
    """Return the entries of a matrix in a text file, plain or compressed (.bz2, .gz, .xz).

    A line holds the name of a row, the name of a column and a number; further fields are ignored. Names are any text.
    Fields are separated by commas, tabs, ``::``, semicolons or spaces, whichever the first line has. Anything else, and
    a place that occurs twice, is an error that names its line.

    Parameters
    ----------
    path : str or path
    columns : str, optional
        Which columns are row, column and value: three names with commas between them, or numbers from 1 if the file
        does not name its columns. By default the first three.
    header : {"auto", "yes", "no"}
        Whether the first line names the columns; "auto": it does if none of its fields is a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "ratings.csv"
    ...     _ = path.write_text("userId,movieId,rating\\nann,7,4.5\\nbob,7,3\\n")
    ...     ratings = read_ratings(path)
    >>> ratings, ratings.row_labels, ratings.values
    (Ratings(ratings.csv: 2 entries of a 2 x 1 matrix), ('ann', 'bob'), array([4.5, 3. ]))
    """
    return ratings_of(TextFile(pathlib.Path(path)), columns=columns, header=header)


def ratings_of(
    text: Text,
    *,
    columns: str | None = None,
    header: str = "auto",
    needs_values: bool = True,
    is_known: Callable[[str, str], bool] | None = None,
    report: Callable[[int, float | None], object] | None = None,
) -> Ratings:
    """Return the entries in a text.

    With ``needs_values`` every line must have a value, and every place may occur once. Without, two columns are enough
    and places may repeat. A first line whose row or column ``is_known`` is not a header. ``report`` is called with the
    number of entries so far, and with the share of the file that was read.
    """
    is_sample = None if is_known is None else (lambda fields: len(fields) > 1 and is_known(*map(str.strip, fields[:2])))
    delimiter = _delimiter(text)
    reader = CsvFile(text, header, delimiter=delimiter, is_sample=is_sample)
    least = 3 if needs_values else 2
    if reader.width < least:
        wanted = " and ".join(_PARTS[:2]) if least == 2 else "row, column and value"
        raise ValueError(
            f"{text.name}, line {reader.first_line}: there must be {least} fields, {wanted}; got {reader.width}."
        )
    ratings = _read(reader, _columns(columns, reader, needs_values), report)
    if ratings.rows.size == 0:
        raise ValueError(f"{text.name} holds no entries.")
    if needs_values:
        _reject_duplicates(ratings, reader)
    return ratings


def _delimiter(text: Text) -> str:
    for block in text.blocks(n_bytes=_FIRST_BYTES):
        if block.text.strip():
            return guess_delimiter(decode(block.text, text.name, block.line), _USUAL.get(suffix_of(text.name)))
    raise ValueError(f"{text.name} holds no entries.")


def _columns(columns: str | None, reader: CsvFile, needs_values: bool) -> list[int]:
    """Return the places of row, column and, if there is one, value."""
    titles, width, name = reader.column_names, reader.width, reader.name
    if columns is None:
        return list(range(min(width, 3)))
    wanted = [part.strip() for part in columns.split(",")]
    if not (len(wanted) == 3 or (len(wanted) == 2 and not needs_values)):
        kinds = "three columns: row, column and value" if needs_values else "two columns, or three with the value"
        raise ValueError(f"columns must be {kinds}, with commas between them; got {columns!r}.")
    twice = [part for part in wanted if titles is not None and titles.count(part) > 1]
    if twice:
        raise ValueError(f"{name} has two columns named {twice[0]!r}; give each its own name.")
    places = [find_column(part, titles, width, name, "columns") for part in wanted]
    if len(set(places)) != len(places):
        raise ValueError(f"columns must be different columns; got {columns!r}.")
    return places


class _Labels:
    """The names of rows or of columns, numbered in the order in which they occur, and the numbers of all entries."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.number_of: dict[str, int] = {}
        self._parts: list[np.ndarray] = []

    def add(self, column: Words) -> bool:
        """Add the names of some entries; return whether each of them has one."""
        is_used = np.bincount(column.places, minlength=len(column.values)) > 0
        number_of = self.number_of
        numbers = [number_of.setdefault(word, len(number_of)) if used else -1
                   for word, used in zip(column.values, is_used.tolist(), strict=True)]  # fmt: skip
        self._parts.append(np.array(numbers, np.int32)[column.places])
        return "" not in number_of

    def codes(self) -> np.ndarray:
        """Return the number of every entry's name."""
        return joined(self._parts, np.int64)


def _read(reader: CsvFile, places: list[int], report: Callable[[int, float | None], object] | None) -> Ratings:
    rows, cols = _Labels(places[0]), _Labels(places[1])
    value = places[2] if len(places) == 3 else None
    kinds = [True if k in places[:2] else False if k == value else None for k in range(reader.width)]
    values, n = [], 0
    for columns, block in reader.columns(kinds):
        if not all([labels.add(cast("Words", columns[labels.place])) for labels in (rows, cols)]):
            _name_missing(reader, block, places)
        if value is not None:
            values.append(cast("np.ndarray", columns[value]))
        n += cast("Words", columns[rows.place]).places.size
        if report is not None:
            report(n, block.share)
    return Ratings(
        rows=rows.codes(),
        cols=cols.codes(),
        values=None if value is None else joined(values, np.float64),
        shape=(len(rows.number_of), len(cols.number_of)),
        name=reader.name,
        row_labels=tuple(rows.number_of),
        col_labels=tuple(cols.number_of),
    )


def _name_missing(reader: CsvFile, block: Block, places: list[int]) -> None:
    """Raise for the first line of a block that lacks the name of its row or of its column."""
    for number, fields in reader.lines(block):
        for k, part in zip(places[:2], _PARTS, strict=False):
            if not fields[k].strip():
                raise ValueError(f"{reader.name}, line {number}: the name of the {part} is missing.")


def _reject_duplicates(ratings: Ratings, reader: CsvFile) -> None:
    place = ratings.rows * ratings.shape[1] + ratings.cols
    in_order = np.sort(place)  # faster than their order, and mostly enough
    if not (in_order[1:] == in_order[:-1]).any():
        return
    order = np.argsort(place, kind="stable")
    again = np.flatnonzero(place[order[1:]] == place[order[:-1]])
    k = again[order[again + 1].argmin()]  # the repeat that comes first in the file
    first, second = int(order[k]), int(order[k + 1])
    numbers = [number for t, (number, _) in enumerate(reader.lines()) if t in (first, second)]
    assert ratings.row_labels is not None and ratings.col_labels is not None
    row, col = ratings.row_labels[ratings.rows[first]], ratings.col_labels[ratings.cols[first]]
    raise ValueError(
        f"{ratings.name}, lines {numbers[0]} and {numbers[1]}: both are for row {row!r} and column {col!r}; "
        "give each place once."
    )
