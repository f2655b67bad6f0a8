"""Matrix: the data X with its rows, its columns, and full passes over it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse

from condgrad.linalg import centring, passes, products, threads
from condgrad.linalg.dense_gram import DenseColumns
from condgrad.linalg.dense_slices import CentredColumns, CentredRows, DenseSlices
from condgrad.linalg.extent import Extent
from condgrad.linalg.gathered_columns import CopiedColumns, GatheredColumns
from condgrad.linalg.gram import add_outer_products, mirror, rows_of
from condgrad.linalg.slices import Slices
from condgrad.linalg.sparse_slices import SparseOnes, SparseSlices, slices_of
from condgrad.linalg.spread import spread_rows
from condgrad.linalg.support import support_of
from condgrad.linalg.vectors import DenseVector

FEW_STORED = 0.25  # share of the stored entries below which chosen columns are taken out before they are multiplied
_FEW_FEATURES = 0.1  # share of the features below which dense rows are read at these alone: one in every cache line
_WIDE = 500  # features from which on this is worth a kernel of its own
_SMALL_PASS = 2_000_000  # multiply-adds (a few milliseconds), below which compiling for half a second does not pay
_CONVERTED = 250_000  # entries of dense data that are converted at a time, so that they stay in the cache


class Matrix:
    """The n x d data, stored as the user gave them; the other view (rows or columns) is built at its first use.

    A dense array offers rows and columns without a copy. CSR offers rows, CSC columns: the other view of a sparse
    matrix is a second copy of its entries. ``centred`` returns the matrix with a number subtracted from each column
    whose mean is far from zero.
    """

    def __init__(self, X: Any, shift: np.ndarray | None = None, extent: Extent | None = None) -> None:
        self.X = X
        self._extent = extent  # of the stored entries, where it is known
        self.shift = shift  # one number per column: sparse X has it subtracted already, dense X by formula
        self.shape: tuple[int, int] = X.shape
        self.is_sparse = scipy.sparse.issparse(X)
        self.n_stored = int(X.nnz if self.is_sparse else X.size)
        self.rows_are_native: bool = X.format == "csr" if self.is_sparse else X.flags.c_contiguous

    @property
    def n_bytes(self) -> int:
        """The number of bytes that a pass over all stored entries reads."""
        if not self.is_sparse:
            return int(self.X.nbytes)
        return int(self.X.indices.nbytes + (0 if self._is_one else self.X.data.nbytes))

    @property
    def row_offsets(self) -> np.ndarray | None:
        """Where the entries of each row begin, for sparse data."""
        return passes.offsets(self.rows)

    @property
    def _is_one(self) -> bool:
        """Whether every stored entry is known to be 1."""
        return self._extent is not None and self._extent.is_one

    @functools.cached_property
    def rows(self) -> Slices:
        """The rows of X."""
        return cast("Slices", slices_of(self.X.tocsr())) if self.is_sparse else self._dense_rows(self.X)

    @functools.cached_property
    def rows_of_passes(self) -> Slices:
        """The rows of X as passes read them: without their entries, where each of these is 1."""
        rows = self.rows
        return SparseOnes(rows.indices, rows.indptr) if isinstance(rows, SparseSlices) and self._is_one else rows

    @functools.cached_property
    def _row_order(self) -> np.ndarray | None:
        """The order in which passes use the rows; None: as they lie."""
        rows = self.rows
        return passes.order_of_lengths(rows.indptr) if isinstance(rows, SparseSlices) else None

    @functools.cached_property
    def columns(self) -> Slices:
        """The columns of X."""
        return cast("Slices", slices_of(self.X.tocsc())) if self.is_sparse else self._dense_columns(self.X.T)

    @functools.cached_property
    def contiguous_columns(self) -> Slices:
        """The columns of X, each contiguous in memory; an array in C order is copied."""
        if self.is_sparse or not self.rows_are_native:
            return self.columns
        return self._dense_columns(np.ascontiguousarray(self.X.T))

    def _dense_rows(self, values: np.ndarray) -> Slices:
        return cast("Slices", DenseSlices(values) if self.shift is None else CentredRows(values, self.shift))

    def _dense_columns(self, values: np.ndarray) -> Slices:
        return cast("Slices", DenseSlices(values) if self.shift is None else CentredColumns(values, self.shift))

    def centred(self, weight: np.ndarray) -> Matrix:
        """Return the matrix with every large mean of a column subtracted, for problems with an intercept.

        An intercept absorbs any number that is subtracted from a column, so only the rounding changes: uncentred sums
        of numbers around 1e9 that differ by 1 would lose nine digits. Dense columns are centred by formula. A sparse
        column is centred if all its entries are stored (with zeros its deviation is as large as its mean anyway), in a
        copy of the stored entries, and stays sparse.
        """
        shift = centring.large_means(self.X, weight, self.is_sparse)
        return self if shift is None else self.minus(shift)

    def minus(self, shift: np.ndarray) -> Matrix:
        """Return the matrix with ``shift_j`` subtracted from every stored entry of column j, as ``centred`` does it."""
        return Matrix(centring.shifted(self.X, shift) if self.is_sparse else self.X, shift)

    def shiftable(self, shift: np.ndarray) -> np.ndarray:
        """Return what ``minus`` can subtract of these numbers: all, or those of columns that store every entry."""
        if not self.is_sparse:
            return shift
        columns, chosen = centring.full_columns(self.X), np.zeros(shift.size)
        chosen[columns] = shift[columns]
        return chosen

    def as_centred(self) -> tuple[Any, np.ndarray | None]:
        """Return the centred data as an array or sparse matrix, and what was subtracted from each column."""
        return (self.X if self.is_sparse or self.shift is None else self.X - self.shift), self.shift

    def explicit(self) -> Any:
        """Return the data as an array or sparse matrix, as they were given."""
        return self.X

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the arrays that define X."""
        return (self.X.data, self.X.indices, self.X.indptr) if self.is_sparse else (self.X,)

    def along_shift(self, w: np.ndarray, features: np.ndarray | None = None) -> float:
        """Return <shift, w>: the intercept of the original columns is that of the centred ones minus this.

        With ``features``, w holds the coefficients of these features only.
        """
        if self.shift is None:
            return 0.0
        return float((self.shift if features is None else self.shift[features]) @ w)

    def dot_range(self, start: int, w: np.ndarray, out: np.ndarray) -> None:
        """Set ``out`` to x_i'w for the rows ``start``, ``start`` + 1, ..., in this thread."""
        if not self.is_sparse and w.size >= _WIDE and np.count_nonzero(w) < _FEW_FEATURES * w.size:
            features = w.nonzero()[0]
            passes.dot_entries(self.rows, start, features, w[features], out)
        elif self._row_order is None:
            passes.dot_slices(self.rows_of_passes, start, w, out)
        else:
            passes.dot_in_order(self.rows_of_passes, self._row_order, start, w, out)

    def add_range(self, start: int, c: np.ndarray, out: np.ndarray) -> None:
        """Add the rows from ``start`` on, each times its entry of ``c``, to ``out``, in this thread."""
        if self._row_order is None:
            passes.add_slices(self.rows_of_passes, start, c, DenseVector(out))
        else:
            passes.add_in_order(self.rows_of_passes, self._row_order, start, c, DenseVector(out))

    # Full passes use the view that the user gave, even if the other one has been built: another view rounds
    # differently, and two runs on one problem should agree to the last bit.

    def dot(self, w: np.ndarray) -> np.ndarray:
        """Return X w in one pass, on all cores."""
        if not w.any():  # many solvers start at w = 0
            return np.zeros(self.shape[0])
        if self.rows_are_native:
            return passes.dot_all(self.rows, self.shape[0], self.n_stored, w)
        return passes.add_all(self.columns, self.shape, self.n_stored, w)

    def transpose_dot(self, a: np.ndarray) -> np.ndarray:
        """Return X' a in one pass, on all cores."""
        if self.rows_are_native:
            return passes.add_all(self.rows, self.shape[::-1], self.n_stored, a)
        return passes.dot_all(self.columns, self.shape[1], self.n_stored, a)

    # With several vectors at once an entry of X is read once for all of them. Dense data use BLAS, which is two to five
    # times faster than our kernels, and small sparse data use scipy, which has nothing to compile. The bounds of
    # rounding hold for any order of the sums.

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W in one pass, on all cores: an array of shape (k, n)."""
        if not W.any():
            return np.zeros((W.shape[0], self.shape[0]))
        if not self.is_sparse:
            out = np.empty((W.shape[0], self.shape[0]))
            for part, rows in self._converted():
                np.matmul(W, rows.T, out=out[:, part])
            return out
        if self.n_stored * W.shape[0] <= _SMALL_PASS:
            return np.ascontiguousarray((self.X @ np.ascontiguousarray(W.T)).T)
        if self.rows_are_native:
            return products.dot_slices(self._own_slices, self.n_stored, W.T)
        return np.ascontiguousarray(products.add_slices(self._own_slices, self.n_stored, W, self.shape[0]).T)

    def transpose_dot_each(self, A: np.ndarray) -> np.ndarray:
        """Return X' a_c for every row a_c of A in one pass, on all cores: an array of shape (k, d)."""
        if not self.is_sparse:
            return functools.reduce(np.add, (A[:, part] @ rows for part, rows in self._converted()))
        if self.n_stored * A.shape[0] <= _SMALL_PASS:
            return np.ascontiguousarray((self.X.T @ np.ascontiguousarray(A.T)).T)
        if not self.rows_are_native:
            return products.dot_slices(self._own_slices, self.n_stored, A.T)
        return np.ascontiguousarray(products.add_slices(self._own_slices, self.n_stored, A, self.shape[1]).T)

    def column_squares(self, weight: np.ndarray) -> np.ndarray:
        """Return sum_i weight_i x_ij^2 for every column: ``column_norms`` squared, without compiling."""
        if not self.is_sparse:
            blocks = self._converted()
            return functools.reduce(np.add, (np.einsum("n,nd,nd->d", weight[part], X, X) for part, X in blocks))
        X, squares = self.X, np.square(self.X.data, dtype=np.float64)
        return np.asarray(type(X)((squares, X.indices, X.indptr), shape=X.shape, copy=False).T @ weight)

    @property
    def _own_slices(self) -> SparseSlices:
        """The slices of sparse data in the format that the user gave."""
        return cast("SparseSlices", self.rows if self.rows_are_native else self.columns)

    def _converted(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (places, rows) of dense data, centred and in float64: all rows at once if X needs no conversion."""
        if self.shift is None and self.X.dtype == np.float64:
            yield slice(0, self.shape[0]), self.X
            return
        height = max(1, _CONVERTED // self.shape[1])
        for start in range(0, self.shape[0], height):
            part = slice(start, min(start + height, self.shape[0]))
            rows = self.X[part].astype(np.float64)
            yield part, rows if self.shift is None else np.subtract(rows, self.shift, out=rows)

    def thinned(self, every: int) -> Matrix:
        """Return one of every ``every`` rows as a new matrix."""
        return self.chosen(spread_rows(self.shape[0], every))

    def chosen(self, rows: slice | np.ndarray) -> Matrix:
        """Return the chosen rows as a new matrix."""
        if self.is_sparse:
            return Matrix(self._by_rows()[rows], self.shift, self._extent if self._is_one else None)
        return Matrix(np.array(self.X[rows], order="C" if self.rows_are_native else "F"), self.shift)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the chosen rows and columns as a dense float64 array."""
        if self.is_sparse:
            stored: np.ndarray = self._by_rows()[rows][:, columns].toarray()
            return stored.astype(np.float64, copy=False)
        values = self.X[rows[:, None], columns].astype(np.float64, copy=False)
        return values if self.shift is None else values - self.shift[columns]

    def _by_rows(self) -> Any:
        """Return sparse data as a CSR matrix, without a copy of the entries if the view by rows exists."""
        data, indices, indptr = cast("SparseSlices", self.rows)
        rows = (data, indices.view(f"i{indices.itemsize}"), indptr.view(f"i{indptr.itemsize}"))
        return scipy.sparse.csr_matrix(rows, shape=self.shape)

    def column(self, j: int) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the rows in which column ``j`` has entries (None: all rows) and the entries."""
        if not self.is_sparse:
            values = np.ascontiguousarray(self.X[:, j], dtype=np.float64)
            return None, values if self.shift is None else values - self.shift[j]
        data, indices, indptr = cast("SparseSlices", self.columns)
        stored = slice(int(indptr[j]), int(indptr[j + 1]))
        return indices[stored], data[stored].astype(np.float64, copy=False)

    def chosen_columns(self, columns: np.ndarray) -> Any:
        """Return a copy of the chosen columns as they are stored: an array in Fortran order, or a sparse matrix."""
        return self.X[:, columns] if self.is_sparse else self.X.T[columns].T

    @property
    def has_sparse_columns(self) -> bool:
        """Whether :meth:`gathered` can return sparse columns."""
        return self.is_sparse

    @property
    def has_dense_columns(self) -> bool:
        """Whether :meth:`gathered` can return dense columns."""
        return not self.is_sparse

    def gathered(self, features: np.ndarray) -> tuple[Slices, np.ndarray]:
        """Return some columns, at least the chosen ones, and the places of the chosen ones among them.

        Rows are read for columns that earlier calls have not returned: all columns would be a copy of X. Those of dense
        data are in single precision.
        """
        if self.is_sparse and self._has_columns:
            return self.columns, features
        return self._gathered_columns.of(features)

    @functools.cached_property
    def _gathered_columns(self) -> GatheredColumns | CopiedColumns:
        make = GatheredColumns if self.is_sparse else CopiedColumns
        return make(self.rows, self.shape)

    def column_products(self, columns: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return ``<X_j, a>`` for the chosen columns only."""
        return passes.dot_chosen(self.columns, columns, a)

    def add_rows(self, rows: np.ndarray, c: np.ndarray, out: np.ndarray) -> None:
        """Add ``sum_q c_q x_(rows_q)`` to ``out``."""
        passes.add_chosen(self.rows, rows, c, DenseVector(out))

    def gram(
        self, features: np.ndarray, values: np.ndarray, d: np.ndarray, rows: np.ndarray | None = None, first: int = 0
    ) -> np.ndarray:
        """Return A' diag(d) A on all cores, for A with the chosen rows (None: all) and columns values_k X_(features_k).

        Entries [:first, :first] are not computed: the caller has them already.
        """
        if features.size == 0:
            return np.zeros((0, 0))
        if not self.is_sparse:
            return DenseColumns(self.X, self.shift, features, values).gram(d, rows, first)
        place = np.full(self.shape[1], -1, dtype=np.int32)
        place[features] = np.arange(features.size)
        if (place[features] != np.arange(features.size)).any():  # a feature with atoms on both sides of zero
            return self._gram_with_repetitions(features, values, d, rows, first)
        if first > 0 and self._has_columns:  # only rows where new columns have entries matter
            rows, d = self._rows_with(features[first:], rows, d)
        support = support_of(rows, self.shape[0])
        if self._has_columns and self._share_stored(features) < FEW_STORED * d.size / self.shape[0]:
            of_rows = rows_of(cast("SparseSlices", self.columns), features, self.shape[0])
            place = np.arange(features.size, dtype=np.int32)
        else:
            of_rows = cast("SparseSlices", self.rows)

        def add_rows(start: int, stop: int) -> np.ndarray:
            H = np.zeros((features.size, features.size))
            add_outer_products(of_rows, support, place, values, first, d, H, start, stop)
            return H

        # Each thread has its own H, and adding them costs k^2.
        work = max(0.0, 4.0 * self.n_stored * (d.size / self.shape[0]) - 4.0 * features.size**2)
        H = functools.reduce(np.add, threads.run(add_rows, threads.cut(d.size, work)))
        mirror(H, first)
        return H

    def rough_gram(
        self, features: np.ndarray, values: np.ndarray, d: np.ndarray, rows: np.ndarray | None = None
    ) -> np.ndarray:
        """Return :meth:`gram` for d >= 0, up to about 1e-6 of the diagonal where that saves time."""
        if self.is_sparse:
            return self.gram(features, values, d, rows)
        return DenseColumns(self.X, self.shift, features, values).rough_gram(d, rows)

    def gram_of_rows(self, features: np.ndarray, d: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return sum_k d_k x_i x_i' on these features, over the rows i (None: all), on all cores."""
        return self.gram(features, np.ones(features.size), d, rows)

    @property
    def _has_columns(self) -> bool:
        return not self.rows_are_native or "columns" in vars(self)

    def _rows_with(self, features: np.ndarray, rows: np.ndarray | None, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return those of the rows, with their entries of d, in which one of the columns has an entry."""
        is_met = np.zeros(self.shape[0], np.bool_)
        for j in features.tolist():
            is_met[self.column(j)[0]] = True
        chosen = np.flatnonzero(is_met if rows is None else is_met[rows])
        return (chosen if rows is None else rows[chosen]), d[chosen]

    def _share_stored(self, features: np.ndarray) -> float:
        """Return the share of all stored entries that the chosen columns have."""
        indptr = cast("SparseSlices", self.columns).indptr
        return float((indptr[features + 1] - indptr[features]).sum()) / max(1, self.n_stored)

    def _gram_with_repetitions(
        self, features: np.ndarray, values: np.ndarray, d: np.ndarray, rows: np.ndarray | None, first: int
    ) -> np.ndarray:
        """Return :meth:`gram` for repeated features, from the products of the distinct columns."""
        single, at = np.unique(features, return_inverse=True)
        H = self.gram(single, np.ones(single.size), d, rows)[np.ix_(at, at)] * np.outer(values, values)
        H[:first, :first] = 0.0
        return H

    def largest_entry(self, start: int = 0, stop: int | None = None) -> float:
        """Return the largest absolute value of an entry of all rows, or of a range if rows are native."""
        is_whole = start == 0 and stop in (None, self.shape[0])
        if is_whole and self._extent is not None:
            return self._extent.largest
        if self.is_sparse:
            whole = self.X.indptr if stop is not None else np.array([0, self.n_stored])
            stored = self.X.data[int(whole[start]) : int(whole[-1 if stop is None else stop])]
            return float(max(stored.max(initial=0.0), -stored.min(initial=0.0)))
        X = self.X[start:stop]
        if self.shift is None:
            return float(max(X.max(initial=0.0), -X.min(initial=0.0)))
        return float(max((X.max(axis=0) - self.shift).max(), (self.shift - X.min(axis=0)).max()))

    def add_squares_of_rows(self, start: int, stop: int, weight: np.ndarray, out: np.ndarray) -> None:
        """Add ``sum_i weight_i x_ij^2`` over the rows from ``start`` to ``stop`` to ``out``, for every column."""
        passes.add_square_range(self.rows, weight, DenseVector(out), start, stop)

    def row_norms(self) -> np.ndarray:
        """Return ||x_i||_2 for every row."""
        slices = self.rows if self.rows_are_native else self.columns
        return np.sqrt(self._sums_of_squares(self.shape[0], np.ones(self.shape[1]), slices, self.rows_are_native))

    def column_norms(self, weight: np.ndarray) -> np.ndarray:
        """Return sqrt(sum_i weight_i x_ij^2) for every column."""
        slices = self.rows if self.rows_are_native else self.columns
        return np.sqrt(self._sums_of_squares(self.shape[1], weight, slices, not self.rows_are_native))

    def _sums_of_squares(self, n: int, weight: np.ndarray, slices: Slices, are_own: bool) -> np.ndarray:
        """Return weighted sums of squares of n rows or columns; ``are_own``: ``slices`` are these, not the others."""
        if are_own:
            out = np.empty(n)
            task = functools.partial(passes.square_range, slices, weight, out)
            threads.run(task, threads.cut(n, self.n_stored, passes.offsets(slices)))
            return out

        def add_range(start: int, stop: int) -> np.ndarray:
            out = np.zeros(n)
            passes.add_square_range(slices, weight, DenseVector(out), start, stop)
            return out

        borders = threads.cut(weight.size, self.n_stored if self.n_stored > 4 * n else 0, passes.offsets(slices))
        return functools.reduce(np.add, threads.run(add_range, borders))

    def count_stored(self, rows: np.ndarray) -> int:
        """Return how many entries the chosen rows store."""
        return int(passes.count_chosen(self.rows, rows))


def stacked(blocks: Sequence[Matrix]) -> Matrix:
    """Return the rows of all blocks in one matrix; they have the same columns, dtype and shift."""
    if len(blocks) == 1:
        return blocks[0]
    parts = [block.X for block in blocks]
    if not blocks[0].is_sparse:
        return Matrix(np.concatenate(parts), blocks[0].shift)
    return Matrix(scipy.sparse.vstack(parts, format="csr"), blocks[0].shift)
