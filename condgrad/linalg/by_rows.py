"""ByRows: the contract of matrices whose passes go row by row."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from condgrad.linalg.matrix import Matrix
from condgrad.linalg.slices import SliceRanges, Slices


class ByRows(Protocol):
    """A matrix whose passes go row by row: a :class:`Matrix` of such data, or a matrix that knows its rows only."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    @property
    def n_stored(self) -> int:
        """The number of stored entries."""

    @property
    def n_bytes(self) -> int:
        """The number of bytes that a pass over all stored entries reads."""

    @property
    def row_offsets(self) -> np.ndarray | None:
        """Where the entries of each row begin; None if all rows have the same number of entries."""

    @property
    def rows(self) -> Slices | SliceRanges:
        """The rows of X, for kernels."""

    @property
    def rows_of_passes(self) -> Slices | SliceRanges:
        """The rows of X as passes read them, for kernels."""

    def dot_range(self, start: int, w: np.ndarray, out: np.ndarray) -> None:
        """Set ``out`` to x_i'w for the rows ``start``, ``start`` + 1, ..., in this thread."""

    def add_range(self, start: int, c: np.ndarray, out: np.ndarray) -> None:
        """Add the rows from ``start`` on, each times its entry of ``c``, to ``out``, in this thread."""

    def dot_each(self, W: np.ndarray) -> np.ndarray:
        """Return X w_c for every row w_c of W: an array of shape (k, n)."""

    def chosen(self, rows: slice | np.ndarray) -> Matrix:
        """Return the chosen rows as a matrix in memory of their own."""

    def gram_of_rows(self, features: np.ndarray, d: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return sum_k d_k x_i x_i' on these features, over the rows i (None: all), on all cores."""

    def largest_entry(self, start: int = 0, stop: int | None = None) -> float:
        """Return the largest absolute value of an entry of all rows, or of a range."""

    def add_squares_of_rows(self, start: int, stop: int, weight: np.ndarray, out: np.ndarray) -> None:
        """Add ``sum_i weight_i x_ij^2`` over the rows from ``start`` to ``stop`` to ``out``, for every column."""
