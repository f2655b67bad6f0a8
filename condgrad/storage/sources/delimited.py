"""Delimited text, such as CSV: rows of fields with their line numbers, and columns by name or number."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence

from condgrad.linalg.names import suggestion

_DELIMITERS = ("::", "\t", ",", ";", " ")


def decode(content: bytes, name: str, first_line: int = 1) -> str:
    """Return the text of a file, or of a part of it; an error about bytes that are not text names their line."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + first_line
        raise ValueError(f"{name}, line {line}: the byte {content[error.start]:#04x} is not UTF-8 text.") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + first_line
        raise ValueError(f"{name}, line {line}: there is a zero byte, which text does not have.")
    return text


def guess_delimiter(text: str, likely: str | None = None) -> str:
    """Return the delimiter of the first line of a text: ``likely`` if the line has it, else a usual one.

    >>> guess_delimiter("1::1193::5::978300760"), guess_delimiter("1,The::End,5", likely=",")
    ('::', ',')
    """
    first = next((line for line in io.StringIO(text) if line.strip()), "")
    order = _DELIMITERS if likely is None else (likely, *_DELIMITERS)
    return next((mark for mark in order if mark in first.strip()), likely or ",")


def rows_of(text: str, delimiter: str, name: str, first_line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the number of its last line.

    Fields may be quoted, unless the delimiter has two characters, as in ``1::1193::5``.
    """
    if len(delimiter) > 1:
        for number, line in enumerate(io.StringIO(text), start=first_line):
            if line.strip():
                yield number, line.split(delimiter)
        return
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=delimiter == " ")
    try:
        for fields in reader:
            if any(map(str.strip, fields)):
                yield reader.line_num + first_line - 1, fields
    except csv.Error as error:
        raise ValueError(f"{name}, line {reader.line_num + first_line - 1}: {error}.") from None


def is_number(field: str) -> bool:
    """Return whether a field is a finite number.

    >>> is_number("1e3"), is_number("1_000"), is_number("nan")
    (True, False, False)
    """
    try:
        return "_" not in field and math.isfinite(float(field))
    except ValueError:
        return False


def find_column(wanted: str, names: Sequence[str] | None, width: int, name: str, option: str) -> int:
    """Return the place of the column that an option names, or numbers from 1 if there are no names."""
    if names is not None:
        if wanted in names:
            return list(names).index(wanted)
        shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"{name} has no column {wanted!r}; it has {shown}.{suggestion(wanted, names)}")
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    raise ValueError(f"{name} does not name its columns: {option} must be a number from 1 to {width}; got {wanted!r}.")
