"""Columns of words from pyarrow."""

from __future__ import annotations

from typing import Any

from condgrad.storage.sources.categories import Words, as_word


def words_of_arrow(column: Any) -> Words:
    """Return a column of words from an array of pyarrow, a dictionary or not; what is missing is the empty word."""
    import pyarrow

    encoded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    words = [as_word(value) for value in encoded.dictionary.to_pylist()]
    places = encoded.indices.cast("int64").fill_null(len(words)).to_numpy(zero_copy_only=False)
    return Words([*words, ""], places)
