"""CodedData: columns of numbers and of categories in one table, the categories as codes: no indicator is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.linalg.one_hot_slices import WIDTHS, empty_codes


class Field(NamedTuple):
    """A column of categories: the code of each row, which is at least 0 and below ``n_categories``."""

    codes: np.ndarray
    n_categories: int


Column: TypeAlias = np.ndarray | Field  # an array of numbers, or codes


class CodedData:
    """A table of numbers and categories; a category is a feature that is 1 in its rows and 0 elsewhere.

    Only the codes of the categories are stored, in 1, 2 or 4 bytes for each row and column; a fit that reads columns
    adds 4 bytes, for the rows in the order of their codes. Sparse indicators take 12 bytes for either. The fits, paths
    and solvers of condgrad take it as X. The features are in the order of the columns. :class:`IndicatorColumns` makes
    it from a data frame, :meth:`from_codes` from arrays.

    Examples
    --------
    >>> import condgrad as cg
    >>> X = cg.CodedData.from_codes([[0, 1], [2, 0], [1, 1]], numbers=[[0.5], [1.5], [2.5]])
    >>> X
    CodedData(3 samples, 6 features: 1 column of numbers, 2 of categories)
    >>> X.tocsr().toarray()[1]
    array([1.5, 0. , 0. , 1. , 1. , 0. ])
    """

    def __init__(
        self,
        numbers: np.ndarray,
        places: np.ndarray,
        codes: tuple[np.ndarray, ...],
        firsts: tuple[np.ndarray, ...],
        n_features: int,
    ) -> None:
        self.numbers = numbers  # one row for each column of numbers, so that columns are contiguous
        self.places = places  # the features that these columns are
        self.codes = codes  # one array for each width of a code, a row for each sample
        self.firsts = firsts  # the features of the first categories of the fields in ``codes``
        self.shape = (codes[0].shape[0], n_features)

    @classmethod
    def of_columns(cls, columns: Sequence[Column]) -> CodedData:
        """Return a table of these columns; the numbers are float32 if all of them are."""
        sizes = [column.n_categories if isinstance(column, Field) else 1 for column in columns]
        begins = np.concatenate(([0], np.cumsum(sizes))).tolist()
        of_numbers = [(at, column) for at, column in zip(begins, columns) if not isinstance(column, Field)]
        fields = [(at, column) for at, column in zip(begins, columns) if isinstance(column, Field)]
        n_rows = len(columns[0].codes if isinstance(columns[0], Field) else columns[0])
        is_single = bool(of_numbers) and all(column.dtype == np.float32 for _, column in of_numbers)
        numbers = np.empty((len(of_numbers), n_rows), np.float32 if is_single else np.float64)
        for k, (_, column) in enumerate(of_numbers):
            numbers[k] = column
        codes, firsts = [], []
        for width in WIDTHS:
            own = [(at, field.codes) for at, field in fields if _width_of(field.n_categories) == width]
            part = empty_codes(n_rows, width) if not own else np.empty((n_rows, len(own)), f"u{width}")
            for q, (_, given) in enumerate(own):
                part[:, q] = given
            codes.append(part)
            firsts.append(np.array([at for at, _ in own], np.uint64))
        return cls(numbers, np.array([at for at, _ in of_numbers], np.uint64), tuple(codes), tuple(firsts), begins[-1])

    @classmethod
    def from_codes(
        cls, codes: ArrayLike, numbers: ArrayLike | None = None, n_categories: Sequence[int] | None = None
    ) -> CodedData:
        """Return a table of columns of numbers, if there are any, and of codes 0, 1, ..., each of shape (n, columns).

        ``n_categories`` has one number for each column of codes; by default one more than the largest code.
        """
        given = np.asarray(codes)
        if given.ndim != 2 or given.dtype.kind not in "iu" or given.size == 0:
            raise ValueError(f"codes must be whole numbers of shape (samples, columns); got {_form(given)}.")
        if given.min() < 0:
            raise ValueError(f"codes must be at least 0; got {given.min()}.")
        found = (given.max(axis=0).astype(np.int64) + 1).tolist()
        sizes = found if n_categories is None else [int(size) for size in n_categories]
        if len(sizes) != len(found) or any(size < least for size, least in zip(sizes, found)):
            raise ValueError(f"n_categories must be at least {found}, one for each column of codes; got {sizes}.")
        columns: list[Column] = []
        if numbers is not None:
            table = np.asarray(numbers)
            if table.ndim != 2 or table.shape[0] != given.shape[0] or table.dtype.kind not in "fiub":
                raise ValueError(f"numbers must be of shape ({given.shape[0]}, columns); got {_form(table)}.")
            columns = list(table.T)
        return cls.of_columns([*columns, *(Field(column, size) for column, size in zip(given.T, sizes))])

    def __repr__(self) -> str:
        n, d = self.shape
        kinds = f"{len(self.numbers)} column{'s' * (len(self.numbers) != 1)} of numbers, {self.n_fields} of categories"
        return f"CodedData({n} samples, {d} features: {kinds})"

    @property
    def n_fields(self) -> int:
        """The number of columns of categories."""
        return sum(part.shape[1] for part in self.codes)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        return self.numbers.dtype

    @property
    def nbytes(self) -> int:
        """The number of bytes of numbers and codes."""
        return int(self.numbers.nbytes + sum(part.nbytes for part in self.codes))

    def features(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the features that are 1 in the chosen rows: one for each field."""
        parts = zip(self.codes, self.firsts, strict=True)
        return np.concatenate([part[rows].astype(np.int64) + first.astype(np.int64) for part, first in parts], axis=1)

    def __getitem__(self, key: Any) -> Any:
        """Return some rows as such a table, or, for ``[:, features]``, some features as a sparse matrix."""
        if isinstance(key, tuple):
            rows, features = key
            chosen = self if isinstance(rows, slice) and rows == slice(None) else self[rows]
            return chosen if features is ... else chosen._sparse_columns(features)
        key = [key] if isinstance(key, int | np.integer) else key  # one row is a table, too
        numbers = np.ascontiguousarray(self.numbers[:, key])
        codes = tuple(np.ascontiguousarray(part[key]) for part in self.codes)
        return CodedData(numbers, self.places, codes, self.firsts, self.shape[1])

    def _sparse_columns(self, features: np.ndarray) -> scipy.sparse.csc_array:
        """Return the chosen features as a sparse matrix."""
        chosen, order = np.unique(np.arange(self.shape[1])[features], return_inverse=True)
        place = np.full(self.shape[1], -1, np.int32)
        place[chosen] = np.arange(chosen.size)
        n, rows, columns, entries = self.shape[0], [], [], []
        for own, j in zip(self.numbers, place[self.places.astype(np.int64)].tolist(), strict=True):
            if j >= 0:
                rows.append(np.arange(n, dtype=np.int32))
                columns.append(np.full(n, j, np.int32))
                entries.append(own)
        for part, firsts in zip(self.codes, self.firsts, strict=True):
            for q, first in enumerate(firsts.tolist()):
                at = place[first:][part[:, q]]
                met = np.flatnonzero(at >= 0).astype(np.int32)
                rows.append(met)
                columns.append(at[met])
                entries.append(np.ones(met.size, self.dtype))
        table = np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))
        return scipy.sparse.csc_array(table, shape=(n, chosen.size))[:, order]

    def __matmul__(self, w: np.ndarray) -> np.ndarray:
        """Return the product with a vector, or with the columns of an array, in float64."""
        w = np.asarray(w, np.float64)
        total: np.ndarray = self.numbers.T @ w[self.places.astype(np.int64)]
        for part, firsts in zip(self.codes, self.firsts, strict=True):
            for q, first in enumerate(firsts.tolist()):
                total += w[first:][part[:, q]]
        return total

    def with_column(self, values: np.ndarray) -> CodedData:
        """Return the table with one more column of numbers, as its last feature."""
        numbers = np.vstack([self.numbers, values])
        places = np.append(self.places, np.uint64(self.shape[1]))
        return CodedData(numbers, places, self.codes, self.firsts, self.shape[1] + 1)

    def minus(self, shift: np.ndarray) -> CodedData:
        """Return the table with ``shift_j`` subtracted from each column of numbers, which become float64."""
        numbers = self.numbers - shift[self.places.astype(np.int64), None]
        return CodedData(numbers, self.places, self.codes, self.firsts, self.shape[1])

    def tocsr(self) -> scipy.sparse.csr_array:
        """Return the features as a sparse matrix: one entry for each row and column of the table."""
        n, d = self.shape
        begins = np.concatenate([self.places, *self.firsts]).astype(np.int64)
        order = begins.argsort()  # the features of a column lie between those of its neighbours
        numbered = np.broadcast_to(self.places.astype(np.int64), (n, len(self.numbers)))
        indices = np.concatenate([numbered, self.features(slice(None))], axis=1)[:, order]
        values = np.ones((n, order.size), self.dtype)
        values[:, order < len(self.numbers)] = self.numbers[order[order < len(self.numbers)]].T
        kind = scipy.sparse.get_index_dtype(maxval=max(values.size, d))
        ends = np.arange(0, values.size + 1, order.size, dtype=kind)
        return scipy.sparse.csr_array((values.ravel(), indices.ravel().astype(kind), ends), shape=(n, d))

    def toarray(self) -> np.ndarray:
        """Return the features as a dense array."""
        return np.asarray(self.tocsr().toarray())


def _width_of(n_categories: int) -> int:
    """Return the number of bytes of a code of one of so many categories."""
    return next(width for width in WIDTHS if n_categories <= 256**width)


def _form(values: np.ndarray) -> str:
    return f"{values.dtype} of shape {values.shape}"
