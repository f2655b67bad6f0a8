"""CodedMatrix: a matrix of columns of numbers and of indicators of categories, which are known by their codes."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import centring, threads
from condgrad.linalg.coded_data import CodedData
from condgrad.linalg.coded_gram import coded_gram
from condgrad.linalg.coded_slices import CodedColumns, CodedRows, columns_of, rows_of, sparse_columns
from condgrad.linalg.convert import Data, as_measured_data, check_codes
from condgrad.linalg.matrix import FEW_STORED, Matrix
from condgrad.linalg.slices import Slices

_LARGE = 20_000  # entries of an array, below which a fit takes about a millisecond in either form


def matrix_of(X: Data) -> Matrix:
    """Return the data of a user, checked, as a matrix.

    Sparse data that need less memory as an array become one: a logistic path of 2,000 x 500 took six times as long.
    """
    if not isinstance(X, CodedData):
        X, extent = as_measured_data(X)
        matrix = Matrix(X, extent=extent)
        n, d = matrix.shape
        if matrix.is_sparse and n * d >= _LARGE and matrix.n_bytes >= n * d * X.dtype.itemsize:
            return Matrix(X.toarray(order="C" if matrix.rows_are_native else "F"))
        return matrix
    check_codes(X)
    return CodedMatrix(X)


class CodedMatrix(Matrix):
    """The matrix of a :class:`CodedData`; a pass reads its codes, and the columns are built at their first use.

    It is sparse by rows: for every row and column of the table there is one entry. What is subtracted from columns of
    numbers for an intercept is subtracted in a copy of the numbers.
    """

    X: CodedData

    def __init__(self, X: CodedData, shift: np.ndarray | None = None) -> None:
        self.X, self.shift, self.shape = X, shift, X.shape
        self.is_sparse = self.rows_are_native = True
        self._extent = None
        self.n_stored = X.shape[0] * (X.n_fields + len(X.numbers))

    @property
    def has_sparse_columns(self) -> bool:
        """False: columns are codes."""
        return False

    @property
    def has_dense_columns(self) -> bool:
        """False: columns are codes."""
        return False

    @property
    def n_bytes(self) -> int:
        """The number of bytes that a pass over all stored entries reads."""
        return self.X.nbytes

    @property
    def row_offsets(self) -> np.ndarray | None:
        """None: all rows have the same number of entries."""
        return None

    @functools.cached_property
    def rows(self) -> Slices:
        """The rows of X."""
        return cast("Slices", rows_of(self.X))

    @functools.cached_property
    def columns(self) -> Slices:
        """The columns of X."""
        return cast("Slices", columns_of(self.X))

    @property
    def contiguous_columns(self) -> Slices:
        """The columns of X, each contiguous in memory."""
        return self.columns

    @property
    def _places(self) -> np.ndarray:
        """The features that are columns of numbers."""
        return self.X.places.astype(np.int64)

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the arrays that define X."""
        return (self.X.numbers, self.X.places, *self.X.codes, *self.X.firsts)

    def centred(self, weight: np.ndarray) -> Matrix:
        """Return the matrix with every large mean of a column of numbers subtracted, for problems with an intercept."""
        shift = centring.large_means(self.X.numbers.T, weight, False) if len(self.X.numbers) else None
        if shift is None:
            return self
        of_all = np.zeros(self.shape[1])
        of_all[self._places] = shift
        return self.minus(of_all)

    def minus(self, shift: np.ndarray) -> Matrix:
        """Return the matrix with ``shift_j`` subtracted from every column j of numbers."""
        return CodedMatrix(self.X.minus(shift), shift)

    def shiftable(self, shift: np.ndarray) -> np.ndarray:
        """Return what ``minus`` can subtract of these numbers: those of columns of numbers."""
        chosen = np.zeros(shift.size)
        chosen[self._places] = shift[self._places]
        return chosen

    def as_centred(self) -> tuple[Any, np.ndarray | None]:
        """Return the centred data as a sparse matrix, and what was subtracted from each column."""
        return self.X.tocsr(), self.shift

    def explicit(self) -> Any:
        """Return the data as a sparse matrix."""
        return self.X.tocsr()

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W in one pass, on all cores: an array of shape (k, n)."""
        out = W[:, self._places] @ self.X.numbers
        V = np.ascontiguousarray(W.T)  # the k factors of a category are contiguous
        task = functools.partial(_add_products, self.rows, V, out)
        threads.run(task, threads.cut(self.shape[0], self.n_stored * W.shape[0]))
        return out

    def transpose_dot_each(self, A: np.ndarray) -> np.ndarray:
        """Return X' a_c for every row a_c of A in one pass, on all cores: an array of shape (k, d)."""
        d, k = self.shape[1], A.shape[0]

        def add_range(start: int, stop: int) -> np.ndarray:
            total = np.zeros((d, k))
            _add_rows(self.rows, A, total, start, stop)
            return total

        pays = self.n_stored > 4 * d  # each thread adds into its own array
        borders = threads.cut(self.shape[0], self.n_stored * k if pays else 0)
        out = np.ascontiguousarray(functools.reduce(np.add, threads.run(add_range, borders)).T)
        out[:, self._places] = A @ self.X.numbers.T
        return out

    def column_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return sum_i weight_i x_ij^2 for every column: ``column_norms`` squared."""
        return self.column_norms(weight) ** 2

    def chosen(self, rows: slice | np.ndarray) -> Matrix:
        """Return the chosen rows as a new matrix."""
        return CodedMatrix(self.X[rows], self.shift)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the chosen rows and columns as a dense float64 array."""
        found: np.ndarray = self.X[rows, columns].toarray()
        return found.astype(np.float64, copy=False)

    def column(self, j: int) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the rows in which column ``j`` has entries (None: all rows) and the entries."""
        columns = cast("CodedColumns", self.columns)
        begin = int(columns.begin[j])
        if columns.is_number[j]:
            return None, columns.numbers[begin].astype(np.float64, copy=False)
        rows = columns.order[begin : begin + int(columns.n_stored(j))]
        return rows, np.ones(rows.size)

    def chosen_columns(self, columns: np.ndarray) -> Any:
        """Return the chosen columns as a sparse matrix."""
        return self.X[:, columns]

    def gram(
        self, features: np.ndarray, values: np.ndarray, d: np.ndarray, rows: np.ndarray | None = None, first: int = 0
    ) -> np.ndarray:
        """Return A' diag(d) A on all cores, for A with the chosen rows (None: all) and columns values_k X_(features_k).

        Entries [:first, :first] are not computed: the caller has them already.
        """
        if features.size == 0:
            return np.zeros((0, 0))
        if np.unique(features).size < features.size:  # a feature with atoms on both sides of zero
            return self._gram_with_repetitions(features, values, d, rows, first)
        if first > 0 and self._has_columns and not np.isin(features[first:], self._places).any():
            rows, d = self._rows_with(features[first:], rows, d)  # only rows where new columns have entries matter
        if self._has_columns and self._share_stored(features) < FEW_STORED * d.size / self.shape[0]:
            few = Matrix(sparse_columns(cast("CodedColumns", self.columns), features))
            return few.gram(np.arange(features.size), values, d, rows, first)
        H = coded_gram(self.X, cast("CodedRows", self.rows), features, d, rows, first)
        return H * np.outer(values, values)

    def largest_entry(self, start: int = 0, stop: int | None = None) -> float:
        """Return the largest absolute value of an entry of all rows, or of a range."""
        numbers = self.X.numbers[:, start:stop]
        return float(max(numbers.max(initial=0.0), -numbers.min(initial=0.0), 1.0 if self.X.n_fields else 0.0))


@kernel
def _add_products(rows, V, out, start, stop):
    """Add the rows of V at the features of each row of codes to the columns of ``out``."""
    n_fields, k = np.uint64(rows.fields.n_fields()), np.uint64(V.shape[1])
    features, total = np.empty(n_fields, np.uint64), np.empty(k)
    for i in range(np.uint64(start), np.uint64(stop)):
        rows.fields.features_of(i, features)
        for c in range(k):
            total[c] = out[c, i]
        for q in range(n_fields):
            j = features[q]
            for c in range(k):
                total[c] += V[j, c]
        for c in range(k):
            out[c, i] = total[c]


@kernel
def _add_rows(rows, A, out, start, stop):
    """Add the columns of A to the rows of ``out`` at the features of each row of codes."""
    n_fields, k = np.uint64(rows.fields.n_fields()), np.uint64(A.shape[0])
    features, factors = np.empty(n_fields, np.uint64), np.empty(k)
    for i in range(np.uint64(start), np.uint64(stop)):
        rows.fields.features_of(i, features)
        for c in range(k):
            factors[c] = A[c, i]
        for q in range(n_fields):
            j = features[q]
            for c in range(k):
                out[j, c] += factors[c]
