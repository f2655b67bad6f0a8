"""OneHotMatrix: rows that are the codes of categories, one for each field; every entry of X is zero or one.

Row i has a one in column first_q + code_iq of every field q, and no column twice. Only the codes are stored, in one,
two or four bytes: 39 fields take 39 to 156 bytes a row, where CSR takes 312 or more.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.one_hot_slices import WIDTHS, OneHotSlices, empty_codes
from condgrad.linalg.support import support_of
from condgrad.linalg.vectors import DenseVector

_ROWS_OF_PAIRS = 64  # rows looked up field by field: so few that the places of their features stay in the nearest cache


@kernel
def _add_pairs(rows, place, chosen, d, H, start, stop):
    """Add d_k a_i a_i' for k = start, ..., stop - 1 and the rows i = chosen.row(k), each product of two features once.

    Row a_i is one at the places of its features, where these are not negative. The places are looked up field by field
    for some rows at a time, as in a pass.
    """
    n_fields = rows.codes1.shape[1] + rows.codes2.shape[1] + rows.codes4.shape[1]
    at = np.empty((n_fields, _ROWS_OF_PAIRS), place.dtype)
    where = np.empty(n_fields + 1, np.uint64)  # the last entry is for a feature that has no place
    flat = H.ravel()  # H is contiguous, so this is no copy; an array for each row of it would take time
    for top in range(start, stop, _ROWS_OF_PAIRS):
        size = min(_ROWS_OF_PAIRS, stop - top)
        _look_up(rows.codes1, rows.first1, top, chosen, place, at[: rows.codes1.shape[1], :size])
        rest = at[rows.codes1.shape[1] :, :size]
        _look_up(rows.codes2, rows.first2, top, chosen, place, rest[: rows.codes2.shape[1]])
        _look_up(rows.codes4, rows.first4, top, chosen, place, rest[rows.codes2.shape[1] :])
        for k in range(size):
            count = np.uint64(0)
            for q in range(n_fields):
                where[count] = at[q, k]  # without a branch, which would often be mispredicted
                count = count + np.uint64(at[q, k] >= 0)
            for a in range(count):
                row = where[a] * np.uint64(H.shape[1])
                for b in range(a + np.uint64(1)):
                    flat[row + where[b]] += d[top + k]


@kernel
def _look_up(codes, firsts, top, chosen, place, out):
    """Set out[q, k] to the place of the feature of field q in the row at place top + k of the chosen ones."""
    for q in range(np.uint64(codes.shape[1])):
        zero = firsts[q]
        for k in range(np.uint64(out.shape[1])):
            i = np.uint64(chosen.row(np.uint64(top) + k))
            out[q, k] = place[zero + np.uint64(codes[i, q])]


_dot_rows, _add_rows = kernel(OneHotSlices.dot_slices), kernel(OneHotSlices.add_slices)


class OneHotMatrix:
    """The n x d matrix of one-hot rows; ``codes`` and ``firsts`` have one array for each width of 1, 2 and 4 bytes.

    It offers the passes by rows of :class:`~condgrad.linalg.matrix.Matrix`; ``chosen`` returns rows as such a matrix.
    """

    is_sparse = True
    rows_are_native = True
    row_offsets = None  # all rows have the same number of entries

    def __init__(self, codes: tuple[np.ndarray, ...], firsts: tuple[np.ndarray, ...], n_features: int) -> None:
        self.codes, self.firsts = codes, firsts
        self.shape = (codes[0].shape[0], n_features)
        self.n_stored = sum(part.size for part in codes)

    @classmethod
    def of_fields(
        cls, codes: Mapping[str, np.ndarray], fields: Mapping[str, Sequence[int]], n_features: int
    ) -> OneHotMatrix:
        """Return the matrix whose codes, and first features of fields, are known by "codes1", "codes2" and "codes4"."""
        roles = [f"codes{width}" for width in WIDTHS]
        n = next(codes[role].shape[0] for role in roles if role in fields)
        parts = (codes[role] if role in fields else empty_codes(n, width) for role, width in zip(roles, WIDTHS))
        return cls(tuple(parts), tuple(np.array(fields.get(role, []), np.uint64) for role in roles), n_features)

    @property
    def n_bytes(self) -> int:
        """The number of bytes that a pass over all codes reads."""
        return sum(part.nbytes for part in self.codes)

    @functools.cached_property
    def rows(self) -> OneHotSlices:
        """The rows of X, for kernels."""
        return OneHotSlices(*self.codes, *self.firsts)

    @property
    def rows_of_passes(self) -> OneHotSlices:
        """The rows of X as passes read them."""
        return self.rows

    def dot_range(self, start: int, w: np.ndarray, out: np.ndarray) -> None:
        """Set ``out`` to x_i'w for the rows ``start``, ``start`` + 1, ..., in this thread."""
        _dot_rows(self.rows, start, w, out)

    def add_range(self, start: int, c: np.ndarray, out: np.ndarray) -> None:
        """Add the rows from ``start`` on, each times its entry of ``c``, to ``out``, in this thread."""
        _add_rows(self.rows, start, c, DenseVector(out))

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W: an array of shape (k, n)."""
        out = np.empty((W.shape[0], self.shape[0]))

        def dot_own(start: int, stop: int) -> None:
            for w, p in zip(W, out, strict=True):
                self.dot_range(start, w, p[start:stop])

        threads.run(dot_own, threads.cut(self.shape[0], self.n_stored * W.shape[0]))
        return out

    def features(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the features of the chosen rows: one number for each field."""
        parts = zip(self.codes, self.firsts, strict=True)
        return np.concatenate([part[rows].astype(np.int64) + first.astype(np.int64) for part, first in parts], axis=1)

    def chosen(self, rows: slice | np.ndarray) -> Matrix:
        """Return the chosen rows as a sparse matrix in memory, with the entries of a row in order of features."""
        indices = np.sort(self.features(rows), axis=1)
        n, width = indices.shape
        ones, ends = np.ones(n * width, np.float32), np.arange(0, n * width + 1, width)
        return Matrix(scipy.sparse.csr_matrix((ones, indices.ravel(), ends), shape=(n, self.shape[1])))

    def gram_of_rows(self, features: np.ndarray, d: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return sum_k d_k x_i x_i' on these features, over the rows i (None: all), on all cores."""
        place = np.full(self.shape[1], -1, np.int16 if features.size < 2**15 else np.int32)
        place[features] = np.arange(features.size)
        support = support_of(rows, self.shape[0])

        def add_own(start: int, stop: int) -> np.ndarray:
            H = np.zeros((features.size, features.size))
            _add_pairs(self.rows, place, support, d, H, start, stop)
            return H

        work = 4 * self.n_stored * d.size // max(1, self.shape[0])
        H = functools.reduce(np.add, threads.run(add_own, threads.cut(d.size, work)))
        return H + H.T - np.diag(H.diagonal())

    def add_squares_of_rows(self, start: int, stop: int, weight: np.ndarray, out: np.ndarray) -> None:
        """Add ``sum_i weight_i x_ij^2`` over the rows from ``start`` to ``stop`` to ``out``; ones are their squares."""
        self.add_range(start, weight[start:stop], out)

    def largest_entry(self, start: int = 0, stop: int | None = None) -> float:
        """Return the largest entry of X: fields have their own features."""
        return 1.0
