"""Gram matrices of some columns of dense data, a block of rows at a time: in full, or in single precision."""

from __future__ import annotations

import numpy as np

from condgrad.linalg.gram import weighted_gram

_ENTRIES = 1_000_000  # entries of dense data that are processed together
_ENTRIES_OF_ROWS = 200_000  # the same for columns that are gathered from rows, so that the copies stay in the cache
_FEWEST_ROWS = 2000  # rows of a block in single precision: with fewer the sum of the products takes noticeable time
_MANY = 32  # number of columns from which on single precision saves more than the conversion takes
_LEAST, _MOST = 1e-30, 1e30  # sums of squares that single precision can hold with all its digits
_RIDGE = 1e-6  # error of products in single precision, relative to the diagonal


class DenseColumns:
    """Some columns of a dense array, times ``values``, less a shift.

    Parameters
    ----------
    X : array
    shift : array or None
        What is subtracted from each column.
    features : array of int
        The numbers of the columns.
    values : array
        Their factors.
    """

    def __init__(self, X: np.ndarray, shift: np.ndarray | None, features: np.ndarray, values: np.ndarray) -> None:
        self.X, self.shift, self.features, self.values = X, shift, features, values
        self.are_all = features.size == X.shape[1] and bool((features == np.arange(features.size)).all())
        self.by_rows = bool(X.flags.c_contiguous)

    def gram(self, d: np.ndarray, rows: np.ndarray | None, first: int) -> np.ndarray:
        """Return A' diag(d) A for the chosen rows of these columns (None: all); entries [:first, :first] stay 0."""
        k, values = self.features.size, self.values
        H = np.zeros((k, k))
        height = max(1, (_ENTRIES_OF_ROWS if self.by_rows else _ENTRIES) // max(1, k))
        is_unit, has_few_rows = bool((values == 1.0).all()), d.size < k
        for start in range(0, d.size, height):
            part = slice(start, min(start + height, d.size))
            X = self._block(part, rows)
            H += weighted_gram(X * values if has_few_rows and not is_unit else X, d[part], first)
        return H if has_few_rows or is_unit else H * np.outer(values, values)

    def rough_gram(self, d: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return :meth:`gram` for d >= 0 with errors of single precision, and a ridge that makes up for them.

        It takes about half of the time. Few columns, and sums of squares that are too large or too small for single
        precision, are multiplied in double precision.
        """
        k, values = self.features.size, self.values
        if k < _MANY or d.size == 0:
            return self.gram(d, rows, 0)
        H, height = np.zeros((k, k)), max(_FEWEST_ROWS, _ENTRIES_OF_ROWS // k)
        are_equal = bool((d == d[0]).all())
        root = np.sqrt(d).astype(np.float32)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # the test of the squares finds them
            for start in range(0, d.size, height):
                part = slice(start, min(start + height, d.size))
                X = self._block(part, rows).astype(np.float32, copy=False)
                scaled = X if are_equal else X * root[part]
                H += scaled.T @ scaled
            squares = H.diagonal() * d[0] if are_equal else H.diagonal()
        if not bool(((squares > _LEAST) & (squares < _MOST)).all()):
            return self.gram(d, rows, 0)
        H *= d[0] if are_equal else 1.0
        H *= 1.0 if (values == 1.0).all() else np.outer(values, values)
        H.flat[:: k + 1] *= 1.0 + _RIDGE
        return H

    def _block(self, part: slice, rows: np.ndarray | None) -> np.ndarray:
        """Return some rows of the columns, copied in the order in which they lie in memory if not all."""
        X, features = self.X, self.features
        if rows is not None:
            block = X[rows[part]] if self.are_all else X[rows[part, None], features]
        elif self.are_all:
            block = X[part]
        else:
            block = X[part].take(features, axis=1) if self.by_rows else X.T[features, part].T
        return block if self.shift is None else block - self.shift[features]
