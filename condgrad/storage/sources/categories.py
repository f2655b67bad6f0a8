"""Categories: columns of words become codes, numbered by falling frequency within each column."""

from __future__ import annotations

import collections
import math
import zlib
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from condgrad.linalg.one_hot import OneHotMatrix
from condgrad.linalg.one_hot_slices import WIDTHS, empty_codes
from condgrad.storage.array_files import read_array
from condgrad.storage.manifest import Manifest
from condgrad.storage.regular_files import REMEDY
from condgrad.storage.sources.base import Batch, Place, Source

_MOST_NAMES = 100_000  # features that are named in a manifest; more of them would make it slow to read


class Words(NamedTuple):
    """A column of words: those that may occur, some of them twice, and the place of every sample's word in them."""

    values: list[str]
    places: np.ndarray

    @classmethod
    def of_list(cls, words: Iterable[str]) -> Words:
        """Return the column with these words."""
        place_of: dict[str, int] = {}
        places = np.fromiter((place_of.setdefault(word, len(place_of)) for word in words), np.int64)
        return cls(list(place_of), places)

    @classmethod
    def of_values(cls, values: np.ndarray) -> Words:
        """Return a column of words from numbers or text; 3 and 3.0 are "3", and what is missing is the empty word."""
        if values.dtype.kind in "OUST":
            return cls.of_list(map(as_word, values.tolist()))
        distinct, places = np.unique(values, return_inverse=True)
        return cls(list(map(as_word, distinct.tolist())), places.reshape(-1))

    def is_missing(self) -> np.ndarray:
        """Return which samples have the empty word."""
        return np.array([word == "" for word in self.values], bool)[self.places]

    def add_counts(self, counts: collections.Counter[str]) -> None:
        """Count the words."""
        numbers = np.bincount(self.places, minlength=len(self.values)).tolist()
        for word, number in zip(self.values, numbers, strict=True):
            if number:  # words of a dictionary need not occur
                counts[word] += number


class Field:
    """The categories of a column by falling frequency; the code after the last one is for words that are not known."""

    def __init__(self, name: str, categories: Sequence[str]) -> None:
        self.name, self.categories = name, list(categories)
        self._code_of = {word: code for code, word in enumerate(self.categories)}
        self.n_features = len(self.categories) + 1
        self.width = next(width for width in WIDTHS if self.n_features <= 256**width)

    @classmethod
    def of_counts(cls, name: str, counts: collections.Counter[str]) -> Field:
        """Return the field of counted words; words that are equally frequent are in the order of the alphabet."""
        return cls(name, sorted(counts, key=lambda word: (-counts[word], word)))

    def encode(self, column: Words) -> np.ndarray:
        """Return the codes of the words of a column."""
        unknown = len(self.categories)
        codes = np.array([self._code_of.get(word, unknown) for word in column.values], f"u{self.width}")
        return codes[column.places]


class Encoder:
    """Rows of numbers and categories as a matrix: the numbers first, then the features of one field after the other.

    The matrix is dense if there are no categories, one-hot if all columns are categories, and sparse otherwise.

    Parameters
    ----------
    numbers : sequence of str
        The names of the columns of numbers.
    fields : sequence of Field
    labels : sequence of str or None
        The classes in their order, if the target is a column of words.
    """

    def __init__(self, numbers: Sequence[str], fields: Sequence[Field], labels: Sequence[str] | None = None) -> None:
        self.numbers, self.fields, self.labels = list(numbers), list(fields), labels and list(labels)
        ends = np.cumsum([len(self.numbers), *(field.n_features for field in fields)])
        self.firsts, self.n_features = ends[:-1].tolist(), int(ends[-1])

    @property
    def column_names(self) -> set[str]:
        """The names of all columns."""
        return {*self.numbers, *(field.name for field in self.fields)}

    def encode(self, numbers: Sequence[np.ndarray], columns: Sequence[Words]) -> Any:
        """Return the rows that have these columns of numbers and of words."""
        if not self.fields:
            return np.column_stack(numbers)
        codes = [field.encode(column) for field, column in zip(self.fields, columns, strict=True)]
        return self._sparse(numbers, codes) if self.numbers else self._one_hot(codes)

    def targets(self, column: Words) -> np.ndarray:
        """Return the numbers 0, 1, ... of the classes of a column of words."""
        labels = self.labels or []
        number_of = {word: number for number, word in enumerate(labels)}
        y = np.array([number_of.get(word, -1) for word in column.values], np.float64)[column.places]
        if y.min() < 0.0:
            word = column.values[column.places[int(y.argmin())]]
            raise ValueError(f"there is no class {word!r}; there are {', '.join(map(repr, labels[:8]))}.")
        return y

    def _one_hot(self, codes: Sequence[np.ndarray]) -> OneHotMatrix:
        by_width = {width: [k for k, field in enumerate(self.fields) if field.width == width] for width in WIDTHS}
        n = codes[0].size
        parts = tuple(
            np.column_stack([codes[k] for k in places]) if places else empty_codes(n, width)
            for width, places in by_width.items()
        )
        firsts = tuple(np.array([self.firsts[k] for k in places], np.uint64) for places in by_width.values())
        return OneHotMatrix(parts, firsts, self.n_features)

    def _sparse(self, numbers: Sequence[np.ndarray], codes: Sequence[np.ndarray]) -> Any:
        n, width = numbers[0].size, len(numbers) + len(codes)
        data, indices = np.ones((n, width)), np.empty((n, width), np.int64)
        for k, column in enumerate(numbers):
            data[:, k], indices[:, k] = column, k
        for k, (first, column) in enumerate(zip(self.firsts, codes, strict=True), start=len(numbers)):
            indices[:, k] = first + column.astype(np.int64)
        parts = (data.ravel(), indices.ravel(), np.arange(0, n * width + 1, width))
        X = scipy.sparse.csr_matrix(parts, shape=(n, self.n_features))
        X.eliminate_zeros()
        return X

    def feature_names(self) -> list[str] | None:
        """Return names such as "colour=red", None if there are very many; "colour=?" is for words not known."""
        if self.n_features > _MOST_NAMES:
            return None
        of_fields = (f"{field.name}={word}" for field in self.fields for word in [*field.categories, "?"])
        return [*self.numbers, *of_fields]

    def facts(self) -> dict[str, Any]:
        """Return what a manifest tells about the columns: which are numbers, and the categories of the others."""
        fields = [
            {"name": field.name, "role": f"categories-{k}", "n_categories": len(field.categories), "first": first}
            for k, (field, first) in enumerate(zip(self.fields, self.firsts, strict=True))
        ]
        return {
            "feature_names": self.feature_names(),
            "numbers": self.numbers,
            "categories": fields,
            "labels": self.labels,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the categories of each field as bytes: words in UTF-8, with a zero byte after each."""
        return {
            f"categories-{k}": np.frombuffer("".join(f"{word}\0" for word in field.categories).encode(), np.uint8)
            for k, field in enumerate(self.fields)
        }

    def checksum(self) -> int:
        """Return a number that tells these columns and categories from others."""
        text = repr((self.numbers, [field.name for field in self.fields], self.labels))
        crc = zlib.crc32(text.encode())
        for part in self.arrays().values():
            crc = zlib.crc32(part.data, crc)
        return crc

    @classmethod
    def read(cls, folder: Path, manifest: Manifest) -> Encoder | None:
        """Return the encoder of a folder that was made from a table, None for others."""
        facts = manifest.facts
        if "numbers" not in facts:
            return None
        entries = [manifest.shared[fact["role"]] for fact in facts["categories"]]
        try:
            words = [read_array(folder, entry).tobytes().decode().split("\0")[:-1] for entry in entries]
            fields = [Field(fact["name"], own) for fact, own in zip(facts["categories"], words, strict=True)]
            encoder = cls(facts["numbers"], fields, facts.get("labels"))
        except UnicodeDecodeError:
            raise OSError(f"the categories of {str(folder)!r} are not in UTF-8; {REMEDY}") from None
        if encoder.n_features != manifest.shape[1]:
            raise OSError(f"the categories of {str(folder)!r} have other numbers of features than its rows; {REMEDY}")
        return encoder


def as_word(value: object) -> str:
    """Return a category as a word: 3.0 is "3", and what is missing is the empty word."""
    if isinstance(value, str) and "\0" not in value:
        return value.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    word = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    if "\0" in word:
        raise ValueError(f"a category must not have a zero byte; got {word[:40]!r}.")
    return word


class EncodedArrays(Source):
    """The samples of another source, all columns of whose X are categories: numbers or words."""

    def __init__(self, source: Source, like: Encoder | None = None) -> None:
        self._source, self.name, self.identity = source, source.name, None
        self._encoder = self._count() if like is None else like
        if source.identity is not None:
            self.identity = {**source.identity, "categories": self._encoder.checksum()}

    def _count(self) -> Encoder:
        counts: list[collections.Counter[str]] = []
        for batch in self._source.batches():
            columns = _columns_of(batch.X)
            counts = counts or [collections.Counter() for _ in columns]
            for counter, words in zip(counts, columns, strict=True):
                words.add_counts(counter)
        names = self._source.feature_names or [str(k + 1) for k in range(len(counts))]
        return Encoder([], [Field.of_counts(name, counter) for name, counter in zip(names, counts, strict=True)])

    def batches(self, place: Place | None = None) -> Generator[Batch, None, None]:
        """Yield the rows as codes."""
        for batch in self._source.batches(place):
            columns = _columns_of(batch.X)
            if len(columns) != len(self._encoder.fields):
                raise ValueError(f"{self.name} has {len(columns)} columns instead of {len(self._encoder.fields)}.")
            yield batch._replace(X=self._encoder.encode([], columns))

    def share(self, place: Place) -> float | None:
        """Return which share of the samples lies before a place."""
        return self._source.share(place)

    def facts(self) -> dict[str, Any]:
        """Return what the columns are."""
        return self._encoder.facts()

    def shared_arrays(self) -> dict[str, np.ndarray]:
        """Return the categories of the fields."""
        return self._encoder.arrays()


def _columns_of(X: Any) -> list[Words]:
    if scipy.sparse.issparse(X) or np.ndim(X) != 2:
        raise ValueError(f"categories must be in an array of two dimensions; got {type(X).__name__}.")
    return [Words.of_values(column) for column in np.asarray(X).T]
