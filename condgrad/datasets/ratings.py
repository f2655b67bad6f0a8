"""Ratings: some entries of a matrix, one per line of a text, with the names of row and column."""

from __future__ import annotations

import math
import os
import pathlib
from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from condgrad.storage.sources.delimited import decode, find_column, guess_delimiter, is_number, rows_of
from condgrad.storage.sources.text import read_bytes

_USUAL = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PACKED = (".bz2", ".gz", ".xz")
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
    path = pathlib.Path(path)
    return parse_ratings(read_bytes(path), path.name, columns=columns, header=header)


def parse_ratings(
    content: bytes,
    name: str,
    *,
    columns: str | None = None,
    header: str = "auto",
    needs_values: bool = True,
    is_known: Callable[[str, str], bool] | None = None,
) -> Ratings:
    """Return the entries in a text; ``name`` is its name in errors.

    With ``needs_values`` every line must have a value, and every place may occur once. Without, two columns are enough
    and places may repeat. A first line whose row or column ``is_known`` is not a header.
    """
    text = decode(content, name)
    delimiter = guess_delimiter(text, _USUAL.get(_suffix(name)))
    first = next(rows_of(text, delimiter, name), None)
    if first is None:
        raise ValueError(f"{name} holds no entries.")
    titles = [field.strip() for field in first[1]]
    least = 3 if needs_values else 2
    if len(titles) < least:
        wanted = " and ".join(_PARTS[:2]) if least == 2 else "row, column and value"
        raise ValueError(f"{name}, line {first[0]}: there must be {least} fields, {wanted}; got {len(titles)}.")
    has_header = header == "yes" or (header == "auto" and not any(map(is_number, titles)))
    if has_header and header == "auto" and is_known is not None and is_known(*titles[:2]):
        has_header = False
    places = _columns(columns, titles if has_header else None, len(titles), name, needs_values)

    def lines() -> Iterator[tuple[int, list[str]]]:
        found = rows_of(text, delimiter, name)
        if has_header:
            next(found)
        return found

    ratings = _read(lines(), places, titles if has_header else None, len(titles), name)
    if ratings.rows.size == 0:
        raise ValueError(f"{name} holds no entries.")
    if needs_values:
        _reject_duplicates(ratings, lines)
    return ratings


def _columns(columns: str | None, titles: list[str] | None, width: int, name: str, needs_values: bool) -> list[int]:
    """Return the places of row, column and, if there is one, value."""
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


def _read(
    lines: Iterator[tuple[int, list[str]]], places: list[int], titles: list[str] | None, width: int, name: str
) -> Ratings:
    rows, cols, values = array("q"), array("q"), array("d")
    row_of: dict[str, int] = {}
    col_of: dict[str, int] = {}
    row_place, col_place = places[:2]
    value_place = places[2] if len(places) == 3 else None
    for number, fields in lines:
        if len(fields) != width:
            raise ValueError(f"{name}, line {number}: there must be {width} fields; got {len(fields)}.")
        row, col = fields[row_place].strip(), fields[col_place].strip()
        if not (row and col):
            raise ValueError(f"{name}, line {number}: the name of the {_PARTS[bool(row)]} is missing.")
        if value_place is not None:
            text = fields[value_place]
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not math.isfinite(value) or "_" in text:  # float reads 1_0 as 10
                title = value_place + 1 if titles is None else repr(titles[value_place])
                raise ValueError(
                    f"{name}, line {number}: column {title} must hold a finite number; got {text.strip()[:40]!r}."
                )
            values.append(value)
        rows.append(row_of.setdefault(row, len(row_of)))
        cols.append(col_of.setdefault(col, len(col_of)))
    return Ratings(
        rows=np.array(rows, dtype=np.int64),
        cols=np.array(cols, dtype=np.int64),
        values=None if value_place is None else np.array(values, dtype=np.float64),
        shape=(len(row_of), len(col_of)),
        name=name,
        row_labels=tuple(row_of),
        col_labels=tuple(col_of),
    )


def _reject_duplicates(ratings: Ratings, lines: Callable[[], Iterator[tuple[int, list[str]]]]) -> None:
    place = ratings.rows * ratings.shape[1] + ratings.cols
    order = np.argsort(place, kind="stable")
    again = np.flatnonzero(place[order[1:]] == place[order[:-1]])
    if not again.size:
        return
    k = again[order[again + 1].argmin()]  # the repeat that comes first in the file
    first, second = int(order[k]), int(order[k + 1])
    numbers = [number for t, (number, _) in enumerate(lines()) if t in (first, second)]
    assert ratings.row_labels is not None and ratings.col_labels is not None
    row, col = ratings.row_labels[ratings.rows[first]], ratings.col_labels[ratings.cols[first]]
    raise ValueError(
        f"{ratings.name}, lines {numbers[0]} and {numbers[1]}: both are for row {row!r} and column {col!r}; "
        "give each place once."
    )


def _suffix(name: str) -> str:
    path = pathlib.Path(name)
    return (path.with_suffix("") if path.suffix in _PACKED else path).suffix.lower()
